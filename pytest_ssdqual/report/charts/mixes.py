"""The bathtub: IOPS over the share of reads, beside the straight line from pure writes to pure reads."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import base
from pytest_ssdqual.report.charts.chart import Chart, Table, sentence, slug
from pytest_ssdqual.report.charts.data import Notes, tests_of
from pytest_ssdqual.report.charts.figure import Plate, drawing
from pytest_ssdqual.report.charts.palette import INK, LIMIT, colour
from pytest_ssdqual.report.charts.queue_depth import Curve, interval_words, intervals
from pytest_ssdqual.report.evidence.part import Part

CLAIM = "bathtub_depth"


def shares(curve: Curve) -> list[tuple[float, Part, float]]:
    """Per cent of reads, the point and its IOPS, pure reads first; empty if a name does not say its mix."""
    found = []
    for point in curve.points:
        try:
            workload = Workload.parse(point.name)
        except ValueError:
            return []
        iops = point.figure("iops")
        if workload.has_streams or iops is None:
            return []
        found.append((100 * workload.read_fraction, point, iops))
    return sorted(found, key=lambda each: -each[0])


def is_by_mix(curve: Curve) -> bool:
    """Whether it goes from pure reads to pure writes."""
    found = shares(curve)
    mixes = [share for share, _, _ in found]
    return len(set(mixes)) == len(mixes) >= 3 and mixes[0] == 100 and mixes[-1] == 0


def chart(notes: Notes, curve: Curve, prefix: str = "mixes") -> Chart:
    """The curve, the line that a drive without trouble with mixes would follow, and what of it is promised."""
    found = shares(curve)
    xs, ys = [share for share, _, _ in found], [iops for _, _, iops in found]
    line = [ys[-1] + (ys[0] - ys[-1]) * x / 100 for x in xs]
    judged = curve.of_claim(CLAIM)
    evidence = judged.evidence if judged else None
    key = slug(prefix, curve.geometry, curve.group)
    deepest = f", at worst {evidence.measured} of the line" if evidence else ""
    title = f"{curve.geometry}{curve.per}: mixes of reads and writes, {curve.group}{deepest}"
    with drawing():
        plate = Plate.of()
        axes = plate.axes("reads, %", "IOPS")
        (straight,) = axes.plot(xs, line, color=INK, linewidth=1.0, linestyle=":")
        plate.entry(straight, "line from pure reads to pure writes")
        if evidence and evidence.limit is not None:
            least = [evidence.limit * y for y in line]
            (bound,) = axes.plot(xs, least, color=LIMIT, linestyle=(0, (6, 2)), linewidth=1.4)
            plate.entry(bound, f"promised: {evidence.bound} of it")
        ends = intervals(notes, curve, [point for _, point, _ in found])
        plate.whiskers(axes, xs, ends, colour(0))
        told = [f"{x:.0f} % reads: {format_value(y, Unit.IOPS)}" for x, y in zip(xs, ys, strict=True)]
        plate.line(axes, xs, ys, 0, "IOPS", told=told)
        stated = [(x, each) for x, point, _ in found if (each := point.stated(Unit.IOPS))]
        if stated:
            plate.published(
                axes, [x for x, _ in stated], [each.value for _, each in stated], [str(each) for _, each in stated]
            )
        base.from_zero(axes, Unit.IOPS, [*ys, *(e[1] for e in ends if e), *(each.value for _, each in stated)])
        axes.set_xlim(103, -3)
        axes.set_xticks(xs)
        svg = plate.svg(key, title, f"IOPS of {len(xs)} mixes from pure reads to pure writes.")
    caption = f"From pure reads (left) to pure writes. {sentence(evidence.sentence) if evidence else ''}".rstrip()
    level, table = curve.geometry.partition("x")[0], _table(found, line, ends)
    return Chart(key, title, caption, svg, table, tests_of(curve.judged), level)


def _table(found: Sequence[tuple[float, Part, float]], line: Sequence[float],
           ends: Sequence[tuple[float, float] | None]) -> Table:  # fmt: skip
    rows = tuple(
        (point.name, f"{share:.0f} %", format_value(iops, Unit.IOPS), interval_words(end),
         format_value(straight, Unit.IOPS),
         "; ".join(str(each) for each in point.published))
        for (share, point, iops), straight, end in zip(found, line, ends, strict=True)
    )  # fmt: skip
    return Table(("workload", "reads", "IOPS", "95 % interval", "the line", "published"), rows)
