"""The slowest I/O of every second in the smallest and in the widest array, one over the other."""

from __future__ import annotations

from pytest_ssdqual.qual.units import Unit, format_latency
from pytest_ssdqual.report.charts import base, outputs
from pytest_ssdqual.report.charts.chart import MOST_ROWS, Chart, Table, condensed, condensing, sentence, slug
from pytest_ssdqual.report.charts.data import Noted, Notes, family_name, tests_of
from pytest_ssdqual.report.charts.decimate import extremes, gaps, parted
from pytest_ssdqual.report.charts.figure import Plate, drawing
from pytest_ssdqual.report.charts.width import Sweep
from pytest_ssdqual.report.run_folder.story import Judged

CLAIM = "latency_spread_between_widths"
Series = tuple[list[float], list[float]]


def judged(notes: Notes, sweep: Sweep, depth: int) -> tuple[Judged, ...]:
    """The verdicts on how far the maxima of this sweep are apart."""
    workloads = {str(cell.workload) for cell in sweep.at(depth)}
    arrays = {str(cell.geometry) for cell in sweep.at(depth)}
    return tuple(
        each
        for each in notes.of_claims(CLAIM)
        if set(each.evidence.workloads) <= workloads and set(each.evidence.geometries) <= arrays
    )


def chart(notes: Notes, sweep: Sweep, depth: int, prefix: str = "maxima") -> Chart | None:
    """None where no I/O was slow or fast in one of them. Of a level of which only one array was built, of that."""
    cells = sweep.at(depth)
    pair = (cells[0], cells[-1]) if len(sweep.widths) > 1 else tuple(cells)
    curves = [(cell, maxima(notes, cell)) for cell in pair]
    if len(cells) < len(pair) or any(not ys for _, (_, ys) in curves):
        return None
    verdicts = judged(notes, sweep, depth)
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
        key, title, caption, svg, Table(("array", "until", "slowest I/O"), rows), tests_of(verdicts), sweep.level
    )


def maxima(notes: Notes, cell: Noted) -> Series:
    """Of the first run, by fio's own intervals; by rounds where its output is not there or too large."""
    runs = outputs.runs_of(notes.story.folder, cell)
    if runs:
        return outputs.series(runs[0], outputs.slowest_ns)
    return outputs.noted_rounds(cell, cell.runs[0].round_max_latency_ns)
