from __future__ import annotations

import io
import threading

import pytest

from pytest_ssdqual.qual.progress_events import Begun, Idle, LoadBegun, Looked, Now, Planned, Steadiness
from pytest_ssdqual.report.terminal import progress
from pytest_ssdqual.report.terminal.progress import ERASE, UP, Progress


class ProgressClock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Screen(io.StringIO):
    """Remembers each piece written."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def write(self, text: str, /) -> int:
        self.pieces.append(text)
        return len(text)


@pytest.fixture
def clock() -> ProgressClock:
    return ProgressClock()


@pytest.fixture
def screen() -> Screen:
    return Screen()


def test_on_a_terminal_one_line_changes_once_a_second(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock)
    shown.take(Begun("raid5x4: create", 5))
    for _ in range(20):
        clock.now_s += 0.25
        shown.tick()
    assert screen.pieces == [f"{ERASE}ssdqual: raid5x4: create 0:0{second} of 0:05" for second in range(6)]


def test_a_window_that_was_made_narrower_is_drawn_to(screen: Screen, clock: ProgressClock) -> None:
    widths = iter([80, 20])
    shown = Progress(screen, terminal=True, clock=clock, width=lambda: next(widths))
    shown.take(Begun("raid5x4: create", 5))
    clock.now_s += 1
    shown.tick()
    assert screen.pieces[-1] == f"{ERASE}ssdqual: raid5x4: …"


def test_figures_are_younger_than_lines_in_a_log(screen: Screen) -> None:
    shown = Progress(screen, terminal=False)
    assert shown.glance_s < shown.period_s
    assert Progress(screen, terminal=True).glance_s == shown.period_s / 60


def test_elsewhere_one_line_a_minute(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=False, clock=clock)
    shown.take(Begun("raid5x4: purge", 5))
    clock.now_s += 5
    shown.take(Begun("raid5x4: fill", 600))  # too soon for another line: 200 short steps must not flood a log
    for _ in range(120):
        clock.now_s += 1
        shown.tick()
    assert screen.pieces == [
        "ssdqual: raid5x4: purge 0:00 of 0:05\n",
        "ssdqual: raid5x4: fill 0:55 of 10:00\n",
        "ssdqual: raid5x4: fill 1:55 of 10:00\n",
    ]


def test_what_is_left_counts_steps_as_they_were_planned(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock)
    shown.take(Planned(1000))
    shown.take(Begun("one", 100))
    clock.now_s += 300  # three times as long as planned
    shown.tick()
    shown.take(Begun("two", 400))
    clock.now_s += 100
    shown.tick()
    left = [piece.partition("about ")[2] for piece in screen.pieces]
    assert left == ["16:40 left in all", "15:00 left in all", "13:20 left in all"]


def test_others_can_write_in_between(screen: Screen, clock: ProgressClock) -> None:
    ended: list[int] = []
    shown = Progress(screen, terminal=True, clock=clock, fresh_line=lambda: ended.append(len(screen.pieces)))
    shown.clear()
    assert screen.pieces == []
    shown.take(Begun("one", 0))
    clock.now_s += 1
    shown.tick()
    shown.clear()
    clock.now_s += 1
    shown.tick()
    assert screen.pieces[2] == ERASE
    # The dots of pytest are ended before our first character, and after each interruption.
    assert ended == [0, 3]


def test_when_nothing_is_done_nothing_is_shown(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock)
    shown.tick()
    shown.take(Begun("one", 0))
    shown.idle()
    clock.now_s += 10
    shown.tick()
    assert screen.pieces[-1] == ERASE
    assert len(screen.pieces) == 2


def test_it_is_redrawn_while_a_step_lasts(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_PERIOD_S", 0.001)
    redrawn = threading.Event()
    shown = Progress(screen, terminal=True, fresh_line=lambda: None)
    with shown:
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


def test_a_terminal_that_went_away_does_not_matter(clock: ProgressClock) -> None:
    gone = io.StringIO()
    gone.close()
    shown = Progress(gone, terminal=True, clock=clock)
    shown.take(Begun("one", 0))
    shown.idle()
    assert gone.closed


def test_a_look_is_a_line_that_stays(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock)
    shown.take(Planned(1000))
    shown.take(Begun("raid5x4: visit 2", 480))
    clock.now_s += 480
    shown.take(Looked("raid5x4 randread_4k_qd8: visit 2: goes on"))
    clock.now_s += 60
    shown.tick()
    first, look, second = screen.pieces
    assert first.endswith("visit 2 0:00 of 8:00, about 16:40 left in all")
    assert look == f"{ERASE}ssdqual: raid5x4 randread_4k_qd8: visit 2: goes on\n"
    assert second.endswith("visit 2 9:00 (planned: 8:00), about 8:40 left in all")


def test_a_look_is_a_line_of_its_own_in_a_log(screen: Screen, clock: ProgressClock) -> None:
    begun: list[int] = []
    shown = Progress(screen, terminal=False, clock=clock, fresh_line=lambda: begun.append(len(screen.pieces)))
    shown.take(Begun("raid5x4: randread_4k_qd8", 480))
    shown.take(Looked("a look"))
    assert screen.pieces[-1] == "ssdqual: a look\n"
    assert begun[-1] == len(screen.pieces) - 1


class Alarm(threading.Event):
    """Asked to wait, it lets that much time pass on the clock, three times; what it was asked is remembered."""

    def __init__(self, clock: ProgressClock) -> None:
        super().__init__()
        self.clock = clock
        self.asked_s: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.asked_s.append(timeout or 0.0)
        self.clock.now_s += timeout or 0.0
        return len(self.asked_s) > 3


@pytest.mark.parametrize(
    ("terminal", "passed_s", "asked_s"),
    [(True, 0.25, [0.75, 1, 1, 1]), (False, 20, [40, 60, 60, 60]), (False, 59.9, [3, 60, 60, 60])],
)
def test_nobody_wakes_up_before_there_is_something_to_draw(
    screen: Screen, clock: ProgressClock, terminal: bool, passed_s: float, asked_s: list[float]
) -> None:
    alarm = Alarm(clock)
    shown = Progress(screen, terminal=terminal, clock=clock, _ended=alarm)
    shown.take(Begun("raid5x4: fill", 720))
    clock.now_s += passed_s
    shown._tick_on()
    assert alarm.asked_s == pytest.approx(asked_s)
    assert len([piece for piece in screen.pieces if "raid5x4: fill" in piece]) == 4


def test_without_a_step_nobody_wakes_up_often(screen: Screen, clock: ProgressClock) -> None:
    alarm = Alarm(clock)
    shown = Progress(screen, terminal=False, clock=clock, _ended=alarm)
    shown._tick_on()
    shown.take(Begun("raid5x4: fill", 720))
    shown.idle()
    clock.now_s += 300
    alarm.asked_s.clear()
    shown._tick_on()
    assert alarm.asked_s == [60] * 4


def test_what_is_told_of_a_step_is_in_its_line(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock)
    shown.take(Begun("raid5x4: randwrite_4k_qd8", 60))
    shown.take(LoadBegun("measure", "raid5x4", "randwrite_4k_qd8", ("raid5x4",)))
    shown.take(Now(9.0, (900.0,), 48_000_000, 2, 5))
    clock.now_s += 1
    shown.take(Steadiness(True, "steady at 900 IOPS over 5 rounds"))
    # 48 MB written and how steady it is have no place on 80 columns.
    told = "raid5x4: randwrite_4k_qd8 0:01 of 1:00, round 2 of at most 5, 900 IOPS"
    assert screen.pieces[-1] == f"{ERASE}ssdqual: {told}"


def test_each_bay_has_a_line_and_all_are_erased_together(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock)
    shown.take(Planned(600), "gw2")
    shown.take(Begun("raid5x4: fill", 60), "gw1")
    clock.now_s += 1
    shown.take(Begun("raid5x8: fill", 60), "gw0")
    clock.now_s += 1
    shown.tick()
    shown.clear()
    one, two = "ssdqual gw0: raid5x8: fill 0:0{} of 1:00", "ssdqual gw1: raid5x4: fill 0:0{} of 1:00"
    assert screen.pieces == [
        f"{ERASE}ssdqual: raid5x4: fill 0:00 of 1:00",
        f"{ERASE}{one.format(0)}\n{two.format(1)}",
        f"{ERASE}{UP}{one.format(1)}\n{two.format(2)}",
        f"{ERASE}{UP}",
    ]


def test_a_bay_that_is_idle_has_no_line(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=False, clock=clock)
    shown.take(Begun("one", 0), "gw0")
    shown.take(Begun("two", 0), "gw1")
    shown.take(Idle(), "gw0")
    clock.now_s += 60
    shown.tick()
    assert screen.pieces == ["ssdqual: one 0:00\n", "ssdqual gw1: two 1:00\n"]


def test_news_are_fetched_as_often_as_they_are_wanted(screen: Screen, clock: ProgressClock) -> None:
    fetched: list[float] = []
    alarm = Alarm(clock)
    shown = Progress(screen, terminal=False, clock=clock, _ended=alarm)
    shown.poll = lambda: fetched.append(clock.now_s)
    shown._tick_on()
    assert alarm.asked_s == [60] * 4
    shown.poll_s, alarm.asked_s = 1.0, []
    shown._tick_on()
    assert alarm.asked_s == [1] * 4
    assert len(fetched) == 6


def test_news_from_elsewhere_have_happened_when_they_did(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock)
    shown.take(Begun("raid5x4: fill", 0), "gw0", at_s=40)
    assert screen.pieces == [f"{ERASE}ssdqual: raid5x4: fill 1:00"]


@pytest.mark.parametrize(("terminal", "lines"), [(True, 8), (False, 12)])
def test_a_rack_does_not_take_more_lines_than_there_are(
    screen: Screen, clock: ProgressClock, terminal: bool, lines: int
) -> None:
    shown = Progress(screen, terminal=terminal, clock=clock, height=lambda: 10)
    for number in range(100):
        shown.take(Planned(3600 + 60 * number), f"dut{number:02}")
        shown.take(Begun("raid5x4: fill", 600), f"dut{number:02}")
    clock.now_s += 60
    shown.tick()
    written = screen.pieces[-1].removesuffix("\n").split("\n")
    assert len(written) == lines
    assert written[-2].startswith(f"ssdqual dut{lines - 2:02}: raid5x4: fill 1:00 of 10:00, about ")
    assert written[-1] == f"ssdqual: and {101 - lines} bays more, about 2:38:00 left in all"
    clock.now_s += 60
    shown.tick()
    assert screen.pieces[-1].count(UP) == (lines - 1 if terminal else 0)


def test_in_a_log_the_plan_of_a_worker_and_verdicts_are_lines(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=False, clock=clock)
    plan = Planned(1000, lines=("ssdqual: the plan for 3 drives", "  raid5x3"))
    shown.take(plan, "gw0")
    shown.take(plan, "gw1")
    shown.take(Planned(1000), "gw2")
    shown.say("steady IOPS of raid5x3: 891 IOPS")
    assert screen.pieces == [
        "ssdqual: the plan for 3 drives\n  raid5x3\n",
        "ssdqual: steady IOPS of raid5x3: 891 IOPS\n",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_after_the_end_nothing_is_printed(screen: Screen, clock: ProgressClock, terminal: bool) -> None:
    shown = Progress(screen, terminal=terminal, clock=clock)
    shown.take(Begun("one", 100))
    shown.finish()
    written = list(screen.pieces)
    clock.now_s += 100
    shown.take(Begun("two", 100))
    shown.tick()
    shown.say("late")
    assert screen.pieces == written


def test_the_time_left_is_a_range_of_least_and_most(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock, width=lambda: 200)
    shown.take(Planned(3600.0, ("raid5x4",), (0.0,), most_s=7200.0))
    shown.take(Begun("raid5x4: fill", 3600.0))
    assert "1:00:00 to 2:00:00 left in all" in screen.pieces[-1]
    clock.now_s += 1800
    shown.tick()
    assert "30:00 to 1:30:00 left in all" in screen.pieces[-1]
    clock.now_s += 3600
    shown.tick()
    assert "at most 30:00 left in all" in screen.pieces[-1]
    clock.now_s += 3600
    shown.tick()
    assert "longer than planned in all" in screen.pieces[-1]


def test_a_plan_without_a_range_has_one_time_left(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=True, clock=clock, width=lambda: 200)
    shown.take(Planned(3600.0, ("raid5x4",), (0.0,), most_s=3600.0))
    shown.take(Begun("raid5x4: fill", 3600.0))
    assert "about 1:00:00 left in all" in screen.pieces[-1]


SIDE_BY_SIDE = LoadBegun("measure", "drivex3", "randread_4k_qd8", ("S1", "S2", "S3"))


@pytest.mark.parametrize("terminal", [True, False])
def test_gauges_of_the_drives_are_a_line_of_their_own(screen: Screen, clock: ProgressClock, *, terminal: bool) -> None:
    shown = Progress(screen, terminal=terminal, clock=clock, width=lambda: 200, has_gauges=True)
    shown.take(Begun("drivex3: randread_4k_qd8", 60.0))
    shown.take(SIDE_BY_SIDE)
    clock.now_s += 60
    shown.take(Now(1.0, (1000.0, 400.0, 800.0), 0))
    last = screen.pieces[-1].rstrip("\n").splitlines()
    assert last[-1].split() == ["█▄▇", "slowest", "S2:", "400", "IOPS,", "fastest", "1,000", "IOPS"]
    shown.take(LoadBegun("measure", "raid5x3", "randread_4k_qd8", ("md100",)))
    clock.now_s += 60
    shown.take(Now(1.0, (1000.0,), 0))
    assert "slowest" not in screen.pieces[-1]


def test_gauges_are_shown_on_request_and_not_of_several_bays(screen: Screen, clock: ProgressClock) -> None:
    for bays, has_gauges in ((("",), False), (("dut1", "dut2"), True)):
        shown = Progress(screen, terminal=True, clock=clock, width=lambda: 200, has_gauges=has_gauges)
        for bay in bays:
            shown.take(Begun("drivex3: randread_4k_qd8", 60.0), bay)
        for bay in bays:
            shown.take(SIDE_BY_SIDE, bay)
            clock.now_s += 1
            shown.take(Now(1.0, (1000.0, 400.0, 800.0), 0), bay)
    assert "2,200 IOPS" in screen.pieces[-1]
    assert not any("slowest" in piece for piece in screen.pieces)


def test_in_a_log_the_first_rate_does_not_wait_for_a_minute(screen: Screen, clock: ProgressClock) -> None:
    shown = Progress(screen, terminal=False, clock=clock)
    shown.take(Begun("raid5x4: fill", 3600.0))
    for rate in (0.0, 500.0, 600.0):
        clock.now_s += 5
        shown.take(Now(1.0, (rate,), 0))
    assert [piece for piece in screen.pieces if "IOPS" in piece] == [
        "ssdqual: raid5x4: fill 0:10 of 1:00:00, 500 IOPS\n"
    ]
