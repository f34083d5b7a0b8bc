"""The table at the end of a run, as lines of text; pure.

A RAID 5 run makes hundreds of claims, and nearly all of them are kept. So what failed or stayed undecided has a row
of its own, first and in full; the rest is in grids, with the smallest margin at the end of each row. Figures of which
nothing is promised are in the grids too, and whatever is published stands beside ours in tables of its own.

What pytest's terminal shows of a run: the header and the table, written through pytest's own writer.

Colours are names that the writer resolves or drops, so ``--color``, ``NO_COLOR`` and log files work as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Protocol

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.stats.estimate import format_confidence
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence import multiplicity
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding
from pytest_ssdqual.report.evidence.multiplicity import ClaimTally
from pytest_ssdqual.report.view.labels import label, sorting, span
from pytest_ssdqual.report.view.lots import lots
from pytest_ssdqual.report.view.searches import searches
from pytest_ssdqual.report.view.sections import beside, loops, members, saturations, series
from pytest_ssdqual.report.view.tables import COLOUR, INDENT, MARK, TextLine, draw, grids, margin, percent

HEAD = ("", "", "measured", "interval", "limit", "margin")
INTERVAL = HEAD.index("interval")
#: What has a section of its own, remarks included.
APART = (About.LOOP, About.LOT, About.SEARCH)


def table(evidence: Sequence[Evidence], width: int = 80, verbosity: int = 0) -> list[TextLine]:
    """All claims of a run within ``width`` columns; nothing if there are none.

    With a verbosity above 0 what passed or was observed is written in full too, below 0 not at all.
    """
    if not evidence:
        return []
    ordered = sorted(evidence, key=sorting)
    lines: list[TextLine] = []
    for outcome in (*MARK, Finding.PASS, Finding.OBSERVED) if verbosity > 0 else MARK:
        lines += _in_full([each for each in ordered if each.outcome is outcome], outcome, len(ordered), width)
    if verbosity == 0:
        alike = distinct(each for each in ordered if each.about not in APART)
        for grid in (*members(alike), *grids(each for each in alike if not each.members)):
            lines += [*draw(grid, width), TextLine("")]
    if verbosity >= 0:
        lines += [*loops(evidence, width), *series(ordered, width), *saturations(ordered, width)]
        lines += [*lots(ordered, width), *searches(ordered, width)]
        lines += [*beside(ordered, width), *_remarks(ordered, width)]
    if verbosity == 0:
        lines.append(TextLine("every limit and interval: -v, or the run folder"))
    return [*lines, *_summary(ordered)]


def distinct(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Without what two suites have found alike, as they share measurements."""
    found = {
        (each.claim, each.geometries, each.workloads, each.value, each.low, each.high, each.limit, each.n): each
        for each in evidence
    }
    return list(found.values())


def _in_full(evidence: Sequence[Evidence], outcome: Finding, of: int, width: int) -> Iterator[TextLine]:
    """A row for each, in columns; the interval goes below its row where the line would be too long."""
    if not evidence:
        return
    head, rows = _head(evidence), [_columns(each) for each in evidence]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    spare = width - len(INDENT) - sum(widths)
    gap = INDENT if spare >= len(INDENT) * (len(head) - 1) else " "
    show = [i for i in range(len(head)) if i != INTERVAL or spare >= len(gap) * (len(head) - 1)]

    def join(row: Sequence[str]) -> str:
        return INDENT + gap.join(row[i].ljust(widths[i]) if i < 2 else row[i].rjust(widths[i]) for i in show)

    title, heading = f"{outcome.upper()}: {len(evidence)} of {of}", join(head)
    yield TextLine(title + heading[len(title) :], (COLOUR[outcome], "bold") if outcome in COLOUR else ("bold",))
    colour = (COLOUR[outcome],) if outcome in MARK else ()
    claim = ""
    for each, row in zip(evidence, rows, strict=True):
        if each.claim != claim:
            claim = each.claim
            yield TextLine(label(claim), ("bold",))
        yield TextLine(join(row).rstrip(), colour)
        if INTERVAL not in show:
            yield TextLine(f"{INDENT}{'':<{widths[0]}}{gap}{head[INTERVAL]} {row[INTERVAL]}", colour)
    yield TextLine("")


def _head(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """``95 % interval``, if they are all of that confidence."""
    stated = {format_confidence(each.confidence) for each in evidence if not each.is_reading}
    name = f"{stated.pop()} interval" if len(stated) == 1 else HEAD[INTERVAL]
    return (*HEAD[:INTERVAL], name, *HEAD[INTERVAL + 1 :])


def _columns(each: Evidence) -> tuple[str, ...]:
    numbers = (each.measured, each.interval, each.bound)
    if each.unit is Unit.IOPS:  # said by the claim, and these are the longest numbers
        numbers = (each.measured[:-5], each.interval.replace(" IOPS", ""), each.bound[:-5])
    if each.is_reading:
        numbers = (numbers[0], f"{numbers[1]} read", numbers[2])
    return (each.worst or span(each.geometries), span(each.workloads), *numbers, percent(each))


def _remarks(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """What speaks against some evidence; those of loops, lots and searches stand below them."""
    told = [each for each in evidence if each.about not in APART]
    for remark in dict.fromkeys(one for each in told for one in each.remarks):
        for line in wrap(remark, width, subsequent_indent=INDENT):
            yield TextLine(line, ("yellow",))


def _summary(evidence: Sequence[Evidence]) -> Iterator[TextLine]:
    promised = [each for each in evidence if each.is_promised]
    counts = Counter(each.outcome for each in promised)
    found = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (Finding.PASS, *MARK) if counts[outcome])
    worst = next((outcome for outcome in MARK if counts[outcome]), Finding.PASS)
    if promised:
        yield TextLine(f"{len(promised)} claim{'s' if len(promised) > 1 else ''}: {found}", (COLOUR[worst], "bold"))
    if observed := len(evidence) - len(promised):
        yield TextLine(f"{observed} figure{'s' if observed > 1 else ''} observed, of which nothing is promised")
    # Of a lot that has to be without a bad drive there is no margin, nor to a limit of nothing; a search tells its own.
    alone = (each for each in promised if each.about not in (About.LOT, About.SEARCH))
    passed = [each for each in alone if each.outcome is Finding.PASS and each.limit]
    if passed:
        least = min(passed, key=margin)
        yield TextLine(f"least margin of what passed: {percent(least)}, {label(least.claim)}")
        yield TextLine(f"{INDENT}of {span(least.geometries)} {span(least.workloads)}")
    rehearsed = sorted({each.protocol for each in evidence if not each.acceptance})
    if rehearsed:
        yield TextLine(f"not for acceptance: protocol {', '.join(rehearsed)}", ("yellow", "bold"))


#: Models of a whole rack are one line.
LINE_CHARACTERS = 10_000


class TerminalWriter(Protocol):
    """What of pytest's ``TerminalReporter`` is needed; all of it is public."""

    def write_line(self, line: str, **markup: bool) -> None: ...
    def write_sep(self, sep: str, title: str | None = None, **markup: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Header:
    """What a run is about."""

    #: Model of each drive; None where a drive does not say.
    models: tuple[str | None, ...]
    machine: str
    protocol: str
    acceptance: bool
    spec: str | None
    run_folder: Path | None
    #: Sentences of the guard that must be read before the run is trusted.
    remarks: tuple[str, ...] = ()
    #: Expected number of drives, as a phrase.
    expected: str = ""


def header_lines(header: Header) -> list[str]:
    """For ``pytest_report_header``: one line, and one for each remark."""
    protocol = header.protocol if header.acceptance else f"{header.protocol} (not for acceptance)"
    parts = [
        f"{_drives(header.models)} on {header.machine}",
        *filter(None, [header.expected]),
        f"protocol {protocol}",
        f"spec {header.spec}" if header.spec else "no data sheet",
    ]
    if header.run_folder:
        parts.append(f"run folder {header.run_folder}")
    told = (", ".join(parts), *header.remarks)
    return [safe_text.line(f"ssdqual: {each}", LINE_CHARACTERS) for each in told]


def write_table(
    writer: TerminalWriter,
    evidence: Sequence[Evidence],
    tally: ClaimTally | None = None,
    *,
    width: int,
    verbosity: int,
    run_folder: Path | None,
    bay: str = "",
) -> None:
    """The section of ours in pytest's summary; nothing if nothing was judged.

    ``tally``: what is to be said of all verdicts together. ``bay``: which one, where there are several.
    """
    lines = table(evidence, width, verbosity)
    if not lines:
        return
    writer.write_sep("=", f"storage qualification{bay and f' of {bay}'}")
    write_lines(writer, lines)
    for sentence in multiplicity.lines(tally) if tally else ():
        for line in wrap(sentence, width, subsequent_indent=INDENT, break_on_hyphens=False):
            tell(writer, line)
    if run_folder:
        tell(writer, f"run folder: {run_folder}")


def write_lines(writer: TerminalWriter, lines: Iterable[TextLine]) -> None:
    for line in lines:
        tell(writer, line.text, **dict.fromkeys(line.markup, True))


def tell(writer: TerminalWriter, text: str, **markup: bool) -> None:
    """Write one line through pytest's reporter; no other code of this package does.

    A harmless sentence may be wrapped into lines, and one of these may begin with the command of a CI runner.
    """
    writer.write_line(safe_text.line(text, LINE_CHARACTERS), **markup)


def _drives(models: Sequence[str | None]) -> str:
    """``8 × INTEL SSDSC2BB480G4``, ``1 × A + 2 × B``."""
    names = [model or "unknown model" for model in models]
    return " + ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names)) or "no drives"
