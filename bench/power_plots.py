"""Plots of the simulations of ``verdict_power``, in the colour-blind safe colours of Okabe and Ito."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from power_table import Cell, Cells, Share, distances, distinct, picked
from stopping_rules import TITLES

from pytest_ssdqual.qual.verdict.verdict import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SKY, ORANGE, LIGHT = "#56B4E9", "#E69F00", "#EEEEEE"
#: One colour and one marker for each rule, in the order of their titles.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2")
MARKERS = "osv^DP"
STYLES = dict(zip(TITLES, zip(COLOURS, MARKERS, strict=True), strict=True))
DISTANCE = "true mean of the drive, % from the limit"


def draw(folder: Path, cells: Cells) -> None:
    """Write all plots as PNG files into a folder; raises ``ImportError`` without matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 110})
    for name, plot in (("characteristic", _characteristic), ("time", _time), ("errors", _errors)):
        figure = plot(cells)
        figure.savefig(folder / f"{name}.png", bbox_inches="tight")
        figure.clear()


def _rules(cells: Cells) -> list[str]:
    return distinct(cell.rule for cell in cells)


def _runs(cells: Cells) -> int:
    return min(len(cell.outcomes) for cell in cells)


def _title(rule: str) -> str:
    return TITLES.get(rule, rule)


def _characteristic(cells: Cells) -> Figure:
    """Draw one panel for each rule: passes from below, fails from above, inconclusive between them."""
    import matplotlib.pyplot as plt

    names, where = _rules(cells), distances(cells)
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    size = (4 * columns, 3 * rows + 1.2)
    figure, axes = plt.subplots(rows, columns, figsize=size, sharey=True, squeeze=False)
    for axis, rule in zip(axes.flat, names, strict=False):
        _panel(axis, [_here(cells, rule, each) for each in where])
        axis.set_title(_title(rule), fontsize=10.5)
        axis.set_xticks(where, _ticks(where))
    for axis in list(axes.flat)[len(names) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("% of runs")
    figure.supxlabel(DISTANCE, fontsize=11)
    kinds = len(distinct(cell.kind for cell in cells))
    figure.suptitle(f"How often a rule passes and fails a drive ({kinds} kinds, {_runs(cells):,} runs of each)")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=4, frameon=False, bbox_to_anchor=(0.5, 0.96))
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    return figure


def _panel(axis: Axes, at: Sequence[Sequence[Cell]]) -> None:
    where = [here[0].distance_percent for here in at]
    passes, fails = (
        [[cell.share(outcome).percent for cell in here] for here in at] for outcome in (Outcome.PASS, Outcome.FAIL)
    )
    passed, not_failed = [fmean(each) for each in passes], [100 - fmean(each) for each in fails]
    axis.fill_between(where, 0, passed, color=SKY, lw=0, label="passes, mean of kinds")
    axis.fill_between(where, passed, not_failed, color=LIGHT, lw=0, label="inconclusive")
    axis.fill_between(where, not_failed, 100, color=ORANGE, lw=0, label="fails")
    for side, worst, marker in (
        ((min(where), 0.0), [max(each) for each in passes], "^"),
        ((0.0, max(where)), [100 - max(each) for each in fails], "v"),
    ):
        points = [(x, y) for x, y in zip(where, worst, strict=True) if side[0] <= x <= side[1]]
        label = "worst kind for that distance: wrongly passes ▲, wrongly fails ▼" if marker == "^" else None
        axis.plot(*zip(*points, strict=True), color="black", lw=1.2, marker=marker, ms=5, label=label, clip_on=False)
    axis.axvline(0, color="black", lw=0.8, ls=":")
    axis.set_xlim(min(where), max(where))
    axis.set_ylim(0, 100)


def _time(cells: Cells) -> Figure:
    """Mean time on well conditioned drives and on all kinds."""
    import matplotlib.pyplot as plt

    names, where = _rules(cells), distances(cells)
    kinds = distinct(cell.kind for cell in cells)
    panels = [(f"kind: {kind}", [kind]) for kind in kinds[:1]] + [(f"mean of {len(kinds)} kinds", kinds)]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True)
    for axis, (title, chosen) in zip(axes, panels, strict=True):
        for rule in names:
            here = [[cell for cell in _here(cells, rule, each) if cell.kind in chosen] for each in where]
            means = [fmean(cell.mean_minutes for cell in at) for at in here]
            colour, marker = STYLES.get(rule, ("#999999", "x"))
            wide = 2.4 if rule == "ours" else 1.5
            axis.plot(where, means, color=colour, marker=marker, ms=5, lw=wide, label=_title(rule))
            if rule == "ours":
                slow = [fmean(cell.slow_minutes for cell in at) for at in here]
                axis.plot(where, slow, color=colour, lw=1, ls="--", label="  its 90th percentile")
        axis.set_title(title, fontsize=10.5)
        axis.set_xlabel(DISTANCE)
        axis.set_xticks(where, _ticks(where))
        axis.set_yscale("log")
        axis.set_yticks((5, 10, 20, 30, 60, 120, 240), ("5", "10", "20", "30", "60", "120", "240"))
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("minutes of load until the verdict")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9.5)
    figure.suptitle(f"How long a verdict takes ({_runs(cells):,} runs of each kind)", fontsize=13)
    figure.tight_layout()
    return figure


def _errors(cells: Cells) -> Figure:
    """Heat maps of wrong verdicts: kinds by rules, at and near the limit."""
    import matplotlib.pyplot as plt
    import numpy as np

    wanted: tuple[tuple[str, float, Callable[[Cell], Share | None]], ...] = (
        ("bad drive, −2 %, passes", -2.0, lambda cell: cell.false_accept),
        ("drive at the limit passes", 0.0, lambda cell: cell.false_accept),
        ("good drive, +2 %, fails", 2.0, lambda cell: cell.false_reject),
    )
    panels = [each for each in wanted if each[1] in distances(cells)]
    names, kinds = _rules(cells), distinct(cell.kind for cell in cells)
    figure, axes = plt.subplots(
        1, max(1, len(panels)), figsize=(1.5 + 0.62 * len(names) * len(panels) + 2.2, 1.9 + 0.36 * len(kinds)),
        sharey=True, squeeze=False,
    )  # fmt: skip
    for axis, (title, distance, of) in zip(axes.flat, panels, strict=False):
        percents = [[_percent(cells, rule, kind, distance, of) for rule in names] for kind in kinds]
        # The square root separates 1 % from 5 % as well as 50 % from 100 %.
        roots = [[value**0.5 for value in row] for row in percents]
        axis.imshow(roots, cmap="Oranges", vmin=0, vmax=11, aspect="auto")
        for (row, column), value in np.ndenumerate(percents):
            shown = f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:.0f}"
            colour = "white" if value > 45 else "black"
            axis.text(column, row, shown, ha="center", va="center", fontsize=8.5, color=colour)
        axis.set_title(title, fontsize=10.5)
        axis.set_xticks(range(len(names)), [_title(rule) for rule in names], rotation=40, ha="right", fontsize=8.5)
        axis.set_yticks(range(len(kinds)), kinds)
        axis.tick_params(length=0)
        for spine in axis.spines.values():
            spine.set_visible(False)
    figure.suptitle(f"Wrong verdicts, % of {_runs(cells):,} runs", fontsize=13)
    figure.tight_layout()
    return figure


def _ticks(where: Sequence[float]) -> list[str]:
    return [f"{each:+g}".replace("-", "−") if each else "0" for each in where]


def _here(cells: Cells, rule: str, distance: float) -> list[Cell]:
    return picked(cells, rule, where=lambda each: each == distance)


def _percent(cells: Cells, rule: str, kind: str, distance: float, of: Callable[[Cell], Share | None]) -> float:
    (cell,) = picked(cells, rule, kind, lambda each: each == distance)
    share = of(cell)
    return share.percent if share else 0.0
