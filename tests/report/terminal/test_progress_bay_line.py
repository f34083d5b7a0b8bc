from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents import golden

from pytest_ssdqual.qual.progress_events import (
    BayProgress,
    Begun,
    Idle,
    LoadBegun,
    Now,
    Planned,
    ProgressStep,
    Steadiness,
)
from pytest_ssdqual.report.terminal.progress import line, passed

LOAD = LoadBegun("precondition", "raid5x4", "randwrite_4k_qd8", ("raid5x4",))
BUSY = BayProgress(
    step=ProgressStep("raid5x4: precondition with randwrite_4k_qd8", 720, 0),
    load=LOAD,
    steadiness=Steadiness(False, "not steady"),
).after(Now(75, (41_200.4,), 1_234_000_000_000, 3, 25), 75)


def test_a_line_says_what_how_it_does_and_how_long_still() -> None:
    named = line(BayProgress("gw1", ProgressStep("raid5x4: fill", 0, 0)), 3725, None, None)
    golden.same("progress.txt", [line(BUSY, 75, 15000, None), named])


def test_what_matters_least_is_cut_first() -> None:
    golden.same("progress.txt", [line(BUSY, 75, 15000, width) for width in (200, 160, 144, 115, 90, 78, 40)])


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200), st.integers(20, 200))
def test_a_line_never_wraps(what: str, width: int) -> None:
    assert len(line(BayProgress(step=ProgressStep(what, 60, 0), now=BUSY.now), 1, 7200, width)) < width


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert "\x1b" not in line(BayProgress(step=ProgressStep("fill \x1b[2J", 0, 0)), 1, None, None)


def test_another_step_takes_findings_of_the_last_one_with_it() -> None:
    assert BUSY.step
    again = BUSY.after(Begun(BUSY.step.what, 720), 80).after(LOAD, 80)
    assert (again.now, again.steadiness) == (None, BUSY.steadiness)
    assert BUSY.after(Begun("raid5x8: purge", 5), 80).steadiness is None
    assert BUSY.after(Idle(), 80).steadiness == BUSY.steadiness


def test_time_that_is_left_counts_steps_as_planned() -> None:
    bay = BayProgress().after(Planned(1000), 0).after(Begun("one", 100), 0)
    assert bay.left_s(40) == 960
    assert bay.left_s(4000) == 900
    bay = bay.after(Begun("nobody knows", 0), 150)
    assert bay.left_s(160) == 890
    bay = bay.after(Idle(), 170)
    assert bay.left_s(170) is None
    assert bay.after(Begun("two", 10), 180).left_s(180) == 900


def test_the_next_array_drops_the_unused_time_of_the_last() -> None:
    plan = Planned(1000, ("drivex4", "raid0x2", "raid1x2"), (0, 500, 700))
    bay = BayProgress().after(plan, 0).after(Begun("drivex4: purge", 5), 0)
    assert bay.left_s(5) == 995
    bay = bay.after(Begun("drivex4: snia-iops", 300), 10)  # and that failed at once
    bay = bay.after(Idle(), 20).after(Begun("raid0x2: purge", 5), 30)
    # Arrays that fail at once do not make the others faster than by a fifth.
    assert bay.left_s(30) == pytest.approx(0.8 * 500)
    bay = bay.after(Begun("raid0x2: randread_4k_qd8", 100), 35)
    assert bay.left_s(35) == pytest.approx(0.8 * 495)
    # Its members, and what it becomes, are no other array.
    bay = bay.after(Begun("raid1x2: fill", 0), 40).after(Begun("raid1x2-1failed: randread_4k_qd8", 60), 90)
    assert bay.left_s(90) == pytest.approx(0.8 * 250)
    # One that comes again without a plan, or was not planned, begins nothing.
    assert bay.after(Begun("raid0x2: purge", 5), 150).left_s(150) == pytest.approx(0.8 * 190)
    assert bay.after(Begun("raid6x4: purge", 5), 150).left_s(150) == pytest.approx(0.8 * 190)


def test_what_is_left_is_at_the_pace_of_what_is_done() -> None:
    plan = Planned(2160, ("drivex4", "raid0x2", "raid1x2"), (0, 540, 1080))
    bay = BayProgress().after(plan, 0).after(Begun("drivex4: purge", 5), 100)
    assert (bay.left_s(100), bay.share_done(100)) == (2160, None)
    bay = bay.after(Begun("raid0x2: purge", 5), 100 + 840)  # 840 s instead of 540 s: (840 + 60) / (540 + 60)
    assert bay.left_s(940) == pytest.approx(1.5 * 1620)
    assert bay.share_done(940) == pytest.approx(840 / (840 + 2430))
    assert line(bay, 940, bay.left_s(940), None).endswith("about 40:30 left in all (26% done)")
    bay = bay.after(Begun("raid1x2: purge", 5), 100 + 840 + 300)
    assert bay.left_s(1240) == pytest.approx((1140 + 60) / (1080 + 60) * 1080)


@pytest.mark.parametrize(
    ("elapsed_s", "expected_s", "told"),
    [(3, 5, "0:03 of 0:05"), (5.9, 5, "0:05 of 0:05"), (6, 5, "0:06 (planned: 0:05)"), (6, 5.1, "0:06 of 0:05"),
     (7200, 5, "2:00:00 (planned: 0:05)"), (61, 0, "1:01"), (61, float("inf"), "1:01")],
)  # fmt: skip
def test_what_takes_longer_than_planned_says_so(elapsed_s: float, expected_s: float, told: str) -> None:
    assert passed(elapsed_s, expected_s) == told


def test_rounds_that_all_come_are_not_at_most() -> None:
    busy = BayProgress(step=ProgressStep("one", 60, 0)).after(
        LoadBegun("measure", "raid5x4", "w", ("raid5x4",), 1, 5, exact=True), 0
    )
    assert line(busy, 1, None, None) == "ssdqual: one 0:01 of 1:00, round 1 of 5"
    assert "round 5 of 5, 7 IOPS" in line(busy.after(Now(9, (7.0,), 0, 5, 5, exact=True), 9), 9, None, None)
    # What is done next is none of these rounds.
    assert "round" not in line(busy.after(Begun("two", 60), 60), 61, None, None)


def test_how_steady_it_is_can_be_a_figure() -> None:
    busy = BUSY.after(Steadiness(False, "a sentence", "not steady yet: range 34.0 % (20 % allowed)"), 80)
    assert ", not steady yet: range 34.0 % (20 % allowed), 1.23 TB written" in line(busy, 80, None, None)


def test_what_was_written_is_not_forgotten_with_the_next_load() -> None:
    again = BUSY.after(Begun("raid5x4: fill", 0), 80).after(LOAD, 80)
    assert line(again, 81, None, None) == "ssdqual: raid5x4: fill 0:01, 1.23 TB written"
    assert again.after(Now(1, (1.0,), 0), 82).bytes_written == 1_234_000_000_000


def test_a_plan_that_is_used_up_leaves_no_second() -> None:
    bay = BayProgress().after(Planned(100), 0).after(Begun("one", 150), 0)
    assert line(bay, 120, bay.left_s(120), None).endswith(", longer than planned in all")
    assert BayProgress().after(Planned(float("inf")), 0).after(Begun("one", 1), 0).left_s(1) is None


def test_only_what_has_begun_something_has_worked() -> None:
    assert not BayProgress().after(Planned(9), 0).has_worked
    assert BayProgress().after(Begun("one", 1), 0).after(Idle(), 1).has_worked
