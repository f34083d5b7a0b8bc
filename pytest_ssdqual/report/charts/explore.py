"""Chart of a workload search over its time: probes beside their limits, simplification, confirmation; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.explore.dimensions import Space
from pytest_ssdqual.qual.explore.search import SearchRecord, SuspectRecord
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import Unit, format_duration
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing.chart import MOST_ROWS, printable, sentence, slug
from pytest_ssdqual.report.drawing.figure import INK, LIMIT, colour
from pytest_ssdqual.report.drawing.plot import AnyMark, Chart, Line, Panel, Point, Style, level
from pytest_ssdqual.report.drawing.scales import Seconds, Values
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: See ``Space.complexity``.
Simplicity = tuple[int, int, tuple[int, ...]]
#: Reason for a probe.
DRAWN, KNOWN, TRIED, SHORTER = "drawn", "known from an earlier run", "simpler candidate", "simpler, fails too"


@frozen
class Tried:
    """One probe."""

    name: str
    #: Time of the drives at the end of the probe.
    at_s: float
    #: Smallest margin of all promises; negative on the bad side of the limit.
    margin_percent: float | None
    outcome: Finding | None
    step: str
    #: Differences from the plainest workload; None if the record does not have them.
    departures: tuple[str, ...] | None
    #: Worst verdict, or the reason why there is none.
    sentence: str


@frozen
class Searched:
    """One search."""

    evidence: Evidence
    tried: tuple[Tried, ...]
    #: Outcome of each workload that was measured again.
    suspects: Mapping[str, str]


def searched(notes: Notes) -> Iterator[Searched]:
    """Yield every judged search."""
    for each in notes.judged:
        if each.about is About.SEARCH and (found := of_search(notes.story, each)):
            yield found


def of_search(story: RunReader, evidence: Evidence) -> Searched | None:
    """Return the search of a verdict; None if it has no probe."""
    if not evidence.points:
        return None
    search = _record(story, evidence)
    probes = {probe.workload: probe for probe in search.probed} if search else {}
    known, suspects = (search.began_with, search.suspects) if search else ((), ())
    space = _space(search.plain) if search else None
    at_s, tried = 0.0, []
    # Of the simplest failed probe so far.
    least: Simplicity | None = None
    for point in evidence.points:
        at_s += max(point.figures.get("seconds") or 0.0, 0.0)
        probe, is_broken = probes.get(point.name), point.outcome is Finding.FAIL
        sentence = (probe.verdict or "; ".join(probe.trouble)) if probe else ""
        simplicity, departures = _place(space, point.name)
        is_simpler = simplicity is not None and least is not None and simplicity < least
        step = _step(is_known=point.name in known, is_simpler=is_simpler, is_broken=is_broken)
        if is_broken and (least is None or is_simpler):
            least = simplicity
        margin = point.figures.get("margin_percent")
        tried.append(Tried(point.name, at_s, margin, point.outcome, step, departures, sentence))
    return Searched(evidence, tuple(tried), dict(map(_outcome, suspects)))


def _space(plain: str) -> Space | None:
    """Return the workloads around the plainest one; None if they are unknown."""
    try:
        return Space.of(Workload.parse(plain))
    except ValueError:
        return None


def _place(space: Space | None, name: str) -> tuple[Simplicity | None, tuple[str, ...] | None]:
    """Return how simple a workload is, and its departures from the plainest one; None if they are unknown."""
    try:
        workload = Workload.parse(name)
        return (space.complexity(workload), space.departures(workload)) if space else (None, None)
    except ValueError:
        return None, None


def _step(*, is_known: bool, is_simpler: bool, is_broken: bool) -> str:
    """Return the reason for a probe; ``DRAWN`` for one of which nothing is known."""
    if is_known:
        return KNOWN
    if not is_simpler:
        return DRAWN
    return SHORTER if is_broken else TRIED


def _record(story: RunReader, evidence: Evidence) -> SearchRecord | None:
    """Return the last search with the same workloads."""
    names = [point.name for point in evidence.points]
    found = None
    for search in story.contents(SearchRecord, "searched"):
        if str(search.geometry) in evidence.geometries and [each.workload for each in search.probed] == names:
            found = search
    return found


def _outcome(suspect: SuspectRecord) -> tuple[str, str]:
    if suspect.confirmed:
        return suspect.workload, "confirmed"
    return suspect.workload, "cleared" if suspect.cleared else "inconclusive"


#: Probes in one picture; of more, the passes with the largest margins are left out.
MOST_LOOKS = 400
#: Beyond this margin a linear scale would compress all other points.
WIDE_PERCENT = 300.0
UNMEASURED = "not measured"
DOT: Style = {"linestyle": "", "markersize": 5.5, "clip_on": False}
STYLES: Mapping[Finding | None, Style] = {
    Finding.PASS: {**DOT, "color": colour(0), "marker": "o"},
    Finding.FAIL: {**DOT, "color": LIMIT, "marker": "X"},
    Finding.INCONCLUSIVE: {**DOT, "color": colour(4), "marker": "D", "markerfacecolor": "none"},
    None: {**DOT, "color": INK, "marker": "|"},
}
RING: Style = {"linestyle": "", "color": INK, "marker": "o", "markersize": 11, "markerfacecolor": "none"}
STAR: Style = {"linestyle": "", "color": LIMIT, "marker": "*", "markersize": 10}
STEPS: Style = {"linestyle": "-", "color": LIMIT, "marker": "", "linewidth": 1.1, "drawstyle": "steps-post"}


def chart(found: Searched) -> Chart:
    """Draw margins above and departures from the plainest workload below, both over the time of the search."""
    evidence = found.evidence
    shown = _shown(found.tried, MOST_LOOKS, found.suspects)
    confirmed = next((name for name, what in found.suspects.items() if what == "confirmed"), "")
    has_failed = any(probe.outcome is Finding.FAIL for probe in found.tried)
    ending = "no fail is confirmed" if has_failed else "none fails"
    if confirmed:
        ending = f"{confirmed} fails one"
    title = f"{' '.join(evidence.geometries)}: {len(found.tried)} workloads searched for a failed promise, {ending}"
    end_s = found.tried[-1].at_s * 1.03
    margins = Values("margin to the limit, %", fit=_margin_scale)
    departures = Values("departures", fit=_departure_scale)
    panels = (
        Panel(Seconds("", end_s), margins, list(_margins(shown, found))),
        Panel(Seconds("time of the drives", end_s), departures, list(_departures(shown))),
    )
    caption = (
        f"{sentence(evidence.group or evidence.sentence)} Above, the margin of each probe: below the red line "
        "the probe failed. Below, the number of departures from the plainest workload; the line shows how a failing "
        "workload was simplified. A probe is no verdict; only the second measurement of a suspect is."
        f"{_left(found, shown)}"
    )
    key = slug("search", *evidence.geometries, *evidence.workloads)
    return Chart(key, title, caption, panels, _table(found), evidence.geometry, 3.9)


def _shown(tried: Sequence[Tried], most: int, suspects: Iterable[str]) -> list[Tried]:
    """Return the probes in order; of too many, first those that did not pass, then the smallest margins."""
    if len(tried) <= most:
        return list(tried)

    def matters(each: Tried) -> tuple[bool, bool, float]:
        passed = each.outcome is Finding.PASS and each.name not in suspects
        return passed, each.step == DRAWN, each.margin_percent if each.margin_percent is not None else 0.0

    kept = {each.name for each in sorted(tried, key=matters)[:most]}
    return [each for each in tried if each.name in kept]


def _left(found: Searched, shown: Sequence[Tried]) -> str:
    drawn = "" if len(shown) == len(found.tried) else f" Drawn are {len(shown)} of {len(found.tried)}."
    listed = min(len(found.tried), MOST_ROWS)
    table = f" The table has {listed} of {len(found.tried)}, without the passes with the largest margins."
    return drawn + (table if listed < len(found.tried) else "")


def _margins(shown: Sequence[Tried], found: Searched) -> Iterator[AnyMark]:
    known = [(probe, probe.margin_percent) for probe in shown if probe.margin_percent is not None]
    for outcome in STYLES:
        yield _dots(outcome, [
            Point(probe.at_s, margin, words=f"{probe.name}: {margin:+.3g} %, {outcome or UNMEASURED}")
            for probe, margin in known if probe.outcome is outcome
        ])  # fmt: skip
    suspects = [Point(probe.at_s, margin) for probe, margin in known if probe.name in found.suspects]
    yield Line(suspects, name="suspect, measured again", style=RING)
    evidence = found.evidence
    # The second measurement, which is the verdict, is drawn after the search.
    if evidence.outcome is Finding.FAIL and evidence.margin_percent is not None:
        words = f"{evidence.workload} measured again: {evidence.margin_percent:+.3g} %"
        star = Point(found.tried[-1].at_s * 1.015, evidence.margin_percent, words=words)
        yield Line([star], name=f"confirmed: {printable(evidence.workload, 48)}", style=STAR)
    yield level(0.0, "promised")
    # A latency beyond the last bin has no finite margin, but it is a fail: at the bottom.
    bottom = min([0.0, *(margin for _, margin in known)]) * 1.1 - 5.0
    yield _dots(Finding.FAIL, [
        Point(probe.at_s, bottom, words=f"{probe.name}: fails by more than could be measured")
        for probe in shown if probe.outcome is Finding.FAIL and probe.margin_percent is None
    ])  # fmt: skip


def _departures(shown: Sequence[Tried]) -> Iterator[AnyMark]:
    known = [probe for probe in shown if probe.departures is not None]
    for outcome in STYLES:
        yield _dots(outcome, [_departing(probe) for probe in known if probe.outcome is outcome])
    failed = [probe for probe in known if probe.outcome is Finding.FAIL]
    steps = [*failed[:1], *(probe for probe in failed[1:] if probe.step == SHORTER)]
    if len(steps) > 1:
        yield Line(list(map(_departing, steps)), name="simplified", style=STEPS)


def _departing(probe: Tried) -> Point:
    return Point(probe.at_s, len(probe.departures or ()))


def _dots(outcome: Finding | None, points: Sequence[Point]) -> Line:
    return Line(points, name=outcome or UNMEASURED, style=STYLES[outcome])


def _margin_scale(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Scale linearly; beyond 100 % logarithmically if a figure is many times its limit."""
    if max(map(abs, values)) > WIDE_PERCENT:
        axes.set_yscale("symlog", linthresh=100.0, linscale=1.0)
    axes.margins(y=0.08)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+,.4g}" if value else "0")


def _departure_scale(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    axes.set_ylim(-0.5, max([*values, 0 if values else 1]) + 0.5)
    axes.locator_params(axis="y", nbins=5, integer=True)


def _table(found: Searched) -> Table:
    rows = []
    for probe in _shown(found.tried, MOST_ROWS, found.suspects):
        suspect = f", suspect: {found.suspects[probe.name]}" if probe.name in found.suspects else ""
        departs = "" if probe.departures is None else ", ".join(probe.departures) or "the plainest"
        margin = "" if probe.margin_percent is None else f"{probe.margin_percent:+,.1f} %"
        rows.append((
            probe.name, format_duration(probe.at_s), departs, probe.step, margin,
            (probe.outcome or UNMEASURED) + suspect, printable(probe.sentence, 300),
        ))  # fmt: skip
    columns = ("workload", "probed after", "departures", "step", "margin", "probe", "worst promise")
    return Table(columns, tuple(rows))
