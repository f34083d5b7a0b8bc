"""Keys of what the plugin keeps on pytest's own objects; apart, so that finding them imports nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification
    from pytest_ssdqual.report.evidence.evidence import Evidence

#: On ``config``: the run, if it has drives.
QUALIFICATION: pytest.StashKey[Qualification] = pytest.StashKey()
#: On an item: evidence of the verdicts that its test has asked for so far.
EVIDENCE: pytest.StashKey[list[Evidence]] = pytest.StashKey()
