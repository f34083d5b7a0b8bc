"""A transfer across two pages: read, changed and written twice."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.array(default="drive"),
    pytest.mark.series(*stec.ALIGNMENTS),
]


@pytest.mark.promise("unaligned_penalty")
def test_price_of_an_unaligned_transfer(runs, sla):
    verdict = sla.judge(runs)
    assert verdict
