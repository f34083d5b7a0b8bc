"""Write amplification of a measurement, by the drives' own counts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import run, seen, seen_drive

from pytest_ssdqual.qual.measured.environment import DriveEnvironment, MediaCount, OwnCount, Traffic
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.drive_counters import endurance, unknown, write_amplification
from pytest_ssdqual.qual.stats.estimate import USUAL, NotApplicable
from pytest_ssdqual.qual.workload.workload import Workload

GIB = 1 << 30
WRITES, READS = Workload("randwrite", "4k", 8), Workload("randread", "4k", 8)


def wrote(
    media: MediaCount | None, host_bytes: int = 100 * GIB, name: str = "S0", own_bytes: int | None = None
) -> DriveEnvironment:
    counted = Traffic(0, host_bytes // 4096, 0, host_bytes)
    own = None if own_bytes is None else OwnCount(None, None, None, own_bytes, 512_000)
    return replace(seen_drive(name, counted, None), media=media, own=own)


def measured(*processes: list[DriveEnvironment], workload: Workload = WRITES) -> Measured:
    return Measured(
        tuple(replace(run([1000] * 5, geometry="raid0x2", workload=workload), seen=seen(each)) for each in processes)
    )


@pytest.mark.parametrize(
    ("drive", "ends"),
    [
        (wrote(MediaCount(300 * GIB)), (3, 3, 3)),
        (wrote(MediaCount(300 * GIB, step=10 * GIB)), (2.9, 3, 3.1)),  # the count is in units of 10 GiB
        (wrote(MediaCount(0, step=500 * GIB)), (0, 0, 5)),  # it did not move
        (wrote(MediaCount(80 * GIB)), (0.8, 0.8, 0.8)),  # a drive that compresses
        # Pages; of the host's there are 20 less than the whole pages of its bytes.
        (wrote(MediaCount(30_000, 10_000)), (2.9996, 3, 3.0004)),
        # The drive's own count of the host lacks a tenth: its count of flash may be as old.
        (wrote(MediaCount(300 * GIB), own_bytes=90 * GIB), (2.7, 3, 3.3)),
        (wrote(MediaCount(300 * GIB), own_bytes=100 * GIB + 500_000), (3, 3, 3)),  # its unit is no age
    ],
)
def test_the_interval_contains_what_the_count_may_be_off(drive: DriveEnvironment, ends: tuple[float, ...]) -> None:
    found = write_amplification(measured([drive]), USUAL)
    assert (found.low, found.value, found.high) == pytest.approx(ends, rel=1e-4)
    assert found.is_reading


def test_the_worst_member_of_an_array_counts() -> None:
    found = write_amplification(
        measured([wrote(MediaCount(200 * GIB)), wrote(MediaCount(500 * GIB), name="S1")]), USUAL
    )
    assert (found.low, found.value, found.high) == pytest.approx((5, 5, 5))


def test_a_count_that_is_seldom_refreshed_has_a_wide_interval() -> None:
    """Three processes of three times the writes, of which the drive counts the second with the third."""
    lumps = [MediaCount(300 * GIB), MediaCount(0), MediaCount(600 * GIB)]
    found = write_amplification(measured(*([wrote(each)] for each in lumps)), USUAL)
    assert (found.low, found.value, found.high) == pytest.approx((0, 3, 6), abs=0.01)


@given(
    st.lists(st.floats(1.0, 20.0), min_size=1, max_size=6),
    st.sampled_from([1, 32 << 20, GIB]),
    st.integers(0, 10**12),
)
def test_the_interval_contains_the_truth_of_any_unit(true: list[float], unit: int, start: int) -> None:
    """Counts are rounded down to whole units; the truth is that of all processes together."""
    host, at, processes = 40 * GIB, start, []
    for each in true:
        before, at = at // unit * unit, at + round(each * host)
        processes.append([wrote(MediaCount(at // unit * unit - before, step=unit), host)])
    found = write_amplification(measured(*processes), USUAL)
    assert found.low - 1e-9 <= (at - start) / host / len(true) <= found.high + 1e-9


@pytest.mark.parametrize(
    ("what", "named"),
    [
        (measured([wrote(MediaCount(7))], workload=READS), "randread_4k_qd8"),
        (Measured((run([1000] * 5, workload=WRITES),)), "not read"),
        (measured([wrote(MediaCount(7)), wrote(None, name="S7")]), "S7"),
        (measured([wrote(MediaCount(7), 0)]), "S0"),
        (measured([replace(wrote(MediaCount(7)), device=seen_drive("S0", None, None).device)]), "S0"),
        (measured([wrote(MediaCount(7))], [wrote(None)]), "S0"),
    ],
)
def test_what_is_unknown_is_named(what: Measured, named: str) -> None:
    assert named in unknown(what)
    with pytest.raises(NotApplicable, match=named):
        write_amplification(what, USUAL)


def test_what_is_known_has_no_objection() -> None:
    assert not unknown(measured([wrote(MediaCount(7))]))


TB = 10**12


@pytest.mark.parametrize(
    ("used", "percent", "rated", "words"),
    [
        (3, 3, 14_000 * TB, ("at least 5 PB", "too few to tell", "14 PB")),  # 50 TB wear it by less than a per cent
        (3, 4, 14_000 * TB, ("at least 2.5 PB", "too few to tell")),
        (3, 5, 14_000 * TB, ("at least 1.67 PB and at most 5 PB", "less than the rated 14 PB")),
        (3, 3, 4_000 * TB, ("at least 5 PB", "not less than the rated 4 PB")),
        (0, 2, 3_000 * TB, ("at least 1.67 PB and at most 5 PB", "too few to tell")),
        (0, 2, None, ("at least 1.67 PB and at most 5 PB",)),
    ],
)
def test_endurance_is_bounded_by_whole_per_cents(
    used: int, percent: int, rated: int | None, words: tuple[str, ...]
) -> None:
    clause = endurance(used, percent, 50 * TB, rated)
    assert all(word in clause for word in words)
    assert ("rated" in clause) is (rated is not None)


@given(st.floats(0, 200), st.floats(0, 50), st.integers(1, 10**17), st.integers(1, 10**18))
def test_an_endurance_is_never_said_to_be_less_than_it_is(start: float, worn: float, written: int, rated: int) -> None:
    """Whether a drive rounds up or down: the rated one is called unkept only if the true wear does not keep it."""
    for whole in (math.floor, math.ceil):
        clause = endurance(whole(start), whole(start + worn), written, rated)
        true = 100 * written / worn if worn else math.inf
        assert "less than the rated" not in clause.replace("not less", "") or true < rated
        assert "not less than" not in clause or true >= rated * (1 - 1e-9)
