"""Whether drives answer a read: the script on files of this computer, and what is made of its answer."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.fakes.scripted import ScriptedMachine
from support.shells import SHELLS, run_script

from pytest_ssdqual.rig.drives import answers, survey
from pytest_ssdqual.rig.machine.machine import DeadlineExceeded, DriveSilent, RigError


@pytest.mark.parametrize("shell", SHELLS)
def test_read_that_does_not_end_is_a_drive_that_does_not_answer(tmp_path: Path, shell: str) -> None:
    """A pipe without a writer answers no read, as a drive that is busy with a discard."""
    os.mkfifo(tmp_path / "busy")
    (tmp_path / "idle").write_bytes(bytes(4096))
    paths = [str(tmp_path / name) for name in ("idle", "busy", "gone")]
    answer = run_script(shell, answers.AWAIT, "await_answer", "1", *paths)
    with (tmp_path / "busy").open("wb"):  # its read ends
        pass
    machine = ScriptedMachine().on("sh", "-c", answers.AWAIT, answer=answer)
    found = answers.unanswered(machine, paths, 1)
    assert [path.rpartition("/")[2] for path in found] == ["busy", "gone"]
    assert found[paths[1]].startswith("does not answer")
    assert found[paths[2]].startswith("cannot be read")


BUSYBOX = """#!/bin/sh
for word; do case $word in iflag=*) exit 1 ;; esac; done
exec "$REAL" "$@"
"""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("dd", "path", "unread"),
    [
        (BUSYBOX, "idle", 0),
        ("#!/bin/sh\nexit 1\n", "idle", 0),
        ("#!/bin/sh\nsleep 5\n", "idle", 1),
        ("", "idle", 1),
        (BUSYBOX, "gone", 1),
    ],
    ids=["no flag", "a read fails", "a read waits", "no dd", "no node"],
)
def test_read_that_could_not_begin_is_no_answer(tmp_path: Path, shell: str, dd: str, path: str, unread: int) -> None:
    """Not each dd of busybox has iflag=direct; the drive answers a read with an error, too."""
    (tmp_path / "idle").write_bytes(bytes(4096))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sleep").symlink_to(str(shutil.which("sleep")))
    if dd:
        (tmp_path / "bin/dd").write_text(dd)
        (tmp_path / "bin/dd").chmod(0o755)
    env = {"PATH": str(tmp_path / "bin"), "REAL": str(shutil.which("dd"))}
    answer = run_script(shell, answers.AWAIT, "await_answer", "1", str(tmp_path / path), env=env)
    *lines, end = answer.splitlines()
    assert len(lines) == unread
    assert end.startswith("end ")


@pytest.mark.parametrize("answer", ["", "end\n", "end x\n", "/dev/sdb 1\n"])
def test_answer_that_was_cut_short_is_an_error(answer: str) -> None:
    machine = ScriptedMachine().on("sh", "-c", answers.AWAIT, answer=answer)
    with pytest.raises(RigError):
        answers.unanswered(machine, ["/dev/sdb"], 1)


def test_survey_that_does_not_end_names_the_silent_drive() -> None:
    late = DeadlineExceeded("sh did not end within 60 s")
    machine = ScriptedMachine().on("lsblk", answer='{"blockdevices": []}').on("sh", "-c", survey.FACTS, answer=late)
    with pytest.raises(DeadlineExceeded):
        survey.survey(machine, ["sdb", "sdc"])
    machine.contents.silent.add("/dev/sdc")
    with pytest.raises(DriveSilent) as silent:
        survey.survey(machine, ["sdb", "sdc"])
    assert "/dev/sdc" in str(silent.value)
    assert "sdb" not in str(silent.value)
