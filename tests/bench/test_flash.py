from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import flash
import numpy as np
import pytest
import write_amplification as amplification
from flash import Flash, FlashTiming, GarbageCollection, Shape, Work
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from support.builders.strategies import run

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.workload.workload import Workload

pytestmark = pytest.mark.slow

Integers = NDArray[np.int64]
OVER_PROVISIONINGS = (0.07, 0.28, 0.5)
#: A drive that writes about 10,000 pages a second when fresh: 64 MiB of flash in 2 s.
SLOW = FlashTiming(program_ns=100_000, read_ns=10_000, erase_ns=500_000)


def sequential(shape: Shape) -> Integers:
    return np.arange(shape.user_pages)


def amplified(shape: Shape, pages: Integers, *, ignored: int) -> float:
    """After a sequential fill and the first ``ignored`` of the writes; from the second capacity on, it has settled."""
    drive = Flash(shape)
    drive.write(sequential(shape))
    drive.write(pages[:ignored])
    return flash.total(drive.write(pages[ignored:])).write_amplification


def measured(shape: Shape) -> float:
    pages = flash.uniform(np.random.default_rng(1), shape, 6 * shape.user_pages)
    return amplified(shape, pages, ignored=3 * shape.user_pages)


@pytest.mark.parametrize("spare", OVER_PROVISIONINGS)
@pytest.mark.parametrize("collection", GarbageCollection)
def test_amplification_is_the_published_one(collection: GarbageCollection, spare: float) -> None:
    shape = Shape(over_provisioning=spare, collection=collection)
    assert measured(shape) == pytest.approx(amplification.settled(shape), rel=0.01)


@pytest.mark.parametrize("pages_per_block", [16, 32, 128])
def test_so_it_is_for_blocks_of_other_sizes(pages_per_block: int) -> None:
    """Bux & Iliadis 2010: greedy gains from small blocks, and comes to FIFO for large ones."""
    shape = Shape(512, pages_per_block, 0.2)
    fifo = amplification.settled(replace(shape, collection=GarbageCollection.FIFO))
    assert measured(shape) == pytest.approx(amplification.settled(shape), rel=0.015)
    assert amplification.settled(shape) < fifo
    assert amplification.settled(replace(shape, pages_per_block=10**6)) == pytest.approx(fifo, rel=1e-3)


def test_a_window_lies_between_fifo_and_greedy() -> None:
    """Hu et al. 2009; a window of one is FIFO, one of all blocks is greedy."""
    shape = Shape(256, 32, 0.15)
    fifo, greedy = measured(replace(shape, collection=GarbageCollection.FIFO)), measured(shape)
    found = [measured(replace(shape, window=window)) for window in (1, 8, 64, 256)]
    assert found[0] == fifo
    assert found[-1] == greedy
    assert all(more > less for more, less in pairwise(found))


@pytest.mark.parametrize("collection", GarbageCollection)
def test_sequential_writes_are_not_amplified(collection: GarbageCollection) -> None:
    shape = Shape(128, 32, 0.07, collection)
    drive = Flash(shape)
    works = [work for _ in range(5) for work in drive.write(sequential(shape))]
    assert flash.total(works).write_amplification == 1
    assert flash.total(works).erased_blocks > 0


@pytest.mark.parametrize(("spare", "once"), [(0.07, 3.84), (0.15, 2.19), (0.28, 1.50)])
def test_the_order_of_random_writes_decides(spare: float, once: float) -> None:
    """fio's random map: each page once a pass. Copied pages are the next to be written; a drive that keeps them apart
    has half the amplification, by the figures of another simulation. The same order in each pass is copied never."""
    shape, rng = Shape(512, 64, spare, separates=True), np.random.default_rng(2)
    passes = [rng.permutation(shape.user_pages) for _ in range(5)]
    ignored = 2 * shape.user_pages
    assert amplified(shape, np.concatenate(passes), ignored=ignored) == pytest.approx(once, rel=0.03)
    mixed = replace(shape, separates=False)
    assert amplified(mixed, np.concatenate(passes), ignored=ignored) > 1.4 * once
    assert amplified(shape, np.concatenate([passes[0]] * 5), ignored=ignored) == pytest.approx(1, abs=0.01)


def test_separating_copies_pays_only_for_unlike_pages() -> None:
    mixed, rng = Shape(512, 64, 0.28), np.random.default_rng(5)
    apart = replace(mixed, separates=True)
    assert measured(apart) == pytest.approx(amplification.settled(apart), rel=0.02)
    pages = flash.hot_cold(rng, mixed, 8 * mixed.user_pages, hot=0.1, traffic=0.9)
    both = [amplified(shape, pages, ignored=5 * shape.user_pages) for shape in (mixed, apart)]
    assert both[1] < 0.9 * both[0]


@pytest.mark.parametrize("spare", [0.07, 0.15, 0.28])
def test_half_a_capacity_of_random_writes_settles_flash(spare: float) -> None:
    """Of this simulated flash; real drives were up to 20 % off then, so ``acceptance`` has a drift test."""
    shape, rng = Shape(over_provisioning=spare), np.random.default_rng(3)
    drive = Flash(shape)
    for _ in range(2):
        drive.write(np.arange(shape.user_pages))
    first, second = (flash.total(drive.write(flash.uniform(rng, shape, shape.user_pages // 2))) for _ in range(2))
    assert first.write_amplification < 0.92 * amplification.settled(shape)
    assert second.write_amplification == pytest.approx(amplification.settled(shape), rel=0.015)


def test_hot_and_cold_pages() -> None:
    """FIFO, 80 % of the writes to 20 % of the pages: 1 + Σ r/(exp(r α/(f A)) - 1) = A (Desnoyers 2012, eq. 14)."""
    shape = Shape(1024, 64, 0.15, GarbageCollection.FIFO)
    alpha = (shape.user_pages + shape.spare_pages) / shape.user_pages

    def excess(found: float) -> float:
        parts = ((0.8, 0.2), (0.2, 0.8))
        return 1 - found + sum(r / math.expm1(r / f * alpha / found) for r, f in parts)

    pages = flash.hot_cold(np.random.default_rng(3), shape, 8 * shape.user_pages, hot=0.2, traffic=0.8)
    assert float((pages < 0.2 * shape.user_pages).mean()) == pytest.approx(0.8, abs=0.01)
    found = amplified(shape, pages, ignored=5 * shape.user_pages)
    assert found == pytest.approx(brentq(excess, 1.01, 50), rel=0.02)
    assert found > amplification.settled(shape) + 0.2


def test_trimmed_pages_are_spare_ones() -> None:
    """Frankie et al. 2012: what is trimmed and not written again adds to the over-provisioning."""
    shape, rng = Shape(512, 64, 0.07), np.random.default_rng(4)
    drive = Flash(shape)
    drive.write(sequential(shape))
    kept = round(shape.user_pages * 1.07 / 1.28)
    drive.trim(np.arange(kept, shape.user_pages))
    assert drive.valid_pages == kept
    drive.write(rng.integers(0, kept, 4 * kept))
    found = flash.total(drive.write(rng.integers(0, kept, 4 * kept))).write_amplification
    assert found == pytest.approx(amplification.settled(Shape(512, 64, 0.28)), rel=0.015)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_nothing_is_lost_and_nothing_counted_twice(data: st.DataObject) -> None:
    shape = Shape(
        data.draw(st.integers(8, 20)),
        8,
        data.draw(st.floats(0.3, 1)),
        data.draw(st.sampled_from(list(GarbageCollection))),
        data.draw(st.none() | st.integers(1, 8)),
        data.draw(st.booleans()),
    )
    drive = Flash(shape)
    written: set[int] = set()
    pages = st.lists(st.integers(0, shape.user_pages - 1), max_size=100)
    host = 0
    for _ in range(data.draw(st.integers(1, 6))):
        wanted, unwanted = data.draw(pages), data.draw(pages)
        works = drive.write(np.array(wanted, dtype=np.int64))
        drive.trim(np.array(unwanted, dtype=np.int64))
        host += len(wanted)
        written = (written | set(wanted)) - set(unwanted)
        assert flash.total(works).host_pages == len(wanted)
        assert drive.valid_pages == len(written)
        assert drive.stored() == written
    assert drive.total.host_pages == host


def test_too_little_flash_is_refused() -> None:
    with pytest.raises(ValueError, match="least one spare"):
        Shape(16, 64, 0.01)


@pytest.mark.parametrize("window", [0, 17])
def test_so_is_a_window_that_is_none(window: int) -> None:
    with pytest.raises(ValueError, match="1 to 16"):
        Shape(16, 4, 0.5, window=window)


def test_the_time_that_work_takes() -> None:
    work = Work(host_pages=10, copied_pages=5, erased_blocks=1)
    assert work.duration_ns(FlashTiming(100, 10, 1_000)) == 15 * 100 + 5 * 10 + 1_000
    assert work.write_amplification == 1.5
    assert math.isnan(Work(0, 0, 0).write_amplification)


def test_settled_iops_are_those_of_the_curve() -> None:
    shape = Shape(512, 64, 0.28)
    drive = Flash(shape)
    drive.write(sequential(shape))
    works = drive.write(flash.uniform(np.random.default_rng(6), shape, 6 * shape.user_pages))
    rates = flash.iops(works[len(works) // 2 :], SLOW)
    assert rates.mean() == pytest.approx(amplification.settled_iops(shape, SLOW), rel=0.01)
    whole = flash.iops(works, SLOW)
    assert flash.total(works).host_pages - whole[-1] * 1.5 <= whole.sum() <= flash.total(works).host_pages


def test_no_work_has_no_seconds() -> None:
    assert flash.iops([], SLOW).size == 0


#: Relative: a program takes 1.
PARTS = FlashTiming(program_ns=1.0, read_ns=0.1, erase_ns=5.0)


def curve(shape: Shape, *, is_filled: bool, capacities: float) -> tuple[list[int], float]:
    """IOPS of random writes with a drive's noise, and what they come to; the fresh plateau takes 8 or 40 seconds."""
    rng, drive = np.random.default_rng(7), Flash(shape)
    if is_filled:
        drive.write(sequential(shape))
    works = drive.write(flash.uniform(rng, shape, round(capacities * shape.user_pages)))
    a_second = shape.spare_pages / 8 if is_filled else (shape.user_pages + shape.spare_pages) / 40
    pace = FlashTiming(*(1e9 / a_second * each for each in (PARTS.program_ns, PARTS.read_ns, PARTS.erase_ns)))
    rates = flash.iops(works, pace)
    return [round(each) for each in rates * rng.normal(1, 0.02, rates.size)], amplification.settled_iops(shape, pace)


@pytest.mark.parametrize("spare", OVER_PROVISIONINGS)
def test_cliff_after_a_fill_is_where_the_spare_blocks_end(spare: float) -> None:
    shape = Shape(over_provisioning=spare)
    iops, settled = curve(shape, is_filled=True, capacities=3)
    found = Saturation(run(iops, workload=Workload("randwrite", "4k", 8), rounds=len(iops)), shape.user_pages * 4096)
    assert found.cliff is not None
    # To one sample of an eighth of the plateau; the first blocks collected hold few valid pages.
    assert 0.85 * spare < found.cliff.capacities < 1.3 * spare
    assert found.fresh.value == pytest.approx(shape.spare_pages / 8, rel=0.05)
    assert found.settle().iops.value == pytest.approx(settled, rel=0.03)


@pytest.mark.parametrize("spare", OVER_PROVISIONINGS)
def test_cliff_of_a_purged_drive_is_where_the_flash_is_full(spare: float) -> None:
    """To two samples of a fortieth of the plateau, however long is written: the decline takes 3 to 6 capacities."""
    shape = Shape(over_provisioning=spare)
    iops, settled = curve(shape, is_filled=False, capacities=9)
    written, source = np.cumsum(iops) / shape.user_pages, np.random.default_rng(8)
    noisy = (np.asarray(iops) * source.normal(1, 0.03, len(iops))).round().astype(int).tolist()
    for seen in (iops, noisy):
        for capacities in (1.3 + spare, 2.0 + spare, 3.5, 5, 9):
            part = seen[: int(np.searchsorted(written, capacities))]
            found = Saturation(purged(part), shape.user_pages * 4096)
            assert found.cliff_after().value == pytest.approx(1 + spare, abs=2 * (1 + spare) / 40)
            assert found.fresh.value == pytest.approx((shape.user_pages + shape.spare_pages) / 40, rel=0.02)
        assert found.settle().iops.value == pytest.approx(settled, rel=0.05)


def purged(iops: list[int]) -> Run:
    return run(iops, workload=Workload("randwrite", "4k", 8), rounds=len(iops))
