"""The view of a fleet: bays, figures over bays, and the verdict on the fleet.

``fleet.json`` and every run folder may be damaged or foreign; what cannot be read is left out and stated. A fleet is
fit only if every requested bay was measured to its end and is fit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import reduce
from operator import add
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import Outlying, Spread
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted, named
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.units import format_value
from pytest_ssdqual.report.compare.circumstances import facts
from pytest_ssdqual.report.compare.compared_run import ComparedRun, FigureKey, key_of
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import Fleet, FleetBay
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.run_summary.coverage import Coverage
from pytest_ssdqual.report.run_summary.fitness import Counts, Fitness, PageVerdict
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view.tables import SEVERITY, State, label, margin, sorting

#: A figure over all bays.
FleetFigure = tuple[FigureKey, str, int]
#: Circumstances that differ in every fleet.
OWN = frozenset({"machine", "hostname", "drives themselves"})


#: With more bays than this, tables have no column for each bay.
MOST_COLUMNS = 8
#: Fitness of bays, the worst first; None of a bay that was not started.
WORST_FIRST = (Fitness.NOT_FIT, Fitness.UNDECIDED, Fitness.NO_VERDICT, None, Fitness.FIT)
NOT_STARTED = "not started"
#: Tail of the interval of the share that passes: 95 %, two-sided.
TAIL = 0.025
#: Maximum number of bays named one by one; the table has all.
MOST_TOLD = 20
MOST_CHARACTERS = 500
#: Bays that a sentence about several names, and a value that differs between bays.
MOST_NAMED, MOST_IN_VALUE = 4, 6


@frozen
class BayView:
    """A bay and its run."""

    name: str
    machine: str
    labels: Mapping[str, str]
    #: Reason why the bay was not started; empty if it was, or if it is unknown.
    refused: str
    #: None if it has no run folder.
    run: RunView | None = None
    #: ``8 × ACME 9 (A1)``.
    drives: str = ""
    #: By the figure, its unit, and a number that distinguishes equal figures of one bay.
    figures: Mapping[FleetFigure, Evidence] = field(default_factory=dict)
    has_page: bool = False

    @property
    def standing(self) -> PageVerdict | None:
        return self.run.verdict if self.run else None

    @property
    def fitness(self) -> Fitness | None:
        """Fitness of the bay; None if it was not started."""
        return self.standing.fitness if self.standing else None

    @property
    def state(self) -> State:
        """The verdict as a word of a table."""
        return self.standing.state if self.standing else State(NOT_STARTED, Finding.OBSERVED)


@frozen
class FleetView:
    """A fleet's folder."""

    folder: Path
    #: None if ``fleet.json`` cannot be read; ``complaint`` says why.
    fleet: Fleet | None
    complaint: str
    bays: tuple[BayView, ...]

    @classmethod
    def read(cls, folder: Path) -> FleetView:
        """Read every bay of ``fleet.json`` in its order, then other bays with a run folder."""
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

    @property
    def by_fitness(self) -> Mapping[Fitness | None, tuple[str, ...]]:
        """Names of the bays by their verdicts; None: not started."""
        kinds = (*Fitness, None)
        return {kind: tuple(bay.name for bay in self.bays if bay.fitness is kind) for kind in kinds}

    def differences(self) -> Iterator[tuple[str, tuple[tuple[str, str], ...], str]]:
        """Yield each circumstance (protocol, spec, versions, machines) that differs between bays.

        It has a name, its values with their bays, the most frequent one first, and its meaning.
        """
        known = [(bay.name, bay.run.manifest) for bay in self.bays if bay.run and bay.run.manifest.is_readable]
        runs = [ComparedRun(name, self.folder, manifest, "", {}, {}, {}, 0) for name, manifest in known]
        for fact in facts(runs) if len(runs) > 1 else ():
            if fact.differs and fact.name not in OWN:
                of_value: dict[str, list[str]] = {value: [] for value, _ in Counter(fact.values).most_common()}
                for (name, _), value in zip(known, fact.values, strict=True):
                    of_value[value].append(name)
                values = tuple((value, named(names, MOST_IN_VALUE)) for value, names in of_value.items())
                yield fact.name, values, fact.meaning


def _bay(asked: FleetBay, folder: Path | None) -> BayView:
    if folder is None:
        return BayView(asked.name, asked.machine, asked.labels, asked.refused)
    try:
        run = RunView.read(folder)
    except OSError as error:
        return BayView(
            asked.name, asked.machine, asked.labels, f"its records cannot be read: {error.strerror or error}"
        )
    machine = asked.machine or ", ".join(run.machines)
    has_page = (folder / REPORT).is_file()
    return BayView(asked.name, machine, asked.labels, asked.refused, run, _drives(run), _figures(run.judged), has_page)


def _figures(judged: Iterable[Judged]) -> dict[FleetFigure, Evidence]:
    found: dict[FleetFigure, Evidence] = {}
    for each in sorted(judged, key=lambda one: one.test):
        key, number = key_of(each), 0
        while (name := (key, each.unit.value, number)) in found:
            number += 1
        found[name] = each
    return found


def _drives(run: RunView) -> str:
    found = Counter(
        f"{drive.model or 'unknown model'} ({drive.firmware or 'firmware unknown'})" for drive in run.manifest.drives
    )
    return " + ".join(f"{number} × {kind}" for kind, number in found.items())


@frozen
class FleetRow:
    """A figure by bay; bays without it are missing."""

    key: FigureKey
    cells: dict[str, Evidence]
    #: Distinguishes equal figures of one bay.
    number: int = 0

    @property
    def first(self) -> Evidence:
        return next(iter(self.cells.values()))

    @property
    def claim(self) -> str:
        group = f" ({self.key.group})" if self.key.group else ""
        return label(self.key.claim) + group

    @property
    def array(self) -> str:
        """Label of the array; drives side by side may have another number in each bay."""
        return self.key.geometry

    @property
    def workload(self) -> str:
        return self.key.workload

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.claim, self.array, self.workload)))

    @property
    def limit(self) -> str:
        """The limit of all bays, or a text if it differs."""
        found = {each.bound for each in self.cells.values()}
        return found.pop() if len(found) == 1 else "not the same"

    @property
    def is_promised(self) -> bool:
        return any(each.is_promised for each in self.cells.values())

    @property
    def outcome(self) -> Finding:
        """The worst outcome."""
        return min((each.outcome for each in self.cells.values()), key=SEVERITY.index)

    @property
    def worst(self) -> str:
        """The bay with the worst outcome and the smallest margin; empty if nothing is promised."""
        if not self.is_promised:
            return ""
        return min(self.cells, key=lambda name: (SEVERITY.index(self.cells[name].outcome), margin(self.cells[name])))

    def bays(self, outcome: Finding) -> tuple[str, ...]:
        return tuple(name for name, each in self.cells.items() if each.outcome is outcome)

    @property
    def values(self) -> list[float]:
        """Finite values."""
        return [self.cells[name].value for name in self.counted]

    @property
    def counted(self) -> list[str]:
        return [name for name, each in self.cells.items() if math.isfinite(each.value)]

    def spread(self) -> Spread | None:
        return outliers.spread(self.values) if self.values else None

    @property
    def range(self) -> tuple[str, str, str]:
        """The least, the median and the largest value as texts."""
        spread, unit = self.spread(), self.first.unit
        if spread is None:
            return "", "", ""
        return format_value(spread.least, unit), format_value(spread.median, unit), format_value(spread.most, unit)

    def standing_out(self) -> tuple[str, Outlying] | None:
        """Return the outlying bay, if there is one."""
        found = outliers.standing_out(self.values, [self.cells[name].ends for name in self.counted])
        return (self.counted[found.index], found) if found else None

    def share(self) -> tuple[int, int, int, float, float] | None:
        """Return the bays that pass, are undecided, all with the promise, and the interval of the share that passes.

        An inconclusive or bounded bay counts as a fail for the lower end and as a pass for the upper one.
        """
        of = sum(each.is_promised for each in self.cells.values())
        if not of:
            return None
        kept = len(self.bays(Finding.PASS))
        undecided = len(self.bays(Finding.INCONCLUSIVE)) + len(self.bays(Finding.BOUNDED))
        low, _ = latency.interval(kept, of, TAIL)
        _, high = latency.interval(kept + undecided, of, TAIL)
        return kept, undecided, of, low, high


def rows(seen: FleetView) -> tuple[FleetRow, ...]:
    """Return every figure, failed ones first, then by claim, array and workload."""
    found: dict[FleetFigure, dict[str, Evidence]] = {}
    for bay in seen.begun:
        for key, evidence in bay.figures.items():
            found.setdefault(key, {})[bay.name] = evidence
    return tuple(sorted((FleetRow(key, cells, number) for (key, _, number), cells in found.items()), key=_order))


def promised(found: Sequence[FleetRow]) -> tuple[FleetRow, ...]:
    return tuple(row for row in found if row.is_promised)


def observed(found: Sequence[FleetRow]) -> tuple[FleetRow, ...]:
    return tuple(row for row in found if not row.is_promised)


def _order(row: FleetRow) -> tuple[object, ...]:
    return SEVERITY.index(row.outcome), sorting(row.first), row.key, row.number


def together(seen: FleetView) -> PageVerdict:
    """Return the verdict of all bays together."""
    of = seen.by_fitness
    gaps = tuple(_gaps(seen))
    if of[Fitness.NOT_FIT]:
        fitness = Fitness.NOT_FIT
    elif seen.bays and not gaps and len(of[Fitness.FIT]) == len(seen.bays):
        fitness = Fitness.FIT
    elif of[Fitness.UNDECIDED] and not gaps:
        fitness = Fitness.UNDECIDED
    else:
        fitness = Fitness.NO_VERDICT
    verdicts = [bay.standing for bay in seen.bays if bay.standing]
    unsure = [bay.name for bay in seen.begun if bay.standing and not bay.standing.acceptance]
    acceptance = bool(seen.begun) and not unsure
    beside = dict.fromkeys(each.repeatability for each in verdicts)
    has_failed = any(each.counts.failed for each in verdicts)
    return PageVerdict(
        fitness=fitness,
        sentence=_sentence(len(seen.bays), of[Fitness.FIT], of[Fitness.NOT_FIT]),
        use=_use(fitness, acceptance, unsure, has_failed=has_failed),
        remarks=(*gaps, *_each(seen), *filter(None, beside)),
        counts=Counts(),
        acceptance=acceptance,
        coverage=reduce(add, (each.coverage for each in verdicts), Coverage()),
        gaps=gaps,
    )


def _sentence(count: int, passed: Sequence[str], failed: Sequence[str]) -> str:
    if not count:
        return "This fleet has no bay."
    if failed:
        rest = f"; {len(passed):,} passed" if passed else ""
        return f"{len(failed):,} of {counted(count, 'bay')} failed: {named(failed, MOST_TOLD)}{rest}."
    if len(passed) < count:
        of = counted(count, "bay")
        return f"{len(passed):,} of {of} passed and none failed; the rest was not decided or not started."
    return "The one bay passed." if count == 1 else f"All {count:,} bays passed."


def _gaps(seen: FleetView) -> Iterator[str]:
    """Yield a sentence for each reason why the fleet's folder is not complete."""
    if seen.complaint:
        yield f"The requested bays are unknown: {seen.complaint}."
    elif seen.fleet and not seen.fleet.ended:
        yield "The run has not ended or was killed; how much is missing is unknown."


def _each(seen: FleetView) -> Iterator[str]:
    """Yield what limits the verdict of each bay, or why it has no run."""
    remarks = [*_never(seen.bays), *_open(seen.bays)]
    yield from remarks[:MOST_TOLD]
    if len(remarks) > MOST_TOLD:
        yield f"And {len(remarks) - MOST_TOLD:,} more; the table of bays lists all of them."


def _never(found: Sequence[BayView]) -> Iterator[str]:
    for bay in found:
        if not bay.standing:
            why = safe_text.line(bay.refused, MOST_CHARACTERS) or "it has no run folder"
            yield f"{bay.name} was not started: {why}"


def _open(found: Sequence[BayView]) -> Iterator[str]:
    """Yield each sentence about the verdicts of bays once, with the bays that it is about."""
    about: dict[str, list[str]] = {}
    for bay in found:
        if bay.standing:
            own = [bay.standing.sentence] if bay.fitness is Fitness.NO_VERDICT else []
            # The remarks have the rest, except for promises of which nothing was judged.
            own = own if bay.standing.coverage.missing or not bay.standing.remarks else []
            for sentence in (*own, *bay.standing.remarks):
                about.setdefault(sentence, []).append(bay.name)
    yield from (f"{named(names, MOST_NAMED)}: {sentence}" for sentence, names in about.items())


def _use(fitness: Fitness, acceptance: bool, unsure: Sequence[str], *, has_failed: bool) -> str:
    if unsure:
        whose = named(unsure, MOST_NAMED)
        return f"Not for acceptance: the protocol of {whose} is unknown, or not made to accept or reject a drive."
    if not acceptance:
        return "Not for acceptance: nothing was measured."
    if fitness is Fitness.UNDECIDED:
        return "Not for acceptance: the protocols may decide about a product, but this run is undecided."
    if fitness is Fitness.NO_VERDICT:
        return "Not for acceptance: the protocols may decide about a product, but this run came to no verdict."
    decides = "a failed promise decides" if has_failed else "the health of the drives decides"
    what = "every promise judged passed" if fitness is Fitness.FIT else decides
    return f"For acceptance: the protocols may decide about a product, and {what}."
