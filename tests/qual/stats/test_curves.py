from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import about

from pytest_ssdqual.qual.stats.curves import (
    CurveFigure,
    balanced_gain,
    bathtub,
    depth_dependence,
    depth_gain,
    knee,
    latency_knee,
    mix_rise,
    unaligned,
)
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)

#: Habr 156147, Intel 910, four drives in md RAID 0 (seeds E-R1…E-R11 and E-W1…E-W11).
DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
READS_910 = [7_681, 14_893, 28_203, 53_011, 88_700, 98_419, 112_378, 148_845, 149_196, 148_067, 148_445]
WRITES_910 = [14_480, 26_930, 47_827, 67_451, 85_790, 85_692, 89_589, 96_076, 102_496, 96_658, 97_243]


def over_depths(
    iops: list[int], depths: list[int] | None = None, rw: str = "randread", percent: float = 0.0
) -> dict[Workload, Estimate]:
    """One job, as in the source: ``threads=1``."""
    depths = depths or DEPTHS[: len(iops)]
    return {
        Workload(rw, "4k", depth, threads=1): about(rate, percent) for depth, rate in zip(depths, iops, strict=True)
    }


def mix(read_percent: int) -> Workload:
    if read_percent in (0, 100):
        return READ if read_percent else WRITE
    return Workload("randrw", "4k", 8, read_percent)


def over_mixes(iops: dict[int, float], percent: float = 0.0) -> dict[Workload, Estimate]:
    return {mix(share): about(rate, percent) for share, rate in iops.items()}


# Depth


@pytest.mark.parametrize(
    ("curve", "width", "ends"),
    [
        (over_depths(READS_910), 4, (128, 128, 128)),
        # "16 to 32 outstanding": what comes beyond, +1 % to +7 % a doubling, is a creep.
        (over_depths(WRITES_910, rw="randwrite"), 4, (16, 16, 16)),
        # A dip and the recovery from it are no growth.
        (over_depths([100, 200, 120, 205, 206]), 1, (2, 2, 2)),
        # 30 % for four times the depth is 14 % a doubling, for eight times 9 %.
        (over_depths([100, 200, 260], [1, 2, 8]), 1, (8, 8, math.inf)),
        (over_depths([100, 200, 260], [1, 2, 16]), 1, (2, 2, 2)),
        (over_depths([100, 101, 99, 100]), 1, (1, 1, 1)),
        # From depth 4 to 8 +12 % of figures known to 4 %; +8 % is no growth, but possibly.
        (over_depths([100, 190, 360, 403, 405, 404], percent=4), 1, (4, 8, 8)),
        (over_depths([100, 190, 360, 389, 389, 388], percent=4), 1, (4, 4, 8)),
    ],
)
def test_the_knee_is_where_growth_ends(
    curve: dict[Workload, Estimate], width: int, ends: tuple[float, float, float]
) -> None:
    found = knee(curve, width)
    assert (found.estimate.low, found.estimate.value, found.estimate.high) == ends
    assert (found.estimate.n, found.estimate.unit) == (5, Unit.COUNT)
    assert found.at[0].outstanding(width) == found.estimate.value


def test_the_knee_is_told_in_ios_of_the_whole_array() -> None:
    per_drive = {
        READ.at(depth): about(rate) for depth, rate in ((8, 50_000), (16, 90_000), (32, 150_000), (64, 151_000))
    }
    assert knee(per_drive, width=4).estimate.value == 128
    assert knee(per_drive, width=1).estimate.value == 32


def latencies(*micros: float, percent: float = 0.0) -> dict[Workload, Estimate]:
    """Mean latencies at depths 1, 2, 4, …"""
    return over_depths([round(1_000 * each) for each in micros], percent=percent)


@pytest.mark.parametrize(
    ("curve", "width", "ends"),
    [
        # Eight I/Os are served at once, what is more waits.
        (latencies(100, 105, 115, 135, 260, 515), 1, (8, 8, 8)),
        # The 910's reads (seeds E-R), whose latency grows by 82 % from 16 to 32 outstanding.
        (latencies(127, 131, 139, 148, 178, 323, 568, 858), 4, (16, 16, 16)),
        # A rise that may be noise, and none.
        (latencies(100, 105, 146, 290, 580, percent=4), 1, (2, 4, 4)),
        (latencies(100, 100, 100), 1, (4, 4, math.inf)),
    ],
)
def test_the_knee_of_latency_is_before_its_sharp_rise(
    curve: dict[Workload, Estimate], width: int, ends: tuple[float, float, float]
) -> None:
    found = latency_knee(curve, width)
    assert (found.estimate.low, found.estimate.value, found.estimate.high) == ends
    assert found.at[0].outstanding(width) == found.estimate.value


@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=11), st.floats(0, 20), st.integers(1, 8))
def test_knee_is_a_measured_depth_whatever_order_or_unit(iops: list[int], percent: float, width: int) -> None:
    curve = over_depths(iops, percent=percent)
    found = knee(curve, width)
    assert found.estimate.value in DEPTHS
    assert found.estimate.low in DEPTHS
    assert found.estimate.high in (*DEPTHS, math.inf)
    assert knee(dict(reversed(curve.items())), width) == found
    doubled = {each: replace(e, value=2 * e.value, low=2 * e.low, high=2 * e.high) for each, e in curve.items()}
    assert knee(doubled, width) == found


def test_what_depth_brings() -> None:
    gain, dependence = depth_gain(over_depths(READS_910), 4), depth_dependence(over_depths(WRITES_910), 4)
    assert gain.estimate.value == pytest.approx(148_445 / 7_681)
    assert dependence.estimate.value == pytest.approx(102_496 / 14_480)
    assert [[workload.qd_per_drive for workload in figure.at] for figure in (gain, dependence)] == [[1, 1024], [1, 256]]


def test_writes_to_a_mirror_do_not_depend_on_depth() -> None:
    # Seed A-09: one drive's share at every depth, to the noise.
    found = depth_dependence({WRITE.at(depth): about(11_500 + 50 * depth, 2) for depth in (1, 2, 4, 8)}, width=2)
    assert found.estimate.value == pytest.approx(11_900 / 11_550)
    assert found.estimate.low == 1
    assert 1.06 < found.estimate.high < 1.08


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=11), st.floats(0, 20))
def test_dependence_is_at_least_one_and_at_least_the_gain(iops: list[int], percent: float) -> None:
    curve = over_depths(iops, percent=percent)
    dependence, gain = depth_dependence(curve, 1).estimate, depth_gain(curve, 1).estimate
    assert 1 <= dependence.low <= dependence.value <= dependence.high
    assert dependence.value >= max(gain.value, 1 / gain.value) * (1 - 1e-9)
    assert dependence.high >= gain.high * (1 - 1e-9)


#: Four threads of 8 and one of 32 are 32 both.
TWICE = [Workload("randread", "4k", 8, threads=4), *(Workload("randread", "4k", qd, threads=1) for qd in (1, 32))]


@pytest.mark.parametrize("figure", [knee, depth_gain, depth_dependence])
@pytest.mark.parametrize(
    ("workloads", "words"),
    [
        ([READ], "each once, not randread_4k_qd8"),
        ([], "each once, not none"),
        ([READ, WRITE.at(4)], "more than their queue depth"),
        (TWICE, "each once"),
    ],
)
def test_what_is_no_series_of_depths_is_refused(
    figure: Callable[..., CurveFigure], workloads: list[Workload], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        figure({workload: about(1) for workload in workloads}, 1)


@pytest.mark.parametrize("figure", [knee, latency_knee])
def test_a_knee_needs_three_depths(figure: Callable[..., CurveFigure]) -> None:
    with pytest.raises(ValueError, match="3 queue depths,"):
        figure(over_depths([100, 200]), 1)


# Mixes


def test_the_bathtub_against_the_straight_line() -> None:
    # Line at 50 %: (1,000 + 9,000) / 2 = 5,000; at 80 %: 7,400.
    found = bathtub(over_mixes({0: 1_000, 50: 2_000, 80: 6_000, 100: 9_000}))
    assert found.estimate.value == pytest.approx(0.4)
    assert found.at == (mix(50),)
    assert found.estimate.low == found.estimate.high == pytest.approx(0.4)


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.sets(st.integers(1, 99), min_size=1, max_size=7))
def test_a_drive_on_the_line_has_no_tub(writes: float, reads: float, shares: set[int]) -> None:
    line = {share: writes + (reads - writes) * share / 100 for share in (0, *shares, 100)}
    assert bathtub(over_mixes(line)).estimate.value == pytest.approx(1)


@given(
    st.lists(st.floats(1, 1e6), min_size=4, max_size=4),
    st.floats(0, 30),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
)
def test_the_true_depth_of_the_tub_is_inside(iops: list[float], percent: float, off: list[float]) -> None:
    shares = (0, 35, 65, 100)
    found = bathtub(over_mixes(dict(zip(shares, iops, strict=True)), percent)).estimate
    true = [rate * (1 + shift * percent / 100) for rate, shift in zip(iops, off, strict=True)]
    truth = bathtub(over_mixes(dict(zip(shares, true, strict=True)))).estimate.value
    assert found.low * (1 - 1e-9) <= truth <= found.high * (1 + 1e-9)


def test_each_end_is_of_the_worst_mix_by_itself() -> None:
    line = {READ: about(1_000), WRITE: about(1_000)}
    shaky, surer = Estimate(500, 300, 900, 5, Unit.IOPS), Estimate(550, 540, 560, 5, Unit.IOPS)
    found = bathtub({**line, mix(50): shaky, mix(65): surer})
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == (0.5, 0.3, 0.56)
    assert found.at == (mix(50),)


THREE = {0: 1.0, 50: 1.0, 100: 1.0}


@pytest.mark.parametrize(
    ("figure", "curve", "words"),
    [
        (bathtub, over_mixes({0: 1, 50: 1}), "needs pure reads, .* not only"),
        (bathtub, over_mixes({50: 1, 100: 1}), "needs pure reads, pure writes"),
        (bathtub, over_mixes({0: 1, 100: 1}), "and mixes between them"),
        (bathtub, {}, "needs pure reads"),
        (bathtub, {**over_mixes(THREE), Workload("randrw", "8k", 8, 30): about(1)}, "more than their mix"),
        (bathtub, {**over_mixes(THREE), Workload("randread+randwrite", "4k", 8): about(1)}, "no fixed mix"),
        (mix_rise, over_mixes({100: 1, 0: 1}), "at least 2 mixes"),
        (balanced_gain, over_mixes({100: 1, 0: 1}), "35 to 65 % reads and others"),
        (unaligned, {WRITE: about(1), replace(WRITE.at(4), offset="512"): about(1)}, "not only randwrite_4k_qd8"),
    ],
)
def test_what_is_no_series_of_mixes_or_offsets_is_refused(
    figure: Callable[..., CurveFigure], curve: dict[Workload, Estimate], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        figure(curve)


def test_sequential_mixes_have_their_line_too() -> None:
    rates = {Workload("read", "1m", 8): 300, Workload("rw", "1m", 8, 50): 100, Workload("write", "1m", 8): 100}
    assert bathtub({workload: about(rate) for workload, rate in rates.items()}).estimate.value == pytest.approx(0.5)


def test_a_monotone_fall_may_end_in_a_rise_of_pure_writes() -> None:
    falling = {100: 300, 95: 250, 65: 120, 50: 90, 35: 70, 5: 60}
    assert mix_rise(over_mixes({**falling, 0: 66})).estimate.value == pytest.approx(60 / 70)
    found = mix_rise(over_mixes({**falling, 50: 132, 0: 66}))
    assert found.estimate.value == pytest.approx(1.1)
    assert found.at == (mix(65), mix(50))


def test_a_balanced_mix_is_compared_with_the_best_of_all_others() -> None:
    found = balanced_gain(over_mixes({100: 100, 95: 110, 65: 120, 50: 132, 35: 90, 5: 50, 0: 40}))
    assert found.estimate.value == pytest.approx(1.2)
    assert found.at == (mix(50), mix(95))
    least_reads = balanced_gain(over_mixes({100: 100, 65: 90, 50: 80, 35: 150, 0: 40}))
    assert least_reads.estimate.value == pytest.approx(1.5)
    assert least_reads.at == (mix(35), mix(100))


# Offsets


def test_the_pair_that_loses_most_is_the_penalty() -> None:
    rates = {WRITE: 1_000, replace(WRITE, offset="512"): 400, replace(WRITE, offset="2k"): 500, READ: 9_000,
             replace(READ, offset="512"): 8_000}  # fmt: skip
    found = unaligned({each: about(rate, 1) for each, rate in rates.items()})
    assert found.estimate.value == pytest.approx(2.5)
    assert found.estimate.low == pytest.approx(2.5 * 0.99 / 1.01)
    assert [str(each) for each in found.at] == ["randwrite_4k_qd8", "randwrite_4k_off512_qd8"]
