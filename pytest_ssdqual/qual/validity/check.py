"""One question about whether a measurement can be believed, and the figure that answers it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """A figure, the range in which it is believable, and what is to be said if it is outside."""

    #: With the unit at the end, as all figures of evidence: ``cpu_busy_percent``.
    name: str
    #: None: it could not be had.
    figure: float | None
    #: In words: ``90 to 105 %``.
    believable: str
    #: Why the measurement must not be judged; empty if nothing speaks against it.
    objections: tuple[str, ...] = ()
    #: Serial number, if it is about one drive.
    drive: str = ""
    #: The figure alone does not answer the question; with an objection that does not matter.
    answered: bool = True
    #: Of several figures of this name the lowest is the worst.
    low_is_bad: bool = False

    @property
    def holds(self) -> bool | None:
        """None: not known, which is neither right nor wrong."""
        if self.objections:
            return False
        return True if self.answered and self.figure is not None else None


def unknown(name: str, believable: str, drive: str = "") -> Check:
    """A question that could not be answered."""
    return Check(name, None, believable, drive=drive)
