"""One measurement of a workload search: by its own protocol, with the drive time that it takes counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, visits
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.measure.visits import Enough

#: Kinds of records: short and longer measurements that search, and the one that confirms a finding.
EXPLORED, EXPLORED_LONGER, CONFIRMED = "explored", "explored_longer", "confirmed"


@frozen
class Probe:
    """Protocol and record kind of a search's measurement of a workload."""

    #: A kind from above; each workload is measured once per kind.
    kind: str
    #: Without visits it is one fixed window.
    protocol: Protocol
    #: Is called at the start of each piece of drive time, with its seconds; ramps and failed attempts are included.
    spent: Callable[[float], None]
    #: Decides at a look of a protocol with visits whether it may be the last; others have none.
    enough: Enough | None = None

    def measure(self, setup: Setup, array: Array, workload: Workload) -> Measured:
        """Measure the workload; raises as ``fixed_time.measure``."""
        metered = replace(setup, protocol=self.protocol, progress=self._metered(setup))
        if self.protocol.visits is None or self.enough is None:
            return fixed_time.measure(metered, array, workload, self.kind)
        return visits.until_decided(metered, array, workload, self.enough, self.kind)

    def _metered(self, setup: Setup) -> Callable[[str, float], None]:
        """Return the set-up's progress reports, which also count the drive time."""

        def progress(what: str, seconds: float) -> None:
            self.spent(seconds)
            setup.progress(what, seconds)

        return progress
