from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.journal import Journal
from pytest_ssdqual.report.records import PlannedArray, read_records, unfinished_arrays, worsened_drives

UUID = "0123abcd:4567ef01:89ab2345:cdef6789"
facts = st.dictionaries(st.sampled_from("abc"), st.text() | st.integers(), max_size=2)


def line(number: int, **more: object) -> bytes:
    record = {"schema": 1, "kind": "measured", "time": "2026-01-01T00:00:00.000+00:00", "number": number, **more}
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
    "text", [b"[]\n", b"7\n", b'{"kind":"x"}\n', b'{"schema":"1","kind":"x","time":"y"}\n', b"\xff\n"]
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
    assert unfinished_arrays(tmp_path / "ssdqual-runs") == ()


def test_an_array_planned_and_never_stopped_is_ours(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "aaaaaaaa")
    plan(journal)
    assert unfinished_arrays(tmp_path) == (PlannedArray(UUID, "/dev/md127", ("0x50", "S2"), "m1", journal.path),)
    journal.note("array_created", uuid=UUID)
    assert len(unfinished_arrays(tmp_path)) == 1
    journal.note("array_stopped", uuid=UUID)
    assert unfinished_arrays(tmp_path) == ()


def test_a_later_run_can_clear_it_away(tmp_path: Path) -> None:
    one, other = Journal.create(tmp_path, "aaaaaaaa"), Journal.create(tmp_path, "bbbbbbbb")
    plan(other)
    plan(other, "other")
    one.note("array_stopped", uuid=UUID)
    assert [array.uuid for array in unfinished_arrays(tmp_path)] == ["other"]


def test_a_plan_torn_while_it_was_written_was_never_carried_out(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "aaaaaaaa")
    plan(journal)
    records = journal.path / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-20])
    assert unfinished_arrays(tmp_path) == ()


def test_a_plan_without_particulars_still_counts(tmp_path: Path) -> None:
    Journal.create(tmp_path, "aaaaaaaa").note("array_planned", uuid=UUID, members="none")
    (array,) = unfinished_arrays(tmp_path)
    assert (array.uuid, array.members) == (UUID, ())


def test_what_a_run_did_to_its_drives_is_found_again(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "aaaaaaaa")
    assert worsened_drives(journal.path) == ()
    journal.note("drive_worsened", name="/dev/sdb (ACME, serial 1)", findings=["has 2 new media errors", "is FAILED"])
    journal.note("drive_worsened", name="/dev/sdc (ACME, serial 2)", findings="unreadable")
    assert worsened_drives(journal.path) == (
        "/dev/sdb (ACME, serial 1): has 2 new media errors",
        "/dev/sdb (ACME, serial 1): is FAILED",
    )


def test_records_of_some_kinds_only(tmp_path: Path) -> None:
    lines = [
        '{"schema":1,"kind":"verdict","time":"t","test":"a"}',
        '{"schema":1,"kind":"error","time":"t","message":"no \\"verdict\\""}',
        '{"schema":1,"kind":"measured","time":"t"}',
        '{"schema":1,"kind":"error","time":"t","about":"verdict"}',
    ]
    (tmp_path / "records.jsonl").write_text("\n".join(lines) + "\n")
    assert [record.kind for record in read_records(tmp_path)] == ["verdict", "error", "measured", "error"]
    assert [record.kind for record in read_records(tmp_path, "verdict", "measured")] == ["verdict", "measured"]
