from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.builders.report_page import WriteRun, record

from pytest_ssdqual.report.run_folder.journal import SCHEMA
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import commands
from pytest_ssdqual.report.view.commands import Mention
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.fencing import Checked

FIO = ["fio", "--output=/run/pytest-ssdqual/fio-1.json", "--name=x y", "--rw=randread"]


def line(number: int, started: str, argv: list[str], elapsed_s: float = 1.0, **more: object) -> str:
    record = {"schema": SCHEMA, "number": number, "writer": "main", "machine": "dut", "argv": argv, "status": 0}
    started = f"2026-01-01T{started}.000+00:00"
    return json.dumps({**record, "started": started, "elapsed_s": elapsed_s, "stdout": "", "stderr": "", **more}) + "\n"


@pytest.fixture
def folder(write_run: WriteRun) -> Path:
    return write_run()


def transcribe(folder: Path, *lines: str) -> tuple[commands.ShownCommand, ...]:
    (folder / "transcript.jsonl").write_text("".join(lines))
    return commands.read(folder)


def test_the_fio_of_a_raw_file_is_the_last_before_its_name(folder: Path) -> None:
    bound = ["sh", "-c", "hold it", "bound", "/dev/md100", *FIO]
    found = transcribe(
        folder,
        line(1, "00:00:00", ["fio", "--parse-only", "--rw=read"]),
        line(2, "00:00:10", [*FIO[:3], "--rw=earlier"]),
        line(3, "00:01:00", bound, 60.0),
        line(4, "00:02:01", ["rm", "-f", "x"]),
        line(5, "00:02:05", [*FIO[:3], "--rw=later"]),
    )
    fio = "fio --output=fio-1.json '--name=x y' --rw=randread"
    assert commands.fio_of(found, Mention("2026-01-01T00:02:02.000+00:00", "main")) == fio
    assert commands.fio_of(found, Mention("2026-01-01T00:02:02.000+00:00", "gw0")) == ""
    assert commands.fio_of(found, Mention("2026-01-01T09:00:00.000+00:00", "main")) == ""
    assert commands.fio_of(found, Mention("no time", "main")) == ""
    assert commands.fio_of(found, None) == ""


def test_the_last_commands_before_an_error(folder: Path) -> None:
    found = transcribe(
        folder,
        line(1, "00:00:00", ["true"]),
        line(2, "00:30:00", ["mdadm", "--create", "x" * 1000], status=1, stderr="mdadm: no\n"),
        line(3, "00:30:05", ["lsblk"], status=None),
        line(4, "00:31:00", ["after"]),
    )
    create, lsblk = commands.before(found, "2026-01-01T00:30:07.000+00:00", "main")
    assert (create.status, create.output, create.elapsed_s) == (1, "mdadm: no", 1.0)
    assert create.text.startswith("mdadm --create ")
    assert len(create.text) < 300
    assert (lsblk.text, lsblk.status) == ("lsblk", None)
    assert [each.text for each in commands.before(found, "2026-01-01T00:30:07.000+00:00", "main")[-1:]] == ["lsblk"]


@pytest.mark.parametrize(
    ("day", "began", "at"), [("0001-01-01", "00:00:00", "00:00:01"), ("9999-12-31", "23:59:58", "23:59:59")]
)
def test_the_ends_of_the_calendar_are_times(folder: Path, day: str, began: str, at: str) -> None:
    lines = (line(1, began, ["short"]), line(2, began, ["long"], 1e6))
    found = transcribe(folder, *(each.replace("2026-01-01", day) for each in lines))
    assert [each.text for each in commands.before(found, f"{day}T{at}.000+00:00", "main")] == ["short"]


def test_a_file_of_somebody_else_is_not_read(folder: Path) -> None:
    (folder.parent / "secret").write_text("secret")
    (folder / "link").symlink_to(folder.parent / "secret")
    for name in ("link", "../secret", str(folder.parent / "secret"), "a\0b"):
        with pytest.raises((OSError, ValueError)):
            commands.file_text(folder, name)


@pytest.mark.parametrize(
    "damaged",
    ["{", '{"writer": "main", "number": 1}', '{"writer":"main","number":1,"argv":[1,null],"elapsed_s":1e308}'],
)
def test_a_damaged_transcript_tells_less(folder: Path, damaged: str) -> None:
    found = transcribe(folder, damaged + "\n", line(2, "00:00:00", ["true"]))
    assert found[-1].text == "true"


def test_without_a_transcript_there_are_no_commands(folder: Path) -> None:
    assert commands.read(folder) == ()


def test_a_raw_file_is_named_by_the_nearest_record_first(write_run: WriteRun) -> None:
    folder = write_run(
        record("ran", 1, raw="fio/a"),
        record("conditioned", 2, raw=["fio/b", "fio/c"]),
        record("verdict", 3, raw=["fio/a", 7, None]),
        record("filled", 4, raw=""),
    )
    found = commands.mentions(RunReader.read(folder))
    assert {name: each.time[17:19] for name, each in found.items()} == {"fio/a": "01", "fio/b": "02", "fio/c": "02"}


def test_scripts_of_ours_do_not_hide_what_was_done(folder: Path) -> None:
    checked = Checked("/dev/sda", 1 << 30, "S1", "wwn-1")
    argv = fencing.bound(("blkdiscard", "/dev/sda"), [checked], alone=True)
    script = "export LC_ALL=C\n" + "counters() { read -r up </proc/uptime; }\n" * 9
    look = ["sh", "-c", script, "environment", script, "before"]
    found = transcribe(
        folder, line(1, "00:00:00", list(argv)), line(2, "00:00:01", look),
        line(3, "00:00:02", ["sh", "-c", "hold", "bound", "short"]),
    )  # fmt: skip
    shown = "'export LC_ALL=C counters() { read -r up </proc/uptime; } cou…'"
    assert [each.text for each in found] == [
        "blkdiscard /dev/sda",
        f"sh -c {shown} environment {shown} before",
        "sh -c hold bound short",
    ]
