"""A fleet's folder read once: each bay with what its run says of it, or why it has none.

The rule of the module: it reads what is there. ``fleet.json`` and every run folder may be damaged or somebody else's;
then they tell less, and that is said.

Each figure in all bays that have it: what a table shows of it, and what it says of the bays as a sample; pure.

What all bays of a fleet say together, in one sentence: how many keep their promises, and what is not known; pure.

The rule of the module: a fleet is fit only if every bay that was asked for was measured to its end and is fit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import Outlying, Spread
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.report.compare.circumstances import facts
from pytest_ssdqual.report.compare.compare import Circumstance, ComparedRun, FigureKey
from pytest_ssdqual.report.compare.compared_run import key_of
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import Fleet, FleetBay
from pytest_ssdqual.report.html.run_page import NAME
from pytest_ssdqual.report.run_folder.reader import JUDGED, Judged, RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.errors import troubles
from pytest_ssdqual.report.view.fitness import Fitness, PageVerdict, count, stand
from pytest_ssdqual.report.view.labels import label, sorting, span

#: Records that it is made of.
KINDS = (*JUDGED, "error", "failed", "drive_worsened")
#: Circumstances that every bay has its own of.
OWN = frozenset({"machine", "hostname", "drives themselves"})


@dataclass(frozen=True, slots=True, order=True)
class FleetFigure:
    """The same figure in every bay that has it."""

    key: FigureKey
    unit: str
    #: Of several of one bay that are of the same.
    number: int = 0


@dataclass(frozen=True, slots=True)
class BayView:
    """What there is of one."""

    name: str
    machine: str
    labels: Mapping[str, str]
    #: Why it was never begun; nothing if it was, or if nobody said.
    refused: str
    #: None if it has no run folder, and so no standing.
    folder: Path | None = None
    standing: PageVerdict | None = None
    #: ``8 × ACME 9 (A1)``.
    drives: str = ""
    figures: Mapping[FleetFigure, Evidence] = field(default_factory=dict)
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
class FleetView:
    """A fleet's folder."""

    folder: Path
    #: None if ``fleet.json`` cannot be read, and why.
    fleet: Fleet | None
    complaint: str
    bays: tuple[BayView, ...]

    @classmethod
    def read(cls, folder: Path) -> FleetView:
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
    def begun(self) -> tuple[BayView, ...]:
        """The bays that have a run."""
        return tuple(bay for bay in self.bays if bay.standing)

    def differences(self) -> tuple[Circumstance, ...]:
        """Of protocol, spec, versions and machines: what is not the same in all of the bays."""
        known = [bay for bay in self.begun if bay.manifest]
        if len(known) < 2:
            return ()
        runs = [ComparedRun(bay.name, self.folder, bay.manifest, "", {}, {}, {}, 0) for bay in known]
        return tuple(fact for fact in facts(runs) if fact.differs and fact.name not in OWN)

    def who(self, fact: Circumstance) -> Mapping[str, tuple[str, ...]]:
        """The bays of each value of a fact, the commonest value first."""
        names = [bay.name for bay in self.begun if bay.manifest]
        return {
            value: tuple(name for name, its in zip(names, fact.values, strict=True) if its == value)
            for value, _ in Counter(fact.values).most_common()
        }


def _bay(asked: FleetBay, folder: Path | None) -> BayView:
    if folder is None:
        return BayView(asked.name, asked.machine, asked.labels, asked.refused)
    try:
        story = RunReader.read(folder, *KINDS)
    except OSError as error:
        return BayView(
            asked.name, asked.machine, asked.labels, f"its records cannot be read: {error.strerror or error}"
        )
    judged, said = story.evidence(), troubles(story)
    return BayView(
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


def _figures(judged: Iterable[Judged]) -> dict[FleetFigure, Evidence]:
    found: dict[FleetFigure, Evidence] = {}
    for each in sorted(judged, key=lambda one: one.test):
        key, number = key_of(each.evidence), 0
        while (name := FleetFigure(key, each.evidence.unit.value, number)) in found:
            number += 1
        found[name] = each.evidence
    return found


def _machine(story: RunReader) -> str:
    return ", ".join(subject.text(bay, "machine") for bay in subject.tables(story.manifest.get("bays")))


def _drives(story: RunReader) -> str:
    found = Counter(
        f"{subject.text(drive, 'model') or 'unknown model'} ({subject.text(drive, 'firmware') or 'firmware unknown'})"
        for bay in subject.tables(story.manifest.get("bays"))
        for drive in subject.tables(bay.get("drives"))
    )
    return " + ".join(f"{number} × {kind}" for kind, number in found.items())


#: Of the share of bays that keep a promise: 95 %, two-sided.
TAIL = 0.025
#: The worse the sooner.
SEVERITY = (Finding.FAIL, Finding.INCONCLUSIVE, Finding.PASS, Finding.OBSERVED)


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A figure by bay; those of bays that were lost or never begun are missing, and so are theirs that have none."""

    key: FleetFigure
    cells: dict[str, Evidence]

    @property
    def first(self) -> Evidence:
        return next(iter(self.cells.values()))

    @property
    def claim(self) -> str:
        group = f" ({self.key.key.group})" if self.key.key.group else ""
        return label(self.key.key.claim) + group

    @property
    def array(self) -> str:
        """Drives side by side may be of another number in each bay."""
        names = self.key.key.geometries
        return span(names) if names else ""

    @property
    def workload(self) -> str:
        names = self.key.key.workloads
        return span(names) if names else ""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.claim, self.array, self.workload)))

    @property
    def limit(self) -> str:
        """That of all bays, or that they have different ones."""
        found = {each.bound for each in self.cells.values()}
        return found.pop() if len(found) == 1 else "not the same"

    @property
    def is_promised(self) -> bool:
        return any(each.is_promised for each in self.cells.values())

    @property
    def outcome(self) -> Finding:
        """The worst."""
        return min((each.outcome for each in self.cells.values()), key=SEVERITY.index)

    @property
    def worst(self) -> str:
        """The bay that is closest to breaking it, or breaks it most; nothing if nothing is promised."""
        if not self.is_promised:
            return ""
        return min(self.cells, key=lambda name: (SEVERITY.index(self.cells[name].outcome), _margin(self.cells[name])))

    def bays(self, outcome: Finding) -> tuple[str, ...]:
        return tuple(name for name, each in self.cells.items() if each.outcome is outcome)

    @property
    def values(self) -> list[float]:
        """What can be reckoned with."""
        return [self.cells[name].value for name in self.counted]

    @property
    def counted(self) -> list[str]:
        return [name for name, each in self.cells.items() if math.isfinite(each.value)]

    def spread(self) -> Spread | None:
        return outliers.spread(self.values) if self.values else None

    def standing_out(self) -> tuple[str, Outlying] | None:
        """The bay, if one does."""
        found = outliers.standing_out(self.values, [_ends(self.cells[name]) for name in self.counted])
        return (self.counted[found.index], found) if found else None

    def share(self) -> tuple[int, int, int, float, float] | None:
        """Of bays in which it is promised: kept, undecided, all, and the ends of the share that keeps it.

        An undecided one may be either: the lower end takes it for broken, the upper one for kept.
        """
        of = sum(each.is_promised for each in self.cells.values())
        if not of:
            return None
        kept, undecided = (len(self.bays(outcome)) for outcome in (Finding.PASS, Finding.INCONCLUSIVE))
        low, _ = latency.interval(kept, of, TAIL)
        _, high = latency.interval(kept + undecided, of, TAIL)
        return kept, undecided, of, low, high


def rows(seen: FleetView) -> tuple[FleetRow, ...]:
    """Every figure, those that are broken first, then in the order of claims, arrays and workloads."""
    found: dict[FleetFigure, dict[str, Evidence]] = {}
    for bay in seen.begun:
        for key, evidence in bay.figures.items():
            found.setdefault(key, {})[bay.name] = evidence
    return tuple(sorted((FleetRow(key, cells) for key, cells in found.items()), key=_order))


def promised(found: Sequence[FleetRow]) -> tuple[FleetRow, ...]:
    return tuple(row for row in found if row.is_promised)


def observed(found: Sequence[FleetRow]) -> tuple[FleetRow, ...]:
    return tuple(row for row in found if not row.is_promised)


def _order(row: FleetRow) -> tuple[object, ...]:
    """A record may name no array at all; such a one comes last."""
    named = bool(row.first.geometries)
    return SEVERITY.index(row.outcome), not named, sorting(row.first) if named else row.key.key.claim, row.key


def _margin(evidence: Evidence) -> float:
    found = evidence.margin_percent
    return math.inf if found is None or math.isnan(found) else found


def _ends(evidence: Evidence) -> tuple[float, float]:
    return (
        -math.inf if evidence.low is None else evidence.low,
        math.inf if evidence.high is None else evidence.high,
    )


#: Bays that are told of one by one; the table has all.
MOST_TOLD = 20
MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Together:
    """The verdict of the page; every bay is in exactly one of the four."""

    fitness: Fitness
    word: str
    sentence: str
    use: str
    acceptance: bool
    kept: tuple[str, ...]
    broken: tuple[str, ...]
    #: Measured, and not all was said that it was made for.
    open: tuple[str, ...]
    never: tuple[str, ...]
    #: What else must be known before it is believed.
    remarks: tuple[str, ...]


def together(seen: FleetView) -> Together:
    """Of all bays."""
    of = {fitness: tuple(bay.name for bay in seen.bays if bay.fitness is fitness) for fitness in (*Fitness, None)}
    gaps = tuple(_gaps(seen))
    if of[Fitness.UNFIT]:
        fitness = Fitness.UNFIT
    elif gaps or not of[Fitness.FIT] or of[Fitness.OPEN] or of[None]:
        fitness = Fitness.OPEN
    else:
        fitness = Fitness.FIT
    unsure = [bay.name for bay in seen.begun if bay.standing and not bay.standing.acceptance]
    acceptance = bool(seen.begun) and not unsure
    sentence = _sentence(len(seen.bays), of[Fitness.FIT], of[Fitness.UNFIT])
    remarks = (*gaps, *_each(seen))
    use = _use(fitness, acceptance, unsure)
    return Together(
        fitness, _word(fitness, acceptance), sentence, use, acceptance,
        of[Fitness.FIT], of[Fitness.UNFIT], of[Fitness.OPEN], of[None], remarks,
    )  # fmt: skip


def named(names: Sequence[str], most: int = MOST_TOLD) -> str:
    """``dut1, dut2 and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def bays(number: int) -> str:
    return "1 bay" if number == 1 else f"{number:,} bays"


def _sentence(all_of_them: int, kept: Sequence[str], broken: Sequence[str]) -> str:
    if not all_of_them:
        return "There is no bay in this fleet."
    if broken:
        theirs = "keeps all its promises" if len(kept) == 1 else "keep all their promises"
        rest = f"; {len(kept):,} {theirs}" if kept else ""
        verb = "breaks promises" if len(broken) == 1 else "break promises"
        return f"{len(broken):,} of {bays(all_of_them)} {verb}: {named(broken)}{rest}."
    if len(kept) < all_of_them:
        verb = "keeps" if len(kept) == 1 else "keep"
        return f"{len(kept):,} of {bays(all_of_them)} {verb} every promise, and of the others that is not known."
    return "The one bay keeps all its promises." if all_of_them == 1 else f"All {all_of_them:,} bays keep all promises."


def _gaps(seen: FleetView) -> Iterator[str]:
    """Why a fleet's folder does not say all."""
    if seen.complaint:
        yield f"Which bays were asked for is not known: {seen.complaint}."
    elif seen.fleet and not seen.fleet.ended:
        yield "The run has not ended, or was killed: what is missing is not known."


def _each(seen: FleetView) -> Iterator[str]:
    """Of bays that do not say all: what is missing, or why there is nothing."""
    told = [*_never(seen.bays), *_open(seen.bays)]
    yield from told[:MOST_TOLD]
    if len(told) > MOST_TOLD:
        yield f"And {len(told) - MOST_TOLD:,} more of the kind: the table of bays has all."


def _never(found: Sequence[BayView]) -> Iterator[str]:
    for bay in found:
        if not bay.standing:
            why = safe_text.line(bay.refused, MOST_CHARACTERS) or "it has no run folder"
            yield f"{bay.name} was never begun: {why}"


def _open(found: Sequence[BayView]) -> Iterator[str]:
    for bay in found:
        if bay.standing and bay.fitness is not Fitness.FIT:
            yield from (f"{bay.name}: {each}" for each in bay.standing.remarks)
            if not bay.standing.remarks and bay.fitness is Fitness.OPEN:
                yield f"{bay.name}: {bay.standing.sentence}"


def _word(fitness: Fitness, acceptance: bool) -> str:
    if fitness is Fitness.OPEN:
        return "Cannot say"
    if acceptance:
        return "Fit" if fitness is Fitness.FIT else "Not fit"
    return "Would be fit" if fitness is Fitness.FIT else "Would not be fit"


def _use(fitness: Fitness, acceptance: bool, unsure: Sequence[str]) -> str:
    if unsure:
        return f"Not for acceptance: the protocol of {named(unsure, 4)} may not decide about a product, or not surely."
    if not acceptance:
        return "Not for acceptance: nothing was measured."
    if fitness is Fitness.OPEN:
        return "Not for acceptance as it is: the protocols may decide about a product, but the run does not."
    what = "all that was judged is kept" if fitness is Fitness.FIT else "a broken promise decides"
    return f"For acceptance: the protocols may decide about a product, and {what}."
