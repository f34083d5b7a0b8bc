"""All that a page says, in its order, before any of it is markup; reads the run folder, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.verdict.multiplicity import Family
from pytest_ssdqual.report.evidence import multiplicity as family
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.html.page_drawing import Drawn, draw
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.story import Judged, Story
from pytest_ssdqual.report.view import commands, promises, skips, subject
from pytest_ssdqual.report.view import errors as trouble
from pytest_ssdqual.report.view import fitness as standing
from pytest_ssdqual.report.view.commands import Command
from pytest_ssdqual.report.view.errors import Trouble
from pytest_ssdqual.report.view.failures import MOST, Context, Failure, failures
from pytest_ssdqual.report.view.fitness import Standing
from pytest_ssdqual.report.view.grid import Grid
from pytest_ssdqual.report.view.integrity import CLAIM

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
    trouble: Trouble
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """See the module."""

    title: str
    standing: Standing
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
    drives: Grid
    means: Grid
    drawn: Drawn
    promised: Grid
    observed: Grid
    skipped: Grid
    family: tuple[str, ...]
    health: Grid
    worsened: tuple[str, ...]
    #: Lots, searches, histories of arrays: what came of each, its sentence, and what else it says.
    verdicts: tuple[Judged, ...]
    arrays: Grid
    surroundings: Grid
    documents: tuple[tuple[str, str], ...]
    files: Grid


def compose(story: Story) -> Page:
    """``OSError`` if the folder cannot be read."""
    judged = story.evidence()
    said = trouble.troubles(story)
    left = skips.skipped(story)
    counts = standing.count(judged, said, story.unreadable(), sum(map(len, left.values())))
    broken = [each for each in judged if each.evidence.outcome is Finding.FAIL]
    found = commands.read(story.folder) if broken or said else ()
    failed = tuple(failures(Context.of(story, judged, found)))
    undecided = [each.evidence.sentence for each in judged if each.evidence.outcome is Finding.INCONCLUSIVE]
    return Page(
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
        skipped=skips.table(left),
        family=_family(story, judged),
        health=subject.health(story),
        worsened=subject.worsened(story),
        verdicts=tuple(each for each in judged if _is_special(each)),
        arrays=subject.arrays(story),
        surroundings=subject.surroundings(story),
        documents=subject.documents(story),
        files=subject.files(_files(story.folder)),
    )


def _errors(said: Sequence[Trouble], found: Sequence[Command]) -> list[Error]:
    return [
        Error(f"error-{number}", each, commands.before(found, each.time, each.writer, MOST_COMMANDS))
        for number, each in enumerate(said, 1)
    ]


def _of_what(story: Story) -> str:
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


def _about(story: Story) -> Iterator[tuple[str, str]]:
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


def _family(story: Story, judged: Sequence[Judged]) -> tuple[str, ...]:
    """As the terminal says it, of a run that got to its end."""
    noted = subject.table(story.manifest.get("family"))
    planned, confidence = noted.get("claims_planned"), noted.get("confidence")
    if not isinstance(planned, int) or planned < 1 or not isinstance(confidence, float) or not 0 < confidence < 1:
        return ()
    name = subject.text(subject.table(story.manifest.get("protocol")), "name")
    try:
        of_all = Family(planned, subject.text(noted, "control"))
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
