"""Tables of what was observed beside a measurement: I/O, queue and placement of each member, and shared links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_ssdqual.qual.measured.environment import (
    DeviceQueue,
    DrivePlacement,
    ProcessEnvironment,
    SharedLink,
    SharedLinks,
)
from pytest_ssdqual.qual.measured.result_records import MeasuredRecord
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.units import Unit, format_capacity, format_latency, format_value
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view.tables import Table, TableRow, bounded

#: Rows of a table.
MOST_ROWS = 64
COLUMNS = (
    "Drive", "Reads", "Writes", "Read", "Written", "Temperature", "Mean wait", "Mean queue", "Busy", "Scheduler",
    "NUMA node", "Interrupts on CPU",
)  # fmt: skip
REST = "records.jsonl has them"
LINK_COLUMNS = "Link of", "Drives", "Lanes", "Carries at most", "Carried at most", "Share", "Under"


def members(seen: ProcessEnvironment) -> Table | None:
    """Return the I/O at each member of an array, as the kernel counted it; None if it did not."""
    rows = list(_members(seen))
    title = "I/O at each member in the first measurement"
    # A column of which nothing is known says nothing.
    return bounded(COLUMNS, rows, title, MOST_ROWS, REST).used() if rows else None


def _members(seen: ProcessEnvironment) -> Iterator[TableRow]:
    for drive in seen.drives:
        if counted := drive.device.counted:
            heat = drive.heat.temperature_c
            yield (
                drive.name,
                f"{counted.reads:,}",
                f"{counted.writes:,}",
                format_capacity(counted.read_bytes),
                format_capacity(counted.write_bytes),
                "" if heat is None else f"{heat:g} °C",
                *_queue(drive.queue),
                *_place(drive.placement),
            )


def _queue(queue: DeviceQueue | None) -> tuple[str, str, str]:
    """Return the mean wait of an I/O, the mean number outstanding and the busy share; empty if unknown."""
    if queue is None or queue.wait_ns is None:
        return "", "", ""
    return format_latency(queue.wait_ns), f"{queue.mean_depth:.1f}", f"{queue.busy:.0%}"


def _place(place: DrivePlacement | None) -> tuple[str, str, str]:
    if place is None:
        return "", "", ""
    requests = "" if place.nr_requests is None else f", {place.nr_requests:,} requests"
    node = "" if place.numa_node is None else str(place.numa_node)
    cache = f", {place.write_cache}" if place.write_cache else ""
    return f"{place.scheduler}{requests}{cache}" if place.scheduler else "", node, place.interrupt_cpus


def shared_links(story: RunReader) -> Table:
    """Return a row for each link that drives share: what it carries, and the most that was measured over it.

    Bare drives side by side load their links most. Each is taken to do the same part of what all did.
    """
    noted = list(story.contents(SharedLinks, "shared_links"))[-1:]
    links = noted[0].links if noted else ()
    runs = _side_by_side(story) if links else []
    rows = [_shared(link, runs) for link in links]
    return bounded(LINK_COLUMNS, rows, f"Links that drives share: {len(rows):,}", MOST_ROWS, REST)


def _side_by_side(story: RunReader) -> list[RunRecord]:
    """Return the runs of bare drives; a damaged record without members has none."""
    records = story.contents(MeasuredRecord, "measured", "member")
    return [run for record in records if record.geometry.is_side_by_side for run in record.runs if run.members]


def _shared(link: SharedLink, runs: Iterable[RunRecord]) -> TableRow:
    name = (link.name, f"{len(link.drives):,}", f"{link.speed:g} GT/s × {link.width}", _rate(link.bytes_per_s))
    most, run = max(((_carried(link, run), run) for run in runs), key=lambda pair: pair[0], default=(0.0, None))
    if run is None:
        return (*name, "", "", "")
    return (*name, _rate(most), f"{most / link.bytes_per_s:.0%}", run.workload)


def _carried(link: SharedLink, run: RunRecord) -> float:
    """Return the bytes per second over a link in the direction that had more."""
    larger = max(run.read_iops, run.write_iops) / run.iops if run.iops else 0.0
    return run.bytes_per_s * larger * len(set(link.drives) & set(run.members)) / len(run.members)


def _rate(bytes_per_s: float) -> str:
    return format_value(bytes_per_s, Unit.BYTES_PER_SECOND)
