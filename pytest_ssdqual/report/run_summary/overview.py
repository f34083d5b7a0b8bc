"""First screen of a run's page: causes, the next step, the drives with the guilty one marked, margin, times; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.units import format_clock
from pytest_ssdqual.report.evidence import multiplicity as family
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.evidence.health import FAILED, HEALTH
from pytest_ssdqual.report.run_folder.journal import RECORDS
from pytest_ssdqual.report.run_folder.manifest import Manifest, WorsenedDrive
from pytest_ssdqual.report.run_summary import next_step
from pytest_ssdqual.report.run_summary.causes import blamed
from pytest_ssdqual.report.run_summary.fitness import lost
from pytest_ssdqual.report.run_summary.next_step import Step, next_steps
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import promises, subject
from pytest_ssdqual.report.view.promises import InspectedDrive
from pytest_ssdqual.report.view.tables import parse_geometry

#: Lines about causes, defects apart, and drives; the sections below have all of them.
MOST_CAUSES, MOST_DRIVES = 3, 24


@frozen
class DriveMark:
    """A drive and the reasons against it."""

    serial: str
    #: Phrases; empty without one.
    charges: tuple[str, ...]
    #: ``not tested``, ``only inspected``; empty for a drive that a judged test loaded.
    untested: str
    #: Device name.
    path: str
    #: True if it is the cause of failed promises.
    is_cause: bool


@frozen
class Reason:
    """A reason of the verdict, and what followed from it."""

    sentence: str
    consequences: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.sentence, *self.consequences)


@frozen
class Overview:
    """What a reader sees before scrolling, beside the verdict."""

    causes: tuple[Reason, ...]
    #: What limits the verdict, a sentence each, without what the causes say.
    limits: tuple[str, ...]
    steps: tuple[Step, ...]
    #: In the order of the run, if there are more than fit the marked ones first.
    drives: tuple[DriveMark, ...]
    more_drives: int
    #: Name and text.
    facts: tuple[tuple[str, str], ...]


def overview(run: RunView) -> Overview:
    """Return the first screen of a run."""
    marks = drive_marks(run)
    shown = sorted(marks, key=lambda drive: not drive.charges)[:MOST_DRIVES] if len(marks) > MOST_DRIVES else marks
    failed = failed_drives(run)
    suspects = dict.fromkeys([*(mark.serial for mark in marks if mark.is_cause), *run.verdict.counts.uneven])
    deviating = [drive.name for drive in _inspected(run) if drive.deviations]
    steps = next_steps(run, failed, [serial for serial in suspects if serial not in failed], deviating)
    limits = tuple(each for each in run.verdict.remarks if each != lost(run.verdict.counts))
    return Overview(tuple(_causes(run)), limits, steps, tuple(shown), len(marks) - len(shown), tuple(_facts(run)))


def drive_marks(run: RunView) -> Sequence[DriveMark]:
    """Return every drive of the run with the charges against it; what all drives have in common is no mark."""
    drives = run.manifest.drives
    guilty, alone = blamed(run.causes), _failed_alone(run.judged)
    serials = [drive.name for drive in drives]
    if len(serials) > 1 and min(guilty.get(serial, 0) for serial in serials) == max(guilty.values(), default=0):
        guilty = {}
    deviations = {drive.path: drive.deviations for drive in _inspected(run)}
    failed, defective = failed_drives(run), {each.drive for each in run.changed if each.defects}
    marks = []
    for serial, drive in zip(serials, drives, strict=True):
        health = "failed under load" if serial in failed else ""
        health = health or ("its health worsened" if drive.identity in defective else "")
        deviates = ", ".join(deviations.get(drive.path, ()))
        charges = filter(None, (health, _charge(guilty.get(serial, 0), alone.get(serial, 0)), deviates))
        untested = run.verdict.coverage.untested_as(drive.identity)
        marks.append(DriveMark(serial, tuple(charges), untested, drive.path, serial in guilty))
    return marks


def _inspected(run: RunView) -> tuple[InspectedDrive, ...]:
    return promises.inspected_drives(run.judged)


def failed_drives(run: RunView) -> tuple[str, ...]:
    """Return the serial numbers of the drives that failed under the load."""
    failures = (judged for judged in run.judged if judged.claim == FAILED)
    return tuple(dict.fromkeys(part.name for failure in failures for part in failure.members))


def _charge(guilty: int, alone: int) -> str:
    """Return of how many failed promises a drive is the cause, or else how many of its own it fails."""
    if guilty:
        return f"cause of {counted(guilty, 'failed promise')}"
    return f"fails {counted(alone, 'promise')} of its own" if alone else ""


def _failed_alone(evidence: Iterable[Evidence]) -> dict[str, int]:
    """Return by serial number how many promises a drive failed that was judged by itself."""
    counts: dict[str, int] = {}
    for each in evidence:
        if each.claim not in (HEALTH, FAILED) and each.is_promised and not each.is_inspection:
            for part in each.members:
                counts[part.name] = counts.get(part.name, 0) + (part.outcome is Finding.FAIL)
    return counts


def _causes(run: RunView) -> Iterator[Reason]:
    """Yield the gravest reasons of the verdict: drives that failed, causes, errors."""
    remedy = next_step.advice(run)  # the next step has it
    defective = [change for change in run.changed if change.defects]
    worsened = {run.manifest.serials.get(change.drive) for change in defective}
    named = [
        *_of_drives(run, defective, failed_drives(run)),
        *(
            Reason(f"{each.headline}. Remedy: {each.advice}" if each.advice not in ("", remedy) else each.headline)
            for each in run.causes
            if not (each.is_of_health and worsened.issuperset(each.drives))
        ),
    ]
    found = [
        *_deviating(run),
        *map(Reason, run.left_out.values()),
        *_of_drives(run, [each for each in run.changed if not each.defects]),
    ]
    if errors := [each for each in run.errors if not each.drives]:
        first = errors[0].message.strip().partition("\n")[0]
        tests = counted(sum(len(each.tests) for each in errors), "test")
        found.append(Reason(f"{tests} in error: {first or 'without a message'}"))
    if not (named or found) and (failed := run.sentences(Finding.FAIL)):
        found = [Reason(f"no cause was attributed; the first failed promise: {failed[0]}")]
    most = max(0, MOST_CAUSES - len(named))
    yield from (*named, *found[:most])
    if (left := len(found) - most) > 0:
        yield Reason(f"and {left:,} more; all of them are in {RECORDS}")


def _deviating(run: RunView) -> Iterator[Reason]:
    """Yield each drive that deviates at the inspection."""
    for drive in _inspected(run):
        if drive.deviations:
            place = f" at {drive.path}" if drive.path else ""
            yield Reason(f"drive {drive.name}{place} deviates: {', '.join(drive.deviations)}")


def _of_drives(run: RunView, changed: Sequence[WorsenedDrive], failed: Sequence[str] = ()) -> Iterator[Reason]:
    """Yield each drive that failed or whose health worsened, with what else was found, and the tests that it cost."""
    serials = run.manifest.serials
    found: dict[str, list[str]] = {serial: [] for serial in failed}
    for each in changed:
        shortened = (finding.replace(each.name, "it") if each.name else finding for finding in each.findings)
        found.setdefault(serials.get(each.drive) or each.drive, []).extend(shortened)
    paths = {drive.name: drive.path for drive in run.manifest.drives}
    for serial, findings in found.items():
        first, *rest = findings or [f"drive {serial} failed under load" if serial in failed else "its health worsened"]
        further = [each for each in rest if each.rpartition("the first: ")[2] not in first]  # the kernel's words, once
        place = f" at {path}" if (path := paths.get(serial)) else ""
        sentence = f"drive {serial}{place}: {first}".replace(f": drive {serial} ", " ", 1)
        tests = sum(len(each.tests) for each in run.errors if serial in each.drives)
        if tests:
            further.append(f"{tests:,} of {run.verdict.counts.tests:,} tests could not run without it")
        yield Reason(sentence, tuple(further))


def lists(run: RunView) -> tuple[tuple[str, str, Sequence[str]], ...]:
    """Return the reasons against the product or the run: the title of a list, the mark of its sentences, and these."""
    causes = [f"{each.headline} ({each.advice})" if each.advice else each.headline for each in run.causes]
    return (
        ("Causes", "→", causes),
        ("Failed promises", "✗", run.sentences(Finding.FAIL)),
        ("Inconclusive", "?", run.sentences(Finding.INCONCLUSIVE)),
        ("Bounded by something above the drives", "‖", run.sentences(Finding.BOUNDED)),
        ("Tests in error", "!", [each.brief for each in run.errors if not each.drives]),
        ("Findings about drives that got worse", "!", run.worsened),
    )


def _facts(run: RunView) -> Iterator[tuple[str, str]]:
    at = f" on {', '.join(filter(None, run.machines))}" if any(run.machines) else ""
    yield "Drives", ", ".join(filter(None, (f"{subject.kinds(run.manifest)}{at}", str(run.manifest.expected or ""))))
    yield "Judged", str(run.verdict.coverage)
    if what := arrays_judged(run.judged):
        yield "Tested", what
    if passed := promises.passed(run.judged):
        yield "Passed", passed
    for name in ("protocol", "spec"):
        yield name.capitalize(), run.document(name) or "unknown"
    if (seconds := run_seconds(run.manifest)) is not None:
        yield "Run time", format_clock(seconds)
    if started := run.manifest.started:
        yield "Started", f"{utc(started)} UTC"
    if run.budget:
        yield "Budget", str(run.budget)


def details(run: RunView, where: str) -> Iterator[tuple[str, str]]:
    """Yield the summary's entries that are not on the first screen: name and text; ``where`` is the file with all."""
    if not run.manifest.expected:
        yield "Number of drives", subject.NOT_EXPECTED
    if skipped := run.verdict.counts.skipped:
        yield "Skipped tests", f"{skipped:,}, with the reasons in {where}"
    if run.write_caches:
        yield "Write caches", run.write_caches
    if run.history:
        yield "Drives before the measurements", run.history
    yield "Run folder", str(run.folder)


def arrays_judged(judged: Iterable[Evidence]) -> str:
    """Return ``single drives, RAID 5 of 3 to 8 drives``, all of them measured; empty if none was judged."""
    widths: dict[tuple[str, str], set[int]] = {}
    for each in judged:
        for geometry in each.geometries if each.claim != HEALTH else ():
            level, state, width = parse_geometry(geometry)
            if width:
                widths.setdefault((level, state), set()).add(width)
    return ", ".join(_arrays(*key, found) for key, found in sorted(widths.items()))


def _arrays(level: str, state: str, widths: Iterable[int]) -> str:
    if level == "drive":
        return "single drives"
    how = re.sub("([0-9])", r"\1 ", state.strip("-"))
    name = level.replace("raid", "RAID ") + (f" ({how})" if how else "")
    spans: list[list[int]] = []
    for width in sorted(widths):
        if spans and width == spans[-1][-1] + 1:
            spans[-1].append(width)
        else:
            spans.append([width])
    shown = [f"{span[0]} to {span[-1]}" if len(span) > 2 else " and ".join(map(str, span)) for span in spans]
    return f"{name} of {', '.join(shown)} drives"


def run_seconds(manifest: Manifest) -> float | None:
    """Return the time of all sessions together; None if one has no end."""
    total = 0.0
    for session in manifest.sessions:
        started, ended = subject.moment(session.started), subject.moment(session.ended)
        if started is None or ended is None:
            return None
        total += (ended - started).total_seconds()
    return max(0.0, total) if manifest.sessions else None


def utc(started: str) -> str:
    """Return a moment of the manifest without its fraction and zone."""
    return started.partition(".")[0].replace("T", " ").removesuffix("+00:00")


def error_rates(run: RunView) -> tuple[str, ...]:
    """Return the sentences about all verdicts together; empty for a run that did not end."""
    noted = run.manifest.family
    if noted is None:
        return ()
    by_test = [(judged.test, judged) for judged in run.judged]
    tallied = family.tally(by_test, noted.error_control, noted.confidence)
    return tuple(family.lines(tallied, run.document("protocol"))) if tallied else ()
