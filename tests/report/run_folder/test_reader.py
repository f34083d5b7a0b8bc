from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import Fleet
from pytest_ssdqual.report.run_folder.journal import SCHEMA, Journal
from pytest_ssdqual.report.run_folder.reader import (
    ArrayLeftBehind,
    CacheLeftSwitched,
    LeftBehind,
    RunReader,
    left_behind,
    read_records,
)

UUID = "0123abcd:4567ef01:89ab2345:cdef6789"
facts = st.dictionaries(st.sampled_from("abc"), st.text() | st.integers(), max_size=2)


def line(number: int, **more: object) -> bytes:
    record = {"schema": SCHEMA, "kind": "measured", "time": "2026-01-01T00:00:00.000+00:00", "number": number, **more}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


@given(st.lists(facts, min_size=1, max_size=4), st.data())
def test_a_torn_last_line_costs_only_itself(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, object]], data: st.DataObject
) -> None:
    whole = [line(number, **each) for number, each in enumerate(events)]
    text = b"".join(whole)
    cut = data.draw(st.integers(len(text) - len(whole[-1]), len(text)))
    path = tmp_path_factory.mktemp("run") / "records.jsonl"
    path.write_bytes(text[:cut])
    numbers = [record.facts["number"] for record in read_records(path)]
    # Without its newline a line may still be whole.
    assert numbers == list(range(len(events) if cut >= len(text) - 1 else len(events) - 1))


@given(st.lists(st.integers(0, 2), max_size=6))
def test_torn_lines_in_the_middle_are_passed_over(tmp_path_factory: pytest.TempPathFactory, kinds: list[int]) -> None:
    """As a crash leaves them: ended by whoever wrote next."""
    pieces = [(line(number), line(number)[: 10 + number] + b"\n", b"\n")[kind] for number, kind in enumerate(kinds)]
    path = tmp_path_factory.mktemp("run") / "records.jsonl"
    path.write_bytes(b"".join(pieces))
    numbers = [record.facts["number"] for record in read_records(path)]
    assert numbers == [number for number, kind in enumerate(kinds) if kind == 0]


@pytest.mark.parametrize(
    "text", [b"[]\n", b"7\n", b'{"kind":"x"}\n', b'{"schema":"2","kind":"x","time":"y"}\n', b"\xff\n"]
)
def test_what_is_no_event_is_passed_over(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "records.jsonl").write_bytes(text + line(1))
    assert [record.facts for record in read_records(tmp_path)] == [{"number": 1}]


def test_line_separators_in_a_text_do_not_part_lines(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_bytes(line(1, message="a\u2028b\u0085c"))
    (record,) = read_records(tmp_path)
    assert record.facts["message"] == "a\u2028b\u0085c"


def plan(journal: Journal, uuid: str = UUID) -> None:
    journal.note("array_planned", uuid=uuid, device="/dev/md127", members=["0x50", "S2"], machine_id="m1")


def test_nothing_is_left_over_where_nothing_ran(tmp_path: Path) -> None:
    assert left_behind(tmp_path / "ssdqual-runs").arrays == ()


def test_an_array_planned_and_never_stopped_is_ours(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "aaaaaaaa")
    plan(journal)
    assert left_behind(tmp_path).arrays == (ArrayLeftBehind(UUID, "/dev/md127", ("0x50", "S2"), "m1", journal.path),)
    journal.note("array_created", uuid=UUID)
    assert len(left_behind(tmp_path).arrays) == 1
    journal.note("array_stopped", uuid=UUID)
    assert left_behind(tmp_path).arrays == ()


def test_a_later_run_can_clear_it_away(tmp_path: Path) -> None:
    one, other = Journal.create(tmp_path, "aaaaaaaa"), Journal.create(tmp_path, "bbbbbbbb")
    plan(other)
    plan(other, "other")
    one.note("array_stopped", uuid=UUID)
    assert [array.uuid for array in left_behind(tmp_path).arrays] == ["other"]


def test_a_plan_torn_while_it_was_written_was_never_carried_out(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "aaaaaaaa")
    plan(journal)
    records = journal.path / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-20])
    assert left_behind(tmp_path).arrays == ()


def test_a_plan_without_particulars_still_counts(tmp_path: Path) -> None:
    Journal.create(tmp_path, "aaaaaaaa").note("array_planned", uuid=UUID, members="none")
    (array,) = left_behind(tmp_path).arrays
    assert (array.uuid, array.members) == (UUID, ())


def wrongs(journal: Journal) -> tuple[str, ...]:
    return tuple(RunReader.read(journal.path).wrongs())


def switch(journal: Journal, change: str, /, **facts: object) -> None:
    known = {"change": change, "drive": "0x50", "name": "/dev/sda (ACME)", "was": "on", "machine_id": "m1"}
    journal.note("write_cache_planned", **{**known, **facts})


def test_write_cache_that_was_not_restored_is_left_behind(tmp_path: Path) -> None:
    one, other = Journal.create(tmp_path, "aaaaaaaa"), Journal.create(tmp_path, "bbbbbbbb")
    switch(one, "a")
    switch(one, "b", drive="S2", was="off")
    plan(one)
    other.note("write_cache_left", change="a")
    first = CacheLeftSwitched("a", "0x50", "/dev/sda (ACME)", "on", "m1", one.path, frozenset())
    found = left_behind(tmp_path, tmp_path)
    assert found.caches == (first, CacheLeftSwitched("b", "S2", "/dev/sda (ACME)", "off", "m1", one.path, frozenset()))
    assert [array.uuid for array in found.arrays] == [UUID]
    other.note("write_cache_restored", change="a")
    assert [left.change for left in left_behind(tmp_path).caches] == ["b"]


@pytest.mark.parametrize("damage", [{"was": "maybe"}, {"was": None}, {"drive": 5}, {"change": None}])
def test_nothing_is_restored_by_a_damaged_record(tmp_path: Path, damage: dict[str, object]) -> None:
    switch(Journal.create(tmp_path, "aaaaaaaa"), "a", **damage)
    assert left_behind(tmp_path) == LeftBehind()


def test_what_is_wrong_with_write_caches_at_the_end(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "aaaaaaaa")
    for change, kind, lost in (("a", "restored", False), ("b", "restored", True), ("c", "left", False)):
        journal.note(f"write_cache_{kind}", change=change, lost=lost, sentence=f"{change} is so")
    assert wrongs(journal) == ("b is so", "c is so")
    journal.note("write_cache_restored", change="c", lost=False, sentence="c is on again")  # by a resumed session
    assert wrongs(journal) == ("b is so",)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleets.create(tmp_path / "runs", "ffffffff", [])


def run_of_bay(fleet: Fleet, name: str) -> Journal:
    return Journal(Journal.create(fleet.path / "bays", name).path.rename(fleet.path / "bays" / name))


def left_over(root: Path) -> list[str]:
    return [array.uuid for array in left_behind(root).arrays]


def test_arrays_of_a_fleets_bays_are_this_runs_and_each_bays(fleet: Fleet) -> None:
    runs, bays = fleet.path.parent, fleet.path / "bays"
    plan(run_of_bay(fleet, "dut1"), "of a bay")
    alone = Journal.create(runs, "aaaaaaaa")
    plan(alone, "of a run")
    other = fleets.create(runs, "eeeeeeee", [])
    plan(run_of_bay(other, "dut1"), "of another fleet")
    everything = ["of a bay", "of a run", "of another fleet"]
    assert sorted(left_over(runs)) == sorted(left_over(bays)) == everything
    (of_bay,) = (array for array in left_behind(bays).arrays if array.uuid == "of a bay")
    assert of_bay.run_folder == fleet.path / "bays" / "dut1"
    alone.note("array_stopped", uuid="of a bay")
    run_of_bay(fleet, "dut2").note("array_stopped", uuid="of a run")
    assert left_over(runs) == left_over(bays) == ["of another fleet"]


def test_a_damaged_fleet_json_hides_no_array(fleet: Fleet) -> None:
    plan(run_of_bay(fleet, "dut1"))
    for damage in ("", '{"bays": [{"name": "/etc"}]}'):
        (fleet.path / "fleet.json").write_text(damage)
        assert left_over(fleet.path.parent) == left_over(fleet.path / "bays") == [UUID]
    (fleet.path / "fleet.json").unlink()
    assert left_over(fleet.path.parent) == [UUID]


def test_copies_in_a_merged_fleet_are_not_believed(tmp_path: Path) -> None:
    """Whoever wrote them may have written any array's UUID into them."""
    merged = fleets.create_at(tmp_path / "merged", [], merged=True)
    plan(run_of_bay(merged, "dut1"))
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("which", ["", "bays", "bays/dut1"])
def test_a_bay_that_others_can_write_to_is_not_believed(fleet: Fleet, which: str) -> None:
    plan(run_of_bay(fleet, "dut1"))
    assert left_over(fleet.path.parent) == [UUID]
    (fleet.path / which).chmod(0o777)
    assert left_over(fleet.path.parent) == []


def test_bays_are_not_looked_for_through_a_link(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    plan(run_of_bay(fleet, "dut1"))
    (fleet.path / "bays").rename(elsewhere / "bays")
    (fleet.path / "bays").symlink_to(elsewhere / "bays")
    assert left_over(fleet.path.parent) == []


def test_records_of_some_kinds_only(tmp_path: Path) -> None:
    lines = [
        f'{{"schema":{SCHEMA},"kind":"verdict","time":"t","test":"a"}}',
        f'{{"schema":{SCHEMA},"kind":"error","time":"t","message":"no \\"verdict\\""}}',
        f'{{"schema":{SCHEMA},"kind":"measured","time":"t"}}',
        f'{{"schema":{SCHEMA},"kind":"error","time":"t","about":"verdict"}}',
    ]
    (tmp_path / "records.jsonl").write_text("\n".join(lines) + "\n")
    assert [record.kind for record in read_records(tmp_path)] == ["verdict", "error", "measured", "error"]
    assert [record.kind for record in read_records(tmp_path, "verdict", "measured")] == ["verdict", "measured"]


def test_an_array_left_running_is_reported_until_it_is_stopped(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "run")
    journal.note("array_left", uuid="u1", not_erased=["/dev/sdb"], objections=[])
    assert wrongs(journal) == ()
    journal.note("array_left", uuid="u2", not_erased=["/dev/sdb"], objections=[], device="/dev/md100", why="it is busy")
    (sentence,) = wrongs(journal)
    assert sentence.startswith("/dev/md100 still runs")
    assert sentence.endswith(": it is busy")
    journal.note("array_stopped", uuid="u2", not_erased=[], objections=[])
    assert wrongs(journal) == ()


def test_still_running_is_of_the_last_session(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "ab12")
    assert wrongs(journal) == ()
    journal.note("still_running", sentence="NVMe Format of S1 goes on")
    assert wrongs(journal) == ("NVMe Format of S1 goes on",)
    journal.note("run_resumed", machine="dut7")
    assert wrongs(journal) == ()
