from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.line_process import LineProcess
from pytest_ssdqual.rig.machine.machine import Completed, MachineLost

ECHO = ["sh", "-c", 'while read -r line; do echo "$line"; echo "$$"; done']


@pytest.fixture
def told() -> list[Completed]:
    return []


@pytest.fixture
def echo(told: list[Completed]) -> Iterator[LineProcess]:
    talk = LineProcess(["echo"], ECHO, told.append)
    yield talk
    talk.close()


def test_one_process_answers_all_questions(echo: LineProcess) -> None:
    first, second = echo.ask("one", 2, 20), echo.ask("two", 2, 20)
    assert first is not None
    assert second == ["two", first[1]]


def test_what_was_said_too_much_is_the_next_answer(echo: LineProcess) -> None:
    echo.ask("one", 1, 20)
    found = echo.ask("two", 3, 20)
    assert found is not None
    assert found[1] == "two"


def test_no_answer_in_time_is_none(told: list[Completed]) -> None:
    talk = LineProcess(["silent"], ["sh", "-c", "read -r line; exec sleep 600"], told.append)
    assert talk.ask("hello", 1, 0.05) is None
    talk.close()
    assert [each.status for each in told] == [-9]


def test_one_that_has_ended_answers_none(told: list[Completed]) -> None:
    talk = LineProcess(["brief"], ["true"], told.append)
    assert talk.ask("hello", 1, 20) is None
    assert talk.ask("hello", 1, 20) is None
    talk.close()
    talk.close()
    assert talk.ask("hello", 1, 20) is None
    assert [each.argv for each in told] == [("brief",)]


def test_a_flood_is_no_answer(told: list[Completed]) -> None:
    talk = LineProcess(["yes"], ["sh", "-c", "exec tr '\\0' x </dev/zero"], told.append)
    assert talk.ask("hello", 1, 20) is None
    talk.close()


def test_it_ends_with_whoever_asks(unprivileged: Channel, gone: Callable[[int], bool]) -> None:
    talk = unprivileged.line_process(ECHO)
    answer = talk.ask("one", 2, 20)
    assert answer is not None
    talk.close()
    assert gone(int(answer[1]))


def test_the_transcript_is_told_once(tmp_path: Path) -> None:
    seen: list[Completed] = []
    channel = Channel("here", wrap=list, lost=lambda done: None, directory=str(tmp_path), observer=seen.append)
    talk = channel.line_process(ECHO)
    talk.ask("one", 2, 20)
    talk.close()
    assert [each.argv for each in seen] == [tuple(ECHO)]


def test_a_machine_that_is_lost_is_not_talked_to(unprivileged: Channel) -> None:
    unprivileged._gone = "here is lost: unplugged"
    with pytest.raises(MachineLost, match="unplugged"):
        unprivileged.line_process(ECHO)
