"""One validity check: a figure, and objections if it is not believable."""

from __future__ import annotations

from pytest_ssdqual.qual.frozen import frozen


@frozen
class Check:
    """A figure, and the objections if it is outside its believable range."""

    #: Ends with the unit, like all figures of the evidence: ``cpu_busy_percent``.
    name: str
    #: None if it could not be read.
    figure: float | None = None
    #: Reasons not to judge the measurement.
    objections: tuple[str, ...] = ()
    #: Serial number, if the check is about one drive.
    drive: str = ""
    #: False if the figure alone does not decide; irrelevant if there is an objection.
    answered: bool = True
    #: The lowest of several figures of this name is the worst.
    low_is_bad: bool = False

    @property
    def holds(self) -> bool | None:
        """None: not known, which is neither right nor wrong."""
        if self.objections:
            return False
        return True if self.answered and self.figure is not None else None
