"""Invariant: a stream publishes what the whole text becomes, however it is cut, and holds little.

The first byte of an input says where it is cut.
"""

from a2a_trio.rules.redaction import Redactor
from a2a_trio.rules.secret_stream import MAX_RUN, MAX_SECRET
from fuzz.harness import Target

SECRET = "own secret/value+1"  # noqa: S105 - made up
REDACTOR = Redactor([SECRET])
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0"


def check(data: bytes) -> None:
    """Cut the text, and hide a token in it."""
    size = data[0] % 23 + 1 if data else 1
    text = data[1:].decode("utf-8", "replace")
    whole = REDACTOR.text(text)
    assert SECRET not in whole
    assert TOKEN not in whole
    stream = REDACTOR.stream()
    published = []
    for start in range(0, len(text), size):
        published += stream.feed([text[start : start + size]])
        assert len(stream._held) <= max(MAX_RUN, MAX_SECRET)  # noqa: SLF001 - the bound is the point
    published += stream.feed([], final=True)
    assert "".join(published) == whole


TARGET = Target(
    name="redaction",
    check=check,
    words=(
        SECRET.encode(), b"own secret", TOKEN.encode(), b"sk-ant-", b"sk-", b"AKIA", b"eyJhbGciOi", b".eyJzdWIi",
        b"Bearer ", b"Authorization: ", b"Basic dXNlcjpwYXNz", b"password=", b"hunter22", b"api_key: ",
        b"-----BEGIN PRIVATE KEY-----", b"-----END PRIVATE KEY-----", b"MIIEvQIBADANBgkqhkiG9w0B", b"\\n", b"\n",
        b"://u:p@h", b"a@b.io", b"@", b"xoxb-1234567890", b"AIza", b"x" * 4096, b"=", b" ", b'"', b"\\u003d",
    ),
)  # fmt: skip
