"""Verdict of one check of the receiving inspection on all drives, as one sentence that names drives by serial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.inspection import checks
from pytest_ssdqual.qual.inspection.checks import Answer, CheckedDrive
from pytest_ssdqual.qual.inspection.limits import InspectionTable
from pytest_ssdqual.qual.inspection.record import InspectionRecord

#: Most drives named in a sentence; the evidence has all of them.
NAMED = 8
#: Answers in the order in which they decide about all drives.
SEVERITY = (Answer.DEVIATES, Answer.UNKNOWN, Answer.CONFORMS, Answer.UNLIMITED, Answer.ABSENT)


@dataclass(frozen=True, slots=True, repr=False)
class InspectionVerdict:
    """Result of one check; true if every drive conforms."""

    check: str
    drives: tuple[CheckedDrive, ...]

    def __bool__(self) -> bool:
        return self.answer is Answer.CONFORMS

    def __repr__(self) -> str:
        return self.sentence

    @property
    def answer(self) -> Answer:
        """The worst answer of a drive; ``UNKNOWN`` if no drive was inspected."""
        answers = {each.answer for each in self.drives}
        return next((answer for answer in SEVERITY if answer in answers), Answer.UNKNOWN)

    @property
    def label(self) -> str:
        return self.check.replace("_", " ")

    @property
    def sentence(self) -> str:
        """``inspection of power on hours: drive S1 at /dev/sdb was powered on for 9,204 h, at most …``."""
        of_worst = [each for each in self.drives if each.answer is self.answer]
        if self.answer in (Answer.DEVIATES, Answer.UNKNOWN):
            found = _named(of_worst)
            if self.answer is Answer.DEVIATES and (unknown := self.of(Answer.UNKNOWN)):
                found += f"; unknown for {len(unknown)} more: {_named(unknown)}"
        else:
            found = _named(of_worst[:1])
            if len(self.drives) > 1:
                found = f"{len(of_worst)} of {len(self.drives)} drives, for example {found}"
        return f"inspection of {self.label}: {found or 'no drive was inspected'}"

    def of(self, answer: Answer) -> tuple[CheckedDrive, ...]:
        """Return the drives with this answer."""
        return tuple(each for each in self.drives if each.answer is answer)


def judge(check: str, drives: Sequence[InspectionRecord], limits: InspectionTable) -> InspectionVerdict:
    """Judge one check on all drives; ``KeyError`` for an unknown one."""
    return InspectionVerdict(check, checks.check(check, drives, limits))


def _named(drives: Sequence[CheckedDrive]) -> str:
    more = f"; and {len(drives) - NAMED} more drives" if len(drives) > NAMED else ""
    return "; ".join(each.sentence for each in drives[:NAMED]) + more
