"""Response times at the end of a saturation: how many I/Os took how long (SNIA PTS, write saturation)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.latency import quantile_of_rounds
from pytest_ssdqual.qual.units import Unit, format_duration, format_latency
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.course import saturation
from pytest_ssdqual.report.charts.course.saturation import MOST_DRIVES, SaturationStrip
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.charts.performance import latency
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, printable, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import DASHES, LIMIT, colour
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

#: Bars of each power of two of latency; fio has 64 buckets.
BARS = 8


def chart(notes: Notes, strip: SaturationStrip, prefix: str = "response-times") -> Chart | None:
    """Draw a line for each of few drives; None if fio's output is gone or the curve never became steady."""
    found = data.saturation_of(notes.story.folder, strip.facts)
    try:
        measured = found.response_times() if found else None
    except TooFew:
        return None
    if measured is None or not measured.latency:
        return None
    shown = measured.members() if 1 < strip.drives <= MOST_DRIVES else (measured,)
    names = [each.runs[0].drive or f"{strip.geometry}" for each in shown]
    lasted = format_duration(measured.runs[0].window_s)
    key = slug(prefix, str(strip.geometry), str(strip.workload))
    title = f"{strip.geometry}: response times of {strip.workload} in the last {lasted} of the saturation"
    limits = [
        each.evidence
        for each in saturation.judged(notes, strip)
        if each.evidence.unit is Unit.NANOSECONDS and each.evidence.limit is not None
    ]
    with drawing():
        plate = Plate.of()
        _draw(plate, shown, names)
        for each in limits:
            line = plate.figure.axes[0].axvline(each.limit or 0.0, color=LIMIT, linestyle=(0, (6, 2)), linewidth=1.4)
            plate.entry(line, f"promised, {each.claim.removesuffix('_latency')}: {each.bound}")
        svg = plate.svg(key, title, f"Histograms of {len(names)} targets on logarithmic scales.")
    caption = (
        f"I/Os of the steady state by their latency, {BARS} bars for each factor of two. "
        "Both scales are logarithmic, so that the few slowest I/Os are seen beside the many fast ones."
    )
    table = Table(
        ("of", "I/Os", "mean", *(name for name, _ in latency.QUANTILES), "slowest"),
        tuple(_row(name, each) for name, each in zip(names, shown, strict=True)),
    )
    return Chart(key, title, caption, svg, table, strip.geometry.level.value)


def _draw(plate: Plate, shown: Sequence[Measured], names: Sequence[str]) -> None:
    axes = plate.axes("latency", "I/Os")
    short = shortened(names) if len(names) > 1 else {}
    bars = [_bars(each.latency) for each in shown]
    for index, (name, counts) in enumerate(zip(names, bars, strict=True)):
        places = range(min(counts), max(counts) + 1)
        edges = [2 ** (place / BARS) for place in (*places, places.stop)]
        drawn = axes.stairs(
            [counts[place] for place in places], edges, color=colour(index), linestyle=DASHES[index % len(DASHES)]
        )
        if len(names) > 1:
            plate.entry(drawn, printable(short.get(name, name), 24))
    scales.by_decades(axes, Unit.COUNT, [count for counts in bars for count in counts.values()])
    axes.set_ylim(bottom=0.7)  # a single I/O is seen
    axes.set_xscale("log")
    scales.label(axes.xaxis, Unit.NANOSECONDS)


def _bars(histogram: LatencyHistogram) -> Counter[int]:
    """Return the I/Os by ``BARS`` times the binary logarithm of their latency in nanoseconds, rounded down."""
    counts: Counter[int] = Counter()
    for value_ns, count in histogram.bins:
        counts[math.floor(BARS * math.log2(max(1, value_ns)))] += count
    return counts


def _row(name: str, measured: Measured) -> tuple[str, ...]:
    histogram, rounds = measured.latency, measured.round_latency()
    found = []
    for _, q in latency.QUANTILES:
        try:
            found.append(format_latency(quantile_of_rounds(rounds, q).value))
        except TooFew:
            found.append("too few I/Os")
    return (
        name, f"{histogram.total:,}", format_latency(histogram.mean_ns), *found, format_latency(histogram.max_ns)
    )  # fmt: skip
