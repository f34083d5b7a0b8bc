from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes import real_fio

from pytest_ssdqual.qual.explore.dimensions import Space
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.jobs import OF_THE_COMMAND, Job, JobTarget, measurement, text

SPACES = [Space.of(Workload("randread", "4k", 1)), Space.of(Workload("read", "128k", 1))]
DRIVES = [JobTarget(f"/dev/nvme{n}n1", 480_103_981_056) for n in range(2)]

explored = st.sampled_from(SPACES).flatmap(
    lambda space: st.tuples(*(st.sampled_from(each.values) for each in space.dimensions)).map(space.at)
)


def read_back(written: str) -> list[str]:
    """The options that a job file has."""
    lines = [line for line in written.splitlines() if line and not line.startswith("#")]
    return [f"--name={line[1:-1]}" if line.startswith("[") else f"--{line}" for line in lines]


@given(explored, st.integers(1, 2), st.lists(st.text(), max_size=3))
def test_the_file_has_the_options_of_the_job_and_no_others(
    workload: Workload, drives: int, comments: list[str]
) -> None:
    job = measurement(workload, DRIVES[:drives], drives, 60)
    ours = [each for each in job.options if each.removeprefix("--").partition("=")[0] not in OF_THE_COMMAND]
    assert read_back(text(job, comments)) == ours


def test_a_comment_cannot_become_an_option() -> None:
    job = measurement(Workload("randread", "4k", 1), DRIVES[:1], 1, 60)
    said = text(job, ["serial S1\nexec_prerun=reboot", "\r[global]\x85exec_prerun=x\u2028exec_prerun=y"])
    assert read_back(said) == read_back(text(job))
    assert "# serial S1\\x0aexec_prerun=reboot" in said


@pytest.mark.parametrize(
    "option", ["--bs=4k\nexec_prerun=x", "--filename=/dev/$X", "--name=a]b", "--bs=", "--bs=4k ;x"]
)
def test_a_value_that_a_job_file_reads_otherwise_is_refused(option: str) -> None:
    job = measurement(Workload("randread", "4k", 1), DRIVES[:1], 1, 60)
    with pytest.raises(ValueError, match="a job file"):
        text(replace(job, options=(*job.options, option)))


@pytest.mark.parametrize(
    "workload",
    [
        Workload(
            "randrw", "64k", 16, 30, offset="512", zipf=120, region_percent=10, sync=True, fsync=1,
            compressible_percent=90, dedupe_percent=50,
        ),
        Workload("write", "128k", 4, gap="64k"),
        Workload("randread+randwrite", "4k", 4, sync=True),
    ],
    ids=str,
)  # fmt: skip
def test_real_fio_takes_the_file_as_it_takes_the_command(tmp_path: Path, workload: Workload) -> None:
    """Its own way of spelling out what it understood: the same job from the file as from the command line."""
    if not shutil.which("fio"):
        pytest.skip("fio is not installed")
    targets = [real_fio.image(tmp_path, 64 << 20, name) for name in ("one", "two")]
    job = measurement(workload, targets, 2, 1)
    file = tmp_path / "found.fio"
    file.write_text(text(job, ["made by a test"]))

    def understood(*argv: str | Path) -> set[str]:
        done = subprocess.run(["fio", "--showcmd", *argv], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        words = [word for word in done.stdout.split() if word.startswith("--")]
        return {word for word in words if word.removeprefix("--").partition("=")[0] not in OF_THE_COMMAND}

    assert subprocess.run(["fio", "--parse-only", file], capture_output=True, check=False).returncode == 0
    assert understood(file) == set(read_back(text(job))) - {"--name=global"}


def test_real_fio_does_by_the_file_what_it_does_by_the_command(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, 16 << 20)
    job = measurement(Workload("randwrite", "16k", 2, offset="512", sync=True, region_percent=50), [target], 1, 1)
    by_command = real_fio.transfers(job, tmp_path)
    file, log = tmp_path / "found.fio", tmp_path / "by-hand.log"
    file.write_text(text(Job((*job.options, f"--write_iolog={log}"), job.expectation)))
    done = subprocess.run(["fio", file], capture_output=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in log.read_text().splitlines()]
    sizes = {(int(each[-2]) % 16384, int(each[-1])) for each in lines if each[-3:-2] == ["write"]}
    assert sizes == {(each.offset % 16384, each.size) for each in by_command} == {(512, 16384)}
