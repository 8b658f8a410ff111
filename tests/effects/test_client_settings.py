"""Rows of pi-a2a's tables about calls to others, shown to a peer that follows a script."""
# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture

import math
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from a2a_trio import PeerTimeoutError, PeerUnreachableError, Settings
from a2a_trio.client.client import open_client
from a2a_trio.peer.calling import call_for
from a2a_trio.testing.fake_peer import FakePeer, Hang, Pause, Result, Stream, Unreachable
from a2a_trio.wire.model import Task, TaskState, TaskStatus
from tests.effects.conftest import (
    SHARED,
    Effect,
    Via,
    case_ids,
    cases,
    with_effect,
    without_effect,
)

MINE: Final = "the-token-of-session-a"
THEIRS: Final = "the-token-they-gave-us"
LOCAL: Final = "http://127.0.0.1:9999"
REMOTE: Final = "https://agents.example"
DONE: Final = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.COMPLETED))
WORKING: Final = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))


def other(url: str = LOCAL, **entry: object) -> dict[str, Any]:
    """Return a directory with one peer."""
    return {"peers": {"other": {"url": url, **entry}}}


async def send(settings: Settings, peer: FakePeer, name: str = "other") -> None:
    call = call_for(name, settings)
    async with open_client(
        call.url, token=call.token, options=call.options, transport=peer.transport
    ) as client:
        await client.send("hello")


async def credential(settings: Settings, url: str = LOCAL) -> tuple[str, str]:
    """Return the token and the name that a peer gets to see."""
    peer = FakePeer(url=url)
    peer.answers("SendMessage", Result(DONE))
    await send(settings, peer)
    (call,) = peer.called("SendMessage")
    return call.headers.get("authorization", ""), call.headers.get("x-a2a-identity", "")


async def credential_of_a_local_peer(settings: Settings) -> object:
    return await credential(settings)


async def credential_of_a_remote_peer(settings: Settings) -> object:
    return (await credential(settings, REMOTE))[0]


async def where_the_name_leads(settings: Settings) -> object:
    peer = FakePeer(url=settings.peers["other"].url)
    peer.answers("SendMessage", Result(DONE))
    await send(settings, peer)
    return peer.called("SendMessage")[0].url


async def longest_wait(settings: Settings) -> object:
    peer = FakePeer(url=LOCAL)
    peer.answers("SendMessage", Hang())
    began = trio.current_time()
    with pytest.raises(PeerTimeoutError):
        await send(settings, peer)
    return round(trio.current_time() - began)


async def longest_silence(settings: Settings) -> object:
    peer = FakePeer(url=LOCAL)
    peer.answers("SendStreamingMessage", Stream(WORKING, Pause(math.inf)))
    call = call_for("other", settings)
    async with open_client(call.url, options=call.options, transport=peer.transport) as client:
        began = trio.current_time()
        async with client.stream("hello") as events:
            assert isinstance(await anext(events), Task)
            with pytest.raises(PeerTimeoutError):
                await anext(events)
    return round(trio.current_time() - began)


async def longest_interval_of_polls(settings: Settings) -> object:
    peer = FakePeer(url=LOCAL)
    peer.answers("GetTask", Result(WORKING))
    call = call_for("other", settings)
    async with open_client(call.url, options=call.options, transport=peer.transport) as client:
        await client.wait("t", timeout=300)
        polls = len(peer.called("GetTask"))
        await client.wait("t", timeout=600)
    # Five minutes at the longest interval, whatever the first ones were like.
    further = len(peer.called("GetTask")) - 2 * polls
    return round(300 / further)


async def tries_of_a_send(settings: Settings) -> object:
    peer = FakePeer(url=LOCAL)
    peer.answers("SendMessage", Unreachable())
    with pytest.raises(PeerUnreachableError):
        await send(settings, peer)
    return len(peer.called("SendMessage"))


SESSIONS: Final = {
    **other(),
    "server": {"agentName": "host", "sharedToken": SHARED, "peerTokens": {"session-a": MINE}},
}
REMOTE_SESSIONS: Final = {**SESSIONS, **other(REMOTE)}

EFFECTS: Final = (
    Effect(
        key="selfIdentity", value="session-a", env="A2A_SELF_IDENTITY", text="session-a",
        base=SESSIONS, probe=credential_of_a_local_peer,
        before=(f"Bearer {SHARED}", "host"), after=(f"Bearer {MINE}", "session-a"),
    ),
    Effect(
        key="peers.other.url", value=REMOTE, base=other(), probe=where_the_name_leads,
        before=LOCAL, after=REMOTE,
    ),
    Effect(
        key="peers.other.auth", value={"token": THEIRS}, base=REMOTE_SESSIONS,
        probe=credential_of_a_remote_peer, before="", after=f"Bearer {THEIRS}",
    ),
    Effect(
        key="peers.other.auth", value={"type": "apiKey", "token": THEIRS}, base=REMOTE_SESSIONS,
        probe=credential_of_a_remote_peer, before="", after=f"ApiKey {THEIRS}",
    ),
    Effect(
        key="peers.other.auth", value={"type": "none"}, base=SESSIONS,
        probe=credential_of_a_local_peer, before=(f"Bearer {SHARED}", "host"), after=("", "host"),
    ),
    Effect(
        key="peers.other.timeout", value=12, base=other(), probe=longest_wait, before=360, after=12,
    ),
    Effect(
        key="timeouts.send", value=5000, base=other(), probe=longest_wait, before=360, after=5,
    ),
    Effect(
        key="timeouts.stream", value=3000, base=other(), probe=longest_silence, before=120, after=3,
    ),
    Effect(
        key="timeouts.async", value=2000, base=other(), probe=longest_interval_of_polls,
        before=30, after=2,
    ),
    Effect(
        key="retryAttempts", value=0, base=other(), probe=tries_of_a_send, before=3, after=1,
    ),
)  # fmt: skip


@pytest.mark.parametrize(("effect", "via"), cases(EFFECTS), ids=case_ids(EFFECTS))
async def test_setting_has_its_effect(
    effect: Effect, via: Via, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Two settings files, or one and a variable: the calls differ as the table says."""
    assert await effect.probe(without_effect(tmp_path / "before", effect)) == effect.before
    assert await effect.probe(with_effect(tmp_path / "after", effect, via)) == effect.after
