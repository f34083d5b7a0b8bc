"""Series of IOPS of the bare drives while they were conditioned: what they show about pauses and slow rhythms.

They are hours long, and of the same class of workloads as what is measured afterwards (``qual.stats.excursions``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import excursions, steady_state
from pytest_ssdqual.qual.stats.shared_evidence import Excursion


@dataclass(slots=True)
class ConditioningSeries:
    """The series of one conditioning; empty before it, and where arrays are conditioned."""

    #: IOPS of each drive, by serial number, all at the same times.
    rates: dict[str, list[float]] = field(default_factory=dict)
    #: Seconds of a value.
    step_s: float = 1.0
    #: By the drives of an array.
    _known: dict[tuple[str, ...], tuple[Excursion, ...]] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        """Append one step of the conditioning."""
        for member in run.of_members():
            values, self.step_s = steady_state.series(member)
            self.rates.setdefault(member.drive, []).extend(values)

    def excursions(self, drives: Sequence[str], rule: SequentialRule, confidence: float) -> tuple[Excursion, ...]:
        """Return the excursions of an array of ``drives`` (serial numbers); empty if the series is too short for any.

        Drives that were left out of a step have shorter series: then nothing is known.
        """
        key = tuple(drives)
        if key not in self._known:
            each = [self.rates.get(drive, []) for drive in drives]
            is_whole = bool(each) and len({len(values) for values in each}) == 1 and bool(each[0])
            self._known[key] = excursions.of_drives(each, self.step_s, rule, confidence) if is_whole else ()
        return self._known[key]
