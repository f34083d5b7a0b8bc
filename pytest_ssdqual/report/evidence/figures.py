"""Which figures are kept beside a verdict: what makes a measurement believable, and what its tables are made of."""

from __future__ import annotations

import math

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.latency import Exceedance
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.report.evidence.evidence import Figure


def of_measured(measured: Measured) -> tuple[Figure, ...]:
    """What makes a measurement believable, and what people ask for next to any claim about it."""
    latency = measured.latency
    mean_ns = latency.mean_ns if latency else None
    asked = _outstanding(measured)
    outstanding = measured.iops * mean_ns / 1e9 if mean_ns is not None else None
    busy = [run.cpu_busy for run in measured.runs if run.cpu_busy is not None]
    return (
        Figure("iops", measured.iops),
        Figure("ios", sum(run.ios for run in measured.runs)),
        Figure("counted_s", sum(run.seconds for run in measured.runs)),
        Figure("mean_latency_ns", mean_ns),
        Figure("max_latency_ns", latency.max_ns if latency else None),
        # Little's law: IOPS × mean latency, of the queue depth asked for.
        Figure("littles_law_percent", None if outstanding is None else 100 * outstanding / asked),
        Figure("cpu_busy_percent", 100 * max(busy) if busy else None),
        *_surroundings(measured),
        *_look(measured),
    )


def of_exceedance(slower: Exceedance) -> tuple[Figure, ...]:
    """How often I/Os were slower than a limit; no upper end of the rate where every round had some."""
    high = slower.high_per_hour
    return (
        Figure("slower_ios", slower.ios),
        Figure("slower_spells", slower.hit),
        Figure("slower_low_per_hour", slower.low_per_hour),
        Figure("slower_high_per_hour", high if math.isfinite(high) else None),
    )


def of_point(measured: Measured) -> tuple[Figure, ...]:
    """A point of a curve over workloads; of drives side by side the average drive."""
    latency, drives = measured.latency, measured.geometry.width if measured.geometry.is_side_by_side else 1
    return (
        Figure("outstanding", _outstanding(measured) / drives),
        Figure("iops", measured.iops / drives),
        Figure("mean_latency_ns", latency.mean_ns if latency else None),
    )


def of_saturation(saturation: Saturation) -> tuple[Figure, ...]:
    """Where the curve begins, falls and ends; None for what it does not show."""
    cliff, settled = saturation.cliff, saturation.settled
    try:
        fresh = saturation.fresh.value
    except TooFew:
        fresh = None
    points = saturation.points
    return (
        Figure("fresh_iops", fresh),
        Figure("cliff_capacities", cliff.capacities if cliff else None),
        Figure("cliff_s", cliff.seconds if cliff else None),
        Figure("settled_iops", settled.iops.value if settled else None),
        Figure("settled_capacities", settled.capacities if settled else None),
        Figure("settled_s", settled.seconds if settled else None),
        Figure("capacities", saturation.capacities),
        Figure("seconds", points[-1].seconds if points else None),
    )


def of_rebuild(rebuild: Rebuild) -> tuple[Figure, ...]:
    """The rebuild, and what the load saw meanwhile."""
    latency = rebuild.foreground.latency
    return (
        Figure("rebuild_s", rebuild.seconds),
        Figure("rebuild_bytes_per_s", rebuild.rate_bytes_per_s),
        Figure("mismatches", rebuild.mismatches),
        Figure("foreground_iops", rebuild.foreground.iops),
        Figure("foreground_mean_latency_ns", latency.mean_ns if latency else None),
        Figure("foreground_max_latency_ns", latency.max_ns if latency else None),
    )


def of_steady(state: SteadyState) -> tuple[Figure, ...]:
    """How steady a window was, in percent of its average, as the rule's limits are given."""
    per_cent = 100 / state.average if state.average else math.nan
    return (
        Figure("steady_rounds", len(state.values)),
        Figure("steady_range_percent", state.range_measured * per_cent),
        Figure("steady_slope_percent", state.slope_excursion * per_cent),
    )


def _look(measured: Measured) -> tuple[Figure, ...]:
    """Of a sequential measurement: at which look it ended, how sure that one had to be, what was left out before."""
    look = measured.look
    if look is None:
        return ()
    return (
        Figure("look", look.number),
        Figure("looks", look.of),
        Figure("look_confidence_percent", 100 * look.level),
        Figure("warmup_s", look.warmup_s),
    )


def _surroundings(measured: Measured) -> tuple[Figure, ...]:
    """What was seen around it, of all drives and repeats the worst; and how many questions had no answer."""
    found = [check for run in measured.runs if run.seen for check in checks.of_surroundings(run)]
    if not found:
        return ()
    worst = [check for name, check in checks.worst(found).items() if name != "cpu_busy_percent"]
    unknown = sum(check.holds is None for check in worst)
    return (*(Figure(check.name, check.figure) for check in worst), Figure("checks_unknown", unknown))


def _outstanding(measured: Measured) -> int:
    """I/Os that were asked to be waiting, at all targets together."""
    width, workload = measured.geometry.width, measured.workload
    return width * workload.outstanding(1) if measured.geometry.is_side_by_side else workload.outstanding(width)
