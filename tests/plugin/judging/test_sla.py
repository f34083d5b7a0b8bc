"""``ssd_sla.judge`` on values: what is noted, what is returned, what is raised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import stdev

import pytest
from support.builders import strategies

from pytest_ssdqual.plugin.judging.evidence_builder import EvidenceBuilder, determination
from pytest_ssdqual.plugin.judging.sla import Inconclusive, Sla
from pytest_ssdqual.qual.measured.judgeable import Judgeable, LeftOutDrive
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured, Visited
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Curve, Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.combined import combine
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule
from pytest_ssdqual.qual.stats.estimate import student_t
from pytest_ssdqual.qual.verdict.multiplicity import SHARES
from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.ci.junit import properties, section
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
PRODUCT = """
[product]
name = "ACME 9"
models = []
"""


@dataclass
class JudgingBench:
    """An ``sla`` for one spec, and what came of it."""

    promises: str
    folder: Path
    inconclusive: str = "error"
    group: str = ""
    rule: VerdictRule = VerdictRule(indifference_percent=0.0)  # noqa: RUF009 (frozen)
    noted: list[Evidence] = field(default_factory=list)
    references: list[tuple[Geometry, Workload]] = field(default_factory=list)
    reference: Measured | None = None
    #: Why the measurement ended before it was decided.
    ended: str = ""

    def judge(self, claim: str, judged: Judgeable) -> Evidence:
        """What was noted; of a test that is skipped too."""
        (self.folder / "acme.toml").write_text(PRODUCT + self.promises)
        found = spec.load(self.folder / "acme.toml")
        account = EvidenceBuilder("snia", beside=found, group=self.group, rule=self.rule)
        sla = Sla(found, self.inconclusive, account, self.noted.append, self._measure, promised=[Claim(claim)],
                  ended=lambda judged: self.ended)  # fmt: skip
        try:
            sla.judge(claim, judged)
        except pytest.skip.Exception as skipped:
            self.why = str(skipped)
        (noted,) = self.noted
        return noted

    def _measure(self, geometry: Geometry, workload: Workload) -> Measured:
        self.references.append((geometry, workload))
        if self.reference is None:
            raise LookupError("nothing else was measured")
        return self.reference

    why: str = ""


@pytest.fixture
def bench(tmp_path: Path) -> JudgingBench:
    return JudgingBench("", tmp_path)


def promise(claim: str, limit: str, **more: str) -> str:
    return "\n".join(
        ["[[promise]]", f'claim = "{claim}"', limit, *(f'{key} = "{value}"' for key, value in more.items())]
    )


def side_by_side(*iops: Sequence[int], workload: Workload = READS) -> Measured:
    return Measured((strategies.side_by_side(iops, workload=workload),))


def array(*iops: int, geometry: str = "raid5x4", workload: Workload = READS) -> Measured:
    return Measured((strategies.run(iops, geometry=geometry, workload=workload),))


@pytest.mark.parametrize("lost", ["", "S1"])
def test_drives_without_a_limit_are_not_judged_by_another_sheet(bench: JudgingBench, lost: str) -> None:
    (bench.folder / "one.toml").write_text(PRODUCT)
    (bench.folder / "two.toml").write_text(PRODUCT + promise("steady_iops", 'at_least = "900 IOPS"'))
    one, two = (spec.load(bench.folder / name) for name in ("one.toml", "two.toml"))
    both = combine({"S0": one, lost or "S2": two})
    measured = side_by_side([1000] * 5) if lost else side_by_side([1000] * 5, [500] * 5)
    left_out = (LeftOutDrive(lost, 1, "has no valid figure", failed=False),) if lost else ()
    builder = EvidenceBuilder("snia", beside=one)
    sla = Sla(both, "error", builder, bench.noted.append, bench._measure, promised=[Claim.STEADY_IOPS],
              left_out=lambda judged: left_out)  # fmt: skip
    if lost:
        with pytest.raises(InvalidMeasurement, match=r"S1 .has no"):
            sla.judge(measured)
        return
    with pytest.raises(pytest.skip.Exception, match=r"500 IOPS.* S1; "):
        sla.judge(measured)
    assert [each.outcome for each in bench.noted] == [Finding.OBSERVED]


def test_every_drive_is_judged_and_the_worst_is_told(bench: JudgingBench) -> None:
    bench.promises = promise("steady_iops", 'at_least = "900 IOPS"')
    noted = bench.judge("steady_iops", side_by_side([1000] * 5, [500] * 5, [950] * 5))
    assert noted.sentence.startswith("steady IOPS of")
    assert (noted.outcome, noted.worst, noted.value) == (Finding.FAIL, "S1", 500)
    assert [(each.name, each.figures.get("value"), each.outcome) for each in noted.members] == [
        ("S0", 1000, Finding.PASS), ("S1", 500, Finding.FAIL), ("S2", 950, Finding.PASS),
    ]  # fmt: skip
    assert noted.figures["iops"] == 500


@pytest.mark.parametrize(
    ("count", "names"),
    [(2, "S2, S1"), (8, "S8, S7, S6, S5, S4, S3, S2, S1"), (12, "S12, S11, S10, S9, S8, S7, S6, S5 and 4 more")],
)
def test_judge_names_all_failed_drives_worst_first(bench: JudgingBench, count: int, names: str) -> None:
    bench.promises = promise("steady_iops", 'at_least = "900 IOPS"')
    slow = [[600 - 10 * number] * 5 for number in range(count)]
    noted = bench.judge("steady_iops", side_by_side([1000] * 5, *slow, [950] * 5))
    assert noted.sentence.endswith(f" break it: {names}")
    assert noted.worst == f"S{count}"
    broken = " ".join(f"S{number}" for number in range(1, count + 1))
    assert dict(properties([noted]))["ssd.drives_failed"] == broken
    assert f"failed by {broken}" in section([noted])


def test_judge_names_all_undecided_drives(bench: JudgingBench) -> None:
    bench.promises = promise("steady_iops", 'at_least = "900 IOPS"')
    with pytest.raises(Inconclusive, match=": S1, S2"):
        bench.judge("steady_iops", side_by_side([1000] * 5, [880, 920, 899, 901, 900], [870, 930, 900, 890, 910]))
    (noted,) = bench.noted
    assert noted.outcome is Finding.INCONCLUSIVE
    assert dict(properties([noted]))["ssd.drives_inconclusive"] == "S1 S2"


def test_judge_names_a_single_failed_drive_once(bench: JudgingBench) -> None:
    bench.promises = promise("steady_iops", 'at_least = "900 IOPS"')
    noted = bench.judge("steady_iops", side_by_side([1000] * 5, [500] * 5))
    assert noted.sentence.count("S1") == 1


def test_an_interval_is_kept_for_comparisons_as_it_is_judged(bench: JudgingBench) -> None:
    """Of the drive that is told: five rounds are no surer for the I/Os in them."""
    bench.promises = promise("steady_iops", 'at_least = "900 IOPS"')
    three = side_by_side([1000] * 5, [490, 510, 500, 505, 495], [950] * 5)
    for claim in ("steady_iops", "read_iops"):
        judged = bench.judge(claim, three)
        assert (judged.worst, len(judged.wider)) == ("S1", len(SHARES))
        for each in judged.wider:
            half = student_t(1 - 0.05 * each.share, 4) * stdev([490, 510, 500, 505, 495]) / math.sqrt(5)
            assert (each.low, each.high) == pytest.approx((500 - half, 500 + half))
        bench.noted.clear()


def test_an_observations_worst_is_on_the_side_of_a_limit(bench: JudgingBench) -> None:
    three = side_by_side([1000] * 5, [500] * 5, [2000] * 5)
    noted = bench.judge("read_iops", three)
    assert (noted.worst, noted.value, noted.outcome) == ("S1", 500, Finding.OBSERVED)
    assert "drive S1; " in bench.why
    bench.noted.clear()
    slow = bench.judge("p50_latency", three)
    assert (slow.worst, slow.claim) == ("S1", "p50_latency")  # half the IOPS are twice the latency


def test_a_single_drive_needs_no_table_of_drives(bench: JudgingBench) -> None:
    noted = bench.judge("steady_iops", side_by_side([1000] * 5))
    assert (noted.members, noted.worst) == ((), "")
    assert " drive S0 (drivex1) " in noted.sentence


def test_the_spread_of_drives_is_judged_once_with_the_slowest(bench: JudgingBench) -> None:
    bench.promises = promise("member_spread", "at_least = 0.8")
    noted = bench.judge("member_spread", side_by_side([1000] * 5, [990] * 5, [500] * 5))
    assert (noted.outcome, noted.worst, round(noted.value, 2)) == (Finding.FAIL, "S2", 0.5)
    assert [each.figures.get("iops") for each in noted.members] == [1000, 990, 500]
    assert noted.sentence.endswith(" drive S2")
    assert dict(properties([noted]))["ssd.drive"] == "S2"


def test_a_spread_of_slowest_ios_names_the_drive_that_has_them(bench: JudgingBench) -> None:
    bench.promises = promise("latency_spread_between_members", "at_most = 1.5")
    # At a fixed depth half the IOPS take twice as long.
    noted = bench.judge("latency_spread_between_members", side_by_side([1000] * 5, [500] * 5, [990] * 5))
    assert (noted.outcome, noted.worst, round(noted.value, 1)) == (Finding.FAIL, "S1", 2.0)
    assert noted.basis.endswith("1 s")
    assert noted.sentence.endswith(" drive S1")
    assert [round((each.figures.get("slowest_ns") or 0) / 1e6) for each in noted.members] == [8, 16, 8]


def test_how_often_a_maximum_was_exceeded_is_in_the_evidence(bench: JudgingBench) -> None:
    bench.promises = promise("max_latency", 'at_most = "20 ms"')
    noted = bench.judge("max_latency", side_by_side([1000] * 30, [1000, 250, 1000, 1000, 1000] * 6))
    figures = noted.figures
    assert (noted.worst, noted.outcome, noted.is_reading) == ("S1", Finding.FAIL, False)
    assert (figures["slower_ios"], figures["slower_spells"]) == (1_500, 6)
    assert 0 < (figures["slower_low_per_hour"] or 0) < (figures["slower_high_per_hour"] or 0)


def test_a_protocols_rule_reaches_the_verdict(bench: JudgingBench) -> None:
    bench.promises = promise("steady_iops", 'at_least = "1000 IOPS"')
    bench.rule, bench.inconclusive = VerdictRule(confidence=0.99, indifference_percent=5.0), "skip"
    noted = bench.judge("steady_iops", array(990, 1010, 1000, 995, 1005))
    assert noted.confidence == 0.99
    assert bench.why.partition("INCONCLUSIVE, ")[2].startswith("within 5 %")
    assert "(99 % CI " in bench.why
    bench.noted.clear()
    bench.promises = ""
    assert bench.judge("steady_iops", array(990, 1010, 1000, 995, 1005)).confidence == 0.99


def test_a_sweep_says_where_it_bends_and_which_array_is_too_fast(
    bench: JudgingBench,
) -> None:
    bench.promises = promise("scaling_deviation", 'at_most = "10 %"', level="raid0")
    widths = {2: 1.0, 3: 1.0, 4: 0.7}
    bent = bench.judge(
        "scaling_deviation",
        Sweep(tuple(array(*[round(1000 * n * x)] * 5, geometry=f"raid0x{n}") for n, x in widths.items())),
    )
    assert all(each in bent.sentence for each in ("raid0x4", "drive S3"))
    assert bent.remarks == ()
    bench.noted.clear()
    rates = {2: 2400, 3: 3000, 4: 4000}
    fast = bench.judge(
        "scaling_deviation", Sweep(tuple(array(*[rate] * 5, geometry=f"raid0x{n}") for n, rate in rates.items()))
    )
    assert fast.outcome is Finding.PASS
    (remark,) = fast.remarks
    assert remark.startswith("raid0x2 does 1.2")


def test_a_first_visit_that_is_left_out_is_said(bench: JudgingBench) -> None:
    bench.promises = promise("scaling_deviation", 'at_most = "10 %"', level="raid0")
    visited = Visited((2,), 22, 0.95, 0.01, 5.0, 0.01, 5.0, left_out="9 % below the second")
    whole = [array(*[1000 * n] * 5, geometry=f"raid0x{n}") for n in (2, 3, 4)]
    cells = [replace(run, rounds=1) for run in (*whole[0].runs, *whole[0].runs)]
    noted = bench.judge("scaling_deviation", Sweep((Measured(tuple(cells), visited), *whole[1:])))
    (remark,) = noted.remarks
    assert remark.startswith("raid0x2 randread_4k_qd8: ")
    assert remark.endswith(visited.left_out)


def test_a_relation_measures_what_it_compares_with(bench: JudgingBench) -> None:
    figure = '[[figure]]\nworkload = "randwrite_4k_qd8"\narray = "raid5x4"\niops = 400\nsource = "a paper"\n'
    bench.promises = figure + promise("steady_iops", 'at_least = "40 %"', relative_to=str(READS))
    bench.reference = array(*[1000] * 5)
    noted = bench.judge("steady_iops", array(*[300] * 5, workload=WRITES))
    assert bench.references == [(Geometry.parse("raid5x4"), READS)]
    assert (noted.outcome, noted.measured, noted.bound) == (Finding.FAIL, "30.0 %", "≥ 40.0 %")
    assert "of randread_4k_qd8" in noted.sentence
    assert noted.published is None  # ours is in per cent of something else


def test_in_a_relation_every_drive_is_held_against_itself(bench: JudgingBench) -> None:
    bench.promises = promise("steady_iops", 'at_least = "40 %"', relative_to=str(READS))
    bench.reference = side_by_side([1000] * 5, [100] * 5)
    noted = bench.judge("steady_iops", side_by_side([500] * 5, [30] * 5, workload=WRITES))
    assert [(each.name, each.figures.get("value")) for each in noted.members] == [("S0", 50), ("S1", 30)]
    assert (noted.outcome, noted.worst) == (Finding.FAIL, "S1")


def test_what_is_published_comes_from_the_sheet_of_the_account(bench: JudgingBench) -> None:
    bench.promises = """
        [[figure]]
        workload = "randread_4k_qd8"
        array = "raid5x4"
        iops = 800
        mean_latency = "40 ms"
        source = "a paper"
        approximate = true
    """
    noted = bench.judge("steady_iops", array(*[1000] * 5))
    assert noted.published is not None
    assert (str(noted.published), noted.times_published) == ("about 800 IOPS", 1.25)
    bench.noted.clear()
    series = bench.judge("qd_gain", Curve((array(*[1000] * 5), array(*[900] * 5, workload=READS.at(1)))))
    assert (series.about, series.published) == (About.CURVE, None)
    assert [(each.name, [str(one) for one in each.published]) for each in series.points] == [
        ("randread_4k_qd8", ["about 800 IOPS", "about 40 ms"]), ("randread_4k_qd1", []),
    ]  # fmt: skip
    assert series.points[0].figures["outstanding"] == 32


def test_a_sweep_is_judged_at_its_widest(bench: JudgingBench) -> None:
    bench.promises = promise("scaling_slope", "at_least = 0.9", level="raid0")
    bench.promises = bench.promises.replace("at_least", "width = 4\nat_least")
    sweep = [array(*[1000 * width] * 5, geometry=f"raid0x{width}") for width in (4, 2)]
    noted = bench.judge("scaling_slope", Sweep(tuple(sweep)))
    assert (noted.geometries, noted.outcome, noted.about) == (("raid0x2", "raid0x4"), Finding.PASS, About.SWEEP)


def test_growth_that_no_law_says_anything_about_is_not_judged(bench: JudgingBench) -> None:
    wide = Workload("randwrite", "128k", 8)
    sweep = [array(*[1000 * width] * 5, geometry=f"raid5x{width}", workload=wide) for width in (3, 4)]
    bench.promises = promise("scaling_slope", "at_least = 0.9", workload="randwrite_*", level="raid5")
    told = "random writes of 128 KiB are wider than the array's chunks of 64 KiB"
    assert bench.judge("scaling_slope", Sweep(tuple(sweep))).outcome is Finding.OBSERVED
    assert told in bench.why


def test_saturations_and_rebuilds_are_found_by_their_writes(bench: JudgingBench) -> None:
    run = strategies.run([6000] * 10 + [3000] * 30, workload=WRITES, rounds=40)
    saturation = Saturation(replace(run, window_s=40.0), 60_000 * 4096)
    bench.promises = promise("fresh_iops", 'at_least = "5,000 IOPS"', workload="randwrite_*")
    noted = bench.judge("fresh_iops", saturation)
    assert (noted.outcome, noted.about) == (Finding.PASS, About.SATURATION)
    assert set(noted.figures) >= {"fresh_iops", "cliff_capacities", "settled_iops"}
    bench.noted.clear()
    bench.promises = promise("rebuild_time", 'at_most = "1 min"', workload="randread_*", level="raid5")
    geometry = Geometry.parse("raid5x4-1rebuilding")
    rebuild = Rebuild(geometry, 90, 10**9, array(*[500] * 5, geometry=str(geometry)), mismatches=0)
    noted = bench.judge("rebuild_time", rebuild)
    assert (noted.outcome, noted.about, noted.geometries) == (Finding.FAIL, About.REBUILD, (str(geometry),))


def test_too_little_evidence_is_an_error_only_with_a_promise(bench: JudgingBench) -> None:
    few = array(10, 10, 10, 10, 10)
    bench.promises = promise("p99_latency", 'at_most = "10 s"')
    with pytest.raises(Inconclusive, match=r"p99 .*1,000 .*50"):
        bench.judge("p99_latency", few)
    bench.noted.clear()
    bench.promises = promise("p99_latency", 'at_most = "10 s"', workload="write_*")
    assert bench.judge("p99_latency", few).outcome is Finding.OBSERVED
    assert "no p99 latency" in bench.why


def test_a_tail_that_certainly_breaks_its_limit_needs_few_ios(bench: JudgingBench) -> None:
    """At 10 IOPS and a depth of 32 every I/O takes three seconds: no more I/Os are needed to know that."""
    bench.promises = promise("p99_latency", 'at_most = "1 ms"')
    assert bench.judge("p99_latency", array(10, 10, 10, 10, 10)).outcome is Finding.FAIL


def test_a_window_too_short_for_a_tail_skips_unless_it_is_broken(bench: JudgingBench) -> None:
    bench.promises = promise("max_latency", 'at_most = "1 s"')
    noted = bench.judge("max_latency", array(*[1000] * 5))
    assert noted.outcome is Finding.OBSERVED
    assert "takes 18 min" in bench.why
    bench.noted.clear()
    bench.promises = promise("max_latency", 'at_most = "1 ms"')
    assert bench.judge("max_latency", array(*[1000] * 5)).outcome is Finding.FAIL
    bench.noted.clear()
    bench.promises = promise("max_latency", 'at_most = "1 s"\ntimes_per_hour = 3600')
    assert bench.judge("max_latency", array(*[1000] * 5)).outcome is Finding.PASS


def test_a_claim_that_cannot_be_judged_is_not_the_drives_failure(bench: JudgingBench) -> None:
    with pytest.raises(InvalidMeasurement, match="mixes"):
        bench.judge("bathtub_depth", Curve((array(*[9] * 5), array(*[9] * 5, workload=WRITES))))


@pytest.mark.parametrize("policy", ["error", "skip"])
def test_what_is_not_decided_is_never_green(bench: JudgingBench, policy: str) -> None:
    bench.promises = promise("steady_iops", 'at_least = "1000 IOPS"')
    bench.inconclusive = policy
    judged = array(990, 1010, 1000, 995, 1005)
    if policy == "skip":
        bench.judge("steady_iops", judged)
        assert bench.why.endswith("the limit itself")
    else:
        with pytest.raises(Inconclusive):
            bench.judge("steady_iops", judged)
    assert [each.outcome for each in bench.noted] == [Finding.INCONCLUSIVE]


def test_what_a_budget_ended_is_no_skip(bench: JudgingBench) -> None:
    bench.inconclusive, bench.ended = "skip", "the budget ended it"
    bench.promises = promise("steady_iops", 'at_least = "1000 IOPS"')
    with pytest.raises(Inconclusive, match="budget ended it"):
        bench.judge("steady_iops", array(990, 1010, 1000, 995, 1005))


def test_judge_refuses_another_kind_of_result_first(bench: JudgingBench) -> None:
    for judged in (array(*[9] * 5), [array(*[9] * 5)], Sweep((array(*[9] * 5),))):
        with pytest.raises(pytest.UsageError, match=r"several workloads"):
            bench.judge("qd_gain", judged)  # type: ignore[arg-type]
    assert not bench.noted


def test_how_a_loop_became_steady_is_a_sentence_for_each_figure() -> None:
    loop = Rounds("rounds", (READS, WRITES), (Tracked(WRITES, "steady_iops"), Tracked(READS, "mean_latency")), "128k")
    rounds = tuple(
        tuple(
            strategies.side_by_side([[1000], [900 + 20 * index]], workload=workload, rounds=1)
            for workload in loop.workloads
        )
        for index in range(5)
    )
    result = RoundsResult(Geometry.parse("drivex2"), loop, rounds)
    writes, reads = determination(result)
    assert all(each in writes for each in ("steady IOPS", "randwrite_4k_qd8", "drive S1", "940 IOPS", "1 to 5"))
    assert all(each in reads for each in ("mean latency", "randread_4k_qd8", "drive S1"))
    alone = RoundsResult(
        Geometry.parse("raid0x2"),
        loop,
        tuple(
            tuple(strategies.run([1000], geometry="raid0x2", workload=each, rounds=1) for each in loop.workloads)
            for _ in range(6)
        ),
    )
    assert [line.split(":")[0].rpartition(" ")[2] for line in determination(alone)] == [str(WRITES), str(READS)]


def test_what_visits_did_not_decide_is_undecided_and_not_skipped(bench: JudgingBench) -> None:
    bench.promises = promise("max_latency", 'at_most = "1 s"')
    visited = Visited((1,), 1, 0.95, 0.01, 5.0, 0.01, 5.0)
    with pytest.raises(Inconclusive):
        bench.judge("max_latency", replace(array(*[1000] * 5), visited=visited))
