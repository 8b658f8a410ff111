"""The ASGI application: its records, while its services are open."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from a2a_trio import ServerSettings, Settings, create_app, echo

BODY: Final = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {
            "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
        },
    }
).encode()


async def send(app: Any) -> str:
    """Send a message as an ASGI server passes it on, and return the state of its task."""
    put, receive = trio.open_memory_channel[Any](1)
    put.send_nowait({"type": "http.request", "body": BODY, "more_body": False})
    sent: list[dict[str, Any]] = []

    async def take(event: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(event)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8000"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8000),
        "extensions": {},
        "state": {},
        "asgi": {"version": "3.0", "spec_version": "2.1"},
    }
    await app(scope, receive.receive, take)
    body = json.loads(b"".join(event.get("body", b"") for event in sent[1:]))
    return str(body["result"]["task"]["status"]["state"])


def audited(home: Path) -> list[str]:
    lines = (home / "a2a_audit.jsonl").read_text().splitlines()
    return [json.loads(line)["method"] for line in lines]


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("transcripts", [True, False])
async def test_application_keeps_its_records(tmp_path: Path, *, transcripts: bool) -> None:
    """In the state folder, like every other server; opened and closed with the services."""
    settings = Settings(server=ServerSettings(child_transcripts=transcripts))
    app: Any = create_app(echo, settings, home=tmp_path)
    for _ in range(2):
        async with app.agent.services():
            assert await send(app) == "TASK_STATE_COMPLETED"
    assert audited(tmp_path) == ["SendMessage"] * 4
    assert len(files(tmp_path / "a2a_sessions")) == (2 if transcripts else 0)


async def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither here nor in the state folder of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("A2A_HOME", str(tmp_path / "home"))
    app: Any = create_app(echo)
    async with app.agent.services():
        assert await send(app) == "TASK_STATE_COMPLETED"
    assert files(tmp_path) == []
