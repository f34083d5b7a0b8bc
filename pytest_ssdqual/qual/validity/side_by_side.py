"""Attribution of a promise that drives side by side break: one drive, the model, a path, or the host.

Drives side by side have siblings as witnesses. A drive is named only if it is far behind the median of all others, and
if nothing about its place distinguishes it. What more than half of the drives show is the model, or what they share.
Each rule below is a sufficient condition; the first that holds decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from statistics import fmean, stdev

from pytest_ssdqual.qual.detect.outliers import of_others
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.validity.attribution import (
    ADVICE,
    NAMED,
    SHARED,
    SLOW,
    Cause,
    Culprit,
    cause,
    drives,
    first_of,
)

#: More drives than this share of all are no outliers.
FEW = 1 / 3
#: A drive is no outlier within so many standard deviations of its lot, if there are enough drives to estimate one.
DEVIATIONS, ENOUGH = 3.0, 6
#: Standard deviation of the upper half of a normal distribution: √(1 - 2/π).
OF_HALF = math.sqrt(1 - 2 / math.pi)


class TraitKind(Enum):
    """What a difference between drives says about the cause."""

    #: A thing that several drives hang on: a bus adapter, an expander, a switch.
    SHARED = "shared"
    #: The place of a drive in the host: its NUMA node, its link.
    PLACE = "place"
    #: How the host treats a drive: its scheduler, its queue.
    HOST = "host"
    #: The drive itself: its model, its firmware.
    DRIVE = "drive"


@frozen
class Trait:
    """Something that drives may have in common; equal if it is the same."""

    kind: TraitKind
    #: ``firmware``, ``NUMA node``, ``SAS expander``.
    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} {self.value}"


@frozen
class DriveFigure:
    """One of several drives side by side."""

    #: Serial number.
    serial: str
    #: Its figure over the limit, or the limit over the figure if less is better: larger is better. None if the limit or
    #: the figure is zero.
    score: float | None
    #: The promise is certainly broken by it.
    breaks: bool
    #: Distance of the good end of its interval from the figure, as a share of it.
    error: float = 0.0
    #: What is known of it and its place.
    traits: frozenset[Trait] = frozenset()


@frozen
class SideBySide:
    """Evidence about drives side by side of which at least one breaks a promise."""

    drives: tuple[DriveFigure, ...]
    #: Returns the IOPS of a drive together with the others over those alone; None if that is not known.
    together: Callable[[str], float | None] = lambda serial: None
    #: The host or fio, if its own figures say that it is the bottleneck.
    host: Cause | None = None
    #: Share of the median of all others, below which a drive is behind.
    behind: float = SLOW
    #: Less is better, as of latencies.
    is_at_most: bool = False
    #: The promise compares the drives: it is broken by those that are behind.
    compares: bool = False
    #: IOPS of each drive together with the others over those alone, under the very load that is judged; empty if the
    #: drives were not measured so, or if the promise is not about a rate.
    alone: Mapping[str, float] = field(default_factory=dict)

    @property
    def broken(self) -> tuple[DriveFigure, ...]:
        return self.slow if self.compares else tuple(drive for drive in self.drives if drive.breaks)

    @property
    def shares(self) -> Mapping[str, float]:
        """The score of each drive over the median of all others, by serial number; empty unless all are known."""
        scores = [drive.score for drive in self.drives if drive.score is not None]
        if len(scores) < len(self.drives) or len(scores) < 2:
            return {}
        beside = zip(self.drives, scores, of_others(scores), strict=True)
        return {drive.serial: score / others for drive, score, others in beside if others > 0}

    @property
    def scatter(self) -> float:
        """Standard deviation of the lot, as a share of its mean; 0 of few drives.

        Of the better half, which is sound also where the others are slow.
        """
        scores = sorted(drive.score for drive in self.drives if drive.score is not None)
        better = scores[-(len(scores) // 2) :]
        return stdev(better) / fmean(better) / OF_HALF if len(scores) >= ENOUGH else 0.0

    @property
    def slow(self) -> tuple[DriveFigure, ...]:
        """The drives that are behind the others for certain, the slowest first; without scores those that break it."""
        shares = self.shares
        if not shares:
            return tuple(drive for drive in self.drives if drive.breaks)
        least = self.behind if self.compares else min(self.behind, 1 - DEVIATIONS * self.scatter)
        found = [drive for drive in self.drives if shares.get(drive.serial, 1.0) * (1 + drive.error) < least]
        return tuple(sorted(found, key=lambda drive: shares[drive.serial]))

    @property
    def others(self) -> tuple[DriveFigure, ...]:
        """All drives that are not behind."""
        slow = self.slow
        return tuple(drive for drive in self.drives if drive not in slow)

    @property
    def are_most_broken(self) -> bool:
        return 2 * len(self.broken) > len(self.drives)

    def is_as_slow_alone(self, drive: DriveFigure) -> bool:
        """Return whether it is known that the others do not slow this drive."""
        share = self.together(drive.serial)
        return share is not None and share >= SHARED

    def would_hold(self, drive: DriveFigure, share: float) -> bool:
        """Return whether a drive that does ``share`` of what it does alone would keep the promise if it did that."""
        if self.compares:
            return self.shares.get(drive.serial, 1.0) / share >= self.behind
        return drive.score is None or drive.score * (1 + drive.error) / share >= 1

    def holds_alone(self, drive: DriveFigure) -> bool:
        """Return whether a drive is known to keep the promise alone, under the very load that is judged."""
        share = self.alone.get(drive.serial)
        return share is not None and self.would_hold(drive, share)

    def how_slow(self, drives: Sequence[DriveFigure]) -> str:
        """``it does 60 % of the median of its 7 siblings``, ``they do 70 to 75 % of the median of the others``."""
        shares, left = self.shares, len(self.drives) - 1
        if not shares:
            return f"{len(drives)} of {len(self.drives)} drives break the promise, the others keep it"
        amounts = [self._amount(shares[drive.serial]) for drive in drives]
        amount = amounts[0] if amounts[0] == amounts[-1] else f"{amounts[0]} to {amounts[-1]}"
        if len(drives) > 1:
            whose = "the median of the others"
            return f"their figures are {amount} times {whose}" if self.is_at_most else f"they do {amount} % of {whose}"
        whose = "its sibling" if left == 1 else f"the median of its {left} siblings"
        return f"its figure is {amount} times that of {whose}" if self.is_at_most else f"it does {amount} % of {whose}"

    def _amount(self, share: float) -> str:
        if not self.is_at_most:
            return f"{100 * share:.0f}"
        return f"{1 / share:.3g}" if share else "∞"


def attribute(found: SideBySide) -> Cause:
    """Return the cause; ``UNKNOWN`` if no rule decides."""
    why = f"{len(found.slow)} of {len(found.drives)} drives are behind the others, and nothing known distinguishes them"
    return first_of(RULES, found) or Cause(Culprit.UNKNOWN, f"{why}: measure them alone")


def distinction(found: SideBySide, kinds: Sequence[TraitKind]) -> tuple[Trait, ...]:
    """Return what exactly the slow drives have in common, or, if it is one drive, all others and it has not.

    A single drive always has something of its own. Of that counts what all others share, and what is known of it.
    """
    slow, others = found.slow, found.others
    if not slow or not others:
        return ()
    common, elsewhere = frozenset.intersection(*(each.traits for each in slow)), [each.traits for each in others]
    if len(slow) > 1:
        differ = common - frozenset().union(*elsewhere)
    else:
        known = {(trait.kind, trait.name) for trait in common}
        shared = frozenset.intersection(*elsewhere) - common
        differ = frozenset(
            trait
            for trait in shared
            if (trait.kind, trait.name) in known or (trait.kind is TraitKind.SHARED and _has(common, TraitKind.SHARED))
        )
    return tuple(sorted((each for each in differ if each.kind in kinds), key=str))


def _has(traits: frozenset[Trait], kind: TraitKind) -> bool:
    return any(trait.kind is kind for trait in traits)


def _one_drive(found: SideBySide) -> Cause | None:
    """A single drive has no sibling that could tell whether its model does better."""
    if len(found.drives) > 1:
        return None
    return Cause(Culprit.DRIVE, "measured alone, without siblings", (found.drives[0].serial,))


def _host(found: SideBySide) -> Cause | None:
    """What the host is busy with slows all drives, not a few; that is proven if all would keep the promise alone."""
    if found.host is None or not found.are_most_broken:
        return None
    return replace(found.host, is_proven=all(found.holds_alone(drive) for drive in found.broken))


def _together(found: SideBySide) -> Cause | None:
    """Drives that are slower side by side than alone, and would keep the promise alone; no others are excused."""
    many = found.broken if found.are_most_broken else found.slow
    if len(many) < 2:
        return None
    worst = _worst(many)
    share = found.together(worst.serial)
    if share is None or share >= SHARED or not found.would_hold(worst, share):
        return None
    what = f"drive {worst.serial} does {100 * share:.0f} % of what it does alone"
    is_proven = bool(found.alone)
    behind = tuple(drive.serial for drive in many if not is_proven or found.holds_alone(drive))
    if not behind:
        return None
    return Cause(Culprit.PATH, what, behind, ADVICE[Culprit.PATH], is_proven=is_proven)


def _place(found: SideBySide) -> Cause | None:
    """Only the slow drives are attached or treated in some way: the place may be the cause as well as the drives."""
    if not found.shares:
        return None
    for kinds, culprit in (((TraitKind.SHARED, TraitKind.PLACE), Culprit.PATH), ((TraitKind.HOST,), Culprit.HOST)):
        if differ := distinction(found, kinds):
            serials = tuple(drive.serial for drive in found.slow) if culprit is Culprit.PATH else ()
            advice = "swap drives between the places, and measure again: see whether the figure moves with the drive"
            if culprit is Culprit.HOST:
                advice = f"give all drives the same {differ[0].name}"
            return Cause(culprit, f"{found.how_slow(found.slow)}, and {_differ(found, differ)}", serials, advice)
    return None


def _most_break_it(found: SideBySide) -> Cause | None:
    """More than half of the drives break the promise: none of them is an exception."""
    if not found.are_most_broken:
        return None
    what = f"{len(found.broken)} of {len(found.drives)} drives break it"
    slow = found.slow if found.shares else ()
    if len(slow) == 1:
        return _of_product(f"{what}, drive {slow[0].serial} most: {found.how_slow(slow)}")
    worst = _worst(found.broken)
    return _of_product(f"{what}, and drive {worst.serial} is as slow alone" if found.is_as_slow_alone(worst) else what)


def _within_scatter(found: SideBySide) -> Cause | None:
    """A drive breaks the promise and is no exception: the limit is where drives of this model are."""
    slow, shares = {drive.serial for drive in found.slow}, found.shares
    if not shares or any(drive.serial in slow for drive in found.broken):
        return None
    if not found.broken:
        return _of_product(f"no drive is more than {100 * (1 - found.behind):.0f} % behind the median of the others")
    worst = min(found.broken, key=lambda drive: shares.get(drive.serial, 1.0))
    is_of = f"{100 * shares.get(worst.serial, 1.0):.1f} % of the median of the others"
    return _of_product(f"drive {worst.serial} breaks it at {is_of}, so all are near the limit")


def _outliers(found: SideBySide) -> Cause | None:
    """One or few drives are far behind the others, or many of a kind of their own, or many that are as slow alone."""
    slow = found.slow
    of_a_kind = distinction(found, (TraitKind.DRIVE,)) if found.shares else ()
    is_few = len(slow) == 1 or len(slow) <= FEW * len(found.drives)
    if not (is_few or of_a_kind or found.is_as_slow_alone(slow[0])):
        return None
    named_drives = slow if found.compares else tuple(drive for drive in slow if drive.breaks)
    what = found.how_slow(named_drives)
    if of_a_kind:
        what = f"{what}, and {_differ(found, of_a_kind)}"
    elif not is_few:
        what = f"{what}, and drive {slow[0].serial} is as slow alone"
    return drives(what, [drive.serial for drive in named_drives])


def _worst(drives: Sequence[DriveFigure]) -> DriveFigure:
    return min(drives, key=lambda drive: drive.score if drive.score is not None else 0.0)


def _of_product(evidence: str) -> Cause:
    return cause(Culprit.PRODUCT, evidence)


def _differ(found: SideBySide, traits: Sequence[Trait]) -> str:
    """``exactly these share firmware 1.2``, ``its siblings have NUMA node 0, it has NUMA node 1``."""
    if len(found.slow) > 1:
        return f"exactly these share {named(traits, NAMED)}"
    own = [str(each) for each in found.slow[0].traits if any(each.name == other.name for other in traits)]
    siblings = f"its sibling{'s have' if len(found.others) > 1 else ' has'} {named(traits, NAMED)}"
    return f"{siblings}, it has {named(sorted(own), NAMED)}" if own else f"{siblings}, it has not"


Rule = Callable[[SideBySide], Cause | None]
#: In the order of decision, each with its confidence: (right + 1) / (all + 2) of its answers in
#: `bench/attribution_side_by_side.py` (Laplace's rule of succession; 7,711 broken promises), so a rule that decided
#: nothing there has 0.5.
RULES: Mapping[Rule, float] = {
    _host: 0.99,
    _one_drive: 0.5,
    _together: 0.99,
    _place: 0.99,
    _most_break_it: 0.99,
    _within_scatter: 0.97,
    _outliers: 0.99,
}
