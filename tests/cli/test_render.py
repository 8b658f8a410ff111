"""Tasks and cards as people read them."""

import pytest

from a2a_trio.cli import render
from a2a_trio.wire.model import Artifact, Part, TaskState
from tests.cli.conftest import make_card, make_task


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Part(text="hello"), "hello"),
        (
            Part(raw=b"abc", filename="a.bin", media_type="image/png"),
            "[file a.bin image/png 3 bytes]",
        ),
        (Part(url="https://example.org/x"), "[url https://example.org/x]"),
        (Part(data={"a": [1, None]}), '[data {"a": [1, null]}]'),
        (Part(data=None), "[data null]"),
    ],
)
def test_every_kind_of_part_is_shown(part: Part, text: str) -> None:
    """What is not text is named in brackets, never dropped."""
    assert render.part_text(part) == text


def test_task_shows_its_artifacts() -> None:
    """The result is what a task is about."""
    task = make_task(text="result", said="done")

    assert render.task_text(task) == "result"


def test_task_without_artifacts_shows_what_was_said() -> None:
    """A failed task has no result, but a reason."""
    task = make_task(TaskState.FAILED, said="out of disk")

    assert render.task_text(task) == "out of disk"


def test_task_lines() -> None:
    """Facts first, one per line, then the text."""
    assert list(render.task_lines(make_task(text="result"))) == [
        "task     t-1",
        "state    completed",
        "context  c-1",
        "updated  2025-01-31T12:00:00Z",
        "",
        "result",
    ]


def test_task_table_is_aligned() -> None:
    """Columns start below their headers; long texts are cut."""
    tasks = [
        make_task(text="short", task_id="a"),
        make_task(TaskState.INPUT_REQUIRED, said="x" * 100, task_id="b-longer"),
    ]

    header, first, second = render.task_table(tasks)

    assert header == "TASK      STATE           UPDATED               TEXT"
    assert first == "a         completed       2025-01-31T12:00:00Z  short"
    assert second.endswith("x" * (render.PREVIEW_LENGTH - 1) + "…")


def test_card_lines_name_everything_on_the_card() -> None:
    """Interfaces, abilities, access and skills are all there."""
    text = "\n".join(render.card_lines(make_card()))

    assert text == (
        "reviewer 2.1\n"
        "  Reviews changes.\n"
        "\n"
        "interface   http://127.0.0.1:9910/ (JSONRPC 1.0)\n"
        "can         stream\n"
        "access      open\n"
        "input       text/plain\n"
        "output      text/plain\n"
        "skill       review: Reads a diff [code]"
    )


def test_artifacts_with_several_parts_are_stacked() -> None:
    """Parts stand one below the other."""
    artifact = Artifact(artifact_id="a", parts=(Part(text="one"), Part(data=2)))

    assert render.parts_text(artifact.parts) == "one\n[data 2]"
