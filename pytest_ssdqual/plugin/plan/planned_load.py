"""The load of the drives in a plan, as the campaign's ledger will have it (``rig.campaign.load_ledger``).

All drives of a plan count as one: arrays come widest first, so the members of each were members of those before.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ssdqual.qual.spec.protocol import SequentialRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.load_ledger import PAUSE_S


@dataclass(frozen=True, slots=True)
class _Load:
    is_random: bool
    began_s: float
    ended_s: float


@dataclass(slots=True)
class PlannedLoad:
    """Loads until now, in seconds since the plan began."""

    now_s: float = 0.0
    _any: _Load | None = None
    _writes: _Load | None = None

    def passed(self, seconds: float) -> None:
        """Let time pass without a load that the ledger records."""
        self.now_s += seconds

    def load(self, workload: Workload, seconds: float) -> None:
        """Let time pass under a workload; for writes, reads are a pause."""
        began = self.now_s
        self.now_s += seconds
        self._any = self._longer(self._any, workload, began)
        if workload.writes:
            self._writes = self._longer(self._writes, workload, began)

    def loaded_s(self, workload: Workload) -> float:
        """Return the seconds under load of the class of ``workload`` until now."""
        found = self._lasting(self._writes if workload.writes else self._any, workload, self.now_s)
        return found.ended_s - found.began_s if found else 0.0

    def _longer(self, before: _Load | None, workload: Workload, began_s: float) -> _Load:
        found = self._lasting(before, workload, began_s)
        return _Load(workload.is_random, found.began_s if found else began_s, self.now_s)

    @staticmethod
    def _lasting(found: _Load | None, workload: Workload, now_s: float) -> _Load | None:
        if found is None or found.is_random is not workload.is_random or now_s - found.ended_s > PAUSE_S:
            return None
        return found


def counted_s(loaded_s: float, looks: SequentialRule) -> float:
    """Return the least load with the same first look after a plateau as ``loaded_s``; there are few different ones."""
    missing_s = looks.plateau_s - loaded_s
    if missing_s <= 0:
        return looks.plateau_s
    times = group_sequential.look_times(looks)
    return max(0.0, looks.plateau_s - next((each for each in times if each >= missing_s), looks.plateau_s))
