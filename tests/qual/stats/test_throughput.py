from __future__ import annotations

import pytest
from support.builders.strategies import run, visited

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, student_t
from pytest_ssdqual.qual.stats.throughput import iops, read_iops, throughput, write_iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload


def cells(*rates: int, workload: Workload | None = None, scatter: float = 0.01) -> Measured:
    """Two visits of two cells."""
    runs = tuple(run([rate] * 10, rounds=1, workload=workload) for rate in rates)
    return Measured(runs, visited(level=0.99, scatter=scatter))


def test_iops_of_visits_have_the_scatter_of_the_mix() -> None:
    found = iops(cells(5_000, 5_040, 4_980, 5_000))
    half = student_t(0.99, 20) * 0.01 * 5_005 / 2
    assert (found.value, found.high - found.value) == pytest.approx((5_005, half))
    assert (found.n, found.unit, found.confidence) == (4, Unit.IOPS, 0.95)


def test_directions_and_bytes_have_the_same_interval() -> None:
    mixed = cells(5_000, 5_040, 4_980, 5_000, workload=Workload("randrw", "4k", 8, 70))
    reads, writes, both = read_iops(mixed), write_iops(mixed), iops(mixed)
    assert reads.value + writes.value == pytest.approx(both.value)
    assert reads.value == pytest.approx(0.7 * both.value, rel=0.01)
    assert throughput(mixed).value == pytest.approx(4096 * both.value)
    assert throughput(mixed).unit is Unit.BYTES_PER_SECOND
    for figure in (reads, writes, throughput(mixed)):
        assert figure.high / figure.value == pytest.approx(both.high / both.value)
    with pytest.raises(ValueError, match="has no writes"):
        write_iops(cells(5_000, 5_040, 4_980, 5_000))


def test_cells_without_io_have_zero_iops() -> None:
    found = iops(cells(0, 0, 0, 0))
    assert (found.low, found.value, found.high) == (0, 0, 0)


def test_repeats_that_differ_widen_the_interval_of_rounds() -> None:
    apart = Measured(tuple(run([rate] * 5) for rate in (1_000, 1_100)))
    found = iops(apart)
    assert found.high - found.value == pytest.approx(12.706 * 50, rel=0.01)
    assert iops(apart, has_own_repeats=False).high < found.high


def test_the_confidence_is_carried() -> None:
    assert iops(cells(1_000, 1_000, 1_000, 1_000), ConfidenceLevel(0.9)).confidence == 0.9
    assert iops(Measured((run([1_000] * 20),)), ConfidenceLevel(0.9)).confidence == 0.9
