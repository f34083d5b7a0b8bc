"""Searches on a rig that was never there: what is planted is found and made simple, what is sound passes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.guard.label import HEAD_BYTES

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(Workload(%s, 1))]

    def test_search(ssd_explore):
        verdict = ssd_explore.judge()
        assert verdict
"""
RANDOM, SEQUENTIAL = '"randread", "4k"', '"read", "128k"'
SPEC = """
    [product]
    name = "ACME 9"
    models = []
    [[promise]]
    claim = "steady_iops"
    workload = "*"
    at_least = "200 IOPS"
"""
#: As ``quick`` with time for a search that finds everything planted here.
PROTOCOL = """
    acceptance = false
    purge = "discard"
    fill = { passes = 1, bs = "1m" }
    precondition = { step = "5 s", limit = "60 s" }
    measure = { ramp = "1 s", window = "5 s", repeats = 1, attempts = 1 }
    explore = { %s }
"""
CASE = "test_search[drivex2-randread_4k_qd1]"
SLOW_UNALIGNED_SYNC = "largest_bytes>=65536 offset_bytes>0 sync>0"


@pytest.fixture
def rig(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    monkeypatch.setenv("SIMULATED_DRIVES", "2")
    inner.pytester.makepyfile(test_one=SUITE % RANDOM)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    explore(inner, 'budget = "30 min"')
    return inner


def explore(rig: Inner, table: str) -> None:
    (rig.pytester.path / "brief.toml").write_text(PROTOCOL % table)


def run(rig: Inner, *args: str, seed: str = "a", database: str = "known") -> pytest.RunResult:
    options = ("--ssd-devices=/dev/nvme*", "--ssd-spec=acme.toml", "--ssd-protocol=brief.toml")
    return rig.run(*options, f"--ssd-explore-seed={seed}", f"--ssd-explore-database={database}", *args)


def searched(rig: Inner) -> dict[str, Any]:
    """Of the last run."""
    # By when it was written: two runs of one second have names in no order.
    runs = (rig.pytester.path / "ssdqual-runs").glob("*/records.jsonl")
    folder = max(runs, key=lambda each: each.stat().st_mtime_ns).parent
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    (found,) = [line for line in lines if line["kind"] == "searched"]
    return {**found, "folder": folder}


@pytest.mark.parametrize(
    ("suite", "planted", "corner", "departures"),
    [
        (RANDOM, "qd_per_drive>=16 read_fraction>0 read_fraction<1", "randrw70_4k_qd16", "depth 16, reads 70 %"),
        (
            RANDOM,
            "zipf>0 region_percent<=10 fsync>0",
            "randwrite_4k_zipf120_reg10_fsync1_qd1",
            "reads 0 %, zipf 120, region 10 %, flush fsync",
        ),
        (
            SEQUENTIAL,
            "gap_bytes>=65536 compressible_percent>0",
            "write_128k_gap64k_comp50_qd1",
            "reads 0 %, gap 64k, compressible 50 %",
        ),
    ],
)
def test_what_is_planted_is_found_and_shrunk_to_its_corner(
    rig: Inner, monkeypatch: pytest.MonkeyPatch, suite: str, planted: str, corner: str, departures: str
) -> None:
    monkeypatch.setenv("SIMULATED_WEAK", planted)
    rig.pytester.makepyfile(test_one=SUITE % suite)
    result = run(rig)
    ((name, case),) = rig.cases().items()
    assert case.outcome == "failure", result.outlines
    assert all(each in case.message for each in ("drive SSDQ0001 (drivex2)", f"{corner}: 75 IOPS"))
    assert f"fio explore/drivex2-{corner}.fio" in case.message
    search = searched(rig)
    assert search["seconds"] <= search["budget_s"] == 1800
    assert search["seconds"] >= 6 * len(search["probed"])
    assert (name.rpartition("-")[2], search["plain"] + "]") == (search["plain"] + "]",) * 2
    ((suspect),) = search["suspects"]
    assert (suspect["workload"], suspect["confirmed"], suspect["is_simplest"]) == (corner, True, True)
    assert f"{corner}: 75 IOPS" in suspect["verdict"]
    assert all(": FAIL by " in each["verdict"] for each in search["probed"] if each["look"] == "broken")
    assert f"{search['plain']} by {departures}; " in case.text
    assert case.properties["ssd.workload"] == corner
    assert case.properties["ssd.workloads_searched"] == str(len(search["probed"]))
    output = " ".join(line.strip() for line in result.outlines)
    assert f"{corner} breaks a" in output


def test_a_finding_is_a_job_file_and_the_beginning_of_another_run_until_it_is_mended(
    rig: Inner, monkeypatch: pytest.MonkeyPatch
) -> None:
    corner = "randwrite_64k_off512_sync_qd1"
    monkeypatch.setenv("SIMULATED_WEAK", SLOW_UNALIGNED_SYNC)
    explore(rig, 'budget = "30 min" }\n    load = { engine = "io_uring"')
    run(rig)
    before = searched(rig)
    file = before["folder"] / "explore" / f"drivex2-{corner}.fio"
    text = file.read_text()
    assert "ON /dev/nvme0n1 /dev/nvme1n1" in text
    expected = {"bs=65536", f"offset={HEAD_BYTES + 512}", "sync=1", "filename=/dev/nvme1n1", "ioengine=io_uring"}
    assert expected <= set(text.splitlines())
    parsed = subprocess.run(["fio", "--parse-only", file], capture_output=True, text=True, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    folder = rig.pytester.path / "known"
    ((known),) = folder.iterdir()
    assert [each.stat().st_mode & 0o777 for each in (folder, known)] == [0o700, 0o600]

    run(rig, seed="b")
    now, case = searched(rig), rig.cases()[CASE]
    assert before["folder"] != now["folder"]
    assert [each["workload"] for each in now["probed"]] == now["began_with"] == [corner]
    assert case.outcome == "failure"
    assert "an earlier run" in case.message

    monkeypatch.delenv("SIMULATED_WEAK")
    explore(rig, 'workloads = 5 }\n    load = { engine = "io_uring"')
    run(rig)
    assert searched(rig)["probed"][0]["workload"] == corner
    assert rig.cases()[CASE].outcome == "passed"
    assert list(folder.iterdir()) == []


def test_sound_drives_pass_and_all_that_was_searched_is_told(rig: Inner) -> None:
    explore(rig, 'budget = "3 min"')
    result = run(rig)
    case = rig.cases()[CASE]
    assert case.outcome == "passed"
    assert case.properties["ssd.search"].startswith("searched 30 ")
    assert "used up" in case.properties["ssd.search"]
    ((verdict),) = rig.records("verdict")
    assert verdict["outcome"] == "pass"
    points = [each["name"] for each in verdict["points"]]
    assert len(set(points)) == 30
    assert points[0] == "randread_4k_qd1"  # the plainest is looked at first
    assert points == [each["workload"] for each in searched(rig)["probed"]]
    assert {Workload.parse(each).is_random for each in points} == {True}
    result.stdout.fnmatch_lines(["searched 30 *"])
    assert not (rig.pytester.path / "known").exists()


def test_so_many_workloads_and_no_more(rig: Inner) -> None:
    explore(rig, "workloads = 7")
    run(rig)
    assert rig.cases()[CASE].properties["ssd.workloads_searched"] == "7"


def test_one_unlucky_look_accuses_nobody(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sixth process of fio is slow, and no other; the first conditions the drives."""
    monkeypatch.setenv("SIMULATED_WEAK", "run==6 speed=0.5")
    explore(rig, "workloads = 40")
    run(rig)
    found, case = searched(rig), rig.cases()[CASE]
    ((suspect),) = found["suspects"]
    assert suspect["cleared"]
    assert not suspect["confirmed"]
    assert case.outcome == "passed"
    assert len(found["probed"]) == 40
    assert "proves nothing" in " ".join(rig.records("verdict")[0]["remarks"])


def test_drives_so_slow_that_little_is_seen_get_a_longer_look(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 75 IOPS five seconds have fewer than the 500 I/Os that are believed: the worst must not hide behind that."""
    monkeypatch.setenv("SIMULATED_WEAK", "writes>0")
    run(rig, database="")
    search = searched(rig)
    assert search["suspects"][0]["workload"] == "randwrite_4k_qd1"
    assert '"kind":"explored_longer"' in (search["folder"] / "records.jsonl").read_text()
    # Where findings are kept if nothing is said.
    assert len(list(Path(rig.pytester.path, "ssdqual-runs", ".explore").iterdir())) == 1


def test_what_cannot_be_measured_is_told_and_no_failure(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_WEAK", "writes>0 speed=0.01")
    explore(rig, "workloads = 20")
    run(rig)
    case = rig.cases()[CASE]
    assert case.outcome == "passed"
    assert "not be measured" in case.properties["ssd.search"]
    assert int(case.properties["ssd.workloads_unmeasurable"]) > 0
    looks = {each["look"] for each in searched(rig)["probed"]}
    assert looks == {"kept", "unmeasurable"}


def test_nothing_that_can_be_decided_is_an_error(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_WEAK", "reads>=0 speed=0.01")
    explore(rig, "workloads = 3")
    run(rig)
    case = rig.cases()[CASE]
    assert case.outcome == "error"
    assert "near randread_4k_qd1 could" in case.message


RARE = SPEC.replace("steady_iops", "max_latency").replace('at_least = "200 IOPS"', 'at_most = "500 ms"')


def test_what_no_probe_can_decide_is_probed_once_and_not_green(rig: Inner) -> None:
    (rig.pytester.path / "acme.toml").write_text(RARE)
    explore(rig, "workloads = 5")
    run(rig)
    case = rig.cases()[CASE]
    assert case.outcome == "error"
    assert "max latency" in case.message
    assert {each["look"] for each in searched(rig)["probed"]} == {"too_short"}
    assert not rig.records("explored_longer")


def test_the_plan_names_a_promise_that_no_probe_can_pass(rig: Inner) -> None:
    (rig.pytester.path / "acme.toml").write_text(RARE)
    plan = " ".join(line.strip() for line in run(rig, "--collect-only").outlines)
    assert "never pass" in plan
    explore(rig, 'measurement = "2 h"')
    plan = " ".join(line.strip() for line in run(rig, "--collect-only").outlines)
    assert "never pass" not in plan


def test_a_spec_that_promises_nothing_itself_is_not_searched(rig: Inner) -> None:
    """The default promises are for the suites' workloads: a sound drive would break them somewhere."""
    (rig.pytester.path / "acme.toml").write_text('[product]\nname = "ACME 9"\nmodels = []\n')
    run(rig)
    case = rig.cases()[CASE]
    assert case.outcome == "skipped"
    assert "ACME 9 itself" in case.message
    assert not rig.records("array_created", "filled", "measuring")


def test_only_workloads_of_a_promise_are_measured(rig: Inner) -> None:
    (rig.pytester.path / "acme.toml").write_text(SPEC.replace('"*"', '"randwrite_4k_*"'))
    explore(rig, "workloads = 12")
    run(rig)
    probed = [each["workload"] for each in searched(rig)["probed"]]
    assert len(probed) == 12
    assert all(each.startswith("randwrite_4k_") for each in probed)


def test_a_machine_that_is_lost_ends_the_search_as_an_error(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", "5")
    run(rig)
    assert rig.cases()[CASE].outcome == "error"
    assert "is lost" in rig.cases()[CASE].message


def test_searches_are_planned_with_their_budget(rig: Inner) -> None:
    result = run(rig, "--collect-only")
    result.stdout.fnmatch_lines(["*drivex2 search*30 min *"])


def test_a_resumed_search_measures_nothing_twice(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MEDIA", str(rig.pytester.path / "media.json"))
    monkeypatch.setenv("SIMULATED_LOST_AT", "12")
    explore(rig, "workloads = 20")
    run(rig)
    first = [record["workload"] for record in rig.records("explored")]
    assert 5 < len(first) < 20
    monkeypatch.delenv("SIMULATED_LOST_AT")
    run(rig, "--ssd-resume=last")
    names = [record["workload"] for record in rig.records("explored")]
    assert len(names) == len(set(names)) == 20
    assert names[: len(first)] == first
    assert rig.cases()[CASE].outcome == "passed"


def test_an_array_is_searched_as_a_whole(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_DRIVES", "3")
    monkeypatch.setenv("SIMULATED_WEAK", "qd_per_drive>=4")
    rig.pytester.makepyfile(test_one=(SUITE % RANDOM).replace('array("drive")', 'array("raid5")'))
    run(rig)
    (case,) = rig.cases().values()
    assert case.outcome == "failure"
    search = searched(rig)
    text = (search["folder"] / "explore" / "raid5x3-randwrite_4k_qd4.fio").read_text()
    assert "filename=/dev/md100" in text.splitlines()
    assert "numjobs=3" in text.splitlines()


def test_without_hypothesis_it_is_refused_with_what_to_install(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_ssdqual.plugin.session import controller

    monkeypatch.setattr(controller, "find_spec", lambda name: None)
    result = run(rig)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "pip install 'pytest-ssdqual[search]'" in result.stdout.str() + result.stderr.str()


def test_a_search_starts_from_plain_reads(rig: Inner) -> None:
    rig.pytester.makepyfile(test_one=SUITE % '"randwrite", "4k"')
    result = run(rig)
    assert "not from randwrite_4k_qd1" in result.stdout.str()


def test_a_protocol_with_visits_confirms_in_visits(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_WEAK", "qd_per_drive>=16 region_percent<100")
    (rig.pytester.path / "brief.toml").write_text(
        """
        acceptance = false
        purge = "discard"
        fill = { passes = 1, bs = "1m" }
        precondition = { step = "5 s", limit = "60 s", of = "drives" }
        measure = { ramp = "1 s" }
        visits = { cell = "20 s", ramp = "1 s", cells = [2, 2], refresh = "0 s" }
        explore = { budget = "10 h", measurement = "10 s" }
        """
    )
    run(rig)
    case, found = rig.cases()[CASE], searched(rig)
    assert case.outcome == "failure", case.text
    assert "randread_4k_reg10_qd16: 75.2 IOPS" in case.message
    assert found["seconds"] == pytest.approx(11 * len(found["probed"])), "a probe is one window"
    (confirmed,) = rig.records("confirmed")
    assert [each["window_s"] for each in confirmed["runs"]] == [20.0] * 4
    assert confirmed["visited"]["cells"] == [2, 2]


def test_a_search_comes_last_and_has_drives_of_its_own(rig: Inner) -> None:
    rig.pytester.makepyfile(
        test_one=(SUITE % RANDOM)
        + """
    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict
"""
    )
    explore(rig, "workloads = 3")
    run(rig)
    kinds = [str(record["kind"]) for record in rig.records("purging", "conditioned", "measured", "explored")]
    assert kinds == ["purging", "conditioned", "measured", "purging", "conditioned", *["explored"] * 3]
    # A look of a search is no measurement that a test would share.
    assert len(rig.records("measured")) == 1


def test_searches_of_both_classes_are_conditioned_for_their_own(rig: Inner) -> None:
    rig.pytester.makepyfile(test_one=(SUITE % RANDOM).replace("1))]", '1), Workload("read", "128k", 1))]'))
    explore(rig, "workloads = 2")
    run(rig)
    assert [record["workload"] for record in rig.records("conditioned")] == ["randwrite_4k_qd8", "write_128k_qd8"]
    assert len(rig.records("purging")) == 2
    assert set(rig.outcomes().values()) == {"passed"}


def test_drives_that_do_not_settle_are_an_error(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_NOISE", "0.9")
    run(rig)
    case = rig.cases()[CASE]
    assert case.outcome == "error"
    assert "not settle" in case.message
    assert not rig.records("explored", "searched")


def test_more_suspects_than_may_be_measured_again_are_not_green(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three unlucky looks in a row: the simplest of them is cleared, and the others are left."""
    monkeypatch.setenv("SIMULATED_WEAK", "run>=5 run<=7 speed=0.5")
    explore(rig, "workloads = 40, confirmations = 1")
    run(rig)
    case = rig.cases()[CASE]
    assert case.outcome == "error"
    assert "2 may break" in case.message
    explore(rig, "workloads = 40, confirmations = 3")
    run(rig)
    assert rig.cases()[CASE].outcome == "passed"
    assert [each["cleared"] for each in searched(rig)["suspects"]] == [True] * 3
