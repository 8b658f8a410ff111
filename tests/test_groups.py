"""What comes out of our own nurseries comes out as it is."""

import pytest
import trio

from a2a_trio._groups import only_failure, plain_errors


def nested(*levels: list[BaseException]) -> BaseExceptionGroup[BaseException]:
    """Return groups inside each other, the last one innermost."""
    *outer, inner = levels
    group = BaseExceptionGroup("inner", inner)
    for beside in reversed(outer):
        group = BaseExceptionGroup("outer", [*beside, group])
    return group


def test_one_failure_is_found_through_as_many_nurseries_as_are_ours() -> None:
    error = ValueError("x")
    group = nested([], [error])
    assert only_failure(error, 2) is error
    assert only_failure(group, 2) is error
    assert only_failure(group, 1) is group.exceptions[0], "deeper groups are the caller's own"


def test_several_failures_stay_together() -> None:
    group = nested([], [ValueError("x"), KeyError("y")])
    assert only_failure(group, 2) is group.exceptions[0]


async def fail(error: BaseException) -> None:
    """Fail beside a task that waits, inside a nursery of ours."""
    with plain_errors():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise error


async def test_a_cancellation_beside_a_failure_does_not_count() -> None:
    """The failure cancelled the other child; nobody else wants to know."""
    with pytest.raises(OSError, match="broken") as caught:
        await fail(OSError("broken"))
    assert type(caught.value) is OSError


async def test_groups_of_the_caller_are_left_alone() -> None:
    """One nursery is ours; what the block put into a group stays in it."""
    with pytest.RaisesGroup(ValueError):
        await fail(ExceptionGroup("theirs", [ValueError("x")]))


async def test_cancellation_passes() -> None:
    """A scope around all of it still sees its own cancellation."""
    with trio.CancelScope() as scope:
        with plain_errors():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                scope.cancel()
                await trio.sleep_forever()
        pytest.fail("went on after its cancellation")
    assert scope.cancelled_caught


async def fail_while_handling(cause: Exception) -> None:
    with plain_errors():
        async with trio.open_nursery():
            try:
                raise cause
            except KeyError:
                raise ValueError("second")  # noqa: B904 - the implicit context is what is tested


async def test_a_failure_keeps_what_it_came_from() -> None:
    """Its context is what the block was handling, not the group it was wrapped in."""
    cause = KeyError("first")
    with pytest.raises(ValueError, match="second") as caught:
        await fail_while_handling(cause)
    assert caught.value.__context__ is cause
