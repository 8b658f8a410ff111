"""The agent contract and the agents that come with the package."""

from a2a_trio.agents.built_in import echo
from a2a_trio.agents.contract import (
    Agent,
    AgentResult,
    Content,
    InputRequired,
    TaskContext,
)
from a2a_trio.agents.load import load_agent

__all__ = [
    "Agent",
    "AgentResult",
    "Content",
    "InputRequired",
    "TaskContext",
    "echo",
    "load_agent",
]
