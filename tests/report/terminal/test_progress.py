from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from support.documents import golden

from pytest_ssdqual.qual.progress_events import Begun, Idle, LoadBegun, Looked, Now, Planned, Steadiness
from pytest_ssdqual.report.terminal import progress
from pytest_ssdqual.report.terminal.progress import ERASE, UP, Progress


class Screen(io.StringIO):
    """Remembers each piece written."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def write(self, text: str, /) -> int:
        self.pieces.append(text)
        return super().write(text)


class Watched:
    """What is shown on a screen, by a clock that only a test sets forward."""

    def __init__(self, *, terminal: bool = True, **options: Any) -> None:  # noqa: ANN401 (those of Progress)
        self.now_s = 100.0
        self.screen = Screen()
        self.shown = Progress(self.screen, terminal, clock=lambda: self.now_s, **options)
        self.take = self.shown.take

    @property
    def pieces(self) -> list[str]:
        return self.screen.pieces

    def later(self, seconds: float) -> None:
        self.now_s += seconds
        self.shown.tick()

    def check(self) -> None:
        """Compare all that was written with the golden file: where ``<`` erases a line, and ``^`` the one above."""
        written = "".join(self.pieces).replace(ERASE, "\n<").replace(UP, "^")
        golden.same("progress.txt", written.splitlines())


def test_on_a_terminal_one_line_changes_once_a_second() -> None:
    watched = Watched()
    watched.take(Begun("raid5x4: create", 5))
    for _ in range(20):
        watched.later(0.25)
    assert watched.pieces == [f"{ERASE}ssdqual: raid5x4: create 0:0{second} of 0:05" for second in range(6)]


def test_a_window_that_was_made_narrower_is_drawn_to() -> None:
    widths = iter([80, 20])
    watched = Watched(width=lambda: next(widths))
    watched.take(Begun("raid5x4: create", 5))
    watched.later(1)
    assert watched.pieces[-1] == f"{ERASE}ssdqual: raid5x4: …"


def test_figures_are_younger_than_lines_in_a_log() -> None:
    shown = Watched(terminal=False).shown
    assert shown.glance_s < shown.period_s
    assert Watched().shown.glance_s == shown.period_s / 60


def test_elsewhere_one_line_a_minute() -> None:
    watched = Watched(terminal=False)
    watched.take(Begun("raid5x4: purge", 5))
    watched.now_s += 5
    watched.take(Begun("raid5x4: fill", 600))  # too soon for another line: 200 short steps must not flood a log
    for _ in range(120):
        watched.later(1)
    watched.check()


def test_others_can_write_in_between() -> None:
    ended: list[int] = []
    watched = Watched()
    watched.shown.fresh_line = lambda: ended.append(len(watched.pieces))
    watched.shown.clear()
    assert watched.pieces == []
    watched.take(Begun("one", 0))
    watched.later(1)
    watched.shown.clear()
    watched.later(1)
    assert watched.pieces[2] == ERASE
    # The dots of pytest are ended before our first character, and after each interruption.
    assert ended == [0, 3]


def test_when_nothing_is_done_nothing_is_shown() -> None:
    watched = Watched()
    watched.later(0)
    watched.take(Begun("one", 0))
    watched.shown.idle()
    watched.later(10)
    assert watched.pieces[-1] == ERASE
    assert len(watched.pieces) == 2


def test_it_is_redrawn_while_a_step_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_PERIOD_S", 0.001)
    redrawn = threading.Event()
    screen = Screen()
    with Progress(screen, terminal=True, fresh_line=lambda: None) as shown:
        shown.take(Begun("one", 0))
        drawn = len(screen.pieces)
        for _ in range(1000):
            if len(screen.pieces) > drawn:
                redrawn.set()
                break
            threading.Event().wait(0.01)
    assert redrawn.is_set()
    assert screen.pieces[-1] == ERASE
    assert not [each for each in threading.enumerate() if each.name == "ssdqual-progress"]


def test_a_terminal_that_went_away_does_not_matter() -> None:
    watched = Watched()
    watched.screen.close()
    watched.take(Begun("one", 0))
    watched.shown.idle()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_look_is_a_line_that_stays(*, terminal: bool) -> None:
    begun: list[int] = []
    watched = Watched(terminal=terminal)
    watched.shown.fresh_line = lambda: begun.append(len(watched.pieces))
    watched.take(Planned(1000))
    watched.take(Begun("raid5x4: visit 2", 480))
    watched.now_s += 480
    watched.take(Looked("raid5x4 randread_4k_qd8: visit 2: goes on"))
    watched.later(60)
    watched.check()
    assert begun == ([0, 2] if terminal else [0, 1, 2])


class Alarm(threading.Event):
    """Asked to wait, it lets that much time pass on the clock, three times; what it was asked is remembered."""

    def __init__(self, watched: Watched) -> None:
        super().__init__()
        self.watched = watched
        self.asked_s: list[float] = []
        watched.shown._ended = self

    def wait(self, timeout: float | None = None) -> bool:
        self.asked_s.append(timeout or 0.0)
        self.watched.now_s += timeout or 0.0
        return len(self.asked_s) > 3


@pytest.mark.parametrize(
    ("terminal", "passed_s", "asked_s"),
    [(True, 0.25, [0.75, 1, 1, 1]), (False, 20, [40, 60, 60, 60]), (False, 59.9, [3, 60, 60, 60])],
)
def test_nobody_wakes_up_before_there_is_something_to_draw(
    terminal: bool, passed_s: float, asked_s: list[float]
) -> None:
    watched = Watched(terminal=terminal)
    alarm = Alarm(watched)
    watched.take(Begun("raid5x4: fill", 720))
    watched.now_s += passed_s
    watched.shown._tick_on()
    assert alarm.asked_s == pytest.approx(asked_s)
    assert len([piece for piece in watched.pieces if "raid5x4: fill" in piece]) == 4


def test_without_a_step_nobody_wakes_up_often() -> None:
    watched = Watched(terminal=False)
    alarm = Alarm(watched)
    watched.shown._tick_on()
    watched.take(Begun("raid5x4: fill", 720))
    watched.shown.idle()
    watched.now_s += 300
    alarm.asked_s.clear()
    watched.shown._tick_on()
    assert alarm.asked_s == [60] * 4


def test_what_is_told_of_a_step_is_in_its_line() -> None:
    watched = Watched()
    watched.take(Begun("raid5x4: randwrite_4k_qd8", 60))
    watched.take(LoadBegun("measure", "raid5x4", "randwrite_4k_qd8", ("raid5x4",)))
    watched.take(Now(9.0, (900.0,), 48_000_000, 2, 5))
    watched.now_s += 1
    watched.take(Steadiness(True, "steady at 900 IOPS over 5 rounds"))
    # 48 MB written and how steady it is have no place on 80 columns.
    watched.check()


def test_each_bay_has_a_line_and_all_are_erased_together() -> None:
    watched = Watched()
    watched.take(Planned(600), "gw2")
    watched.take(Begun("raid5x4: fill", 60), "gw1")
    watched.now_s += 1
    watched.take(Begun("raid5x8: fill", 60), "gw0")
    watched.later(1)
    watched.shown.clear()
    watched.check()


def test_a_bay_that_is_idle_has_no_line() -> None:
    watched = Watched(terminal=False)
    watched.take(Begun("one", 0), "gw0")
    watched.take(Begun("two", 0), "gw1")
    watched.take(Idle(), "gw0")
    watched.later(60)
    assert watched.pieces == ["ssdqual: one 0:00\n", "ssdqual gw1: two 1:00\n"]


def test_news_are_fetched_as_often_as_they_are_wanted() -> None:
    fetched: list[float] = []
    watched = Watched(terminal=False)
    watched.shown.poll = lambda: fetched.append(watched.now_s)
    alarm = Alarm(watched)
    watched.shown._tick_on()
    assert alarm.asked_s == [60] * 4
    watched.shown.poll_s, alarm.asked_s = 1.0, []
    watched.shown._tick_on()
    assert alarm.asked_s == [1] * 4
    assert len(fetched) == 6


def test_news_from_elsewhere_have_happened_when_they_did() -> None:
    watched = Watched()
    watched.take(Begun("raid5x4: fill", 0), "gw0", at_s=40)
    assert watched.pieces == [f"{ERASE}ssdqual: raid5x4: fill 1:00"]


@pytest.mark.parametrize(("terminal", "lines"), [(True, 8), (False, 12)])
def test_a_rack_does_not_take_more_lines_than_there_are(terminal: bool, lines: int) -> None:
    watched = Watched(terminal=terminal, height=lambda: 10)
    for number in range(100):
        watched.take(Planned(3600 + 60 * number), f"dut{number:02}")
        watched.take(Begun("raid5x4: fill", 600), f"dut{number:02}")
    watched.later(60)
    written = watched.pieces[-1].removesuffix("\n").split("\n")
    assert len(written) == lines
    golden.same("progress.txt", written[-2:])
    watched.later(60)
    assert watched.pieces[-1].count(UP) == (lines - 1 if terminal else 0)


def test_in_a_log_the_plan_of_a_worker_and_verdicts_are_lines() -> None:
    watched = Watched(terminal=False)
    plan = Planned(1000, lines=("ssdqual: the plan for 3 drives", "  raid5x3"))
    watched.take(plan, "gw0")
    watched.take(plan, "gw1")
    watched.take(Planned(1000), "gw2")
    watched.shown.say("steady IOPS of raid5x3: 891 IOPS")
    watched.check()


@pytest.mark.parametrize("terminal", [True, False])
def test_after_the_end_nothing_is_printed(terminal: bool) -> None:
    watched = Watched(terminal=terminal)
    watched.take(Begun("one", 100))
    watched.shown.finish()
    written = list(watched.pieces)
    watched.now_s += 100
    watched.take(Begun("two", 100))
    watched.later(0)
    watched.shown.say("late")
    assert watched.pieces == written


@pytest.mark.parametrize("most_s", [3600.0, 7200.0])
def test_the_time_left_is_a_range_of_least_and_most(most_s: float) -> None:
    watched = Watched(width=lambda: 200)
    watched.take(Planned(3600.0, ("raid5x4",), (0.0,), most_s=most_s))
    watched.take(Begun("raid5x4: fill", 3600.0))
    for passed_s in (1800, 3600, 3600):
        watched.later(passed_s)
    watched.check()


SIDE_BY_SIDE = LoadBegun("measure", "drivex3", "randread_4k_qd8", ("S1", "S2", "S3"))


@pytest.mark.parametrize("terminal", [True, False])
def test_gauges_of_the_drives_are_a_line_of_their_own(*, terminal: bool) -> None:
    watched = Watched(terminal=terminal, width=lambda: 200, has_gauges=True)
    watched.take(Begun("drivex3: randread_4k_qd8", 60.0))
    watched.take(SIDE_BY_SIDE)
    watched.now_s += 60
    watched.take(Now(1.0, (1000.0, 400.0, 800.0), 0))
    watched.take(LoadBegun("measure", "raid5x3", "randread_4k_qd8", ("md100",)))
    watched.now_s += 60
    watched.take(Now(1.0, (1000.0,), 0))
    watched.check()


def test_gauges_are_shown_on_request_and_not_of_several_bays() -> None:
    for bays, has_gauges in ((("",), False), (("dut1", "dut2"), True)):
        watched = Watched(width=lambda: 200, has_gauges=has_gauges)
        for bay in bays:
            watched.take(Begun("drivex3: randread_4k_qd8", 60.0), bay)
        for bay in bays:
            watched.take(SIDE_BY_SIDE, bay)
            watched.now_s += 1
            watched.take(Now(1.0, (1000.0, 400.0, 800.0), 0), bay)
        assert "2,200 IOPS" in watched.pieces[-1]
        assert not any("slowest" in piece for piece in watched.pieces)


def test_in_a_log_the_first_rate_does_not_wait_for_a_minute() -> None:
    watched = Watched(terminal=False)
    watched.take(Begun("raid5x4: fill", 3600.0))
    for rate in (0.0, 500.0, 600.0):
        watched.now_s += 5
        watched.take(Now(1.0, (rate,), 0))
    watched.check()
