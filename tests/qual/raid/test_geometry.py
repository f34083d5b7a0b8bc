from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import geometries

from pytest_ssdqual.qual.raid.geometry import (
    FACTS,
    Geometry,
    RaidLevel,
    Tuning,
    costs,
    depth_share,
    effective_drives,
    expected_iops,
    loads,
)

DEGRADED = [
    Geometry(level, width, missing)
    for level in (RaidLevel.RAID1, RaidLevel.RAID5, RaidLevel.RAID6, RaidLevel.RAID10)
    for width in range(2, 17)
    if FACTS[level].allows(width)
    for missing in range(1, FACTS[level].may_lose(width) + 1)
]
degraded = st.sampled_from(DEGRADED)
with_parity = st.sampled_from([each for each in DEGRADED if each.has_parity])
shares = st.floats(0, 1)
rates = st.floats(1, 1e7)


@pytest.mark.parametrize("text", ["drivex0", "raid0x1", "raid1x1", "raid5x2", "raid6x3", "raid10x1", "raid10x5"])
def test_impossible_widths_are_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"needs .* drive"):
        Geometry.parse(text)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_raid10_of_two_costs_what_a_pair_of_mirrors_costs(missing: int) -> None:
    one, pair = (Geometry(level, 2, missing) for level in (RaidLevel.RAID10, RaidLevel.RAID1))
    assert loads(one) == loads(pair)
    assert one.data_drives == pair.data_drives == 1


def test_the_refusal_says_what_is_possible() -> None:
    with pytest.raises(ValueError, match="2, not 5"):
        Geometry(RaidLevel.RAID10, 5)
    assert FACTS[RaidLevel.RAID5].describe_widths() == "3 or more drives"
    assert FACTS[RaidLevel.DRIVE].describe_widths() == "1 or more drives"


@pytest.mark.parametrize("text", ["raid5", "x4", "raid7x4", "raid5x", "raid5x-4", "raid5x४", "raid5x4 "])
def test_other_texts_are_no_arrays(text: str) -> None:
    with pytest.raises(ValueError, match="not an array"):
        Geometry.parse(text)


@given(geometries | degraded | degraded.map(lambda each: Geometry(each.level, each.width, each.missing, True)))
def test_the_id_is_read_back(geometry: Geometry) -> None:
    assert Geometry.parse(str(geometry)) == geometry


@given(
    with_parity, st.builds(Tuning, st.sampled_from([0, 4096, 65536, 1 << 20]), st.integers(0, 32768), st.integers(0, 9))
)
def test_settings_of_md_are_in_the_id(geometry: Geometry, tuning: Tuning) -> None:
    tuned = replace(geometry, tuning=tuning)
    assert Geometry.parse(str(tuned)) == tuned
    assert Tuning.parse(str(tuning).removeprefix("-")) == tuned.healthy.tuning == tuning
    # They change neither what a member has to do nor what the array holds.
    assert (loads(tuned), costs(tuned), tuned.data_drives) == (loads(geometry), costs(geometry), geometry.data_drives)


@pytest.mark.parametrize("text", ["raid0x4-s256", "raid10x4-t2", "raid1x2-c64k", "drivex2-c64k", "raid5x4-c3k"])
def test_settings_that_an_array_cannot_have(text: str) -> None:
    with pytest.raises(ValueError, match=r"has no|power of two"):
        Geometry.parse(text)


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("drivex1", 0, 1),
        ("raid0x8", 0, 1),
        ("raid1x2", 0, 2),
        ("raid1x3", 0, 3),
        ("raid10x4", 0, 2),
        ("raid10x8", 0, 2),
        ("raid5x3", 1, 2),
        ("raid5x4", 2, 2),
        ("raid5x5", 2, 2),
        ("raid5x8", 2, 2),
        ("raid6x4", 1, 3),
        ("raid6x5", 2, 3),
        ("raid6x6", 3, 3),
        ("raid6x7", 3, 3),
        ("raid6x8", 3, 3),
    ],
)
def test_what_a_small_write_costs(text: str, reads: int, writes: int) -> None:
    cost = costs(Geometry.parse(text))
    assert (float(cost.reads_for_write), float(cost.writes_for_write)) == (reads, writes)


@pytest.mark.parametrize(
    ("text", "drives"),
    [
        ("drivex1", 1),
        ("drivex3", 3),
        ("raid5x4-1failed", 3),
        ("raid0x4", 4),
        ("raid1x2", 1),
        ("raid1x4", 1),
        ("raid10x8", 4),
        ("raid5x4", 3),
        ("raid6x8", 6),
    ],
)
def test_capacity(text: str, drives: int) -> None:
    geometry = Geometry.parse(text)
    assert geometry.data_drives == drives


def test_special_cases_of_the_law() -> None:
    read, write = 75_000.0, 11_500.0
    assert expected_iops(Geometry.parse("raid0x4"), 1.0, read, write) == pytest.approx(4 * read)
    assert expected_iops(Geometry.parse("raid0x4"), 0.0, read, write) == pytest.approx(4 * write)
    assert expected_iops(Geometry.parse("raid10x8"), 0.0, read, write) == pytest.approx(46_000)
    assert expected_iops(Geometry.parse("raid1x2"), 0.0, read, write) == pytest.approx(write)
    assert expected_iops(Geometry.parse("raid5x8"), 0.0, read, write) == pytest.approx(8 / (2 / read + 2 / write))
    assert expected_iops(Geometry.parse("raid5x3"), 0.0, read, write) == pytest.approx(3 / (1 / read + 2 / write))


@given(geometries | degraded, shares, rates)
def test_with_equal_reads_and_writes_the_law_is_effective_drives(
    geometry: Geometry, read_fraction: float, iops: float
) -> None:
    assert expected_iops(geometry, read_fraction, iops, iops) == pytest.approx(
        effective_drives(geometry, read_fraction) * iops
    )


@given(geometries | degraded, st.integers(1, 256))
def test_the_share_reached_rises_with_depth(geometry: Geometry, depth: int) -> None:
    assert 0.5 < depth_share(geometry, depth) <= 1
    assert depth_share(geometry, depth) <= depth_share(geometry, depth + 1)


def test_queue_of_one_leaves_nearly_half_of_eight_drives_idle() -> None:
    assert depth_share(Geometry.parse("raid0x8"), 1) == 8 / 15
    assert depth_share(Geometry.parse("drivex1"), 1) == 1


@pytest.mark.parametrize("text", ["raid0x4-1failed", "drivex2-1failed", "raid5x4-2failed", "raid1x3-3failed"])
def test_no_more_members_are_missing_than_can_be(text: str) -> None:
    with pytest.raises(ValueError, match="may lose"):
        Geometry.parse(text)


@pytest.mark.parametrize(
    ("text", "reads", "writes", "read_cost_of_it"),
    [
        # Counted at the members in /proc/diskstats, Linux 6.1, mdadm 4.2, 4 KiB random I/O of fio, 8 s each:
        ("raid5x3-1failed", 1.365, 1.336, 1.333),
        ("raid5x4-1failed", 2.031, 1.498, 1.500),
        ("raid5x5-1failed", 2.434, 1.598, 1.602),
        ("raid5x6-1failed", 2.693, 1.665, 1.664),
        ("raid6x4-1failed", 1.521, 2.247, 1.483),
        ("raid6x5-1failed", 2.426, 2.395, 1.596),
        ("raid6x7-1failed", 3.466, 2.575, 1.727),
        ("raid6x4-2failed", 1.522, 1.491, 1.475),
        ("raid6x5-2failed", 2.710, 1.805, 1.776),
        ("raid6x7-2failed", 4.141, 2.157, 2.145),
        ("raid10x4-1failed", 0.036, 1.497, 1.000),
        ("raid10x6-1failed", 0.024, 1.666, 1.000),
        ("raid1x2-1failed", 0.062, 1.001, 1.000),
        ("raid1x3-1failed", 0.043, 2.001, 1.000),
        ("raid1x3-2failed", 0.047, 1.001, 1.000),
    ],
)
def test_what_was_counted_at_the_members_of_real_arrays(
    text: str, reads: float, writes: float, read_cost_of_it: float
) -> None:
    geometry = Geometry.parse(text)
    # mdadm's own reads, some hundred, are among thousands of host writes.
    assert costs(geometry).reads_for_write == pytest.approx(reads, rel=0.03, abs=0.07)
    assert costs(geometry).writes_for_write == pytest.approx(writes, rel=0.01)
    assert costs(geometry).reads_for_read == pytest.approx(read_cost_of_it, rel=0.02)


def test_the_work_of_each_member_as_it_was_counted() -> None:
    counted = [0.468 + 0.426, 0.638 + 0.421, 0.638 + 0.435, 0.624 + 0.432, 0.635 + 0.439, 0.462 + 0.421]
    law = [float(each.reads_for_write + each.writes_for_write) for each in loads(Geometry.parse("raid6x7-1failed"))]
    assert law == pytest.approx(counted, rel=0.03)


class Stripe:
    """md's decision for one page of one stripe, by its own counters: pages to read, 2 N for each it cannot read."""

    def __init__(self, geometry: Geometry, number: int, missing: frozenset[int]) -> None:
        width, parity = geometry.width, FACTS[geometry.level].parity
        self.missing, self.there = missing, frozenset(range(width)) - missing
        self.p = width - 1 - number % width  # left-symmetric
        self.q = (self.p + 1) % width if parity == 2 else self.p
        self.data = [(self.q + 1 + index) % width for index in range(width - parity)]

    def reads_for_read(self, target: int) -> frozenset[int]:
        return self.there if target in self.missing else frozenset({target})

    def reads_for_write(self, target: int) -> frozenset[int]:
        rmw, rcw = {target, self.p, self.q}, set(self.data) - {target}
        unreadable = 2 * (len(self.there) + len(self.missing))
        dear = {True: unreadable, False: 1}
        cost_rmw = sum(dear[each in self.missing] for each in rmw)
        cost_rcw = sum(dear[each in self.missing] for each in rcw)
        if min(cost_rmw, cost_rcw) >= unreadable:
            return self.there
        return frozenset(rmw if cost_rmw < cost_rcw else rcw)

    def writes(self, target: int) -> frozenset[int]:
        return frozenset({target, self.p, self.q}) - self.missing


def enumerated(geometry: Geometry, missing: frozenset[int]) -> tuple[list[float], list[float], list[float]]:
    """Reads for a read, reads for a write and writes per member and host I/O, over one whole turn of the parity."""
    counts = [[0.0] * geometry.width for _ in range(3)]
    pages = [(Stripe(geometry, number, missing), index) for number in range(geometry.width)
             for index in range(geometry.data_drives)]  # fmt: skip
    for stripe, index in pages:
        target = stripe.data[index]
        for count, members in zip(
            counts, (stripe.reads_for_read(target), stripe.reads_for_write(target), stripe.writes(target)), strict=True
        ):
            for member in members:
                count[member] += 1 / len(pages)
    return counts[0], counts[1], counts[2]


@given(with_parity)
def test_parity_arrays_do_what_md_does_stripe_by_stripe(geometry: Geometry) -> None:
    left = geometry.width - geometry.missing
    reads, modifies, writes = enumerated(geometry, frozenset(range(left, geometry.width)))
    found = loads(geometry)
    assert [float(each.reads_for_read) for each in found] == pytest.approx(reads[:left])
    assert [float(each.reads_for_write) for each in found] == pytest.approx(modifies[:left])
    assert [float(each.writes_for_write) for each in found] == pytest.approx(writes[:left])
    assert not any(reads[left:] + modifies[left:] + writes[left:])


@given(with_parity.filter(lambda each: each.width <= 8))
def test_which_members_are_missing_hardly_matters(geometry: Geometry) -> None:
    totals = [
        sum(modifies) + sum(writes)
        for missing in combinations(range(geometry.width), geometry.missing)
        for _, modifies, writes in [enumerated(geometry, frozenset(missing))]
    ]
    write = costs(geometry)
    cheapest = float(write.reads_for_write + write.writes_for_write)
    assert min(totals) == pytest.approx(cheapest)
    assert max(totals) == pytest.approx(cheapest) if geometry.missing == 1 else max(totals) < 1.06 * cheapest


@given(degraded, shares, rates, rates)
def test_no_array_gains_by_losing_a_member(
    geometry: Geometry, read_fraction: float, reads: float, writes: float
) -> None:
    def iops(each: Geometry, share: float) -> float:
        return expected_iops(each, share, reads, writes)

    fewer = Geometry(geometry.level, geometry.width, geometry.missing - 1)
    assert iops(geometry, read_fraction) <= iops(fewer, read_fraction) * (1 + 1e-9)
    assert iops(geometry, 1.0) < iops(fewer, 1.0)
    if geometry.level in (RaidLevel.RAID1, RaidLevel.RAID10):
        assert iops(geometry, 0.0) == pytest.approx(iops(fewer, 0.0))


def test_a_raid10_is_as_fast_as_its_broken_pair() -> None:
    broken = Geometry.parse("raid10x8-1failed")
    assert expected_iops(broken, 1.0, 300, 100) == pytest.approx(4 * 300)
    assert expected_iops(broken, 0.0, 300, 100) == pytest.approx(4 * 100)
    assert expected_iops(broken, 0.5, 300, 100) == pytest.approx(4 / (0.5 / 300 + 0.5 / 100))


def test_no_law_is_known_of_an_array_that_is_rebuilt() -> None:
    rebuilt = Geometry.parse("raid6x6-2rebuilding")
    with pytest.raises(ValueError, match="says what raid6x6-2rebuilding"):
        loads(rebuilt)
    with pytest.raises(ValueError, match="no law"):
        expected_iops(rebuilt, 1.0, 300, 300)
    assert costs(rebuilt) == costs(Geometry.parse("raid6x6-2failed"))
