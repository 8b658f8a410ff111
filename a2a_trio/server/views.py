"""What of a task an answer shows."""

import attrs

from a2a_trio.wire.model import Task

__all__ = ["task_view"]


def task_view(task: Task, history_length: int | None, *, artifacts: bool = True) -> Task:
    """Return the task with at most so many of its newest messages (A2A section 3.2.4).

    Args:
        task: the task as it is kept.
        history_length: None is all, 0 none.
        artifacts: whether to show them (A2A section 3.1.4).
    """
    if history_length is not None and len(task.history) > history_length:
        cut = task.history[len(task.history) - history_length :]
        task = attrs.evolve(task, history=cut)
    if not artifacts and task.artifacts:
        task = attrs.evolve(task, artifacts=())
    return task
