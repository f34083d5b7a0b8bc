from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support.builders.report_page import WriteRun

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.view import commands
from pytest_ssdqual.report.view.commands import Mention, Repeat, ShownCommand
from pytest_ssdqual.rig.fio import jobs
from pytest_ssdqual.rig.fio.jobs import JobTarget

CREATE = ["mdadm", "--create", "/dev/md100", "--run", "--uuid=1:2", "--level=5", "/dev/sda", "/dev/sdb"]
FIO = ["fio", "--output=/run/pytest-ssdqual/fio-1.json", "--filename=/dev/md100", "--rw=randread"]
DRIVES = {"/dev/sda": "S1", "/dev/sdb": "S2", "/dev/sdc": "S3"}
MENTION = Mention("2026-01-01T00:05:01.000+00:00", "main")


def line(minute: int, argv: list[str], status: int = 0, writer: str = "main") -> dict[str, object]:
    started = f"2026-01-01T00:{minute:02}:00.000+00:00"
    facts = {"writer": writer, "argv": argv, "status": status, "stdout": "", "stderr": ""}
    return {**facts, "started": started, "elapsed_s": 0.5}


def transcribed(folder: Path, *lines: dict[str, object]) -> tuple[ShownCommand, ...]:
    numbered = ({**each, "number": number} for number, each in enumerate(lines, 1))
    (folder / "transcript.jsonl").write_text("".join(json.dumps(each) + "\n" for each in numbered))
    return commands.read(folder)


def test_the_array_is_the_one_that_was_there_then(write_run: WriteRun) -> None:
    found = transcribed(
        write_run(),
        line(0, [*CREATE[:5], "--level=0", "/dev/sdc"]),
        line(1, ["sh", "-c", "hold", "bound", *CREATE]),
        line(2, [*CREATE[:5], "--level=6"], status=1),
        line(3, [*CREATE[:2], "/dev/md101", *CREATE[3:]]),
        line(3, [*CREATE[:5], "--level=1"], writer="gw0"),
        line(5, FIO),
        line(6, [*CREATE[:5], "--level=10"]),
    )
    assert commands.of(found, [MENTION], DRIVES) == Repeat(
        fio=("fio --output=fio-1.json --filename=/dev/md100 --rw=randread",),
        arrays=("mdadm --create /dev/md100 --run --level=5 /dev/sda /dev/sdb",),
        destroyed=(),
        drives=("/dev/sda was S1", "/dev/sdb was S2"),
    )


def test_what_is_written_to_is_said_and_drives_need_no_array(write_run: WriteRun) -> None:
    beside = [
        "fio",
        "--output=x",
        "--filename=/dev/sda",
        "--rw=randrw",
        "--name=b",
        "--filename=/dev/sdb",
        "--rw=randrw",
    ]
    found = commands.of(transcribed(write_run(), line(5, beside)), [MENTION, None], DRIVES)
    assert found.destroyed == ("/dev/sda", "/dev/sdb")
    assert found.arrays == ()


@pytest.mark.parametrize("time", ["no time", "2025-01-01T00:05:01+00:00"])
def test_without_a_moment_there_is_no_array(write_run: WriteRun, time: str) -> None:
    found = transcribed(write_run(), line(1, CREATE))
    assert commands.array_of(found, Mention(time, "main"), shlex.join(FIO)) == ""


@pytest.mark.skipif(shutil.which("fio") is None, reason="there is no fio here")
def test_fio_takes_the_line_where_the_folder_of_the_run_is_gone(write_run: WriteRun, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(1 << 20))
    job = jobs.measurement(Workload("randread", "4k", 8), [JobTarget(str(disk), 1 << 20)], 4, 6.0)
    (found,) = transcribed(write_run(), line(5, ["sh", "-c", "hold", "bound", *job.argv("/run/gone/fio-1.json")]))
    argv = [*shlex.split(found.fio), "--parse-only"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
