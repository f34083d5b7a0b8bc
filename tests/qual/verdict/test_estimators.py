from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import histogram, interval, run, seen, seen_drive, side_by_side, visited

from pytest_ssdqual.qual.measured.environment import MediaCount, Traffic
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Curve, PredictedRun, Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry, expected_iops
from pytest_ssdqual.qual.spec.claims import OF_LATENCY, Claim, Scope
from pytest_ssdqual.qual.stats import spread
from pytest_ssdqual.qual.stats.estimate import CannotJudge, Estimate, NotApplicable, TooFew
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict.estimators import (
    estimate,
    found_in,
    of_scaling,
    slowest_member,
)
from pytest_ssdqual.qual.workload.workload import Replay, Workload

WRITE = Workload("randwrite", "4k", 8)


def measured(rates: list[int], geometry: str = "drivex1", workload: Workload | None = None) -> Measured:
    return Measured((run(rates, geometry=geometry, workload=workload),))


def lawful(geometry: str, share: float = 1.0, workload: Workload = WRITE) -> Measured:
    """An array that does ``share`` of what the law of its level gives it, of drives of 10,000 IOPS."""
    rate = expected_iops(Geometry.parse(geometry), workload.read_fraction, 10_000, 10_000) * share
    return measured([round(rate * factor) for factor in (0.99, 1.01, 1.0, 1.01, 0.99)], geometry, workload)


@pytest.mark.parametrize(
    ("shares", "best", "gain"),
    [
        ({"": 1.0, "-s256": 0.6, "-s32768": 1.2}, "s32768", 1.2),
        ({"": 1.0, "-s256": 0.6}, "as the protocol", 1.0),
    ],
)
def test_gain_of_the_best_settings_of_md(shares: Mapping[str, float], best: str, gain: float) -> None:
    sweep = Sweep(tuple(lawful(f"raid5x4{settings}", share) for settings, share in shares.items()))
    found = estimate(Claim.SETTINGS_GAIN, sweep)
    assert found.value == pytest.approx(gain, rel=1e-3)
    assert found.low < found.value < found.high
    assert best in found.basis


def test_latency_at_a_rate_is_between_real_and_intended_starts() -> None:
    """A job that begins an I/O each ms waits 100 ms for one in a thousand: a tenth begin late, and fio counts one."""
    slow = replace(run([1000] * 5), workload=Workload("randread", "4k", 1, rate_iops=1000))
    found = LatencyHistogram.from_bins({100_000: 999, 100_000_000: 1})
    slow = replace(slow, intervals=tuple(replace(each, read_latency=found) for each in slow.intervals))
    rated, closed = Measured((slow,)), Measured((replace(slow, workload=Workload("randread", "4k", 1)),))
    for claim in (Claim.P99_LATENCY, Claim.MEAN_LATENCY):
        by_fio, estimated = estimate(claim, closed), estimate(claim, rated)
        assert estimated.value > 5 * by_fio.value
        assert estimated.low == by_fio.low
        assert estimated.high > estimated.value > by_fio.high


@pytest.mark.parametrize("arrays", [("raid5x4-s256", "raid5x4-s512"), ("raid5x4", "raid5x5-s256"), ("raid5x4",)])
def test_settings_are_compared_with_those_of_the_protocol(arrays: Sequence[str]) -> None:
    with pytest.raises(NotApplicable):
        estimate(Claim.SETTINGS_GAIN, Sweep(tuple(map(lawful, arrays))))


def test_arrays_with_other_settings_are_no_widths() -> None:
    with pytest.raises(NotApplicable):
        estimate(Claim.SCALING_SLOPE, Sweep((lawful("raid5x3"), lawful("raid5x4-s256"))))


def curve(measurements: Iterable[Measured]) -> Curve:
    return Curve(tuple(measurements))


MIX = Workload("randrw", "4k", 8, 50)
REBUILD = Rebuild(
    Geometry.parse("raid5x4-1rebuilding"), 100.0, 10**10, measured([1_000] * 5, "raid5x4-1rebuilding"), mismatches=0
)
SATURATION = Saturation(run([2_700] * 20 + [170] * 60, workload=WRITE, rounds=80), 10**8)
READS = Workload("randread", "4k", 8)
MIXES = curve(measured([rate] * 5, workload=each) for each, rate in ((MIX, 4_000), (WRITE, 3_000), (READS, 9_000)))
DEPTHS = curve(measured([rate] * 5, workload=WRITE.at(depth)) for depth, rate in ((1, 1_000), (4, 3_000), (8, 3_100)))
OFFSETS = curve(
    measured([rate] * 5, workload=replace(WRITE, offset=offset)) for offset, rate in (("0", 5_000), ("512", 2_000))
)
#: 1,000 reads a second alone, 250 beside as many writes.
BESIDE = Workload("randread", "4k", 8, beside="write_4k_qd8")
NEIGHBOURS = curve((measured([500] * 5, workload=BESIDE), measured([1_000] * 5, workload=READS)))
#: Writes to three quarters of the range, and to all of it.
SPARED = curve(
    (measured([1_500] * 5, workload=replace(WRITE, region_percent=75)), measured([1_000] * 5, workload=WRITE))
)
#: Eleven seconds around a drive of 41 °C that was not throttled.
COOL = seen([seen_drive("S0", None, None)])
MANY = Measured((replace(run([400_000] * 5, workload=MIX), seen=COOL),))
#: Two members, one of which was written to a quarter more.
COUNTED = [seen_drive(f"S{each}", Traffic(0, ios, 0, 4096 * ios), None) for each, ios in enumerate((10_000, 8_000))]
WORN = Measured((replace(run([9_000] * 5, geometry="raid0x2", workload=WRITE), seen=seen(COUNTED)),))
#: Drives that keep a rate of 1,000 I/Os a second.
RATED = Measured((replace(run([1_000] * 5), workload=Workload("randread", "4k", 8, rate_iops=1000)),))
#: Two replays of a trace whose I/Os were due in four fifths of their time.
ONCE = run([1_000] * 5)
NIGHT = Replay("0" * 64, 200, ONCE.ios, 1.6 * ONCE.seconds, 4096, 0)
REPLAYED = Measured((replace(ONCE, workload=replace(ONCE.workload, threads=8, replay=NIGHT)),) * 2)
#: Each member wrote three bytes to flash for each one that it got.
AMPLIFIED = Measured(
    (
        replace(
            WORN.runs[0],
            seen=seen(
                [
                    replace(each, media=MediaCount(3 * each.device.counted.write_bytes))
                    for each in COUNTED
                    if each.device.counted
                ]
            ),
        ),
    )
)
#: Something of each kind that every claim of a scope can be judged on.
ONE_DRIVE = Estimate(100_000, 99_000, 101_000, 5, Unit.IOPS)
EVIDENCE: dict[Scope, list[Judgeable]] = {
    Scope.RUN: [MANY],
    Scope.PREDICTED: [PredictedRun(MANY, Estimate(500_000, 490_000, 510_000, 5, Unit.IOPS), ONE_DRIVE)],
    Scope.MEMBERS: [Measured((side_by_side([[1_000] * 5, [600] * 5, [1_010] * 5]),))],
    Scope.SWEEP: [Sweep((lawful("raid5x6"), lawful("raid5x8")))],
    Scope.CURVE: [MIXES, DEPTHS, OFFSETS, NEIGHBOURS],
    Scope.SATURATION: [SATURATION],
    Scope.REBUILD: [REBUILD],
}
#: Figures that buckets of latencies or rounded rates blur: 8 outstanding at 400,000 IOPS are 20 µs, by Little's law.
BLURRED = {
    **{claim: 20_000 for claim in Claim if claim.label.endswith("latency")},
    Claim.LATENCY_SPREAD_OVER_TIME: 1,
    # Writes of a RAID 5 of eight do four thirds of the IOPS as of six, at four thirds of their depth.
    Claim.LATENCY_SPREAD_BETWEEN_WIDTHS: 1,
    Claim.LATENCY_GROWTH_BETWEEN_WIDTHS: 1,
    Claim.LATENCY_SPREAD_BETWEEN_MEMBERS: 1_010 / 600,
    Claim.NEIGHBOUR_P99: 4,
    Claim.SCALING_SLOPE: 1,
    Claim.SCALING_DEVIATION: 0,
}
#: A seed's or a hand's figure for each other claim on that evidence.
FIGURES = {
    Claim.STEADY_IOPS: 400_000,
    Claim.READ_IOPS: 200_000,
    Claim.WRITE_IOPS: 200_000,
    Claim.THROUGHPUT: 400_000 * 4096,
    Claim.SUSTAINED_TEMPERATURE: 41,
    Claim.THROTTLED_TIME: 0,
    Claim.ARRAY_EFFICIENCY: 80,
    Claim.TIMES_ONE_DRIVE: 4,
    Claim.MEMBER_SPREAD: 600 / 1_005,
    Claim.WORST_SECOND: 1,
    Claim.SLOWEST_SECOND: 400_000 * 4096,
    Claim.FASTEST_SECOND: 400_000 * 4096,
    Claim.FASTEST_TO_SLOWEST_SECOND: 1,
    Claim.WRITE_SPREAD_BETWEEN_MEMBERS: 1.25,
    Claim.RATE_KEPT: 100,
    Claim.SETTINGS_GAIN: 1.25,
    Claim.REPLAY_PACE: 1.25,
    Claim.WRITE_AMPLIFICATION: 3,
    Claim.SPARE_GAIN: 1.5,
    Claim.BATHTUB_DEPTH: 4_000 / 6_000,
    Claim.MIX_RISE: 4_000 / 9_000,
    Claim.BALANCED_GAIN: 4_000 / 9_000,
    Claim.UNALIGNED_PENALTY: 2.5,
    Claim.QD_KNEE: 4,
    Claim.QD_LATENCY_KNEE: 4,
    Claim.QD_GAIN: 3.1,
    Claim.QD_DEPENDENCE: 3.1,
    Claim.NEIGHBOUR_IOPS: 0.25,
    Claim.FRESH_IOPS: 2_700,
    Claim.SETTLED_IOPS: 170,
    Claim.FRESH_TO_STEADY: 2_700 / 170,
    Claim.CLIFF_AFTER: 20 * 2_700 * 4096 / 10**8,
    Claim.REBUILD_RATE: 10**8,
    Claim.REBUILD_TIME: 100,
}


def fitting(claim: Claim) -> Judgeable:
    by_claim: dict[Claim, Judgeable] = {
        **dict.fromkeys((Claim.BATHTUB_DEPTH, Claim.MIX_RISE, Claim.BALANCED_GAIN), MIXES),
        Claim.UNALIGNED_PENALTY: OFFSETS,
        **dict.fromkeys((Claim.NEIGHBOUR_P99, Claim.NEIGHBOUR_IOPS), NEIGHBOURS),
        Claim.SPARE_GAIN: SPARED,
        Claim.WRITE_SPREAD_BETWEEN_MEMBERS: WORN,
        Claim.SETTINGS_GAIN: Sweep((lawful("raid5x4"), lawful("raid5x4-t8", 1.25))),
        Claim.REPLAY_PACE: REPLAYED,
        Claim.RATE_KEPT: RATED,
        Claim.WRITE_AMPLIFICATION: AMPLIFIED,
    }
    return by_claim.get(claim, DEPTHS if claim.scope is Scope.CURVE else EVIDENCE[claim.scope][0])


EVERY_CLAIM = pytest.mark.parametrize("claim", [claim for claim in Claim if claim.scope is not Scope.LOT])


@EVERY_CLAIM
def test_every_claim_has_one_figure_in_its_own_unit(claim: Claim) -> None:
    figure = estimate(claim, fitting(claim))
    assert figure.unit is claim.unit
    if claim in BLURRED:
        assert figure.value == pytest.approx(BLURRED[claim], rel=0.01, abs=0.02)
    else:
        assert figure.value == pytest.approx(FIGURES[claim])


@EVERY_CLAIM
def test_every_claim_refuses_what_it_is_not_about(claim: Claim) -> None:
    like = {Scope.RUN: Scope.MEMBERS, Scope.MEMBERS: Scope.RUN}
    for scope, evidence in EVIDENCE.items():
        if scope not in (claim.scope, like.get(claim.scope), Scope.SATURATION if claim in OF_LATENCY else None):
            for judgeable in evidence:
                with pytest.raises(NotApplicable, match=f"^{claim.label} .* not on "):
                    estimate(claim, judgeable)
    for other in ([MANY], "raid5x4"):
        with pytest.raises(NotApplicable, match=type(other).__name__):
            estimate(claim, other)  # type: ignore[arg-type]


@pytest.mark.parametrize("claim", sorted(OF_LATENCY))
def test_saturation_has_the_latencies_of_its_response_times(claim: Claim) -> None:
    falling = Saturation(run([2_000] * 20 + [200] * 60, workload=WRITE, rounds=80), 10**7)
    times = falling.response_times()
    try:
        expected = estimate(claim, times)
    except NotApplicable:  # of reads: there are none
        with pytest.raises(NotApplicable):
            estimate(claim, falling)
    else:
        assert estimate(claim, falling) == expected


def test_response_times_with_gaps_are_not_judged() -> None:
    whole = run([200] * 80, workload=WRITE, rounds=80)
    silent = replace(whole, intervals=(*whole.intervals[:70], *whole.intervals[74:]))
    with pytest.raises(CannotJudge, match="without a record"):
        estimate(Claim.P99_LATENCY, Saturation(silent, 10**7))
    lost = replace(whole.intervals[40], write_latency=histogram({1_000_000: 1}))
    with pytest.raises(CannotJudge, match=r"not valid: .* latencies for"):
        estimate(
            Claim.MAX_LATENCY,
            Saturation(replace(whole, intervals=(*whole.intervals[:40], lost, *whole.intervals[41:])), 10**7),
        )
    assert estimate(Claim.SETTLED_IOPS, Saturation(whole, 10**7)).value == 200


def test_reports_of_a_saturation_may_be_as_long_as_its_samples() -> None:
    minutes = [replace(each, start_s=60.0 * number, seconds=60.0, write_ios=60 * each.write_ios,
                       write_bytes=60 * each.write_bytes,
                       write_latency=LatencyHistogram.from_bins({ns: 60 * ios for ns, ios in each.write_latency.bins}))
               for number, each in enumerate(run([200] * 40, workload=WRITE, rounds=40).intervals)]  # fmt: skip
    long = replace(run([200] * 40, workload=WRITE, rounds=40), intervals=tuple(minutes), window_s=2400.0)
    assert estimate(Claim.P99_LATENCY, Saturation(long, 10**7)).value > 0


NARROW, WIDE = lawful("raid5x3"), lawful("raid5x4")
WRITES_ONLY, READS_ONLY = NARROW, measured([1_000] * 5)


@pytest.mark.parametrize(
    ("claim", "judged", "words"),
    [
        ("cliff_after", MANY, "on a saturation.* not on a Measured"),
        ("speed", MANY, "'speed' is not a valid Claim"),
        ("member_spread", NARROW, "side by side, not on raid5x3"),
        ("latency_spread_between_members", NARROW, "side by side, not on raid5x3"),
        ("scaling_slope", Sweep(DEPTHS.measurements), "widths of one level.* not drive"),
        ("qd_knee", curve([NARROW, WIDE]), "on one array, not raid5x3"),
        ("qd_gain", curve([DEPTHS[0], DEPTHS[0]]), "different workloads"),
        ("latency_growth_between_widths", Sweep((NARROW, NARROW, WIDE)), "at least 2 widths"),
        ("latency_growth_between_widths", Sweep((NARROW, lawful("raid6x6"))), "of one level"),
        ("latency_growth_between_widths", Sweep((NARROW,)), "at least 2 widths"),
        ("read_iops", WRITES_ONLY, "randwrite_4k_qd8 has no reads"),
        ("read_mean_latency", WRITES_ONLY, "randwrite_4k_qd8 has no reads"),
        ("write_iops", READS_ONLY, "randread_4k_qd8 has no writes"),
        ("write_mean_latency", READS_ONLY, "randread_4k_qd8 has no writes"),
    ],
)
def test_a_refusal_names_what_is_wanted(claim: str, judged: Judgeable, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        estimate(Claim(claim), judged)


def test_the_directions_of_a_mix_are_told_apart() -> None:
    slow_writes = tuple(
        replace(
            interval(second, reads=700, writes=300),
            read_latency=histogram({100_000: 700}),
            write_latency=histogram({900_000: 300}),
        )
        for second in range(5)
    )
    mixed = Measured((replace(run([1_000] * 5, workload=Workload("randrw", "4k", 8, 70)), intervals=slow_writes),))
    assert estimate(Claim.READ_IOPS, mixed).value == 700
    assert estimate(Claim.WRITE_IOPS, mixed).value == 300
    assert estimate(Claim.READ_MEAN_LATENCY, mixed).value == pytest.approx(100_000, rel=0.01)
    assert estimate(Claim.WRITE_MEAN_LATENCY, mixed).value == pytest.approx(900_000, rel=0.01)
    assert estimate(Claim.MEAN_LATENCY, mixed).value == pytest.approx(340_000, rel=0.01)
    assert estimate(Claim.MAX_LATENCY, mixed).value == pytest.approx(900_000, rel=0.01)


def test_quantiles_rise_and_each_has_its_own_place() -> None:
    # One I/O in 10, 100, … is ten times slower than all faster ones.
    bins = {10**3: 900_000, 10**4: 90_000, 10**5: 9_000, 10**6: 900, 10**7: 100}
    intervals = tuple(replace(interval(second, reads=10**6), read_latency=histogram(bins)) for second in range(5))
    tailed = Measured((replace(run([10**6] * 5), intervals=intervals),))
    found = {claim: estimate(claim, tailed).value for claim in Claim if claim.value.startswith("p")}
    assert [round(each) for each in found.values()] == [
        pytest.approx(ns, rel=0.01) for ns in (10**3, 10**3, 10**4, 10**4, 10**5, 10**6, 10**7)
    ]
    few = estimate(Claim.P99_999_LATENCY, measured([100_000] * 5))
    assert "1,000,000 I/Os" in few.unbounded


def test_the_slowest_drive_is_named() -> None:
    drives = Measured((side_by_side([[1_000] * 5, [1_010] * 5, [400] * 5, [990] * 5]),))
    assert slowest_member(drives, Claim.MEMBER_SPREAD) == "S2"
    with pytest.raises(ValueError, match="not on drivex1"):
        slowest_member(measured([1_000] * 5), Claim.MEMBER_SPREAD)


def test_drive_with_the_slowest_ios_is_named_for_their_claim() -> None:
    # Alike in IOPS, but drive S1 has a stall in every round.
    alike = side_by_side([[1_000] * 5] * 3)
    stalls = tuple(
        replace(each, read_latency=each.read_latency + histogram({80 * 10**6: 1})) for each in alike.parts[1]
    )
    drives = Measured((replace(alike, parts=(alike.parts[0], stalls, alike.parts[2])),))
    claim = Claim.LATENCY_SPREAD_BETWEEN_MEMBERS
    assert slowest_member(drives, claim) == "S1"
    assert estimate(claim, drives).value == pytest.approx(10, rel=0.02)
    assert estimators.alike(claim, drives) == pytest.approx({"S0": 8e6, "S1": 80e6, "S2": 8e6}, rel=0.01)
    assert estimators.alike(Claim.MEMBER_SPREAD, drives) == {"S0": 1_000, "S1": 1_000, "S2": 1_000}


@EVERY_CLAIM
def test_a_surer_interval_is_never_narrower(claim: Claim) -> None:
    plain, surer, among = (estimate(claim, fitting(claim), *given) for given in ((), (0.99,), (0.95, 0.2)))
    assert (plain.confidence, among.confidence) == (0.95, 0.95)
    assert plain.is_reading or surer.confidence == 0.99
    assert plain.value == surer.value == among.value
    for wider in (surer, among):
        assert wider.low <= plain.low <= plain.high <= wider.high


@pytest.mark.parametrize(
    "claim",
    [
        claim
        for claim in Claim
        # A trace is replayed as a whole, without visits.
        if claim.scope in (Scope.RUN, Scope.MEMBERS, Scope.SWEEP, Scope.CURVE) and claim is not Claim.REPLAY_PACE
    ],
)
def test_every_claim_has_its_figure_after_visits_too(claim: Claim) -> None:
    source = random.Random(claim.value)  # noqa: S311

    def visited_twice(measured: Measured) -> Measured:
        (found,) = measured.runs
        return Measured(tuple(cell(found) for _ in range(4)), visited(scatter=0.02))

    def cell(found: Run) -> Run:
        seconds = [[round(each.iops * source.gauss(1, 0.02)) for _ in range(60)] for each in found.of_members()]
        one = (
            side_by_side(seconds, workload=found.workload, rounds=1)
            if found.parts
            else run(seconds[0], geometry=str(found.geometry), workload=found.workload, rounds=1)
        )
        return replace(one, spell_length_s=10.0, seen=found.seen)

    fixed = fitting(claim)
    after_visits = fixed.counterpart(visited_twice)  # type: ignore[arg-type]
    expected, found = estimate(claim, fixed), estimate(claim, after_visits)
    assert found.confidence == 0.95
    assert found.value == pytest.approx(expected.value, rel=0.1, abs=1)
    assert found.low <= found.value <= found.high


def test_what_may_be_any_of_several_is_surer_than_each_alone() -> None:
    sweep = Sweep((lawful("raid5x5"), lawful("raid5x6"), lawful("raid5x8", share=0.6)))
    scaling = of_scaling(sweep)
    shortest = min(point.efficiency.high for point in scaling.points)
    assert 1 - scaling.deviation.low / 100 > shortest * 1.001
    rates = [[990, 1_010, 1_000, 1_005, 995], [600, 610, 605, 615, 600], [1_010, 990, 1_000, 1_000, 1_000]]
    drives = Measured((side_by_side(rates),))
    of_each = [iops(each) for each in drives.members()]
    assert estimate(Claim.MEMBER_SPREAD, drives).high > spread.between_members(of_each).high * 1.001


def test_repeats_that_disagree_make_scaling_less_sure() -> None:
    def sweep(apart: int) -> Sweep:
        return Sweep(
            tuple(
                Measured(tuple(run([rate + sign * apart] * 5, geometry=geometry) for sign in (-1, 1)))
                for geometry, rate in (("raid0x2", 20_000), ("raid0x4", 40_000))
            )
        )

    even, apart = (of_scaling(sweep(each)) for each in (0, 400))
    assert apart.slope.low < even.slope.low
    # Repeats 2 and 1 % apart from their mean, two degrees of freedom: 6.8 %; pooled, ten rounds seem to know better.
    wide = apart.points[0].iops
    assert wide.high / wide.value == pytest.approx(1.07, abs=0.01)
    assert iops(sweep(400)[0], has_own_repeats=False).high / 20_000 < 1.02


def test_cells_of_visits_are_no_repeats() -> None:
    """Their scatter is in the interval of the whole; another width does not have it again."""
    rates = (19_000, 21_000, 20_500, 19_500)
    cells = Measured(tuple(run([rate] * 5, geometry="raid0x2", rounds=1) for rate in rates), visited(scatter=0.04))
    fixed = Measured((run([40_000] * 5, geometry="raid0x4"),))
    found = of_scaling(Sweep((cells, fixed))).points[1].iops
    assert found.high / found.value < 1.01


def test_the_place_of_a_series_figure_is_told() -> None:
    assert [str(each) for each in found_in(Claim.BATHTUB_DEPTH, MIXES).at] == ["randrw50_4k_qd8"]
    assert [each.qd_per_drive for each in found_in(Claim.QD_GAIN, DEPTHS).at] == [1, 8]


def test_knee_counts_members_of_arrays_but_one_drive_alone() -> None:
    rates = ((1, 1_000), (4, 3_000), (8, 3_100))
    array = curve(measured([rate] * 5, "raid0x4", WRITE.at(depth)) for depth, rate in rates)
    assert estimate(Claim.QD_KNEE, array).value == 16
    drives = curve(Measured((side_by_side([[rate] * 5] * 4, workload=WRITE.at(depth)),)) for depth, rate in rates)
    assert estimate(Claim.QD_KNEE, drives).value == 4


@pytest.mark.parametrize(
    ("shares", "growth", "spread"), [((0.5, 1, 1), 2.0, 2.0), ((1, 0.3, 1), 1.0, 1.0), ((1, 1, 0.5), 0.5, 2.0)]
)
def test_latency_is_compared_of_the_narrowest_and_the_widest(
    shares: tuple[float, ...], growth: float, spread: float
) -> None:
    """At the same depth per drive, an array that does its share has the same latency whatever its width."""
    sweep = Sweep(tuple(map(lawful, ("raid0x8", "raid0x4", "raid0x2"), shares)))
    grown = estimate(Claim.LATENCY_GROWTH_BETWEEN_WIDTHS, sweep)
    assert grown.low <= growth <= grown.high
    assert estimate(Claim.LATENCY_SPREAD_BETWEEN_WIDTHS, sweep).value == pytest.approx(spread, rel=0.05)


def test_whole_stripes_have_a_law_only_without_parity() -> None:
    def sweep(*geometries: str) -> Sweep:
        return Sweep(tuple(lawful(geometry, workload=Workload("write", "128k", 8)) for geometry in geometries))

    with pytest.raises(ValueError, match="no cost model"):
        of_scaling(sweep("raid5x3", "raid5x4"))
    assert of_scaling(sweep("raid10x4", "raid10x6")).slope.value > 0.99


def test_repeats_make_the_figure_narrower() -> None:
    rates = [990, 1010, 1000, 1005, 995]
    one = iops(measured(rates))
    three = iops(Measured(tuple(run(rates) for _ in range(3))))
    assert three.n == 15
    assert three.high - three.low < one.high - one.low
    assert three.value == pytest.approx(one.value)


@given(st.permutations([5, 6, 8]))
def test_the_order_of_a_sweep_does_not_matter(widths: list[int]) -> None:
    sweep = [lawful(f"raid5x{width}", share=1 - width / 50) for width in widths]
    ordered = sorted(sweep, key=lambda each: each.geometry)
    for claim in {each for each in Claim if each.scope is Scope.SWEEP} - {Claim.SETTINGS_GAIN}:
        assert estimate(claim, Sweep(tuple(sweep))) == estimate(claim, Sweep(tuple(ordered)))


def test_a_run_without_io_has_no_latency_to_judge() -> None:
    for claim in (Claim.P99_LATENCY, Claim.LATENCY_SPREAD_OVER_TIME):
        with pytest.raises(TooFew):
            estimate(claim, measured([0] * 5))


def test_the_fastest_of_many_depths_may_be_a_lucky_one() -> None:
    """The more depths were measured, the less their extremes show that IOPS depend on the depth."""
    rates = [9_900, 10_100, 10_000, 10_150, 9_850]
    few, many = (
        curve(measured([rate + 40 * depth for rate in rates], workload=WRITE.at(depth)) for depth in depths)
        for depths in ((1, 32), (1, 2, 4, 8, 16, 32))
    )
    assert found_in(Claim.QD_DEPENDENCE, few).estimate.value == found_in(Claim.QD_DEPENDENCE, many).estimate.value
    assert found_in(Claim.QD_DEPENDENCE, many).estimate.low < found_in(Claim.QD_DEPENDENCE, few).estimate.low
    assert found_in(Claim.QD_DEPENDENCE, many).estimate.high == found_in(Claim.QD_DEPENDENCE, few).estimate.high


@pytest.mark.parametrize("claim", [Claim.P99_LATENCY, Claim.MEAN_LATENCY, Claim.MAX_LATENCY])
def test_latency_of_a_replay_that_is_late_has_no_upper_end(claim: Claim) -> None:
    latency = estimate(claim, REPLAYED)
    assert "replay" in latency.unbounded
    assert latency.high == math.inf
    (once, _), trace = REPLAYED.runs, REPLAYED.workload.replay
    assert trace
    held = replace(once.workload, replay=replace(trace, span_s=2 * once.seconds))
    kept = estimate(claim, Measured((replace(once, workload=held),) * 2))
    assert "replay" not in kept.unbounded


@pytest.mark.parametrize("claim", [Claim.P99_LATENCY, Claim.MEAN_LATENCY, Claim.READ_MEAN_LATENCY, Claim.MAX_LATENCY])
@pytest.mark.parametrize(("mean_ns", "is_bounded"), [(200_000, True), (970_000, False)])
def test_jobs_at_a_rate_that_are_always_busy_have_no_upper_end(claim: Claim, mean_ns: int, is_bounded: bool) -> None:
    """Each job begins an I/O each ms, so one of 0.97 ms hides that all begin later and later."""
    rated = replace(run([64_000] * 5), workload=Workload("randread", "4k", 64, rate_iops=64_000))
    histogram_of = LatencyHistogram.from_bins({mean_ns: 64_000})
    intervals = tuple(replace(part, read_latency=histogram_of) for part in rated.intervals)
    estimated = estimate(claim, Measured((replace(rated, intervals=intervals),)), per_hour=7_200)
    assert math.isfinite(estimated.high) is is_bounded
    assert bool(estimated.unbounded) is not is_bounded
    assert estimated.low <= mean_ns * 1.01
