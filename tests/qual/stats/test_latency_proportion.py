from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from pytest_ssdqual.qual.stats import latency


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.05, 0.025]))
def test_it_is_the_exact_interval(seen: tuple[int, int], tail: float) -> None:
    exact = binomtest(*seen).proportion_ci(1 - 2 * tail, "exact")
    assert latency.interval(*seen, tail) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(("count", "of"), [(0, 0), (-1, 3), (4, 3)])
def test_what_is_no_share(count: int, of: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        latency.interval(count, of, 0.025)
