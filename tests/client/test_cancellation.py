# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""Cancelling a call at any checkpoint gives everything back and leaves the client usable."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio.client.client import Client, open_client
from a2a_trio.client.options import ClientOptions
from a2a_trio.testing.fake_peer import (
    Break,
    Event,
    FakePeer,
    HttpAnswer,
    Pause,
    Result,
    Stream,
    Unreachable,
)
from a2a_trio.wire.extensions import REPLAY_EXTENSION
from a2a_trio.wire.model import TaskState

WORKING = TaskState.WORKING
Act: TypeAlias = Callable[[Client], Awaitable[None]]


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope when a task has made so many steps."""

    def __init__(self, task: trio.lowlevel.Task, scope: trio.CancelScope, steps: int) -> None:
        self._task = task
        self._scope = scope
        self._left = steps

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


async def cancelled_at(step: int, act: Act, client: Client) -> bool:
    """Run something, cancel it after so many steps, and tell whether that came in time."""
    with trio.CancelScope() as scope:
        instrument = CancelAtStep(trio.lowlevel.current_task(), scope, step)
        trio.lowlevel.add_instrument(instrument)
        try:
            await act(client)
        finally:
            trio.lowlevel.remove_instrument(instrument)
    return scope.cancelled_caught


async def send(client: Client) -> None:
    assert (await client.send("hi")).text == "done"


async def card(client: Client) -> None:
    await client.card()


async def stream(client: Client) -> None:
    async with client.stream("hi") as events:
        async for _ in events:
            pass
    assert events.task is not None
    assert events.task.text == "Hello"


async def stream_left_early(client: Client) -> None:
    async with client.stream("hi") as events:
        await anext(events)


async def wait(client: Client) -> None:
    assert (await client.wait("t1")).text == "done"


ACTS: list[Act] = [send, card, stream, stream_left_early, wait]


def scripted(values: Any) -> FakePeer:
    """A peer with which every call needs a repeat, and every stream breaks once."""
    peer = FakePeer(values.card(extensions=(REPLAY_EXTENSION,)))
    peer.answers("SendMessage", Unreachable(), Result(values.task(), delay=1))
    peer.answers(
        "SendStreamingMessage",
        Stream(
            Event(values.task(WORKING, ""), "1"),
            Pause(1),
            Event(values.chunk("Hel"), "2"),
            Break(),
        ),
    )
    peer.answers(
        "SubscribeToTask",
        HttpAnswer(status=503),
        Stream(
            Event(values.chunk("lo"), "3"), Pause(1), Event(values.status(TaskState.COMPLETED), "4")
        ),
    )
    peer.answers("GetTask", Result(values.task(WORKING, "")), Result(values.task()))
    return peer


@pytest.mark.parametrize("act", ACTS, ids=[act.__name__ for act in ACTS])
async def test_cancel_at_every_checkpoint(
    act: Act, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """Step by step: the call is cancelled there, nothing is leaked, the next call works."""
    narrow = attrs.evolve(options, max_connections=2)
    step = 0
    while True:
        step += 1
        peer = scripted(values)
        async with open_client(peer.url, options=narrow, transport=peer.transport) as client:
            in_time = await cancelled_at(step, act, client)
            assert peer.open_bodies == 0, f"a connection is still open after step {step}"
            for _ in range(3):  # more often than there are connections
                await send(client)
            await stream(client)
            assert peer.open_bodies == 0
        if not in_time:
            break
    assert step > 3, "nothing was cancelled"


@pytest.mark.parametrize("act", ACTS, ids=[act.__name__ for act in ACTS])
async def test_a_group_never_escapes(
    act: Act, values: Any, options: ClientOptions, autojump_clock: MockClock
) -> None:
    """A deadline around the whole client passes through it as a deadline and nothing else."""
    for tenths in range(1, 30):
        peer = scripted(values)
        with trio.move_on_after(tenths / 10):
            async with open_client(peer.url, options=options, transport=peer.transport) as client:
                await act(client)
        assert peer.open_bodies == 0
