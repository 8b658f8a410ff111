"""``serve``: announce, stop on the first signal, end on the second."""

import io
import signal
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import MockClock

from a2a_trio import ServerSettings, Settings, TaskContext, echo, open_client
from a2a_trio.agents.contract import Agent
from a2a_trio.cli.console import Console
from a2a_trio.cli.exits import ExitCode, UsageError
from a2a_trio.cli.serve import AT_ONCE_SEC, STOP_SLACK_SEC, Serving, patience, serve_until
from a2a_trio.peer.finding import LEAVE_SEC
from a2a_trio.peer.serving import HTTP_GRACE_SEC
from a2a_trio.wire.model import TaskState
from tests.cli.conftest import PATIENCE


def _serving(home: Path, agent: object = echo, *, port: int = 0) -> Serving:
    settings = Settings(server=ServerSettings(port=port, port_fallback=0, agent_name="test"))
    assert callable(agent)
    return Serving(agent=agent, name="test", settings=settings, home=home)


def stubborn_until(release: trio.Event) -> Agent:
    """Return an agent that nothing but the event can end."""

    async def stubborn(_task: TaskContext) -> None:
        with trio.CancelScope(shield=True):
            await release.wait()

    return stubborn


async def tidy(_task: TaskContext) -> None:
    """Work for ever, and take four seconds to clean up."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(4)


class Announcement(io.StringIO):
    """A standard output that tells when something was said."""

    def __init__(self) -> None:
        super().__init__()
        self._said = trio.Event()

    def write(self, text: str) -> int:
        self._said.set()
        return super().write(text)

    async def address(self) -> str:
        """Wait until the server has said where it is."""
        await self._said.wait()
        return self.getvalue().split()[-1]


@attrs.frozen
class Operator:
    """Who starts a server, reads what it says, and presses Ctrl-C."""

    out: Announcement
    err: io.StringIO
    console: Console


@pytest.fixture
def operator() -> Operator:
    """Return an operator in front of a console."""
    out, err = Announcement(), io.StringIO()
    return Operator(out, err, Console(out=out, err=err))


async def test_first_signal_stops_cleanly(operator: Operator, tmp_path: Path) -> None:
    """The server is announced, serves, and is drained."""
    send, signals = trio.open_memory_channel[int](2)
    codes: list[ExitCode] = []

    async def run() -> None:
        codes.append(await serve_until(signals, _serving(tmp_path), operator.console))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            url = await operator.out.address()
            async with open_client(url) as client:
                reply = await client.send("hello")
            await send.send(signal.SIGTERM)

    assert codes == [ExitCode.OK]
    assert reply.text == "hello"
    assert operator.out.getvalue() == f"serving test at {url}\n"
    assert operator.err.getvalue() == (
        f"card at {url}/.well-known/agent-card.json; Ctrl-C stops\nstopping; once more to stop at once\n"
    )


async def test_second_signal_does_not_wait(operator: Operator, tmp_path: Path) -> None:
    """An agent that works on does not hold the process; the exit code tells."""
    send, signals = trio.open_memory_channel[int](2)
    codes: list[ExitCode] = []
    ended: list[int] = []

    async def endless(_task: TaskContext) -> None:
        await trio.sleep_forever()

    serving = _serving(tmp_path, endless)

    async def run() -> None:
        codes.append(await serve_until(signals, serving, operator.console, ended.append))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            async with open_client(await operator.out.address()) as client:
                task = await client.send_detached("work")
            await send.send(signal.SIGINT)
            await send.send(signal.SIGINT)

    assert task.state is TaskState.WORKING
    assert codes == [ExitCode.INTERRUPTED]
    assert ended == []


async def test_agent_that_will_not_let_go_ends_with_the_process(
    operator: Operator, tmp_path: Path
) -> None:
    """After the second signal nothing can hold the process, not even a shield."""
    send, signals = trio.open_memory_channel[int](2)
    release = trio.Event()
    ended: list[int] = []
    serving = _serving(tmp_path, stubborn_until(release))

    def end_process(code: int) -> None:
        ended.append(code)
        release.set()

    async def run() -> None:
        await serve_until(signals, serving, operator.console, end_process)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            async with open_client(await operator.out.address()) as client:
                await client.send_detached("work")
            await send.send(signal.SIGINT)
            await send.send(signal.SIGINT)

    assert ended == [ExitCode.INTERRUPTED]


async def test_one_signal_is_enough_for_an_agent_that_will_not_let_go(
    operator: Operator, tmp_path: Path, mock_clock: MockClock
) -> None:
    """After every grace the stuck tasks are counted and the process ends; no second signal comes."""
    send, signals = trio.open_memory_channel[int](2)
    release = trio.Event()
    ended: list[tuple[int, float]] = []
    serving = _serving(tmp_path, stubborn_until(release))

    def end_process(code: int) -> None:
        ended.append((code, trio.current_time()))
        release.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_until, signals, serving, operator.console, end_process)
        async with open_client(await operator.out.address()) as client:
            await client.send_detached("work")
            await client.send_detached("work")
        began = trio.current_time()
        await send.send(signal.SIGTERM)
        mock_clock.autojump_threshold = 0

    graces = 1 + 5 + HTTP_GRACE_SEC + LEAVE_SEC + STOP_SLACK_SEC
    assert patience(serving.settings) == graces
    ((code, at),) = ended
    assert code == ExitCode.INTERRUPTED
    assert at == pytest.approx(began + graces + AT_ONCE_SEC)
    assert operator.err.getvalue().endswith("warning: 2 tasks will not stop; ending the process\n")


async def test_an_agent_that_lets_go_within_the_graces_is_waited_for(
    operator: Operator, tmp_path: Path, mock_clock: MockClock
) -> None:
    """A shield that ends in time is no reason for force: a clean stop, without a warning."""
    send, signals = trio.open_memory_channel[int](2)
    codes: list[ExitCode] = []
    ended: list[int] = []
    serving = _serving(tmp_path, tidy)

    async def run() -> None:
        codes.append(await serve_until(signals, serving, operator.console, ended.append))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        async with open_client(await operator.out.address()) as client:
            await client.send_detached("work")
        await send.send(signal.SIGTERM)
        mock_clock.autojump_threshold = 0

    assert (codes, ended) == ([ExitCode.OK], [])
    assert "warning" not in operator.err.getvalue()


async def test_an_address_that_cannot_be_bound_is_a_usage_error(
    operator: Operator, tmp_path: Path
) -> None:
    """The text names what was wanted."""
    settings = Settings(server=ServerSettings(host="256.0.0.1", shared_token="s" * 20))
    serving = Serving(agent=echo, name="echo", settings=settings, home=tmp_path)
    _, signals = trio.open_memory_channel[int](0)

    wanted = pytest.RaisesExc(UsageError, match=r"^cannot serve on 256\.0\.0\.1:9910: ")
    with pytest.RaisesGroup(wanted):
        await serve_until(signals, serving, operator.console)
