"""``a2a-trio`` as a process: a real server, real signals, exit codes, and what is shown."""

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.conftest import PATIENCE, CommandLine


class Process:
    """``a2a-trio serve`` with its address."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.announced = process.stdout.readline()
        self.url = self.announced.split()[-1] if self.announced else ""

    def stop(self, number: signal.Signals) -> str:
        """Send a signal, wait for the end, return standard error."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=PATIENCE)[1]


@contextmanager
def process_of(*words: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Process]:
    """Run ``a2a-trio serve`` with these options in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "a2a_trio", "serve", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    )
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        yield Process(process)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


@pytest.fixture
def server(tmp_path: Path, environment: Mapping[str, str]) -> Iterator[Process]:
    """Return a server in a process of its own."""
    with process_of(folder=tmp_path, environment=environment) as process:
        yield process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_signals_end_the_process_cleanly(server: Process, number: signal.Signals) -> None:
    """Exit code 0, a word about it, and no traceback."""
    rest = server.stop(number)

    assert server.process.returncode == 0
    assert "stopping; once more to stop at once\n" in rest
    assert "Traceback" not in rest


STUBBORN = """
import trio

async def agent(task):
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_one_signal_ends_a_process_whose_agent_shields_itself(
    tmp_path: Path, a2a: CommandLine, environment: Mapping[str, str], number: signal.Signals
) -> None:
    """It is said why, the exit code tells, and the end of the task is in its transcript."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "settings.json").write_text(
        '{"a2a": {"server": {"drainGraceSec": 0, "cancelGraceSec": 0}}}'
    )
    words = ("--agent", "stubborn:agent")
    with process_of(*words, folder=tmp_path, environment=environment) as server:
        task_id = a2a("send", server.url, "--detach", "work").stdout.strip()
        rest = server.stop(number)
        code = server.process.returncode

    assert code == 130
    assert rest.endswith("warning: 1 task will not stop; ending the process\n")
    assert "Traceback" not in rest
    (transcript,) = (home / "a2a_sessions").iterdir()
    assert task_id in transcript.name
    said, end = map(json.loads, transcript.read_text().splitlines()[-2:])
    assert (said["state"], said["parts"]) == ("failed", [{"text": "server stopped"}])
    assert (end["type"], end["state"]) == ("end", "failed")


def listening_addresses(pid: int) -> set[str]:
    """Return the IPv4 and IPv6 addresses, as the kernel writes them, that a process listens on."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        target = str(entry.readlink())
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and fields[9] in inodes:
                found.add(fields[1])
    return found


LISTEN = "0A"


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="asks the kernel of Linux")
@pytest.mark.parametrize(
    ("words", "warned", "address"),
    [
        (("--host", "0.0.0.0"), True, "0100007F"),
        (("--host", "0.0.0.0", "--token", "s" * 20), False, "00000000"),
        (("--host", "127.0.0.1"), False, "0100007F"),
    ],
    ids=["no token", "token", "loopback"],
)
def test_without_a_token_only_loopback_is_bound_and_that_is_said(
    tmp_path: Path,
    environment: Mapping[str, str],
    *,
    words: tuple[str, ...],
    warned: bool,
    address: str,
) -> None:
    """What is printed and what the kernel listens on are the same thing."""
    with process_of(*words, folder=tmp_path, environment=environment) as server:
        bound = listening_addresses(server.process.pid)
        shown = server.announced + server.stop(signal.SIGTERM)

    port = urlsplit(server.url).port
    assert bound == {f"{address}:{port:04X}"}
    said = "warning: no token is set: binding 127.0.0.1 instead of 0.0.0.0\n"
    assert (said in shown) is warned
    if warned:
        assert urlsplit(server.url).hostname == "127.0.0.1"


def test_every_client_command_works_on_a_real_server(server: Process, a2a: CommandLine) -> None:
    """Discover, send, stream, detach, status, tasks, cancel: one after the other."""
    url = server.url

    assert a2a("discover", url).returncode == 0
    assert a2a("send", url, "hello").stdout == "hello\n"
    assert a2a("send", url, "-", stdin="from stdin\n").stdout == "from stdin\n"
    streamed = a2a("send", url, "--stream", "--json", "hello").stdout.splitlines()
    assert "task" in json.loads(streamed[0])
    assert "statusUpdate" in json.loads(streamed[-1])
    task_id = a2a("send", url, "--detach", "hello").stdout.strip()
    waited = a2a("status", url, task_id, "--wait", "60", "--json")
    assert json.loads(waited.stdout)["status"]["state"] == "TASK_STATE_COMPLETED"
    listed = a2a("tasks", url, "--all", "--json").stdout.splitlines()
    assert task_id in {json.loads(line)["id"] for line in listed}
    refused = a2a("cancel", url, task_id)
    assert refused.returncode == 4
    assert "canceled" in refused.stderr


def test_a_closed_pipe_after_a_real_call_is_quiet(
    server: Process, environment: Mapping[str, str], tmp_path: Path
) -> None:
    """``a2a-trio send ... | true`` prints no traceback."""
    done = subprocess.run(
        [  # noqa: S607 - whichever bash there is
            "bash",
            "-c",
            f'{sys.executable} -m a2a_trio send {server.url} --json hello | true; echo "${{PIPESTATUS[0]}}"',
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=PATIENCE,
        check=True,
    )

    # Whether the reader was gone before the one line was written is up to the system.
    assert done.stdout.strip() in {"0", "141"}
    assert done.stderr == ""


def test_interrupted_client_command_ends_with_130(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Ctrl-C on a command that waits for a peer: no traceback, exit code 130."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-m", "a2a_trio", "send", f"http://127.0.0.1:{port}", "hello"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            # httpx leaves a generator behind when a call is cancelled, which Python says nothing
            # about unless it is asked to.
            env={**environment, "PYTHONWARNINGS": "default::DeprecationWarning"},
        )
        silent.settimeout(PATIENCE)
        connection, _ = silent.accept()
        with connection:
            connection.settimeout(PATIENCE)
            assert connection.recv(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out, err) == (130, "", "")


def test_unreachable_peer_is_3(a2a: CommandLine) -> None:
    """Nothing listens there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = a2a("discover", f"http://127.0.0.1:{port}")

    assert done.returncode == 3
    assert done.stdout == ""
    assert f"http://127.0.0.1:{port}" in done.stderr


def test_timeout_of_the_command_line_is_3(a2a: CommandLine) -> None:
    """A peer that never answers is given up after --timeout seconds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        done = a2a("send", f"http://127.0.0.1:{port}", "hello", "--timeout", "0.2")

    assert done.returncode == 3
    assert "0.2 s" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("serve", "--agent", "nothing"), "module:attribute"),
        (("serve", "--agent", "no.such.module:agent"), "no module named"),
        (("serve", "--workspace", "missing"), "not a folder"),
        (("serve", "--token", ""), "the token is empty"),
        (("send", "nobody", "hello"), "neither a URL"),
        (("send", "ftp://127.0.0.1", "hello"), "http"),
        (("send", "http://127.0.0.1:9", ""), "nothing to send"),
        (("send", "http://127.0.0.1:9", "hi", "--token", "a b"), "visible ASCII"),
        (("send", "http://127.0.0.1:9", "hi", "--token-file", "missing"), "No such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_2(a2a: CommandLine, words: tuple[str, ...], text: str) -> None:
    """Before anything is sent or served, the mistake is named."""
    done = a2a(*words)

    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_token_opens_the_server_and_is_never_shown(
    a2a: CommandLine, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    """By file, by variable, by option: the same answer, and the token in no output."""
    token = "correct-horse-battery-staple"
    (tmp_path / "token").write_text(token + "\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "a2a_trio", "serve", "--port", "0", "--token-file", "token"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    server = Process(process)
    try:
        without = a2a("send", server.url, "hello")
        wrong = a2a("send", server.url, "hello", "--token", "wrong-token")
        results = [
            a2a("send", server.url, "hello", "--token-file", "token"),
            a2a("send", server.url, "hello", "--token", token),
            a2a("send", server.url, "hello", env={"A2A_BEARER_TOKEN": token}),
        ]
    finally:
        rest = server.stop(signal.SIGTERM)

    assert (without.returncode, wrong.returncode) == (4, 4)
    assert [done.stdout for done in results] == ["hello\n"] * 3
    shown = rest + server.announced + "".join(done.stdout + done.stderr for done in results)
    assert token not in shown + without.stderr + wrong.stderr
    assert "wrong-token" not in wrong.stderr


def test_demo_shows_everything(a2a: CommandLine, tmp_path: Path) -> None:
    """It ends with 0, tells every step, and leaves nothing behind."""
    done = a2a("demo")

    assert done.returncode == 0
    steps = [line.split()[0] for line in done.stdout.splitlines()]
    assert steps == [
        *("serve", "discover", "send", "stream", "detach", "poll", "detach", "cancel", "stop")
    ]
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_demo_as_json(a2a: CommandLine) -> None:
    """One object per step."""
    lines = a2a("demo", "--json").stdout.splitlines()

    assert [json.loads(line)["step"] for line in lines][-1] == "stop"
