"""Many runs over time: the verdict of each run by product, and the worst margin of a claim in each run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pytest_ssdqual.report.archive.dashboard import MarginPoint, ModelFirmware, ProductHistory, product_of
from pytest_ssdqual.report.drawing.chart import Chart, printable, sentence, slug
from pytest_ssdqual.report.drawing.figure import WIDTH_IN, Plate, drawing
from pytest_ssdqual.report.drawing.palette import MARKERS, colour
from pytest_ssdqual.report.run_summary.fitness import WORDS
from pytest_ssdqual.report.view.tables import Table, label, short_margin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows of the chart of verdicts, and products with a series of their own.
MOST_PRODUCTS, MOST_SERIES = 24, 7
#: Margins beyond this are drawn at the edge.
MOST_PERCENT = 100.0
#: Series of the palette by the word of a verdict; the marker differs as well.
SERIES = dict(zip(WORDS, (2, 1, 6, 4, 5, 3), strict=True))


def verdicts(products: Sequence[ProductHistory]) -> Chart:
    """Return the verdict of each run: a row for each product, by the start of the run."""
    shown = products[:MOST_PRODUCTS]
    title = "Verdicts over time"
    rest = f" The first {len(shown)} of {len(products):,} products." if len(products) > len(shown) else ""
    caption = f"Each mark is a run, in the row of its model and firmware.{rest}"
    with drawing():
        plate = Plate.of(max(1.5, 0.75 + 0.36 * len(shown)))
        axes = plate.axes("", "")
        for word, index in SERIES.items():
            marks = [
                (run.started, row, f"{run.name}: {run.view.verdict.word}. {run.view.verdict.sentence}")
                for row, history in enumerate(shown)
                for run in history.runs
                if run.view.verdict.word == word
            ]
            _marks(plate, axes, marks, index, word[0].lower() + word[1:])
        axes.set_yticks(range(len(shown)), [printable(str(each.product), 26) for each in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        _dates(axes, left_in=2.15)
        svg = plate.svg("verdicts", title, caption)
    rows = [(f"{run.started:%Y-%m-%d %H:%M}", str(each.product), run.name, run.view.verdict.word) for each in products
            for run in each.runs]  # fmt: skip
    return Chart("verdicts", title, caption, svg, Table(("Started", "ModelFirmware", "Run", "Verdict"), tuple(rows)))


def margin(claim: str, points: Sequence[MarginPoint]) -> Chart:
    """Return the worst margin of a claim in each run, a series for each product."""
    title = sentence(label(claim)).rstrip(".")
    named = list(dict.fromkeys(product_of(point.run) for point in points))
    rest = f" Products beyond the first {MOST_SERIES} share a mark." if len(named) > MOST_SERIES else ""
    caption = (
        "Of each run the verdict that is closest to its limit, or misses it most: distance of the figure from the "
        f"limit in per cent, below zero on the bad side; beyond ±{MOST_PERCENT:g} % at the edge.{rest}"
    )
    with drawing():
        plate = Plate.of(2.7)
        axes = plate.axes("", "margin, %")
        for index, product in enumerate(named[:MOST_SERIES]):
            _series(plate, axes, [point for point in points if product_of(point.run) == product], index, product)
        others = [point for point in points if product_of(point.run) in named[MOST_SERIES:]]
        if others:
            _series(plate, axes, others, MOST_SERIES, "other products")
        plate.limit(axes, 0.0, "promised")
        _dates(axes)
        svg = plate.svg(slug("margin", claim), f"Margins of {label(claim)}", caption)
    rows = tuple(
        (
            f"{point.run.started:%Y-%m-%d %H:%M}",
            str(product_of(point.run)),
            point.run.name,
            short_margin(point.evidence),
            point.evidence.sentence,
        )
        for point in points
    )
    return Chart(
        slug("margin", claim),
        title,
        caption,
        svg,
        Table(("Started", "ModelFirmware", "Run", "Margin", "Verdict"), rows),
    )


def _series(plate: Plate, axes: Axes, points: Sequence[MarginPoint], index: int, product: ModelFirmware | str) -> None:
    ys = [min(max(point.percent, -MOST_PERCENT), MOST_PERCENT) for point in points]
    marks = [
        (point.run.started, y, f"{point.run.name}: {point.evidence.sentence}")
        for point, y in zip(points, ys, strict=True)
    ]
    _marks(plate, axes, marks, index, printable(str(product), 40), is_joined=True)


def _marks(plate: Plate, axes: Axes, marks: Sequence[tuple[datetime, float, str]], index: int, words: str, *,
           is_joined: bool = False) -> None:  # fmt: skip
    from matplotlib.dates import date2num

    if not marks:
        return
    dates = [date2num(started) for started, _, _ in marks]  # type: ignore[no-untyped-call]
    (drawn,) = axes.plot(
        dates, [y for _, y, _ in marks], linestyle=":" if is_joined else "", linewidth=0.8, color=colour(index),
        marker=MARKERS[index % len(MARKERS)], clip_on=False,
    )  # fmt: skip
    plate.add_tooltips(drawn, [text for _, _, text in marks])
    plate.entry(drawn, words)


def _dates(axes: Axes, left_in: float = 0.0) -> None:
    """Label the scale of time, and leave room for the names of rows."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.margins(x=0.04)
    if left_in:
        box = axes.get_position(original=True)
        left = left_in / WIDTH_IN
        axes.set_position((left, box.y0, box.x1 - left, box.height))
