"""First screen of a run's page: causes, the drives with the guilty one marked, least margin and run time; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_ssdqual.qual.units import format_clock
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.report.evidence import multiplicity as family
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.evidence.health import HEALTH
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.causes import blamed
from pytest_ssdqual.report.view.run_view import RunView
from pytest_ssdqual.report.view.sections import CONCLUDED
from pytest_ssdqual.report.view.tables import label, margin, parse_geometry, span

#: Lines about causes, and drives; the sections below have all of them.
MOST_CAUSES, MOST_DRIVES = 3, 24


@dataclass(frozen=True, slots=True)
class DriveMark:
    """A drive and what speaks against it."""

    serial: str
    #: Phrases; empty if nothing does.
    charges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overview:
    """What a reader sees before scrolling, beside the verdict."""

    causes: tuple[str, ...]
    #: In the order of the run, if there are more than fit the marked ones first.
    drives: tuple[DriveMark, ...]
    more_drives: int
    #: Name and text.
    facts: tuple[tuple[str, str], ...]


def overview(run: RunView) -> Overview:
    """Return the first screen of a run."""
    marks = drive_marks(run)
    shown = sorted(marks, key=lambda drive: not drive.charges)[:MOST_DRIVES] if len(marks) > MOST_DRIVES else marks
    return Overview(tuple(_causes(run)), tuple(shown), len(marks) - len(shown), tuple(_facts(run)))


def drive_marks(run: RunView) -> Sequence[DriveMark]:
    """Return every drive of the run with the charges against it; what all drives have in common is no mark."""
    drives = list(subject.manifest_drives(run.manifest))
    guilty, alone = blamed(run.causes), _failed_alone(each.evidence for each in run.judged)
    serials = [subject.text(drive, "serial") or subject.text(drive, "identity") for drive in drives]
    if len(serials) > 1 and all(guilty.get(serial) for serial in serials):
        guilty = {}
    return [
        DriveMark(serial, tuple(_charges(serial, subject.text(drive, "identity"), run, guilty, alone)))
        for serial, drive in zip(serials, drives, strict=True)
    ]


def _charges(
    serial: str, identity: str, run: RunView, guilty: Mapping[str, int], alone: Mapping[str, int]
) -> Iterator[str]:
    if identity in run.defective:
        yield "failed, or its health worsened"
    if count := guilty.get(serial, 0):
        yield f"cause of {count:,} broken {'promise' if count == 1 else 'promises'}"
    elif count := alone.get(serial, 0):
        yield f"fails {count:,} {'promise' if count == 1 else 'promises'} itself"


def _failed_alone(evidence: Iterable[Evidence]) -> dict[str, int]:
    """Return by serial number how many promises a drive failed that was judged by itself."""
    counts: dict[str, int] = {}
    for each in evidence:
        if each.claim != HEALTH and each.is_promised:
            for part in each.members:
                counts[part.name] = counts.get(part.name, 0) + (part.outcome is Finding.FAIL)
    return counts


def _causes(run: RunView) -> Iterator[str]:
    """Yield the gravest reasons of the verdict: drives that failed, causes, errors."""
    found = [
        *run.worsened,
        *(f"{each.headline}. Remedy: {each.advice}" if each.advice else each.headline for each in run.causes),
    ]
    if run.errors:
        first = run.errors[0].message.strip().partition("\n")[0]
        tests = sum(len(each.tests) for each in run.errors)
        found.append(f"{tests:,} {'test' if tests == 1 else 'tests'} in error: {first or 'without a message'}")
    if not found and (failed := run.sentences(Finding.FAIL)):
        found = [f"no cause was attributed; the first failed promise: {failed[0]}"]
    yield from found[:MOST_CAUSES]
    if (left := len(found) - MOST_CAUSES) > 0:
        yield f"and {left:,} more, below"


def _facts(run: RunView) -> Iterator[tuple[str, str]]:
    if what := arrays_judged(run.judged):
        yield "Tested", what
    if closest := least_margin(run):
        of = " ".join(filter(None, (span(closest.geometries), closest.worst, span(closest.workloads))))
        yield "Least margin", f"{closest.margin}: {label(closest.claim)} of {of}, limit {closest.bound}"
    yield "Protocol", run.document("protocol") or "unknown"
    yield "Spec", run.document("spec") or "unknown"
    if (seconds := run_seconds(run.manifest)) is not None:
        yield "Run time", format_clock(seconds)
    if run.budget:
        yield "Budget", str(run.budget)
    if started := subject.text(run.manifest, "started"):
        yield "Started", f"{utc(started)} UTC"


def arrays_judged(judged: Iterable[Judged]) -> str:
    """Return ``single drives, RAID 5 of 3 to 8 drives``; empty if no array and no drive was judged."""
    widths: dict[tuple[str, str], set[int]] = {}
    for each in judged:
        for geometry in each.evidence.geometries:
            level, state, width = parse_geometry(geometry)
            if width:
                widths.setdefault((level, state), set()).add(width)
    return ", ".join(_arrays(*key, found) for key, found in sorted(widths.items()))


def _arrays(level: str, state: str, widths: Iterable[int]) -> str:
    if level == "drive":
        return "single drives"
    how = re.sub("([0-9])", r"\1 ", state.strip("-"))
    name = level.replace("raid", "RAID ") + (f" ({how})" if how else "")
    least, most = min(widths), max(widths)
    return f"{name} of {least} drives" if least == most else f"{name} of {least} to {most} drives"


def least_margin(run: RunView) -> Evidence | None:
    """Return the promise with the least margin, failed or not; None without one that has a margin."""
    found = [each.evidence for each in run.judged if each.evidence.is_promised]
    found = [each for each in found if each.about not in CONCLUDED and each.claim != HEALTH and each.limit]
    return min(found, key=margin, default=None)


def run_seconds(manifest: Mapping[str, object]) -> float | None:
    """Return the time of all sessions together; None if one has no end."""
    total = 0.0
    for session in subject.tables(manifest.get("sessions")) or [manifest]:
        try:
            ends = [datetime.fromisoformat(subject.text(session, name)) for name in ("started", "ended")]
            total += (ends[1] - ends[0]).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, total)


def utc(started: str) -> str:
    """Return a moment of the manifest without its fraction and zone."""
    return started.partition(".")[0].replace("T", " ").removesuffix("+00:00")


def error_rates(run: RunView) -> tuple[str, ...]:
    """Return the sentences about all verdicts together; empty for a run that did not end."""
    noted = subject.table(run.manifest.get("family"))
    planned, confidence = noted.get("claims_planned"), noted.get("confidence")
    if not isinstance(planned, int) or planned < 1 or not isinstance(confidence, float) or not 0 < confidence < 1:
        return ()
    try:
        of_all = ErrorControl(planned, subject.text(noted, "control"))
        found = family.tally(
            [(each.test, each.evidence) for each in run.judged], of_all, confidence, run.document("protocol")
        )
    except ValueError:
        return ()
    return tuple(family.lines(found)) if found else ()
