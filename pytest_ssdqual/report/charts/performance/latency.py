"""Latency: percentiles to p99.999 with intervals from merged histograms, and the slowest I/O of every second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew
from pytest_ssdqual.qual.stats.latency import quantile_of_rounds
from pytest_ssdqual.qual.units import Unit, format_latency, format_range
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.course.over_time import TimeCurve, curve_table, draw_curves, gaps_and_points
from pytest_ssdqual.report.charts.data import DrawnSeries, NotedMeasurement, Notes, family_name
from pytest_ssdqual.report.charts.performance.width import DrawnSweep
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import (
    Chart,
    sentence,
    slug,
)
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import LIMIT, PUBLISHED, colour
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import Table

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
    """Quantiles of a measurement, as far as there are enough I/Os."""

    noted: NotedMeasurement
    found: tuple[tuple[str, Estimate], ...]
    #: Why the next one is not known.
    refused: str


def tail(notes: Notes, noted: NotedMeasurement) -> TailCurve | None:
    """Return the quantiles from fio's output; None if it is missing, too large, or has too few I/Os."""
    runs = data.runs_of(notes.story.folder, noted)
    if not runs:
        return None
    rounds = tuple(chain.from_iterable(run.round_latency() for run in runs))
    found: list[tuple[str, Estimate]] = []
    for name, q in QUANTILES:
        try:
            estimate = quantile_of_rounds(rounds, q, noted.basis)
        except TooFew as reason:
            return TailCurve(noted, tuple(found), str(reason)) if found else None
        if estimate.unbounded:
            return TailCurve(noted, tuple(found), estimate.unbounded) if found else None
        found.append((name, estimate))
    return TailCurve(noted, tuple(found), "")


def chart(notes: Notes, tails: Sequence[TailCurve], title: str, key: str) -> Chart:
    """Draw a line over the quantiles for each measurement, with limits and published figures."""
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
        scales.by_decades(axes, Unit.NANOSECONDS, values)
        scales.places(axes, [name for name, _ in QUANTILES[: last + 1]])
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
    table = Table(("array", "workload", "quantile", "latency", "95 % interval", "I/Os"), rows)
    levels = {one.noted.geometry.level.value for one in tails}
    return Chart(slug(key), title, caption, svg, table, levels.pop() if len(levels) == 1 else "")


def judged(notes: Notes, noted: NotedMeasurement) -> list[Judged]:
    """Return the verdicts on the quantiles."""
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
    tooltips = [
        f"{one.noted.geometry} {one.noted.workload} {name}: {format_latency(each.value)}" for name, each in one.found
    ]
    plate.whiskers(axes, xs, ends, colour(index))
    plate.line(axes, xs, ys, index, f"{one.noted.geometry} {one.noted.workload}", tooltips=tooltips)
    return [*ys, *chain.from_iterable(ends)]


def _limit_words(verdicts: Sequence[Judged], each: Judged) -> str:
    """Return ``promised of p99: ≤ 300 ms``, with the workload if limits differ."""
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
    if found.limit is not None and found.unit is Unit.NANOSECONDS:
        line = axes.hlines([found.limit], [at - 0.3], [at + 0.3], colors=LIMIT, linewidth=1.8)
        plate.add_tooltips(line, [f"{found.workloads[0]}: {found.bound}"])
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


def maxima_judged(notes: Notes, sweep: DrawnSweep, depth: int) -> tuple[Judged, ...]:
    """Return the verdicts on the spread of maximum latency over this sweep."""
    workloads = {str(cell.workload) for cell in sweep.at(depth)}
    arrays = {str(cell.geometry) for cell in sweep.at(depth)}
    return tuple(
        each
        for each in notes.of_claims(CLAIM)
        if set(each.evidence.workloads) <= workloads and set(each.evidence.geometries) <= arrays
    )


def maxima_chart(notes: Notes, sweep: DrawnSweep, depth: int, prefix: str = "maxima") -> Chart | None:
    """Draw the maxima of the narrowest and the widest array; None if one has no I/O."""
    cells = sweep.at(depth)
    pair = (cells[0], cells[-1]) if len(sweep.widths) > 1 else tuple(cells)
    curves = [TimeCurve(str(cell.geometry), f"{cell.geometry.width} drives", *maxima(notes, cell)) for cell in pair]
    if len(cells) < len(pair) or any(not each.ys for each in curves):
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
        draw_curves(plate, axes, curves, Unit.NANOSECONDS, ())
        svg = plate.svg(key, title, f"Maximum latency over time of {of} drives.")
    apart_words = f" {sentence(apart.sentence)}" if apart else ""
    caption = f"Every point is the slowest of all I/Os since the one before.{apart_words}{gaps_and_points(curves)}"
    table = curve_table(curves, "array", "slowest I/O", Unit.NANOSECONDS)
    return Chart(key, title, caption, svg, table, sweep.level)


def maxima(notes: Notes, cell: NotedMeasurement) -> DrawnSeries:
    """Return the maxima of the first run, or of all cells, by fio's intervals; by rounds if its output is not there."""
    runs, count = data.runs_of(notes.story.folder, cell), None if cell.visited else 1
    parts = [data.series(run, data.slowest_ns) for run in runs[:count]] or [
        data.noted_rounds(cell, run.round_max_latency_ns) for run in cell.runs[:count]
    ]
    if not cell.visited:
        return parts[0]
    visits = data.by_visit(parts, cell.visited, cell.runs[0].window_s)
    return [at for times, _ in visits for at in times], [value for _, values in visits for value in values]
