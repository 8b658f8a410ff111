"""Shared values of the client's tests: tasks, cards, options that retry quickly."""

import attrs
import pytest

from a2a_trio.client.options import ClientOptions
from a2a_trio.wire.agent_card import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
)
from a2a_trio.wire.model import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

URL = "http://peer.test"


@attrs.frozen
class Values:
    """Builders of the values that nearly every test needs."""

    url: str = URL

    def task(
        self, state: TaskState = TaskState.COMPLETED, text: str = "done", task_id: str = "t1"
    ) -> Task:
        artifacts = (Artifact(artifact_id="a", parts=(Part(text=text),)),) if text else ()
        return Task(
            id=task_id, context_id="c1", status=TaskStatus(state=state), artifacts=artifacts
        )

    def message(self, text: str = "hello", context_id: str = "c1") -> Message:
        return Message(
            message_id="m1", role=Role.AGENT, parts=(Part(text=text),), context_id=context_id
        )

    def status(
        self, state: TaskState, text: str = "", task_id: str = "t1"
    ) -> TaskStatusUpdateEvent:
        said = self.message(text) if text else None
        return TaskStatusUpdateEvent(
            task_id=task_id, context_id="c1", status=TaskStatus(state=state, message=said)
        )

    def chunk(
        self, text: str, *, append: bool = True, last: bool = False, artifact_id: str = "a"
    ) -> TaskArtifactUpdateEvent:
        return TaskArtifactUpdateEvent(
            task_id="t1",
            context_id="c1",
            artifact=Artifact(artifact_id=artifact_id, parts=(Part(text=text),)),
            append=append,
            last_chunk=last,
        )

    def card(
        self,
        *interfaces: tuple[str, str],
        streaming: bool = True,
        extensions: tuple[str, ...] = (),
        tenant: str = "",
        binding: str = "JSONRPC",
    ) -> AgentCard:
        """Return a card; each interface is a URL and a version."""
        return AgentCard(
            name="peer",
            description="",
            version="1",
            supported_interfaces=tuple(
                AgentInterface(
                    url=url, protocol_binding=binding, protocol_version=version, tenant=tenant
                )
                for url, version in interfaces or ((URL + "/rpc", "1.0"),)
            ),
            capabilities=AgentCapabilities(
                streaming=streaming,
                extensions=tuple(AgentExtension(uri=uri) for uri in extensions),
            ),
            default_input_modes=("text/plain",),
            default_output_modes=("text/plain",),
            skills=(),
        )


@pytest.fixture(scope="session")
def values() -> Values:
    return Values()


@pytest.fixture(scope="session")
def options() -> ClientOptions:
    """Two retries, a minute for everything: virtual time, so nobody waits for it."""
    return ClientOptions(
        send_timeout=60, call_timeout=20, stream_idle_timeout=30, retry_attempts=2, retry_base=1
    )
