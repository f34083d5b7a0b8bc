"""What an earlier session of a run has left: its results, and the array on the drives with its state.

`Checkpoint` is the content of ``checkpoint.json``. ``after`` gives the state after an event of the journal, which
writes the file before it returns: an event that changes the drives is recorded before it is done, one that finishes a
step after it was done. So the file never promises more than the drives hold, wherever a session is cut short. In doubt
nothing is left: a wrong re-adoption falsifies measurements, a missing one costs hours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.health.write_counters import Written

if TYPE_CHECKING:
    # At run time it would load pydantic, by the rules of protocols: half a second for `ssdqual --help`.
    from pytest_ssdqual.qual.stats.visits import Cell

#: Purposes of fio processes that preserve the conditioning of an array; any other one ends it.
REPEATABLE = ("run", "precondition", "refresh")
#: Kinds of records about an array that do not change it.
REMARKS = (
    "environment",
    "cell",
    "cell_left_out",
    "looked",
    "steady",
    "member",
    "alone",
    "measured",
    "ceiling",
    "conditioning_not_kept",
    "drives_left_out",
    "check_ended",
    "preparation_repeated",
    "self_test_awaited",
    "trace",
    "replayed_without_drives",
    "visit_missed",
    "read_back",
    "wrong_data",
)


@frozen
class ResultKey:
    """Key of one measurement."""

    #: ``measured``, ``member``, ``alone``, ``ceiling``, ``saturation``, ``loop``, ``rebuild`` or ``search``.
    kind: str
    geometry: Geometry
    #: A workload, or the name of a workload set.
    what: str


@frozen
class Conditioned:
    """The writes that conditioned for an access pattern, and the steady state they reached.

    Of drives side by side ``state`` is the least steady one's.
    """

    writes: Workload
    state: SteadyState
    #: IOPS at which each drive side by side settled, by serial number; empty for an array.
    rates: Mapping[str, float] = field(default_factory=dict)


@frozen
class Checkpoint:
    """The array, or the drives side by side, that this run built last, and its state.

    ``readopt_array`` checks that the drives are still in that state.
    """

    geometry: Geometry
    #: Identities, in the order of the array.
    members: tuple[str, ...]
    #: UUID of the md array, or of the last one that was assembled of drives side by side; empty if there is none.
    uuid: str
    passes: int
    fill_bs: str
    size_bytes: int
    #: Offset of the data on each member.
    data_offset_bytes: int
    #: How the members came to agree (``mdadm.Array.consistency``).
    consistency: str
    #: None if it was only filled.
    conditioned: Conditioned | None = None
    #: Write counters of each member, by its identity, when they were last read; empty if they were not.
    counters: Mapping[str, Written] = field(default_factory=dict)
    #: True if a later session stopped it, not the one that used it: then only the same boot of the machine proves that
    #: nothing else was written to it.
    abandoned: bool = False
    #: True after the last pass of the fill.
    filled: bool = False
    #: True from before a fio process that writes until its end is recorded.
    writing: bool = False
    #: True if the array was stopped with all its members.
    stopped: bool = False
    #: The array that was assembled of these drives and not stopped; None if there is none.
    assembled: Geometry | None = None

    @property
    def is_intact(self) -> bool:
        """Return whether it may be re-adopted: filled, counted, ended in order, and nothing was being written."""
        is_ended = self.assembled is None if self.geometry.is_side_by_side else self.stopped
        return self.filled and bool(self.counters) and is_ended and not self.writing


def concerns(kind: str, facts: Mapping[str, Any]) -> bool:
    """Return whether a record may be about a change of the array: also any of an unknown kind that names one."""
    return kind not in REMARKS and (kind in STEPS or "geometry" in facts or "uuid" in facts)


def after(before: Checkpoint | None, kind: str, facts: Mapping[str, Any]) -> Checkpoint | None:
    """Return the state after an event, given as the plain data of its record; None if nothing can be re-adopted."""
    if not concerns(kind, facts):
        return before
    try:
        if kind in ("array_planned", "array_created") and facts.get("of_drives"):
            return _assembled(before, facts)
        if kind == "array_created":
            # What was filled in part is not as a fill of the protocol leaves it.
            return None if facts["fill"].get("region_percent") else _created(facts)
        return STEPS[kind](before, facts) if before and kind in STEPS else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None  # an unreadable record may be of any change


def _created(facts: Mapping[str, Any]) -> Checkpoint:
    return Checkpoint(
        geometry=Geometry.parse(facts["geometry"]),
        members=tuple(map(str, facts["members"])),
        uuid=str(facts["uuid"]),
        passes=int(facts["fill"]["passes"]),
        fill_bs=str(facts["fill"]["bs"]),
        size_bytes=int(facts["size_bytes"]),
        data_offset_bytes=int(facts["data_offset_bytes"]),
        consistency=str(facts["consistency"]),
    )


def _assembled(before: Checkpoint | None, facts: Mapping[str, Any]) -> Checkpoint | None:
    """The array's members keep their data; the drives are left as they were when it is stopped."""
    if before is None or str(before.geometry) != facts["of_drives"] or not set(facts["members"]) <= set(before.members):
        return None  # a record of drives that this state is not about
    return replace(before, uuid=str(facts["uuid"]), assembled=Geometry.parse(facts["geometry"]), stopped=False)


def _member_failed(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint | None:
    # A member that was failed in an assembled array is not written to any more; any other array is lost with it.
    if before.assembled is None or facts["uuid"] != before.uuid:
        return None
    return replace(before, assembled=Geometry.parse(facts["geometry"]))


def _measuring(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint | None:
    if before.geometry.is_side_by_side and not facts["writes"]:
        return before  # also of one of the drives alone
    if facts["fio"] not in REPEATABLE or not _stands(before, Geometry.parse(facts["geometry"])):
        return None
    # The writes of one access pattern undo the state of another; an assembled array has that of its drives.
    is_anew = facts["fio"] == "precondition" and before.assembled is None
    return replace(before, conditioned=None if is_anew else before.conditioned, writing=bool(facts["writes"]))


def _stands(before: Checkpoint, geometry: Geometry) -> bool:
    """Return whether this is the array, or the first of the drives side by side."""
    now = before.assembled or before.geometry
    is_part = now.is_side_by_side and geometry.is_side_by_side and geometry.width <= now.width
    return is_part or geometry == now


def _ran(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    return replace(before, writing=False)


def _filled(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    return replace(before, filled=facts["passes"] >= 1)


def _conditioned(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    if before.assembled is not None:
        return before
    enough = facts["steady"]["reached"] and facts["bytes_written"] >= facts["least_bytes"]
    return replace(before, conditioned=_conditioning(facts) if enough else None)


def _conditioning(facts: Mapping[str, Any]) -> Conditioned:
    rates = {str(serial): float(rate) for serial, rate in facts["rates"].items()}
    return Conditioned(Workload.parse(facts["workload"]), from_plain(SteadyState, facts["steady"]), rates)


def _conditioning_kept(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    kept = facts["conditioned"]
    return replace(before, filled=True, conditioned=_conditioning(kept) if kept else None)


def _confirmed(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    return before if facts["confirmed"] else replace(before, conditioned=None)


def _refreshed(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    rates = {str(serial): float(rate) for serial, rate in facts["settled"].items()}
    return replace(before, conditioned=before.conditioned and replace(before.conditioned, rates=rates))


def _counters(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    # An earlier array of the same drives is counted when it was stopped, before the next one is assembled.
    if facts["uuid"] != before.uuid and (facts["uuid"] or not before.geometry.is_side_by_side):
        return before
    counters = {**before.counters, **{name: from_plain(Written, each) for name, each in facts["written"].items()}}
    # A session that closes counts after its last fio had ended, with the lease held: all writes are its own.
    return replace(before, counters=counters, writing=before.writing and facts["moment"] != "closed")


def _measurement_failed(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint | None:
    # A failed drive may have lost what was written to it; a failed process leaves the array as ``writing`` says.
    return None if facts["origin"] == "drive" else before


def _array_stopped(before: Checkpoint, facts: Mapping[str, Any]) -> Checkpoint:
    if facts["uuid"] != before.uuid:
        return before
    healthy = not facts["not_erased"] and not facts["objections"]
    assembled = None if healthy else before.assembled
    return replace(before, stopped=healthy, assembled=assembled, abandoned=bool(facts.get("leftover")))


#: Events that leave the array re-adoptable. Any other one that names an array ends that.
STEPS: Mapping[str, Callable[[Checkpoint, Mapping[str, Any]], Checkpoint | None]] = {
    "measuring": _measuring,
    "ran": _ran,
    "filled": _filled,
    "conditioned": _conditioned,
    "conditioning_kept": _conditioning_kept,
    "conditioning_confirmed": _confirmed,
    "refreshed": _refreshed,
    "counters": _counters,
    "measurement_failed": _measurement_failed,
    "array_stopped": _array_stopped,
    "member_failed": _member_failed,
}


class EarlierResults:
    """Results of earlier sessions: none here, and those of its run folder in a run that was resumed."""

    def has(self, key: ResultKey) -> bool:
        """Return True if the measurement was made and its evidence still exists, or if the search has ended."""
        return False

    def recall(self, key: ResultKey) -> object | None:
        """Return the value of that kind (``Measured``, ``Saturation``, …), or None if it has to be measured."""
        return None

    def cells(self, key: ResultKey) -> Sequence[Cell]:
        """Return the cells of a measurement in visits, in order of time; those that are damaged are left out."""
        return ()

    def left_array(self) -> Checkpoint | None:
        """Return the array that was left intact, or None."""
        return None
