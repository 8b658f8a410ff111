"""The one gate that every operation on a task goes through."""

from a2a_trio.errors import TaskNotFoundError
from a2a_trio.rules.lifecycle import TaskRecord
from a2a_trio.server.calls import CallContext
from a2a_trio.server.runs import RunEngine
from a2a_trio.server.store import TaskStore

__all__ = ["owned"]


async def owned(
    store: TaskStore, engine: RunEngine, task_id: str, context: CallContext
) -> TaskRecord:
    """Return a record of this caller: the one gate of every operation on a task.

    Raises:
        TaskNotFoundError: there is no such task, or it is somebody else's.
    """
    record = await store.get(task_id)
    if record is None or record.owner != context.caller.identity:
        raise TaskNotFoundError
    engine.live(task_id)
    return record
