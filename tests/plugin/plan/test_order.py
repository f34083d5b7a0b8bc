from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import lab_with_every_depth
from support.fakes.inner_session import ids

from pytest_ssdqual.plugin.plan import order
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.workload.rounds import Rounds, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.resume.checkpoint import EarlierResults, ResultKey

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


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


@pytest.mark.parametrize(
    ("selected", "count"),
    [("test", 4 * 3 + 4 * 2), ("scaling", 4 * 3), ("spread", 4 * 2)],
    ids=["all", "sweeps", "ends"],
)
def test_each_array_and_each_workload_is_done_once(inner: Inner, selected: str, count: int) -> None:
    inner.run("--ssd-devices=lab:5", lab_with_every_depth(inner.pytester.path), inner.suite("raid5"), "-k", selected)
    built = ["raid5x3", "raid5x5"] if selected == "spread" else ["raid5x3", "raid5x4", "raid5x5"]
    assert [record["geometry"] for record in inner.records("array_created")] == built
    if selected == "test":  # the capacity is that of every width
        assert len(inner.cases()) == 4 * 3 + 4 * 2 + 4 * 3 + 4 * 2 + 4 * 2 + 4 * 3 + 3 + 1
    assert [record["geometry"] for record in inner.records("conditioned")] == built
    measured = [(record["geometry"], record["workload"]) for record in inner.records("measured")]
    assert len(measured) == len(set(measured)) == count
    assert measured[0] == ("raid5x3", "randwrite_4k_qd1" if selected == "test" else "randwrite_4k_qd8")
    order = [workload for geometry, workload in measured if geometry == "raid5x3"]
    assert [workload for geometry, workload in measured if geometry == "raid5x5"] == order


@pytest.mark.parametrize("args", [("-q",), ("-v",), ("-q", "-n", "2")])
def test_the_plan_comes_last_and_nothing_is_written(inner: Inner, promises: str, args: tuple[str, ...]) -> None:
    before = sorted(path.name for path in inner.pytester.path.iterdir())
    result = inner.run("--ssd-devices=lab:4", promises, "--collect-only", "-p", "no:cacheprovider", *args)
    result.stdout.fnmatch_lines(
        [
            "*test_scaling*randread_4k_qd8*",
            "ssdqual: the plan*",  # nothing of ours before
            "  raid5x3*805 MB",
            "  raid5x4*1.07 GB",
            "  total*1.88 GB",
            "*will be destroyed",
            "*6 tests collected*",
        ]
    )
    assert result.stdout.str().count("the plan for") == 1
    left = {path.name for path in inner.pytester.path.iterdir()} - {"junit.xml", "__pycache__"}
    assert sorted(left) == before


def test_a_plan_without_arrays_is_no_plan(inner: Inner) -> None:
    inner.pytester.makepyfile("def test_foreign(): pass")
    assert "ssdqual: the plan" not in inner.run("--ssd-devices=lab:4", "--collect-only").stdout.str()


MIXED = """
    import pytest
    from pytest_ssdqual import Workload, WorkloadSet

    READS, STREAM = Workload("randread", "4k", 8), Workload("read", "128k", 8)
    WRITES = Workload("randwrite", "4k", 8)
    pytestmark = pytest.mark.ssd_array("raid0", widths=[2])

    @pytest.mark.ssd_workload(STREAM, READS)
    def test_alone(ssd_run): pass

    @pytest.mark.ssd_workload_set(WorkloadSet("both", (STREAM.at(1), WRITES.at(1))))
    def test_both_classes(ssd_runs): pass

    @pytest.mark.ssd_workload(WRITES)
    def test_fresh_and_settled(ssd_run, ssd_saturation): pass
"""


def test_no_class_of_workloads_is_interrupted_by_the_other(inner: Inner) -> None:
    inner.pytester.makepyfile(MIXED)
    inner.run("--ssd-devices=lab:2", "-k", "alone or both").assert_outcomes(passed=3)
    assert [record["workload"] for record in inner.records("measured")] == [
        "randwrite_4k_qd1", "randread_4k_qd8", "read_128k_qd1", "read_128k_qd8",
    ]  # fmt: skip


REVERSED = """
    def pytest_collection_finish(session):
        session.items.reverse()
"""


@pytest.mark.parametrize("conftest", ["", REVERSED], ids=["in order", "reversed"])
def test_user_order_does_not_change_the_measurements(inner: Inner, conftest: str) -> None:
    """Each array is built once and conditioned once for each class, and its steps are in the plan's order."""
    inner.pytester.makepyfile(LOSING)
    inner.pytester.makeconftest(conftest)
    inner.run("--ssd-devices=lab:4").assert_outcomes(passed=5)
    assert Counter(record["geometry"] for record in inner.records("array_created")) == {"raid5x3": 1, "raid5x4": 1}
    measured = [(record["geometry"], record["workload"]) for record in inner.records("measured")]
    small = [("raid5x3", STREAM), ("raid5x3", READS), ("raid5x3-1failed", READS)]
    wide = [("raid5x4", READS), ("raid5x4", STREAM)]
    assert measured == ([*wide, *small] if conftest else [*small, *wide])


def test_last_failed_measures_nothing_for_other_tests(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--lf`` deselects tests after all tests were ordered."""
    failing = "def test_degraded(ssd_run): assert 'BROKEN' not in __import__('os').environ"
    inner.pytester.makepyfile(LOSING.replace("def test_degraded(ssd_run): pass", failing))
    monkeypatch.setenv("BROKEN", "1")
    inner.run("--ssd-devices=lab:4").assert_outcomes(passed=4, failed=1)
    monkeypatch.delenv("BROKEN")
    shutil.rmtree(inner.pytester.path / "ssdqual-runs")
    result = inner.run("--ssd-devices=lab:4", "--lf")
    result.assert_outcomes(passed=1)
    measured = [(record["geometry"], record["workload"]) for record in inner.records("measured")]
    assert measured == [("raid5x3-1failed", READS)]
    assert [record["geometry"] for record in inner.records("array_created")] == ["raid5x3"]


READS, STREAM = "randread_4k_qd8", "read_128k_qd8"
LOSING = """
    import pytest
    from pytest_ssdqual import Workload

    READS, STREAM = Workload("randread", "4k", 8), Workload("read", "128k", 8)

    @pytest.mark.ssd_array("raid5", widths=[3, 4])
    @pytest.mark.ssd_workload(READS, STREAM)
    def test_whole(ssd_run): pass

    @pytest.mark.ssd_array("raid5", widths=[3], failed=1)
    @pytest.mark.ssd_workload(READS)
    def test_degraded(ssd_run): pass
"""


def test_an_array_loses_its_members_in_the_state_measured_next(inner: Inner) -> None:
    inner.pytester.makepyfile(LOSING)
    result = inner.run("--ssd-devices=lab:4", "--collect-only", "-q")
    assert [name.split("[")[1] for name in ids(result)] == [
        "raid5x3-read_128k_qd8]",
        "raid5x3-randread_4k_qd8]",
        "raid5x3-1failed-randread_4k_qd8]",
        "raid5x4-randread_4k_qd8]",
        "raid5x4-read_128k_qd8]",
    ]
    inner.run("--ssd-devices=lab:4")
    assert [(record["geometry"], record["pattern"]) for record in inner.records("conditioned")] == [
        ("raid5x3", "sequential"), ("raid5x3", "random"), ("raid5x4", "random"), ("raid5x4", "sequential"),
    ]  # fmt: skip


def test_a_test_that_needs_a_purge_does_not_unsettle_the_others(inner: Inner) -> None:
    inner.pytester.makepyfile(MIXED)
    result = inner.run("--ssd-devices=lab:2", "-k", "alone or fresh")
    assert len(inner.records("array_created")) == 2
    rows = [line.split()[:3] for line in result.outlines if line.startswith("  raid0x2 ")]
    assert [row[-1 if "saturation" in row else 1] for row in rows] == ["1", "3"]


def test_what_is_known_already_is_not_planned_again() -> None:
    reads, writes = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    loop = Rounds("rounds", (writes,), (Tracked(writes, "steady_iops"),), fill_bs="1m")
    small, wide = Geometry(RaidLevel.RAID5, 3), Geometry(RaidLevel.RAID5, 4)
    rebuilding = Geometry(RaidLevel.RAID5, 3, 1, rebuilding=True)
    fresh, rounds = CampaignStep(StepKind.SATURATION, small, writes), CampaignStep(StepKind.LOOP, small, loop)
    written, read = (CampaignStep(StepKind.MEASURED, small, each) for each in (writes, reads))
    rebuilt, alone = CampaignStep(StepKind.REBUILD, rebuilding, reads), CampaignStep(StepKind.ARRAY, wide)
    wanted = order.in_order([alone, rebuilt, read, written, rounds, fresh])
    assert wanted == (fresh, rounds, written, read, rebuilt, alone)

    class Known(EarlierResults):
        def has(self, key: ResultKey) -> bool:
            return key in (ResultKey("measured", small, str(reads)), ResultKey("loop", small, "rounds"))

    assert order.missing(wanted, Known()) == (fresh, written, rebuilt, alone)
    assert order.missing(wanted, EarlierResults()) == wanted
    assert order.missing([read], Known()) == ()


def test_an_ended_search_is_not_planned_again() -> None:
    """The histories of an integrity test are run again, as no record has the content of the drives."""
    drives, reads = Geometry.parse("drivex4"), Workload("randread", "4k", 8)
    search, integrity = CampaignStep(StepKind.SEARCH, drives, reads), CampaignStep(StepKind.INTEGRITY, drives)

    class Known(EarlierResults):
        def has(self, key: ResultKey) -> bool:
            return key == ResultKey("search", drives, str(reads))

    assert order.missing([search, integrity], Known()) == (integrity,)


@pytest.mark.parametrize("of_drives", [False, True])
def test_searches_come_after_the_measurements_of_all_arrays(*, of_drives: bool) -> None:
    raid5, raid6, drives, mirror = map(Geometry.parse, ("raid5x4", "raid6x4", "drivex4", "raid1x2"))
    reads = Workload("randread", "4k", 8)
    searches = [
        CampaignStep(StepKind.SEARCH, drives, reads),
        CampaignStep(StepKind.INTEGRITY, mirror),
        CampaignStep(StepKind.SEARCH, raid5, reads),
    ]
    measured = [
        CampaignStep(StepKind.MEASURED, raid5, reads),
        CampaignStep(StepKind.REBUILD, Geometry.parse("raid5x4-1rebuilding"), reads),
        CampaignStep(StepKind.MEASURED, raid6, reads),
    ]
    found = order.in_order([*searches, *measured], of_drives=of_drives)
    assert set(found[:3]) == set(measured)
    assert set(found[3:]) == set(searches)


def test_an_array_without_a_workload_comes_after_measurements() -> None:
    """Before a measurement all drives are written to; the array would stand already, of drives that had idled."""
    array = Geometry.parse("raid5x4")
    bare, measured = CampaignStep(StepKind.ARRAY, array), CampaignStep(StepKind.MEASURED, array, Workload.parse(READS))
    assert order.in_order([bare, measured], of_drives=True) == (measured, bare)


@pytest.mark.parametrize(
    ("sheet", "alone"),
    [
        # 8 jobs of depth 64: what the drives do 512 deep says nothing about 16.
        ("samsung-pm9a3-7t68", ["randread_4k_qd16", "randread_4k_t8xqd64"]),
        ("kingston-dc600m-960gb", ["randread_4k_qd32"]),
        ("ssdqual-sm300", ["randread_4k_qd32"]),
    ],
)
def test_a_maximum_about_as_deep_stands_for_members_reads(sheet: str, alone: list[str]) -> None:
    step = CampaignStep(StepKind.MEASURED, Geometry.parse("raid5x8"), Workload("randread", "4k", 8))
    steps = order.of_members([step], protocol.load("acceptance"), spec.load(sheet))
    assert [str(each.what) for each in steps if each.kind is StepKind.ALONE] == alone
    assert {*alone, "randread_4k_qd16"} <= {str(each.what) for each in steps if each.kind is StepKind.MEMBER}
