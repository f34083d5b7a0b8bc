from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.rig.observe.device_counters import changed_bytes, counted, most_requests, queue

WRAP_MS = 1 << 32


def reading(ios: int, milliseconds: int) -> str:
    """``/sys/block/sda/stat`` of a kernel that prints milliseconds as 32-bit numbers."""
    ms = milliseconds % WRAP_MS
    return f"{ios} 0 {8 * ios} {ms} {ios} 0 {8 * ios} {ms} 0 {ms} {ms}"


@given(st.integers(0, 2 * WRAP_MS), st.integers(1, 3_000_000), st.floats(12.0, 16_000.0))
def test_a_counter_that_begins_again_changes_nothing(earlier: int, spent: int, seconds: float) -> None:
    found = queue(
        counted("sda", {"/sys/block/sda/stat": reading(0, earlier)}),
        counted("sda", {"/sys/block/sda/stat": reading(1000, earlier + spent)}),
        seconds,
        256,
    )
    assert found
    assert found.mean_depth == pytest.approx(spent / 1000 / seconds)
    assert found.read_wait_ns == pytest.approx(1000 * spent)


def test_a_counter_that_went_backwards_is_no_queue() -> None:
    before = counted("sda", {"/sys/block/sda/stat": reading(0, 50_000)})
    after = counted("sda", {"/sys/block/sda/stat": reading(1000, 49_000)})
    assert queue(before, after, 60.0, 256) is None


@pytest.mark.parametrize(("depth", "known_s", "unknown_s"), [(64, 4 * 3600.0, 5 * 3600.0), (1024, 1800.0, 3600.0)])
def test_counters_that_could_begin_again_unnoticed_are_no_queue(depth: int, known_s: float, unknown_s: float) -> None:
    """Deep queues count faster."""
    before, after = (counted("sda", {"/sys/block/sda/stat": reading(ios, 50)}) for ios in (0, 1000))
    most = 256 if depth == 64 else most_requests(depth, 4096)
    assert queue(before, after, known_s, most)
    assert queue(before, after, unknown_s, most) is None


@pytest.mark.parametrize(("depth", "block_bytes"), [(128, 4096), (257, 4096), (1024, 4096), (1024, 1 << 20)])
def test_a_depth_of_the_workload_is_a_queue(depth: int, block_bytes: int) -> None:
    requests = depth * max(1, block_bytes >> 17)
    before, after = (
        counted("sda", {"/sys/block/sda/stat": reading(ios, ms)}) for ios, ms in ((0, 0), (1000, requests * 60_000))
    )
    found = queue(before, after, 60.0, most_requests(depth, block_bytes))
    assert found
    assert found.mean_depth == pytest.approx(requests)


#: Of Linux 4.18 and later: discards and flushes follow.
@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("0 0 0 0 9 0 80 0 0 0 0", "7 0 56 0 9 0 80 0 0 0 0", 0),
        ("0 0 0 0 9 0 80 0 0 0 0", "0 0 0 0 10 0 88 0 0 0 0", 4096),
        ("0 0 0 0 9 0 80 0 0 0 0 1 0 8 0", "0 0 0 0 9 0 80 0 0 0 0 2 0 2056 0", 1 << 20),
        ("0 0 0 0 9 0 80 0 0 0 0 1 0 8 0", "0 0 0 0 2 0 16 0 0 0 0 0 0 0 0", 0),
        ("", "0 0 0 0 9 0 80 0 0 0 0", 0),
    ],
    ids=["read", "written", "discarded", "begun again", "unknown"],
)
def test_what_changes_data_is_counted(before: str, after: str, changed: int) -> None:
    readings = [counted("sda", {"/sys/block/sda/stat": text} if text else {}) for text in (before, after)]
    assert changed_bytes(*readings) == changed
