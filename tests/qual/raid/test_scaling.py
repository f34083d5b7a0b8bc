from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders.strategies import about

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel, expected_iops
from pytest_ssdqual.qual.raid.scaling import fit, with_repeats
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, mean_of_rounds
from pytest_ssdqual.qual.units import Unit


def sweep(level: RaidLevel, points: dict[int, float], percent: float = 0.0) -> dict[Geometry, Estimate]:
    return {Geometry(level, width): about(iops, percent) for width, iops in points.items()}


@given(
    st.sampled_from([RaidLevel.RAID0, RaidLevel.RAID1, RaidLevel.RAID5, RaidLevel.RAID6, RaidLevel.RAID10]),
    st.floats(0, 1),
    st.floats(1, 1e6),
)
def test_an_array_that_obeys_the_law_is_linear(level: RaidLevel, read_fraction: float, iops: float) -> None:
    widths = [Geometry(level, width) for width in (8, 10, 12)]
    found = fit({each: about(expected_iops(each, read_fraction, iops, iops)) for each in widths}, read_fraction)
    assert found.slope.value == pytest.approx(1)
    assert found.deviation.value == pytest.approx(0, abs=1e-6)


def test_intels_raid5_writes_are_linear_and_not_short() -> None:
    """329903-001: +58 % from 3 to 6 drives, +97 % from 3 to 8; a write to three drives reads one chunk, not two."""
    found = fit(sweep(RaidLevel.RAID5, {3: 1.0, 6: 1.58, 8: 1.97}), 0.0)
    assert found.left_out == (Geometry(RaidLevel.RAID5, 3),)
    assert found.slope.value == pytest.approx(6 / 8 * 1.97 / 1.58)
    assert found.deviation.value == pytest.approx(100 * (1 - found.slope.value))
    assert found.worst == Geometry(RaidLevel.RAID5, 8)
    assert len(found.warnings()) == 1


@pytest.mark.parametrize(
    ("level", "widths", "compared"),
    [
        (RaidLevel.RAID5, (3, 4, 5, 8), (5, 8)),
        (RaidLevel.RAID6, (4, 5, 6, 7, 8), (7, 8)),
        (RaidLevel.RAID10, (2, 4, 8), (2, 4, 8)),
        (RaidLevel.RAID0, (2, 4), (2, 4)),
    ],
)
def test_widths_that_write_in_another_way_are_not_compared(
    level: RaidLevel, widths: tuple[int, ...], compared: tuple[int, ...]
) -> None:
    """As simulated drives whose reads cost next to nothing beside their writes: IOPS by drive, whatever md reads."""
    found = fit(sweep(level, {width: 1000.0 * width for width in widths}), 0.0)
    assert tuple(point.geometry.width for point in found.points) == compared
    assert found.deviation.value == pytest.approx(0, abs=1e-9)
    reads = fit(sweep(level, {width: 1000.0 * width for width in widths}), 1.0)
    assert not reads.left_out


def test_two_ways_of_writing_have_the_cost_model_only() -> None:
    found = fit(sweep(RaidLevel.RAID5, {3: 1.0, 8: 2.0}), 0.0)
    assert found.slope.value == pytest.approx(1)
    assert not found.left_out


def test_doubling_for_three_times_the_drives_is_a_third_short() -> None:
    found = fit(sweep(RaidLevel.RAID0, {4: 100.0, 8: 200.0, 24: 400.0}), 1.0)
    assert found.deviation.value == pytest.approx(100 / 3)
    assert found.worst == Geometry(RaidLevel.RAID0, 24)
    assert found.slope.value < 0.8


@given(st.floats(0.2, 1.5), st.floats(0, 1e4))
def test_slope_is_an_added_drive_over_the_mean_drive(slope: float, intercept: float) -> None:
    widths = (2, 3, 5, 8)
    points = {width: intercept + 1e4 * slope * width for width in widths}
    per_drive = sum(iops / width for width, iops in points.items()) / len(widths)
    found = fit(sweep(RaidLevel.RAID0, points), 1.0)
    assert found.slope.value == pytest.approx(1e4 * slope / per_drive)


def test_two_widths_are_compared_with_each_other() -> None:
    found = fit(sweep(RaidLevel.RAID0, {3: 300.0, 8: 720.0}), 1.0)
    assert [point.efficiency.value for point in found.points] == pytest.approx([1 / 0.9, 0.9])
    assert found.deviation.value == pytest.approx(10)
    assert found.worst.width == 8
    # A width that is too slow is the worst also if it is the narrowest.
    assert fit(sweep(RaidLevel.RAID0, {3: 270.0, 8: 800.0}), 1.0).worst.width == 3


@pytest.mark.parametrize("fast", [3, 5, 8])
def test_a_width_that_is_too_fast_is_named_and_fails_nobody(fast: int) -> None:
    points = {width: 100.0 * width * (1.3 if width == fast else 1) for width in range(3, 9)}
    found = fit(sweep(RaidLevel.RAID0, points, 0.5), 1.0)
    assert found.deviation.high < 10
    assert found.too_fast is not None
    assert found.too_fast.geometry == Geometry(RaidLevel.RAID0, fast)
    assert len(found.warnings()) == 1
    assert f"raid0x{fast} does 1.3 times" in found.warnings()[0]


def test_no_width_is_too_fast_where_others_differ_as_well() -> None:
    for shares in ((1, 1, 0.8, 0.8), (1, 1, 0.8, 0.67, 0.5), (1, 0.96, 0.94, 0.92, 0.91, 0.9), (1.3, 1)):
        points = {width: 100.0 * width * share for width, share in enumerate(shares, 3)}
        found = fit(sweep(RaidLevel.RAID0, points), 1.0)
        assert found.too_fast is None
        assert not found.warnings()


def test_slope_of_writing_mirrors_is_the_widest_efficiency() -> None:
    found = fit(sweep(RaidLevel.RAID1, {2: 1_000.0, 3: 1_000.0, 4: 900.0}, 1.0), 0.0)
    assert found.slope == found.points[-1].efficiency
    assert found.slope.value == pytest.approx(0.9)


@settings(max_examples=30)
@given(st.floats(0, 20), st.floats(-0.3, 0.3))
def test_truth_inside_of_one_width_is_inside_the_figures(percent: float, off: float) -> None:
    found = fit(sweep(RaidLevel.RAID0, {2: 200.0, 4: 400.0, 8: 800 * (1 + off)}, percent), 1.0)
    for shift in (-percent / 100, 0, percent / 100):
        for points in (
            {2: 200 * (1 + shift), 4: 400.0, 8: 800 * (1 + off)},
            {2: 200, 4: 400.0, 8: 800 * (1 + off) * (1 + shift)},
        ):
            true = fit(sweep(RaidLevel.RAID0, points), 1.0)
            for estimate, truth in ((found.slope, true.slope), (found.deviation, true.deviation)):
                assert estimate.low - 1e-6 <= truth.value <= estimate.high + 1e-6


def about_log(iops: float, half: float) -> Estimate:
    return Estimate(iops, iops * math.exp(-half), iops * math.exp(half), 5, Unit.IOPS)


def test_errors_of_two_widths_add_by_their_squares() -> None:
    # 3 and 4 % either way, on the log scale: 5 % together.
    found = fit(
        {Geometry(RaidLevel.RAID0, 2): about_log(200, 0.03), Geometry(RaidLevel.RAID0, 4): about_log(400, 0.04)}, 1.0
    )
    for point in found.points:
        assert (math.log(point.efficiency.low), math.log(point.efficiency.high)) == pytest.approx((-0.05, 0.05))
    assert found.deviation.high == pytest.approx(100 * (1 - math.exp(-0.05)))


def test_errors_of_the_other_widths_average() -> None:
    exact = {Geometry(RaidLevel.RAID0, 2): about(200)}
    others = {Geometry(RaidLevel.RAID0, width): about(100 * width, 4.0) for width in (3, 4, 5, 6)}
    efficiency = fit(exact | others, 1.0).points[0].efficiency
    # Four of 4 %: the mean is known to 2 %.
    assert (1 / efficiency.high, 1 / efficiency.low) == pytest.approx((0.98, 1.02))


WIDTHS = (2, 4, 6, 8)


def drawn(source: random.Random, true: dict[int, float], scatter: float, level: float) -> dict[Geometry, Estimate]:
    """Five rounds of each width, as a drive whose rounds scatter by ``scatter`` shows them."""
    return {
        Geometry(RaidLevel.RAID0, width): mean_of_rounds(
            [iops * source.gauss(1, scatter) for _ in range(5)], Unit.IOPS, ConfidenceLevel(level)
        )
        for width, iops in true.items()
    }


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_intervals_of_scaling_cover_as_stated(loss: float) -> None:
    source = random.Random(6)  # noqa: S311
    true = {width: 100.0 * width * (1 - loss * (width == 8)) for width in WIDTHS}
    exact = fit({Geometry(RaidLevel.RAID0, width): about(iops) for width, iops in true.items()}, 1.0)
    slope = kept = broken = 0
    for _ in range(600):
        state = source.getstate()
        alone = drawn(source, true, 0.02, 0.95)
        source.setstate(state)
        found = fit(alone, 1.0, drawn(source, true, 0.02, 1 - 0.05 / 3))
        slope += found.slope.low <= exact.slope.value <= found.slope.high
        # A promise of exactly the truth: kept or broken with certainty are both errors, of one side each.
        kept += found.deviation.high < exact.deviation.value
        broken += found.deviation.low > exact.deviation.value
    assert slope / 600 > 0.93
    assert kept / 600 < 0.04
    assert broken / 600 < 0.04


def test_a_short_width_is_judged_by_simultaneous_intervals() -> None:
    points = {2: 200.0, 4: 380.0, 8: 760.0}
    alone, together = sweep(RaidLevel.RAID0, points, 1.0), sweep(RaidLevel.RAID0, points, 2.0)
    found, naive, wide = fit(alone, 1.0, together), fit(alone, 1.0), fit(together, 1.0)
    assert (found.deviation.high, found.deviation.low) == (naive.deviation.high, wide.deviation.low)
    assert [point.efficiency for point in found.points] == [point.efficiency for point in naive.points]


def test_the_slopes_interval_by_hand() -> None:
    # IOPS per drive y over z = 1/x: 0.5 and 0.25, so that the line ends at 2·y(4) - y(2), over their mean.
    exact, wide = Estimate(200, 200, 200, 5, Unit.IOPS), Estimate(400, 396, 404, 5, Unit.IOPS)
    found = fit({Geometry(RaidLevel.RAID0, 2): exact, Geometry(RaidLevel.RAID0, 4): wide}, 1.0).slope
    assert (found.low, found.value, found.high) == pytest.approx((1 - 0.015, 1.0, 1 + 0.015))
    # Both errors are independent: 2 - 1/2 of one, and 1 + 1/2 of the other.
    both = fit(sweep(RaidLevel.RAID0, {2: 200.0, 4: 400.0}, 1.0), 1.0).slope
    assert both.high - 1 == pytest.approx(0.015 * math.sqrt(2))


def test_uncorrected_widths_seem_short_too_often() -> None:
    source = random.Random(6)  # noqa: S311
    true = {width: 100.0 * width for width in range(2, 22, 2)}
    naive = sum(fit(drawn(source, true, 0.02, 0.95), 1.0).deviation.low > 0 for _ in range(100)) / 100
    assert naive > 0.04


def test_repeats_that_disagree_widen_the_interval() -> None:
    points = sweep(RaidLevel.RAID0, {2: 200.0, 4: 400.0}, percent=0.1)
    two, four = points
    agreeing = with_repeats(points, {two: [200.0, 200.0], four: [400.0, 400.0]}, 0.95)
    assert agreeing == points
    # ± 2 % around either, two degrees of freedom: 4.30 × 2.83 % / √2.
    apart = with_repeats(points, {two: [196.0, 204.0], four: [392.0, 408.0]}, 0.95)
    assert math.log(apart[two].high / 200) == pytest.approx(4.303 * 0.02, rel=0.01)
    assert math.log(200 / apart[two].low) == pytest.approx(4.303 * 0.02, rel=0.01)
    assert apart[four].value == 400
    # What one width was found to vary by holds for all of them, and one that was run once has it in full.
    mixed = with_repeats(points, {two: [196.0, 204.0], four: [400.0]}, 0.95)
    assert math.log(mixed[four].high / 400) == pytest.approx(12.71 * 0.0283, rel=0.01)
    assert with_repeats(points, {two: [200.0], four: [400.0]}, 0.95) == points
    assert with_repeats(points, {two: [0.0, 200.0], four: [400.0]}, 0.95) == points


def test_what_is_no_sweep_is_refused() -> None:
    with pytest.raises(ValueError, match="least 2 widths"):
        fit(sweep(RaidLevel.RAID0, {4: 100.0}), 1.0)
    with pytest.raises(ValueError, match="least 2 widths"):
        fit({}, 1.0)
    with pytest.raises(ValueError, match="of one level"):
        fit(sweep(RaidLevel.RAID0, {4: 100.0}) | sweep(RaidLevel.RAID5, {4: 100.0}), 1.0)
    with pytest.raises(ValueError, match="not raid5x4, raid5x5-1failed"):
        fit({Geometry.parse("raid5x4"): about(1), Geometry.parse("raid5x5-1failed"): about(1)}, 1.0)
    with pytest.raises(ValueError, match="the other widths"):
        fit(sweep(RaidLevel.RAID0, {2: 0.0, 4: 200.0}), 1.0)


def test_widths_that_may_do_nothing_bound_nothing_from_above() -> None:
    found = fit(sweep(RaidLevel.RAID0, {2: 100.0, 4: 200.0}, percent=100), 1.0)
    assert found.points[1].efficiency.high == math.inf
    assert found.deviation.low == -math.inf
    assert "-∞…" in str(found.deviation)


def test_a_width_that_may_do_nothing_has_no_negative_share() -> None:
    shaky = Estimate(100, -50, 250, 5, Unit.IOPS)
    found = fit({Geometry(RaidLevel.RAID0, 2): about(200), Geometry(RaidLevel.RAID0, 4): shaky}, 1.0)
    assert found.points[1].efficiency.low == 0
    assert found.deviation.high == 100


def test_delays_scale_by_the_prediction_and_not_the_law() -> None:
    """At depth 1 a RAID 5 write waits for two phases, so IOPS grow with N; the law of busy drives has N/P."""
    measured = sweep(RaidLevel.RAID5, {3: 3_000, 4: 4_000, 8: 8_000}, 1.0)
    predicted = {each: 1_000.0 * each.width for each in measured}
    found = fit(measured, 0.0, expected=predicted)
    assert found.slope.value == pytest.approx(1)
    assert found.deviation.value == pytest.approx(0, abs=1e-9)
    assert not found.warnings()
    short = fit({**measured, max(measured): about(6_000)}, 0.0, expected=predicted)
    assert short.deviation.value == pytest.approx(25)
    # A prediction for some widths only is no line.
    some = {each: value for each, value in predicted.items() if each.width < 8}
    assert fit(measured, 0.0, expected=some).slope == fit(measured, 0.0).slope
