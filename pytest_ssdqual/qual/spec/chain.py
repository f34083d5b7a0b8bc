"""The chain of promises sheet → drive → array: what an array is held to whose depth the sheet does not state.

A data sheet publishes one or two maxima of random I/O, nearly never at the depth of an array's members. Then the drives
are held to these figures, the anchors, at the sheet's own conditions, and the array to what its drives do by their own
curves, if they met their anchors (`raid.member_curve`, `raid.prediction`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.spec.datasheet import ONE_DRIVE, DataSheetValue
from pytest_ssdqual.qual.workload.workload import Workload


@frozen
class Anchor:
    """A published rate of one drive, and the workload at which it is judged."""

    workload: Workload
    published: Published


@frozen
class ChainedPromise:
    """A promise in per cent of a sheet, for an array whose depth the sheet does not state."""

    percent: float
    #: File of the promise, and the place in it.
    place: str
    #: Name of the sheet.
    sheet: str
    #: One for each kind of I/O that the array's members do.
    anchors: tuple[Anchor, ...]


def anchors(figures: Sequence[DataSheetValue], kinds: Iterable[str], bs: str) -> tuple[Anchor, ...]:
    """Return the anchor of each kind of I/O (``randread``, ``randwrite``); empty if the sheet lacks one of them.

    It is the highest published rate of one drive with the size that is nearest to ``bs``.
    """
    size = Workload("randread", bs, 1).block_bytes
    found = [_anchor(figures, kind, size) for kind in kinds]
    return tuple(anchor for anchor in found if anchor) if None not in found else ()


def _anchor(figures: Sequence[DataSheetValue], kind: str, size: float) -> Anchor | None:
    published = [anchor for anchor in _of_one_drive(figures) if anchor.workload.rw == kind]
    if not published:
        return None
    distances = {anchor: abs(math.log(anchor.workload.block_bytes / size)) for anchor in published}
    nearest = min(distances.values())
    return max(
        (anchor for anchor in published if distances[anchor] == nearest), key=lambda anchor: anchor.published.value
    )


def _of_one_drive(figures: Sequence[DataSheetValue]) -> Iterator[Anchor]:
    """Yield the published rates of one drive under uniform random I/O of one size."""
    for figure in figures:
        for array, name, claim in figure.places():
            if array != ONE_DRIVE or claim is not Claim.STEADY_IOPS:
                continue
            workload = _uniform(name)
            published = figure.of(claim, array, name)
            if workload and published:
                yield Anchor(workload, published)


def _uniform(name: str) -> Workload | None:
    """Return the workload if it is uniform random I/O of one size; None otherwise, and for a profile."""
    try:
        workload = Workload.parse(name)
    except ValueError:
        return None
    is_uniform = workload.is_random and workload.is_usual and not workload.has_streams and len(workload.sizes) == 1
    return workload if is_uniform and workload.rw in ("randread", "randwrite") else None
