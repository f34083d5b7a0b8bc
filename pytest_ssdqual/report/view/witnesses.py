"""The table of what was observed at each member while an array was measured: its I/O, queue and placement."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ssdqual.qual.measured.environment import DeviceQueue, DrivePlacement, ProcessEnvironment
from pytest_ssdqual.qual.units import format_capacity, format_latency
from pytest_ssdqual.report.view.tables import Table, TableRow, bounded

#: Rows of a table.
MOST_ROWS = 64
COLUMNS = (
    "Drive", "Reads", "Writes", "Read", "Written", "Temperature", "Mean wait", "Mean queue", "Busy", "Scheduler",
    "NUMA node", "Interrupts on CPU",
)  # fmt: skip
REST = "records.jsonl has them"


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
