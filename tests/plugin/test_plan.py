from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.plugin import plan
from pytest_ssdqual.qual import protocol, spec
from pytest_ssdqual.qual.geometry import FACTS, Geometry, Level
from pytest_ssdqual.qual.workload import Workload

if TYPE_CHECKING:
    from inner_session import Inner

READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
GEOMETRIES = st.sampled_from([level for level in Level if level is not Level.DRIVE]).flatmap(
    lambda level: st.integers(0, 5).map(lambda more: Geometry(level, FACTS[level].minimum + more * FACTS[level].step))
)


def ids(result: pytest.RunResult) -> list[str]:
    return [line.split("::")[1] for line in result.outlines if "::" in line]


def test_each_array_once_writes_first_sweeps_last(inner: Inner, promises: str) -> None:
    inner.pytester.makepyfile(test_foreign="def test_foreign(): pass")
    result = inner.run("--ssd-devices=lab:4", promises, "--collect-only", "-q")
    assert ids(result) == [
        "test_foreign",
        "test_iops[raid5x3-randwrite_4k_qd8]",
        "test_iops[raid5x3-randread_4k_qd8]",
        "test_iops[raid5x4-randwrite_4k_qd8]",
        "test_iops[raid5x4-randread_4k_qd8]",
        "test_scaling[raid5-randwrite_4k_qd8]",
        "test_scaling[raid5-randread_4k_qd8]",
    ]


def test_each_array_is_built_once_and_each_workload_measured_once(inner: Inner) -> None:
    inner.run("--ssd-devices=lab:5", inner.suite("raid5"))
    assert [record["geometry"] for record in inner.records("array_created")] == ["raid5x3", "raid5x4", "raid5x5"]
    measured = [(record["geometry"], record["workload"]) for record in inner.records("measured")]
    assert len(measured) == len(set(measured)) == 3 * 16
    assert next(workload for geometry, workload in measured if geometry == "raid5x3") == "randwrite_4k_qd1"


@pytest.mark.parametrize("args", [("-q",), (), ("-v",), ("-q", "-n", "2"), ("-p", "no:cacheprovider")])
def test_the_plan_comes_last_and_nothing_is_written(inner: Inner, promises: str, args: tuple[str, ...]) -> None:
    before = sorted(path.name for path in inner.pytester.path.iterdir())
    result = inner.run("--ssd-devices=lab:4", promises, "--collect-only", "-p", "no:cacheprovider", *args)
    result.stdout.fnmatch_lines(
        [
            "*test_scaling*randread_4k_qd8*",
            "ssdqual: the plan for 4 drives, protocol quick (not for acceptance)",  # nothing of ours before
            "  array    workloads  conditioning  measuring * in all  written",
            "  raid5x3          2 * 16 s *  805 MB",
            "  raid5x4          2 * 16 s *  1.07 GB",
            "  total            4 * 32 s *  1.88 GB",
            "  times are estimates: conditioning goes on until the array is steady",
            "  all data on the drives will be destroyed",
            "*6 tests collected in *",
        ]
    )
    assert result.stdout.str().count("the plan for") == 1
    left = {path.name for path in inner.pytester.path.iterdir()} - {"junit.xml", "__pycache__"}
    assert sorted(left) == before


def test_a_plan_without_arrays_is_no_plan(inner: Inner) -> None:
    inner.pytester.makepyfile("def test_foreign(): pass")
    assert "ssdqual: the plan" not in inner.run("--ssd-devices=lab:4", "--collect-only").stdout.str()


def test_figures_of_the_plan_are_the_protocols_and_the_data_sheets() -> None:
    intel, sheet = protocol.load("intel"), spec.load("intel-dc-s3500-480gb")
    wanted = {Geometry(Level.RAID5, 4): [WRITES, READS]}
    found = plan.predict(wanted, intel, sheet, 4, 480_000_000_000)
    (array,) = found.arrays
    rate = sheet.sequential_write_bytes_per_s or plan.FILL_BYTES_PER_S
    assert array.condition_s == plan.BUILD_S + 480e9 / rate + 7200
    assert array.measure_s == 2 * 2 * (720 + plan.OVERHEAD_S)
    assert array.bytes_written >= 4 * 480e9  # a fill writes all members, parity too
    assert found.endurance_bytes == sheet.endurance_bytes


@given(GEOMETRIES, st.integers(1, 10**13))
def test_a_fill_wears_every_member_once(geometry: Geometry, drive_bytes: int) -> None:
    bare = spec.default()
    (array,) = plan.predict({geometry: [READS]}, protocol.load("quick"), bare, geometry.width, drive_bytes).arrays
    assert array.bytes_written == drive_bytes * geometry.width


@given(GEOMETRIES)
def test_writes_cost_their_copies_and_their_parity(geometry: Geometry) -> None:
    sheet, quick = spec.load("ssdqual-sm300"), protocol.load("quick")
    reads = plan.predict({geometry: [READS]}, quick, sheet, geometry.width, 1).arrays[0].bytes_written
    both = plan.predict({geometry: [READS, WRITES]}, quick, sheet, geometry.width, 1).arrays[0].bytes_written
    iops = sheet.expected_iops(geometry, WRITES)
    assert iops
    copies = {Level.RAID0: 1, Level.RAID1: geometry.width, Level.RAID5: 2, Level.RAID6: 3, Level.RAID10: 2}
    seconds = quick.repeats * (quick.ramp_s + quick.window_s)
    assert both - reads == pytest.approx(iops * 4096 * seconds * copies[geometry.level], abs=2)
