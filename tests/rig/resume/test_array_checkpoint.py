from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.measuring import STREAM, WRITE

import pytest_ssdqual
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.rig.health.write_counters import Written
from pytest_ssdqual.rig.resume.checkpoint import REMARKS, STEPS, Checkpoint, Conditioned, after


def left_after(records: Iterable[Record]) -> Checkpoint | None:
    """What may be re-adopted after these events, each of which was written to a file and read back."""
    state: Checkpoint | None = None
    for each in records:
        found = after(state, each.kind, plain(each.facts))
        state = from_plain(Checkpoint, plain(found)) if found else None
        assert state == found
    return state if state and state.is_intact else None


UUID = "0123abcd:4567ef01:89ab2345:cdef6789"
MEMBERS = ("S1", "S2", "S3")
SETTLED = steady_state.judge([1000.0, 1010.0, 990.0, 1000.0, 1000.0], SteadyRule())
UNSETTLED = steady_state.judge([1000.0, 2000.0, 990.0, 1000.0, 1000.0], SteadyRule())


def record(kind: str, **facts: object) -> Record:
    return Record(kind, "2026-01-01T00:00:00.000+00:00", facts)


def created(geometry: str = "raid5x3", uuid: str = UUID, **changes: object) -> list[Record]:
    about = {"uuid": uuid, "geometry": geometry, "members": list(MEMBERS), "device": "/dev/md100", "machine_id": "m"}
    facts = {"size_bytes": 1 << 29, "data_offset_bytes": 1 << 20, "fill": {"passes": 2, "bs": "128k"}}
    planned = [record("array_planned", **about)] if uuid else []
    return [
        record("purging", geometry=geometry, members=list(MEMBERS)),
        *planned,
        record("array_created", **{**about, **facts, "purge": {}, "consistency": "zeroed", **changes}),
    ]


def filled(geometry: str = "raid5x3") -> Record:
    return record("filled", geometry=geometry, passes=2, bs="128k", raw="fio/fill.json.gz")


def conditioned(writes: Workload = WRITE, state: steady_state.SteadyState = SETTLED, written: int = 10) -> Record:
    return record(
        "conditioned", geometry="raid5x3", workload=str(writes), random=writes.is_random, seconds=60.0,
        bytes_written=written, least_bytes=10, round_iops=[], steady={**asdict(state), "values": list(state.values)},
        rates={}, raw=[],
    )  # fmt: skip


def counted(moment: str = "measured", sectors: int = 1000, uuid: str = UUID) -> Record:
    written = {name: plain(written_by(sectors)) for name in MEMBERS}
    return record("counters", moment=moment, geometry="raid5x3", uuid=uuid, written=written)


def written_by(sectors: int) -> Written:
    return Written("boot", 7, sectors, 0, None)


def measuring(fio: str = "run", *, writes: bool, geometry: str = "raid5x3") -> Record:
    return record("measuring", geometry=geometry, workload="w", fio=fio, asked={}, writes=writes)


def ran(geometry: str = "raid5x3") -> Record:
    return record("ran", geometry=geometry, workload="w", fio="run", raw="fio/x.json.gz", sha256="")


def stopped(**changes: object) -> Record:
    return record("array_stopped", **{"uuid": UUID, "not_erased": [], "objections": [], **changes})


LEFT_OVER = stopped(leftover=True)
#: What was done before the session ended, and how it ended.
WHOLE = [*created(), filled(), counted("built", 500), conditioned(), counted("conditioned")]
KILLED = [*WHOLE, measuring(writes=False), record("run_resumed"), LEFT_OVER]
CLOSED = [*WHOLE, stopped(), counted("closed", 1008)]


def test_what_was_killed_while_it_read_is_left_in_order() -> None:
    assert left_after(KILLED) == Checkpoint(
        geometry=Geometry.parse("raid5x3"),
        members=MEMBERS,
        uuid=UUID,
        passes=2,
        fill_bs="128k",
        size_bytes=1 << 29,
        data_offset_bytes=1 << 20,
        consistency="zeroed",
        conditioned=Conditioned(WRITE, SETTLED),
        counters=dict.fromkeys(MEMBERS, written_by(1000)),
        abandoned=True,
        filled=True,
        stopped=True,
    )


@pytest.mark.parametrize("kind", ["looked", "steady", "environment", "measured", "cell", "cell_left_out"])
def test_records_of_a_measurement_do_not_change_the_array(kind: str) -> None:
    noted = record(kind, geometry="raid5x3", workload="w")
    assert left_after([*WHOLE, measuring(writes=False), noted, ran(), noted, LEFT_OVER]) is not None
    other = record("shaken", geometry="raid5x3", workload="w")
    assert left_after([*WHOLE, measuring(writes=False), other, ran(), LEFT_OVER]) is None


@pytest.mark.parametrize(("origin", "is_kept"), [("unknown", True), ("path", True), ("drive", False)])
def test_a_failed_measurement_spends_the_array_if_a_drive_failed(origin: str, is_kept: bool) -> None:
    failed = record("measurement_failed", geometry="raid5x3", error="fio was killed", origin=origin)
    assert (left_after([*WHOLE, measuring(writes=False), failed, LEFT_OVER]) is not None) is is_kept
    # A process that failed while it wrote: the counters read at the end vouch for it.
    closed = [stopped(), counted("closed")]
    assert (left_after([*WHOLE, measuring(writes=True), failed, *closed]) is not None) is is_kept


#: Kinds of records about an array after which it is not what it was.
ENDING = {
    "array_created", "array_left", "array_planned", "history", "integrity", "loop", "loop_round", "member_given_back",
    "pattern_read", "pattern_written", "power_cut", "power_returned", "purging", "re_add_refused", "rebuild",
    "saturation", "searched", "writing_pattern",
}  # fmt: skip


#: Kinds of records whose facts come as a whole, and that name no array.
OF_NO_ARRAY = {"budget", "drive_worsened", "health", "load", "shared_links", "write_cache"}


def test_the_checkpoint_knows_every_record_of_an_array() -> None:
    """A new kind that is forgotten in ``REMARKS`` makes every resumed run build its array again."""
    kinds = set()
    sources = (path.read_text(encoding="utf-8") for path in Path(pytest_ssdqual.__file__).parent.rglob("*.py"))
    for source in sources:
        for node in ast.walk(ast.parse(source)) if ".note(" in source else ():
            match node:
                case ast.Call(ast.Attribute(attr="note"), [ast.Constant(str() as kind)], keywords):
                    kinds |= {kind for each in keywords if each.arg in ("geometry", "uuid", None)}
                case ast.Call(ast.Attribute(attr="note"), [ast.Constant(str() as kind), _], _):  # ``Setup.note``
                    kinds.add(kind)
    assert kinds - {*REMARKS, *STEPS, *OF_NO_ARRAY} == ENDING - {*STEPS}


@pytest.mark.parametrize("fio", ["run", "precondition", "refresh"])
def test_interrupted_write_needs_a_count_after_it(fio: str) -> None:
    interrupted = measuring(fio, writes=True)
    assert left_after([*WHOLE, interrupted, LEFT_OVER]) is None
    assert left_after([*WHOLE, interrupted, stopped(), counted("closed")]) is not None
    assert left_after([*WHOLE, interrupted, ran(), LEFT_OVER]) is not None  # the counters will tell


def without(records: Iterable[Record], kind: str) -> list[Record]:
    return [each for each in records if each.kind != kind]


@pytest.mark.parametrize(
    "records",
    [
        [],
        [record("run_started"), filled(), stopped()],
        [*WHOLE, measuring(writes=False)],
        [*WHOLE, record("member_failed", geometry="raid5x3-1failed", uuid=UUID, member="S3"), *CLOSED[-2:]],
        *(
            [*WHOLE, ending, counted("closed")]
            for ending in (
                stopped(objections=["degraded by 1 member"]),
                stopped(not_erased=["/dev/nvme1n1"]),
                record("array_left", uuid=UUID, not_erased=["/dev/nvme1n1"], objections=[]),
                stopped(uuid="another"),
            )
        ),
        without(CLOSED, "filled"),
        [*created(fill={"passes": 0, "bs": "128k"}), counted("built"), stopped(), counted("closed")],
        without(KILLED, "counters"),
        *(
            [*created(**facts), *CLOSED[3:]]
            for facts in ({"data_offset_bytes": None}, {"size_bytes": "?"}, {"fill": None})
        ),
        *(
            [*WHOLE, done, ran(), stopped(), counted("closed")]
            for done in (
                measuring("saturation", writes=True),
                measuring("snia-01", writes=False),
                measuring(writes=False, geometry="raid5x3-1failed"),
            )
        ),
    ],
)
def test_what_was_not_filled_counted_and_stopped_is_not_left(records: list[Record]) -> None:
    assert left_after(records) is None


BEGUN = [*WHOLE, measuring("precondition", writes=True)]


@pytest.mark.parametrize(
    ("records", "conditioned_for"),
    [
        ([*created(), filled(), conditioned(state=UNSETTLED)], None),
        ([*created(), filled(), conditioned(written=9)], None),
        (BEGUN, None),
        ([*BEGUN, ran()], None),
        ([*BEGUN, ran(), conditioned(STREAM, UNSETTLED)], None),
        ([*BEGUN, ran(), conditioned(STREAM)], Conditioned(STREAM, SETTLED)),
    ],
)
def test_array_is_conditioned_for_the_last_class_that_settled(
    records: list[Record], conditioned_for: Conditioned | None
) -> None:
    left = left_after([*records, stopped(), counted("closed")])
    assert left is not None
    assert left.conditioned == conditioned_for


@given(st.integers(3, len(WHOLE)), st.sampled_from(["degrading", "rebuild", "loop_round", "something_new"]))
def test_whatever_else_was_done_to_an_array_spends_it(at: int, kind: str) -> None:
    for about in ({"geometry": "raid5x3"}, {"uuid": UUID}):
        assert left_after([*CLOSED[:at], record(kind, **about), *CLOSED[at:]]) is None


@given(st.integers(3, len(WHOLE)), st.sampled_from(["verdict", "error", "health", "drive_worsened", "something_new"]))
def test_what_is_not_about_an_array_does_not(at: int, kind: str) -> None:
    about = {"geometries": ["raid5x3"], "test": "x"}
    assert left_after([*CLOSED[:at], record(kind, **about), *CLOSED[at:]]) == left_after(CLOSED)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_next_array_takes_the_place_of_the_last(count: int) -> None:
    """From its purge on, wherever that was cut short."""
    left = left_after([*CLOSED, *created(uuid="another")[:count]])
    assert (left is None) is (count > 0)
    assert left is None or (left.abandoned, left.counters["S1"].sectors) == (False, 1008)
    done = [*created(uuid="another"), filled(), counted(uuid="another"), stopped(uuid="another")]
    left = left_after([*CLOSED, *done])
    assert left is not None
    assert (left.uuid, left.conditioned) == ("another", None)


def test_what_was_taken_over_can_be_taken_over_again() -> None:
    again = created(uuid="another", kept_of=UUID)[1:]
    state = {"workload": str(WRITE), "steady": asdict(SETTLED), "rates": {}}
    kept = record("conditioning_kept", geometry="raid5x3", uuid="another", kept_of=UUID, conditioned=state)
    ended = [counted("built", 2000, "another"), stopped(uuid="another"), counted("closed", 2008, "another")]
    left = left_after([*CLOSED, *again, kept, *ended])
    assert left is not None
    assert left.conditioned == Conditioned(WRITE, SETTLED)
    assert (left.uuid, left.counters["S1"].sectors) == ("another", 2008)
    refuted = record("conditioning_confirmed", geometry="raid5x3", confirmed=False)
    only_filled = record("conditioning_kept", geometry="raid5x3", uuid="another", kept_of=UUID, conditioned=None)
    for records in ([kept, refuted], [only_filled]):
        left = left_after([*CLOSED, *again, *records, *ended])
        assert left is not None
        assert left.conditioned is None


def test_drives_side_by_side_need_not_be_stopped() -> None:
    drives = [*created("drivex3", ""), filled("drivex3"), counted("measured", uuid="")]
    left = left_after([*drives, measuring(writes=False, geometry="drivex3")])
    assert left is not None
    assert (left.geometry, left.abandoned) == (Geometry.parse("drivex3"), False)
    assert left_after([*drives, measuring(writes=True, geometry="drivex3")]) is None


@given(st.integers(3, len(CLOSED) - 1))
def test_a_record_that_cannot_be_read_is_a_doubt(at: int) -> None:
    broken = record(CLOSED[at].kind, uuid=UUID, geometry="raid5x3")
    assert left_after([*CLOSED[:at], broken, *CLOSED[at:]]) is None


BARE = "drivex3"
OTHER_UUID = UUID[::-1]
RATES = {"S1": 1000.0, "S2": 990.0, "S3": 1010.0}


def of_drives(each: Record) -> Record:
    """Return the record as of the bare drives."""
    return record(each.kind, **{**each.facts, "geometry": BARE, "rates": RATES})


def counted_bare(moment: str) -> Record:
    return record(counted().kind, **{**counted(moment, uuid="").facts, "geometry": BARE})


def assembled(uuid: str = UUID, geometry: str = "raid5x3") -> list[Record]:
    planned, standing = created(geometry, uuid)[1:]
    facts = {"of_drives": BARE}
    return [record(planned.kind, **planned.facts, **facts), record(standing.kind, **standing.facts, **facts)]


DRIVES = [
    *created(BARE, ""), filled(BARE), counted_bare("built"), of_drives(conditioned()), counted_bare("conditioned"),
]  # fmt: skip
STANDING = [*DRIVES, *assembled(), counted("built"), measuring("run", writes=True), ran(), counted()]


@pytest.mark.parametrize(
    "ending",
    [
        [LEFT_OVER],
        [measuring(writes=False), ran(), counted(), stopped(), counted("closed")],
        [stopped(), counted("closed"), *assembled(OTHER_UUID), stopped(uuid=OTHER_UUID)],
        [
            record("member_failed", geometry="raid5x3-1failed", uuid=UUID, member="S3"),
            measuring(writes=True, geometry="raid5x3-1failed"), ran("raid5x3-1failed"), counted(),
            stopped(), counted("closed"),
        ],
    ],
    ids=["killed", "closed", "another array", "degraded"],
)  # fmt: skip
def test_conditioned_drives_are_left_by_arrays_of_them(ending: list[Record]) -> None:
    left = left_after([*STANDING, *ending])
    assert left
    assert (str(left.geometry), left.members, left.filled) == (BARE, MEMBERS, True)
    assert left.conditioned == Conditioned(WRITE, SETTLED, RATES)
    assert set(left.counters) == set(MEMBERS)


@pytest.mark.parametrize(
    "ending",
    [
        [],
        [measuring(writes=True), LEFT_OVER],
        [stopped(not_erased=["/dev/sdb"])],
        [stopped(objections=["degraded by 1 member"])],
        [
            record("member_failed", geometry="raid5x3-1failed", uuid=UUID, member="S3"),
            stopped(objections=["degraded by 2 members instead of 1"]),
            counted("closed"),
        ],
        [record("pattern_written", geometry="raid5x3"), stopped()],
        [stopped(), *created("raid6x4", OTHER_UUID)[1:2], stopped(uuid=OTHER_UUID)],
        [measuring("saturation", writes=True), ran(), stopped()],
    ],
    ids=[
        "running",
        "killed while writing",
        "not erased",
        "lost a member",
        "lost another member",
        "pattern",
        "array of its own",
        "saturated",
    ],
)
def test_drives_that_something_else_was_written_to_are_not_left(ending: list[Record]) -> None:
    assert left_after([*STANDING, *ending]) is None


def refreshed(**settled: float) -> Record:
    return record("refreshed", geometry=BARE, workload=str(WRITE), rates=RATES, settled={**RATES, **settled})


def test_refreshed_drives_are_left_with_their_settled_rates() -> None:
    refreshing = measuring("refresh", writes=True, geometry=BARE)
    left = left_after([*DRIVES, refreshing, ran(BARE), refreshed(S2=900.0), counted_bare("conditioned")])
    assert left
    assert left.conditioned == Conditioned(WRITE, SETTLED, {**RATES, "S2": 900.0})
    assert left_after([*DRIVES, refreshing]) is None, "interrupted"
    only_filled = left_after([*DRIVES[:-2], refreshed(), counted_bare("conditioned")])
    assert only_filled
    assert only_filled.conditioned is None


def test_the_first_of_the_drives_may_be_measured() -> None:
    def left_by(geometry: str) -> Checkpoint | None:
        return left_after([*DRIVES, measuring(writes=True, geometry=geometry), ran(geometry), counted_bare("measured")])

    assert left_by("drivex2")
    assert left_by("drivex4") is None
    assert left_by("raid5x3") is None


def test_an_array_of_other_drives_is_not_assembled_of_these() -> None:
    planned, standing = assembled()
    other = [record(each.kind, **{**each.facts, "members": ["S1", "S9"]}) for each in (planned, standing)]
    assert left_after([*DRIVES, *other, stopped()]) is None


def test_drives_that_were_filled_in_part_are_not_re_adopted() -> None:
    """Nothing else may take them for filled, and what the part was is not in a checkpoint."""
    ended = [filled("drivex3"), counted(uuid="")]
    fill = {"passes": 2, "bs": "128k", "region_percent": 72}
    assert left_after([*created("drivex3", ""), *ended])
    assert left_after([*created("drivex3", "", fill=fill), *ended]) is None
