from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.documents import golden

from pytest_ssdqual.qual.lots import lot
from pytest_ssdqual.qual.lots.lot import LotVerdict
from pytest_ssdqual.qual.lots.sampling_plan import POINTS_PERCENT, ByAttributes, ByVariables, indexed_by_aql
from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import judge
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import About, Evidence, of_verdict
from pytest_ssdqual.report.evidence.lots import figures, remarks, standing_out
from pytest_ssdqual.report.terminal.summary import table
from pytest_ssdqual.report.view.sections import conclusions

READS = Workload("randread", "4k", 32)
LIMIT = Limit(Direction.AT_LEAST, 9_000, Unit.IOPS, "acme.toml promise[0]")
PLAN = indexed_by_aql(40, "II", 1.5)
BY_VARIABLES = ByVariables(8, 1.74, "by the s-method of ISO 3951, as agreed", lot=40)
ALIKE = [9_480.0, 9_350.0, 9_610.0, 9_550.0, 9_420.0, 9_500.0, 9_700.0, 9_440.0]


def judged(plan: ByAttributes | ByVariables, iops: Sequence[float], half_width: float = 50) -> LotVerdict:
    geometry = Geometry.parse(f"drivex{len(iops)}")
    verdicts = [
        judge(
            Claim.STEADY_IOPS,
            Subject((geometry,), (READS,), f"S{number}"),
            Estimate(each, each - half_width, each + half_width, 5, Unit.IOPS),
            LIMIT,
        )
        for number, each in enumerate(iops)
    ]
    return lot.judge(Claim.STEADY_IOPS, plan, verdicts)


def evidence(verdict: LotVerdict, workload: str = "randread_4k_qd32") -> Evidence:
    found = replace(of_verdict(verdict), figures=figures(verdict))
    told = remarks(verdict, len(verdict.drives))
    return replace(found, about=About.LOT, group="steady_iops", remarks=told, workloads=(workload,))


def test_the_operating_characteristic_is_in_the_figures() -> None:
    found = dict(figures(judged(PLAN, [8_000, *ALIKE[1:]])))
    assert (found["lot_size"], found["sample_size"], found["acceptance_number"]) == (40, 8, 0)
    assert (found["nonconforming_drives"], found["undecided_drives"], found["aql_percent"]) == (1, 0, 1.5)
    assert found["acceptability_constant"] is None
    curve = [found[f"accepts_at_{each:g}_percent"] for each in POINTS_PERCENT]
    assert curve == [pytest.approx(100 * 0.01**0 * (1 - each / 100) ** 8) for each in POINTS_PERCENT]
    assert found["rejects_at_aql_percent"] == pytest.approx(100 * (1 - 0.985**8))
    # 10 of 40 bad: C(30, 8)/C(40, 8) = 7.6 %, of 9 it would be 10.3 %.
    assert found["limiting_quality_percent"] == 25
    assert found["normality_p_value"] is None
    assert found["grubbs_p_value"] is not None


def test_by_variables_with_how_normal_the_drives_are() -> None:
    found = dict(figures(judged(BY_VARIABLES, ALIKE)))
    assert (found["acceptance_number"], found["acceptability_constant"]) == (None, 1.74)
    assert 0.05 < (found["normality_p_value"] or 0) <= 1
    assert (found["aql_percent"], found["rejects_at_aql_percent"]) == (None, None)
    assert 0 < (found["bad_at_most_percent"] or 0) < (found["limiting_quality_percent"] or 0)


def test_even_drives_far_inside_the_limit_have_figures() -> None:
    """Q = 60: at no fraction above 1e-9 would a process give such a sample in one case of ten."""
    verdict = judged(BY_VARIABLES, [2 * each for each in ALIKE])
    assert verdict
    assert 0 < (dict(figures(verdict))["bad_at_most_percent"] or 0) < min(POINTS_PERCENT)
    assert any("less than 0.1 %" in each for each in remarks(verdict, 8))


def test_drives_far_beyond_the_limit_have_figures() -> None:
    verdict = judged(BY_VARIABLES, [each / 2 for each in ALIKE])
    assert not verdict
    assert dict(figures(verdict))["bad_at_most_percent"] == pytest.approx(100)


def test_what_is_said_beside_the_verdict() -> None:
    slow = remarks(judged(PLAN, [8_000, *ALIKE[1:]]), 8)
    noisy = remarks(judged(BY_VARIABLES, ALIKE, half_width=60), 8)
    golden.same("lots.txt", [*remarks(judged(PLAN, ALIKE), measured=10), slow[-1], noisy[-1]])
    assert len(remarks(judged(BY_VARIABLES, ALIKE, half_width=10), 8)) == 2


def test_a_drive_is_only_named_if_chance_would_hardly_do_it() -> None:
    told, nothing = standing_out({f"S{number}": each for number, each in enumerate(ALIKE)})
    assert nothing == ""
    assert list(told) == ["grubbs_statistic", "grubbs_p_value"]
    _, sentence = standing_out({"A": 300, "B": 300, "C": 300, "D": 150})
    golden.same("lots.txt", [sentence])
    assert standing_out({"A": 300, "B": 150}) == ({}, "")


def test_every_lot_has_its_sentence_and_the_plan_is_told_once() -> None:
    accepted = evidence(judged(PLAN, [9_500] * 8))
    rejected = evidence(judged(PLAN, [8_000] + [9_500] * 7), "randwrite_4k_qd32")
    lines = list(conclusions([accepted, rejected], 100))
    golden.same("lots.txt", [line.text for line in lines])
    assert {line.markup for line in lines if "REJECT" in line.text} == {("red", "bold")}
    assert list(conclusions([replace(accepted, about=About.RUN)], 100)) == []


def test_lots_are_in_no_grid_and_have_no_least_margin() -> None:
    golden.same("lots.txt", [line.text for line in table([evidence(judged(PLAN, [9_500] * 8))], 100)])
