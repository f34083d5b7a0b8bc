from __future__ import annotations

import re
from typing import Any

from support.builders.report_page import WriteRun, record

from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.run_folder.manifest import Document
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import subject


def test_every_drive_of_every_machine_is_named(write_run: WriteRun) -> None:
    bays = [
        {"machine": "a", "drives": [{"serial": "S1", "model": "M", "firmware": "F1", "size_bytes": 480_103_981_056}]},
        {"machine": "b", "drives": [{"identity": "wwn-1", "serial": None, "path": "/dev/sdb"}]},
    ]
    grid = subject.drives(RunReader.read(write_run(bays=bays)).manifest)
    assert grid.rows == (
        ("S1", "M", "F1", "480 GB", "/dev/sdx"),
        ("wwn-1", "unknown model", "unknown", "480 GB", "/dev/sdb"),
    )


def test_the_sheet_of_each_drive_is_named(write_run: WriteRun) -> None:
    drives = [{"identity": "wwn-1", "serial": "S1"}, {"identity": "wwn-2", "serial": "S2"}]
    bays = [{"machine": "a", "drives": drives, "sheets": {"wwn-1": "acme (SATA)", "wwn-2": "other (NVMe Gen4)"}}]
    grid = subject.drives(RunReader.read(write_run(bays=bays)).manifest)
    assert grid.columns[-1] == "Judged by"
    assert [row[-1] for row in grid.rows] == ["acme (SATA)", "other (NVMe Gen4)"]


def test_the_means_are_named_with_each_session(write_run: WriteRun) -> None:
    sessions = [
        {"started": "t1", "ended": None, "exit_status": None, "command_line": ["pytest", "-x"]},
        {"started": "t2", "ended": "t3", "exit_status": 0, "differences": ["the kernel is 6.2 now and was 6.1"]},
    ]
    page = run_page.text(RunReader.read(write_run(sessions=sessions, versions={"python": "3.11"})))
    rows = re.findall('<tr><th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', page)
    assert ("protocol", f"snia (SHA-256 {Document('', '# a protocol').sha256[:16]}…)") in rows
    assert ("spec", f"acme (SHA-256 {Document('', '# a sheet').sha256[:16]}…)") in rows
    assert ("machine", "dut") in rows
    assert ("kernel", "Linux 6.1") in rows
    assert ("session", "t1 to no normal end, exit status None") in rows
    assert ("session", "t2 to t3, exit status 0") in rows
    assert ("command line", "pytest -x") in rows
    assert ("difference", "the kernel is 6.2 now and was 6.1") in rows
    assert ("python", "3.11") in rows


def test_health_shows_what_changed_over_all_sessions(write_run: WriteRun) -> None:
    health: dict[str, Any] = {"drive": "S1", "passed": True, "media_errors": 0, "data_written_bytes": 0}
    folder = write_run(
        record("health", when="before", temperature_c=40, **health),
        record("health", when="after", temperature_c=45, **health),
        record("health", when="before", temperature_c=41, **health),
        record("health", when="after", temperature_c=50, **{**health, "passed": False, "media_errors": 2}),
        record("health", when="before", drive="unlisted"),
    )
    story = RunReader.read(folder)
    first, second = subject.health(story).rows
    assert first == ("S1", "yes → no", "40 → 50", "unknown", "unknown", "0 → 2", "unknown", "0 B")
    assert second[0] == "unlisted"


def test_arrays_are_told_with_how_they_were_purged(write_run: WriteRun) -> None:
    facts: dict[str, Any] = {
        "geometry": "raid5x3",
        "members": ["a", "b", "c"],
        "size_bytes": 10**12,
        "consistency": "zeroed",
    }
    new = {"a": {"method": "discard"}, "b": {"method": "discard"}, "c": {"method": "format"}}
    folder = write_run(
        record("array_created", **facts, purge=new, settings={"chunk": "64k", "group_threads": 0}),
        record("array_created", **facts, purge={"a": {"method": "discard of the whole range"}}),
    )
    first, second = subject.arrays(RunReader.read(folder)).rows
    assert first == ("raid5x3", "3", "1 TB", "zeroed", "2 × discard; 1 × format", "chunk 64k, group threads 0")
    assert second[4:] == ("1 × discard of the whole range", "")


def test_the_worst_of_the_surroundings_is_shown(write_run: WriteRun) -> None:
    folder = write_run(
        record("environment", checks={"temperature_c": 50, "cpu": None}, unknown=["cpu"], objections=[]),
        record("environment", checks={"temperature_c": 71, "cpu": None}, unknown=["cpu"], objections=["too warm"]),
    )
    assert subject.environment_checks(RunReader.read(folder)).rows == (
        ("temperature c", "50", "71", "2", "0"),
        ("cpu", "", "", "0", "2"),
        ("objection: too warm", "", "", "1", ""),
    )


def test_kernel_messages_are_shown_once_and_the_gravest_first(write_run: WriteRun) -> None:
    def said(*lines: tuple[int | None, str]) -> dict[str, object]:
        plain = [{"time_s": 1.0, "level": level, "text": text} for level, text in lines]
        return {"lines": plain, "more": 0, "lost": False}

    folder = write_run(
        record("environment", geometry="raid5x4", workload="w", fio="run", kernel=said((6, "up"), (4, "timeout"))),
        record("environment", geometry="raid5x4", workload="v", fio="run", kernel=said((4, "timeout"), (3, "medium"))),
        record("environment", geometry="raid5x4", workload="v", fio="run", kernel=None),
        record("environment", kernel={"lines": 3}),
    )
    assert subject.kernel_messages(RunReader.read(folder)).rows == (
        ("error", "medium", "1", "raid5x4 v run"),
        ("warning", "timeout", "2", "raid5x4 w run"),
        ("other", "up", "1", "raid5x4 w run"),
    )


def test_raw_files_are_summed_by_folder_and_listed_to_a_bound(write_run: WriteRun) -> None:
    many = [(f"fio/{number:04}.json.gz", 1000) for number in range(300)]
    grid = subject.files([("manifest.json", 500), *many, ("transcript/main-1.out", 70)])
    assert grid.rows[:4] == (
        ("./ (1 file)", "500 B"),
        ("fio/ (300 files)", "300 kB"),
        ("transcript/ (1 file)", "70 B"),
        ("manifest.json", "500 B"),
    )
    assert "transcript/main-1.out" not in {row[0] for row in grid.rows}
    assert grid.note == "104 more rows are left out: SHA256SUMS in the run folder lists them all."


def test_the_documents_are_whole(write_run: WriteRun) -> None:
    both, one = (run_page.text(RunReader.read(write_run(**more))) for more in ({}, {"spec": None}))
    for page, titles in ((both, ["protocol snia", "spec acme"]), (one, ["protocol snia"])):
        assert re.findall("<summary>The ((?:protocol|spec) [a-z]+)</summary>", page) == titles
    assert "<code># a protocol</code>" in one
    assert "<code># a sheet</code>" in both
