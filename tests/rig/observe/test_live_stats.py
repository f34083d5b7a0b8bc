from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ssdqual.qual.measured.environment import Traffic
from pytest_ssdqual.qual.progress_events import BytesWritten, LoadBegun, News, Now, Steadiness
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import ANSWER, Course, Live

LOAD = LoadBegun("measure", "raid5x4", "randwrite_4k_qd8", ("raid5x4",))
#: As Linux 6.1 tells it.
STAT = "    1017        0   16272      403      256        5    40960     1205        0      612     1609        0\n"


def moved(read: int, written: int) -> Traffic:
    """Return bytes of a device since it appeared."""
    return Traffic(0, 0, read, written)


class Script:
    """Answers in turn; the last answer for ever. Whoever asks is told of."""

    def __init__(self, *answers: list[str] | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.closed = 0

    def ask(self, text: str, answers: int, deadline_s: float) -> list[str] | None:
        self.asked.append(text)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


def written(count: int) -> list[str]:
    return [f"0 0 0 0 0 0 {count // 512} 0 0 0 0"]


class Watcher:
    """A ``Live`` whose clock goes a second on whenever it is looked at, and what it told."""

    def __init__(self, *talks: Script, period_s: float = 0.001) -> None:
        self.told: list[News] = []
        self.enough = threading.Event()
        self.now_s = 0.0
        self.talks = list(talks)
        self.live = Live(self.report, self.talk if talks else None, period_s, clock=self.clock)
        self.wanted = 1

    def talk(self, argv: Sequence[str]) -> Script:
        assert argv[:2] == ["sh", "-c"]
        return self.talks.pop(0)

    def clock(self) -> float:
        self.now_s += 1
        return self.now_s

    def report(self, news: News) -> None:
        self.told.append(news)
        if len(self.figures) >= self.wanted:
            self.enough.set()

    @property
    def figures(self) -> list[Now]:
        return [each for each in self.told if isinstance(each, Now)]

    def watch(self, wanted: int = 1, names: Sequence[str] = ("md127",)) -> list[Now]:
        self.wanted = wanted
        with self.live.watching(LOAD, names, 4096):
            if wanted:
                assert self.enough.wait(20)
        return self.figures[:wanted]


def test_a_stat_line_is_read_by_its_columns() -> None:
    assert live_stats.parse(STAT) == Traffic(1017, 261, 16272 * 512, 40960 * 512)


@pytest.mark.parametrize(
    "line", ["", "0 0 0 0 0 0", "a b c d e f g h", "0 0 ٣ 0 0 0 0", "0 0 -1 0 0 0 0", "9" * 30 + " 0" * 8]
)
def test_half_a_line_is_no_count(line: str) -> None:
    assert live_stats.parse(line) is None


def test_rates_are_of_bytes_and_never_negative() -> None:
    before, after = [moved(0, 0), moved(9 << 20, 0)], [moved(4096 * 10, 4096 * 20), moved(0, 4096)]
    assert live_stats.rates(before, after, 2.0, 4096) == (15.0, 0.5)


@pytest.mark.parametrize(
    ("course", "seconds", "found"),
    [
        (Course(), 100, (0, 0)),
        (Course(0, 5, 10, 20), 5, (1, 5)),
        (Course(0, 5, 10, 20), 31, (2, 5)),
        (Course(0, 5, 10, 20), 500, (5, 5)),
        (Course(3, 25), 500, (4, 25)),
        (Course(60, 60), 0, (60, 60)),
    ],
)
def test_a_course_says_which_round_it_is(course: Course, seconds: float, found: tuple[int, int]) -> None:
    assert course.at(seconds) == found


def test_figures_are_differences_of_the_counts() -> None:
    watcher = Watcher(Script(written(1 << 20), written((1 << 20) + 4096 * 300), written((1 << 20) + 4096 * 900)))
    first, second = watcher.watch(2)
    assert (first.iops, first.bytes_written) == ((300.0,), 4096 * 300)
    assert (second.iops, second.bytes_written) == ((600.0,), 4096 * 900)
    assert watcher.told[0] == LOAD


def test_bytes_add_up_over_processes() -> None:
    watcher = Watcher(Script(written(0), written(4096)))
    watcher.watch()
    watcher.enough.clear()
    watcher.told.clear()
    watcher.live._running = Script(written(1 << 20), written((1 << 20) + 8192))
    assert watcher.watch()[0].bytes_written == 4096 + 8192


def test_load_is_counted_from_before_fio_to_after_it() -> None:
    script = Script(written(4096), written(4096 * 11))
    watcher = Watcher(script, period_s=3600)
    with watcher.live.watching(LOAD, ["md127"], 4096):
        assert script.asked == ["md127"]
    assert script.asked == ["md127"] * 2
    assert watcher.told[-1] == BytesWritten(4096 * 10)


def test_bytes_written_are_those_of_the_drives_below_an_array() -> None:
    # The array, and three drives: parity is written as well, and the last drive is gone at the end.
    first = [*written(512), *written(1024), *written(0)]
    last = [*written(512 + 4096), *written(1024 + 8192), ""]
    watcher = Watcher(Script(written(0), first, last), period_s=3600)
    with watcher.live.watching(LOAD, ["md127"], 4096, ["sda", "sdb", "sdc"]):
        pass
    assert watcher.told[-1] == BytesWritten(4096 + 8192)
    watcher.live._running = Script(written(0), first, last)
    # What is written between two loads, such as zeroes, is not counted.
    with watcher.live.watching(LOAD, ["md127"], 4096, ["sda", "sdb", "sdc"]):
        pass
    assert watcher.told[-1] == BytesWritten(2 * (4096 + 8192))


def test_a_drive_that_comes_back_counts_from_there() -> None:
    writes = live_stats.DriveWrites(["sda"])
    for each in (100, 150, None, 0, 30):
        writes.add([None if each is None else moved(0, each)])
    assert writes.written == 50 + 30


def test_rounds_are_those_announced_for_this_process() -> None:
    watcher = Watcher(Script(written(0)))
    live_stats.expect(watcher.live, Course(2, 9, exact=True))
    assert (watcher.watch()[0].round, watcher.figures[0].rounds, watcher.figures[0].exact) == (3, 9, True)
    assert watcher.told[0] == replace(LOAD, round=3, rounds=9, exact=True)
    watcher.enough.clear()
    watcher.told.clear()
    assert watcher.watch()[0].rounds == 0


@pytest.mark.parametrize("trouble", [None, ["gibberish"], [""], OSError("gone"), ValueError("odd")])
def test_trouble_stops_the_figures_and_nothing_else(trouble: list[str] | Exception | None) -> None:
    script = Script(trouble)
    for watcher in (Watcher(script), Watcher()):  # of one, no process answers
        assert watcher.watch(0) == []
        assert watcher.told == [LOAD]
    # A device that is gone is no reason to end the process that answers.
    assert script.closed == (not isinstance(trouble, list))


def test_trouble_on_the_way_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stats, "RETRY_S", 0.001)
    broken, whole = Script(written(0), None), Script(written(4096 * 40))
    watcher = Watcher(broken, whole)
    (found,) = watcher.watch()
    assert broken.closed == 1
    assert found.bytes_written == 4096 * 40


@pytest.mark.parametrize("name", ["../../etc/shadow", "md 127", "md127\nsda", "", "*"])
def test_odd_names_are_not_asked_for(name: str) -> None:
    script = Script(written(0))
    assert Watcher(script).watch(0, [name]) == []
    assert script.asked == []


def test_of_drives_side_by_side_each_is_asked_for() -> None:
    watcher = Watcher(Script([STAT, STAT]))
    members = tuple(SimpleNamespace(kname=f"nvme{n}n1", name=f"S{n}") for n in range(2))
    array = cast("Any", SimpleNamespace(geometry=Geometry.parse("drivex2"), members=members))
    with live_stats.watched(watcher.live, array, Workload("randread", "4k", 8), "wsat-03", 4096):
        assert watcher.enough.wait(20)
    assert watcher.told[0] == LoadBegun("wsat", "drivex2", "randread_4k_qd8", ("S0", "S1"))
    assert watcher.figures[0].iops == (0.0, 0.0)


def test_what_a_detector_found_is_told_if_anybody_watches() -> None:
    watcher = Watcher()
    said = "steady at 900 IOPS"
    live_stats.send_steadiness(watcher.live, True, said)
    live_stats.send_steadiness(None, True, "nobody hears this")
    assert watcher.told == [Steadiness(True, said)]


@pytest.mark.parametrize(
    ("values", "brief"),
    [
        ([100.0] * 5, "steady: range 0.0 % (20 % allowed)"),
        ([83.0, 117.0, 100.0, 100.0, 100.0], "not steady yet: range 34.0 % (20 % allowed)"),
    ],
)
def test_how_far_a_window_is_from_the_rule_is_told(values: list[float], brief: str) -> None:
    watcher, state = Watcher(), steady_state.judge(values, SteadyRule())
    live_stats.send_state(watcher.live, state)
    assert watcher.told == [Steadiness(state.reached, state.describe(), brief)]


def test_a_shell_answers_with_the_kernels_counts(unprivileged: Channel) -> None:
    talk = unprivileged.line_process(["sh", "-c", ANSWER.replace("/sys/class/block/$name/stat", "/proc/$name/stat")])
    answer = talk.ask("self nothing-like-this self", 3, 20)
    talk.close()
    assert answer is not None
    assert answer[0].split()[1] == "(sh)"
    assert answer[1] == ""
    assert answer[0].split()[0] == answer[2].split()[0]
