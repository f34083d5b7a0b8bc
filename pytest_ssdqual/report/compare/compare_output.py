"""Output of a comparison: text for the terminal, a chart and a page, JSON in base units, CSV; pure.

Terminal and page show the same sections, JSON and CSV the same records.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.stats.estimate import Estimate, format_confidence
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.verdict.ratio import Change, ChangeKind
from pytest_ssdqual.report.archive.table_files import csv_of_records
from pytest_ssdqual.report.charts.ratios import spread
from pytest_ssdqual.report.compare.circumstances import Weight, firmware_of, model_of
from pytest_ssdqual.report.compare.compare import Against, Comparison, Pair, whole
from pytest_ssdqual.report.compare.compared_run import ComparedRun, FigureKey
from pytest_ssdqual.report.drawing.plot import HOLLOW, OUTCOMES, Chart, Line, Point, Style
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.view.tables import (
    Section,
    State,
    Table,
    TableRow,
    TextLine,
    bounded,
    label,
    sentences,
    text_lines,
)

#: Mark and colour of each kind of change, in the order of output.
LOOKS = {
    ChangeKind.WORSE: Finding.FAIL,
    ChangeKind.BETTER: Finding.PASS,
    ChangeKind.WORSE_ALONE: Finding.INCONCLUSIVE,
    ChangeKind.BETTER_ALONE: Finding.OBSERVED,
    ChangeKind.WORSE_READ: Finding.OBSERVED,
    ChangeKind.BETTER_READ: Finding.OBSERVED,
    ChangeKind.OPEN: Finding.OBSERVED,
}
ORDER = list(LOOKS)
HEAD = ("", "first", "now", "change", "interval", "")
SCATTER = (
    "An interval covers the variation within its run. Runs of the same drive also differ from each other, which two "
    "runs do not show: repeat a run to measure it, and give it with --run-to-run."
)
#: Maximum number of rows of the chart, and of the table of a claim: a full run has thousands of figures.
MOST_ROWS, MOST_LISTED = 40, 1000
#: Room for the names of the chart's rows.
NAMES_IN = 3.1
#: Schema of the JSON of comparisons and histories.
SCHEMA = 2
#: Columns of CSV.
COLUMNS = (
    "run", "against", *(each.name for each in fields(FigureKey)), "geometry", "workload", "direction",
    *(f"{of}_{each.name}".removesuffix("_value") for of in ("first", "now", "ratio") for each in fields(Estimate)),
    "change_percent", "shown", "p_value", "drives_paired", "drive",
)  # fmt: skip


def table(found: Comparison, width: int = 80, *, every: bool = False) -> list[TextLine]:
    """Return the comparison as text; with ``every`` also figures without a shown difference."""
    return list(text_lines(sections(found, _value, every=every), width))


def page(found: Comparison) -> str:
    """Return a self-contained page: circumstances, chart, tables."""
    lead = [f"{other.run.name} against {found.first.name}: {counted(other)}." for other in found.others]
    chart = Section("Changes", sentences(caption(found)), svg=_chart(found).svg)
    runs, circumstances, *rest = sections(found, str, every=True)
    return pages.sheet("Runs compared", lead, [runs, circumstances, chart, *rest])


def sections(found: Comparison, shown: Callable[[Estimate], str], *, every: bool) -> Iterator[Section]:
    """Yield circumstances, then the figures of each run, then how sure all of it is; ``shown`` is a figure's text."""
    yield Section("Runs", sentences(*_runs(found)))
    yield Section("Circumstances", tuple(_circumstances(found)))
    for other in found.others:
        yield from _against(other, shown, every=every)
        title = f"{other.run.name} against {found.first.name}"
        yield Section(title, (TextLine(counted(other), ("bold",)), *_rest(other, every=every)))
    scatter = _widened(found) if found.run_to_run_percent else SCATTER
    yield Section("Confidence", sentences(caution(found), scatter))


def _runs(found: Comparison) -> Iterator[str]:
    for number, run in enumerate((found.first, *(each.run for each in found.others))):
        called = f"run {number + 1}" if number and len(found.others) > 1 else ("first", "now")[min(number, 1)]
        unread = f", {run.unreadable:,} records unreadable" if run.unreadable else ""
        ended = "" if run.has_ended else ", has not ended"
        when = run.started[:16] or "time unknown"
        yield f"{called}: {run.name}, {when}, {len(run.figures):,} figures{unread}{ended}: {run.verdict}"
        yield from (f"cause in {called}: {each}" for each in run.causes)


def _circumstances(found: Comparison) -> Iterator[TextLine]:
    """Yield what differs, the gravest difference first, then what is the same."""
    if not found.differences:
        yield TextLine("no known difference of machine, drives, spec, protocol and versions", ("bold",))
    for fact in sorted(found.differences, key=lambda each: -each.weight):
        markup = {Weight.FORBIDS: ("red", "bold"), Weight.LOUD: ("yellow", "bold")}.get(fact.weight, ())
        meaning = f"; {fact.meaning}" if fact.meaning else ""
        yield TextLine(f"differs: {fact.name}: {' -> '.join(fact.values)}{meaning}", markup)
    alike = ", ".join(f"{each.name} {each.values[0]}" for each in found.alike)
    yield TextLine(f"the same: {alike or 'nothing known'}")


def _against(other: Against, shown: Callable[[Estimate], str], *, every: bool) -> Iterator[Section]:
    """Yield a table for each claim."""
    listed = other.pairs if every else _shown(_distinct(other))
    for claim in sorted({pair.key.claim for pair in listed}):
        of_claim = sorted((pair for pair in listed if pair.key.claim == claim), key=significance)
        rows = [_row(pair, shown) for pair in of_claim]
        yield Section(label(claim), table=bounded(HEAD, rows, label(claim), MOST_LISTED, "--csv has them"))


def _shown(pairs: Iterable[Pair]) -> list[Pair]:
    return [pair for pair in pairs if pair.change.shown is not ChangeKind.OPEN]


def _distinct(other: Against) -> list[Pair]:
    """Return the figures without those of single drives that changed as all drives did."""
    together = {pair.key: pair.change for pair in other.pairs if not pair.drive}
    return [
        pair
        for pair in other.pairs
        if not (pair.drive and pair.key in together and _is_alike(pair.change, together[pair.key]))
    ]


def _is_alike(change: Change, together: Change) -> bool:
    """Return whether a drive's change and that of all drives together may be the same: shown both or not at all."""
    overlaps = change.ratio.low <= together.ratio.high and change.ratio.high >= together.ratio.low
    return overlaps and (change.shown is ChangeKind.OPEN) is (together.shown is ChangeKind.OPEN)


def _row(pair: Pair, shown: Callable[[Estimate], str]) -> TableRow:
    state = State(pair.change.shown.value, LOOKS[pair.change.shown])
    return f"{pair.name}{_drives(pair)}", shown(pair.old.estimate), shown(pair.new.estimate), *_change(pair), state


def _value(estimate: Estimate) -> str:
    return format_value(estimate.value, estimate.unit)


def _drives(pair: Pair) -> str:
    if pair.paired:
        return f", {pair.paired} drives paired"
    return f", {len(pair.old.drives)} and {len(pair.new.drives)} drives" if pair.old.drives else ""


def _change(pair: Pair) -> tuple[str, str]:
    """Return the change in per cent and its interval, of a percentage in percentage points."""
    ratio, is_percentage = pair.change.ratio, pair.old.estimate.unit is Unit.PERCENT
    all_of_it, unit = (whole(pair.old).value, "points") if is_percentage else (100.0, "%")
    value, low, high = (all_of_it * (each - 1) for each in (ratio.value, ratio.low, ratio.high))
    ends = (f"{each:+.1f}" if math.isfinite(each) else "∞" for each in (low, high))
    return f"{value:+.1f} {unit}", f"{'…'.join(ends)} {unit}"


def counted(other: Against) -> str:
    """Return ``of 256 figures compared: 3 worse; 1 better; 240 no difference shown``."""
    counts = Counter(pair.change.shown for pair in other.pairs)
    changes = "; ".join(f"{counts[kind]:,} {kind.value}" for kind in ORDER if counts[kind])
    return f"of {len(other.pairs):,} figures compared: {changes or 'none'}"


def _rest(other: Against, *, every: bool) -> Iterator[TextLine]:
    """Yield what is not listed or not compared, and counts that failed only now."""
    hidden = 0 if every else other.count(ChangeKind.OPEN)
    alike = 0 if every else len(_shown(other.pairs)) - len(_shown(_distinct(other)))
    if hidden:
        yield TextLine(f"{hidden:,} with no difference shown are not listed: --all lists them")
    if alike:
        yield TextLine(f"{alike:,} of single drives that changed as all drives did are not listed: --all lists them")
    for why, count in other.left_out.items():
        yield TextLine(f"{count:,} figure{'' if count == 1 else 's'} not compared: {why}", ("yellow",))
    if other.rejected:
        passed = "verdict on a count" if other.rejected == 1 else "verdicts on counts"
        yield TextLine(f"{other.rejected:,} {passed} passed in the first run and failed in {other.run.name}")
    if other.only_old or other.only_new:
        only_now = f"{other.only_new:,} only in {other.run.name}"
        yield TextLine(f"{other.only_old:,} figures only in the first run, {only_now}")


def caution(found: Comparison) -> str:
    """Return the number of comparisons judged together, and the expected number of false differences."""
    changes = [pair.change for other in found.others for pair in other.pairs]
    level = min((each.ratio.confidence for each in changes), default=0.95)
    upheld = sum(other.upheld for other in found.others)
    shown = sum(each.p_value is not None for each in changes)
    readings = len(changes) - found.judged
    sentence = (
        f"{found.judged:,} comparisons at {format_confidence(level)}: without any difference "
        f"{_number(found.judged * (1 - level))} would show one by chance if taken alone; better and worse hold for all "
        f"of them together (Bonferroni); {upheld:,} of {shown:,} taken alone remain (Benjamini-Yekutieli)"
    )
    return (
        f"{sentence}; {readings:,} more are readings, which are facts about these runs only" if readings else sentence
    )


def _number(count: float) -> str:
    """``6.6``, ``0.15``, ``1,320``."""
    return f"{count:.2g}" if count < 100 else f"{count:,.0f}"


def _widened(found: Comparison) -> str:
    return f"intervals include a standard deviation of {found.run_to_run_percent:g} % from run to run"


def svg(found: Comparison) -> str:
    """Return the chart as an SVG file."""
    return pages.svg_file(_chart(found).svg)


def caption(found: Comparison) -> str:
    """Return the caption of the chart."""
    count = sum(len(_distinct(other)) for other in found.others)
    drawn = f"The {MOST_ROWS} most significant of {count:,} figures" if count > MOST_ROWS else "Each figure"
    text = f"{drawn}: change from the first run, with its interval. An interval that contains 0 shows no difference."
    return f"{text} {_widened(found).capitalize()}." if found.run_to_run_percent else text


def significance(pair: Pair) -> tuple[object, ...]:
    """Return a sort key: pairs with a shown difference first, then by change relative to the interval."""
    return ORDER.index(pair.change.shown), -_telling(pair), pair.key, pair.drive


def _telling(pair: Pair) -> float:
    """Return the logarithm of the ratio over half the width of its interval."""
    ratio = pair.change.ratio
    low, high = max(ratio.low, 1e-9), min(ratio.high, 1e9)
    return abs(math.log(ratio.value)) / max(math.log(high / low), 1e-9)


def _chart(found: Comparison) -> Chart:
    several = len(found.others) > 1
    named = [
        (f"{label(pair.key.claim)} {pair.name}{f', {other.run.name}' if several else ''}", pair)
        for other in found.others
        for pair in _distinct(other)
    ]
    rows = list(enumerate(sorted(named, key=lambda each: significance(each[1]))[:MOST_ROWS]))
    lines = [
        Line(
            [_point(y, name, pair) for y, (name, pair) in rows if pair.change.shown is shown],
            name=shown,
            style=_style(shown),
        )
        for shown in dict.fromkeys(pair.change.shown for _, (_, pair) in rows)
    ]
    panel = spread([name for _, (name, _) in rows], lines, "change from the first run", NAMES_IN)
    title, height_in = "Changes of the figures of two runs", max(1.2, 0.2 * len(rows) + 0.7)
    return Chart("compared", title, caption(found), panel, Table((), ()), height_in=height_in)


def _style(kind: ChangeKind) -> Style:
    """Return the dots of a kind of change: hollow is no change that holds for all comparisons."""
    if kind is ChangeKind.OPEN:
        return OUTCOMES[Finding.OBSERVED]
    style = OUTCOMES[Finding.FAIL if kind.value.startswith(ChangeKind.WORSE) else Finding.PASS]
    return style if kind in (ChangeKind.WORSE, ChangeKind.BETTER) else {**style, **HOLLOW}


def _point(y: int, name: str, pair: Pair) -> Point:
    ratio = pair.change.ratio
    words = ", ".join(map(str, (name, *_row(pair, str)[1:])))
    return Point(ratio.value, y, interval=(ratio.low, ratio.high), words=words)


def record(found: Comparison) -> dict[str, object]:
    """Plain JSON data."""
    return {
        "schema": SCHEMA,
        "first": run_record(found.first),
        "facts": [{**plain(each), "differs": each.differs, "weight": each.weight.name.lower()} for each in found.facts],
        "comparisons_judged": found.judged,
        "run_to_run_percent": found.run_to_run_percent,
        "others": [
            {
                "run": run_record(other.run),
                "only_first": other.only_old,
                "only_now": other.only_new,
                "left_out": dict(other.left_out),
                "upheld_benjamini_yekutieli": other.upheld,
                "figures": [_record(each) for each in other.pairs],
            }
            for other in found.others
        ],
    }


def run_record(run: ComparedRun) -> dict[str, object]:
    """Return a run without its figures."""
    return {
        "name": run.name,
        "started": run.started,
        "verdict": run.verdict,
        "causes": run.causes,
        "model": model_of(run),
        "firmware": firmware_of(run),
        "figures": len(run.figures),
        "unreadable": run.unreadable,
        "has_ended": run.has_ended,
    }


def csv(found: Comparison) -> str:
    """Return a row for each pair of figures."""
    return csv_of_records(
        COLUMNS,
        (
            {"run": other.run.name, "against": found.first.name, **_record(pair)}
            for other in found.others
            for pair in other.pairs
        ),
    )


def _record(pair: Pair) -> dict[str, object]:
    return {
        **pair.key.record,
        "direction": pair.old.direction.value,
        **_numbers("first", pair.old.estimate),
        **_numbers("now", pair.new.estimate),
        **_numbers("ratio", pair.change.ratio),
        "change_percent": 100 * (pair.change.ratio.value - 1),
        "shown": pair.change.shown.value,
        "p_value": pair.change.p_value,
        "drives_paired": pair.paired,
        "drive": pair.drive,
    }


def _numbers(name: str, estimate: Estimate) -> dict[str, object]:
    """Return an estimate's fields: ``first`` for its value, ``first_low``, ``first_unit``."""
    return {f"{name}_{key}".removesuffix("_value"): value for key, value in plain(estimate).items()}
