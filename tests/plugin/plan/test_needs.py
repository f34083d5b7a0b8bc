from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.plugin.plan.needs import objections
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.rounds import Rounds, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import jobs
from pytest_ssdqual.rig.fio.jobs import JobEnd, JobTarget

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DRIVE = Drive(
    path="/dev/sdb", kname="sdb", model="ACME", serial="S1", wwn=None, firmware=None, size_bytes=480 * 10**9,
    logical_block_bytes=512, physical_block_bytes=4096, rotational=False, transport="sata", queue_limit=32,
)  # fmt: skip


def against(workload: Workload, array: str = "drivex2", **drive: object) -> tuple[str, ...]:
    drives = [replace(DRIVE, serial=f"S{n}", **drive) for n in range(4)]  # type: ignore[arg-type]
    return objections([CampaignStep(StepKind.MEASURED, Geometry.parse(array), workload)], drives)


def test_the_pre_write_of_a_loop_is_a_need() -> None:
    reads, small = Workload("randread", "4k", 8), Workload("randwrite", "512", 8)
    loop = Rounds("loop", (reads,), (Tracked(reads, "steady_iops"),), "1m", pre_write=small, pre_write_cells=5)
    drives = [replace(DRIVE, logical_block_bytes=4096)]
    (found,) = objections([CampaignStep(StepKind.LOOP, Geometry.parse("drivex1"), loop)], drives)
    assert found.startswith("randwrite_512_qd8 has")


@pytest.mark.parametrize(
    ("workload", "array", "drive", "said"),
    [
        (Workload("randread", "4k", 8), "drivex2", {}, ()),
        (
            Workload("randread", "512", 8),
            "drivex2",
            {"logical_block_bytes": 4096},
            ("randread_512_qd8 has 512-byte I/O, these drives have blocks of 4,096 bytes",),
        ),
        (
            Workload("randread", "512/50:4k/50", 8, name="mix"),
            "raid0x2",
            {"logical_block_bytes": 4096},
            ("mix_qd8 has 512-byte I/O, these drives have blocks of 4,096 bytes",),
        ),
        (
            Workload("randwrite", "8k", 8, offset="512"),
            "drivex1",
            {"logical_block_bytes": 4096},
            ("randwrite_8k_off512_qd8 begins at byte 512, these drives have blocks of 4,096 bytes",),
        ),
        (Workload("randread", "4k", 32), "drivex2", {}, ()),
        (
            Workload("randread", "4k", 33),
            "drivex2",
            {},
            ("randread_4k_qd33 on drivex2 has 33 I/Os outstanding per drive, these drives queue 32",),
        ),
        (Workload("randread", "4k", 33), "drivex2", {"queue_limit": None}, ()),
        (Workload("randwrite", "4k", 32, threads=4), "raid0x4", {}, ()),
        (
            Workload("randwrite", "4k", 32, threads=4),
            "drivex4",
            {},
            ("randwrite_4k_t4xqd32 on drivex4 has 128 I/Os outstanding per drive, these drives queue 32",),
        ),
        (
            Workload("randread", "4k", 32, threads=4),
            "raid5x4-1failed",
            {},
            ("randread_4k_t4xqd32 on raid5x4-1failed has 42.67 I/Os outstanding per drive, these drives queue 32",),
        ),
        (
            Workload("randread+randwrite", "4k", 20),
            "drivex1",
            {},
            ("randread+randwrite_4k_qd20 on drivex1 has 40 I/Os outstanding per drive, these drives queue 32",),
        ),
        (
            Workload("read", "1g", 1, streams_per_drive=2),
            "raid0x2",
            {"size_bytes": 10**9},
            ("read_1g_s2_qd1 needs 4.29 GB for 4 streams, raid0x2 has 2 GB",),
        ),
        (
            Workload("randread", "1g", 1),
            "drivex2",
            {"size_bytes": 10**9},
            ("randread_1g_qd1 needs 1.07 GB for 1 stream, a drive has 1 GB",),
        ),
    ],
    ids=str,
)
def test_what_these_drives_cannot_do_is_said_with_the_numbers(
    workload: Workload, array: str, drive: dict[str, object], said: tuple[str, ...]
) -> None:
    assert against(workload, array, **drive) == said


@given(
    st.sampled_from(["read", "write", "randread", "read+write"]),
    st.sampled_from(["4k", "128k", "1m"]),
    st.integers(1, 4),
    st.integers(2048, 131072).map(lambda sectors: 512 * sectors),
)
def test_what_is_not_objected_to_fits_as_fio_will_do_it(rw: str, bs: str, streams: int, size_bytes: int) -> None:
    workload = Workload(rw, bs, 1, streams_per_drive=streams)
    if not against(workload, "drivex1", size_bytes=size_bytes):
        jobs.streams(workload, JobTarget("/dev/sdb", size_bytes), workload.jobs(1), JobEnd(1.0))


METHOD = """
    import pytest
    from pytest_ssdqual import Rounds, Tracked, Workload, WorkloadSet

    SMALL, READS = Workload("randread", "512", 1), Workload("randread", "4k", 1)
    LOOP = Rounds("rounds", (SMALL, READS), (Tracked(READS, "steady_iops"),), fill_bs="128k")
    pytestmark = pytest.mark.ssd_array("drive")

    @pytest.mark.ssd_workload(SMALL, READS)
    def test_alone(ssd_run): pass

    @pytest.mark.ssd_workload_set(WorkloadSet("sizes", (SMALL, READS)))
    def test_series(ssd_runs): pass

    @pytest.mark.ssd_rounds(LOOP)
    def test_cell(ssd_run): pass

    @pytest.mark.ssd_workload(Workload("randread", "4k", 64))
    def test_deep(ssd_run): pass
"""


def test_a_method_is_skipped_as_a_whole(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_BLOCK", "4096")
    monkeypatch.setenv("SIMULATED_QUEUE", "32")
    inner.pytester.makepyfile(METHOD)
    inner.run("--ssd-devices=lab:2").assert_outcomes(passed=1, skipped=5)
    small = "randread_512_qd1 has 512-byte I/O, these drives have blocks of 4,096 bytes"
    messages = {name: case.message for name, case in inner.cases().items()}
    assert "queue 32" in messages.pop("test_deep[drivex2-randread_4k_qd64]")
    assert messages == {
        "test_alone[drivex2-randread_4k_qd1]": "",
        "test_alone[drivex2-randread_512_qd1]": small,
        "test_series[drivex2-sizes]": small,
        "test_cell[drivex2-rounds-randread_512_qd1]": small,
        "test_cell[drivex2-rounds-randread_4k_qd1]": small,
    }
    assert not inner.records("loop", "loop_round")
