from __future__ import annotations

import math

import pytest
import write_amplification as amplification
from flash import FlashTiming, GarbageCollection, Shape
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq


@given(st.floats(0.03, 2), st.integers(16, 1024))
def test_closed_form_solves_the_flow_of_blocks(spare: float, pages: int) -> None:
    """Greedy in the limit of many blocks: those with i valid pages of n lose one at a rate ∝ i, so as many blocks
    pass through each number down to x, where they are collected: n (ln n' - ln x') = α (n - x), primes for + ½."""
    shape = Shape(2**20, pages, spare)
    alpha = (shape.user_pages + shape.spare_pages) / shape.user_pages
    n = pages + 0.5
    left = brentq(lambda x: pages * math.log(n / (x + 0.5)) - alpha * (pages - x), -0.49, pages - 0.3 * pages * spare)
    assert amplification.settled(shape) == pytest.approx(pages / (pages - left), rel=1e-6)


def test_published_numbers() -> None:
    # Xiang & Kurkoski 2012: 2.36 for an over-provisioning of 0.3, whatever the size of the blocks.
    assert amplification.settled(Shape(10**6, 64, 0.3, GarbageCollection.FIFO)) == pytest.approx(2.36, abs=0.005)


def test_no_closed_form_is_made_up() -> None:
    with pytest.raises(ValueError, match="no closed form"):
        amplification.settled(Shape(window=8))


def test_settled_iops_count_what_is_copied_read_and_erased() -> None:
    shape = Shape()
    found = amplification.settled(shape)
    for timing, each_ns in (
        (FlashTiming(100, 0, 0), 100 * found),
        (FlashTiming(0, 100, 0), 100 * (found - 1)),
        (FlashTiming(0, 0, 6_400), 100 * found),
    ):
        assert amplification.settled_iops(shape, timing) == pytest.approx(1e9 / each_ns)
