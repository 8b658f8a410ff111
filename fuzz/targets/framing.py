"""Invariant: any text is defanged once and for all, framed on one line of notice, and soon.

What was filtered is not filtered again, and a label is one clean line within its limit.
"""

# ruff: noqa: RUF001 - look-alike characters are part of the attack

import unicodedata

from a2a_trio.rules.framing import clean_label, defang, frame
from fuzz.harness import Target

LIMIT = 40


def check(data: bytes) -> None:
    """Use the text as a message and as a name."""
    text = data.decode("utf-8", "replace")
    once = defang(text)
    assert defang(once) == once
    label = clean_label(text, LIMIT)
    assert len(label) <= LIMIT
    assert not any(unicodedata.category(char).startswith("C") for char in label)
    notice, _, body = frame(text, peer=text, provenance="token", transport="remote").partition(
        "\n\n"
    )
    assert "\n" not in notice
    assert notice.count('"') == len('""')
    assert notice.startswith("[A2A inbound")
    assert notice.endswith("]")
    assert body == once.strip()


TARGET = Target(
    name="framing",
    check=check,
    words=(
        b"<|im_start|>", b"<|", b"|>", b"<|system|>", b"[INST]", b"[/INST]", b"<<SYS>>", b"</s><s>",
        b"<start_of_turn>", b"<system", b"</tool_result>", b"\nsystem:", b"\n### Instruction:",
        b"ignore ", b"all ", b"previous ", b"instructions", b"you are now a ", b"[A2A inbound", b"\n", b"\r",
        "\u200b".encode(), "\u202e".encode(), "о".encode(), "ｉ".encode(), "｜".encode(), "忽略".encode(),
    ),
)  # fmt: skip
