"""Chart of a workload search over its time: probes beside their limits, simplification, confirmation; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pytest_ssdqual.qual.explore.dimensions import Space
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import MOST_ROWS, Chart, printable, sentence, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, LIMIT, colour
from pytest_ssdqual.report.evidence.evidence import About, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Reason for a probe.
DRAWN, KNOWN, TRIED, SHORTER = "drawn", "known from an earlier run", "simpler candidate", "simpler, fails too"


@dataclass(frozen=True, slots=True)
class Tried:
    """One probe."""

    name: str
    #: Time of the drives at the end of the probe.
    at_s: float
    #: Smallest margin of all promises; negative on the bad side of the limit.
    margin_percent: float | None
    outcome: Finding | None
    step: str
    #: Differences from the plainest workload; None if the record does not have them.
    departures: tuple[str, ...] | None
    #: Worst verdict, or the reason why there is none.
    sentence: str


@dataclass(frozen=True, slots=True)
class Searched:
    """One search."""

    judged: Judged
    tried: tuple[Tried, ...]
    #: Outcome of each workload that was measured again.
    suspects: Mapping[str, str]


def searched(notes: Notes) -> Iterator[Searched]:
    """Yield every judged search."""
    for each in notes.judged:
        if each.evidence.about is About.SEARCH and (found := of_search(notes.story, each)):
            yield found


def of_search(story: RunReader, judged: Judged) -> Searched | None:
    """Return the search of a verdict; None if it has no probe."""
    points = judged.evidence.points
    if not points:
        return None
    facts = _record(story, judged)
    looks = {str(each.get("workload")): each for each in subject.tables(facts.get("probed"))}
    known = set(subject.texts(facts.get("began_with")))
    ends = accumulate(max(point.figures.get("seconds") or 0.0, 0.0) for point in points)
    order = _Order.of(str(facts.get("plain", "")))
    tried = []
    for point, at_s in zip(points, ends, strict=True):
        look = looks.get(point.name, {})
        trouble = subject.texts(look.get("trouble"))
        sentence = str(look.get("verdict") or "; ".join(trouble))
        step = order.step(point.name, is_known=point.name in known, is_broken=point.outcome is Finding.FAIL)
        margin, departures = point.figures.get("margin_percent"), order.departures(point.name)
        tried.append(Tried(point.name, at_s, margin, point.outcome, step, departures, sentence))
    return Searched(judged, tuple(tried), dict(_suspects(facts)))


@dataclass(slots=True)
class _Order:
    """Order of workloads by simplicity, as far as the dimensions of the search are known."""

    space: Space | None
    #: Complexity of the simplest failed probe so far.
    least: tuple[int, int, tuple[int, ...]] | None = None

    @classmethod
    def of(cls, plain: str) -> _Order:
        try:
            return cls(Space.of(Workload.parse(plain)))
        except ValueError:
            return cls(None)

    def departures(self, name: str) -> tuple[str, ...] | None:
        try:
            return self.space.departures(Workload.parse(name)) if self.space else None
        except ValueError:
            return None

    def step(self, name: str, *, is_known: bool, is_broken: bool) -> str:
        """Return the reason for a probe; ``DRAWN`` for a name that cannot be parsed."""
        try:
            here = self.space.complexity(Workload.parse(name)) if self.space else None
        except ValueError:
            here = None
        is_simpler = here is not None and self.least is not None and here < self.least
        if here is not None and is_broken and (self.least is None or is_simpler):
            self.least = here
        if is_known:
            return KNOWN
        return (SHORTER if is_broken else TRIED) if is_simpler else DRAWN


def _record(story: RunReader, judged: Judged) -> Mapping[str, Any]:
    """Return the last ``searched`` record with the same workloads; empty if there is none."""
    names = [point.name for point in judged.evidence.points]
    for record in reversed(story.of("searched")):
        probed = [str(each.get("workload")) for each in subject.tables(record.facts.get("probed"))]
        if record.facts.get("geometry") in judged.evidence.geometries and probed == names:
            return record.facts
    return {}


def _suspects(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in subject.tables(facts.get("suspects")):
        what = (
            "confirmed"
            if each.get("confirmed") is True
            else "cleared"
            if each.get("cleared") is True
            else "inconclusive"
        )
        yield str(each.get("workload")), what


#: Probes in one picture; of more, the passes with the largest margins are left out.
MOST_LOOKS = 400
#: Beyond this margin a linear scale would compress all other points.
WIDE_PERCENT = 300.0
UNMEASURED = "not measured"
Style = tuple[str, str, bool]
STYLES: Mapping[Finding | None, Style] = {
    Finding.PASS: ("o", colour(0), True),
    Finding.FAIL: ("X", LIMIT, True),
    Finding.INCONCLUSIVE: ("D", colour(4), False),
    None: ("|", INK, True),
}


def chart(found: Searched, prefix: str = "search") -> Chart:
    """Draw margins above and departures from the plainest workload below, both over the time of the search."""
    evidence = found.judged.evidence
    key = slug(prefix, *evidence.geometries, *evidence.workloads)
    shown = _shown(found.tried, MOST_LOOKS, found.suspects)
    failed = [each for each in found.tried if each.outcome is Finding.FAIL]
    confirmed = next((name for name, what in found.suspects.items() if what == "confirmed"), "")
    ending = f"{confirmed} fails one" if confirmed else "no fail is confirmed" if failed else "none fails"
    title = f"{' '.join(evidence.geometries)}: {len(found.tried)} workloads searched for a failed promise, {ending}"
    with drawing():
        plate = Plate.of(3.9)
        above = plate.axes("", "margin to the limit, %", rows=2)
        below = plate.axes("time", "departures", rows=2, row=1)
        _margins(plate, above, shown, found)
        _departures(plate, below, shown)
        for axes in (above, below):
            unit = scales.seconds(axes, found.tried[-1].at_s * 1.03)
        below.set_xlabel(f"time of the drives, {unit}")
        svg = plate.svg(key, title, f"{len(found.tried)} probes, {len(failed)} of which failed.")
    caption = (
        f"{sentence(evidence.group or evidence.sentence)} Above, the margin of each probe: below the red line "
        "the probe failed. Below, the number of departures from the plainest workload; the line shows how a failing "
        "workload was simplified. A probe is no verdict; only the second measurement of a suspect is."
        f"{_left(found, shown)}"
    )
    return Chart(key, title, caption, svg, _table(found), next(iter(evidence.geometries), ""))


def _shown(tried: Sequence[Tried], most: int, suspects: Iterable[str]) -> list[Tried]:
    """Return the probes in order; of too many, first those that did not pass, then the smallest margins."""
    if len(tried) <= most:
        return list(tried)

    def matters(each: Tried) -> tuple[bool, bool, float]:
        passed = each.outcome is Finding.PASS and each.name not in suspects
        return passed, each.step == DRAWN, each.margin_percent if each.margin_percent is not None else 0.0

    kept = {each.name for each in sorted(tried, key=matters)[:most]}
    return [each for each in tried if each.name in kept]


def _left(found: Searched, shown: Sequence[Tried]) -> str:
    drawn = "" if len(shown) == len(found.tried) else f" Drawn are {len(shown)} of {len(found.tried)}."
    listed = min(len(found.tried), MOST_ROWS)
    table = f" The table has {listed} of {len(found.tried)}, without the passes with the largest margins."
    return drawn + (table if listed < len(found.tried) else "")


def _margins(plate: Plate, axes: Axes, shown: Sequence[Tried], found: Searched) -> None:
    values = [0.0]
    for outcome in STYLES:
        alike = [(one, one.margin_percent) for one in shown if one.outcome is outcome]
        known = [(one, margin) for one, margin in alike if margin is not None]
        tooltips = [f"{one.name}: {margin:+.3g} %, {(outcome or UNMEASURED)}" for one, margin in known]
        _dots(plate, axes, outcome, [(one.at_s, margin) for one, margin in known], tooltips)
        values += [margin for _, margin in known]
    suspected = [
        (one, margin) for one in shown if one.name in found.suspects and (margin := one.margin_percent) is not None
    ]
    if suspected:
        xs, ys = [one.at_s for one, _ in suspected], [margin for _, margin in suspected]
        (ring,) = axes.plot(
            xs, ys, linestyle="", marker="o", markersize=11, markerfacecolor="none", markeredgecolor=INK
        )
        plate.entry(ring, "suspect, measured again")
    values += _confirmed(plate, axes, found)
    plate.limit(axes, 0.0, "promised")
    _scale(axes, values)
    # A latency beyond the last bin has no finite margin, but it is a fail.
    beyond = [one for one in shown if one.outcome is Finding.FAIL and one.margin_percent is None]
    tooltips = [f"{one.name}: fails by more than could be measured" for one in beyond]
    _dots(plate, axes, Finding.FAIL, [(one.at_s, axes.get_ylim()[0]) for one in beyond], tooltips)


def _confirmed(plate: Plate, axes: Axes, found: Searched) -> list[float]:
    """Draw the second measurement, which is the verdict, after the search; return its margin."""
    evidence = found.judged.evidence
    if evidence.outcome is not Finding.FAIL or evidence.margin_percent is None:
        return []
    (star,) = axes.plot(
        [found.tried[-1].at_s * 1.015], [evidence.margin_percent], linestyle="", marker="*", markersize=10, color=LIMIT
    )
    plate.add_tooltips(star, [f"{evidence.workloads[0]} measured again: {evidence.margin_percent:+.3g} %"])
    plate.entry(star, f"confirmed: {printable(evidence.workloads[0], 48)}")
    return [evidence.margin_percent]


def _departures(plate: Plate, axes: Axes, shown: Sequence[Tried]) -> None:
    from matplotlib.ticker import MaxNLocator

    known = [(each, len(each.departures)) for each in shown if each.departures is not None]
    for outcome in STYLES:
        _dots(plate, axes, outcome, [(each.at_s, float(count)) for each, count in known if each.outcome is outcome], ())
    failed = [(each, count) for each, count in known if each.outcome is Finding.FAIL]
    steps = [(each, count) for index, (each, count) in enumerate(failed) if not index or each.step == SHORTER]
    if len(steps) > 1:
        (line,) = axes.plot(
            [each.at_s for each, _ in steps], [count for _, count in steps], color=LIMIT, linewidth=1.1,
            drawstyle="steps-post",
        )  # fmt: skip
        plate.entry(line, "simplified")
    axes.set_ylim(-0.5, max([count for _, count in known] or [1]) + 0.5)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _dots(plate: Plate, axes: Axes, outcome: Finding | None, at: Sequence[tuple[float, float]],
          tooltips: Sequence[str]) -> None:  # fmt: skip
    if not at:
        return
    marker, tint, is_full = STYLES[outcome]
    (drawn,) = axes.plot(
        [x for x, _ in at], [y for _, y in at], linestyle="", marker=marker, color=tint, markersize=5.5,
        markerfacecolor=tint if is_full else "none", clip_on=False,
    )  # fmt: skip
    plate.add_tooltips(drawn, tooltips)
    plate.entry(drawn, (outcome or UNMEASURED))


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """Scale linearly; beyond 100 % logarithmically if a figure is many times its limit."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 5.0
    if max(-low, high) > WIDE_PERCENT:
        axes.set_yscale("symlog", linthresh=100.0, linscale=1.0)
        axes.set_ylim(low * 1.6 if low < 0 else -25.0, high * 1.6 if high > 0 else 25.0)
        ends = [sign * 10.0**power for power in range(2, 9) for sign in (-1, 1)]
        axes.set_yticks([0.0, *(end for end in ends if low * 1.6 <= end <= high * 1.6)])
    else:
        axes.set_ylim(low - room, high + room)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=scales.STEPS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+,.4g}" if value else "0"))


def _table(found: Searched) -> Table:
    rows = []
    for each in _shown(found.tried, MOST_ROWS, found.suspects):
        suspect = f", suspect: {found.suspects[each.name]}" if each.name in found.suspects else ""
        departs = "" if each.departures is None else ", ".join(each.departures) or "the plainest"
        margin = "" if each.margin_percent is None else f"{each.margin_percent:+,.1f} %"
        rows.append((
            each.name, format_duration(each.at_s), departs, each.step, margin, (each.outcome or UNMEASURED) + suspect,
            printable(each.sentence, 300),
        ))  # fmt: skip
    columns = ("workload", "probed after", "departures", "step", "margin", "probe", "worst promise")
    return Table(columns, tuple(rows))
