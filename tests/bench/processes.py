"""Server processes of the benchmarks: started on a leash, asked one line at a time."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

import attrs

_BENCH: Final = Path(__file__).parent
OURS: Final = _BENCH / "our_server.py"
SDK: Final = _BENCH.parent / "interop" / "sdk_server.py"
LOAD: Final = _BENCH / "load.py"


@final
@attrs.frozen
class ServerProcess:
    """A server that runs in a process of its own."""

    url: str
    _process: subprocess.Popen[bytes]

    def cpu_seconds(self) -> float:
        """Return the processor time that the process has used, in both modes (Linux)."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def gauges(self) -> dict[str, int]:
        """Ask for the gauges; only ``our_server`` answers."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(b"\n")
        stdin.flush()
        answer: dict[str, int] = json.loads(stdout.readline())
        return answer


@contextmanager
def server(script: Path) -> Iterator[ServerProcess]:
    """Run a server script; it ends when the block does, since its standard input is closed."""
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{script.name} ended before it listened; its error output says why")
        yield ServerProcess(json.loads(line)["url"], process)


def load(url: str, *, connections: int, seconds: float) -> dict[str, float]:
    """Run the load generator in a process of its own and return its summary."""
    done = subprocess.run(
        [sys.executable, str(LOAD), url, f"--connections={connections}", f"--seconds={seconds}"],
        stdout=subprocess.PIPE,
        check=True,
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result
