from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.builders.kept_fleets import KeptBay, KeptPromise, keep_fleet
from support.builders.kept_runs import Kept, KeptMeasurement

from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.resume.resume import NotResumable, Past
from pytest_ssdqual.report.run_folder.find import NoSuchRun, find, find_any
from pytest_ssdqual.report.run_folder.journal import SCHEMA


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("20260301T120000Z-aaaa", "20260301T120000Z-aaaabbbb", "20260302T120000Z-cccc"):
        Kept([KeptMeasurement(1)]).keep(tmp_path / name)
    (tmp_path / "20260303T120000Z-dddd").mkdir()
    return tmp_path


def test_a_name_its_beginning_last_or_a_path(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert find("20260302", root).name == "20260302T120000Z-cccc"
    assert find("20260301T120000Z-aaaa", root).name == "20260301T120000Z-aaaa"
    assert find("last", root).name == "20260302T120000Z-cccc"
    elsewhere = Kept([KeptMeasurement(1)]).keep(tmp_path_factory.mktemp("x") / "run")
    assert find(str(elsewhere), root) == elsewhere


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("20260301", "matches 2 runs"),
        ("20260303", "neither a run folder nor the beginning"),
        ("", "is not the name of a run folder"),
        ("a\0b", "is not the name of a run folder"),
    ],
)
def test_what_names_none_or_several_says_so(root: Path, name: str, sentence: str) -> None:
    with pytest.raises(NoSuchRun, match=sentence):
        find(name, root)


def test_where_there_is_nothing_there_is_no_last_one(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRun, match="there is no run in"):
        find("last", tmp_path / "missing")


def note(folder: Path, *records: dict[str, object]) -> None:
    folder.mkdir(parents=True)
    lines = [json.dumps({"schema": SCHEMA, "time": "2026-03-04T00:00:00.000+00:00", **each}) for each in records]
    (folder / "records.jsonl").write_text("".join(f"{line}\n" for line in lines))


STARTED, REFUSED = {"kind": "run_started"}, {"kind": "run_refused", "reasons": "no such drive"}
ENDED = {"kind": "run_ended", "exit_status": 4}


@pytest.mark.parametrize("records", [[REFUSED], [STARTED, ENDED]], ids=["drives", "tests"])
def test_find_passes_over_refused_runs(root: Path, records: list[dict[str, object]]) -> None:
    note(root / "20260304T120000Z-eeee", *records)
    note(root / "20260302T130000Z-ffff", *records)
    assert find("last", root) == find("20260302", root) == root / "20260302T120000Z-cccc"
    assert find("20260304", root).name == "20260304T120000Z-eeee"  # by its own name it is found


@pytest.mark.parametrize(
    "records",
    [[STARTED], [STARTED, {"kind": "run_ended", "exit_status": 5}], [STARTED, {"kind": "measuring"}, ENDED]],
    ids=["killed", "nothing judged", "measured"],
)
def test_find_returns_runs_that_began(root: Path, records: list[dict[str, object]]) -> None:
    note(root / "20260304T120000Z-eeee", *records)
    assert find("last", root).name == "20260304T120000Z-eeee"


@pytest.fixture
def fleet(root: Path) -> Path:
    made = keep_fleet(root, [KeptBay(name, [KeptPromise(12_000)]) for name in ("dut2", "dut1", "dut3", "dut4", "dut5")])
    return made.rename(root / "20260302T130000Z-ffff")


def test_a_fleet_is_found_where_several_bays_will_do(root: Path, fleet: Path) -> None:
    name = fleet.name
    assert find_any("last", root) == find_any("20260302T13", root) == find_any(str(fleet), root) == fleet
    assert find_any(name, root) == fleet
    assert find(f"{name}/bays/dut1", root) == fleet / "bays" / "dut1"


def test_a_fleet_where_one_run_is_needed_is_one_sentence(root: Path, fleet: Path) -> None:
    sentence = (
        "20260302T130000Z-ffff is a run of 5 bays (dut2, dut1, dut3, dut4, …): name one of them as "
        "20260302T130000Z-ffff/bays/dut2"
    )
    for name in ("last", fleet.name, "20260302T13"):
        with pytest.raises(NoSuchRun) as caught:
            find(name, root)
        assert str(caught.value) == sentence
    with pytest.raises(NotResumable) as refused:
        Past.read(fleet)
    assert str(refused.value) == sentence


def test_the_last_run_is_one_that_began_and_was_not_merged(root: Path) -> None:
    never = fleets.create(root, "aaaa", [])
    fleets.create_at(root / "merged", [], merged=True)
    Kept([KeptMeasurement(1)]).keep(root / "merged" / "bays" / "dut1")
    assert never.path.name > "20260302T120000Z-cccc"
    assert find_any("last", root).name == "20260302T120000Z-cccc"
    with pytest.raises(NoSuchRun, match="is the folder of several bays, of which none was started"):
        find(never.path.name, root)
