"""One measurement of a search: by a protocol of its own, with the drives' time that it takes counted."""

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

#: Kinds of records: what a search measured to find something, shortly or not so shortly, and once more to be sure.
EXPLORED, EXPLORED_LONGER, CONFIRMED = "explored", "explored_longer", "confirmed"


@dataclass(frozen=True, slots=True)
class Probe:
    """How a workload of a search is measured."""

    #: One of the above; one workload is measured once as each.
    kind: str
    protocol: Protocol
    #: Of a sequential protocol: whether the look that it is asked at may be the last.
    enough: Enough
    #: Told of each piece of the drives' time, in seconds, when it begins: ramps and attempts that fail are among them.
    spent: Callable[[float], None]

    def measure(self, setup: Setup, array: Array, workload: Workload) -> Measured:
        """Raises as ``measuring.measure``."""
        metered = replace(self._metered(setup), protocol=self.protocol)
        rule = self.protocol.sequential
        if rule is None:
            return fixed_time.measure(metered, array, workload, self.kind)
        return sequential_verdict.measure(metered, array, workload, rule, self.enough, self.kind)

    def _metered(self, setup: Setup) -> Setup:
        """What tells a person how long a step takes also tells what it costs."""

        def progress(what: str, seconds: float) -> None:
            self.spent(seconds)
            setup.progress(what, seconds)

        def looked(what: str, more_s: float) -> None:
            self.spent(more_s)
            if setup.looked:
                setup.looked(what, more_s)

        return replace(setup, progress=progress, looked=looked)
