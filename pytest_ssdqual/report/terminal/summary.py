"""The header and the summary table of a run, as lines for pytest's terminal writer.

A RAID 5 run makes hundreds of claims, and nearly all of them pass. Claims that failed or are inconclusive therefore
come first, each in a row with all its figures; the rest is in grids, with the smallest margin at the end of each row.
Figures without a promise are in the grids, too; published figures are in tables of their own.

Colours are names that the writer resolves or drops, so ``--color``, ``NO_COLOR`` and log files work as usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.stats.estimate import format_confidence
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence import multiplicity
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding
from pytest_ssdqual.report.evidence.multiplicity import ClaimTally
from pytest_ssdqual.report.run_summary import causes
from pytest_ssdqual.report.run_summary.fitness import LOOKS, Fitness, PageVerdict
from pytest_ssdqual.report.view.grid import grids
from pytest_ssdqual.report.view.sections import CONCLUDED, beside, conclusions, loops, members, saturations, series
from pytest_ssdqual.report.view.tables import (
    COLOUR,
    INDENT,
    MARK,
    State,
    Table,
    TableRow,
    TextLine,
    label,
    margin,
    paragraph,
    short_margin,
    sorting,
    span,
    text_table,
)

#: Kinds of evidence with a section of their own, remarks included.
APART = (About.LOOP, *CONCLUDED)
#: Maximum length of a line; models of a whole rack are one line.
LINE_CHARACTERS = 10_000


def table(evidence: Sequence[Evidence], width: int = 80, verbosity: int = 0) -> list[TextLine]:
    """Return all claims of a run within ``width`` columns; empty without claims.

    Above verbosity 0 passes and observations have rows with all their figures, too; below 0 they are left out.
    """
    if not evidence:
        return []
    ordered = sorted(evidence, key=sorting)
    lines: list[TextLine] = []
    for group in causes.groups(ordered):
        lines += paragraph(group.headline, width, ("red", "bold"))
        lines += paragraph(group.advice, width, ("yellow",)) if group.advice else []
    lines += [TextLine("")] if lines else []
    for outcome in (*MARK, Finding.PASS, Finding.OBSERVED) if verbosity > 0 else MARK:
        lines += _in_full([each for each in ordered if each.outcome is outcome], outcome, len(ordered), width)
    if verbosity == 0:
        alike = distinct(each for each in ordered if each.about not in APART)
        shown = [each for each in alike if not _is_without_finding(each)]
        for grid in (*members(shown), *grids(each for each in shown if not each.members)):
            lines += [*text_table(grid, width), TextLine("")]
        lines += _without_findings([each for each in alike if _is_without_finding(each)], width)
    if verbosity >= 0:
        lines += [*loops(evidence, width), *series(ordered, width), *saturations(ordered, width)]
        lines += conclusions(ordered, width)
        lines += [*beside(ordered, width), *_remarks(ordered, width)]
    if verbosity == 0:
        lines.append(TextLine("every limit and interval: -v, or the run folder"))
    return [*lines, *_summary(ordered, width)]


def _is_without_finding(evidence: Evidence) -> bool:
    """Return whether a claim that counts findings and allows none has passed: its figures are all zeroes."""
    return evidence.outcome is Finding.PASS and evidence.unit is Unit.COUNT and evidence.limit == evidence.value == 0


def _without_findings(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield the claims without a finding as one sentence."""
    if evidence:
        claims = ", ".join(dict.fromkeys(label(each.claim) for each in evidence))
        yield from paragraph(f"without a finding: {claims}", width)
        yield TextLine("")


def distinct(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the evidence without duplicates, as suites share measurements."""
    found = {
        (each.claim, each.geometries, each.workloads, each.value, each.low, each.high, each.limit, each.n): each
        for each in evidence
    }
    return list(found.values())


def _in_full(evidence: Sequence[Evidence], outcome: Finding, of: int, width: int) -> Iterator[TextLine]:
    """Yield a table for each claim."""
    if not evidence:
        return
    title = f"{outcome.upper()}: {len(evidence)} of {of}"
    yield TextLine(title, (COLOUR[outcome], "bold") if outcome in COLOUR else ("bold",))
    for claim, group in groupby(evidence, key=lambda each: each.claim):
        listed = list(group)
        yield from text_table(Table(_head(listed), tuple(map(_columns, listed)), label(claim)), width)
    yield TextLine("")


def _head(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return the column heads, with ``95 % interval`` if all intervals have that confidence."""
    stated = {format_confidence(each.confidence) for each in evidence if not each.is_reading}
    interval = f"{stated.pop()} interval" if len(stated) == 1 else "interval"
    return "", "measured", interval, "limit", "margin"


def _columns(each: Evidence) -> TableRow:
    numbers = (each.measured, each.interval, each.bound)
    if each.unit is Unit.IOPS:  # the claim names the unit, and these are the longest numbers
        numbers = (numbers[0][:-5], each.interval.replace(" IOPS", ""), each.bound[:-5])
    if each.is_reading:
        numbers = (numbers[0], f"{numbers[1]} read", numbers[2])
    measured, *limits = numbers
    name = f"{each.worst or span(each.geometries)} {span(each.workloads)}"
    return name, State(measured, each.outcome), *limits, short_margin(each)


def _remarks(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield remarks on evidence; those of loops, lots and searches are in their sections."""
    shown = [each for each in evidence if each.about not in APART]
    for remark in dict.fromkeys(one for each in shown for one in each.remarks):
        yield from paragraph(remark, width, ("yellow",))


def _summary(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    promised = [each for each in evidence if each.is_promised]
    counts = Counter(each.outcome for each in promised)
    found = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (Finding.PASS, *MARK) if counts[outcome])
    worst = next((outcome for outcome in MARK if counts[outcome]), Finding.PASS)
    if promised:
        yield TextLine(f"{len(promised)} promise{'s' if len(promised) > 1 else ''}: {found}", (COLOUR[worst], "bold"))
    if observed := len(evidence) - len(promised):
        yield TextLine(f"{observed} figure{'s' if observed > 1 else ''} measured without a promised limit")
    # A lot and a limit of zero have no margin; a search has its own.
    alone = (each for each in promised if each.about not in CONCLUDED)
    passed = [each for each in alone if each.outcome is Finding.PASS and each.limit]
    if passed:
        least = min(passed, key=margin)
        yield TextLine(f"least margin of what passed: {least.margin}, {label(least.claim)}")
        yield TextLine(f"{INDENT}of {span(least.geometries)} {span(least.workloads)}")
    rehearsed = sorted({each.protocol for each in evidence if not each.acceptance})
    if rehearsed:
        yield TextLine(f"not for acceptance: protocol {', '.join(rehearsed)}", ("yellow", "bold"))


class TerminalWriter(Protocol):
    """The methods of pytest's ``TerminalReporter`` that are needed; all are public."""

    def write_line(self, line: str, **markup: bool) -> None: ...
    def write_sep(self, sep: str, title: str | None = None, **markup: bool) -> None: ...


@dataclass(frozen=True, slots=True)
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
    tally: ClaimTally | None = None,
    *,
    width: int,
    verbosity: int,
    run_folder: Path | None,
    bay: str = "",
    verdict: PageVerdict | None = None,
) -> None:
    """Write the section of this plugin in pytest's summary; nothing if there is neither a verdict nor evidence.

    ``tally`` is about all verdicts together, for verbosity above 0; ``bay`` names the bay if there are several.
    """
    lines = table(evidence, width, verbosity)
    if not lines and not verdict:
        return
    writer.write_sep("=", f"storage qualification{bay and f' of {bay}'}")
    write_lines(writer, lines)
    for sentence in multiplicity.lines(tally) if tally and verbosity > 0 else ():
        write_lines(writer, paragraph(sentence, width))
    if verdict:
        write_lines(writer, conclusion(verdict, width))
    if run_folder:
        write_line(writer, f"run folder: {run_folder}")


def conclusion(verdict: PageVerdict, width: int) -> Iterator[TextLine]:
    """Yield the verdict of the run with its coverage, and what limits it."""
    markup = (COLOUR[LOOKS[verdict.fitness]], "bold")
    yield from paragraph(f"{verdict.headline}: {verdict.sentence}", width, markup)
    judged = "" if verdict.fitness is Fitness.FIT else f"Judged: {verdict.coverage}."
    for remark in filter(None, (judged, *verdict.remarks)):
        yield from paragraph(remark, width, ("yellow",), first=INDENT, rest=INDENT * 2)
    if verdict.repeatability:
        yield from paragraph(verdict.repeatability, width, first=INDENT, rest=INDENT * 2)


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
