"""One measurement of a workload search: by its own protocol, with the drive time that it takes counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, sequential_verdict
from pytest_ssdqual.rig.measure.sequential_verdict import Enough
from pytest_ssdqual.rig.measure.session import Setup

#: Kinds of records: short and longer measurements that search, and the one that confirms a finding.
EXPLORED, EXPLORED_LONGER, CONFIRMED = "explored", "explored_longer", "confirmed"


@dataclass(frozen=True, slots=True)
class Probe:
    """Protocol and record kind of a search's measurement of a workload."""

    #: A kind from above; each workload is measured once per kind.
    kind: str
    protocol: Protocol
    #: For a group-sequential protocol: decides at a look whether it may be the last.
    enough: Enough
    #: Is called at the start of each piece of drive time, with its seconds; ramps and failed attempts are included.
    spent: Callable[[float], None]

    def measure(self, setup: Setup, array: Array, workload: Workload) -> Measured:
        """Measure the workload; raises as ``fixed_time.measure``."""
        metered = replace(self._metered(setup), protocol=self.protocol)
        rule = self.protocol.sequential
        if rule is None:
            return fixed_time.measure(metered, array, workload, self.kind)
        return sequential_verdict.measure(metered, array, workload, rule, self.enough, self.kind)

    def _metered(self, setup: Setup) -> Setup:
        """Set-up whose progress reports also count the drive time."""

        def progress(what: str, seconds: float) -> None:
            self.spent(seconds)
            setup.progress(what, seconds)

        def looked(what: str, extra_s: float) -> None:
            self.spent(extra_s)
            if setup.looked:
                setup.looked(what, extra_s)

        return replace(setup, progress=progress, looked=looked)
