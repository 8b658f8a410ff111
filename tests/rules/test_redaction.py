"""Nothing that looks like a credential leaves, however it is wrapped or split."""

import json
import time
from itertools import pairwise

import attrs
import pytest
from hypothesis import given, strategies as st

from a2a_trio.rules.redaction import MAX_OPEN_ARTIFACTS, Redactor, TaskRedactor
from a2a_trio.rules.secret_stream import MAX_RUN, MAX_SECRET
from a2a_trio.wire.json_text import MAX_DEPTH
from a2a_trio.wire.model import Artifact, JsonValue, Message, Part, Role

# Put together from pieces, so that no scanner takes this file for a leak.
ALNUM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
HEX = "0123456789abcdef" * 3
OWN = ("s3cr3t/value+of=ours", "pässword-with-ümlaut", 'quoted"secret\\x', "tok:en,with;signs!")

KEY_LINES = "\n".join(("MII" + ALNUM + "abcdefghijklmnopqrstu",) * 3)
PRIVATE_KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES}\nAb12\n-----END RSA PRIVATE KEY-----"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{ALNUM}"

# kind of credential -> text around it, what must not pass
DETECTIONS: dict[str, tuple[str, str]] = {
    "anthropic": ("use sk-ant-{} now", "api03-" + ALNUM),
    "anthropic of pi-a2a": ("{}", "sk-ant-" + "abcdefghijklmnop"),
    "openai": ("OPENAI_API_KEY={}", "sk-proj-" + ALNUM),
    "openai of pi-a2a": ("the key is {}.", "sk-" + "abcdefghijklmnopqrst"),
    "hugging face": ("hub login {}", "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"),
    "groq": ("({})", "gsk_" + ALNUM),
    "replicate": ("[{}]", "r8_" + ALNUM[:37]),
    "github classic": ("git clone https://{}@github.com/a/b", "ghp_" + ALNUM[:36]),
    "github oauth": ("{}", "gho_" + ALNUM[:36]),
    "github server": ("{}", "ghs_" + ALNUM[:36]),
    "github user": ("{}", "ghu_" + ALNUM[:36]),
    "github refresh": ("{}", "ghr_" + ALNUM[:36]),
    "github fine grained": ("token {}", "github_pat_" + ALNUM[:22] + "_" + ALNUM),
    "gitlab": ("PRIVATE-TOKEN: {}", "glpat-" + ALNUM[:20]),
    "aws access key": ("aws_access_key_id = {}", "AKIA" + "IOSFODNN7EXAMPLE"),
    "aws temporary key": ("'{}'", "ASIA" + "IOSFODNN7EXAMPLE"),
    "aws secret key": ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"),
    "aws secret in json": ('"SecretAccessKey": "{}"', "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"),
    "google api key": ("?key={}&x=1", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"),
    "google oauth": ("{}", "ya29." + ALNUM),
    "google client secret": ("{}", "GOCSPX-" + ALNUM[:28]),
    "google service account": ('{{"private_key": "{}"}}', PRIVATE_KEY.replace("\n", "\\n")),
    "azure storage": ("AccountName=x;AccountKey={};EndpointSuffix=core", ALNUM * 2 + "+/=="),
    "azure client secret": ("{}", "abc8Q~" + ALNUM[:34]),
    "azure sas": ("https://x.blob.core/y?sv=2022&sig={}&se=1", ALNUM + "%3D"),
    "slack bot": ("{}", "xoxb-" + "123456789012-" + ALNUM[:24]),
    "slack user": ("{}", "xoxp-" + "1234567890-abc"),
    "slack webhook": ("https://{}", "hooks.slack.com/services/T00000000/B00000000/" + ALNUM[:24]),
    "discord webhook": ("https://{}", "discord.com/api/webhooks/123456789012345678/" + ALNUM),
    "telegram": ("bot{}", "12345678:AA" + ALNUM[:33]),
    "npm": ("//registry.npmjs.org/:_authToken={}", "npm_" + ALNUM[:36]),
    "pypi": ("{}", "pypi-" + "AgEIcHlwaS5vcmcC" + ALNUM),
    "docker": ("{}", "dckr_pat_" + ALNUM[:27]),
    "stripe": ("{}", "sk_" + "live_" + ALNUM[:24]),
    "stripe webhook": ("{}", "whsec_" + ALNUM[:32]),
    "sendgrid": ("{}", "SG." + ALNUM[:22] + "." + ALNUM[:38]),
    "twilio": ("{}", "SK" + HEX[:32]),
    "shopify": ("{}", "shpat_" + HEX[:32]),
    "vault": ("X-Vault-Token: {}", "hvs." + ALNUM),
    "gateway": ("{}", "agw-" + ALNUM[:24]),
    "jwt": ("cookie={}; path=/", JWT),
    "jwt in two parts": ("{}", JWT.rpartition(".")[0]),
    "private key without lines": ("-----BEGIN EC PRIVATE KEY----- {} -----END EC PRIVATE KEY-----", "MII" + ALNUM),
    "private key whole": ("cat id_rsa\n{}\n$", PRIVATE_KEY),
    "openssh key": ("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END", KEY_LINES),
    "bearer header": ("Authorization: Bearer {}", "abcdef.ghi-jkl_123456"),
    "bearer with slashes": ("authorization: bearer {}", "ab/cd+ef/12=="),
    "short header value": ('-H "Authorization: token {}"', "hunter2abc"),
    "basic header": ("Authorization: Basic {}", "dXNlcjpwYXNzd29yZA=="),
    "basic alone": ("used basic {} there", "dXNlcjpwYXNzd29yZA=="),
    "url password": ("postgres://bob:{}@db.example.com:5432/x", "hunter2"),
    "url password with signs": ("amqp://bob:{}@mq/x", "p!a$s(w)ord,1"),
    "url token": ("https://{}@git.example.com/x", "abcdef0123456789abcdef"),
    "password assignment": ("DB_PASSWORD={}", "Sup3rS3cret"),
    "password in yaml": ("password: {}", "hunter22"),
    "password in json": ('{{"password": "{}"}}', "correctHorse"),
    "password in escaped json": ('"{{\\"password\\": \\"{}\\"}}"', "correctHorse9"),
    "password flag": ("mysql --password {} x", "hunter22"),
    "password in xml": ("<password>{}</password>", "hunter22"),
    "api key header": ("X-Api-Key: {}", ALNUM),
    "client secret": ("client_secret={}&grant_type=x", ALNUM),
    "email": ("write to {} please", "first.last+tag@mail.example.co.uk"),
    "email of pi-a2a": ("<{}>", "a@b.io"),
    "in escaped text": ('"line\\n{}"', "ghp_" + ALNUM[:36]),
    "in a percent encoded query": ("x%3D{}", "sk-" + ALNUM[:30]),
    "in a unicode escape": ("x\\u003d{}", "sk-" + ALNUM[:30]),
    "own secret": ("is {} ok", OWN[0]),
    "own secret glued": ("x{}y", OWN[0]),
    "own secret, other letters": ("[{}]", OWN[1]),
    "own secret, percent encoded": ("?t={}&", "s3cr3t%2Fvalue%2Bof%3Dours"),
    "own secret, JSON escaped": ('"{}"', json.dumps(OWN[2])[1:-1]),
    "own secret with signs": ("{}", OWN[3]),
}  # fmt: skip

# Ordinary text of a coding agent; none of it may change.
INNOCENT = (
    "The quick brown fox jumps over the lazy dog.",
    "task-1b4f8d1c30d54819 finished; see a2a-1b4.",
    "risk-assessment-of-the-whole and task-list-for-the-next-release",
    "sk-learn-based-pipeline-of-things",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b on main",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "git@github.com:owner/repo.git and ssh://git@host.example/x",
    "pip install a2a-trio==1.2.3 && pytest -q tests/rules",
    "the bearer of this message, basic functionality, basic authentication",
    "Bearer authentication is described in RFC 6750.",
    "max_tokens=4096, token: required, tokens: 12, token_count = 100000",
    "password: required; the password must be at least 12 characters",
    "def login(password: str, token: str | None = None) -> Session:",
    "password=password, token=self.token, api_key=os.environ['API_KEY']",
    "secret = settings.shared_token; key = config.get('key')",
    "export API_KEY=$API_KEY and PASSWORD=${DB_PASSWORD}",
    "-----BEGIN PRIVATE KEY----- is the header of a key file.",
    "-----BEGIN CERTIFICATE-----\nMIIB" + ALNUM + "\n-----END CERTIFICATE-----",
    "@decorator user@host foo@1.2.3 @scope/package",
    "https://example.com/a/b?page=2&sort=asc#top http://127.0.0.1:9910/",
    "import { useState } from 'react'; const x = a ? b : c;",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
    "路径是 /usr/local/bin，密码不能为空。",  # noqa: RUF001 - ordinary Chinese punctuation
    "Größe: 12 °C — naïve café",
    "x" * 10_000,
    "/very/long/path" * 600,
    "",
)

REDACTOR = Redactor(OWN)


def stream_of(text: str, cuts: list[int]) -> str:
    """Send a text as an artifact in chunks and return what a caller puts together."""
    task = TaskRedactor(REDACTOR)
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    chunks = [text[a:b] for a, b in pairwise(edges)] or [""]
    got = ""
    for number, chunk in enumerate(chunks):
        artifact = Artifact(artifact_id="a", parts=(Part(text=chunk),))
        sent = task.artifact(artifact, append=number > 0, last=False)
        got += "".join(part.text or "" for part in sent.parts)
    return got + "".join(artifact.text for artifact in task.pending())


@pytest.mark.parametrize("kind", DETECTIONS)
def test_credential_is_removed(kind: str) -> None:
    """Every kind of credential of the table is removed, and the text around it stays."""
    around, secret = DETECTIONS[kind]
    clean = REDACTOR.text(around.format(secret))
    assert secret not in clean
    assert "[redacted" in clean
    before, _, after = around.format("\0").partition("\0")
    assert clean.startswith(before[:4])
    assert clean.endswith(after[-2:])


@pytest.mark.parametrize("kind", DETECTIONS)
def test_credential_split_byte_by_byte_does_not_pass(kind: str) -> None:
    """A stream of single characters is redacted like the whole text."""
    around, secret = DETECTIONS[kind]
    text = f"one {around.format(secret)} two"
    assert stream_of(text, list(range(len(text)))) == REDACTOR.text(text)


@pytest.mark.parametrize("kind", DETECTIONS)
def test_redaction_is_idempotent(kind: str) -> None:
    """Markers are not taken for credentials."""
    around, secret = DETECTIONS[kind]
    clean = REDACTOR.text(around.format(secret))
    assert REDACTOR.text(clean) == clean


@pytest.mark.parametrize("text", INNOCENT, ids=range(len(INNOCENT)))
def test_ordinary_text_is_unchanged(text: str) -> None:
    """No false positive in the corpus of ordinary text, whole and in a stream."""
    assert REDACTOR.text(text) == text
    assert stream_of(text, list(range(0, len(text), 7))) == text


def test_measured_table() -> None:
    """Count detections and false positives over the corpus; both are perfect, and stay so."""
    found = sum(secret not in REDACTOR.text(a.format(secret)) for a, secret in DETECTIONS.values())
    false = sum(REDACTOR.text(text) != text for text in INNOCENT)
    assert (found, false) == (len(DETECTIONS), 0)
    assert len(DETECTIONS) >= 60


PIECES = st.one_of(
    st.sampled_from([around.format(secret) for around, secret in DETECTIONS.values()]),
    st.sampled_from(INNOCENT[:22]),
    st.text(max_size=20),
    st.sampled_from(
        [" ", "\n", "'", "\\", '"', "-----BEGIN PRIVATE KEY-----", "-----END", "MII" * 9]
    ),
    st.text(alphabet="abAB01=-_.:/@+", min_size=1, max_size=40),
    st.integers(1, 3).map(lambda n: ("k" * 900 + "sk-" + ALNUM) * n * 3),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)


@given(TEXTS, st.lists(st.integers(min_value=0), max_size=12))
def test_any_split_gives_the_same_text(text: str, cuts: list[int]) -> None:
    """What a stream publishes is what the whole text would become, wherever it is cut."""
    assert stream_of(text, cuts) == REDACTOR.text(text)


@given(TEXTS, st.lists(st.integers(min_value=0), max_size=6))
def test_what_is_held_is_bounded(text: str, cuts: list[int]) -> None:
    """A stream never holds back more than its bound."""
    stream = REDACTOR.stream()
    fed = published = 0
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    for a, b in pairwise(edges):
        fed += b - a
        stream.feed([text[a:b]])
        published = stream._offset
        assert fed - published <= max(MAX_RUN, MAX_SECRET)


@given(st.lists(PIECES, max_size=6).map(" ".join))
def test_text_redaction_is_idempotent(text: str) -> None:
    """What was redacted is not redacted again, where secrets do not stick to each other."""
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


@pytest.mark.parametrize("length", [MAX_RUN - 30, MAX_RUN - 5, MAX_RUN, MAX_RUN + 7, 3 * MAX_RUN])
def test_secret_in_a_very_long_run_does_not_pass(length: int) -> None:
    """A secret is found on both sides of every window, and a longer one is swallowed whole."""
    secret = "ghp_" + ALNUM[:36]
    text = "/" * length + secret + "/" * 5000
    assert REDACTOR.text(text) == stream_of(text, [length + 10, length + 20])
    assert secret not in REDACTOR.text(text)
    long = "sk-ant-" + "a1" * length
    assert "a1a1a1a1" not in stream_of(long + " end", [5, 100, length])
    assert stream_of(long + " end", [9]).endswith(" end")


def test_prose_is_delayed_by_a_word_only() -> None:
    """Everything up to the last space is published at once."""
    task = TaskRedactor(REDACTOR)
    chunk = Artifact(artifact_id="a", parts=(Part(text="Reading the reposi"),))
    assert task.artifact(chunk, append=False, last=False).text == "Reading the "
    chunk = Artifact(artifact_id="a", parts=(Part(text="tory now. "),))
    assert task.artifact(chunk, append=True, last=False).text == "repository now. "


def test_text_that_begins_an_own_secret_is_held() -> None:
    """Also a secret with spaces in it, which no word boundary protects."""
    task = TaskRedactor(Redactor(["open sesame now"]))
    sent = [
        task.artifact(
            Artifact(artifact_id="a", parts=(Part(text=text),)), append=n > 0, last=n == 2
        ).text
        for n, text in enumerate(("say open ", "sesame ", "now."))
    ]
    assert "".join(sent) == "say [redacted-secret]."


def test_name_of_a_held_first_chunk_comes_with_the_published_one() -> None:
    """Nothing published means no name published either."""
    task = TaskRedactor(REDACTOR)
    first = Artifact(
        artifact_id="a",
        name="Report",
        description="d",
        parts=(Part(text="word"),),
        metadata={"k": 1},
    )
    assert task.artifact(first, append=False, last=False).parts == ()
    second = task.artifact(
        Artifact(artifact_id="a", parts=(Part(text="s end "),)), append=True, last=False
    )
    assert (second.name, second.description, second.text) == ("Report", "d", "words end ")
    assert second.metadata == {"k": 1}
    third = task.artifact(
        Artifact(artifact_id="a", parts=(Part(text="x "),)), append=True, last=False
    )
    assert third.name == ""


def test_pending_publishes_each_held_tail_once() -> None:
    """The end of a run publishes what is held, redacted, with the name if that is still due."""
    task = TaskRedactor(REDACTOR)
    secret = "ghp_" + ALNUM[:36]
    for name in ("one", "two"):
        chunk = Artifact(artifact_id=name, name=name, parts=(Part(text=secret),))
        assert task.artifact(chunk, append=False, last=False).parts == ()
    pending = task.pending()
    assert [(a.artifact_id, a.name, a.text) for a in pending] == [
        ("one", "one", "[redacted-vcs-token]"),
        ("two", "two", "[redacted-vcs-token]"),
    ]
    assert task.pending() == ()


def test_last_chunk_holds_nothing() -> None:
    """Also if it has no text part of its own."""
    task = TaskRedactor(REDACTOR)
    start = Artifact(artifact_id="a", parts=(Part(text="tail", media_type="text/plain"),))
    task.artifact(start, append=False, last=False)
    end = task.artifact(Artifact(artifact_id="a", parts=(Part(data=1),)), append=True, last=True)
    assert end.parts == (Part(data=1), Part(text="tail", media_type="text/plain"))
    assert task.pending() == ()


def test_artifact_begun_anew_drops_what_was_held() -> None:
    """``append`` false replaces the artifact, so its old tail is gone."""
    task = TaskRedactor(REDACTOR)
    for text in ("old", "new"):
        task.artifact(Artifact(artifact_id="a", parts=(Part(text=text),)), append=False, last=False)
    assert [a.text for a in task.pending()] == ["new"]


def test_secret_across_two_parts_is_removed_from_both() -> None:
    """Parts of one message are searched as one text, and each keeps its own words."""
    secret = "ghp_" + ALNUM[:36]
    message = Message(
        message_id="m",
        role=Role.AGENT,
        parts=(Part(text="a " + secret[:12]), Part(data={"x": 1}), Part(text=secret[12:] + " b")),
    )
    clean = REDACTOR.message(message)
    assert [part.text for part in clean.parts] == ["a [redacted-vcs-token]", None, " b"]
    assert clean.parts[1].data == {"x": 1}


def test_too_many_open_artifacts_are_judged_chunk_by_chunk() -> None:
    """Memory is bounded: beyond the bound nothing is held, and nothing is lost."""
    task = TaskRedactor(REDACTOR)
    for number in range(MAX_OPEN_ARTIFACTS):
        chunk = Artifact(artifact_id=str(number), parts=(Part(text="word"),))
        task.artifact(chunk, append=False, last=False)
    chunk = Artifact(artifact_id="more", parts=(Part(text="word"),))
    assert task.artifact(chunk, append=False, last=False).text == "word"
    assert len(task._open) == MAX_OPEN_ARTIFACTS


def status(text: str) -> Message:
    return Message(message_id="m", role=Role.AGENT, parts=(Part(text=text),))


def test_secret_across_two_status_messages_does_not_pass_whole() -> None:
    """The second message loses its part of a secret that the first began."""
    task = TaskRedactor(REDACTOR)
    secret = "ghp_" + ALNUM[:36]
    assert task.message(status("key " + secret[:15])).text == "key " + secret[:15]
    assert task.message(status(secret[15:] + " end")).text == "[redacted-vcs-token] end"


def test_word_before_a_secret_does_not_hide_it() -> None:
    """A message, or a part, that begins with a secret loses it whatever was said before."""
    secret = "sk-" + ALNUM[:36]
    task = TaskRedactor(REDACTOR)
    assert task.message(status("the key is")).text == "the key is"
    assert task.message(status(secret)).text == "[redacted-api-key]"
    parts = (Part(text="the key is"), Part(text=secret))
    message = Message(message_id="m", role=Role.AGENT, parts=parts)
    for clean in (REDACTOR.message(message), TaskRedactor(REDACTOR).message(message)):
        assert clean.text == "the key is\n[redacted-api-key]"
    artifact = Artifact(artifact_id="a", parts=parts)
    assert REDACTOR.artifact(artifact).text == "the key is\n[redacted-api-key]"


def test_status_after_a_whole_secret_keeps_its_words() -> None:
    """An address at the end of one message and a word in the next are not one word."""
    task = TaskRedactor(REDACTOR)
    assert task.message(status("wrote to bob@example.com")).text == "wrote to [redacted-email]"
    assert task.message(status("Done. All fine")).text == "Done. All fine"


def test_everything_that_can_carry_text_is_searched() -> None:
    """URLs, file names, text files, data, metadata, names and descriptions."""
    secret = "ghp_" + ALNUM[:36]
    artifact = Artifact(
        artifact_id="a",
        name=secret,
        description=secret,
        metadata={secret: secret},
        parts=(
            Part(url=f"https://x/?t={secret}", filename=f"{secret}.txt", metadata={"m": [secret]}),
            Part(raw=f"x {secret}".encode(), media_type="text/plain"),
            Part(data={"k": [{secret: secret}]}),
            Part(text=secret),
        ),
    )
    clean = REDACTOR.artifact(artifact)
    assert secret not in repr(clean)
    assert clean.artifact_id == "a"
    assert clean == REDACTOR.artifact(clean)


def test_binary_files_pass_as_they_are() -> None:
    """A file that is not text is not changed, nor one that says it is and is not."""
    for media_type in ("image/png", "text/plain"):
        part = Part(raw=b"\xff\xfe\x00bin", media_type=media_type)
        clean = REDACTOR.artifact(Artifact(artifact_id="a", parts=(part,)))
        assert clean.parts == (part,)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("password", True), ("DB_PASSWORD", True), ("clientSecret", True), ("apiKey", True),
        ("x-api-key", True), ("access_token", True), ("secret", True), ("authorization", True),
        ("nextPageToken", False), ("maxTokens", False), ("keyboard", False), ("passed", False),
        ("secretary", False), ("tokenizer", False),
    ],
)  # fmt: skip
def test_data_under_a_telling_name(name: str, gone: bool) -> None:  # noqa: FBT001 - a table
    """A text under the name of a credential is replaced whole; other names do not matter."""
    value = REDACTOR.value({name: "plain words"})
    assert value == ({name: "[redacted-credential]"} if gone else {name: "plain words"})


def test_data_keys_do_not_collide() -> None:
    """Two keys that become the same stay two members."""
    clean = REDACTOR.value({"a@b.io": 1, "c@d.io": 2})
    assert clean == {"[redacted-email]": 1, "[redacted-email]*": 2}


def test_data_deeper_than_the_bound_is_replaced() -> None:
    """Depth costs no recursion error, and what is too deep does not pass."""
    deep: JsonValue = "ghp_" + ALNUM
    for _ in range(5000):
        deep = [deep]
    clean = REDACTOR.value(deep)
    for _ in range(MAX_DEPTH):
        assert isinstance(clean, list)
        clean = clean[0]
    assert clean == "[redacted-too-deep]"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
)


@given(json_values)
def test_data_without_secrets_is_unchanged(value: JsonValue) -> None:
    """Numbers, nulls and structure stay."""
    assert REDACTOR.value(value) == value


def test_messages_and_chunks_without_secrets_are_not_copied() -> None:
    """What passes unchanged is the object that came."""
    message = status("all is well")
    chunk = Artifact(artifact_id="reply", name="reply", parts=(Part(text="all is well"),))
    assert REDACTOR.message(message) is message
    assert REDACTOR.artifact(chunk) is chunk
    assert TaskRedactor(REDACTOR).message(message) is message
    assert TaskRedactor(REDACTOR).artifact(chunk, append=False, last=True) is chunk


def test_values_without_secrets_are_equal_to_what_came() -> None:
    """Nothing but secrets changes in a message."""
    message = Message(
        message_id="m", role=Role.AGENT, context_id="c", task_id="t", metadata={"a": 1},
        parts=(Part(text="fine"), Part(data=None), Part(raw=b"x"), Part(url="https://x/")),
        extensions=("urn:x",), reference_task_ids=("r",),
    )  # fmt: skip
    assert REDACTOR.message(message) == message
    assert attrs.evolve(message) == message


def test_short_own_secrets_are_not_searched_for() -> None:
    """A secret of seven characters would hit ordinary words."""
    assert Redactor(["letters"]).text("seven letters") == "seven letters"


def test_longest_of_own_secrets_wins() -> None:
    """One secret that begins with another is removed whole, also in a stream."""
    redactor = Redactor(["abcdefgh", "abcdefgh-longer"])
    stream = redactor.stream()
    got = "".join(stream.feed([c])[0] for c in "x abcdefgh-longer abcdefgh-l y")
    got += "".join(stream.feed([], final=True))
    assert got == "x [redacted-secret] [redacted-secret]-l y"


HOSTILE = (
    "eyJ", "eyJ.", "eyJaaaaaaaaaaa.", "sk-", "a@", "a@b.", "://", "://a:", "password=", "bearer ",
    "ghp_", "x", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN ", "AAAA-----", "api_key ", "\n", "basic ",
    OWN[0][:-1], 'token="', "authorization: bearer ", "[redacted", "=", "\\",
)  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_costs_linear_time(unit: str) -> None:
    """Eight times the text takes far less than 64 times as long (a smoke test with wide margins)."""

    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        begin = time.process_time()
        REDACTOR.text(text)
        return time.process_time() - begin

    small = min(cost(20_000) for _ in range(3))
    assert min(cost(160_000) for _ in range(2)) < 30 * small + 0.05
