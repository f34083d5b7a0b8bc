"""Many runs over time: the verdict of each run by product, and the worst margin of a claim in each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.drawing.chart import printable, sentence, slug
from pytest_ssdqual.report.drawing.plot import (
    HOLLOW,
    OUTCOMES,
    Chart,
    Line,
    Panel,
    Point,
    Style,
    level,
    lines_of,
    table_of,
)
from pytest_ssdqual.report.drawing.scales import Dates, Rows, Values, day, spread
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_summary.fitness import LOOKS, USE, Fitness, word_of
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view.tables import label, short_margin
from pytest_ssdqual.report.view.tables import margin as margin_of

#: A verdict of a run.
Margin = tuple[RunView, Evidence]
#: Rows of the chart of verdicts, and products with a series of their own.
MOST_PRODUCTS, MOST_SERIES = 24, 7
#: Margins beyond this are drawn at the edge.
MOST_PERCENT = 100.0
DOTS: Style = {"linestyle": "", "clip_on": False}
#: Style by the word of a verdict: hollow is not for acceptance.
STYLES = {word_of(each, True): OUTCOMES[LOOKS[each]] for each in Fitness}
STYLES[word_of(Fitness.NO_VERDICT, True)] = OUTCOMES[Finding.BOUNDED]
STYLES |= {word_of(each, False): {**OUTCOMES[LOOKS[each]], **HOLLOW} for each in USE}
JOINED: Style = {"linestyle": ":", "linewidth": 0.8, "clip_on": False}


def verdicts(products: Mapping[tuple[str, str], Sequence[RunView]]) -> Chart:
    """Return the verdict of each run: a row for each product, by the start of the run."""
    shown = list(products.items())[:MOST_PRODUCTS]
    lines = [
        Line(
            [
                Point(
                    day(run.started),
                    row,
                    (_started(run), ", ".join(product), run.name, f"{word}. {run.verdict.sentence}"),
                )
                for row, (product, runs) in enumerate(shown)
                for run in runs
                if run.verdict.word == word
            ],
            name=word[0].lower() + word[1:],
            style={**style, **DOTS},
        )
        for word, style in STYLES.items()
    ]
    rest = f" The first {len(shown)} of {len(products):,} products." if len(products) > len(shown) else ""
    caption = f"Each mark is a run, in the row of its model and firmware.{rest}"
    panel = Panel(Dates(), Rows([printable(", ".join(product), 26) for product, _ in shown], room_in=2.15), lines)
    table = table_of(("Started", "Model and firmware", "Run", "Verdict"), panel)
    height_in = max(1.5, 0.75 + 0.36 * len(shown))
    return Chart("verdicts", "Verdicts over time", caption, panel, table, height_in=height_in)


def margin(claim: str, margins: Sequence[Margin]) -> Chart:
    """Return the worst margin of a claim in each run, a series for each product."""
    products = [f"{run.models}, {run.firmware}" for run, _ in margins]
    named = list(dict.fromkeys(products))
    rest = f" Products beyond the first {MOST_SERIES} share a mark." if len(named) > MOST_SERIES else ""
    caption = (
        "Of each run the verdict that is closest to its limit, or misses it most: distance of the figure from the "
        f"limit in per cent, below zero on the bad side; beyond ±{MOST_PERCENT:g} % at the edge.{rest}"
    )
    groups: dict[str, list[Point]] = {}
    for product, (run, evidence) in zip(products, margins, strict=True):
        name = printable(product, 40) if named.index(product) < MOST_SERIES else "other products"
        y = min(max(margin_of(evidence), -MOST_PERCENT), MOST_PERCENT)
        row = _started(run), product, run.name, short_margin(evidence), evidence.sentence
        groups.setdefault(name, []).append(Point(day(run.started), y, row))
    panel = Panel(Dates(), Values("margin", Unit.PERCENT, spread), [*lines_of(groups, JOINED), level(0.0, "promised")])
    table = table_of(("Started", "Model and firmware", "Run", "Margin", "Verdict"), panel)
    title = sentence(label(claim)).rstrip(".")
    return Chart(slug("margin", claim), title, caption, panel, table, height_in=2.7)


def _started(run: RunView) -> str:
    return f"{run.started:%Y-%m-%d %H:%M}"
