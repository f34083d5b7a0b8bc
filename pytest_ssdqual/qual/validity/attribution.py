"""Attribution of a shortfall: which part of the system is the bound, with the evidence for it.

A shortfall is what an array did less than it was promised. Drives are its cause only if an array of exactly these
drives cannot do more (`qual.raid.prediction`); otherwise md, the host, a path that drives share, or the measurement is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Culprit(StrEnum):
    """Part of the system that is the cause of a shortfall."""

    #: One drive, named.
    DRIVE = "drive"
    #: Several drives, or all of them.
    DRIVES = "drives"
    MD = "md"
    HOST = "host"
    #: What several drives share: a switch, a bus adapter, a link.
    PATH = "path"
    #: fio, or a second load.
    MEASUREMENT = "measurement"
    UNEXPLAINED = "unexplained"

    @property
    def is_drive(self) -> bool:
        return self in (Culprit.DRIVE, Culprit.DRIVES)


@dataclass(frozen=True, slots=True)
class Cause:
    """The attributed cause of one shortfall."""

    culprit: Culprit
    #: Probability that the culprit is right, 0…1, as `bench/attribution.py` found it for this kind of evidence.
    confidence: float
    #: One clause with the evidence: ``its I/Os waited 6.1 ms, those of its siblings 3.0 ms``.
    evidence: str
    #: Serial numbers, if drives are the culprit, or those behind the shared path; the worst first.
    drives: tuple[str, ...] = ()
    #: One clause with what to change; "" if drives are the culprit.
    advice: str = ""

    @property
    def subject(self) -> str:
        """The culprit in a sentence: ``drive SSDQ0003``, ``md``, ``the host's CPUs``."""
        names = {
            Culprit.MD: "md",
            Culprit.HOST: "the host",
            Culprit.PATH: "a path that the drives share",
            Culprit.MEASUREMENT: "the measurement",
            Culprit.UNEXPLAINED: "unexplained",
        }
        if self.culprit.is_drive:
            shown = self.drives[:3]
            more = f" and {len(self.drives) - len(shown)} more" if len(self.drives) > len(shown) else ""
            word = "drive" if len(self.drives) == 1 else "drives"
            return f"{word} {', '.join(shown)}{more}" if shown else "all drives"
        return names[self.culprit]

    def __str__(self) -> str:
        if self.culprit is Culprit.UNEXPLAINED:
            return f"cause unexplained: {self.evidence}"
        return f"cause: {self.subject}, {self.evidence}"
