"""The load of the drives in a plan, as the campaign's ledger will have it (``rig.campaign.load_ledger``).

All drives of a plan count as one: arrays come widest first, so the members of each were members of those before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.load_ledger import LoadLedger

#: All drives of the plan.
DRIVES = ("planned",)


@dataclass(slots=True)
class PlannedLoad:
    """The campaign's ledger on expected times, in seconds since the plan began."""

    now_s: float = 0.0
    _ledger: LoadLedger = field(init=False)

    def __post_init__(self) -> None:
        self._ledger = LoadLedger(clock=lambda: self.now_s)

    def passed(self, seconds: float) -> None:
        """Let time pass without a load that the ledger records."""
        self.now_s += seconds

    def load(self, workload: Workload, seconds: float) -> None:
        """Let time pass under a workload."""
        with self._ledger.load(DRIVES, workload):
            self.now_s += seconds

    def loaded_s(self, workload: Workload) -> float:
        """Return the seconds under load of the class of ``workload`` until now."""
        return self._ledger.loaded_s(DRIVES, workload)


def counted_s(loaded_s: float, looks: SequentialRule) -> float:
    """Return the least load with the same first look after a plateau as ``loaded_s``; there are few different ones."""
    missing_s = looks.plateau_s - loaded_s
    if missing_s <= 0:
        return looks.plateau_s
    times = group_sequential.look_times(looks)
    return max(0.0, looks.plateau_s - next((each for each in times if each >= missing_s), looks.plateau_s))
