"""Tests that do not apply to the drives of the run: skipping them leaves no promise without a verdict.

A test does not apply if the drives cannot form its array, or lack what it is about. A test that is skipped for another
reason, such as a missing limit, is one that the run did not judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pytest

from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.plugin.plan.marks import ImpossibleArray
from pytest_ssdqual.report.run_summary.coverage import INAPPLICABLE
from pytest_ssdqual.rig.drives.survey import Drive

#: Attribute of the report of such a test, and of the exception that skips it. xdist carries plain values.
ATTRIBUTE = f"ssdqual_{INAPPLICABLE}"


def skip(reason: str) -> NoReturn:
    """Skip the running test, as it does not apply to these drives."""
    __tracebackhide__ = True
    skipped = pytest.skip.Exception(reason)
    setattr(skipped, ATTRIBUTE, True)
    raise skipped


def applies(item: pytest.Item, drives: Sequence[Drive]) -> bool:
    """Return whether these drives can form the arrays of a test and serve its workloads."""
    impossible = (each for each in marks.parameters(item).values() if isinstance(each, ImpossibleArray))
    return not any(each.is_inapplicable for each in impossible) and not needs.objections(needs.of(item), drives)


def classify(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, drives: Sequence[Drive]
) -> None:
    """Let the report of a skipped test say that the test does not apply to these drives."""
    if report.outcome != "skipped" or call.excinfo is None:
        return
    if getattr(call.excinfo.value, ATTRIBUTE, False) or (report.when == "setup" and not applies(item, drives)):
        setattr(report, ATTRIBUTE, True)
