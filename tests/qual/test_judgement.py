from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import run

from pytest_ssdqual.qual.claim import Claim
from pytest_ssdqual.qual.estimate import Estimate, TooFew
from pytest_ssdqual.qual.geometry import Geometry, expected_iops
from pytest_ssdqual.qual.judgement import OF_RUN, OF_SWEEP, iops, of_scaling
from pytest_ssdqual.qual.measurement import Measured
from pytest_ssdqual.qual.workload import Workload

WRITE = Workload("randwrite", "4k", 8)


def measured(rates: list[int], geometry: str = "drivex1", workload: Workload | None = None) -> Measured:
    return Measured((run(rates, geometry=geometry, workload=workload),))


def lawful(geometry: str, share: float = 1.0, workload: Workload = WRITE) -> Measured:
    """An array that does ``share`` of what the law of its level gives it, of drives of 10,000 IOPS."""
    rate = expected_iops(Geometry.parse(geometry), workload.read_fraction, 10_000, 10_000) * share
    return measured([round(rate * factor) for factor in (0.99, 1.01, 1.0, 1.01, 0.99)], geometry, workload)


def holds(estimate: Estimate, value: float) -> bool:
    return estimate.low <= value <= estimate.high


def test_every_claim_has_one_figure_and_its_own_unit() -> None:
    assert set(OF_RUN) | set(OF_SWEEP) == set(Claim)
    assert not set(OF_RUN) & set(OF_SWEEP)
    one, sweep = lawful("raid5x3"), [lawful("raid5x3"), lawful("raid5x4")]
    assert {claim: figure(one).unit for claim, figure in OF_RUN.items()} == {claim: claim.unit for claim in OF_RUN}
    assert {claim: figure(sweep).unit for claim, figure in OF_SWEEP.items()} == {
        claim: claim.unit for claim in OF_SWEEP
    }


@given(st.lists(st.integers(500, 50_000), min_size=5, max_size=5))
def test_iops_are_the_mean_of_the_rounds(rates: list[int]) -> None:
    estimate = iops(measured(rates))
    assert estimate.value == pytest.approx(sum(rates) / 5)
    assert holds(estimate, estimate.value)
    assert estimate.n == 5


def test_repeats_make_the_figure_narrower() -> None:
    rates = [990, 1010, 1000, 1005, 995]
    one = iops(measured(rates))
    three = iops(Measured(tuple(run(rates) for _ in range(3))))
    assert three.n == 15
    assert three.high - three.low < one.high - one.low
    assert three.value == pytest.approx(one.value)


def test_the_p99_is_a_latency_of_the_run() -> None:
    even = measured([1000] * 5)
    p99 = OF_RUN[Claim.P99_LATENCY](even)
    assert p99.value == pytest.approx(even.latency.max_ns, rel=0.01)  # all I/Os of this run are equally slow
    # One drive at a depth of 8 and 1000 IOPS: 8 ms, by Little's law.
    assert p99.value == pytest.approx(8e6, rel=0.01)


def test_the_spread_over_time_is_one_where_nothing_changes() -> None:
    assert OF_RUN[Claim.LATENCY_SPREAD_OVER_TIME](measured([1000] * 5)).value == 1
    stalled = OF_RUN[Claim.LATENCY_SPREAD_OVER_TIME](measured([1000, 1000, 250, 1000, 1000]))
    assert stalled.value == pytest.approx(4, rel=0.02)


def test_an_array_that_keeps_the_law_scales_linearly() -> None:
    sweep = [lawful(f"raid5x{width}") for width in (3, 4, 6, 8)]
    assert holds(OF_SWEEP[Claim.SCALING_SLOPE](sweep), 1.0)
    assert abs(OF_SWEEP[Claim.SCALING_DEVIATION](sweep).value) < 1


def test_a_wide_array_that_falls_behind_is_found() -> None:
    sweep = [lawful("raid5x3"), lawful("raid5x4"), lawful("raid5x8", share=0.6)]
    assert OF_SWEEP[Claim.SCALING_SLOPE](sweep).high < 0.9
    assert OF_SWEEP[Claim.SCALING_DEVIATION](sweep).value > 5
    assert str(of_scaling(sweep).worst) == "raid5x8"


@given(st.permutations([3, 4, 6]))
def test_the_order_of_a_sweep_does_not_matter(widths: list[int]) -> None:
    sweep = [lawful(f"raid5x{width}", share=1 - width / 50) for width in widths]
    ordered = sorted(sweep, key=lambda each: each.geometry)
    for figure in OF_SWEEP.values():
        assert figure(sweep) == figure(ordered)


def test_the_spread_between_widths_compares_the_narrowest_and_the_widest() -> None:
    # At the same depth per drive, an array that does its share has the same latency whatever its width.
    even = OF_SWEEP[Claim.LATENCY_SPREAD_BETWEEN_WIDTHS]([lawful("raid0x2"), lawful("raid0x4"), lawful("raid0x8")])
    assert even.value == pytest.approx(1, abs=0.03)
    slow = OF_SWEEP[Claim.LATENCY_SPREAD_BETWEEN_WIDTHS]([lawful("raid0x8", 0.5), lawful("raid0x4"), lawful("raid0x2")])
    assert slow.value == pytest.approx(2, rel=0.05)


def test_a_run_without_io_has_no_latency_to_judge() -> None:
    for claim in (Claim.P99_LATENCY, Claim.LATENCY_SPREAD_OVER_TIME):
        with pytest.raises(TooFew):
            OF_RUN[claim](measured([0] * 5))
