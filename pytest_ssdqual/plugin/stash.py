"""Keys of the plugin's data in pytest's stashes; a module of its own, so that a lookup imports nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.qualification import Qualification
    from pytest_ssdqual.plugin.session.state import BayRun
    from pytest_ssdqual.report.evidence.evidence import Evidence

#: On ``config``: the settings of the run, if it has drives.
QUALIFICATION: pytest.StashKey[Qualification] = pytest.StashKey()
#: On ``config``: the state of the run, if it has drives.
RUN: pytest.StashKey[BayRun] = pytest.StashKey()
#: On ``config``: a sentence about each wrong mark of a test.
WRONG_MARKS: pytest.StashKey[list[str]] = pytest.StashKey()
#: On ``config``: the hardware tests of the selected suites, before any is left out (``-k``, ``-m``, ``--deselect``).
COLLECTED: pytest.StashKey[list[pytest.Item]] = pytest.StashKey()
#: On an item: the evidence of all verdicts of its test so far.
EVIDENCE: pytest.StashKey[list[Evidence]] = pytest.StashKey()
#: On an item: the number of those that its reports have carried so far.
SENT: pytest.StashKey[int] = pytest.StashKey()


def keep_evidence(request: pytest.FixtureRequest, evidence: Evidence) -> None:
    """Add evidence to that of the test that requests the fixture."""
    judged = request.config.stash[QUALIFICATION].by_protocol(evidence)
    request.node.stash.setdefault(EVIDENCE, []).append(judged)
