"""The one plot that explains a verdict: what was measured over time, or the curve that it is a figure of."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from pytest_ssdqual.report.charts import (
    drives,
    explore,
    latency,
    looks,
    maxima,
    mixes,
    over_time,
    queue_depth,
    saturation,
    scaling,
    steady_state,
    width,
)
from pytest_ssdqual.report.charts.chart import Chart, sentence
from pytest_ssdqual.report.charts.data import Notes, tests_of
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.run_folder.story import Judged, Story

QUANTILE_CLAIMS = tuple(f"{name}_latency" for name, _ in latency.QUANTILES)


def chart_of(story: Story, judged: Judged) -> Chart | None:
    """None where nothing that can be drawn is left of it: files and records that are gone."""
    chart = _drawn(Notes.about(story, judged), judged, key_of(judged))
    if chart is None:
        return None
    words = sentence(judged.evidence.sentence)
    caption = chart.caption if words in chart.caption else f"{words} {chart.caption}"
    return replace(chart, caption=caption, tests=tests_of([judged]))


def _drawn(notes: Notes, judged: Judged, key: str) -> Chart | None:
    match judged.evidence.about:
        case About.SWEEP:
            return _sweep(notes, judged, key)
        case About.SERIES:
            return _series(notes, judged, key)
        case About.SATURATION:
            return _saturation(notes, judged, key)
        case About.SEARCH:
            found = looks.of_search(notes.story, judged)
            return explore.chart(found, key) if found else None
        case About.LOOP if not judged.evidence.members:
            return _loop(notes, judged, key)
        case About.RUN | About.REBUILD | About.LOT | About.LOOP:
            return _run(notes, judged, key)
        case _:
            return None


def key_of(judged: Judged) -> str:
    """Different for every verdict, and from the keys of the page's other charts."""
    about = (judged.test, judged.evidence.claim, *judged.evidence.geometries, *judged.evidence.workloads)
    return f"why-{hashlib.sha256(repr(about).encode('utf-8', 'backslashreplace')).hexdigest()[:10]}"


def _sweep(notes: Notes, judged: Judged, key: str) -> Chart | None:
    found = [each for each in width.sweeps(notes) if len(each.widths) > 1]
    # Older runs judged several widths without saying that it is a sweep.
    if not found:
        return None
    sweep = found[0]
    if judged.evidence.claim in scaling.CLAIMS:
        return scaling.chart(notes, sweep, key)
    if judged.evidence.claim == maxima.CLAIM:
        return maxima.chart(notes, sweep, sweep.deepest, key)
    return width.chart(notes, sweep, key)


def _series(notes: Notes, judged: Judged, key: str) -> Chart | None:
    curve = next(queue_depth.curves(notes), None)
    if curve is None:
        return None
    if mixes.is_by_mix(curve):
        return mixes.chart(notes, curve, key)
    return (
        queue_depth.chart(notes, curve, key) if queue_depth.is_by_depth(curve) else queue_depth.bars(notes, curve, key)
    )


def _saturation(notes: Notes, judged: Judged, key: str) -> Chart | None:
    place = judged.evidence.geometries[0], judged.evidence.workloads[0]
    strips = saturation.strips(notes.story.of("saturation"))
    found = next((each for each in strips if (str(each.geometry), str(each.workload)) == place), None)
    return saturation.chart(notes, found, key) if found else None


def _loop(notes: Notes, judged: Judged, key: str) -> Chart | None:
    evidence = judged.evidence
    for record in notes.story.of("loop"):
        if (record.facts.get("geometry"), record.facts.get("loop")) != (evidence.geometries[0], evidence.group):
            continue
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
