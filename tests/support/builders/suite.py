"""Suites as text: a test of each claim about one workload on one array."""

from __future__ import annotations

_HEAD = """\
import pytest
from pytest_ssdqual import Workload

pytestmark = pytest.mark.ssd_array({array})
"""
_TEST = """

@pytest.mark.ssd_workload(Workload({workload}))
@pytest.mark.ssd_promise("{claim}")
def test_{name}(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
"""


def suite(array: str, **tests: tuple[str, str]) -> str:
    """Return a suite. ``array``: arguments of its mark; ``tests``: by name the claim and arguments of the workload."""
    return _HEAD.format(array=array) + "".join(
        _TEST.format(name=name, claim=claim, workload=workload) for name, (claim, workload) in tests.items()
    )
