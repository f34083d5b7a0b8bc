"""Latency percentiles to p99.999 with their intervals, from the histograms of all rounds, merged as they are.

The slowest I/O of every second in the smallest and in the widest array, one over the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pytest_ssdqual.qual.stats.batch_means import Basis
from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew
from pytest_ssdqual.qual.stats.latency import quantile_of_rounds
from pytest_ssdqual.qual.units import Unit, format_latency, format_range
from pytest_ssdqual.report.charts import base, data
from pytest_ssdqual.report.charts.base import (
    LIMIT,
    MOST_ROWS,
    PUBLISHED,
    Chart,
    ChartTable,
    colour,
    condensed,
    condensing,
    extremes,
    gaps,
    parted,
    sentence,
    slug,
)
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes, family_name, tests_of
from pytest_ssdqual.report.charts.figure import Plate, drawing
from pytest_ssdqual.report.charts.width import Sweep
from pytest_ssdqual.report.run_folder.reader import Judged

#: By the names that claims have.
QUANTILES = (
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.99999),
)
PLACES = {name: index for index, (name, _) in enumerate(QUANTILES)}


@dataclass(frozen=True, slots=True)
class TailCurve:
    """One measurement's quantiles, as far as there are I/Os enough for them."""

    noted: NotedMeasurement
    found: tuple[tuple[str, Estimate], ...]
    #: Why the next one is not known.
    refused: str


def tail(notes: Notes, noted: NotedMeasurement) -> TailCurve | None:
    """From fio's own output; None if that is not there, too large, or has too few I/Os for anything."""
    runs = data.runs_of(notes.story.folder, noted)
    if not runs:
        return None
    rounds = tuple(chain.from_iterable(run.round_latency() for run in runs))
    look = runs[0].look
    basis = Basis(look=look, seconds=sum(run.window_s for run in runs) if look else 0.0).uncut
    found: list[tuple[str, Estimate]] = []
    for name, q in QUANTILES:
        try:
            estimate = quantile_of_rounds(rounds, q, basis)
        except TooFew as reason:
            return TailCurve(noted, tuple(found), str(reason)) if found else None
        if estimate.unbounded:
            return TailCurve(noted, tuple(found), estimate.unbounded) if found else None
        found.append((name, estimate))
    return TailCurve(noted, tuple(found), "")


def chart(notes: Notes, tails: Sequence[TailCurve], title: str, key: str) -> Chart:
    """Each measurement a line over its quantiles; limits and published figures at theirs."""
    verdicts = [each for one in tails for each in judged(notes, one.noted)]
    last = max(PLACES[one.found[-1][0]] for one in tails)
    values: list[float] = []
    with drawing():
        plate = Plate.of()
        axes = plate.axes("share of I/Os that were at most so slow", "latency")
        for index, one in enumerate(tails):
            values += _draw(plate, index, len(tails), one)
        for each in verdicts:
            at = PLACES[each.evidence.claim.removesuffix("_latency")]
            last = max(last, at)
            values += _stated(plate, at, each, _limit_words(verdicts, each))
        base.by_decades(axes, Unit.NANOSECONDS, values)
        base.places(axes, [name for name, _ in QUANTILES[: last + 1]])
        svg = plate.svg(slug(key), title, f"Latency quantiles of {len(tails)} measurements on a logarithmic scale.")
    reasons = list(dict.fromkeys(one.refused for one in tails if one.refused))
    others = f" (so, or alike, for {len(reasons)} of {len(tails)})" if len(reasons) > 1 else ""
    refused = f"{reasons[0]}{others}" if reasons else ""
    caption = (
        "Read from all rounds' histograms together, never averaged; whiskers are 95 % intervals from how rounds differ."
        f"{f' Not shown: {refused}.' if refused else ''}"
    )
    rows = tuple(
        (str(one.noted.geometry), str(one.noted.workload), name, format_latency(each.value),
         format_range(each.low, each.high, Unit.NANOSECONDS), f"{each.n:,}")
        for one in tails for name, each in one.found
    )  # fmt: skip
    table = ChartTable(("array", "workload", "quantile", "latency", "95 % interval", "I/Os"), rows)
    levels = {one.noted.geometry.level.value for one in tails}
    return Chart(slug(key), title, caption, svg, table, tests_of(verdicts), levels.pop() if len(levels) == 1 else "")


def judged(notes: Notes, noted: NotedMeasurement) -> list[Judged]:
    """What was judged of its quantiles."""
    return [
        each
        for name, _ in QUANTILES
        for each in notes.verdicts(f"{name}_latency", str(noted.geometry), str(noted.workload))
    ]


def _draw(plate: Plate, index: int, count: int, one: TailCurve) -> list[float]:
    axes = plate.figure.axes[0]
    xs = [PLACES[name] + 0.06 * (index - (count - 1) / 2) for name, _ in one.found]
    ends = [(each.low, each.high if math.isfinite(each.high) else each.value) for _, each in one.found]
    ys = [each.value for _, each in one.found]
    told = [
        f"{one.noted.geometry} {one.noted.workload} {name}: {format_latency(each.value)}" for name, each in one.found
    ]
    plate.whiskers(axes, xs, ends, colour(index))
    plate.line(axes, xs, ys, index, f"{one.noted.geometry} {one.noted.workload}", told=told)
    return [*ys, *chain.from_iterable(ends)]


def _limit_words(verdicts: Sequence[Judged], each: Judged) -> str:
    """``promised of p99: ≤ 300 ms``, and for which workload where another one has another limit."""
    claim, bound = each.evidence.claim, each.evidence.bound
    rivals = [one.evidence for one in verdicts if one.evidence.claim == claim and one.evidence.limit is not None]
    words = f"promised, {claim.removesuffix('_latency')}: {bound}"
    if len({one.bound for one in rivals}) < 2:
        return words
    named = list(dict.fromkeys(one.workloads[0] for one in rivals if one.bound == bound))
    return f"{words} for {named[0] if len(named) == 1 else f'{len(named)} of them'}"


def _stated(plate: Plate, at: int, each: Judged, words: str) -> list[float]:
    axes, found = plate.figure.axes[0], each.evidence
    values = []
    if found.limit is not None:
        line = axes.hlines([found.limit], [at - 0.3], [at + 0.3], colors=LIMIT, linewidth=1.8)
        plate.tell(line, [f"{found.workloads[0]}: {found.bound}"])
        plate.entry(line, words)
        values.append(found.limit)
    if found.published and found.published.unit is Unit.NANOSECONDS:
        (mark,) = axes.plot(
            [at], [found.published.value], linestyle="", marker="D", markerfacecolor="none", color=PUBLISHED
        )
        plate.entry(mark, "published")
        values.append(found.published.value)
    return values


CLAIM = "latency_spread_between_widths"
Series = tuple[list[float], list[float]]


def maxima_judged(notes: Notes, sweep: Sweep, depth: int) -> tuple[Judged, ...]:
    """The verdicts on how far the maxima of this sweep are apart."""
    workloads = {str(cell.workload) for cell in sweep.at(depth)}
    arrays = {str(cell.geometry) for cell in sweep.at(depth)}
    return tuple(
        each
        for each in notes.of_claims(CLAIM)
        if set(each.evidence.workloads) <= workloads and set(each.evidence.geometries) <= arrays
    )


def maxima_chart(notes: Notes, sweep: Sweep, depth: int, prefix: str = "maxima") -> Chart | None:
    """None where no I/O was slow or fast in one of them. Of a level of which only one array was built, of that."""
    cells = sweep.at(depth)
    pair = (cells[0], cells[-1]) if len(sweep.widths) > 1 else tuple(cells)
    curves = [(cell, maxima(notes, cell)) for cell in pair]
    if len(cells) < len(pair) or any(not ys for _, (_, ys) in curves):
        return None
    verdicts = maxima_judged(notes, sweep, depth)
    apart = verdicts[0].evidence if verdicts else None
    name = f"{family_name(sweep.family)} QD {depth}"
    key = slug(prefix, sweep.level, name)
    of = " and ".join(str(cell.geometry.width) for cell in pair)
    title = f"{sweep.state}: slowest I/Os of {of} drives, {name}"
    with drawing():
        plate = Plate.of(2.8)
        axes = plate.axes("time", "slowest I/O")
        for index, (cell, (xs, ys)) in enumerate(curves):
            shown = extremes(xs, ys)
            told = [f"{cell.geometry}: {format_latency(y)} at {x:,.0f} s" for x, y in zip(*shown, strict=True)]
            line = parted(*shown, gaps(xs))
            plate.line(
                axes, *line, index, f"{cell.geometry.width} drives", told=told, marked=len(shown[0]) <= MOST_ROWS
            )
        base.suited(axes, Unit.NANOSECONDS, [y for _, (_, ys) in curves for y in ys])
        unit = base.seconds(axes, max(xs[-1] for _, (xs, _) in curves))
        axes.set_xlabel(f"time, {unit}")
        svg = plate.svg(key, title, f"Maximum latency over time of {of} drives.")
    apart_words = f" {sentence(apart.sentence)}" if apart else ""
    count = max(len(xs) for _, (xs, _) in curves)
    stalls = (
        " Where a line has a gap, no I/O ended or fio told nothing." if any(gaps(xs) for _, (xs, _) in curves) else ""
    )
    caption = f"Every point is the slowest of all I/Os since the one before.{stalls}{apart_words}{condensing(count)}"
    rows = tuple(
        (str(cell.geometry), f"{x:,.1f} s", format_latency(y))
        for cell, (xs, ys) in curves
        for x, y in condensed(list(zip(xs, ys, strict=True)))
    )
    return Chart(
        key, title, caption, svg, ChartTable(("array", "until", "slowest I/O"), rows), tests_of(verdicts), sweep.level
    )


def maxima(notes: Notes, cell: NotedMeasurement) -> Series:
    """Of the first run, by fio's own intervals; by rounds where its output is not there or too large."""
    runs = data.runs_of(notes.story.folder, cell)
    if runs:
        return data.series(runs[0], data.slowest_ns)
    return data.noted_rounds(cell, cell.runs[0].round_max_latency_ns)
