"""All points of a run as one experiment: what visits that are hours apart show of each.

A point is a workload on an array. Its mean is that of its own cells; means are never pooled, shrunk
or predicted. What is pooled, over the widths of one load (`load_of`), is their scatter:

- between visits, of a visit's mean around its point's mean. All points of a visit share the
  minutes. Their common part is one observation for each visit of an array, the rest one for each
  point. The degrees of freedom of both together are Satterthwaite's (1946, Biometrics Bulletin 2,
  110-114): nearly as many as points if visits have nothing in common, and as many as arrays if that
  is all they have.
- within visits, of cells around their visit's mean.

What scatter does not show extends the interval to its side: a drift over the order of visits that
the points of a mix share, cells that depend on what was written before them, and first seconds of
cells that differ from the rest. A first visit that was faster as no other array's was is left out.
Rare stalls belong to drives, so each point has the slowest I/Os of all: `Exposure`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from operator import attrgetter
from statistics import fmean, median, stdev

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import SPELL_S, Exposure, Measured, Run, Visited
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import VisitRule
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, student_t
from pytest_ssdqual.qual.stats.group_sequential import nominal_level
from pytest_ssdqual.qual.stats.intervals import known_scatters, usual_cells
from pytest_ssdqual.qual.workload.workload import Workload

#: A workload on an array, or on drives side by side.
Point = tuple[Geometry, Workload]

#: Two-sided confidence from which cells depend on something: a run asks some dozens of times.
SURE = 0.999
#: The part of a cell that is compared with its rest, seconds.
HEAD_S = 10.0
#: How far a drift leads, as a multiple of its way from the mean of the visits to the last one: a
#: transient with a time constant of four hours has 2.8 times that way to go after two visits three
#: hours apart.
FURTHER = 3.0
#: Confidence of the upper end of what visits have in common, for its share in the degrees of
#: freedom. With the figure itself, six depths on a single array passed on their limit in 5 % of
#: simulated cases; with this in 3 %.
COMMON = 0.8
#: Fewest arrays of which one can differ from the others.
FEWEST_ARRAYS = 4
#: Two-sided confidence from which a first visit differs: of six arrays without any difference, one
#: is left out in 1 % of runs. And the least difference that counts, as a share of the IOPS.
ODD, LEAST_DIFFERENCE = 0.998, 0.01
#: Least difference between what the cells before wrote, as a share of the most, that shows what they
#: leave behind. All reads of two mixes may come after the writes: a slope over the scatter of these
#: writes was significant by chance in 1 of 1,000 runs, and extrapolated to 100 times the fitted range.
CONTRAST = 0.2
#: Probability of so much more scatter by chance up to which a depth is not pooled with others.
OF_ITS_OWN = 0.05
#: Most maxima of an exposure: more than a promise of tens an hour asks for.
MOST_EXTREMES = 128


@frozen
class Cell:
    """One cell of a point: a run of one round."""

    run: Run
    #: Number of the array's visit, counted from 0.
    visit: int
    #: Logarithm of the IOPS of its first seconds over those of its rest; None if it has no rest.
    head: float | None
    #: Bytes per second that the cell before it wrote; None if there was none in this visit.
    written_before: float | None


def cell(run: Run, before: Run | None, visit: int) -> Cell:
    """Return the cell of a run with all its reports, after the run of another cell."""
    first = [interval for interval in run.counted if interval.end_s <= run.ramp_s + HEAD_S]
    rest = run.counted[len(first) :]
    of_first, of_rest = _rate(first), _rate(rest)
    head = math.log(of_first / of_rest) if of_first and of_rest else None
    # Spells are those of longer measurements, so that claims about extremes mean the same.
    run = replace(run, spell_length_s=SPELL_S)
    return Cell(run.condensed(), visit, head, written_rate(before) if before else None)


def _rate(part: Sequence[Interval]) -> float:
    seconds = math.fsum(interval.seconds for interval in part)
    return sum(interval.ios for interval in part) / seconds if seconds else 0.0


def written_rate(run: Run) -> float:
    """Return the bytes per second that a whole process wrote, ramp included."""
    return run.bytes_written / (run.ramp_s + run.window_s)


def looks(rule: VisitRule) -> tuple[int, ...]:
    """Return the cells of a point at each look; the last is the limit."""
    return tuple(accumulate(rule.cells))[rule.before_first_look - 1 :]


def at_look(
    cells: Mapping[Point, Sequence[Cell]], protocol: Protocol, *, is_last: bool = False
) -> dict[Point, Measured]:
    """Return what each point has shown until now, from the cells of all points in order of time.

    A point is missing until it has the cells of two visits that count, or of the only one.
    ``is_last``: no further visit will be made, although some are planned. ValueError if the
    protocol has no visits.
    """
    rule = protocol.visits
    if rule is None:
        raise ValueError(f"the protocol {protocol.name} has no visits")
    left_out = odd_first_visits(cells)
    counted = {
        point: [each for each in of_point if point[0] not in left_out or each.visit]
        for point, of_point in cells.items()
    }
    planned = looks(rule)
    level = nominal_level(tuple(map(float, planned)), protocol.verdict.confidence)
    loads = _by_load(counted)
    # A visit that is left out of means has shown its slow I/Os all the same.
    exposures = exposures_of(cells)
    found = {}
    for point, of_point in counted.items():
        if len(_numbers(of_point)) < rule.before_first_look:
            continue
        left = len(cells[point]) - len(of_point)
        visited = replace(
            loads[load_of(point)].visited(of_point),
            of=len(of_point) if is_last else planned[-1] - left,
            level=level,
            exposure=exposures.get(point),
            left_out=left_out.get(point[0], ""),
        )
        found[point] = Measured(tuple(each.run for each in of_point), visited)
    return found


def without_further(measured: Measured) -> Measured:
    """Return a measurement in visits that will have no further one."""
    visited = measured.visited
    if visited is None:
        raise ValueError(f"{measured} was not measured in visits")
    return replace(measured, visited=replace(visited, of=sum(visited.cells)))


def _numbers(cells: Sequence[Cell]) -> tuple[int, ...]:
    """Return the number of cells in each visit."""
    return tuple(len(list(visit)) for _, visit in groupby(cells, key=attrgetter("visit")))


@frozen
class Series:
    """The rates of one target in visits: of an array, or of one drive side by side.

    Rates are shares of their mean, by visit in order.
    """

    geometry: Geometry
    visits: Mapping[int, tuple[float, ...]]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(map(len, self.visits.values()))


def series_of(geometry: Geometry, cells: Sequence[Cell]) -> Iterator[Series]:
    """Yield the series of each target; none without I/O."""
    for runs in zip(*(each.run.of_members() for each in cells), strict=True):
        rates = [run.iops for run in runs]
        mean = fmean(rates)
        if not mean:
            continue
        visits: dict[int, tuple[float, ...]] = {}
        for each, rate in zip(cells, rates, strict=True):
            visits[each.visit] = (*visits.get(each.visit, ()), rate / mean)
        yield Series(geometry, visits)


@frozen
class Mix:
    """What the points of a mix have in common."""

    #: Variance of visits beyond that of their cells, and of cells within their visits; shares².
    of_visits: float
    within: float
    between_degrees: float
    within_degrees: float
    #: Change of the rate from one visit to the next, as a share; 0 unless it is sure.
    drift: float
    #: Change of the rate for each byte per second that the cell before wrote to a drive, as a
    #: share; 0 unless it is sure.
    carried_over: float
    #: How far the rest of a cell is from its mean, because its first seconds differ; a share.
    after_head: float

    def exceeds(self, pooled: Mix, cells: Sequence[Cell]) -> bool:
        """Return whether its points scatter more than the rest of a pool that they are a part of.

        ``cells`` are those of one of its points.
        """
        own, others = (known_scatters(mix.visited(cells)) for mix in (self, pooled))
        return any(scatter.exceeds(of_all, OF_ITS_OWN) for scatter, of_all in zip(own, others, strict=True))

    def visited(self, cells: Sequence[Cell]) -> Visited:
        """Return what is known of a point of this mix, at a single look."""
        numbers = _numbers(cells)
        is_one_visit = len(numbers) == 1
        of_cells = 0.0 if is_one_visit else self.within / usual_cells(numbers)
        below, above = self.beyond(cells)
        return Visited(
            cells=numbers,
            of=len(cells),
            level=CONFIDENCE,
            between=0.0 if is_one_visit else math.sqrt(self.of_visits + of_cells),
            between_degrees=0.0 if is_one_visit else self.between_degrees,
            within=math.sqrt(self.within),
            within_degrees=self.within_degrees,
            below=below,
            above=above,
        )

    def beyond(self, cells: Sequence[Cell]) -> tuple[float, float]:
        """Return how far the long-run mean may be below, and above, that of a point's cells."""
        visits = [each.visit for each in cells]
        width = cells[0].run.geometry.width
        own = fmean(written_rate(each.run) for each in cells)
        before = [each.written_before for each in cells if each.written_before is not None]
        # A workload by itself comes after itself.
        from_others = (own - fmean(before)) / width if before else 0.0
        shifts = (
            FURTHER * self.drift * (visits[-1] - fmean(visits)),
            self.carried_over * from_others,
            self.after_head,
        )
        below = math.fsum(max(0.0, -shift) for shift in shifts)
        return below, math.fsum(max(0.0, shift) for shift in shifts)


def load_of(point: Point) -> tuple[Hashable, int]:
    """Return the load of a point: its mix, size of I/O, level and state; and its queue depth."""
    geometry, workload = point
    state = geometry.level, geometry.missing, geometry.rebuilding
    return (workload.read_fraction, workload.bs, workload.beside, state, workload.rate_iops), workload.outstanding(1)


def _by_load(cells: Mapping[Point, Sequence[Cell]]) -> dict[tuple[Hashable, int], Mix]:
    """Return what the points of each load have in common.

    Depths are pooled unless one of them scatters more than the others: a pool of unlike points is
    too narrow for those that scatter most.
    """
    by_load: dict[tuple[Hashable, int], list[tuple[Geometry, Sequence[Cell]]]] = {}
    for point, of_point in cells.items():
        if of_point:
            by_load.setdefault(load_of(point), []).append((point[0], of_point))
    of_depths: dict[Hashable, list[tuple[Geometry, Sequence[Cell]]]] = {}
    for (kind, _), points in by_load.items():
        of_depths[kind] = [*of_depths.get(kind, ()), *points]
    pooled = {kind: _mix(points) for kind, points in of_depths.items()}
    found = {}
    for (kind, depth), points in by_load.items():
        own = _mix(points)
        found[kind, depth] = own if own.exceeds(pooled[kind], points[0][1]) else pooled[kind]
    return found


def _mix(points: Sequence[tuple[Geometry, Sequence[Cell]]]) -> Mix:
    series = [each for geometry, cells in points for each in series_of(geometry, cells)]
    within, within_degrees = _within(series)
    of_visits, between_degrees = _between(series, within)
    return Mix(
        of_visits,
        within,
        between_degrees,
        within_degrees,
        drift=_drift(series),
        carried_over=_carried_over([cells for _, cells in points]),
        after_head=_after_head([each for _, cells in points for each in cells]),
    )


def _within(series: Iterable[Series]) -> tuple[float, float]:
    """Return the variance of cells within their visits, and its degrees of freedom."""
    visits = [rates for each in series for rates in each.visits.values()]
    degrees = sum(len(rates) - 1 for rates in visits)
    squares = math.fsum((rate - fmean(rates)) ** 2 for rates in visits for rate in rates)
    return (squares / degrees if degrees else 0.0), float(degrees)


def _between(series: Iterable[Series], within: float) -> tuple[float, float]:
    """Return the variance of visits beyond that of their cells, and degrees of freedom.

    Sums of squares are those of cells: a mean square contains the variance of cells once, and that
    of visits ``usual_cells`` times.
    """
    several = [each for each in series if len(each.visits) > 1]
    of_visit: dict[tuple[Geometry, int], list[float]] = {}
    for each in several:
        for number, rates in each.visits.items():
            deviation = math.sqrt(len(rates)) * (fmean(rates) - 1)
            of_visit.setdefault((each.geometry, number), []).append(deviation)
    degrees = sum(len(each.visits) - 1 for each in several)
    if not degrees:
        return 0.0, 0.0
    squares = math.fsum(one * one for visit in of_visit.values() for one in visit)
    common = math.fsum(len(visit) * fmean(visit) ** 2 for visit in of_visit.values())
    of_common = len(of_visit) - len({geometry for geometry, _ in of_visit})
    own, of_own = max(0.0, squares - common), degrees - of_common
    cells = math.fsum((len(each.visits) - 1) * usual_cells(each.numbers) for each in several)
    variance = max(0.0, (squares - degrees * within) / cells)
    return variance, _degrees(common, of_common, own, of_own)


def _degrees(common: float, of_common: int, own: float, of_own: int) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of two sums of squares.

    The common one may have come out small by chance; its upper end at ``COMMON`` counts.
    """
    from scipy.special import chdtri

    common *= of_common / float(chdtri(of_common, COMMON))
    scatter = common**2 / of_common + (own**2 / of_own if of_own else 0.0)
    return (common + own) ** 2 / scatter if scatter else float(of_common)


def _drift(series: Iterable[Series]) -> float:
    """Return the slope of relative rates over the number of visits; 0 unless it is sure.

    The observation is the visit of an array, as its points share the minutes.
    """
    of_visit: dict[Geometry, dict[int, list[float]]] = {}
    for each in series:
        if len(each.visits) > 1:
            numbers = of_visit.setdefault(each.geometry, {})
            for number, rates in each.visits.items():
                numbers.setdefault(number, []).append(fmean(rates))
    groups = []
    for numbers in of_visit.values():
        groups.append([(float(number), fmean(rates)) for number, rates in numbers.items()])
    return _sure_slope(groups)


def _carried_over(points: Sequence[Sequence[Cell]]) -> float:
    """Return the slope of relative rates over what the cell before wrote to each drive.

    Rates are compared within a visit; 0 unless it is sure.
    """
    groups = []
    for cells in points:
        mean = fmean(each.run.iops for each in cells)
        width = cells[0].run.geometry.width
        for _, visit in groupby(cells, key=attrgetter("visit")):
            groups.append(
                [
                    (each.written_before / width, each.run.iops / mean)
                    for each in visit
                    if each.written_before is not None and mean
                ]
            )
    return _sure_slope(groups) if any(map(_has_contrast, groups)) else 0.0


def _has_contrast(group: Sequence[tuple[float, float]]) -> bool:
    causes = [cause for cause, _ in group]
    return bool(causes) and max(causes) - min(causes) > CONTRAST * max(causes)


def _sure_slope(groups: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the least-squares slope of pairs (cause, effect) within groups; 0 unless it is sure.

    Student's test; each group has a level of its own.
    """
    pairs = [
        (cause - fmean(cause for cause, _ in group), effect - fmean(effect for _, effect in group))
        for group in groups
        for cause, effect in group
    ]
    power = math.fsum(cause * cause for cause, _ in pairs)
    degrees = len(pairs) - sum(map(bool, groups)) - 1
    if not power or degrees < 1:
        return 0.0
    slope = math.fsum(cause * effect for cause, effect in pairs) / power
    rest = math.fsum((effect - slope * cause) ** 2 for cause, effect in pairs)
    error = math.sqrt(rest / degrees / power)
    return slope if abs(slope) > student_t(SURE, degrees) * error else 0.0


def _after_head(cells: Sequence[Cell]) -> float:
    """Return how far the rest of cells is from their mean, as a share; 0 unless it surely is.

    If the first seconds are 1 + h times as fast as the rest, and a share f of the cell, the rest
    is 1/(1 + h·f) of the mean.
    """
    heads = [each.head for each in cells if each.head is not None]
    if len(heads) < 2:
        return 0.0
    mean, error = fmean(heads), stdev(heads) / math.sqrt(len(heads))
    if abs(mean) <= student_t(SURE, len(heads) - 1) * error:
        return 0.0
    share = HEAD_S / max(HEAD_S, cells[0].run.window_s)
    return 1 / (1 + math.expm1(mean) * share) - 1


def odd_first_visits(cells: Mapping[Point, Sequence[Cell]]) -> dict[Geometry, str]:
    """Return the arrays whose first visit was faster than their second as no other's was, and why.

    The logarithm of the ratio of both, the mean over an array's workloads, is compared with the
    median of all other arrays by their scatter around it: Student's interval for one more value.
    Nothing is said of fewer than ``FEWEST_ARRAYS``.
    """
    changes: dict[Geometry, list[float]] = {}
    for (geometry, _), of_point in cells.items():
        rates = [_mean_iops(of_point, number) for number in (0, 1)]
        if all(rates):
            changes.setdefault(geometry, []).append(math.log(rates[1] / rates[0]))
    if len(changes) < FEWEST_ARRAYS:
        return {}
    of_arrays = {geometry: fmean(of_points) for geometry, of_points in changes.items()}
    found = {}
    for geometry, change in of_arrays.items():
        others = [each for other, each in of_arrays.items() if other != geometry]
        usual, count = median(others), len(others)
        scatter = math.sqrt(math.fsum((each - usual) ** 2 for each in others) / (count - 1))
        wide = student_t(ODD, count - 1) * scatter * math.sqrt(1 + 1 / count)
        # A drive that has not settled is faster at first; what is slower is the array's own.
        if usual - change > max(wide, LEAST_DIFFERENCE):
            found[geometry] = (
                f"the second has {_percent(change)} of its IOPS, and "
                f"those of the other arrays {_percent(min(others))} to {_percent(max(others))}"
            )
    return found


def _percent(change: float) -> str:
    return f"{100 * math.exp(change):.1f} %"


def _mean_iops(cells: Sequence[Cell], visit: int) -> float:
    rates = [each.run.iops for each in cells if each.visit == visit]
    return fmean(rates) if rates else 0.0


def exposures_of(cells: Mapping[Point, Sequence[Cell]]) -> dict[Point, Exposure]:
    """Return the exposure of each array's points: all cells of its load, over all widths.

    Not of other mixes: stalls may come under writes only, and hours of reads prove nothing about
    them. Drives side by side have none: each is judged by itself.
    """
    by_load: dict[Hashable, list[Point]] = {}
    for point, of_point in cells.items():
        if of_point and not point[0].is_side_by_side:
            by_load.setdefault(load_of(point), []).append(point)
    found = {}
    for points in by_load.values():
        exposure = _exposure([cells[point] for point in points])
        if exposure:
            found.update(dict.fromkeys(points, exposure))
    return found


def _exposure(points: Sequence[Sequence[Cell]]) -> Exposure | None:
    drive_s, array_s, spells = 0.0, 0.0, 0
    slowest: list[int] = []
    multiples: list[float] = []
    for cells in points:
        maxima = [spell.max_ns for each in cells for spell in each.run.spells if spell.max_ns]
        if not maxima:
            continue
        usual = median(maxima)
        seconds, geometry = math.fsum(each.run.seconds for each in cells), cells[0].run.geometry
        array_s += seconds
        drive_s += seconds * (geometry.width - geometry.missing)
        spells += len(maxima)
        slowest += maxima
        multiples += [each / usual for each in maxima]
    if not spells:
        return None
    return Exposure(
        drive_s,
        array_s,
        spells,
        tuple(heapq.nlargest(MOST_EXTREMES, multiples)),
        tuple(heapq.nlargest(MOST_EXTREMES, slowest)),
    )
