"""The plan of a run as text, for --collect-only; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.progress_events import Planned
from pytest_ssdqual.qual.units import format_capacity, format_duration
from pytest_ssdqual.report.run_folder.manifest import NONE
from pytest_ssdqual.report.view.tables import Table, text_table

#: The plan is not split into bands of columns.
UNLIMITED = 10_000
HEAD = ("array", "workloads", "conditioning", "measuring", "in all", "at most", "written", "at most")
#: Columns of the comparison of protocols.
COMPARED = ("protocol", "at least", "at most", "drive writes", "of rated endurance")


@frozen
class PlannedArray:
    """An array and the work planned on it; a row for each way of building it."""

    #: Array, with the kind of work if it is not a plain measurement: ``raid5x4 saturation``.
    geometry: str
    #: Number of workloads that will be measured on it.
    workloads: int = 0
    #: Least times.
    condition_s: float = 0.0
    measure_s: float = 0.0
    #: Bytes that the run writes to all members in the least time, parity and copies included.
    bytes_written: float = 0.0
    #: Time and bytes of all that the protocol allows; 0: as the least.
    most_s: float = 0.0
    most_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        return self.condition_s + self.measure_s

    @property
    def at_most_s(self) -> float:
        return max(self.seconds, self.most_s)

    @property
    def at_most_bytes(self) -> float:
        return max(self.bytes_written, self.most_bytes)


@frozen
class PrintedPlan:
    """The whole plan, in the order of execution. Times without a comment are the least ones."""

    arrays: tuple[PlannedArray, ...]
    drives: int
    protocol: str
    acceptance: bool
    #: Rated endurance of a drive in bytes, if its data sheet has it.
    endurance_bytes: int | None = None
    #: Capacity of the smallest drive; 0 if unknown.
    drive_bytes: int = 0
    #: Visits of each array before the first look, and of all rounds; 0 if nothing is visited.
    least_visits: int = 0
    most_visits: int = 0
    #: False if only a pattern determined the number of drives.
    is_expected: bool = True
    #: What the forecast assumes because nothing is published, a part of a sentence each.
    assumptions: tuple[str, ...] = ()
    #: What will be too short to be judged, a sentence each.
    too_short: tuple[str, ...] = ()
    #: Reasons why the run cannot begin, one sentence each.
    impossible: tuple[str, ...] = ()
    #: What the drives map at a time, a sentence; empty if that is 4 KiB or unknown.
    unit: str = ""
    #: How many tests have no limit, a sentence; empty if all have one.
    without_limit: str = ""
    #: Promises that decide nothing, a sentence each.
    unused: tuple[str, ...] = ()
    #: What a budget buys, a sentence each; empty without one.
    budget: tuple[str, ...] = ()
    #: State in which the drives' write caches will be put, ``on`` or ``off``; empty if they stay as they are.
    write_cache: str = ""
    #: Id of each array as often as it is built, the bare drives included, and its begin in seconds.
    starts: tuple[tuple[str, float], ...] = ()
    #: Most time that a test may wait for its measurements.
    longest_s: float = 0.0

    @property
    def seconds(self) -> float:
        return sum(array.seconds for array in self.arrays)

    @property
    def at_most_s(self) -> float:
        return sum(array.at_most_s for array in self.arrays)

    @property
    def bytes_written(self) -> float:
        return sum(array.bytes_written for array in self.arrays)

    @property
    def at_most_bytes(self) -> float:
        return sum(array.at_most_bytes for array in self.arrays)

    @property
    def drive_writes(self) -> tuple[float, float]:
        """Bytes written to a drive in multiples of its capacity, at least and at most; 0 if that is unknown."""
        capacity = self.drive_bytes * self.drives
        if not capacity:
            return 0.0, 0.0
        return self.bytes_written / capacity, self.at_most_bytes / capacity

    @property
    def planned(self) -> Planned:
        """The plan as a progress event."""
        names, starts_s = (tuple(name for name, _ in self.starts), tuple(start_s for _, start_s in self.starts))
        # A budget ends the run earlier than the protocol.
        return Planned(self.seconds, names, starts_s, most_s=0.0 if self.budget else self.at_most_s)


def plan_lines(plan: PrintedPlan) -> list[str]:
    """Return the plan as a table with totals, or one sentence if no array is needed."""
    if not plan.arrays and plan.budget:
        return ["ssdqual: the budget leaves out the whole plan", *(f"  {line}" for line in plan.budget)]
    if not plan.arrays:
        return ["ssdqual: no array is needed by the tests selected, nothing will be written"]
    rows = [_row(array.geometry, array) for array in plan.arrays]
    if len(rows) > 1:
        rows.append(_row("total", _total(plan)))
    return [
        f"ssdqual: the plan for {plan.drives} drive{'s' if plan.drives > 1 else ''}, protocol {plan.protocol}"
        + ("" if plan.acceptance else " (not for acceptance)"),
        *(line.text for line in text_table(Table(HEAD, tuple(rows)), UNLIMITED)),
        *(f"  {line}" for line in _remarks(plan)),
    ]


def _total(plan: PrintedPlan) -> PlannedArray:
    return PlannedArray(
        "",
        sum(array.workloads for array in plan.arrays),
        sum(array.condition_s for array in plan.arrays),
        sum(array.measure_s for array in plan.arrays),
        plan.bytes_written,
        plan.at_most_s,
        plan.at_most_bytes,
    )


def comparison_lines(plans: Sequence[PrintedPlan]) -> list[str]:
    """Return the plans of several protocols side by side; drive writes are in capacities of a drive."""
    rows = [
        (
            plan.protocol,
            _duration(plan.seconds),
            _duration(plan.at_most_s),
            _range(*plan.drive_writes, ".1f") if plan.drive_bytes else "-",
            _of_endurance(plan) or "unknown",
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
        _duration(array.at_most_s),
        format_capacity(int(array.bytes_written)) if array.bytes_written else "-",
        format_capacity(int(array.at_most_bytes)) if array.at_most_bytes else "-",
    )


def _remarks(plan: PrintedPlan) -> Iterator[str]:
    if not plan.is_expected:
        yield f"{NONE}: --ssd-expect={plan.drives} would detect a missing one"
    yield _of_times(plan)
    if plan.write_cache:
        yield (
            f"write caches are switched {plan.write_cache} where the drives let them be, and restored when the run ends"
        )
    yield from plan.impossible
    yield from plan.too_short
    if plan.unit:
        yield plan.unit
    if plan.without_limit:
        yield plan.without_limit
    yield from plan.unused
    yield from plan.budget
    for assumed in plan.assumptions:
        yield f"assumed: {assumed}"
    if percent := _of_endurance(plan):
        per_drive = [round(each / plan.drives) for each in (plan.bytes_written, plan.at_most_bytes)]
        written = " to ".join(dict.fromkeys(map(format_capacity, per_drive)))
        rated = format_capacity(plan.endurance_bytes or 0)
        yield f"about {written} per drive, {percent} of its rated endurance of {rated}"
    yield "all data on the drives will be destroyed"


def _of_times(plan: PrintedPlan) -> str:
    """Return what the least and the most times are."""
    if plan.seconds == plan.at_most_s:
        return "times are estimates"
    least, most = _duration(plan.seconds), _duration(plan.at_most_s)
    if not plan.most_visits:
        return f"{least} if drives are steady at once; at most {most}, when the protocol gives up"
    visits = {1: "one visit", 2: "two visits"}.get(plan.least_visits, f"{plan.least_visits} visits")
    return (
        f"{least} if drives settle at once and {visits} of each array decide everything; at most {most}: "
        f"what is undecided is visited again, {plan.most_visits} times in all"
    )


def _of_endurance(plan: PrintedPlan) -> str:
    """Return the bytes written in per cent of the rated endurance; empty if that is unknown."""
    if not plan.endurance_bytes or not plan.drives:
        return ""
    rated = plan.endurance_bytes * plan.drives / 100
    return f"{_range(plan.bytes_written / rated, plan.at_most_bytes / rated, '.2g')} %"


def _range(least: float, most: float, form: str) -> str:
    return " to ".join(dict.fromkeys(f"{each:{form}}" for each in (least, most)))


def _duration(seconds: float) -> str:
    return format_duration(round(seconds)) if seconds >= 1 else "-"
