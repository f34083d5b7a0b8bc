from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from captured import VERSIONS, captured
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.geometry import Geometry, Level
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.rig.fio import verify
from pytest_ssdqual.rig.fio.jobfile import Job, Target, fill, measurement, split

TWO = Geometry(Level.RAID0, 2)
SIX = Geometry(Level.RAID5, 6)
LOOP = Target("/dev/loop0", 16 * 1024 * 1024 + 12_800)
MD = Target("/dev/md/ssdqual", 2_400_000_000_000)


def value(job: Job, name: str) -> str:
    (found,) = [option.partition("=")[2] for option in job.options if option.startswith(f"--{name}=")]
    return found


def has(job: Job, name: str) -> bool:
    return any(option.startswith(f"--{name}=") for option in job.options)


def test_one_job_per_member_with_the_depth_per_drive() -> None:
    job = measurement(Workload("randread", "4k", 8), SIX, MD, 120)
    assert value(job, "numjobs") == "6"
    assert value(job, "iodepth") == "8"
    assert value(job, "filename") == "/dev/md/ssdqual"
    assert value(job, "runtime") == "120000ms"
    assert job.expectation.seconds == 120


def test_random_addresses_are_independent_and_cover_everything() -> None:
    job = measurement(Workload("randwrite", "4k", 8), SIX, MD, 120)
    assert value(job, "norandommap") == "1"
    assert value(job, "randrepeat") == "0"
    assert value(job, "random_generator") == "tausworthe64"
    assert not has(job, "size")
    assert not has(job, "offset_increment")


def test_sequential_jobs_share_the_target() -> None:
    job = measurement(Workload("write", "128k", 8), SIX, MD, 120)
    share = int(value(job, "size"))
    assert value(job, "offset_increment") == str(share)
    assert 0 <= MD.size_bytes - 6 * share < 6 * 1024 * 1024
    assert share % (1024 * 1024) == 0


def test_the_mix_is_told_and_expected() -> None:
    job = measurement(Workload("randrw", "8k", 4, 70), SIX, MD, 120)
    assert value(job, "rwmixread") == "70"
    assert job.expectation.reads
    assert job.expectation.writes
    assert not has(measurement(Workload("randread", "8k", 4), SIX, MD, 120), "rwmixread")


def test_a_target_smaller_than_its_streams_is_refused() -> None:
    with pytest.raises(ValueError, match="too small for 6 streams"):
        measurement(Workload("read", "1m", 1), SIX, Target("/dev/sdz", 4 * 1024 * 1024), 10)


def test_times_fio_cannot_keep_are_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot be run for 0\.5 s"):
        measurement(Workload("read", "4k", 1), SIX, MD, 0.5)
    with pytest.raises(ValueError, match="at least 1"):
        fill(MD, 0)


@pytest.mark.parametrize(
    "path",
    [
        "sda",
        "--exec_prerun=reboot",
        "-",
        "",
        "/dev/sda:/dev/sdb",
        r"/dev/sda\:x",
        "/dev/sda\n",
        "/dev/sda\nexec_prerun=x",
        "/dev/%d",
        "/dev/$jobname",
        "/dev/sd a",
        "/dev/sda ",
        "/dev/ſda",
    ],
)
def test_paths_fio_could_misread_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="cannot be given to fio"):
        Target(path, 1 << 20)
    with pytest.raises(ValueError, match="cannot be given to fio"):
        fill(MD, 1).argv(path)


@pytest.mark.parametrize("path", ["/dev/sda", "/dev/disk/by-id/nvme-ACME_X1_S3-7.2_1", "/dev/md/ssdqual-raid5x4"])
def test_device_names_are_accepted(path: str) -> None:
    assert f"--filename={path}" in measurement(Workload("read", "4k", 1), TWO, Target(path, 1 << 30), 5).options


def test_the_output_comes_first_and_the_line_can_be_pasted() -> None:
    job = measurement(Workload("randread", "4k", 1), TWO, MD, 5)
    argv = job.argv("/run/out.json")
    assert argv[:2] == ("fio", "--output=/run/out.json")
    assert tuple(shlex.split(job.shell("/run/out.json"))) == argv


def test_a_size_that_is_no_whole_number_of_sectors_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number of sectors"):
        Target("/dev/sda", 1000)


@given(
    sectors=st.integers(1, 10**7), jobs=st.integers(1, 24), block=st.sampled_from([512, 4096, 131072, 1 << 20, 3 << 16])
)
def test_a_split_covers_every_byte_once(sectors: int, jobs: int, block: int) -> None:
    size = sectors * 512
    parts = list(split(size, jobs, block))
    end = 0
    for part in parts:
        assert part.offset_bytes == end
        assert part.size_bytes > 0
        assert part.size_bytes % part.block_bytes == 0
        assert part.block_bytes % 512 == 0
        assert part.block_bytes <= block
        end += part.size_bytes
    assert end == size
    assert len(parts) <= jobs + 1


def test_a_split_is_even() -> None:
    sizes = [part.size_bytes for part in split(480_103_981_056, 8, 131072)]
    assert max(sizes[:8]) - min(sizes[:8]) < 9 * 1024 * 1024


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "job"),
    [
        ("randread", measurement(Workload("randread", "4k", 4), TWO, LOOP, 3)),
        ("randwrite", measurement(Workload("randwrite", "4k", 4), TWO, LOOP, 3)),
        ("randrw70", measurement(Workload("randrw", "4k", 4, 70), TWO, LOOP, 3)),
        ("write", measurement(Workload("write", "128k", 4), TWO, LOOP, 2.5)),
        ("fill", fill(LOOP, 2, jobs=2, status_interval_s=1)),
    ],
)
def test_the_captured_data_was_made_with_these_options(version: str, case: str, job: Job) -> None:
    """Whoever changes an option must look at what fio then writes, and capture it anew."""
    assert captured(version, case).options == job.options
    assert captured(version, case).expectation == job.expectation


def _direct_io(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_a_fill_by_real_fio_leaves_no_sector_unwritten(tmp_path: Path) -> None:
    image, output = tmp_path / "image", tmp_path / "out.json"
    target = Target(str(image), 3 * 1024 * 1024 + 4096 + 512)
    with image.open("wb") as file:
        file.truncate(target.size_bytes)
    if not _direct_io(image):
        pytest.skip("the temporary directory has no direct I/O")
    job = fill(target, 2, "64k", jobs=3, iodepth=4)
    done = subprocess.run(job.argv(str(output)), capture_output=True, timeout=60, check=False)
    result = verify.accept(output.read_bytes(), done.returncode, done.stderr.decode(), job.expectation)
    data = image.read_bytes()
    sectors = [data[at : at + 512] for at in range(0, len(data), 512)]
    assert bytes(512) not in sectors
    assert len(set(sectors)) == len(sectors)
    assert result.write.bytes == 2 * target.size_bytes
