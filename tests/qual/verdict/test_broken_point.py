from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import strategies

from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Curve, Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import broken_point, estimators, verdict
from pytest_ssdqual.qual.verdict.verdict import Verdict
from pytest_ssdqual.qual.workload.workload import Workload

READ = Workload("randread", "4k", 8)


def measured(iops: float, workload: Workload = READ, array: str = "raid5x4") -> Measured:
    return Measured((strategies.run([int(iops)] * 5, workload=workload, geometry=array),))


def judged(claim: Claim, what: Judgeable, bound: float) -> Verdict:
    limit = Limit(claim.direction, bound, claim.unit, "test")
    return verdict.judge(claim, what.subject, estimators.estimate(claim, what), limit)


def test_iops_that_are_missing() -> None:
    point = broken_point.of_verdict(judged(Claim.STEADY_IOPS, measured(800), 1_000), measured(800))
    assert point
    assert point.needed_iops == pytest.approx(1_000)
    assert point.latency is None


def test_mean_latency_follows_from_iops_unless_mixed() -> None:
    pure = measured(800)
    mean_ns = pure.latency.mean_ns
    point = broken_point.of_verdict(judged(Claim.READ_MEAN_LATENCY, pure, mean_ns / 1.25), pure)
    assert point
    assert point.needed_iops == pytest.approx(1_000, rel=0.01)
    mixed = measured(800, Workload("randrw", "4k", 8, 70))
    point = broken_point.of_verdict(judged(Claim.READ_MEAN_LATENCY, mixed, mean_ns / 1.25), mixed)
    assert point
    assert point.needed_iops is None
    assert point.latency
    assert point.latency.limit_ns == pytest.approx(point.latency.measured_ns / 1.25)


@pytest.mark.parametrize("loss", [0.015, 0.02, 0.03, 0.06])
def test_growth_just_below_its_limit_needs_more_of_the_widest(loss: float) -> None:
    """Each added drive costs all of them this share, as md's lock does."""
    rates = {width: 1_000 * width * (1 - loss * (width - 3)) for width in (3, 4, 5, 6, 8)}
    sweep = Sweep(tuple(measured(rate, array=f"raid5x{width}") for width, rate in rates.items()))
    found = judged(Claim.SCALING_SLOPE, sweep, 0.95)
    assert found.estimate.value < 0.95
    point = broken_point.of_verdict(found, sweep)
    assert point
    assert point.needed_iops
    assert point.needed_iops > point.measured.iops


@pytest.mark.parametrize("claim", [Claim.P99_LATENCY, Claim.MAX_LATENCY])
def test_limit_relative_to_another_run_is_in_nanoseconds(claim: Claim) -> None:
    what = measured(800)
    estimate = replace(estimators.estimate(claim, what), value=125.0, low=120.0, high=130.0, unit=Unit.PERCENT)
    limit = Limit(claim.direction, 100.0, Unit.PERCENT, "test")
    point = broken_point.of_verdict(verdict.judge(claim, what.subject, estimate, limit, reference=READ), what)
    assert point
    assert point.latency
    assert point.latency.measured_ns == estimators.estimate(claim, what).value
    assert point.latency.limit_ns == pytest.approx(point.latency.measured_ns / 1.25)


def depths(*iops: float) -> Curve:
    return Curve(tuple(measured(rate, replace(READ, qd_per_drive=1 << at)) for at, rate in enumerate(iops)))


def test_the_depth_at_which_iops_stop_growing() -> None:
    curve = depths(1_000, 1_900, 2_000, 2_010)
    point = broken_point.of_verdict(judged(Claim.QD_KNEE, curve, 32), curve)
    assert point
    assert point.measured.workload.qd_per_drive == 4
    assert point.needed_iops == pytest.approx(1.1 * 1_900)


def test_broken_gain_is_at_the_deepest_queue() -> None:
    curve = depths(1_000, 1_900, 2_000, 1_500)
    gain = broken_point.of_verdict(judged(Claim.QD_GAIN, curve, 3.0), curve)
    assert gain
    assert gain.measured.workload.qd_per_drive == 8
    assert gain.needed_iops == pytest.approx(3_000)
    even = broken_point.of_verdict(judged(Claim.QD_DEPENDENCE, curve, 1.25), curve)
    assert even
    assert even.measured.workload.qd_per_drive == 1
    assert even.needed_iops == pytest.approx(1_600)


def test_the_worst_mix_and_the_shifted_workload() -> None:
    mixes = Curve((measured(1_000), measured(500, Workload("randrw", "4k", 8, 50)), measured(1_000, WRITE)))
    worst = broken_point.of_verdict(judged(Claim.BATHTUB_DEPTH, mixes, 0.8), mixes)
    assert worst
    assert worst.measured.workload.read_fraction == 0.5
    assert worst.needed_iops == pytest.approx(800)
    shifted = Curve((measured(1_000), measured(400, replace(READ, offset="2k"))))
    point = broken_point.of_verdict(judged(Claim.UNALIGNED_PENALTY, shifted, 2.0), shifted)
    assert point
    assert point.measured.workload.offset_bytes == 2048
    assert point.needed_iops == pytest.approx(500)


WRITE = Workload("randwrite", "4k", 8)


def test_the_widest_array_of_a_latency_that_grows() -> None:
    sweep = Sweep(tuple(measured(rate, array=f"raid5x{width}") for width, rate in ((3, 900), (4, 800))))
    growth = estimators.estimate(Claim.LATENCY_GROWTH_BETWEEN_WIDTHS, sweep).value
    point = broken_point.of_verdict(judged(Claim.LATENCY_GROWTH_BETWEEN_WIDTHS, sweep, growth / 1.5), sweep)
    assert point
    assert point.measured.geometry == Geometry.parse("raid5x4")
    assert point.needed_iops == pytest.approx(1_200, rel=0.01)
    spread = estimators.estimate(Claim.LATENCY_SPREAD_BETWEEN_WIDTHS, sweep).value
    point = broken_point.of_verdict(judged(Claim.LATENCY_SPREAD_BETWEEN_WIDTHS, sweep, spread / 1.5), sweep)
    assert point
    assert point.measured.geometry == Geometry.parse("raid5x4")


@pytest.mark.parametrize(("claim", "bound"), [(Claim.SCALING_SLOPE, 0.9), (Claim.SCALING_DEVIATION, 10.0)])
@pytest.mark.parametrize("rates", [(300_000, 500_000, 463_000), (300_000, 0, 463_000)])
def test_growth_holds_if_the_worst_width_does_what_is_needed(
    claim: Claim, bound: float, rates: tuple[int, ...]
) -> None:
    found = {f"raid5x{width}": float(rate) for width, rate in zip((3, 5, 8), rates, strict=True) if rate}
    sweep = Sweep(tuple(measured(rate, array=array) for array, rate in found.items()))
    point = broken_point.of_verdict(judged(claim, sweep, bound), sweep)
    assert point
    assert point.needed_iops
    found[str(point.measured.geometry)] = point.needed_iops
    mended = Sweep(tuple(measured(rate, array=array) for array, rate in found.items()))
    assert estimators.estimate(claim, mended).value == pytest.approx(bound, rel=0.03)


@pytest.mark.parametrize("claim", [Claim.FRESH_TO_STEADY, Claim.CLIFF_AFTER])
def test_what_is_above_the_drives_cannot_make_them_fall(claim: Claim) -> None:
    iops = [2_000] * 10 + [1_000] * 20
    saturation = Saturation(strategies.run(iops, workload=WRITE, rounds=30), 1 << 24, gate_capacities=0.0)
    assert broken_point.of_verdict(judged(claim, saturation, 1.1), saturation) is None


def test_saturation_has_no_prediction_and_a_rebuild_is_its_load() -> None:
    saturation = Saturation(strategies.run([1_000] * 30, workload=WRITE, rounds=30), 1 << 30, gate_capacities=0.0)
    point = broken_point.of_verdict(judged(Claim.FRESH_IOPS, saturation, 2_000), saturation)
    assert point
    assert point.unpredictable
    assert point.measured.runs == (saturation.run,)
    load = measured(500, array="raid5x4-1rebuilding")
    rebuild = Rebuild(load.geometry, 100.0, 1 << 30, load, 0)
    assert broken_point.of_verdict(judged(Claim.REBUILD_TIME, rebuild, 50.0), rebuild) == broken_point.BrokenPoint(load)
