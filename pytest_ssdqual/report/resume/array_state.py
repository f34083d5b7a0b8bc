"""Which array a run left in order when it ended, or was ended: read from its records, without a look at the machine.

The rule of the module: a doubt is a no. What is kept by mistake falsifies measurements; what is not kept costs hours.
So whatever these records do not account for, and every kind of record about arrays that is not known here, counts as
something that was done to the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.strict_json import conforming
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.rig.drives.write_counters import Written
from pytest_ssdqual.rig.resume.checkpoint import Conditioned, Inheritance

#: fio processes after which an array is as conditioned as before; any other kind uses it up.
REPEATABLE = ("run", "precondition", "confirm")
#: What is noted of an array without anything being done to it.
REMARKS = ("surroundings", "looked", "steady", "measured", "array_planned", "conditioning_not_kept")


@dataclass(slots=True)
class _Traces:
    """What the records say of the array that was built last, so far."""

    created: Mapping[str, Any]
    filled: bool = False
    conditioned: Conditioned | None = None
    counters: Mapping[str, Written] | None = None
    #: A fio process that writes has begun, and there is no word of its end.
    writing: bool = False
    #: Taken down in order, with all its members, when nothing ran on them any more.
    stopped: bool = False
    abandoned: bool = False
    spent: bool = False

    @property
    def geometry(self) -> Geometry:
        return Geometry.parse(self.created["geometry"])

    def is_about(self, facts: Mapping[str, Any]) -> bool:
        return bool(facts.get("uuid", self.created["uuid"]) == self.created["uuid"])


def inheritance(records: Iterable[Record]) -> Inheritance | None:
    """What the last session left, or None if that is nothing, or nothing one could build on."""
    traces: _Traces | None = None
    for record in records:
        if record.kind in ("array_planned", "array_created"):
            # The members' old content is gone from the moment on in which the next array is begun.
            traces = _Traces(record.facts) if record.kind == "array_created" else None
        elif traces is not None:
            try:
                _follow(traces, record)
            except (KeyError, TypeError, ValueError, AttributeError):
                traces.spent = True  # a record that cannot be read may have said anything
    return _kept(traces) if traces is not None else None


def _follow(traces: _Traces, record: Record) -> None:
    facts = record.facts
    if record.kind in STEPS:
        STEPS[record.kind](traces, facts)
    elif record.kind not in REMARKS and ("geometry" in facts or "uuid" in facts):
        traces.spent = True


def _measuring(traces: _Traces, facts: Mapping[str, Any]) -> None:
    if facts["fio"] not in REPEATABLE or facts["geometry"] != str(traces.geometry):
        traces.spent = True
    if facts["fio"] == "precondition":
        traces.conditioned = None  # from its first write on: the writes of one class undo the state of the other
    traces.writing = bool(facts["writes"])


def _ran(traces: _Traces, facts: Mapping[str, Any]) -> None:
    traces.writing = False


def _filled(traces: _Traces, facts: Mapping[str, Any]) -> None:
    traces.filled = facts["passes"] >= 1


def _conditioned(traces: _Traces, facts: Mapping[str, Any]) -> None:
    enough = facts["steady"]["reached"] and facts["bytes_written"] >= facts["least_bytes"]
    traces.conditioned = _conditioning(facts) if enough else None


def _conditioning(facts: Mapping[str, Any]) -> Conditioned:
    steady = facts["steady"]
    state = conforming(SteadyState(**{**steady, "values": tuple(steady["values"])}))
    return Conditioned(Workload.parse(facts["workload"]), state)


def _conditioning_kept(traces: _Traces, facts: Mapping[str, Any]) -> None:
    traces.filled = True
    kept = facts["conditioned"]
    traces.conditioned = _conditioning(kept) if kept else None


def _confirmed(traces: _Traces, facts: Mapping[str, Any]) -> None:
    if not facts["confirmed"]:
        traces.conditioned = None


def _counters(traces: _Traces, facts: Mapping[str, Any]) -> None:
    if not traces.is_about(facts):
        return
    traces.counters = {name: Written.from_record(each) for name, each in facts["written"].items()}
    if facts["moment"] == "closed":
        # Counted by the session itself after its last fio had ended, with the lease held throughout: whatever was
        # written until then was written by it.
        traces.writing = False


def _array_stopped(traces: _Traces, facts: Mapping[str, Any]) -> None:
    if traces.is_about(facts):
        healthy = not facts["not_erased"] and not facts["objections"]
        traces.stopped, traces.abandoned = healthy, bool(facts.get("leftover"))


def _run_resumed(traces: _Traces, facts: Mapping[str, Any]) -> None:
    """A session that begins finds no fio running: its first act was to end and clear away what was left."""


STEPS: Mapping[str, Callable[[_Traces, Mapping[str, Any]], None]] = {
    "measuring": _measuring,
    "ran": _ran,
    "filled": _filled,
    "conditioned": _conditioned,
    "conditioning_kept": _conditioning_kept,
    "conditioning_confirmed": _confirmed,
    "counters": _counters,
    "array_stopped": _array_stopped,
    "run_resumed": _run_resumed,
}


def _kept(traces: _Traces) -> Inheritance | None:
    created = traces.created
    if traces.spent or traces.writing or not traces.filled or traces.counters is None:
        return None
    try:
        geometry = traces.geometry
        if not geometry.is_side_by_side and not traces.stopped:
            return None
        return Inheritance(
            geometry=geometry,
            members=tuple(map(str, created["members"])),
            uuid=str(created["uuid"]),
            passes=int(created["fill"]["passes"]),
            fill_bs=str(created["fill"]["bs"]),
            size_bytes=int(created["size_bytes"]),
            data_offset_bytes=int(created["data_offset_bytes"]),
            consistency=str(created["consistency"]),
            conditioned=traces.conditioned,
            counters=traces.counters,
            abandoned=traces.abandoned,
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
