"""What helps with a broken promise: its plot, the command that repeats it, its members, its neighbours, its files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pytest_ssdqual.qual.measured.environment import KernelLog
from pytest_ssdqual.qual.units import format_capacity, format_value
from pytest_ssdqual.report.charts.drives import figure_of
from pytest_ssdqual.report.evidence import evidence as part
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.view import commands
from pytest_ssdqual.report.view import kernel_log as kernel
from pytest_ssdqual.report.view.commands import Mention, Repeat, ShownCommand
from pytest_ssdqual.report.view.kernel_log import Kernel
from pytest_ssdqual.report.view.labels import parse_geometry, workload_order
from pytest_ssdqual.report.view.tables import PageRow, PageTable, bounded

#: Shown with all of this; the others are rows of a table.
MOST = 40
#: Of a verdict: commands (a sweep has one for each width), members, raw files.
MOST_COMMANDS, MOST_MEMBERS, MOST_FILES = 3, 64, 24
COMMON = "records.jsonl has them"

PlaceT = TypeVar("PlaceT", int, tuple[str, int, str, int, int, str])


@dataclass(frozen=True, slots=True)
class Failure:
    """A broken promise and what is known about it."""

    #: An HTML id.
    key: str
    judged: Judged
    repeat: Repeat
    #: What a search or a history left for that purpose: the names of its files and their texts.
    scripts: tuple[tuple[str, str], ...]
    members: PageTable | None
    figures: PageTable
    neighbours: PageTable | None
    kernel: Kernel
    #: Raw files, at most so many, and how many more.
    raw: tuple[str, ...]
    more_raw: int


@dataclass(frozen=True, slots=True)
class Context:
    """What is looked up for every failure, read once."""

    folder: Path
    judged: Sequence[Judged]
    commands: Sequence[ShownCommand]
    mentions: Mapping[str, Mention]
    #: By raw file: what was noted of the fio process that wrote it.
    runs: Mapping[str, Mapping[str, object]]
    #: By raw file: what the kernel said meanwhile.
    logs: Mapping[str, KernelLog | None]
    #: Serial numbers of drives by the names that they had.
    drives: Mapping[str, str]

    @classmethod
    def of(cls, story: RunReader, judged: Sequence[Judged], found: Sequence[ShownCommand]) -> Context:
        runs, mentions = dict(_runs(story)), commands.mentions(story)
        return cls(story.folder, judged, found, mentions, runs, kernel.logs(story), dict(commands.names(story)))


def failures(context: Context) -> Iterator[Failure]:
    """The first ``MOST`` broken promises, in the order in which they were judged."""
    broken = [each for each in context.judged if each.evidence.outcome is Finding.FAIL]
    for number, each in enumerate(broken[:MOST], 1):
        raw = each.evidence.raw
        mentioned = [context.mentions.get(name) for name in raw]
        yield Failure(
            key=f"failure-{number}",
            judged=each,
            repeat=commands.of(context.commands, mentioned[:MOST_COMMANDS], context.drives),
            scripts=tuple(_scripts(context.folder, raw)),
            members=_members(each.evidence, context.runs),
            figures=_figures(each.evidence),
            neighbours=_neighbours(each, context.judged),
            kernel=kernel.during(context.logs, raw),
            raw=raw[:MOST_FILES],
            more_raw=max(0, len(raw) - MOST_FILES),
        )


def _scripts(folder: Path, raw: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Fio's job files and scripts of histories, which are made to be run again."""
    for name in raw:
        if name.endswith((".fio", ".history")):
            with contextlib.suppress(OSError, ValueError):
                yield name, commands.file_text(folder, name)


def _runs(story: RunReader) -> Iterator[tuple[str, Mapping[str, object]]]:
    for record in story.of("measured", "explored", "explored_longer", "confirmed"):
        runs = record.facts.get("runs")
        for run in runs if isinstance(runs, list) else ():
            if isinstance(run, dict) and isinstance(run.get("raw"), str):
                yield run["raw"], run


def _figures(evidence: Evidence) -> PageTable:
    rows: list[PageRow] = [
        ("measured", f"{evidence.measured} ({evidence.interval_in_full})"),
        ("limit", f"{evidence.bound} ({evidence.source})"),
    ]
    if evidence.published:
        published = evidence.published
        about = "about " if published.approximate else ""
        rows.append(("published", f"{about}{format_value(published.value, published.unit)} ({published.source})"))
    rows += [(each.name, f"{each.value:,.6g}") for each in evidence.figures if each.value is not None]
    return bounded("Figures of this verdict", ("Figure", "Value"), rows, MOST_MEMBERS, COMMON)


def _members(evidence: Evidence, runs: Mapping[str, Mapping[str, object]]) -> PageTable | None:
    if evidence.members:
        rows: list[PageRow] = [
            (
                each.name,
                "" if (told := figure_of(evidence, each)) is None else format_value(*told),
                each.outcome or "",
                "named in the sentence" if each.name == evidence.worst else "",
            )
            for each in evidence.members
        ]
        return bounded("Each drive", ("Drive", "Value", "Outcome", "Remark"), rows, MOST_MEMBERS, COMMON)
    run = next((runs[name] for name in evidence.raw if name in runs), None)
    rows = list(_seen(run)) if run else []
    columns = ("Drive", "Reads", "Writes", "Read", "Written", "Temperature")
    title = "What each member was sent in the first measurement of it"
    return bounded(title, columns, rows, MOST_MEMBERS, COMMON) if rows else None


def _seen(run: Mapping[str, object]) -> Iterator[PageRow]:
    """As the kernel counted it, of each member of an array."""
    try:
        for drive in map(part.mapping, part.listed(part.mapping(run["seen"])["drives"])):
            counted = part.mapping(part.mapping(drive["device"])["counted"])
            sums = {
                name: int(part.unbounded(counted[name])) for name in ("reads", "writes", "read_bytes", "write_bytes")
            }
            heat = part.mapping(drive.get("heat") or {}).get("temperature_c")
            yield (
                str(drive["name"]),
                f"{sums['reads']:,}",
                f"{sums['writes']:,}",
                format_capacity(sums["read_bytes"]),
                format_capacity(sums["write_bytes"]),
                "" if heat is None else f"{heat} °C",
            )
    except (KeyError, TypeError, ValueError, OverflowError):
        return


def _neighbours(judged: Judged, every: Sequence[Judged]) -> PageTable | None:
    """The same claim about the same workload on the next widths, and about the next workloads on the same array."""
    mine = judged.evidence
    alike = [each.evidence for each in every if each.evidence.claim == mine.claim and each.evidence != mine]
    rows: list[PageRow] = [
        (how, each.sentence, each.outcome)
        for how, found in (("another width", _widths(mine, alike)), ("another workload", _workloads(mine, alike)))
        for each in found
    ]
    return PageTable("Neighbours", ("Differs in", "What was measured", "Outcome"), tuple(rows)) if rows else None


def _widths(mine: Evidence, alike: Sequence[Evidence]) -> Iterator[Evidence]:
    if len(mine.geometries) != 1:
        return
    level, state, width = parse_geometry(mine.geometries[0])
    others = {
        parse_geometry(each.geometries[0])[2]: each
        for each in alike
        if each.workloads == mine.workloads
        and len(each.geometries) == 1
        and parse_geometry(each.geometries[0])[:2] == (level, state)
    }
    yield from _next_to(width, others)


def _workloads(mine: Evidence, alike: Sequence[Evidence]) -> Iterator[Evidence]:
    if len(mine.workloads) != 1:
        return
    here = workload_order(mine.workloads[0])
    others = {
        workload_order(each.workloads[0]): each
        for each in alike
        if each.geometries == mine.geometries
        and len(each.workloads) == 1
        and workload_order(each.workloads[0])[0] == here[0]
    }
    yield from _next_to(here, others)


def _next_to(here: PlaceT, others: Mapping[PlaceT, Evidence]) -> Iterator[Evidence]:
    below, above = [each for each in others if each < here], [each for each in others if each > here]
    if below:
        yield others[max(below)]
    if above:
        yield others[min(above)]
