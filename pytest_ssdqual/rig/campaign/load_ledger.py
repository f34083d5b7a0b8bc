"""How long each drive has been under load of one class of workloads, without a pause.

A plateau (of a cache, of spare blocks) is a property of a drive's state: a drive that was under load of the class for
longer than its plateaus last has none left, whatever is measured next. That holds until the drive has a chance to
collect garbage or to empty its cache: a pause, a purge, or another class of workloads. For writes, reads are a pause:
they leave a drive time for that (SNIA PTS, host idle recovery).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pytest_ssdqual.qual.stats.shared_evidence import PAUSE_S
from pytest_ssdqual.qual.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class _Load:
    is_random: bool
    began_s: float
    ended_s: float


@dataclass(slots=True)
class LoadLedger:
    """Loads of each drive until now; times are those of ``clock``, seconds."""

    clock: Callable[[], float] = time.monotonic
    #: By serial number: of any I/O, and of writes.
    _any: dict[str, _Load] = field(default_factory=dict)
    _writes: dict[str, _Load] = field(default_factory=dict)

    @contextmanager
    def load(self, drives: Sequence[str], workload: Workload) -> Iterator[None]:
        """Record the load of the block on these serial numbers; if it fails, nothing is known of them any more."""
        began_s = self.clock()
        try:
            yield
        except BaseException:
            self.forget(drives)
            raise
        for loads in (self._any, self._writes) if workload.writes else (self._any,):
            for name in drives:
                earlier = self._lasting(loads, name, workload.is_random, began_s)
                loads[name] = _Load(workload.is_random, earlier.began_s if earlier else began_s, self.clock())

    def loaded_s(self, drives: Sequence[str], workload: Workload) -> float:
        """Return the seconds that all ``drives`` were under load of the class of ``workload`` until now; 0 if unknown.

        For a workload that writes only loads that write count.
        """
        loads, now_s = self._writes if workload.writes else self._any, self.clock()
        found = [self._lasting(loads, name, workload.is_random, now_s) for name in drives]
        return min((each.ended_s - each.began_s if each else 0.0 for each in found), default=0.0)

    def forget(self, drives: Sequence[str]) -> None:
        """Forget the loads of drives that are purged, or whose load failed."""
        for name in drives:
            self._any.pop(name, None)
            self._writes.pop(name, None)

    @staticmethod
    def _lasting(loads: dict[str, _Load], name: str, is_random: bool, now_s: float) -> _Load | None:
        found = loads.get(name)
        if found is None or found.is_random is not is_random or now_s - found.ended_s > PAUSE_S:
            return None
        return found
