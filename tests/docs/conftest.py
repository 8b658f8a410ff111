"""Reading the documentation: pages, fenced blocks, and a folder to run their examples in.

A console block is a terminal session: lines that begin with ``$`` are run by bash, the lines below
one are what it prints, where ``...`` stands for anything. Comments that readers do not see say
what else a block is:

``<!-- file: agent.py -->``   the block is a file that later commands of the page use
``<!-- background -->``       the command goes on until the end of the page (a server)
``<!-- prints -->``           the text block below is what the Python block above prints
"""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

import attrs
import pytest

ROOT: Final = Path(__file__).parents[2]

PATIENCE: Final = 180
"""Seconds after which an example that hangs is given up; no test passes or fails by speed."""

_DIRECTIVE: Final = re.compile(r"^<!-- (?P<word>file|background|prints)(?:: (?P<value>\S+))? -->$")
_ADDRESS: Final = re.compile(r"127\.0\.0\.1:(\d+)")


def pages() -> list[Path]:
    """Return every page of the documentation, the README first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@attrs.frozen(kw_only=True)
class Block:
    """One fenced block and what its comment says about it."""

    language: str
    text: str
    line: int
    directives: Mapping[str, str]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    directives: dict[str, str] = {}
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        found = _DIRECTIVE.match(line)
        if found:
            directives[found["word"]] = found["value"] or ""
        elif line.lstrip().startswith("```"):
            indent = len(line) - len(line.lstrip())
            inside = []
            for _, body in lines:
                if body.strip() == "```":
                    break
                inside.append(body[indent:])
            yield Block(
                language=line.strip().removeprefix("```"),
                text="\n".join(inside) + "\n",
                line=number,
                directives=directives,
            )
            directives = {}
        elif line:
            assert not directives, f"{page}:{number}: a comment without a block"


@attrs.frozen
class Step:
    """One command of a console block and what it is said to print."""

    command: str
    expected: str


def steps(text: str) -> list[Step]:
    """Return the commands of a console block; a line that begins with ``>`` continues one."""
    found: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            found[-1][1].append(line + "\n")
    return [Step("\n".join(command), "".join(output)) for command, output in found]


def pattern_of(expected: str) -> "re.Pattern[str]":
    """Return a pattern of the printed text, where ``...`` stands for anything."""
    return re.compile(".*?".join(map(re.escape, expected.split("..."))), re.DOTALL)


@attrs.define
class Server:
    """A process that runs until the end of the page."""

    process: "subprocess.Popen[str]"
    output: str = ""

    def read_until(self, pattern: "re.Pattern[str]") -> bool:
        """Collect output until it matches; False if the process ends first."""
        watchdog = threading.Timer(PATIENCE, self.process.kill)
        watchdog.start()
        try:
            for line in _out(self.process):
                self.output += line
                if pattern.search(self.output):
                    return True
            return False
        finally:
            watchdog.cancel()

    def stop(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            rest, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.output += rest
        return self.process.returncode


def _out(process: "subprocess.Popen[str]") -> IO[str]:
    assert process.stdout is not None
    return process.stdout


_PYTHON: Final = f"""#!/bin/bash
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin" && ln -s {{bin}}/* "$3/bin/"
else
    exec {sys.executable} "$@"
fi
"""

_PIP: Final = f"""#!/bin/bash
# Stands for the download only: what is named must exist, the packages are already there.
exec {sys.executable} - "$@" <<'END'
import re, sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
_, *words = sys.argv
assert words[0] == "install", words
what = [word for word in words[1:] if not word.startswith("-")]
name, extra = re.fullmatch(r"([.]|a2a-trio)(?:\\[(\\w+)\\])?", what[0]).groups()
assert len(what) == 1 and (extra is None or extra in project["optional-dependencies"]), what
END
"""


@attrs.define
class Terminal:
    """A folder, an environment without this machine's user, and the servers of one page."""

    folder: Path
    environ: dict[str, str]
    servers: list[Server] = attrs.field(factory=list)
    ports: dict[str, str] = attrs.field(factory=dict)
    """Port in the text -> port that is really used."""

    def real(self, text: str) -> str:
        """Return a text with the ports that this page's servers really have."""
        return _ADDRESS.sub(lambda m: f"127.0.0.1:{self.ports.get(m[1], m[1])}", text)

    def write(self, name: str, text: str) -> None:
        """Write a file; a server that it tells its address gets a free port now."""
        for port in _ADDRESS.findall(text):
            if name.endswith(".py") and port not in self.ports:
                with socket.create_server(("127.0.0.1", 0)) as free:
                    self.ports[port] = str(free.getsockname()[1])
        (self.folder / name).write_text(self.real(text), encoding="utf-8")

    def run(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as typed, against the servers of this page."""
        return subprocess.run(
            ["/bin/bash", "-c", self.real(command)],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def shown(self, output: str) -> str:
        """Return what was printed as the page would show it."""
        written = {real: written for written, real in self.ports.items()}
        return _ADDRESS.sub(lambda m: f"127.0.0.1:{written.get(m[1], m[1])}", output)

    def start(self, step: Step) -> None:
        """Start a server on a free port and wait until it has printed what the page shows."""
        command = _ADDRESS.sub(lambda m: f"127.0.0.1:{self.ports.get(m[1], 0)}", step.command)
        command = re.sub(r"--port \d+", "--port 0", command)
        process = subprocess.Popen(
            ["/bin/bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        server = Server(process)
        self.servers.append(server)
        written = _ADDRESS.search(step.expected)
        assert written, "a background block shows the address that it listens on"
        pattern = pattern_of(step.expected).pattern
        anywhere = pattern.replace(re.escape(f":{written[1]}"), r":\d+")
        ready = server.read_until(re.compile(anywhere, re.DOTALL))
        assert ready, f"$ {step.command}\n{server.output}"
        real = _ADDRESS.search(server.output)
        assert real
        self.ports[written[1]] = real[1]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Return a terminal in a copy of the project; its servers are stopped by Ctrl-C."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    _script(binaries / "python", _PYTHON.replace("{bin}", str(binaries)))
    (binaries / "python3").symlink_to("python")
    _script(binaries / "pip", _PIP)
    for name, module in {"a2a-trio": "a2a_trio", "hypercorn": "hypercorn"}.items():
        _script(binaries / name, f'#!/bin/bash\nexec {sys.executable} -m {module} "$@"\n')
    folder = tmp_path / "work"
    folder.mkdir()
    for entry in ("a2a_trio", "tests", "docs", "fuzz", "pyproject.toml", "README.md"):
        (folder / entry).symlink_to(ROOT / entry)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("A2A_", "PYTEST_"))}
    environ = {
        **kept,
        "A2A_HOME": str(tmp_path / "home"),
        "A2A_PORT": "0",
        "HOME": str(tmp_path),
        "PATH": f"{binaries}{os.pathsep}{kept.get('PATH', '/usr/bin:/bin')}",
        # Running the whole suite inside itself would not end: one file stands for it.
        "PYTEST_ADDOPTS": "-q -p no:cacheprovider tests/cli/test_exits.py",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "error",
    }
    terminal = Terminal(folder, environ)
    yield terminal
    try:
        codes = [server.stop() for server in terminal.servers]
    finally:
        for server in terminal.servers:
            server.process.kill()
    outputs = "\n".join(server.output for server in terminal.servers)
    assert codes == [0] * len(codes), outputs


def _script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
