"""All that a page says, in its order, before any of it is markup; reads the run folder, writes nothing.

The charts of a page: which of them there is room for, and what becomes of those that cannot be drawn.

A composed page as HTML: our own template, style sheet and script in one text, everything else escaped.

The rule of the module: text is escaped by the template engine, always, after it was made printable. What is exempt is
listed here: our own style sheet and script, and the drawings, whose text was escaped when they were written. If one of
those ever held a script, the browser would still not run it: only ours has the hash that the page's policy names.

The page of a run: one HTML file that a stranger understands, offline, in print and with a screen reader.

The rule of the room: everything that is shown was read from the run folder; it is text, whatever it looks like, and
nothing of the page comes from anywhere else (its Content-Security-Policy says so to the browser).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.report.evidence import multiplicity as family
from pytest_ssdqual.report.evidence.evidence import About, Finding
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.view import commands, promises, subject
from pytest_ssdqual.report.view import errors as trouble
from pytest_ssdqual.report.view import fitness as standing
from pytest_ssdqual.report.view.commands import ShownCommand
from pytest_ssdqual.report.view.errors import ErrorGroup
from pytest_ssdqual.report.view.failures import MOST, Context, Failure, failures
from pytest_ssdqual.report.view.fitness import PageVerdict
from pytest_ssdqual.report.view.integrity import CLAIM
from pytest_ssdqual.report.view.tables import PageTable

if TYPE_CHECKING:
    from pytest_ssdqual.report.charts.base import Chart


#: Of all charts with their tables, and of those of failures: a page must fit into a mail and a phone (3 MB).
ALL_BYTES, FAILURE_BYTES = 2_000_000, 900_000
#: What a cell of a table costs besides its text.
CELL_BYTES = 10


@dataclass(frozen=True, slots=True)
class Drawn:
    """What there is to be shown."""

    #: By the level of the arrays that they are about, in the order in which they came.
    levels: tuple[tuple[str, tuple[Chart, ...]], ...] = ()
    #: By the key of the failure.
    of_failures: Mapping[str, Chart] = field(default_factory=dict)
    #: Failures that another one's chart shows as well: key → id of the chart.
    shown_by: Mapping[str, str] = field(default_factory=dict)
    left_out: int = 0
    #: Why some are missing; empty if none is.
    complaint: str = ""


@dataclass(slots=True)
class _Room:
    """What is left, and what is in use already."""

    left_bytes: int
    keys: set[str] = field(default_factory=set)

    def takes(self, chart: Chart) -> bool:
        size = _bytes(chart)
        if size > self.left_bytes:
            return False
        self.left_bytes -= size
        self.keys.add(chart.key)
        return True


def draw(story: RunReader, failures: Sequence[Failure]) -> Drawn:
    """Failures come first. Nothing that a chart does wrong can cost the page."""
    try:
        return _draw(story, failures)
    except Exception as error:  # a library draws; the page is worth having without it
        why = safe_text.line(f"{type(error).__name__}: {error}", 300)
        return Drawn(complaint=f"The charts could not be drawn ({why}); all their numbers are in the run folder.")


def _draw(story: RunReader, failures: Sequence[Failure]) -> Drawn:
    from pytest_ssdqual.report.charts import chart_of, charts

    room = _Room(FAILURE_BYTES)
    of_failures, shown_by, left_out = {}, {}, 0
    for failure in failures:
        chart = chart_of(story, failure.judged)
        if chart is None:
            continue
        if chart.key in room.keys:
            shown_by[failure.key] = chart.key
        elif room.takes(chart):
            of_failures[failure.key] = chart
        else:
            left_out += 1
    room.left_bytes += ALL_BYTES - FAILURE_BYTES
    found = list(_fitting(charts(story), room))
    levels: dict[str, list[Chart]] = {}
    for each in found:
        if each is None:
            left_out += 1
        else:
            levels.setdefault(each.geometry, []).append(each)
    return Drawn(
        levels=tuple((_heading(level), tuple(each)) for level, each in levels.items()),
        of_failures=of_failures,
        shown_by=shown_by,
        left_out=left_out,
    )


def _heading(level: str) -> str:
    """``RAID 5``, ``Single drives``."""
    if level == "drive":
        return "Single drives, each by itself"
    return level.replace("raid", "RAID ", 1) if level else "All arrays and drives"


def _fitting(found: Iterator[Chart], room: _Room) -> Iterator[Chart | None]:
    """None for each that there is no room for; those that a failure shows already are not shown again."""
    for chart in found:
        if chart.key not in room.keys:
            yield chart if room.takes(chart) else None


def _bytes(chart: Chart) -> int:
    cells = [*chart.table.columns, *(cell for row in chart.table.rows for cell in row)]
    return len(chart.svg.encode()) + sum(len(cell.encode()) + CELL_BYTES for cell in cells)


#: Different errors shown with their commands, and commands of each.
MOST_TROUBLES, MOST_COMMANDS = 20, 6
#: Other broken promises, as sentences.
MOST_SENTENCES = 500
#: Kinds of drives in the title, and of the name of each.
MOST_MODELS, MODEL_CHARACTERS = 4, 60


@dataclass(frozen=True, slots=True)
class Error:
    """Something that went wrong, and what was done last before that."""

    #: An HTML id.
    key: str
    trouble: ErrorGroup
    commands: tuple[ShownCommand, ...]


@dataclass(frozen=True, slots=True)
class RunPage:
    """See the module."""

    title: str
    standing: PageVerdict
    protocol: str
    #: Which drives, against what, by which protocol: a name and what is said of it.
    about: tuple[tuple[str, str], ...]
    #: What the guard said when the run began, and what resumed sessions told.
    remarks: tuple[str, ...]
    failures: tuple[Failure, ...]
    #: Broken promises beyond those, and how many are not even among these.
    more_failures: tuple[str, ...]
    left_failures: int
    undecided: tuple[str, ...]
    left_undecided: int
    errors: tuple[Error, ...]
    left_errors: int
    drives: PageTable
    means: PageTable
    drawn: Drawn
    promised: PageTable
    observed: PageTable
    skipped: PageTable
    family: tuple[str, ...]
    health: PageTable
    worsened: tuple[str, ...]
    #: Lots, searches, histories of arrays: what came of each, its sentence, and what else it says.
    verdicts: tuple[Judged, ...]
    arrays: PageTable
    surroundings: PageTable
    documents: tuple[tuple[str, str], ...]
    files: PageTable


def compose(story: RunReader) -> RunPage:
    """``OSError`` if the folder cannot be read."""
    judged = story.evidence()
    said = trouble.troubles(story)
    left = trouble.skipped(story)
    counts = standing.count(judged, said, story.unreadable(), sum(map(len, left.values())))
    broken = [each for each in judged if each.evidence.outcome is Finding.FAIL]
    found = commands.read(story.folder) if broken or said else ()
    failed = tuple(failures(Context.of(story, judged, found)))
    undecided = [each.evidence.sentence for each in judged if each.evidence.outcome is Finding.INCONCLUSIVE]
    return RunPage(
        title=f"{story.folder.name}: {_of_what(story)}",
        standing=standing.stand(counts, story.manifest),
        protocol=subject.text(subject.table(story.manifest.get("protocol")), "name") or "unknown",
        about=tuple(_about(story)),
        remarks=subject.texts(story.manifest.get("remarks")),
        failures=failed,
        more_failures=tuple(each.evidence.sentence for each in broken[MOST : MOST + MOST_SENTENCES]),
        left_failures=max(0, len(broken) - MOST - MOST_SENTENCES),
        undecided=tuple(undecided[:MOST_SENTENCES]),
        left_undecided=max(0, len(undecided) - MOST_SENTENCES),
        errors=tuple(_errors(said[:MOST_TROUBLES], found)),
        left_errors=max(0, len(said) - MOST_TROUBLES),
        drives=subject.drives(story),
        means=subject.means(story),
        drawn=draw(story, failed),
        promised=promises.promised(judged),
        observed=promises.observed(judged),
        skipped=trouble.table(left),
        family=_family(story, judged),
        health=subject.health(story),
        worsened=subject.worsened(story),
        verdicts=tuple(each for each in judged if _is_special(each)),
        arrays=subject.arrays(story),
        surroundings=subject.surroundings(story),
        documents=subject.documents(story),
        files=subject.files(_files(story.folder)),
    )


def _errors(said: Sequence[ErrorGroup], found: Sequence[ShownCommand]) -> list[Error]:
    return [
        Error(f"error-{number}", each, commands.before(found, each.time, each.writer, MOST_COMMANDS))
        for number, each in enumerate(said, 1)
    ]


def _of_what(story: RunReader) -> str:
    """``8 × INTEL SSDSC2BB480G4``."""
    models = [
        subject.text(drive, "model") or "unknown model"
        for bay in subject.tables(story.manifest.get("bays"))
        for drive in subject.tables(bay.get("drives"))
    ]
    kinds = list(dict.fromkeys(models))
    shown = [f"{models.count(kind)} × {safe_text.line(kind, MODEL_CHARACTERS)}" for kind in kinds[:MOST_MODELS]]
    more = sum(models.count(kind) for kind in kinds[MOST_MODELS:])
    return " + ".join([*shown, *([f"{more} of other models"] if more else [])]) or "unknown drives"


def _about(story: RunReader) -> Iterator[tuple[str, str]]:
    """What a stranger asks first."""
    manifest = story.manifest
    machines = [subject.text(bay, "machine") for bay in subject.tables(manifest.get("bays"))]
    at = f" on {', '.join(filter(None, machines))}" if any(machines) else ""
    yield "Drives", ", ".join(filter(None, [f"{_of_what(story)}{at}", subject.expected(story)]))
    for title, name in (("Held against", "spec"), ("Measured by", "protocol")):
        yield title, subject.text(subject.table(manifest.get(name)), "name") or "unknown"
    if started := subject.text(manifest, "started"):
        yield "Begun", started.partition(".")[0].replace("T", " ").removesuffix("+00:00") + " UTC"


def _is_special(each: Judged) -> bool:
    return each.evidence.about in (About.LOT, About.SEARCH) or each.evidence.claim == CLAIM


def _family(story: RunReader, judged: Sequence[Judged]) -> tuple[str, ...]:
    """As the terminal says it, of a run that got to its end."""
    noted = subject.table(story.manifest.get("family"))
    planned, confidence = noted.get("claims_planned"), noted.get("confidence")
    if not isinstance(planned, int) or planned < 1 or not isinstance(confidence, float) or not 0 < confidence < 1:
        return ()
    name = subject.text(subject.table(story.manifest.get("protocol")), "name")
    try:
        of_all = ErrorControl(planned, subject.text(noted, "control"))
        found = family.tally([(each.test, each.evidence) for each in judged], of_all, confidence, name)
    except ValueError:
        return ()
    return tuple(family.lines(found)) if found else ()


def _files(folder: Path) -> list[tuple[str, int]]:
    return [
        (path.relative_to(folder).as_posix(), path.stat().st_size)
        for path in safe_files.files_below(folder)
        if not path.name.startswith(".")
    ]


if TYPE_CHECKING:
    from jinja2 import Environment

    pass

FOLDER = Path(__file__).with_name("templates")
#: Of one piece of text: a spec or a protocol is the longest.
TEXT_CHARACTERS = 4_000
#: Of a message in a list, which has a section of its own.
BRIEF_CHARACTERS = 300
#: A mark and a word, never a colour alone.
OUTCOMES = {
    Finding.PASS: ("✓", "kept"),
    Finding.FAIL: ("✗", "broken"),
    Finding.INCONCLUSIVE: ("?", "undecided"),
    Finding.OBSERVED: ("·", "observed"),
}


def render(page: RunPage) -> str:
    """The whole file."""
    from markupsafe import Markup

    from pytest_ssdqual.report.charts.base import style_sheet

    script = _own("page.js")
    return (
        environment(FOLDER)
        .get_template("page.html")
        .render(
            page=page,
            policy=policy(script),
            script=Markup(script),  # noqa: S704 (our own file)
            style=Markup(style_sheet() + style()),  # noqa: S704
        )
    )


def style() -> str:
    """Our own style sheet, for pages like this one."""
    return _own("page.css")


@cache
def environment(folder: Path) -> Environment:
    """For the templates of a folder and those of this one; see the module."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else safe_text.line(str(value), TEXT_CHARACTERS)

    made = Environment(
        autoescape=True,
        finalize=shown,
        loader=FileSystemLoader([folder, FOLDER]),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    # Texts of several lines, of which each is made printable by itself.
    made.filters["lines"] = lambda text: Markup("\n").join(
        safe_text.line(line, TEXT_CHARACTERS) for line in str(text).split("\n")
    )
    made.filters["briefly"] = lambda text: safe_text.line(str(text), BRIEF_CHARACTERS)
    made.filters["drawing"] = Markup
    made.tests["finding"] = lambda value: isinstance(value, Finding)  # not a drive that calls itself "pass"
    made.globals["outcomes"] = OUTCOMES
    return made


def policy(script: str) -> str:
    """The page's Content-Security-Policy.

    The script is named by its hash, so no other one is run. Styles cannot be: every stroke of a drawing has a ``style``
    attribute with its colour, and hashes do not cover attributes. Images are those inside of drawings (heat maps).
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _own(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


NAME = "report.html"


def write(folder: Path) -> Path:
    """Write ``report.html`` of a run folder, for its owner alone, and return its path; an old one is replaced.

    Charts that cannot be drawn are missing from it, and it says so. ``OSError`` if there are no records, or no room
    for the page; then an old one stays.
    """
    pass
    pass

    text = render(compose(RunReader.read(folder)))
    path = folder / NAME
    safe_files.write_whole(path, text.encode("utf-8", "backslashreplace"))
    return path
