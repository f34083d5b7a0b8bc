"""What power cuts of bare drives lose: wrong writes of 4 KiB by kind, and what cuts without a loss prove; pure.

Kinds are those of Zheng et al., "Understanding the Robustness of SSDs under Power Fault" (FAST 2013), as far as a host
can tell them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from pytest_ssdqual.qual.integrity.reference_model import Mismatch, MismatchKind
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES

#: Upper bound of the mean of a number of events that was observed as 0, at 95 % confidence: -ln 0.05 (rule of three).
RULE_OF_THREE = 3.0


class WriteMode(StrEnum):
    """How writes that a cut interrupts are made durable."""

    #: Each pass over a region ends with a flush; each write has FUA; neither.
    FLUSHED = "flushed"
    FUA = "FUA"
    UNFLUSHED = "unflushed"


class LossKind(StrEnum):
    """Kind of a wrong write, the worst last."""

    #: An earlier write, or zeroes.
    LOST = "lost"
    #: Partly old and partly new.
    SHORN = "shorn"
    #: Data of another place of the drive.
    MISPLACED = "misplaced"
    #: Data that were never written, or that cannot be read.
    DAMAGED = "damaged"


KINDS = {
    MismatchKind.STALE: LossKind.LOST,
    MismatchKind.FOREIGN: LossKind.LOST,
    MismatchKind.MIXED: LossKind.SHORN,
    MismatchKind.ELSEWHERE: LossKind.MISPLACED,
}


def losses(mismatches: Iterable[Mismatch], atom_bytes: int) -> Counter[LossKind]:
    """Return the number of wrong writes of 4 KiB by kind; mismatches are in the order of their offsets.

    A write is shorn if some of its atomic units of ``atom_bytes`` are right and the others are lost.
    """
    counts = Counter[LossKind]()
    for _, atoms in groupby(mismatches, lambda each: (each.offset_bytes or 0) // UNIT_BYTES):
        kinds = [_kind(each) for each in atoms]
        worst = max(kinds, key=list(LossKind).index)
        is_partial = worst is LossKind.LOST and len(kinds) < UNIT_BYTES // atom_bytes
        counts[LossKind.SHORN if is_partial else worst] += 1
    return counts


def _kind(mismatch: Mismatch) -> LossKind:
    return LossKind.LOST if mismatch.found == "zeroes" else KINDS.get(mismatch.kind, LossKind.DAMAGED)


def bound_percent(cuts: int) -> float:
    """Return the upper bound of the share of cuts that lose data if none of ``cuts`` did: 3/n, 95 % confidence."""
    return 100.0 * min(1.0, RULE_OF_THREE / max(1, cuts))


@dataclass(slots=True)
class DriveLosses:
    """What power cuts did to one drive."""

    serial: str
    #: Cuts under writes that the drive has to keep.
    judged: int = 0
    wrong: Counter[LossKind] = field(default_factory=Counter)
    #: The first wrong write, or how the drive failed to come back, as a clause.
    first: str = ""
    #: Writes acknowledged and not flushed that are gone, which the drive is allowed.
    unflushed: int = 0
    #: Names of the stored regions that are wrong.
    raw: list[str] = field(default_factory=list)

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings about the drive as one clause; empty if there is none."""
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.wrong.items())
        return (f"{counts} writes of 4 KiB, {self.first}" if counts else self.first,) if self.first else ()
