from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import Fleet, FleetBay, bay_folders, is_fleet
from pytest_ssdqual.report.run_folder.journal import SCHEMA, JournalError

names = st.from_regex(fleets.BAY_NAME, fullmatch=True)
some = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=2)


#: What the record of a bay has besides its name, its folder and its machine.
REST: dict[str, object] = {"labels": {}, "slots": {}, "refused": ""}


def bay(name: str, labels: dict[str, str] | None = None, slots: dict[str, str] | None = None) -> FleetBay:
    return FleetBay(name, fleets.folder_of(name), f"root@{name}", labels or {}, slots or {})


def begun(fleet: Path, *names: str) -> None:
    for name in names:
        (fleet / "bays" / name).mkdir()
        (fleet / "bays" / name / "records.jsonl").touch()


@settings(max_examples=10)
@given(st.lists(names, max_size=3, unique_by=str.lower), some, some, st.text(max_size=8))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    called: list[str],
    labels: dict[str, str],
    slots: dict[str, str],
    refused: str,
) -> None:
    bays = [FleetBay(name, f"bays/{name}", "local", labels, slots, refused) for name in called]
    fleet = fleets.create(tmp_path_factory.mktemp("runs"), "3f9a2c77d1", bays)
    assert fleets.read(fleet.path) == fleet
    assert fleet.bays == tuple(bays)
    assert (fleet.ended, fleet.exit_status) == (None, None)
    ended = fleets.closed(fleet, "2026-03-01T12:00:00.000+00:00", 1)
    fleets.write(ended)
    assert fleets.read(fleet.path) == ended != fleet


def test_a_path_need_not_be_utf_8(tmp_path: Path) -> None:
    fleet = fleets.create(tmp_path / os.fsdecode(b"r\xe9s"), "3f9a-2c77d1", [bay("dut1")])
    found = fleets.read(fleet.path)
    assert found == fleet
    fleets.write(found)


def test_the_folder_is_named_as_runs_are_and_ours_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        fleet = fleets.create(tmp_path / "a" / "ssdqual-runs", "3f9a-2c77d1", [bay("dut1")])
    finally:
        os.umask(old)
    assert fleet.id == fleet.path.name
    assert fleet.path.name.endswith("Z-3f9a2c77")
    modes = {each.name: stat.S_IMODE(each.lstat().st_mode) for each in (fleet.path, *fleet.path.iterdir())}
    assert modes == {fleet.path.name: 0o700, "bays": 0o700, "fleet.json": 0o600}


def test_where_no_run_folder_could_be_there_is_no_fleet_either(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="cannot be stored"):
        fleets.create(tmp_path / "file", "aaaa", [])
    fleets.create_at(tmp_path / "twice", [])
    with pytest.raises(JournalError, match=r"twice: File exists"):
        fleets.create_at(tmp_path / "twice", [])


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", ".x", "a\nb", "ä", "x" * 65, "a b", "a\n"])
def test_what_is_no_name_of_a_bay(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a valid bay name"):
        fleets.folder_of(name)
    with pytest.raises(ValueError, match="is not a valid bay name"):
        fleets.create(tmp_path, "aaaa", [FleetBay(name, f"bays/{name}", "local")])
    assert not list(tmp_path.iterdir())


def test_bays_are_told_apart_where_case_is_ignored(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="called DUT1"):
        fleets.create(tmp_path, "aaaa", [bay("dut1"), bay("DUT1")])


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleets.create(tmp_path, "aaaa", [bay("dut2"), bay("dut1"), bay("lost")])


def test_bays_come_in_the_order_in_which_they_were_asked_for(fleet: Fleet) -> None:
    begun(fleet.path, "added", "dut1", "dut2")
    (fleet.path / "bays" / "empty").mkdir()
    assert [each.name for each in bay_folders(fleet.path)] == ["dut2", "dut1", "added"]
    (fleet.path / "fleet.json").write_text("{")
    assert [each.name for each in bay_folders(fleet.path)] == ["added", "dut1", "dut2"]
    assert is_fleet(fleet.path)


def test_no_link_is_followed(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    begun(fleet.path, "dut1", "linked")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "records.jsonl").touch()
    (fleet.path / "bays" / "dut2").symlink_to(elsewhere)
    (fleet.path / "bays" / "linked" / "records.jsonl").unlink()
    (fleet.path / "bays" / "linked" / "records.jsonl").symlink_to(elsewhere / "records.jsonl")
    assert [each.name for each in bay_folders(fleet.path)] == ["dut1"]
    (fleet.path / "bays").rename(elsewhere / "bays")
    (fleet.path / "bays").symlink_to(elsewhere / "bays")
    assert bay_folders(fleet.path) == ()
    (elsewhere / "fleet.json").symlink_to(fleet.path / "fleet.json")
    assert not is_fleet(elsewhere)
    with pytest.raises(ValueError, match="of a fleet"):
        fleets.read(elsewhere)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"folder": "/etc"}, "the folder of the bay dut1 is bays/dut1, and no other"),
        ({"folder": "bays/../../x"}, "the folder of the bay dut1 is bays/dut1"),
        ({"name": "../x"}, "'../x' is not a valid bay name"),
        ({"name": 7}, "bays[0].name: should be a valid string, not 7"),
        ({"labels": []}, "bays[0].labels: should be an object"),
        ({"labels": {"rack": 7}}, "bays[0].labels.rack: should be a valid string, not 7"),
        ({"slots": {"\x1b[2J": None}}, r"bays[0].slots.\x1b[2J: should be a valid string"),
        ({"refused": None}, "bays[0].refused: should be a valid string"),
    ],
)
def test_a_bay_that_somebody_else_wrote(fleet: Fleet, change: dict[str, object], sentence: str) -> None:
    file = fleet.path / "fleet.json"
    record = json.loads(file.read_text())
    record["bays"] = [{"name": "dut1", "folder": "bays/dut1", "machine": "local", **REST, **change}]
    file.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="cannot be read") as caught:
        fleets.read(fleet.path)
    assert sentence in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "[" * 100_000,
        f'{{"schema": {SCHEMA}}}',
        f'{{"schema": {SCHEMA}, "bays": 7}}',
        "NaN",
        "\xff",
        " " * (fleets.LARGEST_BYTES + 1),
    ],
    ids=range(10),
)
def test_what_is_no_fleet_is_one_sentence(fleet: Fleet, text: str) -> None:
    (fleet.path / "fleet.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"fleet.json cannot .+") as caught:
        fleets.read(fleet.path)
    assert "\n" not in str(caught.value)


def test_another_schema_is_refused(fleet: Fleet) -> None:
    file = fleet.path / "fleet.json"
    file.write_text(file.read_text().replace(f'"schema": {SCHEMA}', '"schema": 1'))
    with pytest.raises(ValueError, match=rf"fleet\.json .* schema {SCHEMA} "):
        fleets.read(fleet.path)


@settings(max_examples=10)
@given(st.sampled_from(["id", "started", "ended", "exit_status", "command_line", "version", "bays"]), st.data())
def test_wrong_types_are_refused(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject) -> None:
    fleet = fleets.create(tmp_path_factory.mktemp("runs"), "aaaa", [bay("dut1")])
    record = json.loads((fleet.path / "fleet.json").read_text())
    record[name] = data.draw(st.sampled_from([True, 1.5, {"a": 1}, [1], [[]], [None]]))
    (fleet.path / "fleet.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="cannot be read"):
        fleets.read(fleet.path)


def test_the_fleet_that_a_bay_belongs_to(fleet: Fleet, tmp_path: Path) -> None:
    begun(fleet.path, "dut1")
    assert fleets.fleet_of(fleet.path / "bays" / "dut1") == fleet.path
    assert fleets.fleet_of(fleet.path / "bays") == fleet.path
    assert fleets.fleet_of(fleet.path) is None
    (tmp_path / "bays").mkdir()
    assert fleets.fleet_of(tmp_path / "bays") is None
