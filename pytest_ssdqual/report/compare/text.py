"""A comparison as lines of text within the width of a terminal; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from pytest_ssdqual.qual.stats.estimate import format_confidence
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.verdict.ratio import Shown
from pytest_ssdqual.report.compare.compare import Against, Comparison, Fact, Pair, Weight
from pytest_ssdqual.report.view.columns import columns
from pytest_ssdqual.report.view.labels import label
from pytest_ssdqual.report.view.tables import INDENT, Line

#: Of pytest's TerminalWriter, and the order in which they are told.
COLOUR = {
    Shown.WORSE: ("red",),
    Shown.BETTER: ("green",),
    Shown.WORSE_ALONE: ("yellow",),
    Shown.BETTER_ALONE: (),
    Shown.WORSE_READ: (),
    Shown.BETTER_READ: (),
    Shown.OPEN: (),
}
HEAD = ("", "first", "now", "ratio", "interval", "")
SCATTER = (
    "An interval covers what varied within its run. Runs of the same drive also differ from each other, by what nobody "
    "has measured here: repeat a run to see it, and allow for it with --run-to-run."
)


def table(found: Comparison, width: int = 80, *, every: bool = False) -> list[Line]:
    """All of it; with ``every`` also each figure of which no difference is shown."""
    lines = [*_runs(found, width), *_facts(found, width)]
    for other in found.others:
        lines += _against(found, other, width, every=every)
    return [*lines, *_ending(found, width)]


def _runs(found: Comparison, width: int) -> Iterator[Line]:
    for number, run in enumerate((found.first, *(each.run for each in found.others))):
        called = "first" if number == 0 else "now" if len(found.others) == 1 else f"run {number + 1}"
        unread = f", {run.unreadable} verdicts unreadable" if run.unreadable else ""
        ended = "" if run.has_ended else ", has not ended: more may come"
        when = run.started[:16] or "time unknown"
        text = f"{called}: {run.name}, {when}, {len(run.figures):,} figures{unread}{ended}"
        yield from _wrapped(text, width, ("bold",))
    yield Line("")


def _facts(found: Comparison, width: int) -> Iterator[Line]:
    """What differs, as rows; then what is the same, in a few lines."""
    if not found.differences:
        yield Line("nothing that is known of machine, drives, spec, protocol and versions differs", ("bold",))
    for fact in sorted(found.differences, key=lambda each: -each.weight):
        yield from _difference(fact, width)
    alike = ", ".join(f"{each.name} {each.values[0]}" for each in found.alike)
    yield from _wrapped(f"the same: {alike or 'nothing that is known'}", width)
    yield Line("")


def _difference(fact: Fact, width: int) -> Iterator[Line]:
    colour = {Weight.FORBIDS: ("red", "bold"), Weight.LOUD: ("yellow", "bold")}.get(fact.weight, ())
    meaning = f"; {fact.meaning}" if fact.meaning else ""
    yield from _wrapped(f"differs: {fact.name}: {' -> '.join(fact.values)}{meaning}", width, colour)


def _against(found: Comparison, other: Against, width: int, *, every: bool) -> Iterator[Line]:
    if len(found.others) > 1:
        yield Line(f"{other.run.name} against {found.first.name}", ("bold",))
    show = [shown for shown in Shown if every or shown is not Shown.OPEN]
    for claim in dict.fromkeys(pair.key.claim for pair in other.pairs):
        pairs = [pair for pair in other.pairs if pair.key.claim == claim and pair.change.shown in show]
        if pairs:
            pairs.sort(key=lambda pair: (list(COLOUR).index(pair.change.shown), pair.key))
            colours = [COLOUR[pair.change.shown] for pair in pairs]
            yield from columns(label(claim), HEAD, [_row(pair) for pair in pairs], width, colours)
            yield Line("")
    yield from _wrapped(counted(other), width, ("bold",))
    if hidden := 0 if every else other.count(Shown.OPEN):
        yield from _wrapped(f"{hidden:,} of which no difference is shown are not listed: --all lists them", width)
    for why, count in other.left_out.items():
        yield from _wrapped(f"{count:,} figure{_s(count)} not compared: {why}", width, ("yellow",))
    if other.only_old or other.only_new:
        text = f"{other.only_old:,} figures only in the first run, {other.only_new:,} only in {other.run.name}"
        yield from _wrapped(text, width)
    yield Line("")


def _row(pair: Pair) -> tuple[str, ...]:
    unit, ratio = pair.old.estimate.unit, pair.change.ratio
    name = f"{pair.key.geometry} {pair.key.workload}"
    if pair.key.group:
        name = f"{name} ({pair.key.group})"
    if pair.paired:
        name = f"{name}, {pair.paired} drives paired"
    elif pair.old.drives:
        name = f"{name}, {len(pair.old.drives)} and {len(pair.new.drives)} drives"
    return (
        name,
        format_value(pair.old.estimate.value, unit),
        format_value(pair.new.estimate.value, unit),
        format_value(ratio.value, Unit.RATIO, 1),
        format_range(ratio.low, ratio.high, Unit.RATIO),
        pair.change.shown.value if pair.change.shown is not Shown.OPEN else "-",
    )


def counted(other: Against) -> str:
    """``3 worse, 1 better, 12 only when taken alone, 240 without a difference shown, of 256 figures compared``."""
    alone, read = other.count(Shown.WORSE_ALONE, Shown.BETTER_ALONE), other.count(Shown.WORSE_READ, Shown.BETTER_READ)
    return (
        f"{other.count(Shown.WORSE):,} worse, {other.count(Shown.BETTER):,} better, {alone:,} only when taken alone"
        f"{f', {read:,} only as read' if read else ''}, {other.count(Shown.OPEN):,} without a difference shown, "
        f"of {len(other.pairs):,} figures compared"
    )


def _ending(found: Comparison, width: int) -> Iterator[Line]:
    yield from _wrapped(caution(found), width)
    if not found.run_to_run_percent:
        yield from _wrapped(SCATTER, width)
    else:
        text = f"allowed for from run to run: a standard deviation of {found.run_to_run_percent:g} %"
        yield from _wrapped(text, width)


def caution(found: Comparison) -> str:
    """How many comparisons were judged together, and what that does to them."""
    changes = [pair.change for other in found.others for pair in other.pairs]
    level = min((each.ratio.confidence for each in changes), default=0.95)
    upheld = sum(other.upheld for other in found.others)
    shown = sum(each.p_value is not None for each in changes)
    readings = len(changes) - found.judged
    told = (
        f"{found.judged:,} comparisons at {format_confidence(level)}: without any difference "
        f"{_number(found.judged * (1 - level))} would show one when taken alone; better and worse hold for all of them "
        f"together (Bonferroni); of {shown:,} that show alone Benjamini-Yekutieli upholds {upheld:,}"
    )
    if readings:
        told += f"; {readings:,} more are of what was read, which is true of these runs and need not be of others"
    return told


def _wrapped(text: str, width: int, markup: Sequence[str] = ()) -> Iterable[Line]:
    for line in wrap(text, max(20, width), subsequent_indent=INDENT):
        yield Line(line, tuple(markup))


def _number(count: float) -> str:
    """``6.6``, ``0.15``, ``1,320``."""
    return f"{count:.2g}" if count < 100 else f"{count:,.0f}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
