"""The header of a run, and its ending: verdict, cause, what to do, exceptions, what passed, path; for pytest's writer.

Promises that are not kept have a row each with all figures, or if they are many a cell in a grid. What passed is one
line; above verbosity 0 every figure has a row. Figures without a promise are in grids, and published figures in tables.

Colours are names that the writer resolves or drops, so ``--color``, ``NO_COLOR`` and log files work as usual.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding
from pytest_ssdqual.report.evidence.health import FAILED
from pytest_ssdqual.report.run_summary.fitness import LOOKS, Fitness
from pytest_ssdqual.report.run_summary.overview import failed_drives, overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import promises
from pytest_ssdqual.report.view.grid import grids
from pytest_ssdqual.report.view.promises import InspectedDrive
from pytest_ssdqual.report.view.sections import CONCLUDED, beside, conclusions, loops, members, saturations, series
from pytest_ssdqual.report.view.tables import (
    BROKEN,
    COLOUR,
    INDENT,
    State,
    Table,
    TextLine,
    label,
    paragraph,
    sorting,
    text_table,
)

#: Kinds of evidence with a section of their own, remarks included.
APART = (About.LOOP, *CONCLUDED)
#: Promises with one outcome above which they are cells of grids instead of rows.
MOST_ROWS = 8
#: Maximum length of a line; models of a whole rack are one line.
LINE_CHARACTERS = 10_000


def table(
    evidence: Sequence[Evidence], width: int = 80, verbosity: int = 0, inspected: Sequence[InspectedDrive] = ()
) -> list[TextLine]:
    """Return all claims of a run within ``width`` columns; empty without claims.

    Above verbosity 0 passes and observations have rows with all their figures, too; below 0 they are left out.
    """
    if not evidence:
        return []
    ordered = sorted(evidence, key=sorting)
    measured = [each for each in ordered if not _counts_findings(each)]
    lines = [*_inspection(inspected, width, verbosity), *_findings(ordered, width)]
    promised = sum(each.is_promised for each in ordered)
    for outcome in (*BROKEN, Finding.PASS, Finding.OBSERVED) if verbosity > 0 else BROKEN:
        found = [each for each in measured if each.outcome is outcome]
        of = promised if outcome is not Finding.OBSERVED else len(ordered)
        lines += _in_full(found, outcome, of, width, math.inf if verbosity > 0 else MOST_ROWS)
    if verbosity == 0:
        alike = distinct(each for each in measured if each.about not in APART)
        observed = [each for each in alike if each.outcome is Finding.OBSERVED and not each.members]
        of_drives = members([each for each in alike if each.outcome is not Finding.PASS])
        for grid in (*of_drives, *grids(observed)):
            lines += [*text_table(grid, width), TextLine("")]
    if verbosity >= 0:
        lines += [*loops(measured, width), *series(measured, width), *saturations(measured, width)]
        lines += [*conclusions(measured, width), *beside(measured, width), *_remarks(ordered, width)]
    return [*lines, *_passed(ordered, width)]


def _counts_findings(evidence: Evidence) -> bool:
    """Return whether a claim counts findings and allows none: its sentence tells more than its figures."""
    return evidence.is_inspection or (evidence.unit is Unit.COUNT and evidence.limit == 0 and evidence.is_reading)


def _inspection(inspected: Sequence[InspectedDrive], width: int, verbosity: int) -> Iterator[TextLine]:
    """Yield the drives with the readings in which one deviates, and one paragraph of all other readings."""
    if not inspected:
        return
    if verbosity > 0 or any(drive.outcome in BROKEN for drive in inspected):
        table = promises.inspection_matrix(inspected, only_deviating=verbosity <= 0)
        yield from text_table(table.named_by(2), width)
        rest = "as allowed on all drives"
    else:
        yield TextLine(promises.inspection_caption(inspected), ("bold",))
        rest = "read"
    if verbosity == 0:
        yield from paragraph(f"{rest}: {', '.join(promises.conforming(inspected))}", width, first=INDENT)
    yield TextLine("")


def _findings(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield the sentences about drives with findings; those that failed under load are the cause, above."""
    for each in evidence:
        is_told = each.claim == FAILED or each.is_inspection
        if each.outcome in BROKEN and _counts_findings(each) and not is_told:
            yield from paragraph(each.sentence, width, (COLOUR[each.outcome],))


def distinct(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the evidence without duplicates, as suites share measurements."""
    found = {
        (each.claim, each.geometries, each.workloads, each.value, each.low, each.high, each.limit, each.n): each
        for each in evidence
    }
    return list(found.values())


def _in_full(evidence: Sequence[Evidence], outcome: Finding, of: int, width: int, most: float) -> Iterator[TextLine]:
    """Yield a table for each claim; of more than ``most`` rows grids."""
    if not evidence:
        return
    title = f"{outcome.upper()}: {len(evidence)} of {of}"
    yield TextLine(title, (COLOUR[outcome], "bold") if outcome in COLOUR else ("bold",))
    if len(evidence) > most:
        for each in grids(distinct(evidence)):
            yield from text_table(each, width)
    else:
        for claim, group in groupby(evidence, key=lambda each: each.claim):
            rows = tuple(
                (*row[:3], State(each.measured, each.outcome), *row[4:])
                for each, row in ((each, promises.single(each)) for each in group)
            )
            whole = Table(promises.SINGLE, rows, label(claim))
            yield from text_table(whole.without("Claim", "Outcome").named_by(2), width)
    yield TextLine("")


def _remarks(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield remarks on evidence; those of loops, lots, searches and failed drives are elsewhere."""
    shown = [each for each in evidence if each.about not in APART and each.claim != FAILED]
    for remark in dict.fromkeys(one for each in shown for one in each.remarks):
        yield from paragraph(remark, width, ("yellow",))


def _passed(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield what passed with the smallest margin, and the number of figures without a promise."""
    if passed := promises.passed(evidence):
        yield from paragraph(f"passed: {passed}", width, ("green",))
    if observed := sum(not each.is_promised for each in evidence):
        yield TextLine(f"without a limit: {counted(observed, 'figure')}")


class TerminalWriter(Protocol):
    """The methods of pytest's ``TerminalReporter`` that are needed; all are public."""

    def write_line(self, line: str, **markup: bool) -> None: ...
    def write_sep(self, sep: str, title: str | None = None, **markup: bool) -> None: ...


@frozen
class Header:
    """Subject and means of a run, for the header."""

    #: Model of each drive; None if the drive does not report it.
    models: tuple[str | None, ...]
    machine: str
    protocol: str
    acceptance: bool
    spec: str | None
    run_folder: Path | None
    #: Remarks of the guard.
    remarks: tuple[str, ...] = ()
    #: Expected number of drives, as a phrase.
    expected: str = ""


def header_lines(header: Header) -> list[str]:
    """Return the lines for ``pytest_report_header``: one, and one for each remark."""
    protocol = header.protocol if header.acceptance else f"{header.protocol} (not for acceptance)"
    parts = [
        f"{_drives(header.models)} on {header.machine}",
        *filter(None, [header.expected]),
        f"protocol {protocol}",
        f"spec {header.spec}" if header.spec else "no data sheet",
    ]
    if header.run_folder:
        parts.append(f"run folder {header.run_folder}")
    shown = (", ".join(parts), *header.remarks)
    return [safe_text.line(f"ssdqual: {each}", LINE_CHARACTERS) for each in shown]


def write_table(
    writer: TerminalWriter,
    evidence: Sequence[Evidence],
    error_rates: Sequence[str] = (),
    *,
    width: int,
    verbosity: int,
    run_folder: Path | None,
    bay: str = "",
    run: RunView | None = None,
) -> None:
    """Write the section of this plugin in pytest's summary; nothing if there is neither a verdict nor evidence.

    ``error_rates`` are sentences about all verdicts together, for verbosity above 0; ``bay`` names the bay if
    there are several.
    """
    lines = table(evidence, width, verbosity, promises.inspected_drives(run.judged) if run else ())
    if not lines and not run:
        return
    writer.write_sep("=", f"storage qualification{bay and f' of {bay}'}")
    if run:
        write_lines(writer, ending(run, width))
        write_lines(writer, [TextLine("")])
    write_lines(writer, lines)
    if verbosity > 0:
        repeatability = run.verdict.repeatability if run else ""
        for sentence in (*error_rates, *filter(None, [repeatability])):
            write_lines(writer, paragraph(sentence, width))
    elif lines:
        write_line(writer, "every figure with its limit and interval, and the error rates: -v")
    if run_folder:
        write_line(writer, f"run folder: {run_folder}")


def ending(run: RunView, width: int) -> Iterator[TextLine]:
    """Yield the verdict of the run, its causes, what to do, and what limits it, as on the first screen of the page.

    A drive that failed is the first of the causes, and stands in the headline with the kernel's words.
    """
    verdict, first = run.verdict, overview(run)
    opening = first.causes[0].sentence if failed_drives(run) else verdict.sentence
    yield from paragraph(f"{verdict.headline}: {opening}", width, (COLOUR[LOOKS[verdict.fitness]], "bold"))
    for reason in first.causes:
        if reason.sentence != opening:
            yield from paragraph(f"cause: {reason.sentence}", width, ("red",), first=INDENT, rest=INDENT * 2)
        for consequence in reason.consequences:
            yield from paragraph(consequence, width, first=INDENT * 2, rest=INDENT * 3)
    for number, step in enumerate(first.steps):
        yield from paragraph(f"{'then' if number else 'next step'}: {step.text}", width, first=INDENT, rest=INDENT * 2)
        if step.command:  # on a line of its own, to be copied
            yield TextLine(f"{INDENT * 2}{step.command}")
    judged = "" if verdict.fitness is Fitness.FIT else f"judged: {verdict.coverage}"
    if opening != verdict.sentence:
        judged += f"; {verdict.sentence}"
    for remark in filter(None, (judged, *first.limits)):
        yield from paragraph(remark, width, ("yellow",), first=INDENT, rest=INDENT * 2)


def write_lines(writer: TerminalWriter, lines: Iterable[TextLine]) -> None:
    for line in lines:
        write_line(writer, line.text, **dict.fromkeys(line.markup, True))


def write_line(writer: TerminalWriter, text: str, **markup: bool) -> None:
    """Write one line through pytest's reporter; no other code of this package does.

    The line is made printable, as a sentence that was wrapped could begin with a command for a CI runner.
    """
    writer.write_line(safe_text.line(text, LINE_CHARACTERS), **markup)


def _drives(models: Sequence[str | None]) -> str:
    """Return ``8 × INTEL SSDSC2BB480G4``, ``1 × A + 2 × B``."""
    names = [model or "unknown model" for model in models]
    return " + ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names)) or "no drives"
