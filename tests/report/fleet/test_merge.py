from __future__ import annotations

import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml, Properties
from support.builders.kept_fleets import KeptBay, KeptPromise, keep_fleet
from support.builders.kept_runs import append

from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet import merge
from pytest_ssdqual.report.fleet.folder import Fleet, FleetBay
from pytest_ssdqual.report.fleet.merge import NOT_KNOWN, NotMergeable
from pytest_ssdqual.report.run_folder import checksums

GOOD, BAD, OPEN = KeptPromise(12_000), KeptPromise(8_000), KeptPromise(10_000)


def run(root: Path, name: str, *promises: KeptPromise, folder: str = "", **more: object) -> Path:
    return KeptBay(name, promises or (GOOD,), **more).keep(root / (folder or f"run-{name}"))  # type: ignore[arg-type]


def merged(into: Path, *folders: Path, names: tuple[str, ...] = ()) -> Fleet:
    return merge.merge(merge.gather(folders), into, names)


def digests(folder: Path) -> bytes:
    return checksums.text(folder)


def test_runs_become_bays_and_stay_as_they_are(tmp_path: Path) -> None:
    folders = [run(tmp_path, name) for name in ("dut1", "dut2")]
    (folders[0] / ".main.lock").touch()
    before = [digests(each) for each in folders]
    fleet = merged(tmp_path / "fleet", *folders)
    assert fleets.read(tmp_path / "fleet") == fleet
    assert [(bay.name, bay.machine) for bay in fleet.bays] == [("dut1", "root@dut1"), ("dut2", "root@dut2")]
    assert (fleet.merged, fleet.exit_status) == (True, 0)
    assert fleet.ended
    assert [digests(each) for each in folders] == before
    for folder, copy in zip(folders, fleets.bay_folders(fleet.path), strict=True):
        assert digests(copy) == digests(folder)
        assert (copy / "SHA256SUMS").read_bytes() == (folder / "SHA256SUMS").read_bytes()
        assert not (copy / ".main.lock").exists()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "fleet").rglob("*")}
    assert modes == {0o700, 0o600}


def test_a_hundred_runs(tmp_path: Path) -> None:
    first = run(tmp_path, "dut", serials=["SSDQ0001"])
    folders = []
    for number in range(100):
        folder = tmp_path / f"run{number}"
        shutil.copytree(first, folder)
        for name in ("manifest.json", "records.jsonl"):
            path = folder / name
            path.write_text(
                path.read_text().replace("run-dut", f"run{number}").replace("root@dut", f"root@dut{number}")
            )
        append(folder, kind="x", n=number)
        (folder / "SHA256SUMS").write_bytes(checksums.text(folder))
        folders.append(folder)
    fleet = merged(tmp_path / "fleet", *folders)
    assert [bay.name for bay in fleet.bays] == [f"dut{number}" for number in range(100)]
    assert len(fleets.bay_folders(fleet.path)) == 100


def test_a_fleet_is_taken_apart_with_labels_and_unbegun_bays(tmp_path: Path) -> None:
    never = FleetBay("dut3", "bays/dut3", "root@dut3", {}, {}, "cannot be reached")
    given = keep_fleet(tmp_path / "runs", [KeptBay(name, [GOOD]) for name in ("dut1", "dut2")], never)
    fleet = merged(tmp_path / "fleet", run(tmp_path, "dut0"), given)
    assert [bay.name for bay in fleet.bays] == ["dut0", "dut1", "dut2", "dut3"]
    assert [dict(bay.labels) for bay in fleet.bays] == [{}, {"rack": "A"}, {"rack": "A"}, {}]
    assert fleet.bays[3].refused == "cannot be reached"
    assert fleet.exit_status == NOT_KNOWN != 0
    assert len(fleets.bay_folders(fleet.path)) == 3


def test_names_are_made_unique_by_serial_numbers_or_the_run(tmp_path: Path) -> None:
    changed = {"sessions": [{"started": "2026-04-01T00:00:00Z", "ended": "2026-04-02T00:00:00Z"}]}
    folders = [
        run(tmp_path, "dut", serials=["S1"], folder="a"),
        run(tmp_path, "dut", BAD, serials=["S/2"], folder="b"),
        run(tmp_path, "dut", OPEN, serials=["SSDQ0001"], folder="c"),
        run(tmp_path, "dut", KeptPromise(13_000), serials=["S1"], folder="d", changed=changed),
    ]
    names = [bay.name for bay in merged(tmp_path / "fleet", *folders).bays]
    assert names == ["dut-S1", "dut-S-2", "dut-c", "dut-2"]


def test_a_machine_that_calls_itself_local_is_told_by_its_name(tmp_path: Path) -> None:
    bays = [{"machine": "localhost", "facts": {"hostname": "runner-7"}, "drives": []}]
    fleet = merged(tmp_path / "fleet", run(tmp_path, "dut", changed={"bays": bays}))
    assert (fleet.bays[0].name, fleet.bays[0].machine) == ("runner-7", "localhost")


@given(st.lists(st.sampled_from(["dut", "DUT", "dut-2", "x", "", "../..", "ä"]), min_size=1, max_size=6))
def test_bays_never_share_a_folder(hosts: list[str]) -> None:
    sources = [
        merge.MergedFolder(FleetBay(name, f"bays/{name}", host), Path("run"), str(number))
        for number, host in enumerate(hosts)
        for name in [merge._name(host) or "bay"]
    ]
    named = [each.asked for each in merge._named(sources, [])]
    assert len({bay.name.lower() for bay in named}) == len(hosts)
    assert all(fleets.folder_of(bay.name) == bay.folder for bay in named)


def refused(into: Path, *folders: Path, names: tuple[str, ...] = ()) -> str:
    with pytest.raises(NotMergeable) as caught:
        merged(into, *folders, names=names)
    assert not into.exists() or into.name == "there"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_names_that_are_given(tmp_path: Path) -> None:
    folders = [run(tmp_path, name) for name in ("dut1", "dut2")]
    into = tmp_path / "fleet"
    assert refused(into, *folders, names=("a",)).startswith("--names has 1 ")
    assert refused(into, *folders, names=("a", "A")) == "--names has a twice"
    assert "'../a' is not" in refused(into, *folders, names=("../a", "b"))
    assert [bay.name for bay in merged(into, *folders, names=("left", "right")).bays] == ["left", "right"]


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path) -> None:
    folder = run(tmp_path, "dut1")
    (tmp_path / "there").symlink_to("nowhere")
    assert refused(tmp_path / "there", folder).split(": ")[0].endswith("there exists")
    assert refused(tmp_path / "fleet", tmp_path).endswith("no records.jsonl")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda run: (run / "SHA256SUMS").unlink(), "it has no SHA256SUMS, so its run has not ended"),
        (
            lambda run: (run / "fio" / "run.json.gz").write_bytes(b"x"),
            "run.json.gz has changed since it was sealed",
        ),
        (lambda run: (run / "fio" / "run.json.gz").unlink(), "fio/run.json.gz is missing"),
        (lambda run: (run / "SHA256SUMS").write_text(f"{'0' * 64}  ../../x\n"), "../../x is missing"),
        (lambda run: (run / "SHA256SUMS").write_text(f"{'0' * 64}  /etc/passwd\n"), "/etc/passwd is missing"),
        (
            lambda run: (run / "SHA256SUMS").write_text(f"{checksums.digest(run / 'manifest.json')}  manifest.json\n"),
            "its SHA256SUMS does not list records.jsonl",
        ),
    ],
)
def test_a_run_that_is_not_whole(tmp_path: Path, damage: object, sentence: str) -> None:
    folder = run(tmp_path, "dut1")
    damage(folder)  # type: ignore[operator]
    found = refused(tmp_path / "fleet", folder)
    assert "run-dut1 is not" in found
    assert sentence in found


def test_a_link_in_a_run_is_not_followed(tmp_path: Path) -> None:
    folder = run(tmp_path, "dut1")
    target = folder / "fio" / "run.json.gz"
    target.rename(tmp_path / "elsewhere")
    target.symlink_to(tmp_path / "elsewhere")
    assert "fio/run.json.gz is missing" in refused(tmp_path / "fleet", folder)


def test_a_page_written_again_and_a_file_beside_it_are_no_damage(tmp_path: Path) -> None:
    folder = run(tmp_path, "dut1")
    (folder / "report.html").write_text("old")
    (folder / "SHA256SUMS").write_bytes(checksums.text(folder))
    (folder / "report.html").write_text("new")
    (folder / "notes.txt").touch()
    sources = merge.gather([folder])
    fleet = merge.merge(sources, tmp_path / "fleet")
    (copy,) = fleets.bay_folders(fleet.path)
    assert (copy / "report.html").read_text() == "new"
    assert not (copy / "notes.txt").exists()
    assert list(merge.left_out(sources)) == [f"{folder}: its seal does not list notes.txt; not copied"]


def test_the_same_run_twice(tmp_path: Path) -> None:
    folder = run(tmp_path, "dut1")
    shutil.copytree(folder, tmp_path / "copy")
    assert refused(tmp_path / "fleet", folder, tmp_path / "copy").endswith(f"run as {folder}")
    assert "same run as" in refused(tmp_path / "fleet", folder, folder)


def test_the_same_drive_in_two_runs_at_once(tmp_path: Path) -> None:
    one = run(tmp_path, "dut1", serials=["S1", "S2"])
    other = run(tmp_path, "dut2", BAD, serials=["S2"], started="2026-03-01T12:59:00+00:00")
    later = run(
        tmp_path, "dut3", OPEN, serials=["S2"], started="2026-03-01T13:00:00+00:00", ended="2026-03-01T14:00:00Z"
    )
    found = refused(tmp_path / "fleet", one, other)
    assert re.match(r"ACME 9 S2 .*dut1 .*dut2 ", found)
    assert len(merged(tmp_path / "fleet", one, later).bays) == 2


def test_a_run_that_does_not_say_when_it_ended_may_have_gone_on(tmp_path: Path) -> None:
    one = run(tmp_path, "dut1", serials=["S1"], ended=None)
    later = run(tmp_path, "dut2", BAD, serials=["S1"], started="2026-05-01T12:00:00Z", ended="2026-05-01T13:00:00Z")
    assert "same time" in refused(tmp_path / "fleet", one, later)


def test_a_session_that_was_killed_had_ended_before_the_next_one(tmp_path: Path) -> None:
    one = run(tmp_path, "dut1", serials=["S1"], started="2026-05-01T08:00:00Z", ended="2026-05-01T10:00:00Z")
    manifest = json.loads((one / "manifest.json").read_text())
    each: dict[str, object] = {"command_line": [], "versions": {}, "differences": []}
    killed = {**each, "started": "2026-05-01T08:00:00Z", "ended": None, "exit_status": None}
    resumed = {**each, "started": "2026-05-01T09:00:00Z", "ended": "2026-05-01T10:00:00Z", "exit_status": 0}
    (one / "manifest.json").write_text(json.dumps({**manifest, "sessions": [killed, resumed]}))
    (one / checksums.SUMS).write_bytes(checksums.text(one))
    later = run(tmp_path, "dut2", BAD, serials=["S1"], started="2026-05-01T12:00:00Z", ended="2026-05-01T13:00:00Z")
    assert len(merged(tmp_path / "fleet", one, later).bays) == 2


def test_what_cannot_be_copied_leaves_nothing(tmp_path: Path) -> None:
    folder = run(tmp_path, "dut1")
    sources = merge.gather([folder])
    (folder / "fio" / "run.json.gz").write_bytes(b"changed since")
    with pytest.raises(NotMergeable, match=r"run.json.gz changed"):
        merge.merge(sources, tmp_path / "fleet")
    (folder / "fio" / "run.json.gz").unlink()
    os.mkfifo(folder / "fio" / "run.json.gz")
    with pytest.raises(OSError, match="not a file"):
        merge.merge(sources, tmp_path / "fleet")
    assert not (tmp_path / "fleet").exists()


def test_junit_of_all_bays(tmp_path: Path) -> None:
    never = FleetBay("dut5", "bays/dut5", "root@dut5", {}, {}, "cannot be \x1b[2J reached")
    bays = [KeptBay("dut1", [GOOD]), KeptBay("dut2", [BAD]), KeptBay("dut3", [OPEN]), KeptBay("dut4", [], ["fio lost"])]
    (tmp_path / "junit.xml").write_bytes(junit.text(keep_fleet(tmp_path, bays, never)))
    suites = {suite.name: suite for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml"))}
    assert {name: (suite.tests, suite.failures, suite.errors) for name, suite in suites.items()} == {
        "dut1": (1, 0, 0), "dut2": (1, 1, 0), "dut3": (1, 0, 1), "dut4": (1, 0, 1), "dut5": (1, 0, 1),
    }  # fmt: skip
    (case,) = suites["dut2"]
    assert case.classname == "dut2.suites.test_it"
    assert case.name == "test_steady_iops[dut2-raid5x4-randread_4k_qd8]"
    assert case.result[0].message.endswith("by 20.0 %")
    properties = case.iterchildren(Properties)  # type: ignore[no-untyped-call]  # junitparser's own
    values = {each.name: each.value for found in properties for each in found}
    assert values["ssd.steady_iops"] == "8000"
    assert "INCONCLUSIVE" in next(iter(suites["dut3"])).result[0].message
    assert next(iter(suites["dut4"])).result[0].message == "fio lost"
    assert next(iter(suites["dut5"])).result[0].message.endswith("be \\x1b[2J reached")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"exit_status": 2}, "The run was interrupted; the remaining tests were not run."),
        ({"exit_status": 5, "judged": {"not_run": 3}}, "3 tests that the run planned did not run."),
        ({"exit_status": 1}, "pytest reported failed tests that the run folder does not record"),
    ],
    ids=str,
)
def test_junit_of_a_bay_that_is_not_fit_is_never_green(
    tmp_path: Path, changed: dict[str, object], sentence: str
) -> None:
    fleet = merged(tmp_path / "fleet", run(tmp_path, "dut1"), run(tmp_path, "dut2", changed=changed))
    (tmp_path / "junit.xml").write_bytes(junit.text(fleet.path))
    suites = {suite.name: suite for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml"))}
    assert {name: (suite.tests, suite.errors) for name, suite in suites.items()} == {"dut1": (1, 0), "dut2": (2, 1)}
    (whole,) = [case for case in suites["dut2"] if case.name == "whole run"]
    assert sentence in whole.result[0].message


def test_junit_has_a_new_defect_that_no_test_reported(tmp_path: Path) -> None:
    folder = run(tmp_path, "dut1")
    append(folder, kind="drive_worsened", drive="dut1-1", name="dut1-1", findings=["x"], defects=["x"])
    (folder / "SHA256SUMS").write_bytes(checksums.text(folder))
    assert b"1 drive failed or reported a new defect" in junit.text(merged(tmp_path / "fleet", folder).path)
