"""Groups of broken promises by their attributed cause, so that one slow drive is one headline and not eighty; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.evidence.health import OF_HEALTH
from pytest_ssdqual.report.run_folder.reader import Record

WORDS = {Finding.FAIL: "failed", Finding.INCONCLUSIVE: "inconclusive", Finding.BOUNDED: "bounded"}
NO_CAUSE = (None, Culprit.UNKNOWN)
#: Kind of the record of drives side by side that a step is without.
LEFT_OUT = "drives_left_out"


@frozen
class CauseGroup:
    """Broken promises with one cause, the worst first; at least one."""

    #: None for those without an attributed cause.
    culprit: Culprit | None
    #: Serial numbers.
    drives: tuple[str, ...]
    broken: tuple[Evidence, ...]
    #: Promises of the run by outcome, those without a cause included.
    of: Mapping[Finding, int]

    @property
    def headline(self) -> str:
        """The group as one sentence: ``drive SSDQ0003 explains 80 of 80 failed promises``."""
        count = self.share
        cause = self.broken[0].cause
        if self.culprit is None or cause is None:
            return f"{count}: no cause was attributed"
        if self.culprit is Culprit.UNEXPLAINED:
            return f"{count} are unexplained: {cause.evidence}"
        if self.culprit is Culprit.UNKNOWN:
            return f"{count}: no cause was attributed: {cause.evidence}"
        if self.culprit is Culprit.PRODUCT:
            return f"{cause.subject}, explains {count}: {cause.evidence}"
        if not self.culprit.is_drive:
            return f"{cause.subject}, not a drive, limits {count}: {cause.evidence}"
        verb = "explain" if len(self.drives) > 1 or cause.subject == "all drives" else "explains"
        return f"{cause.subject} {verb} {count}: {cause.evidence}"

    @property
    def share(self) -> str:
        """``39 of 40 inconclusive promises``: the part of all promises with the outcomes of this group."""
        outcomes = [outcome for outcome in WORDS if any(broken.outcome is outcome for broken in self.broken)]
        total = sum(self.of[each] for each in outcomes)
        return f"{len(self.broken):,} of {total:,} {' or '.join(WORDS[each] for each in outcomes)} promises"

    @property
    def is_of_health(self) -> bool:
        """Return whether nothing but the health of drives is broken."""
        return all(broken.claim in OF_HEALTH for broken in self.broken)

    @property
    def advice(self) -> str:
        """What to change; empty if drives are the cause."""
        cause = self.broken[0].cause
        return cause.advice if cause else ""


def groups(evidence: Iterable[Evidence]) -> tuple[CauseGroup, ...]:
    """Return the groups, the largest first, those without a known cause last; empty if none has a cause."""
    promises = list(evidence)
    broken = [each for each in promises if each.is_broken]
    if not any(each.cause for each in broken):
        return ()
    of = Counter(each.outcome for each in promises)
    found: dict[tuple[Culprit | None, tuple[str, ...]], list[Evidence]] = {}
    for each in broken:
        key = (each.cause.culprit, tuple(sorted(each.cause.drives))) if each.cause else (None, ())
        found.setdefault(key, []).append(each)
    grouped = (
        CauseGroup(culprit, drives, tuple(sorted(each, key=_margin)), of) for (culprit, drives), each in found.items()
    )
    return tuple(sorted(grouped, key=lambda group: (group.culprit in NO_CAUSE, -len(group.broken), group.drives)))


def _margin(evidence: Evidence) -> float:
    return 0.0 if evidence.margin_percent is None else evidence.margin_percent


def blamed(found: Iterable[CauseGroup]) -> dict[str, int]:
    """Return by serial number of how many broken promises a drive is the cause, alone or with others."""
    counts: dict[str, int] = {}
    for group in found:
        for drive in group.drives if group.culprit is not None and group.culprit.is_drive else ():
            counts[drive] = counts.get(drive, 0) + len(group.broken)
    return counts


def left_out(records: Iterable[Record], judged: Iterable[Evidence]) -> dict[str, str]:
    """Return by serial number why drives that did not fail have no valid figure, which left promises inconclusive."""
    undecided = " ".join(evidence.sentence for evidence in judged if evidence.outcome is Finding.INCONCLUSIVE)
    return {
        serial: f"drive {serial} was left out: {why}".replace(f": drive {serial} ", ": it ")
        for record in records
        if not record.facts.get("failed")
        for serial, why in record.fact("drives", dict[str, str], {}).items()
        # One serial number may be the beginning of another.
        if re.search(rf"(?<!\w){re.escape(serial)}(?!\w)", undecided)
    }
