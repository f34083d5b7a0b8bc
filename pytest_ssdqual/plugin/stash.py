"""Keys of the plugin's data in pytest's stashes; a module of its own, so that a lookup imports nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import BayRun
    from pytest_ssdqual.report.evidence.evidence import Evidence

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


def keep_evidence(item: pytest.Item, evidence: Evidence) -> None:
    """Add evidence to that of a test, with the protocol of the run."""
    protocol = item.config.stash[RUN].qualification.protocol
    stated = replace(evidence, protocol=protocol.name, acceptance=protocol.acceptance)
    item.stash.setdefault(EVIDENCE, []).append(stated)
