"""fio's own output of a run folder, read again for charts that need more than the records' rounds; bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.run import Interval, Run
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.report.charts.data import Noted
from pytest_ssdqual.report.resume.rebuild_measurements import BUILDERS, Shelf

#: Packed; a minute of one drive is 0.1 MB, a day of 24 drives gigabytes, and a page does not wait for that.
MOST_PACKED_BYTES = 8 << 20


def runs_of(folder: Path, noted: Noted) -> tuple[Run, ...]:
    """Every repeat; empty unless all can be read. The records have the rounds of what is missing or too large."""
    shelf, found = Shelf(folder), list[Run]()
    for run in noted.runs:
        try:
            with shelf.require(run.raw) as packed:
                if os.fstat(packed.fileno()).st_size > MOST_PACKED_BYTES:
                    return ()
            found.append(shelf.run(run.facts, noted.workload))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError):
            return ()
    return tuple(found)


def saturation_of(folder: Path, facts: Mapping[str, Any]) -> Saturation | None:
    """That of a ``saturation`` record, every member's curve included; None as ``runs_of``."""
    _, build = BUILDERS["saturation"]
    shelf = Shelf(folder)
    try:
        with shelf.require(str(facts["run"]["raw"])) as packed:
            if os.fstat(packed.fileno()).st_size > MOST_PACKED_BYTES:
                return None
        found = build(facts, shelf)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError):
        return None
    return found if isinstance(found, Saturation) else None


def series(run: Run, figure: Callable[[Interval], float | None]) -> tuple[list[float], list[float]]:
    """What every counted interval shows, by its end in seconds from the beginning of the window."""
    counted = run.counted
    found = [(each.end_s - counted[0].start_s, figure(each)) for each in counted]
    return [at for at, value in found if value is not None], [value for _, value in found if value is not None]


def slowest_ns(interval: Interval) -> float | None:
    latencies = LatencyHistogram.merged(interval.latencies)
    return latencies.max_ns if latencies else None


def mean_ns(interval: Interval) -> float | None:
    latencies = LatencyHistogram.merged(interval.latencies)
    return latencies.mean_ns if latencies else None


def rate(interval: Interval) -> float | None:
    return interval.ios / interval.seconds if interval.seconds else None


def bytes_rate(interval: Interval) -> float | None:
    return (interval.read_bytes + interval.write_bytes) / interval.seconds if interval.seconds else None


def noted_rounds(noted: Noted, figures: Iterable[float | None]) -> tuple[list[float], list[float]]:
    """The same from a record: its rounds, each at its end."""
    run = noted.runs[0]
    values = list(figures)
    length = run.window_s / len(values) if values else 0.0
    found = [((index + 1) * length, value) for index, value in enumerate(values) if value is not None]
    return [at for at, _ in found], [value for _, value in found]
