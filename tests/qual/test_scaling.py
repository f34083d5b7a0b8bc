from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.estimate import Estimate
from pytest_ssdqual.qual.geometry import Geometry, Level, expected_iops
from pytest_ssdqual.qual.scaling import fit
from pytest_ssdqual.qual.units import Unit


def about(iops: float, percent: float = 0.0) -> Estimate:
    return Estimate(iops, iops * (1 - percent / 100), iops * (1 + percent / 100), 5, Unit.IOPS)


def sweep(level: Level, points: dict[int, float], percent: float = 0.0) -> dict[Geometry, Estimate]:
    return {Geometry(level, width): about(iops, percent) for width, iops in points.items()}


@given(
    st.sampled_from([Level.RAID0, Level.RAID1, Level.RAID5, Level.RAID6, Level.RAID10]),
    st.floats(0, 1),
    st.floats(1, 1e6),
)
def test_an_array_that_obeys_the_law_is_linear(level: Level, read_fraction: float, iops: float) -> None:
    widths = [Geometry(level, width) for width in (4, 6, 8)]
    found = fit({each: about(expected_iops(each, read_fraction, iops, iops)) for each in widths}, read_fraction)
    assert found.slope.value == pytest.approx(1)
    assert found.deviation.value == pytest.approx(0, abs=1e-6)


def test_intels_raid5_writes_are_linear_and_not_short() -> None:
    # 329903-001: +58 % from 3 to 6 drives, +97 % from 3 to 8.
    found = fit(sweep(Level.RAID5, {3: 1.0, 6: 1.58, 8: 1.97}), 0.0)
    assert found.deviation.value == pytest.approx(1.5, abs=0.01)
    assert found.worst == Geometry(Level.RAID5, 8)
    assert [point.efficiency.value for point in found.points] == pytest.approx([1, 1.0533, 0.985], abs=1e-3)


def test_doubling_for_three_times_the_drives_is_a_third_short() -> None:
    found = fit(sweep(Level.RAID0, {4: 100.0, 8: 200.0, 24: 400.0}), 1.0)
    assert found.deviation.value == pytest.approx(100 / 3)
    assert found.worst == Geometry(Level.RAID0, 24)
    assert found.slope.value == pytest.approx((16 + 64 + 576 * 2 / 3) / (16 + 64 + 576))


def test_better_than_linear_is_a_warning_and_no_shortfall() -> None:
    found = fit(sweep(Level.RAID0, {4: 50.0, 24: 325.0}), 0.8)
    assert found.deviation.value < 0
    assert len(found.warnings()) == 1
    assert "raid0x24 does 1.08 ×" in found.warnings()[0]
    assert not fit(sweep(Level.RAID0, {4: 50.0, 24: 300.0}), 0.8).warnings()


@given(st.floats(0, 20), st.floats(-0.3, 0.3))
def test_the_truth_of_the_points_is_inside_the_interval_of_the_figures(percent: float, off: float) -> None:
    found = fit(sweep(Level.RAID0, {2: 200.0, 4: 400.0, 8: 800 * (1 + off)}, percent), 1.0)
    for shift in (-percent / 100, 0, percent / 100):
        true = fit(sweep(Level.RAID0, {2: 200 * (1 - shift), 4: 400.0, 8: 800 * (1 + off) * (1 + shift)}), 1.0)
        for estimate, truth in ((found.slope, true.slope), (found.deviation, true.deviation)):
            assert estimate.low - 1e-6 <= truth.value <= estimate.high + 1e-6


def test_what_is_no_sweep_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 widths"):
        fit(sweep(Level.RAID0, {4: 100.0}), 1.0)
    with pytest.raises(ValueError, match="at least 2 widths of one level, not none"):
        fit({}, 1.0)
    with pytest.raises(ValueError, match="of one level"):
        fit(sweep(Level.RAID0, {4: 100.0}) | sweep(Level.RAID5, {4: 100.0}), 1.0)
    with pytest.raises(ValueError, match="of one level, not raid5x4, raid5x5-1failed"):
        fit({Geometry.parse("raid5x4"): about(1), Geometry.parse("raid5x5-1failed"): about(1)}, 1.0)
    with pytest.raises(ValueError, match="no baseline"):
        fit(sweep(Level.RAID0, {2: 100.0, 4: 200.0}, percent=100), 1.0)


def test_the_record_is_plain_data() -> None:
    record = fit(sweep(Level.RAID5, {3: 1.0, 6: 1.58, 8: 1.97}, percent=1), 0.0).to_record()
    assert json.loads(json.dumps(record)) == record
    assert record["worst"] == "raid5x8"


def test_degraded_arrays_are_held_to_their_own_law() -> None:
    widths = [Geometry.parse(f"raid5x{width}-1failed") for width in (4, 6, 8)]
    found = fit({each: about(expected_iops(each, 1.0, 100, 100)) for each in widths}, 1.0)
    assert found.slope.value == pytest.approx(1)


def test_a_width_that_may_do_nothing_has_no_negative_share() -> None:
    shaky = Estimate(100, -50, 250, 5, Unit.IOPS)
    found = fit({Geometry(Level.RAID0, 2): about(200), Geometry(Level.RAID0, 4): shaky}, 1.0)
    assert found.points[1].efficiency.low == 0
    assert found.deviation.high == 100
