"""Progress of a measurement in visits: its runs are cells, spread over visits that are hours apart."""

from __future__ import annotations

from pytest_ssdqual.qual.frozen import frozen


@frozen
class Exposure:
    """The slowest I/Os of all spells of a run's drives under one load: rare stalls belong to drives.

    A stall of one drive is one of each array that it is a member of, so a target of n drives has n
    times the rate of one (superposition). A stall of md or the host is one of each array, whatever
    its width, so an array is credited with no more time than arrays were observed.
    """

    #: Time under load of all drives together, seconds; an array of n counts n times.
    drive_s: float
    #: Time under load of all arrays together, seconds.
    array_s: float
    #: Number of spells.
    spells: int
    #: The largest maxima of spells, as multiples of the median of their own point, falling.
    times_median: tuple[float, ...] = ()
    #: The largest maxima of spells in nanoseconds, falling.
    slowest_ns: tuple[int, ...] = ()


@frozen
class Visited:
    """What the confidence intervals of a point need besides its cells.

    Scatters are standard deviations as shares of the point's mean.
    """

    #: Cells of this point in each visit that counts, in the order of its runs.
    cells: tuple[int, ...]
    #: Cells at the last look that is planned.
    of: int
    #: Two-sided confidence of intervals now, so that all planned looks hold together.
    level: float
    #: Scatter of the mean of a visit, pooled over the points of the mix, and its degrees of freedom.
    between: float
    between_degrees: float
    #: Scatter of a cell within its visit, pooled likewise.
    within: float
    within_degrees: float
    #: How far the long-run mean may be below and above for reasons that scatter does not show: a
    #: drift that the points of a mix share, cells that depend on what was written before them, and
    #: first seconds that differ; shares of the mean, both at least 0.
    below: float = 0.0
    above: float = 0.0
    #: Slowest I/Os of the drives in all points of the same queue depth; None if there are none.
    exposure: Exposure | None = None
    #: Why a first visit is left out; empty if none is.
    left_out: str = ""

    @property
    def visits(self) -> int:
        return len(self.cells)

    @property
    def is_last(self) -> bool:
        """Return whether no further look is planned."""
        return sum(self.cells) >= self.of
