"""Result of an integrity test: a verdict about an array's data, in one sentence."""

from __future__ import annotations

from collections import Counter

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.reference_model import Mismatch, MismatchKind
from pytest_ssdqual.qual.integrity.steps import StepSequence
from pytest_ssdqual.qual.raid.geometry import Geometry


@frozen
class Survival:
    """Result of an integrity test; true if no data was lost."""

    geometry: Geometry
    #: Histories and steps that were run, without those of shrinking; and atomic units compared in them.
    histories: int
    steps: int
    compared: int
    atom_bytes: int
    seconds: float
    findings: tuple[Mismatch, ...] = ()
    #: The shortest failing history; None if none failed.
    shortest: StepSequence | None = None
    #: True if the shortest history failed again when repeated; None if it was not repeated.
    happened_again: bool | None = None
    remarks: tuple[str, ...] = ()
    #: Command that reproduces it.
    replay: str = ""
    #: Reason why fewer histories were run than the protocol has.
    cut_short: str = ""

    def __bool__(self) -> bool:
        return not self.findings

    def __repr__(self) -> str:
        """The verdict's sentence."""
        if not self.findings or self.shortest is None:
            return (
                f"all data of {self.geometry} survived {_several(self.histories, 'history', 'histories')} with "
                f"{self.steps:,} steps{self.cut_short and f' ({self.cut_short})'}"
            )
        again = {True: "", None: "", False: " (it did not happen again when that was repeated)"}[self.happened_again]
        replay = f"; replay it with: {self.replay}" if self.replay else ""
        return f"{self.geometry}: {self.what}, after: {self.shortest.in_words}{again}{replay}"

    @property
    def wrong(self) -> int:
        """Number of atomic units that do not hold what they must."""
        return sum(each.offset_bytes is not None for each in self.findings)

    @property
    def what(self) -> str:
        """The finding, as half a sentence."""
        blocks = [each for each in self.findings if each.offset_bytes is not None]
        if not blocks:
            first = self.findings[0]
            return f"{first.kind}: {first.found}" if first.kind is MismatchKind.DISAGREE else first.found
        first = blocks[0]
        kinds = Counter(each.kind for each in blocks)
        settled = "was acknowledged and flushed" if first.settled else "was acknowledged"
        finding = f"{_several(len(blocks), 'block', 'blocks')} of {self.atom_bytes} bytes "
        finding += f"{'does' if len(blocks) == 1 else 'do'} not hold what {settled}"
        if MismatchKind.WRITE_HOLE in kinds:
            finding = f"{MismatchKind.WRITE_HOLE}: {finding} and was not being written when the power failed"
        found = f"{first.found}, expected {first.expected}" if first.expected else first.found
        kind = "" if first.kind is MismatchKind.WRITE_HOLE else f" {first.kind}:"
        return f"{finding}; the first, at byte {first.offset_bytes:,} of the array:{kind} {found}"


def _several(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
