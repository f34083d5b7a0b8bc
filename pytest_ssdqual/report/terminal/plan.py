"""The plan of a run as text, for --collect-only; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.progress_events import Planned, array_of
from pytest_ssdqual.qual.units import format_capacity, format_duration
from pytest_ssdqual.report.run_folder.manifest import NONE
from pytest_ssdqual.report.view.tables import Table, text_table


@dataclass(frozen=True, slots=True)
class PlannedArray:
    """An array and the work planned on it; a row for each way of building it."""

    #: Array, with the kind of work if it is not a plain measurement: ``raid5x4 saturation``.
    geometry: str
    #: Number of workloads that will be measured on it.
    workloads: int
    condition_s: float
    measure_s: float
    #: Bytes that the run writes to all members, parity and copies included.
    bytes_written: int
    #: Time beyond the expected one, at most, of a loop until it is steady or of a sequential measurement until it is
    #: decided.
    more_s: float = 0.0
    more_bytes: int = 0
    is_loop: bool = False

    @property
    def seconds(self) -> float:
        return self.condition_s + self.measure_s


@dataclass(frozen=True, slots=True)
class PrintedPlan:
    """The whole plan, in the order of execution."""

    arrays: tuple[PlannedArray, ...]
    drives: int
    protocol: str
    acceptance: bool
    #: Rated endurance of a drive in bytes, if its data sheet has it.
    endurance_bytes: int | None = None
    #: Capacity of the smallest drive; 0 if unknown.
    drive_bytes: int = 0
    #: Maximum number of rounds of the loops; 0 without loops.
    most_rounds: int = 0
    #: Earliest and latest end of a measurement of a sequential protocol.
    first_s: float = 0.0
    limit_s: float = 0.0
    #: Length of a cell if workloads of an array take turns, else 0.
    cell_s: float = 0.0
    #: False if only a pattern determined the number of drives.
    is_expected: bool = True
    #: Nine of ten simulated runs take a time from the first to the second; nine of ten at most the third. 0: as
    #: expected.
    low_s: float = 0.0
    high_s: float = 0.0
    ninety_s: float = 0.0
    #: What the forecast assumes because nothing is published, a part of a sentence each.
    assumptions: tuple[str, ...] = ()
    #: What will be too short to be judged, a sentence each.
    too_short: tuple[str, ...] = ()
    #: How many tests have no limit, a sentence; empty if all have one.
    without_limit: str = ""
    #: Promises that decide nothing, a sentence each.
    unused: tuple[str, ...] = ()
    #: What a budget buys, a sentence each; empty without one.
    budget: tuple[str, ...] = ()
    #: State in which the drives' write caches will be put, ``on`` or ``off``; empty if they stay as they are.
    write_cache: str = ""
    #: Each measurement that ends when it is decided: its name as a step, its expected begin and duration in seconds.
    measurements: tuple[tuple[str, float, float], ...] = ()
    #: Expected duration of the longest step, with its preparation.
    longest_s: float = 0.0

    @property
    def seconds(self) -> float:
        return sum(array.seconds for array in self.arrays)

    @property
    def bytes_written(self) -> int:
        return sum(array.bytes_written for array in self.arrays)

    @property
    def bytes_per_drive(self) -> float:
        return self.bytes_written / max(1, self.drives)

    @property
    def drive_writes(self) -> float:
        """Bytes written to a drive in multiples of its capacity."""
        return self.bytes_per_drive / self.drive_bytes if self.drive_bytes else 0.0

    @property
    def endurance_percent(self) -> float:
        return 100 * self.bytes_per_drive / self.endurance_bytes if self.endurance_bytes else 0.0

    @property
    def planned(self) -> Planned:
        """The plan as a progress event."""
        names: list[str] = []
        starts_s: list[float] = []
        passed_s = 0.0
        for array in self.arrays:
            name = array_of(array.geometry)
            if name not in names[-1:]:
                names.append(name)
                starts_s.append(passed_s)
            passed_s += array.seconds
        return Planned(self.seconds, tuple(names), tuple(starts_s))


#: The plan is not split into bands of columns.
UNLIMITED = 10_000
HEAD = ("array", "workloads", "conditioning", "measuring", "in all", "written")


def plan_lines(plan: PrintedPlan) -> list[str]:
    """Return the plan as a table with totals, or one sentence if no array is needed."""
    if not plan.arrays and plan.budget:
        return ["ssdqual: the budget leaves out the whole plan", *(f"  {line}" for line in plan.budget)]
    if not plan.arrays:
        return ["ssdqual: no array is needed by the tests selected, nothing will be written"]
    rows = [_row(array.geometry, array) for array in plan.arrays]
    total = PlannedArray(
        "",
        sum(array.workloads for array in plan.arrays),
        sum(array.condition_s for array in plan.arrays),
        sum(array.measure_s for array in plan.arrays),
        plan.bytes_written,
    )
    if len(rows) > 1:
        rows.append(_row("total", total))
    return [
        f"ssdqual: the plan for {plan.drives} drive{'s' if plan.drives > 1 else ''}, protocol {plan.protocol}"
        + ("" if plan.acceptance else " (not for acceptance)"),
        *(line.text for line in text_table(Table(HEAD, tuple(rows)), UNLIMITED)),
        *(f"  {line}" for line in _remarks(plan)),
    ]


#: Columns of the comparison of protocols.
COMPARED = ("protocol", "expected", "nine of ten simulated", "drive writes", "of rated endurance")


def comparison_lines(plans: Sequence[PrintedPlan]) -> list[str]:
    """Return the plans of several protocols side by side; drive writes are in capacities of a drive."""
    rows = [
        (
            plan.protocol,
            _duration(plan.seconds),
            _duration(plan.ninety_s or plan.seconds),
            f"{plan.drive_writes:.1f}" if plan.drive_bytes else "-",
            f"{plan.endurance_percent:.2g} %" if plan.endurance_bytes else "unknown",
        )
        for plan in plans
    ]
    return [
        "ssdqual: the same tests by each protocol for acceptance",
        *(line.text for line in text_table(Table(COMPARED, tuple(rows)), UNLIMITED)),
    ]


def _row(name: str, array: PlannedArray) -> tuple[str, ...]:
    return (
        name,
        str(array.workloads),
        _duration(array.condition_s),
        _duration(array.measure_s),
        _duration(array.seconds),
        format_capacity(array.bytes_written) if array.bytes_written else "-",
    )


def _remarks(plan: PrintedPlan) -> Iterator[str]:
    if not plan.is_expected:
        yield f"{NONE}: --ssd-expect={plan.drives} would detect a missing one"
    if plan.low_s < plan.high_s:
        low, high = format_duration(round(plan.low_s)), format_duration(round(plan.high_s))
        yield (
            f"times are expected ones, from simulations; all took {low} to {high} in nine of ten of them, longer on "
            "drives with cycles of 20 min and more"
        )
    else:
        yield "times are estimates: conditioning goes on until the array is steady"
    if plan.write_cache:
        yield (
            f"write caches are switched {plan.write_cache} where the drives let them be, and restored when the run ends"
        )
    yield from plan.too_short
    if plan.without_limit:
        yield plan.without_limit
    yield from plan.unused
    yield from plan.budget
    for assumed in plan.assumptions:
        yield f"assumed: {assumed}"
    if more := _more(array for array in plan.arrays if array.is_loop):
        yield f"loops go on until they are steady, {plan.most_rounds} rounds at most: that is up to {more} more"
    if plan.cell_s:
        yield (
            f"the random workloads of an array take turns, {format_duration(plan.cell_s)} each, so their verdicts come "
            "after hours and close together"
        )
    if more := _more(array for array in plan.arrays if not array.is_loop):
        yield (
            f"each workload is measured until its verdicts are certain, {format_duration(plan.first_s)} at least and "
            f"{format_duration(plan.limit_s)} at most: that is up to {more} more"
        )
    if plan.endurance_bytes and plan.drives:
        yield (
            f"about {format_capacity(round(plan.bytes_per_drive))} per drive, {plan.endurance_percent:.2g} % of its "
            f"rated endurance of "
            f"{format_capacity(plan.endurance_bytes)}"
        )
    yield "all data on the drives will be destroyed"


def _more(arrays: Iterable[PlannedArray]) -> str:
    """Return time and bytes beyond the plan; empty if there are none."""
    found = list(arrays)
    seconds, written = sum(array.more_s for array in found), sum(array.more_bytes for array in found)
    if not seconds:
        return ""
    return f"{_duration(seconds)} and {format_capacity(written)}" if written else _duration(seconds)


def _duration(seconds: float) -> str:
    return format_duration(round(seconds)) if seconds >= 1 else "-"
