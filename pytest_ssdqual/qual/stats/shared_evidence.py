"""Knowledge from earlier load of the same drives, which a measurement does not have to gain again.

A plateau and a slow rhythm are properties of the drives' state, not of one measurement. What was observed of them
before a measurement began is a value, and part of its `Look`, so that a run can be computed again from its record.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

#: Longest pause that does not end a load, seconds: array assembly, readings and health checks between two processes
#: take less.
PAUSE_S = 120.0


@dataclass(frozen=True, slots=True)
class Excursion:
    """The furthest that windows of one length were off the long-run mean beyond their own confidence intervals."""

    #: Length of the windows.
    seconds: float
    #: Distance of the long-run mean from the nearer end of a window's interval, as a share of that mean; the largest.
    relative: float


@dataclass(frozen=True, slots=True)
class SharedEvidence:
    """What is known of the drives of an array when a measurement begins; by default nothing.

    It holds for the same drives, the same class of load (random, sequential), the same session, after conditioning. A
    purge, a trim, load of the other class, another drive, or a longer pause ends it (``rig.campaign.load_ledger``).
    Without it a measurement is judged as if the drives had never been observed.
    """

    #: Seconds that the drives were under load of the class, without a longer pause, when the measurement began. For a
    #: workload that writes only writes count, and reads without writes are a pause: a write cache refills during them.
    loaded_s: float = 0.0
    #: By growing length; empty: no series is long enough. ``qual.stats.excursions`` computes them.
    excursions: tuple[Excursion, ...] = ()

    @property
    def has_excursions(self) -> bool:
        return bool(self.excursions)

    def excursion(self, seconds: float) -> float:
        """Return how far a window of ``seconds`` may be off beyond its own interval, as a share of the mean.

        Between two lengths the larger value. Outside of them the lost work (share × length) is constant, as that of a
        pause: a window twice as long shows half of it. ValueError without excursions.
        """
        if not self.excursions:
            raise ValueError("no series of these drives was long enough")
        first, last = self.excursions[0], self.excursions[-1]
        if not first.seconds < seconds < last.seconds:
            nearest = first if seconds <= first.seconds else last
            return nearest.relative * nearest.seconds / seconds
        index = bisect_left([each.seconds for each in self.excursions], seconds)
        return max(each.relative for each in self.excursions[index - 1 : index + 1])


NOTHING_KNOWN = SharedEvidence()
