"""Curves: what was measured of each workload of a series, and of writes from the purged state; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual.units import Unit, format_duration, format_latency
from pytest_ssdqual.report.evidence.evidence import About, Evidence
from pytest_ssdqual.report.evidence.part import Part
from pytest_ssdqual.report.view.beside import name, stated, times
from pytest_ssdqual.report.view.columns import columns
from pytest_ssdqual.report.view.labels import label
from pytest_ssdqual.report.view.tables import Line, thousands

OF_SERIES = ("", "IOPS", "mean latency", "published", "ours", "published", "ours")
OF_SATURATION = ("", "fresh IOPS", "cliff after", "settled IOPS", "from", "written in all")


def series(evidence: Sequence[Evidence], width: int) -> Iterator[Line]:
    """A table for each series on each array, however many claims were judged on it.

    None for a curve of which every point is judged by itself, unless it is to be read beside a published one.
    """
    alone = {(each.geometries, each.workloads[0]) for each in evidence if each.about is About.RUN}
    seen = {(each.group, each.geometries): each for each in evidence if each.about is About.SERIES and each.points}
    for (group, geometries), each in seen.items():
        told = all((geometries, point.name) in alone for point in each.points)
        if told and not any(point.published for point in each.points):
            continue
        depths = [point.figure("outstanding") for point in each.points]
        by_depth = len(set(depths)) == len(depths) and None not in depths
        drive = ", per drive" if geometries[0].startswith("drive") else ""
        title = f"{group or label(each.claim)} · {' '.join(geometries)}{drive}"
        rows = [_point(point, by_depth=by_depth) for point in each.points]
        yield from columns(title, ("outstanding" if by_depth else "", *OF_SERIES[1:]), rows, width)
        yield Line("")


def saturations(evidence: Sequence[Evidence], width: int) -> Iterator[Line]:
    """One row for each curve, however many claims were judged on it."""
    seen: dict[tuple[object, ...], Evidence] = {}
    for each in evidence:
        if each.about is About.SATURATION:
            seen.setdefault((each.geometries, each.workloads, each.worst), each)
    if seen:
        rows = [_saturation(each) for each in seen.values()]
        yield from columns("from the purged state (× user capacity)", OF_SATURATION, rows, width)
        yield Line("")


def _point(point: Part, *, by_depth: bool) -> tuple[str, ...]:
    iops, latency_ns = point.figure("iops"), point.figure("mean_latency_ns")
    published_iops, published_ns = point.stated(Unit.IOPS), point.stated(Unit.NANOSECONDS)
    depth = point.figure("outstanding")
    return (
        f"{depth:,.0f}" if by_depth and depth is not None else point.name,
        "" if iops is None else thousands(iops),
        "" if latency_ns is None else format_latency(latency_ns),
        stated(published_iops),
        times(iops, published_iops),
        stated(published_ns),
        times(latency_ns, published_ns),
    )


def _saturation(each: Evidence) -> tuple[str, ...]:
    figures = {figure.name: figure.value for figure in each.figures}

    def place(kind: str) -> str:
        capacities, seconds = figures.get(f"{kind}capacities"), figures.get(f"{kind}s" if kind else "seconds")
        if capacities is None or seconds is None:
            return "none" if kind == "cliff_" else "-"
        return f"{capacities:.2f} ×, {format_duration(round(seconds))}"

    def iops(kind: str) -> str:
        found = figures.get(f"{kind}_iops")
        return "-" if found is None else thousands(found)

    settled = figures.get("settled_iops") is not None
    return (
        name(each),
        iops("fresh"),
        place("cliff_"),
        iops("settled") if settled else "not settled",
        place("settled_") if settled else "",
        place(""),
    )
