"""Output of a history: text for the terminal, JSON, CSV, a chart over time, and a page; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pytest_ssdqual.qual.detect.trend import FEWEST, FEWEST_FOR_STEP, LevelStep, Trend
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.units import format_range, format_value
from pytest_ssdqual.qual.verdict import ratio as comparison
from pytest_ssdqual.report.archive.table_files import csv_of_records
from pytest_ssdqual.report.compare.compare_output import SCHEMA
from pytest_ssdqual.report.compare.history import FigureHistory, HistoryPoint
from pytest_ssdqual.report.drawing.plot import AnyMark, Chart, Line, Panel, Point, upright
from pytest_ssdqual.report.drawing.scales import Dates, Values, close, day
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.view.tables import Section, State, Table, TableRow, TextLine, label, text_lines

HEAD = ("", "figure", "interval", "firmware", "run", "remark")


def table(found: FigureHistory, width: int = 80) -> list[TextLine]:
    """Return the figure of each run, changes between runs, and the result."""
    return list(text_lines([_runs(found), Section("Result", tuple(map(TextLine, sentences(found))))], width))


def _runs(found: FigureHistory) -> Section:
    return Section(found.name, table=Table(HEAD, tuple(map(_row, found.points))))


def _row(point: HistoryPoint) -> TableRow:
    """Return ``2026-03-01 12:00 <run>`` and the figure."""
    estimate = point.figure.estimate
    drives = f", {len(point.figure.drives)} drives" if point.figure.drives else ""
    return (
        f"{point.time:%Y-%m-%d %H:%M} {point.run}{drives}",
        format_value(estimate.value, estimate.unit),
        format_range(estimate.low, estimate.high, estimate.unit),
        point.firmware,
        point.verdict,
        State(point.apart, Finding.INCONCLUSIVE) if point.apart else "",
    )


def sentences(found: FigureHistory) -> Iterator[str]:
    """Return the result, what else changed, and which runs were skipped."""
    yield from _shown(found)
    yield from _changes(found.series)
    for apart, number in Counter(point.apart for point in found.points if point.apart).items():
        what = f"of {apart} than the last one" if apart.startswith("another") else apart
        yield f"{number} of the runs {'is' if number == 1 else 'are'} {what}: shown, but not tested"
    if found.without:
        yield f"{found.without} more runs match and have no such figure"
    yield from found.passed_over


def _shown(found: FigureHistory) -> Iterator[str]:
    drift = found.drift
    if drift.runs < 2:
        yield "one run is no history"
        return
    yield (
        f"from run to run the figure scatters by {drift.scatter_percent:.2g} % (standard deviation of {drift.runs} runs"
        "), for whatever reason"
    )
    if not drift.is_enough:
        yield (
            f"{drift.runs} runs show neither a trend nor a change: that takes at least {FEWEST}; use ssdqual "
            "compare for two runs"
        )
        return
    lines = [_step(found, drift.step)] if drift.step else []
    lines += [_trend(drift.trend)] if drift.trend else []
    if not lines:
        yield (
            f"neither a trend nor a single change is shown by {drift.runs} runs at 95 %; that does not prove that "
            "there is none"
        )
    yield from lines if drift.is_rather_step else reversed(lines)
    if len(lines) > 1:
        kind = "a single change" if drift.is_rather_step else "a trend"
        yield f"both fit the figures; {kind} leaves less scatter"
    if not drift.step and drift.runs < FEWEST_FOR_STEP:
        yield f"a single change of figures that all differ cannot be shown by fewer than {FEWEST_FOR_STEP} runs"


def _trend(trend: Trend) -> str:
    return (
        f"trend: {trend.percent:+.2g} % from run to run (95 % CI {trend.low_percent:+.2g}…{trend.high_percent:+.2g} %, "
        f"Sen), p = {trend.p_value:.2g} (Mann-Kendall)"
    )


def _step(found: FigureHistory, step: LevelStep) -> str:
    series = found.series
    before, after = series[step.at - 1], series[step.at]
    between = f"single change between {before.run} and {after.run}"
    text = f"{between}: {_percent(step.ratio)} %, p = {step.p_value:.2g} (Pettitt)"
    levels = [[point.figure.estimate.value for point in part] for part in (series[: step.at], series[step.at :])]
    if min(map(len, levels)) < 2:
        return text
    old, new = (comparison.typical(each, found.unit) for each in levels)
    ratio = comparison.ratio(new, old)
    return f"{text}, interval {_percent(ratio.low)}…{_percent(ratio.high)} %"


def _percent(ratio: float) -> str:
    """Return a ratio as a change: ``-20.1``."""
    return f"{100 * (ratio - 1):+.1f}"


def _changes(series: Sequence[HistoryPoint]) -> Iterator[str]:
    """Return known changes between consecutive runs."""
    for before, after in pairwise(series):
        for name in ("firmware", "machine"):
            was, now = getattr(before, name), getattr(after, name)
            if was != now:
                yield f"the {name} changed between {before.run} and {after.run}: {was} -> {now}"


def record(found: FigureHistory) -> dict[str, object]:
    """Plain JSON data."""
    drift = found.drift
    return {
        "schema": SCHEMA,
        **found.key.record,
        "points": [_record(point) for point in found.points],
        "runs_counted": drift.runs,
        "scatter_percent": drift.scatter_percent,
        "trend": plain(drift.trend),
        "step": drift.step and {**plain(drift.step), "first_after": found.series[drift.step.at].run},
        "sentences": list(sentences(found)),
    }  # fmt: skip


def _record(point: HistoryPoint) -> dict[str, object]:
    return {
        "started": point.time.isoformat(),
        **{name: getattr(point, name) for name in ("run", "model", "firmware", "protocol", "machine", "counts")},
        "outcome": point.figure.outcome,
        "run_verdict": point.verdict,
        "drives": len(point.figure.drives),
        **plain(point.figure.estimate),
    }


def csv(found: FigureHistory) -> str:
    """Return a row for each run."""
    records = [{**_record(point), **found.key.record} for point in found.points]
    return csv_of_records(tuple(records[0]), records)


def svg(found: FigureHistory) -> str:
    """Return the chart as an SVG file."""
    return pages.svg_file(_chart(found))


def page(found: FigureHistory) -> str:
    """Return a self-contained page: result, chart, table."""
    lines = tuple(f"{each}." for each in sentences(found))
    chart = Section("Over time", (TextLine(caption(found)),), svg=_chart(found))
    return pages.sheet(f"History: {found.name}", lines, [chart, _runs(found)])


def caption(found: FigureHistory) -> str:
    """Return the caption of the chart."""
    others = " Hollow: not tested with the others, see the table." if len(found.series) < len(found.points) else ""
    return f"The figure of each run with its interval, by firmware.{others}"


def _chart(found: FigureHistory) -> str:
    marks = list[AnyMark]()
    groups = dict.fromkeys((point.firmware, point.counts) for point in found.points)
    for index, (firmware, counts) in enumerate(groups):
        points = [
            _point(point)
            for point in found.points
            if (point.firmware, point.counts) == (firmware, counts) and point.figure.estimate.unit is found.unit
        ]
        name = f"firmware {firmware}{'' if counts else ', not counted'}"
        marks.append(Line(points, index, name, {"linestyle": "", **({} if counts else {"markerfacecolor": "none"})}))
    drift = found.drift
    # A line where the figure changed, if a change is shown.
    if drift.step and (drift.is_rather_step or not drift.trend):
        before, after = (day(found.series[index].time) for index in (drift.step.at - 1, drift.step.at))
        marks.append(upright((before + after) / 2, "changed here"))
    panel = Panel(Dates(), Values(label(found.key.claim), found.unit, close), marks)
    return Chart("history", found.name, caption(found), panel, Table((), ())).svg


def _point(point: HistoryPoint) -> Point:
    estimate = point.figure.estimate
    is_bounded = math.isfinite(estimate.low) and math.isfinite(estimate.high)
    interval = (estimate.low, estimate.high) if is_bounded else None
    words = f"{point.run}: {estimate}, firmware {point.firmware}"
    return Point(day(point.time), estimate.value, interval=interval, words=words)
