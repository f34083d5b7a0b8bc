"""A fleet's folder read once: each bay with what its run says of it, or why it has none.

The rule of the module: it reads what is there. ``fleet.json`` and every run folder may be damaged or somebody else's;
then they tell less, and that is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ssdqual.report.compare.circumstances import facts
from pytest_ssdqual.report.compare.compare import Fact, Key, Told
from pytest_ssdqual.report.compare.told import key_of
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import Fleet, FleetBay
from pytest_ssdqual.report.html.run_page_file import NAME
from pytest_ssdqual.report.run_folder.story import JUDGED, Judged, Story
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.errors import troubles
from pytest_ssdqual.report.view.fitness import Fitness, Standing, count, stand

#: Records that it is made of.
KINDS = (*JUDGED, "error", "failed", "drive_worsened")
#: Circumstances that every bay has its own of.
OWN = frozenset({"machine", "hostname", "drives themselves"})


@dataclass(frozen=True, slots=True, order=True)
class FigureKey:
    """The same figure in every bay that has it."""

    key: Key
    unit: str
    #: Of several of one bay that are of the same.
    number: int = 0


@dataclass(frozen=True, slots=True)
class Bay:
    """What there is of one."""

    name: str
    machine: str
    labels: Mapping[str, str]
    #: Why it was never begun; nothing if it was, or if nobody said.
    refused: str
    #: None if it has no run folder, and so no standing.
    folder: Path | None = None
    standing: Standing | None = None
    #: ``8 × ACME 9 (A1)``.
    drives: str = ""
    figures: Mapping[FigureKey, Evidence] = field(default_factory=dict)
    #: Sentences of broken promises, and what was said of tests that came to no verdict.
    broken: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    worsened: tuple[str, ...] = ()
    manifest: Mapping[str, object] = field(default_factory=dict)
    has_page: bool = False

    @property
    def fitness(self) -> Fitness | None:
        """None of a bay that was never begun."""
        return self.standing.fitness if self.standing else None


@dataclass(frozen=True, slots=True)
class Seen:
    """A fleet's folder."""

    folder: Path
    #: None if ``fleet.json`` cannot be read, and why.
    fleet: Fleet | None
    complaint: str
    bays: tuple[Bay, ...]

    @classmethod
    def read(cls, folder: Path) -> Seen:
        """Every bay of ``fleet.json`` in its order, then others of which there is a run folder."""
        fleet, complaint = None, ""
        try:
            fleet = fleets.read(folder)
        except ValueError as error:
            complaint = str(error)
        there = {each.name: each for each in fleets.bay_folders(folder)}
        asked = {bay.name: bay for bay in fleet.bays} if fleet else {}
        known = [*asked.values(), *(FleetBay(name, f"bays/{name}", "") for name in there if name not in asked)]
        return cls(folder, fleet, complaint, tuple(_bay(bay, there.get(bay.name)) for bay in known))

    @property
    def begun(self) -> tuple[Bay, ...]:
        """The bays that have a run."""
        return tuple(bay for bay in self.bays if bay.standing)

    def differences(self) -> tuple[Fact, ...]:
        """Of protocol, spec, versions and machines: what is not the same in all of the bays."""
        known = [bay for bay in self.begun if bay.manifest]
        if len(known) < 2:
            return ()
        runs = [Told(bay.name, self.folder, bay.manifest, "", {}, {}, {}, 0) for bay in known]
        return tuple(fact for fact in facts(runs) if fact.differs and fact.name not in OWN)

    def who(self, fact: Fact) -> Mapping[str, tuple[str, ...]]:
        """The bays of each value of a fact, the commonest value first."""
        names = [bay.name for bay in self.begun if bay.manifest]
        return {
            value: tuple(name for name, its in zip(names, fact.values, strict=True) if its == value)
            for value, _ in Counter(fact.values).most_common()
        }


def _bay(asked: FleetBay, folder: Path | None) -> Bay:
    if folder is None:
        return Bay(asked.name, asked.machine, asked.labels, asked.refused)
    try:
        story = Story.read(folder, *KINDS)
    except OSError as error:
        return Bay(asked.name, asked.machine, asked.labels, f"its records cannot be read: {error.strerror or error}")
    judged, said = story.evidence(), troubles(story)
    return Bay(
        asked.name,
        asked.machine or _machine(story),
        asked.labels,
        asked.refused,
        folder,
        stand(count(judged, said, story.unreadable()), story.manifest),
        _drives(story),
        _figures(judged),
        tuple(each.evidence.sentence for each in judged if each.evidence.outcome is Finding.FAIL),
        tuple(each.message.strip().partition("\n")[0] for each in said),
        subject.worsened(story),
        story.manifest,
        (folder / NAME).is_file(),
    )


def _figures(judged: Iterable[Judged]) -> dict[FigureKey, Evidence]:
    found: dict[FigureKey, Evidence] = {}
    for each in sorted(judged, key=lambda one: one.test):
        key, number = key_of(each.evidence), 0
        while (name := FigureKey(key, each.evidence.unit.value, number)) in found:
            number += 1
        found[name] = each.evidence
    return found


def _machine(story: Story) -> str:
    return ", ".join(subject.text(bay, "machine") for bay in subject.tables(story.manifest.get("bays")))


def _drives(story: Story) -> str:
    found = Counter(
        f"{subject.text(drive, 'model') or 'unknown model'} ({subject.text(drive, 'firmware') or 'firmware unknown'})"
        for bay in subject.tables(story.manifest.get("bays"))
        for drive in subject.tables(bay.get("drives"))
    )
    return " + ".join(f"{number} × {kind}" for kind, number in found.items())
