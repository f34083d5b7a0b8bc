"""Selection of charts: those of a page, and the one chart that explains a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import TypeVar

from pytest_ssdqual.qual.measured.result_records import LoopRecord
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.charts import drives, explore
from pytest_ssdqual.report.charts.course import loops, over_time, saturation
from pytest_ssdqual.report.charts.data import Notes, mix_name
from pytest_ssdqual.report.charts.performance import block_size_and_mix, latency, queue_depth, width
from pytest_ssdqual.report.charts.performance.queue_depth import DepthCurve
from pytest_ssdqual.report.charts.performance.width import DrawnSweep
from pytest_ssdqual.report.drawing.chart import sentence
from pytest_ssdqual.report.drawing.plot import Chart
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding
from pytest_ssdqual.report.resume.rebuild_measurements import DAMAGED
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader

T = TypeVar("T")
#: Families of workloads for each level; the four mixes of the papers.
MOST_FAMILIES = 4
MOST_GROWTHS, MOST_MATRICES, MOST_RADARS, MOST_STRIPS = 2, 2, 2, 3
MOST_BATHTUBS, MOST_DEPTHS, MOST_MEMBERS, MOST_LOOPS, MOST_CONDITIONED = 3, 4, 4, 8, 6
MOST_SEARCHES, MOST_DEMANDS, MOST_CONVERGENCES, MOST_COURSES = 4, 3, 2, 3
#: Claims about drives beside each other, most informative first.
OF_MEMBERS = ("member_spread", "latency_spread_between_members", "steady_iops", "p99_latency", "conforming_drives")


def charts(story: RunReader) -> Iterator[Chart]:
    """Yield the charts of a page, most informative first, each once; they are drawn on demand."""
    return _of_several(filter(None, _all(Notes.of(story))), lambda chart: chart.key)


def _all(notes: Notes) -> Iterator[Chart | None]:
    """Yield all charts that are not too many of their kind; several may have the same key."""
    levels = list(_by_level(notes).values())
    for sweeps in levels:
        # The first figures of the sources for each level: growth, its model, maxima, tail of the widest.
        yield width.chart(notes, sweeps[0])
        yield width.scaling_chart(notes, sweeps[0])
        yield latency.maxima_chart(notes, sweeps[0], sweeps[0].deepest)
        yield _tails(notes, sweeps)
    yield from _curves(notes)
    yield from _matrices(notes)
    yield from map(drives.chart, _members(notes))
    yield from map(explore.chart, islice(explore.searched(notes), MOST_SEARCHES))
    for ranked in zip_longest(*levels):
        yield from (width.chart(notes, sweep) for sweep in ranked if sweep)
    yield from (width.scaling_chart(notes, sweep) for sweeps in levels for sweep in sweeps[:MOST_GROWTHS])
    yield from _settling(notes)
    yield over_time.temperatures(notes.story)
    yield over_time.wear(notes.story)


def _by_level(notes: Notes) -> dict[str, list[DrawnSweep]]:
    """Return the largest sweeps of each level, those with failed promises first."""
    levels: dict[str, list[DrawnSweep]] = {}
    for sweep in width.sweeps(notes):
        levels.setdefault(sweep.level, []).append(sweep)
    return {
        level: sorted(levels[level][:MOST_FAMILIES], key=lambda sweep: -_broken(width.judged(notes, sweep)))
        for level in sorted(levels)
    }


def _tails(notes: Notes, sweeps: Sequence[DrawnSweep]) -> Chart | None:
    """Return the widest array at the deepest queue, a line for each family."""
    cells = [sweep.at(sweep.deepest)[-1] for sweep in sweeps]
    tails = [tail for cell in cells if (tail := latency.tail(notes, cell))]
    if not tails:
        return None
    widest, depth = cells[0].geometry, sweeps[0].deepest
    mixed = ", ".join(dict.fromkeys(mix_name(tail.noted.workload) for tail in tails))
    return latency.chart(notes, tails, f"{widest}: latency percentiles of {mixed} at QD {depth}")


def _curves(notes: Notes) -> Iterator[Chart | None]:
    recorded = tuple(notes.story.contents(LoopRecord, "loop"))
    for strip in islice(saturation.strips(notes.story), MOST_STRIPS):
        yield saturation.chart(notes, strip)
        yield saturation.latency_course(notes, strip)
        yield saturation.response_times(notes, strip)
    yield from islice(saturation.compared(notes), MOST_STRIPS)
    series = sorted(queue_depth.curves(notes), key=_margin)
    tubs = filter(queue_depth.is_by_mix, series)
    yield from (queue_depth.bathtub(notes, curve) for curve in islice(tubs, MOST_BATHTUBS))
    # A curve with published values beside it is more informative than its neighbours; sorting keeps their order.
    deep = sorted(filter(queue_depth.is_by_depth, series), key=lambda curve: not any(p.published for p in curve.points))
    yield from (queue_depth.chart(notes, curve) for curve in deep[:MOST_DEPTHS])
    for grid in islice(queue_depth.grids(recorded), MOST_DEMANDS):
        yield queue_depth.variation(grid)
        yield queue_depth.intensity(grid)
        yield saturation.response_times_of_demand(notes, grid)
    yield from islice(loops.stimulated(recorded), MOST_COURSES)


def _margin(curve: DepthCurve) -> float:
    """Return the smallest margin, by which the worst series comes first."""
    return min((evidence.margin_percent or 0.0 for evidence in curve.judged), default=0.0)


def _matrices(notes: Notes) -> Iterator[Chart]:
    matrices = _of_several(block_size_and_mix.matrices(notes), lambda matrix: matrix.geometry)
    for matrix in islice(matrices, MOST_MATRICES):
        yield block_size_and_mix.lines(matrix)
        yield block_size_and_mix.lines(matrix, Unit.BYTES_PER_SECOND)
        yield block_size_and_mix.heat_map(matrix)
        yield block_size_and_mix.radar(matrix)
        yield block_size_and_mix.radar(matrix, Unit.BYTES_PER_SECOND)
    yield from map(block_size_and_mix.heat_map, islice(block_size_and_mix.latency_matrices(notes), MOST_MATRICES))
    yield from islice(block_size_and_mix.profile_radars(notes), MOST_RADARS)
    yield from islice(block_size_and_mix.growths(notes), MOST_RADARS)


def _members(notes: Notes) -> list[Judged]:
    """Return failed promises first, then one of each claim."""
    judged = [each for each in notes.of_claims(*OF_MEMBERS) if _is_of_members(each)]
    broken = [each for each in judged if each.outcome is Finding.FAIL]
    kinds = sorted(_of_several(judged, lambda each: each.claim), key=lambda each: OF_MEMBERS.index(each.claim))
    chosen = {(each.test, each.claim): each for each in chain(broken[:2], kinds)}
    return list(chosen.values())[:MOST_MEMBERS]


def _is_of_members(evidence: Evidence) -> bool:
    return bool(evidence.members) and evidence.about in (About.RUN, About.LOT)


def _settling(notes: Notes) -> Iterator[Chart]:
    recorded = tuple(notes.story.contents(LoopRecord, "loop"))
    yield from map(loops.chart, sorted(loops.looped(recorded), key=_unsteady)[:MOST_LOOPS])
    yield from islice(loops.convergences(recorded), MOST_CONVERGENCES)
    conditioned = sorted(loops.conditioned(notes.story.of("conditioned")), key=_unsteady)
    one_each = _of_several(conditioned, lambda each: each.geometry.partition("x")[0])
    yield from map(loops.chart, islice(one_each, MOST_CONDITIONED))


def _unsteady(figure: loops.TrackedFigure) -> tuple[bool, int]:
    """Return a sort key: figures that did not become steady first, then those with most rounds."""
    return figure.reached, -len(figure.values)


def _of_several(found: Iterable[T], kind: Callable[[T], str]) -> Iterator[T]:
    """Return the first of each kind."""
    seen: set[str] = set()
    for each in found:
        if kind(each) not in seen:
            seen.add(kind(each))
            yield each


def _broken(verdicts: Iterable[Evidence]) -> int:
    return sum(evidence.outcome is Finding.FAIL for evidence in verdicts)


QUANTILE_CLAIMS = tuple(f"{name}_latency" for name, _ in latency.QUANTILES)


def chart_of(story: RunReader, judged: Judged) -> Chart | None:
    """Return the chart of a verdict; None if its files or records are gone."""
    chart = _explaining(Notes.of(story).about(judged), judged)
    if chart is None:
        return None
    words = sentence(judged.sentence)
    caption = chart.caption if words in chart.caption else f"{words} {chart.caption}"
    return replace(chart, key=key_of(judged), caption=caption)


def _explaining(notes: Notes, judged: Judged) -> Chart | None:
    match judged.about:
        case About.SWEEP:
            return _sweep(notes, judged)
        case About.CURVE:
            return _series(notes)
        case About.SATURATION:
            return _saturation(notes, judged)
        case About.SEARCH:
            found = explore.of_search(notes.story, judged)
            return explore.chart(found) if found else None
        case About.LOOP if not judged.members:
            return _loop(notes, judged)
        case About.RUN | About.REBUILD | About.LOT | About.LOOP:
            return _run(notes, judged)
        case _:
            return None


def key_of(judged: Judged) -> str:
    """Return a key unique among verdicts and the page's other charts."""
    about = (judged.test, judged.claim, *judged.geometries, *judged.workloads)
    return f"why-{hashlib.sha256(repr(about).encode('utf-8', 'backslashreplace')).hexdigest()[:10]}"


def _sweep(notes: Notes, evidence: Evidence) -> Chart | None:
    found = [each for each in width.sweeps(notes) if len(each.widths) > 1]
    if not found:
        return None
    sweep = found[0]
    if evidence.claim in width.CLAIMS:
        return width.scaling_chart(notes, sweep)
    if evidence.claim == latency.CLAIM:
        return latency.maxima_chart(notes, sweep, sweep.deepest)
    return width.chart(notes, sweep)


def _series(notes: Notes) -> Chart | None:
    curve = next(queue_depth.curves(notes), None)
    if curve is None:
        return None
    if queue_depth.is_by_mix(curve):
        return queue_depth.bathtub(notes, curve)
    return queue_depth.chart(notes, curve) if queue_depth.is_by_depth(curve) else queue_depth.bars(notes, curve)


def _saturation(notes: Notes, evidence: Evidence) -> Chart | None:
    place = evidence.geometry, evidence.workload
    strips = saturation.strips(notes.story)
    strip = next((strip for strip in strips if (str(strip.geometry), str(strip.asked)) == place), None)
    if strip is None:
        return None
    times = saturation.response_times(notes, strip) if evidence.unit is Unit.NANOSECONDS else None
    return times or saturation.chart(notes, strip)


def _loop(notes: Notes, evidence: Evidence) -> Chart | None:
    for noted in notes.story.contents(LoopRecord, "loop"):
        if (str(noted.geometry), noted.loop) != (evidence.geometry, evidence.group):
            continue
        if evidence.workload in {str(stimulus.workload) for stimulus in noted.asked.after}:
            return next(loops.stimulated([noted]), None)
        try:
            return loops.chart(loops.of_loop(noted, evidence.workload, evidence.claim))
        except DAMAGED:
            return None
    return None


def _run(notes: Notes, evidence: Evidence) -> Chart | None:
    if len(evidence.geometries) > 1:
        return _sweep(notes, evidence)
    beside = drives.chart(evidence) if evidence.members else None
    noted = notes.at(evidence.geometry, evidence.workload)
    if beside or noted is None:
        return beside
    if evidence.claim in QUANTILE_CLAIMS and (found := latency.tail(notes, noted)):
        return latency.chart(notes, [found], f"{noted.geometry} {noted.workload}: latency percentiles")
    return over_time.chart(notes, noted, evidence)
