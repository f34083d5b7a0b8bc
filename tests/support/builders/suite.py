"""Suites as text: a test of each claim about workloads on one array."""

from __future__ import annotations

_HEAD = """\
import pytest
from pytest_ssdqual import Workload

pytestmark = pytest.mark.ssd_array({array})
"""
_TEST = """

@pytest.mark.ssd_workload({workloads})
@pytest.mark.ssd_promise("{claim}")
def test_{name}(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
"""


def suite(array: str, **tests: tuple[str, ...]) -> str:
    """Return a suite. ``array``: arguments of its mark; ``tests``: by name the claim and arguments of each workload."""
    text = _HEAD.format(array=array)
    for name, (claim, *workloads) in tests.items():
        text += _TEST.format(name=name, claim=claim, workloads=", ".join(f"Workload({each})" for each in workloads))
    return text
