"""Figures beside a verdict: what makes a measurement credible, and what tables are made of."""

from __future__ import annotations

import math
from functools import singledispatch

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import PredictedRun
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.latency import Exceedance
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.report.evidence.evidence import Figures


@singledispatch
def of(judged: Judgeable) -> Figures:
    """Return the figures beside a verdict on ``judged``; none for several measurements."""
    return {}


@of.register
def of_measured(measured: Measured) -> Figures:
    """Return the figures that make a measurement credible, and those that people ask for beside any claim."""
    latency = measured.latency
    mean_ns = latency.mean_ns if latency else None
    asked, is_rated = _outstanding(measured), measured.workload.rate_iops > 0
    outstanding = measured.iops * mean_ns / 1e9 if mean_ns is not None else None
    busy = [run.cpu_busy for run in measured.runs if run.cpu_busy is not None]
    return {
        "iops": measured.iops,
        "ios": sum(run.ios for run in measured.runs),
        "counted_s": sum(run.seconds for run in measured.runs),
        "mean_latency_ns": mean_ns,
        "max_latency_ns": latency.max_ns if latency else None,
        # Little's law: IOPS × mean latency over the requested queue depth.
        "littles_law_percent": None if outstanding is None or is_rated else 100 * outstanding / asked,
        "cpu_busy_percent": 100 * max(busy) if busy else None,
        "cpu_per_io_ns": _cpu_per_io_ns(measured),
        **_environment_figures(measured),
        **_visits(measured),
    }


def _cpu_per_io_ns(measured: Measured) -> float | None:
    """Return the CPU time of the whole machine for each I/O, ns; None if unknown for a run."""
    used = [run.seen.cpu.busy * run.seen.cpu.count for run in measured.runs if run.seen and run.seen.cpu]
    if len(used) < len(measured.runs) or not measured.iops:
        return None
    return 1e9 * sum(used) / len(used) / measured.iops


@of.register
def of_predicted(run: PredictedRun) -> Figures:
    """Return the figures of the measurement, and the predicted IOPS."""
    return {**of_measured(run.measured), "predicted_iops": run.predicted.value}


def of_exceedance(slower: Exceedance) -> Figures:
    """Return the rate of I/Os slower than a limit; without an upper end if every round had some."""
    high = slower.high_per_hour
    return {
        "slower_ios": slower.ios,
        "slower_spells": slower.hit,
        "slower_low_per_hour": slower.low_per_hour,
        "slower_high_per_hour": high if math.isfinite(high) else None,
    }


def of_point(measured: Measured) -> Figures:
    """Return a point of a curve over workloads; of drives side by side the average drive, beside writes the reads."""
    latency, iops, drives = measured.latency, measured.iops, _targets(measured)
    if measured.workload.beside:
        latency = LatencyHistogram.merged(run.read_latency for run in measured.runs)
        iops = latency.total / measured.seconds
    return {
        "outstanding": _outstanding(measured) / drives,
        "iops": iops / drives,
        "mean_latency_ns": latency.mean_ns if latency else None,
    }


@of.register
def of_saturation(saturation: Saturation) -> Figures:
    """Return start, cliff and end of a saturation curve; None for what it does not show."""
    cliff, settled = saturation.cliff, saturation.settled
    try:
        fresh = saturation.fresh.value
    except TooFew:
        fresh = None
    points = saturation.points
    return {
        "fresh_iops": fresh,
        "cliff_capacities": cliff.capacities if cliff else None,
        "cliff_s": cliff.seconds if cliff else None,
        "settled_iops": settled.iops.value if settled else None,
        "settled_capacities": settled.capacities if settled else None,
        "settled_s": settled.seconds if settled else None,
        "capacities": saturation.capacities,
        "seconds": points[-1].seconds if points else None,
    }


@of.register
def of_rebuild(rebuild: Rebuild) -> Figures:
    """Return figures of a rebuild and of the load during it."""
    latency = rebuild.foreground.latency
    return {
        "rebuild_s": rebuild.seconds,
        "rebuild_bytes_per_s": rebuild.rate_bytes_per_s,
        "mismatches": rebuild.mismatches,
        "foreground_iops": rebuild.foreground.iops,
        "foreground_mean_latency_ns": latency.mean_ns if latency else None,
        "foreground_max_latency_ns": latency.max_ns if latency else None,
    }


def _visits(measured: Measured) -> Figures:
    """Return the progress of a measurement in visits, and the scatter that its intervals have."""
    visited = measured.visited
    if visited is None:
        return {}
    return {
        "visits": visited.visits,
        "cells": sum(visited.cells),
        "most_cells": visited.of,
        "look_confidence_percent": 100 * visited.level,
        "scatter_between_visits_percent": 100 * visited.between,
        "scatter_within_visits_percent": 100 * visited.within,
    }


def _environment_figures(measured: Measured) -> Figures:
    """Return the worst figure of each validity check over drives and repeats, and the number of unknown ones."""
    found = [check for run in measured.runs if run.seen for check in checks.of_environment(run)]
    if not found:
        return {}
    worst = [check for name, check in checks.worst(found).items() if name != "cpu_busy_percent"]
    unknown = sum(check.holds is None for check in worst)
    return {**{check.name: check.figure for check in worst}, "checks_unknown": unknown}


def _outstanding(measured: Measured) -> int:
    """Return the requested number of outstanding I/Os at all targets together."""
    width, workload = measured.geometry.width, measured.workload
    return _targets(measured) * workload.outstanding(1 if measured.geometry.is_side_by_side else width)


def _targets(measured: Measured) -> int:
    """Return the number of targets: 1, or that of the drives side by side that were measured."""
    return len(measured.runs[0].members) if measured.geometry.is_side_by_side else 1
