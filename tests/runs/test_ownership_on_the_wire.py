# ruff: noqa: ARG001 - a test asks for the virtual clock by naming its fixture
"""With tokens, nobody can see, cancel, answer or subscribe to another caller's task, in any dialect."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
import trio

from a2a_trio import ServerSettings, Settings
from a2a_trio.config.load import load_settings
from a2a_trio.errors import TaskNotFoundError
from a2a_trio.testing.in_process import InProcessServer, open_in_process
from a2a_trio.testing.scripted import scripted
from a2a_trio.testing.transport import EndpointTransport
from a2a_trio.wire.methods import METHODS, Operation

TOKENS = "alice:alice-token-123456,bob:bob-token-123456"
VERSIONS: tuple[Mapping[str, str], ...] = ({}, {"A2A-Version": "1.0"}, {"A2A-Version": "0.3"})
NAMES = [
    (method.operation, name)
    for method in METHODS
    for name in (method.operation.value, *method.aliases)
    if name and method.operation is not Operation.GET_EXTENDED_CARD
]


def settings() -> Settings:
    """Return what the environment of an operator with two peers gives."""
    return load_settings(environ={"A2A_PEER_TOKENS": TOKENS}).settings


async def call(
    server: InProcessServer, who: str, method: str, params: object, headers: Mapping[str, str]
) -> tuple[int, str]:
    """Return the status and the whole body of a call."""
    transport = EndpointTransport(server.assembly.endpoint.handle)
    async with httpx.AsyncClient(transport=transport) as client:
        answer = await client.post(
            server.url,
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            headers={"Authorization": f"Bearer {who}-token-123456", **headers},
        )
        return answer.status_code, answer.text


def params_of(operation: Operation, task_id: str, context_id: str) -> dict[str, Any]:
    """Return parameters that name the task in every member an operation might look at."""
    if operation in {Operation.SEND_MESSAGE, Operation.SEND_STREAMING_MESSAGE}:
        return {
            "message": {
                "messageId": "m",
                "kind": "message",
                "role": "user",
                "taskId": task_id,
                "contextId": context_id,
                "parts": [{"kind": "text", "text": "let me in"}],
            }
        }
    if operation is Operation.LIST_TASKS:
        return {"contextId": context_id}
    return {
        "id": task_id,
        "taskId": task_id,
        "url": "https://example.com/",
        "pushNotificationConfig": {"url": "https://example.com/"},
        "pushNotificationConfigId": task_id,
    }


@pytest.mark.parametrize("version", VERSIONS, ids=["no version", "1.0", "0.3"])
@pytest.mark.parametrize(("operation", "name"), NAMES, ids=[name for _, name in NAMES])
async def test_bob_cannot_reach_a_task_of_alice(
    autojump_clock: trio.testing.MockClock,
    operation: Operation,
    name: str,
    version: Mapping[str, str],
) -> None:
    async with open_in_process(scripted, settings()) as server:
        alice = server.calls("alice")
        parked = await alice.send_for_task("ask")
        working = await alice.send_for_task("hang", detached=True)
        for task in (parked, working):
            status, body = await call(
                server, "bob", name, params_of(operation, task.id, task.context_id), version
            )
            assert status == 200
            if operation is Operation.LIST_TASKS and "error" not in body:
                assert task.id not in body
                continue
            assert '"error"' in body
            assert "WORKING" not in body
            assert "input-required" not in body
        assert (await alice.get(parked.id)).state is parked.state
        assert (await alice.get(working.id)).state is working.state
        assert server.engine.statistics().subscribers == 0


@pytest.mark.parametrize("name", ["GetTask", "tasks/get", "CancelTask", "tasks/cancel"])
async def test_a_foreign_task_and_a_missing_one_look_the_same(
    autojump_clock: trio.testing.MockClock, name: str
) -> None:
    async with open_in_process(scripted, settings()) as server:
        task = await server.calls("alice").send_for_task("hang", detached=True)
        foreign = await call(server, "bob", name, {"id": task.id}, {})
        missing = await call(server, "bob", name, {"id": "no-such-task"}, {})
        mine = await call(server, "alice", name, {"id": task.id}, {})

    assert foreign == missing
    assert str(TaskNotFoundError().code) in foreign[1]
    assert "error" not in mine[1]


async def test_an_asserted_name_opens_nothing(autojump_clock: trio.testing.MockClock) -> None:
    shared = Settings(
        server=ServerSettings(
            shared_token="shared-token-123456", peer_tokens={"alice": ("alice-token-123456",)}
        )
    )
    async with open_in_process(scripted, shared) as server:
        task = await server.calls("alice").send_for_task("hang", detached=True)
        _, body = await call(
            server, "shared", "GetTask", {"id": task.id}, {"X-A2A-Identity": "alice"}
        )
        assert str(TaskNotFoundError().code) in body
        status, _ = await call(
            server, "wrong", "GetTask", {"id": task.id}, {"X-A2A-Identity": "alice"}
        )
        assert status == 401
