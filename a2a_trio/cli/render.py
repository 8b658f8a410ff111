"""Tasks, cards and events as text for people. Pure: values in, strings out."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from a2a_trio.cli.text import label, visible
from a2a_trio.wire.agent_card import AgentCard, AgentSkill
from a2a_trio.wire.model import UNSET, Message, Part, Task, TaskState

PREVIEW_LENGTH: Final = 60
"""Characters of a task's text in a table."""

_UNKNOWN: Final = "-"


def instant(value: datetime | None) -> str:
    """Return a time in UTC to the second, or a dash."""
    return _UNKNOWN if value is None else value.strftime("%Y-%m-%dT%H:%M:%SZ")


def part_text(part: Part) -> str:
    """Return a part as text: its text, or a bracketed line that says what it is."""
    if part.text is not None:
        return visible(part.text)
    name = f" {label(part.filename)}" if part.filename else ""
    kind = f" {label(part.media_type)}" if part.media_type else ""
    if part.raw is not None:
        return f"[file{name}{kind} {len(part.raw)} bytes]"
    if part.url is not None:
        return f"[url{name}{kind} {visible(part.url)}]"
    if part.data is not UNSET:
        return f"[data{name}{kind} {visible(json.dumps(part.data, ensure_ascii=False))}]"
    raise AssertionError("a Part has exactly one content member")


def parts_text(parts: Sequence[Part]) -> str:
    """Return parts one below the other."""
    return "\n".join(part_text(part) for part in parts)


def message_text(message: Message | None) -> str:
    """Return what a message says, or nothing."""
    return "" if message is None else parts_text(message.parts)


def task_text(task: Task) -> str:
    """Return what a task has to show: its artifacts or, if it has none, its status message."""
    texts = [parts_text(artifact.parts) for artifact in task.artifacts]
    joined = "\n".join(text for text in texts if text)
    return joined or message_text(task.status.message)


def task_lines(task: Task) -> Iterator[str]:
    """Yield the lines of ``a2a-trio status``: the facts, then the text."""
    yield f"task     {label(task.id)}"
    yield f"state    {task.state.short}"
    yield f"context  {label(task.context_id) or _UNKNOWN}"
    yield f"updated  {instant(task.status.timestamp)}"
    text = task_text(task)
    if text:
        yield ""
        yield text


def task_table(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield a header and one line per task, columns aligned."""
    rows = [("TASK", "STATE", "UPDATED", "TEXT")]
    rows += [
        (
            label(task.id),
            task.state.short,
            instant(task.status.timestamp),
            label(task_text(task), PREVIEW_LENGTH),
        )
        for task in tasks
    ]
    yield from aligned(rows)


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows with every column but the last padded to its widest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def card_lines(card: AgentCard) -> Iterator[str]:
    """Yield the lines of ``a2a-trio discover``."""
    yield f"{label(card.name)} {label(card.version)}".rstrip()
    if card.description:
        yield f"  {label(card.description)}"
    yield ""
    for interface in card.supported_interfaces:
        yield (
            f"interface   {label(interface.url)}"
            f" ({label(interface.protocol_binding)} {label(interface.protocol_version)})"
        )
    yield f"can         {', '.join(_abilities(card)) or 'send only'}"
    yield f"access      {', '.join(_access(card)) or 'open'}"
    yield f"input       {', '.join(map(label, card.default_input_modes)) or _UNKNOWN}"
    yield f"output      {', '.join(map(label, card.default_output_modes)) or _UNKNOWN}"
    for extension in card.capabilities.extensions:
        yield f"extension   {label(extension.uri)}{' (required)' if extension.required else ''}"
    for skill in card.skills:
        yield f"skill       {_skill(skill)}"


def _abilities(card: AgentCard) -> Iterator[str]:
    if card.capabilities.streaming:
        yield "stream"
    if card.capabilities.push_notifications:
        yield "push"
    if card.capabilities.extended_agent_card:
        yield "extended card"


def _access(card: AgentCard) -> Iterator[str]:
    for requirement in card.security_requirements:
        yield " + ".join(label(name) for name in requirement.schemes)


def _skill(skill: AgentSkill) -> str:
    text = f"{label(skill.id)}: {label(skill.description or skill.name)}"
    return f"{text} [{', '.join(map(label, skill.tags))}]" if skill.tags else text


def state_note(state: TaskState, text: str) -> str:
    """Return a progress line: the state and what the agent said about it."""
    return f"{state.short}: {label(text)}" if text else state.short
