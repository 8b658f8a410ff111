"""Repeated sends: recognised by caller and key, within a window, in a bounded table."""

from a2a_trio.rules.dedup import Conflict, Dedup, Known, New
from a2a_trio.wire.model import Message, Part, Role


def test_the_same_send_is_known_and_another_payload_is_a_conflict() -> None:
    dedup = Dedup(600)
    assert isinstance(dedup.look_up("me", "k", b"one", 0), New)
    dedup.remember("me", "k", b"one", "task", 0)
    known = dedup.look_up("me", "k", b"one", 599)
    assert isinstance(known, Known)
    assert known.task_id == "task"
    assert isinstance(dedup.look_up("me", "k", b"two", 599), Conflict)


def test_keys_belong_to_their_caller() -> None:
    dedup = Dedup(600)
    dedup.remember("me", "k", b"one", "task", 0)
    assert isinstance(dedup.look_up("you", "k", b"one", 1), New)


def test_the_window_ends() -> None:
    dedup = Dedup(600)
    dedup.remember("me", "k", b"one", "task", 0)
    assert isinstance(dedup.look_up("me", "k", b"two", 600), New)
    assert len(dedup) == 0


def test_a_window_of_zero_and_an_empty_key_recognise_nothing() -> None:
    off, on = Dedup(0), Dedup(600)
    off.remember("me", "k", b"one", "task", 0)
    on.remember("me", "", b"one", "task", 0)
    assert isinstance(off.look_up("me", "k", b"one", 0), New)
    assert isinstance(on.look_up("me", "", b"one", 0), New)
    assert len(off) == len(on) == 0


def test_a_full_table_forgets_the_oldest() -> None:
    dedup = Dedup(600, max_entries=3)
    for number in range(5):
        dedup.remember("me", str(number), b"", f"task {number}", number)
    assert len(dedup) == 3
    assert isinstance(dedup.look_up("me", "1", b"", 5), New)
    assert isinstance(dedup.look_up("me", "2", b"", 5), Known)


def test_a_message_answer_is_kept_with_its_send() -> None:
    dedup = Dedup(600)
    known = dedup.remember("me", "k", b"", "task", 0)
    reply = Message(message_id="r", role=Role.AGENT, parts=(Part(text="hi"),))
    known.answered_with(reply)
    again = dedup.look_up("me", "k", b"", 1)
    assert isinstance(again, Known)
    assert again.reply is reply


def test_forgetting_makes_a_repeat_new() -> None:
    dedup = Dedup(600)
    dedup.remember("me", "k", b"", "task", 0)
    dedup.forget("me", "k")
    assert isinstance(dedup.look_up("me", "k", b"", 1), New)
