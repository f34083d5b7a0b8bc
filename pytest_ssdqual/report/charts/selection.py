"""Selection of charts: those of a page, within bounds, and the one chart that explains a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, zip_longest
from typing import TypeVar

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.charts import drives, explore
from pytest_ssdqual.report.charts.course import (
    convergence,
    health,
    new_and_working,
    over_time,
    response_times,
    saturation,
    steady_state,
    stimuli,
)
from pytest_ssdqual.report.charts.data import Notes, mix_name
from pytest_ssdqual.report.charts.performance import (
    block_size_and_mix,
    demand,
    latency,
    mix_radar,
    profile_growth,
    profiles,
    queue_depth,
    width,
)
from pytest_ssdqual.report.charts.performance.queue_depth import DepthCurve
from pytest_ssdqual.report.charts.performance.width import DrawnSweep
from pytest_ssdqual.report.drawing.chart import Chart, sentence
from pytest_ssdqual.report.evidence.evidence import About, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader

T = TypeVar("T")
Draw = Callable[[], Chart | None]
#: Of all charts of a page together; what would exceed it is left out, and later ones that fit are not.
MOST_BYTES = 1_750_000
#: Families of workloads for each level; the four mixes of the papers.
MOST_FAMILIES = 4
MOST_GROWTHS, MOST_MATRICES, MOST_RADARS, MOST_STRIPS = 2, 2, 2, 3
MOST_BATHTUBS, MOST_DEPTHS, MOST_MEMBERS, MOST_LOOPS, MOST_CONDITIONED = 3, 4, 4, 8, 6
MOST_SEARCHES, MOST_DEMANDS, MOST_CONVERGENCES, MOST_COURSES = 4, 3, 2, 3
#: Claims about drives beside each other, most informative first.
OF_MEMBERS = ("member_spread", "latency_spread_between_members", "steady_iops", "p99_latency", "conforming_drives")


def charts(story: RunReader) -> Iterator[Chart]:
    """Yield the charts of a page, most informative first; each is drawn on demand."""
    notes = Notes.of(story)
    left, keys = MOST_BYTES, set[str]()
    for draw in _chosen(notes):
        chart = draw()
        if chart is None or chart.key in keys or len(chart.svg.encode()) > left:
            continue
        keys.add(chart.key)
        left -= len(chart.svg.encode())
        yield chart


def _chosen(notes: Notes) -> Iterator[Draw]:
    levels = list(_by_level(notes).values())
    yield from _first_of(levels, notes)
    yield from _curves(notes)
    yield from _matrices(notes)
    yield from (partial(drives.chart, each) for each in _members(notes))
    yield from (partial(explore.chart, each) for each in islice(explore.searched(notes), MOST_SEARCHES))
    for sweeps in zip_longest(*levels):
        rest = [sweep for sweep in sweeps if sweep]
        yield from (partial(width.chart, notes, sweep) for sweep in rest)
    yield from (partial(width.scaling_chart, notes, sweep) for sweeps in levels for sweep in sweeps[:MOST_GROWTHS])
    yield from _settling(notes)
    yield from (partial(health.temperatures, notes.story), partial(health.wear, notes.story))


def _by_level(notes: Notes) -> dict[str, list[DrawnSweep]]:
    """Yield the largest sweeps of each level, those with failed promises first."""
    found: dict[str, list[DrawnSweep]] = {}
    for sweep in width.sweeps(notes):
        found.setdefault(sweep.level, []).append(sweep)
    for level, sweeps in found.items():
        largest = sweeps[:MOST_FAMILIES]
        found[level] = sorted(largest, key=lambda each: -_broken(width.judged(notes, each)))
    return dict(sorted(found.items()))


def _first_of(levels: Sequence[Sequence[DrawnSweep]], notes: Notes) -> Iterator[Draw]:
    """Yield the first figures of the sources for each level: growth, its model, maxima, tail of the widest."""
    for sweeps in levels:
        first = sweeps[0]
        yield partial(width.chart, notes, first)
        yield partial(width.scaling_chart, notes, first)
        yield partial(latency.maxima_chart, notes, first, first.deepest)
        yield partial(_tails, notes, sweeps)


def _tails(notes: Notes, sweeps: Sequence[DrawnSweep]) -> Chart | None:
    """Yield the widest array at the deepest queue, a line for each family."""
    cells = [sweep.at(sweep.deepest)[-1] for sweep in sweeps]
    found = [each for cell in cells if (each := latency.tail(notes, cell))]
    if not found:
        return None
    widest, depth = cells[0].geometry, sweeps[0].deepest
    mixed = ", ".join(dict.fromkeys(mix_name(each.noted.workload) for each in found))
    return latency.chart(notes, found, f"{widest}: latency percentiles of {mixed} at QD {depth}", f"tail-{widest}")


def _curves(notes: Notes) -> Iterator[Draw]:
    for strip in islice(saturation.strips(notes.story.of("saturation")), MOST_STRIPS):
        yield partial(saturation.chart, notes, strip)
        yield partial(response_times.course, notes, strip)
        yield partial(response_times.chart, notes, strip)
    yield from (partial(new_and_working.chart, each) for each in islice(new_and_working.compared(notes), MOST_STRIPS))
    found = list(queue_depth.curves(notes))
    tubs = _worst_first([each for each in found if block_size_and_mix.is_by_mix(each)])
    yield from (partial(block_size_and_mix.chart, notes, each) for each in tubs[:MOST_BATHTUBS])
    deep = _worst_first([each for each in found if queue_depth.is_by_depth(each)])
    # A curve with published values beside it is more informative than its neighbours; sorting keeps their order.
    deep.sort(key=lambda each: not any(point.published for point in each.points))
    yield from (partial(queue_depth.chart, notes, each) for each in deep[:MOST_DEPTHS])
    for grid in islice(demand.grids(notes.story.of("loop")), MOST_DEMANDS):
        yield partial(demand.variation, grid)
        yield partial(demand.intensity, grid)
        yield partial(response_times.of_demand, notes, grid)
    yield from (partial(stimuli.chart, each) for each in islice(stimuli.courses(notes.story.of("loop")), MOST_COURSES))


def _matrices(notes: Notes) -> Iterator[Draw]:
    for matrix in islice(_of_several(block_size_and_mix.matrices(notes), lambda each: each.geometry), MOST_MATRICES):
        yield partial(block_size_and_mix.lines, matrix)
        yield partial(block_size_and_mix.bandwidth_lines, matrix)
        yield partial(block_size_and_mix.heat_map, matrix)
        yield partial(mix_radar.chart, matrix)
        yield partial(mix_radar.chart, matrix, Unit.BYTES_PER_SECOND)
    latencies = islice(block_size_and_mix.latency_matrices(notes), MOST_MATRICES)
    yield from (partial(block_size_and_mix.heat_map, each) for each in latencies)
    yield from (partial(profiles.chart, each) for each in islice(profiles.radars(notes), MOST_RADARS))
    yield from (partial(profile_growth.chart, each) for each in islice(profile_growth.growths(notes), MOST_RADARS))


def _members(notes: Notes) -> list[Judged]:
    """Yield failed promises first, then one of each claim."""
    found = [each for each in notes.judged if each.evidence.members and _is_of_members(each)]
    broken = [each for each in found if each.evidence.outcome is Finding.FAIL]
    kinds = sorted(
        _of_several(found, lambda each: each.evidence.claim), key=lambda e: OF_MEMBERS.index(e.evidence.claim)
    )
    chosen = {(each.test, each.evidence.claim): each for each in chain(broken[:2], kinds)}
    return list(chosen.values())[:MOST_MEMBERS]


def _is_of_members(judged: Judged) -> bool:
    return judged.evidence.claim in OF_MEMBERS and judged.evidence.about in (About.RUN, About.LOT)


def _settling(notes: Notes) -> Iterator[Draw]:
    loops = list(steady_state.looped(notes.story.of("loop")))
    loops.sort(key=lambda each: (each.reached, -len(each.values)))
    yield from (partial(steady_state.chart, each) for each in loops[:MOST_LOOPS])
    converging = convergence.convergences(notes.story.of("loop"))
    yield from (partial(convergence.chart, each) for each in islice(converging, MOST_CONVERGENCES))
    found = list(steady_state.conditioned(notes.story.of("conditioned")))
    found.sort(key=lambda each: (each.reached, -len(each.values)))
    one_each = _of_several(found, lambda each: each.geometry.partition("x")[0])
    yield from (partial(steady_state.chart, each) for each in islice(one_each, MOST_CONDITIONED))


def _of_several(found: Iterable[T], kind: Callable[[T], str]) -> Iterator[T]:
    """Return the first of each kind."""
    seen: set[str] = set()
    for each in found:
        if kind(each) not in seen:
            seen.add(kind(each))
            yield each


def _worst_first(curves: Sequence[DepthCurve]) -> list[DepthCurve]:
    def margin(curve: DepthCurve) -> float:
        return min((each.evidence.margin_percent or 0.0 for each in curve.judged), default=0.0)

    return sorted(curves, key=margin)


def _broken(judged: Iterable[Judged]) -> int:
    return sum(each.evidence.outcome is Finding.FAIL for each in judged)


QUANTILE_CLAIMS = tuple(f"{name}_latency" for name, _ in latency.QUANTILES)


def chart_of(story: RunReader, judged: Judged) -> Chart | None:
    """Return the chart of a verdict; None if its files or records are gone."""
    chart = _drawn(Notes.about(story, judged), judged, key_of(judged))
    if chart is None:
        return None
    words = sentence(judged.evidence.sentence)
    caption = chart.caption if words in chart.caption else f"{words} {chart.caption}"
    return replace(chart, caption=caption)


def _drawn(notes: Notes, judged: Judged, key: str) -> Chart | None:
    match judged.evidence.about:
        case About.SWEEP:
            return _sweep(notes, judged, key)
        case About.CURVE:
            return _series(notes, judged, key)
        case About.SATURATION:
            return _saturation(notes, judged, key)
        case About.SEARCH:
            found = explore.of_search(notes.story, judged)
            return explore.chart(found, key) if found else None
        case About.LOOP if not judged.evidence.members:
            return _loop(notes, judged, key)
        case About.RUN | About.REBUILD | About.LOT | About.LOOP:
            return _run(notes, judged, key)
        case _:
            return None


def key_of(judged: Judged) -> str:
    """Return a key unique among verdicts and the page's other charts."""
    about = (judged.test, judged.evidence.claim, *judged.evidence.geometries, *judged.evidence.workloads)
    return f"why-{hashlib.sha256(repr(about).encode('utf-8', 'backslashreplace')).hexdigest()[:10]}"


def _sweep(notes: Notes, judged: Judged, key: str) -> Chart | None:
    found = [each for each in width.sweeps(notes) if len(each.widths) > 1]
    if not found:
        return None
    sweep = found[0]
    if judged.evidence.claim in width.CLAIMS:
        return width.scaling_chart(notes, sweep, key)
    if judged.evidence.claim == latency.CLAIM:
        return latency.maxima_chart(notes, sweep, sweep.deepest, key)
    return width.chart(notes, sweep, key)


def _series(notes: Notes, judged: Judged, key: str) -> Chart | None:
    curve = next(queue_depth.curves(notes), None)
    if curve is None:
        return None
    if block_size_and_mix.is_by_mix(curve):
        return block_size_and_mix.chart(notes, curve, key)
    return (
        queue_depth.chart(notes, curve, key) if queue_depth.is_by_depth(curve) else queue_depth.bars(notes, curve, key)
    )


def _saturation(notes: Notes, judged: Judged, key: str) -> Chart | None:
    place = judged.evidence.geometries[0], judged.evidence.workloads[0]
    strips = saturation.strips(notes.story.of("saturation"))
    found = next((each for each in strips if (str(each.geometry), str(each.workload)) == place), None)
    if found is None:
        return None
    times = response_times.chart(notes, found, key) if judged.evidence.unit is Unit.NANOSECONDS else None
    return times or saturation.chart(notes, found, key)


def _loop(notes: Notes, judged: Judged, key: str) -> Chart | None:
    evidence = judged.evidence
    for record in notes.story.of("loop"):
        if (record.facts.get("geometry"), record.facts.get("loop")) != (evidence.geometries[0], evidence.group):
            continue
        course = next(stimuli.courses([record]), None)
        if course and evidence.workloads[0] in {str(each.workload) for each in course.stimuli}:
            return stimuli.chart(course, key)
        try:
            return steady_state.chart(steady_state.of_loop(record.facts, evidence.workloads[0], evidence.claim), key)
        except (KeyError, TypeError, ValueError, IndexError):
            return None
    return None


def _run(notes: Notes, judged: Judged, key: str) -> Chart | None:
    evidence = judged.evidence
    if len(evidence.geometries) > 1:
        return _sweep(notes, judged, key)
    beside = drives.chart(judged, key) if evidence.members else None
    noted = notes.at(evidence.geometries[0], evidence.workloads[0]) if evidence.workloads else None
    if beside or noted is None:
        return beside
    if evidence.claim in QUANTILE_CLAIMS and (found := latency.tail(notes, noted)):
        return latency.chart(notes, [found], f"{noted.geometry} {noted.workload}: latency percentiles", key)
    return over_time.chart(notes, noted, judged, key)
