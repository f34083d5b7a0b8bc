"""Simulated suites by the protocol ``acceptance``: what they take, and that the tables can show an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import suite_hours
from simulated_suite import FELT, MODELS, Arrays, Suite, default_matrix, paper_matrix
from suite_hours import GROUPS, ODD, SCENARIOS, Ran, by_kind, hours, of_group, percent, runs, tables

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.verdict.verdict import Outcome
from pytest_ssdqual.qual.workload.workload import Workload

PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
SETTINGS = protocol.load("acceptance")
SUITE = Suite("raid5", default_matrix(), MODELS["sata"], SETTINGS)
NARROW, WIDE = (Geometry.parse(f"raid5x{width}") for width in (3, 8))
WRITES, READS = Workload("randwrite", "4k", 8), Workload("randread", "4k", 8)


def ran(kind: str = "real", scenario: str = "+10%", outcomes: tuple[Outcome, ...] = (PASS,), took: float = 6) -> Ran:
    return Ran("raid5", kind, False, scenario, took, 2.0, 4.0, outcomes, (PASS,))


def test_matrices_have_the_points_of_their_suites() -> None:
    assert len(default_matrix()) == 32
    assert {workload.qd_per_drive for geometry, workload in default_matrix() if geometry.width == 5} == {8}
    assert len(paper_matrix()) == 96
    assert set(default_matrix()) < set(paper_matrix())
    assert {round(100 * workload.read_fraction) for _, workload in paper_matrix()} == set(FELT)


@pytest.fixture(scope="module")
def simulated() -> dict[str, Ran]:
    return {each.scenario: each for each in runs(SUITE, SCENARIOS, ("real", False, 0))}


def test_good_drives_pass_in_two_visits_and_bad_ones_fail(simulated: dict[str, Ran]) -> None:
    good, bad = simulated["+10%"], simulated["-5%"]
    assert set(good.outcomes) == {PASS}
    assert set(bad.outcomes) == {FAIL}
    assert len(good.outcomes) == 32
    assert set(good.sweeps) == {PASS}
    assert len(good.sweeps) == 8, "slope and deviation of the four mixes at QD 8"
    assert PASS not in simulated["-2%"].outcomes
    assert simulated["+20%"].hours <= good.hours <= simulated["+5%"].hours


def test_hours_are_those_of_fill_conditioning_and_cells() -> None:
    assert SETTINGS.visits
    rule = replace(SETTINGS.visits, cells=SETTINGS.visits.cells[:2])
    twice = replace(SUITE, protocol=replace(SETTINGS, visits=rule))
    (one,) = runs(twice, [each for each in SCENARIOS if each.name == "+20%"], ("real", False, 0))
    cells_s = sum(rule.cells) * 32 * (rule.cell_s + rule.ramp_s + 3.5)
    arrays_s = 2 * 6 * (rule.refresh_s + 20)
    fill_s = SUITE.model.drive_bytes / SUITE.model.sequential_write_bytes_per_s
    without_s = 3600 * (one.hours - one.conditioned_hours) - cells_s - arrays_s - fill_s
    assert without_s == pytest.approx(SUITE.members_s(), abs=1)
    assert one.drive_writes > SETTINGS.fill.passes + SETTINGS.precondition.capacities


def test_a_bad_point_among_good_ones_is_not_accepted(simulated: dict[str, Ran]) -> None:
    for name in ODD:
        assert len(simulated[name].outcomes) == 1
        assert simulated[name].outcomes != (PASS,)
    assert simulated[ODD[1]].hours > simulated["+10%"].hours


def test_a_run_ends_after_the_last_cells_with_what_is_undecided() -> None:
    assert SETTINGS.visits
    short = replace(SUITE, protocol=replace(SETTINGS, visits=replace(SETTINGS.visits, cells=(1, 1))))
    (at_limit,) = runs(short, [SCENARIOS[2]], ("slowgc", True, 0))
    assert OPEN in at_limit.outcomes
    assert PASS not in at_limit.outcomes


def test_arrays_are_as_slow_as_their_members_and_mixes_feel_less() -> None:
    rates = np.ones((8, 720))
    rates[7, 360:] = 0.5
    arrays = Arrays.of(rates, is_late=False)

    def change(geometry: Geometry, workload: Workload) -> float:
        early, late = (arrays.cell((geometry, workload), at_s, 5, 60)[-1] for at_s in (600.0, 2400.0))
        return late / early - 1

    assert change(NARROW, WRITES) == pytest.approx(0)
    assert change(WIDE, WRITES) < -0.15
    # At QD 1 there is no queue at the slowest one.
    assert change(WIDE, WRITES) < change(WIDE, WRITES.at(1)) < -0.1
    assert change(WIDE, READS) == pytest.approx(FELT[100] * change(WIDE, WRITES), rel=0.2)


def test_late_drives_are_judged_by_what_they_come_to() -> None:
    rates = np.ones((8, 900))
    rates[:, :300] = 1.1
    early, late = (Arrays.of(rates, is_late=True).cell((WIDE, WRITES), at_s, 5, 60)[-1] for at_s in (600.0, 4000.0))
    assert early == pytest.approx(1.1)
    assert late == pytest.approx(1)


def test_tables_have_the_mean_over_kinds_and_the_worst_one() -> None:
    found = [ran(took=6), ran("flat", took=8, outcomes=(PASS, FAIL, OPEN, PASS)), ran("flat", took=12)]
    assert by_kind(found, hours) == (8, 10, "flat")
    assert percent(found[1:2], FAIL) == 25
    assert [each.kind for each in of_group(found, "real-like")] == ["real"]
    text = "\n".join(tables(found, [SCENARIOS[5]]))
    assert "8.0 (10.0 flat)" in text
    assert "20.00 (20.0 flat)" in text
    assert set(GROUPS) <= {line.split(" | ")[0].strip("| ") for line in text.splitlines()}


def test_the_quick_bench_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["suite_hours.py", "--quick"])
    monkeypatch.setattr(suite_hours, "SCENARIOS", SCENARIOS[5:6])
    suite_hours.main()
    assert "| real-like |" in capsys.readouterr().out
