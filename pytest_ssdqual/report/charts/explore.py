"""A search over its time: every workload it looked at beside its limit, how it was made simpler, what was confirmed.

A search as it went: every workload that it looked at, in order, and which were steps to a simpler one; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pytest_ssdqual.qual.explore.dimensions import Space
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import base
from pytest_ssdqual.report.charts.base import INK, LIMIT, MOST_ROWS, Chart, ChartTable, colour, said, sentence, slug
from pytest_ssdqual.report.charts.data import Notes, tests_of
from pytest_ssdqual.report.charts.figure import Plate, drawing
from pytest_ssdqual.report.evidence.evidence import About, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: How a workload came to be looked at.
DRAWN, KNOWN, TRIED, SHORTER = "drawn", "known from an earlier run", "a simpler one tried", "simpler and broken too"


@dataclass(frozen=True, slots=True)
class Tried:
    """One workload that was looked at."""

    name: str
    #: Of the drives' time, when the look at it had ended.
    at_s: float
    #: Of the promise that it is closest to breaking, or breaks most; positive is better than promised.
    margin_percent: float | None
    outcome: Finding | None
    step: str
    #: What sets it apart from the plainest; None if the record does not tell.
    departures: tuple[str, ...] | None
    #: Its worst verdict, or why there is none.
    told: str


@dataclass(frozen=True, slots=True)
class Searched:
    """One search."""

    judged: Judged
    tried: tuple[Tried, ...]
    #: Workloads that were measured anew, and what came of them.
    suspects: Mapping[str, str]


def searched(notes: Notes) -> Iterator[Searched]:
    """Of every search that was judged."""
    for each in notes.judged:
        if each.evidence.about is About.SEARCH and (found := of_search(notes.story, each)):
            yield found


def of_search(story: RunReader, judged: Judged) -> Searched | None:
    """None if nothing was looked at."""
    points = judged.evidence.points
    if not points:
        return None
    facts = _record(story, judged)
    looks = {str(each.get("workload")): each for each in _tables(facts.get("probed"))}
    known = {str(each) for each in _listed(facts.get("began_with"))}
    ends = accumulate(max(point.figure("seconds") or 0.0, 0.0) for point in points)
    order = _Order.of(str(facts.get("plain", "")))
    tried = []
    for point, at_s in zip(points, ends, strict=True):
        look = looks.get(point.name, {})
        trouble = [str(each) for each in _listed(look.get("trouble"))]
        told = str(look.get("told") or "; ".join(trouble))
        step = order.step(point.name, is_known=point.name in known, is_broken=point.outcome is Finding.FAIL)
        margin, departures = point.figure("margin_percent"), order.departures(point.name)
        tried.append(Tried(point.name, at_s, margin, point.outcome, step, departures, told))
    return Searched(judged, tuple(tried), dict(_suspects(facts)))


@dataclass(slots=True)
class _Order:
    """What is simpler than what, as far as the search's space can be known."""

    space: Space | None
    #: Of the simplest that looked broken so far.
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
        """In words; of names that cannot be read only that they were drawn."""
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
    """The last ``searched`` record with the same workloads; empty if there is none."""
    names = [point.name for point in judged.evidence.points]
    for record in reversed(story.of("searched")):
        probed = [str(each.get("workload")) for each in _tables(record.facts.get("probed"))]
        if record.facts.get("geometry") in judged.evidence.geometries and probed == names:
            return record.facts
    return {}


def _suspects(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in _tables(facts.get("suspects")):
        what = "confirmed" if each.get("confirmed") is True else "cleared" if each.get("cleared") is True else "open"
        yield str(each.get("workload")), what


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [each for each in _listed(value) if isinstance(each, dict)]


#: Looks in one picture; of more, those that are kept with the most room are left out.
MOST_LOOKS = 400
#: Beyond so many per cent a linear scale would press all others together.
WIDE_PERCENT = 300.0
UNMEASURED = "could not be measured"
WORDS = {Finding.PASS: "kept", Finding.FAIL: "looked broken", Finding.INCONCLUSIVE: "undecided", None: UNMEASURED}
Style = tuple[str, str, bool]
STYLES: Mapping[Finding | None, Style] = {
    Finding.PASS: ("o", colour(0), True),
    Finding.FAIL: ("X", LIMIT, True),
    Finding.INCONCLUSIVE: ("D", colour(4), False),
    None: ("|", INK, True),
}


def chart(found: Searched, prefix: str = "search") -> Chart:
    """Margins above, departures from the plainest workload below, both over the time that the search took."""
    evidence = found.judged.evidence
    key = slug(prefix, *evidence.geometries, *evidence.workloads)
    shown = _shown(found.tried, MOST_LOOKS, found.suspects)
    broken = [each for each in found.tried if each.outcome is Finding.FAIL]
    confirmed = next((name for name, what in found.suspects.items() if what == "confirmed"), "")
    ending = f"{confirmed} breaks one" if confirmed else "none is confirmed to be broken" if broken else "none broken"
    title = f"{' '.join(evidence.geometries)}: {len(found.tried)} workloads searched for a broken promise, {ending}"
    with drawing():
        plate = Plate.of(3.9)
        above = plate.axes("", "margin to the limit, %", rows=2)
        below = plate.axes("time", "departures", rows=2, row=1)
        _margins(plate, above, shown, found)
        _departures(plate, below, shown)
        for axes in (above, below):
            unit = base.seconds(axes, found.tried[-1].at_s * 1.03)
        below.set_xlabel(f"time of the drives, {unit}")
        svg = plate.svg(key, title, f"{len(found.tried)} looks, {len(broken)} of which looked broken.")
    caption = (
        f"{sentence(evidence.group or evidence.sentence)} Above, each workload's figure beside its limit: under the "
        "red line a promise looked broken. Below, how many departures from the plainest it has; the line is how a "
        "broken one was made simpler. A look accuses nobody: what counts is the second measurement of a suspect."
        f"{_left(found, shown)}"
    )
    return Chart(key, title, caption, svg, _table(found), tests_of([found.judged]), _level(evidence.geometries))


def _shown(tried: Sequence[Tried], most: int, suspects: Iterable[str]) -> list[Tried]:
    """All in order if there are few; of more everything but kept ones, and of these the ones with least room."""
    if len(tried) <= most:
        return list(tried)

    def matters(each: Tried) -> tuple[bool, bool, float]:
        is_kept = each.outcome is Finding.PASS and each.name not in suspects
        return is_kept, each.step == DRAWN, each.margin_percent if each.margin_percent is not None else 0.0

    kept = {each.name for each in sorted(tried, key=matters)[:most]}
    return [each for each in tried if each.name in kept]


def _left(found: Searched, shown: Sequence[Tried]) -> str:
    drawn = "" if len(shown) == len(found.tried) else f" Drawn are {len(shown)} of {len(found.tried)}."
    listed = min(len(found.tried), MOST_ROWS)
    table = f" The table has {listed} of {len(found.tried)}, without the kept ones that have most room."
    return drawn + (table if listed < len(found.tried) else "")


def _margins(plate: Plate, axes: Axes, shown: Sequence[Tried], found: Searched) -> None:
    values = [0.0]
    for outcome in STYLES:
        alike = [(one, one.margin_percent) for one in shown if one.outcome is outcome]
        known = [(one, margin) for one, margin in alike if margin is not None]
        told = [f"{one.name}: {margin:+.3g} %, {WORDS[outcome]}" for one, margin in known]
        _dots(plate, axes, outcome, [(one.at_s, margin) for one, margin in known], told)
        values += [margin for _, margin in known]
    suspected = [
        (one, margin) for one in shown if one.name in found.suspects and (margin := one.margin_percent) is not None
    ]
    if suspected:
        xs, ys = [one.at_s for one, _ in suspected], [margin for _, margin in suspected]
        (ring,) = axes.plot(
            xs, ys, linestyle="", marker="o", markersize=11, markerfacecolor="none", markeredgecolor=INK
        )
        plate.entry(ring, "suspect, measured anew")
    values += _confirmed(plate, axes, found)
    plate.limit(axes, 0.0, "promised")
    _scale(axes, values)
    # Latencies beyond the last bin have no margin that is a number; they are no better for that.
    beyond = [one for one in shown if one.outcome is Finding.FAIL and one.margin_percent is None]
    told = [f"{one.name}: broken by more than could be measured" for one in beyond]
    _dots(plate, axes, Finding.FAIL, [(one.at_s, axes.get_ylim()[0]) for one in beyond], told)


def _confirmed(plate: Plate, axes: Axes, found: Searched) -> list[float]:
    """The second measurement, which is the verdict; it came after the search."""
    evidence = found.judged.evidence
    if evidence.outcome is not Finding.FAIL or evidence.margin_percent is None:
        return []
    (star,) = axes.plot(
        [found.tried[-1].at_s * 1.015], [evidence.margin_percent], linestyle="", marker="*", markersize=10, color=LIMIT
    )
    plate.tell(star, [f"{evidence.workloads[0]} measured anew: {evidence.margin_percent:+.3g} %"])
    plate.entry(star, f"confirmed: {said(evidence.workloads[0], 48)}")
    return [evidence.margin_percent]


def _departures(plate: Plate, axes: Axes, shown: Sequence[Tried]) -> None:
    from matplotlib.ticker import MaxNLocator

    known = [(each, len(each.departures)) for each in shown if each.departures is not None]
    for outcome in STYLES:
        _dots(plate, axes, outcome, [(each.at_s, float(count)) for each, count in known if each.outcome is outcome], ())
    broken = [(each, count) for each, count in known if each.outcome is Finding.FAIL]
    steps = [(each, count) for index, (each, count) in enumerate(broken) if not index or each.step == SHORTER]
    if len(steps) > 1:
        (line,) = axes.plot(
            [each.at_s for each, _ in steps], [count for _, count in steps], color=LIMIT, linewidth=1.1,
            drawstyle="steps-post",
        )  # fmt: skip
        plate.entry(line, "made simpler")
    axes.set_ylim(-0.5, max([count for _, count in known] or [1]) + 0.5)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _dots(plate: Plate, axes: Axes, outcome: Finding | None, at: Sequence[tuple[float, float]],
          told: Sequence[str]) -> None:  # fmt: skip
    if not at:
        return
    marker, tint, is_full = STYLES[outcome]
    (drawn,) = axes.plot(
        [x for x, _ in at], [y for _, y in at], linestyle="", marker=marker, color=tint, markersize=5.5,
        markerfacecolor=tint if is_full else "none", clip_on=False,
    )  # fmt: skip
    plate.tell(drawn, told)
    plate.entry(drawn, WORDS[outcome])


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """Linear, or logarithmic beyond a hundred per cent where figures are many times their limits."""
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
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=base.STEPS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+,.4g}" if value else "0"))


def _table(found: Searched) -> ChartTable:
    rows = []
    for each in _shown(found.tried, MOST_ROWS, found.suspects):
        suspect = f", suspect: {found.suspects[each.name]}" if each.name in found.suspects else ""
        departs = "" if each.departures is None else ", ".join(each.departures) or "the plainest"
        margin = "" if each.margin_percent is None else f"{each.margin_percent:+,.1f} %"
        rows.append((
            each.name, format_duration(each.at_s), departs, each.step, margin, WORDS[each.outcome] + suspect,
            said(each.told, 300),
        ))  # fmt: skip
    columns = ("workload", "known after", "departs by", "step", "margin", "looked", "of what")
    return ChartTable(columns, tuple(rows))


def _level(geometries: Sequence[str]) -> str:
    return geometries[0].partition("x")[0] if geometries else ""
