"""Latency: percentiles to p99.999 with intervals from merged histograms, and the slowest I/O of every second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew
from pytest_ssdqual.qual.stats.latency import quantile_of_rounds
from pytest_ssdqual.qual.units import Unit, format_latency, format_range
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes, family_name
from pytest_ssdqual.report.charts.performance.width import DrawnSweep
from pytest_ssdqual.report.drawing.chart import Pair, sentence, slug
from pytest_ssdqual.report.drawing.plot import (
    AnyMark,
    Chart,
    DrawnCourse,
    Line,
    Panel,
    Point,
    over_time,
    published,
    stretches,
    table_of,
)
from pytest_ssdqual.report.drawing.scales import Places, Seconds, Values, by_decades
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.view.grid import shared
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


@frozen
class TailCurve:
    """Quantiles of a measurement, as far as there are enough I/Os."""

    noted: NotedMeasurement
    found: tuple[tuple[str, Estimate], ...]
    #: Why the next one is not known.
    refused: str

    @property
    def names(self) -> tuple[str, str]:
        return str(self.noted.geometry), str(self.noted.workload)


def tail(notes: Notes, noted: NotedMeasurement) -> TailCurve | None:
    """Return the quantiles from fio's output; None if it is missing, too large, or has too few I/Os."""
    runs = data.runs_of(notes.story.folder, noted)
    if not runs:
        return None
    rounds = tuple(chain.from_iterable(run.round_latency() for run in runs))
    found: list[tuple[str, Estimate]] = []
    refused = ""
    for name, q in QUANTILES:
        try:
            estimate = quantile_of_rounds(rounds, q, noted.basis)
            refused = estimate.unbounded
        except TooFew as reason:
            refused = str(reason)
        if refused:
            break
        found.append((name, estimate))
    return TailCurve(noted, tuple(found), refused) if found else None


def chart(notes: Notes, tails: Sequence[TailCurve], title: str) -> Chart:
    """Draw a line over the quantiles for each measurement, with limits and published figures."""
    verdicts = [evidence for one in tails for evidence in judged(notes, one.noted)]
    places = {id(evidence): PLACES[evidence.claim.removesuffix("_latency")] for evidence in verdicts}
    last = max([*places.values(), *(PLACES[one.found[-1][0]] for one in tails)])
    marks: list[AnyMark] = []
    for index, one in enumerate(tails):
        points = _points(one, 0.06 * (index - (len(tails) - 1) / 2))
        marks.append(Line(points, index, " ".join(one.names)))
    for evidence in verdicts:
        at = places[id(evidence)]
        if evidence.limit is not None and evidence.unit is Unit.NANOSECONDS:
            stretch = [(at - 0.3, at + 0.3, evidence.limit)]
            words = f"{evidence.workload}: {evidence.bound}"
            marks.append(stretches(stretch, _limit_words(verdicts, evidence), words=words))
        if evidence.published and evidence.published.unit is Unit.NANOSECONDS:
            marks.append(published([(at, evidence.published)]))
    reasons = list(dict.fromkeys(one.refused for one in tails if one.refused))
    others = f" (so, or alike, for {len(reasons)} of {len(tails)})" if len(reasons) > 1 else ""
    caption = (
        "Read from all rounds' histograms together, never averaged; whiskers are 95 % intervals from how rounds differ."
        f"{f' Not shown: {reasons[0]}{others}.' if reasons else ''}"
    )
    across = Places("share of I/Os with this latency or less", [name for name, _ in QUANTILES[: last + 1]])
    panel = Panel(across, Values("latency", Unit.NANOSECONDS, by_decades), marks)
    columns = ("array", "workload", "quantile", "latency", "95 % interval", "I/Os")
    return Chart(
        slug("tail", tails[0].noted.geometry),
        title,
        caption,
        panel,
        table_of(columns, panel),
        shared(one.noted.geometry.level.value for one in tails),
    )


def judged(notes: Notes, noted: NotedMeasurement) -> list[Evidence]:
    """Return the verdicts on the quantiles."""
    return [
        evidence
        for name in PLACES
        for evidence in notes.verdicts(f"{name}_latency", str(noted.geometry), str(noted.workload))
    ]


def _points(one: TailCurve, offset: float) -> list[Point]:
    points = []
    for name, estimate in one.found:
        interval = format_range(estimate.low, estimate.high, Unit.NANOSECONDS)
        row = (*one.names, name, format_latency(estimate.value), interval, f"{estimate.n:,}")
        ends = (estimate.low, estimate.high if math.isfinite(estimate.high) else estimate.value)
        points.append(Point(PLACES[name] + offset, estimate.value, row, ends))
    return points


def _limit_words(verdicts: Sequence[Evidence], evidence: Evidence) -> str:
    """Return ``promised of p99: ≤ 300 ms``, with the workload if limits differ."""
    claim, bound = evidence.claim, evidence.bound
    rivals = [one for one in verdicts if one.claim == claim and one.limit is not None]
    words = f"promised, {claim.removesuffix('_latency')}: {bound}"
    if len({one.bound for one in rivals}) < 2:
        return words
    named = list(dict.fromkeys(one.workload for one in rivals if one.bound == bound))
    return f"{words} for {named[0] if len(named) == 1 else f'{len(named)} of them'}"


CLAIM = "latency_spread_between_widths"


def maxima_chart(notes: Notes, sweep: DrawnSweep, depth: int) -> Chart | None:
    """Draw the maxima of the narrowest and the widest array; None if one has no I/O."""
    cells = sweep.at(depth)
    pair = (cells[0], cells[-1]) if len(sweep.widths) > 1 else tuple(cells)
    courses = over_time(
        [DrawnCourse(str(cell.geometry), maxima(notes, cell), f"{cell.geometry.width} drives") for cell in pair],
        Unit.NANOSECONDS,
    )
    if len(cells) < len(pair) or not all(course.points for course in courses.series):
        return None
    apart = "".join(f" {sentence(evidence.sentence)}" for evidence in notes.within(cells, CLAIM)[:1])
    caption = f"Every point is the slowest of all I/Os since the one before.{apart}{courses.remarks}"
    name = f"{family_name(sweep.family)} QD {depth}"
    widths = " and ".join(str(cell.geometry.width) for cell in pair)
    title = f"{sweep.state}: slowest I/Os of {widths} drives, {name}"
    panel = Panel(Seconds(), Values("slowest I/O", Unit.NANOSECONDS), courses.lines())
    table = Table(("array", "until", "slowest I/O"), courses.rows())
    return Chart(slug("maxima", sweep.level, name), title, caption, panel, table, sweep.level, 2.8)


def maxima(notes: Notes, cell: NotedMeasurement) -> list[Pair]:
    """Return the maxima of the first run, or of all cells."""
    found = data.courses(notes.story.folder, cell, data.slowest_ns, attrgetter("round_max_latency_ns"), 1)
    return list(chain.from_iterable(found))
