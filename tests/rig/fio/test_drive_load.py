"""The load of fio on drives: the depth of a workload stays what it is, however many jobs share it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget, measurement
from pytest_ssdqual.rig.fio.load import DriveLoad, Load

DRIVES = [JobTarget(f"/dev/nvme{number}n1", 480_103_981_056) for number in range(3)]
FAST = Load("io_uring", 8, ("0-7", "0-7", "8-15"))


def values(job: Job, name: str) -> list[str]:
    return [option.partition("=")[2] for option in job.options if option.startswith(f"--{name}=")]


@given(st.integers(1, 1024), st.integers(1, 64))
def test_all_jobs_together_have_the_depth_of_the_workload(depth: int, most: int) -> None:
    job = measurement(Workload("randread", "4k", depth), DRIVES[:1], 1, 10, load=Load(jobs=most))
    (jobs,), (each,) = values(job, "numjobs"), values(job, "iodepth")
    assert int(jobs) * int(each) == depth
    assert int(jobs) <= most
    assert all(depth % more for more in range(int(jobs) + 1, min(most, depth) + 1))


def test_sequential_streams_and_threads_are_not_divided() -> None:
    for workload in (Workload("read", "128k", 32), Workload("randread", "4k", 32, threads=4)):
        job = measurement(workload, DRIVES[:1], 1, 10, load=FAST)
        assert values(job, "iodepth") == ["32"]
        assert values(job, "numjobs") == [str(workload.threads or 1)]


@pytest.mark.parametrize("changes", [{"zipf": 120}, {"fsync": 1}, {"dedupe_percent": 50}, {"random_percent": 50}])
def test_a_workload_that_several_jobs_would_change_keeps_one(changes: dict[str, int]) -> None:
    workload = replace(Workload("randwrite", "4k", 32), **changes)  # type: ignore[arg-type]
    assert FAST.parts(Workload("randwrite", "4k", 32)) == 8
    assert FAST.parts(workload) == 1


def test_each_drive_has_the_engine_and_the_cpus_of_its_node() -> None:
    job = measurement(Workload("randwrite", "4k", 16), DRIVES, 1, 10, load=FAST)
    assert values(job, "ioengine") == ["io_uring"]
    assert values(job, "fixedbufs") == values(job, "registerfiles") == ["1"]
    assert values(job, "cpus_allowed") == ["0-7", "0-7", "8-15"]
    assert values(job, "numjobs") == ["8"] * 3


def test_a_volume_is_divided_among_all_jobs() -> None:
    volume = 3 * 8 * (1 << 20)
    job = measurement(Workload("randwrite", "4k", 16), DRIVES, 1, 10, volume_bytes=volume, load=FAST)
    assert values(job, "io_size") == [str(1 << 20)] * 3


def test_jobs_of_an_array_on_one_node_are_placed() -> None:
    chosen = DriveLoad("io_uring", "libaio", 4, {"a": "0-7", "b": "0-7", "c": "8-15"})
    assert chosen.of(["a", "c"], bare=True) == Load("io_uring", 4, ("0-7", "8-15"))
    assert chosen.of(["a", "b"], bare=False) == Load("libaio", 4, ("0-7",))
    assert chosen.of(["a", "c"], bare=False) == Load("libaio", 4)
    assert DriveLoad().of(["a"], bare=True) == Load()
