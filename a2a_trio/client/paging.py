"""Reads a list of tasks page by page."""

import itertools
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypedDict

import attrs

from a2a_trio.errors import PeerProtocolError
from a2a_trio.wire.model import Task, TaskState
from a2a_trio.wire.requests import ListTasksRequest, ListTasksResponse

__all__ = ["ListFilters", "all_tasks"]


class ListFilters(TypedDict, total=False):
    """Which tasks a list is of, and what of each is wanted (A2A section 3.1.4)."""

    context_id: str
    """Only tasks of this conversation."""
    status: TaskState
    """Only tasks in this state."""
    status_timestamp_after: datetime | None
    """Only tasks whose status is of this time or later."""
    history_length: int | None
    """Messages of history per task; 0 is none."""
    include_artifacts: bool | None
    """Whether artifacts are wanted; by default they are not."""


async def all_tasks(
    fetch: Callable[[ListTasksRequest], Awaitable[ListTasksResponse]],
    params: ListTasksRequest,
    *,
    max_tasks: int,
    url: str,
) -> tuple[Task, ...]:
    """Return the tasks of all pages, ``max_tasks`` at most.

    Args:
        fetch: gets one page.
        params: the request for the first page.
        max_tasks: how many are kept; further pages are not asked for.
        url: the peer, for errors.

    Raises:
        PeerProtocolError: a page brings nothing new, or a token comes again, so that there might
            never be an end.
    """
    tasks: dict[str, Task] = {}  # by id: a task that moved between two pages comes once
    seen: set[str] = set()
    while len(tasks) < max_tasks:
        page = await fetch(params)
        known = len(tasks)
        tasks.update((task.id, task) for task in page.tasks)
        token = page.next_page_token
        if not token:
            break
        if token in seen or len(tasks) == known:
            raise PeerProtocolError("the pages of the list go in a circle", url=url)
        seen.add(token)
        params = attrs.evolve(params, page_token=token)
    return tuple(itertools.islice(tasks.values(), max_tasks))
