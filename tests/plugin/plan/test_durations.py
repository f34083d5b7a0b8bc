from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from pytest_ssdqual.plugin.plan import durations, rates
from pytest_ssdqual.plugin.plan.durations import Durations
from pytest_ssdqual.plugin.plan.stopping import ClaimsByMeasurement, Promises
from pytest_ssdqual.qual.forecast import simulated_drive
from pytest_ssdqual.qual.forecast.duration import Asked
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats.group_sequential import Side
from pytest_ssdqual.qual.workload.workload import Workload

READS, WRITES = Workload("randread", "4k", 32), Workload("randwrite", "4k", 8)
DRIVES, RAID5X8 = Geometry.parse("drivex8"), Geometry.parse("raid5x8")
SHEET, OURS = spec.load("intel-dc-s3500-800gb"), protocol.load("sequential")


def of(*claims: Claim, array: Geometry = DRIVES, workload: Workload = READS) -> tuple[Durations, frozenset[Asked]]:
    asked: ClaimsByMeasurement = {(array, workload): frozenset(claims)}
    found = Durations(Promises(SHEET, OURS, asked))
    return found, found.asked(array, workload, SequentialRule())


def test_the_margin_is_what_is_published_over_its_limit() -> None:
    found, asked = of(Claim.STEADY_IOPS)
    assert asked == {Asked(Claim.STEADY_IOPS, round(1 / 0.9, 3))}
    assert not found.assumed


def test_means_are_as_precise_as_rates_and_tails_are_not() -> None:
    _, asked = of(Claim.MEAN_LATENCY, array=RAID5X8, workload=WRITES)
    assert asked == {Asked(Claim.STEADY_IOPS, 1.11)}
    found, asked = of(Claim.P99_LATENCY, array=RAID5X8, workload=WRITES)
    assert asked == {Asked(Claim.P99_LATENCY, durations.LATENCY_MARGINS[0])}
    (assumed,) = found.assumptions()
    assert assumed == "p99 latency 1.4 to 4 times better than its limit, as no figure is known (1 limit)"


def test_simulated_runs_differ_in_what_is_not_known() -> None:
    looks = replace(OURS.sequential or SequentialRule(), growth=2.0)
    simulated, _ = of(Claim.P99_LATENCY, array=RAID5X8, workload=WRITES)
    numbers = range(durations.ASSUMPTIONS)
    asked = [simulated.asked(RAID5X8, WRITES, looks, number) for number in numbers]
    assert asked == [{Asked(Claim.P99_LATENCY, margin)} for margin in durations.LATENCY_MARGINS]
    sample, kinds = simulated.sequential(RAID5X8, WRITES, looks), len(simulated_drive.KINDS)
    # Runs on drives of the same kinds, by their assumption: near a limit a verdict takes longer.
    near, *_, far = (
        fmean(sample[run] for run in range(durations.RUNS) if run // kinds % durations.ASSUMPTIONS == number)
        for number in numbers
    )
    assert near > far


def test_known_figures_are_not_varied() -> None:
    found, asked = of(Claim.STEADY_IOPS)
    assert all(found.asked(DRIVES, READS, SequentialRule(), number) == asked for number in range(durations.ASSUMPTIONS))


def test_a_sweep_needs_precise_figures_and_extremes_need_their_time() -> None:
    _, asked = of(Claim.STEADY_IOPS, Claim.SCALING_SLOPE, array=RAID5X8, workload=READS)
    assert Asked(precision_percent=3.0, precision_side=Side.BELOW) in asked
    _, asked = of(Claim.LATENCY_SPREAD_BETWEEN_MEMBERS)
    assert Asked(Claim.MAX_LATENCY, durations.MOST_MARGIN) in asked


def test_a_baseline_comes_before_the_sheet() -> None:
    asked = {(DRIVES, READS): frozenset({Claim.STEADY_IOPS})}
    found = Durations(Promises(SHEET, OURS, asked), earlier=lambda geometry, workload: 68_850.0)
    assert found.asked(DRIVES, READS, SequentialRule()) == {Asked(Claim.STEADY_IOPS, 1.02)}


def test_of_drives_side_by_side_the_last_one_counts() -> None:
    looks = OURS.sequential
    assert looks
    looks = replace(looks, growth=2.0)
    asked = {(each, READS): frozenset({Claim.STEADY_IOPS}) for each in (DRIVES, Geometry.parse("drivex1"))}
    means = [
        sum(Durations(Promises(SHEET, OURS, asked)).sequential(each, READS, looks)) / durations.RUNS
        for each in (DRIVES, Geometry.parse("drivex1"))
    ]
    assert means[0] > 1.2 * means[1]


def test_quantiles_and_sums() -> None:
    values = tuple(map(float, range(1, 101)))
    assert [durations.quantile(values, share) for share in (0.05, 0.5, 0.95, 1.0)] == [5, 50, 95, 100]
    assert durations.summed([(1.0,) * durations.RUNS, (2.0,) * durations.RUNS]) == (3.0,) * durations.RUNS
    assert durations.summed([]) == (0.0,) * durations.RUNS


@pytest.mark.parametrize(
    ("array", "workload", "least", "most"),
    [
        (DRIVES, Workload("randwrite", "4k", 8), 199_999, 200_001),
        # At a low depth a drive is bound by its latency.
        (DRIVES, Workload("randread", "4k", 1), 12_499, 12_501),
        # Two reads and two writes of members.
        (RAID5X8, Workload("randwrite", "4k", 8), 200_000, 800_000),
    ],
    ids=str,
)
def test_rates_of_other_depths_are_used_for_costs(
    array: Geometry, workload: Workload, least: float, most: float
) -> None:
    found = rates.nearest(spec.load("samsung-pm9a3-7t68"), array, workload)
    assert found
    assert least <= found <= most


def test_without_a_figure_there_is_no_rate() -> None:
    assert rates.nearest(spec.default(), DRIVES, WRITES) is None
    assert rates.nearest(SHEET, DRIVES, Workload("write", "128k", 8)) is None
    assert rates.nearest(SHEET, Geometry.parse("raid5x4-1rebuilding"), WRITES) is None
