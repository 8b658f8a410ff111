"""The two foreign programs, and the agent that our own side runs against them."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
import trio

from a2a_trio import Message, Part, Role, Settings, TaskContext, serve
from a2a_trio.config.server_schema import ServerSettings
from a2a_trio.wire.model import JsonValue

_HERE = Path(__file__).parent


def _require_sdk() -> None:
    if importlib.util.find_spec("a2a") is None or importlib.util.find_spec("uvicorn") is None:
        pytest.fail("the official a2a-sdk is not installed: pip install -e '.[test]'")


async def scripted_agent(task: TaskContext) -> str | Message | None:
    """Do what the text says, as the SDK's executor in ``sdk_server`` does."""
    match task.raw_text:
        case "slow":
            await task.update("working on it")
            await trio.sleep_forever()
        case "ask":
            answer = await task.ask("Which branch?")
            return f"answered: {answer.text}"
        case "fail":
            await task.fail("it broke")
        case "reject":
            await task.reject("not my job")
        case "raise":
            raise RuntimeError("the agent broke")
        case "message":
            return Message(
                message_id="direct", role=Role.AGENT, parts=(Part(text="echo: message"),)
            )
        case "chunks":
            await task.artifact("report", "one ", name="Report")
            await task.artifact("report", "two ", append=True)
            await task.artifact("report", "three", append=True, last=True)
            await task.artifact("extra", "second", last=True)
        case text:
            return f"echo: {text}"
    return None


@contextmanager
def _sdk_server(*arguments: str) -> Iterator[str]:
    _require_sdk()
    # Standard input is the leash: the server ends when we close it, or die.
    with subprocess.Popen(
        [sys.executable, str(_HERE / "sdk_server.py"), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the SDK server ended before it listened; see its error output"
        yield json.loads(line)["url"]


@pytest.fixture(scope="session")
def sdk_server() -> Iterator[str]:
    """URL of an SDK server that speaks v1.0 only."""
    with _sdk_server() as url:
        yield url


@pytest.fixture(scope="session")
def sdk_server_v03() -> Iterator[str]:
    """URL of an SDK server in its compatibility mode, whose card names v0.3 only."""
    with _sdk_server("--compat", "--declare", "0.3") as url:
        yield url


@pytest.fixture(scope="session")
def sdk_server_both() -> Iterator[str]:
    """URL of an SDK server in its compatibility mode, whose card names v1.0 only."""
    with _sdk_server("--compat", "--declare", "1.0") as url:
        yield url


async def _observe(settings: Settings, *arguments: str) -> dict[str, JsonValue]:
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve, scripted_agent, settings)
        with trio.fail_after(120):
            done = await trio.run_process(
                [sys.executable, str(_HERE / "sdk_client.py"), server.url, *arguments],
                capture_stdout=True,
            )
        nursery.cancel_scope.cancel()
    report: dict[str, JsonValue] = json.loads(done.stdout)
    return report


@pytest.fixture(scope="session")
def interop_settings() -> Settings:
    """An ephemeral loopback port, and no rate limit that a test run could reach."""
    server = ServerSettings(
        port=0, max_concurrent=100, rate_limit_per_min=1_000_000, flood_limit_per_min=1_000_000
    )
    return Settings(server=server)


@pytest.fixture(scope="session")
def seen_by_sdk(interop_settings: Settings) -> dict[str, JsonValue]:
    """What the SDK's v1.0 client saw of our server."""
    _require_sdk()
    return trio.run(_observe, interop_settings)


@pytest.fixture(scope="session")
def seen_by_sdk_v03(interop_settings: Settings) -> dict[str, JsonValue]:
    """What the SDK's v0.3 client saw of our server."""
    _require_sdk()
    return trio.run(_observe, interop_settings, "--protocol", "0.3")


@pytest.fixture(scope="session")
def seen_with_token(interop_settings: Settings) -> dict[str, JsonValue]:
    """What the SDK's client saw of our server when both knew a token."""
    _require_sdk()
    server = attrs.evolve(interop_settings.server, shared_token="token-of-the-tests")
    settings = attrs.evolve(interop_settings, server=server)
    return trio.run(_observe, settings, "--token", server.shared_token)
