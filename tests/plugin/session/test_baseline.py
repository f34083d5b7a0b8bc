"""``--ssd-baseline``: promises in per cent of what an earlier run measured."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.plugin.judging.sla import _counterpart
from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


@pytest.fixture(autouse=True)
def _measures_what_has_no_limit_yet(inner: Inner) -> None:
    """The run that becomes the baseline has no limits."""
    with (inner.pytester.path / "tox.ini").open("a") as ini:
        ini.write("\nssd_measure_unpromised = true\n")


#: One test of every kind of measurement that a promise can be about.
SUITE = """
    import pytest
    from pytest_ssdqual import Rounds, Tracked, Workload

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    LOOP = Rounds("pair", (READS, WRITES), (Tracked(WRITES, "steady_iops"),), fill_bs="128k")

    @pytest.mark.ssd_array("raid5", widths=(3,))
    @pytest.mark.ssd_workload(READS)
    @pytest.mark.ssd_promise("steady_iops", "mean_latency")
    @pytest.mark.parametrize("claim", ["steady_iops", "mean_latency"])
    def test_one(ssd_run, ssd_sla, claim):
        assert ssd_sla.judge(claim, ssd_run)

    @pytest.mark.ssd_promise("scaling_slope")
    @pytest.mark.ssd_array("raid5", widths=(3, 4))
    @pytest.mark.ssd_workload(READS)
    def test_scaling(ssd_sweep, ssd_sla):
        assert ssd_sla.judge(ssd_sweep)

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_array("drive")
    @pytest.mark.ssd_workload(READS)
    def test_drives(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_array("drive")
    @pytest.mark.ssd_rounds(LOOP)
    def test_loop(ssd_run, ssd_sla, ssd_workload):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("settled_iops")
    @pytest.mark.ssd_array("drive", widths=(1,))
    @pytest.mark.ssd_workload(WRITES)
    def test_settled(ssd_saturation, ssd_sla):
        assert ssd_sla.judge(ssd_saturation)

    @pytest.mark.ssd_promise("rebuild_rate")
    @pytest.mark.ssd_array("raid5", widths=(3,), failed=1)
    @pytest.mark.ssd_workload(READS)
    def test_rebuilt(ssd_rebuild, ssd_sla):
        assert ssd_sla.judge(ssd_rebuild)
"""
SPEC = (
    PRODUCT
    + promise(claim="steady_iops", min_percent_of_baseline=95)
    + promise(claim="mean_latency", max_percent_of_baseline=105)
    + promise(claim="scaling_slope", min_percent_of_baseline=80)
    + promise(claim="settled_iops", min_percent_of_baseline=80)
    + promise(claim="rebuild_rate", min_percent_of_baseline=50)
)
CLAIMS = {
    "test_one[raid5x3-randread_4k_qd8-steady_iops]",
    "test_one[raid5x3-randread_4k_qd8-mean_latency]",
    "test_scaling[raid5-randread_4k_qd8]",
    "test_drives[drivex4-randread_4k_qd8]",
    "test_loop[drivex4-pair-randread_4k_qd8]",
    "test_loop[drivex4-pair-randwrite_4k_qd8]",
    "test_settled[drivex1-randwrite_4k_qd8]",
    "test_rebuilt[raid5x3-1rebuilding-randread_4k_qd8]",
}


@pytest.fixture
def bench(inner: Inner) -> Inner:
    inner.pytester.makepyfile(SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    return inner


def run(bench: Inner, *more: str, devices: str = "/dev/nvme*") -> pytest.RunResult:
    given = (f"--ssd-devices={devices}", "--ssd-protocol=quick", "--ssd-spec=acme.toml", *more)
    return bench.run(*given)


def folders(bench: Inner) -> list[Path]:
    """The earliest first. By when they were written: two runs of one second have names in no order."""
    runs = (bench.pytester.path / "ssdqual-runs").glob("*/records.jsonl")
    return [each.parent for each in sorted(runs, key=lambda each: each.stat().st_mtime_ns)]


def lines(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    every = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    return [line for line in every if line["kind"] in kinds]


def test_without_a_baseline_it_is_measured_and_skipped(bench: Inner) -> None:
    run(bench, "-k", "test_one")
    for case in bench.cases().values():
        assert case.outcome == "skipped"
        assert "measured " in case.message
        assert "no baseline: " in case.message
    (folder,) = folders(bench)
    assert {line["claim"] for line in lines(folder, "observation")} == {"steady_iops", "mean_latency"}
    assert json.loads((folder / "manifest.json").read_text())["baseline"] is None


def test_every_kind_of_measurement_is_held_against_the_baseline(bench: Inner) -> None:
    run(bench)
    (before,) = folders(bench)
    digest = hashlib.sha256((before / "records.jsonl").read_bytes()).hexdigest()
    result = run(bench, "--ssd-baseline=last")
    result.stdout.fnmatch_lines([f"*{before.name}, * SHA-256 {digest[:12]}*"])
    assert set(bench.outcomes()) == CLAIMS
    assert set(bench.outcomes().values()) == {"passed"}, {k: v.message for k, v in bench.cases().items()}
    (after,) = set(folders(bench)) - {before}
    assert json.loads((after / "manifest.json").read_text())["baseline"] == {"run": before.name, "sha256": digest}
    verdicts = lines(after, "verdict")
    assert len(verdicts) == len(CLAIMS)
    for verdict in verdicts:
        earlier = verdict["baseline"]
        assert (earlier["run"], earlier["sha256"]) == (before.name, digest)
        assert verdict["unit"] == "%"
        quotient = 100 * earlier["now"]["value"] / earlier["then"]["value"]
        assert verdict["value"] == pytest.approx(quotient)
        assert f"in run {before.name}" in verdict["sentence"]
    iops = next(each for each in verdicts if each["test"].endswith("steady_iops]"))
    assert iops["sentence"].count("95 % CI") == 3, iops["sentence"]
    # The simulated rig's noise goes on from run to run of fio, so the same is not measured twice.
    assert iops["low"] < 100 < iops["high"]


def test_slower_drives_break_the_promise_each_against_itself(bench: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0004=0.5")
    run(bench, "-k", "test_drives or test_one")
    (before,) = folders(bench)
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0004=0.5,SSDQ0003=0.8")
    run(bench, "-k", "test_drives or test_one", f"--ssd-baseline={before.name[:20]}")
    outcomes = bench.outcomes()
    assert outcomes["test_drives[drivex4-randread_4k_qd8]"] == "failure"
    assert outcomes["test_one[raid5x3-randread_4k_qd8-mean_latency]"] == "failure"
    message = bench.cases()["test_drives[drivex4-randread_4k_qd8]"].message
    assert "drive SSDQ0003" in message
    assert "FAIL" in message
    (after,) = set(folders(bench)) - {before}
    of_drives = next(each for each in lines(after, "verdict") if each["geometries"] == ["drivex4"])
    assert [each["outcome"] for each in of_drives["members"]] == ["pass", "pass", "fail", "pass"]


def test_what_the_baseline_has_not_measured_is_skipped(bench: Inner) -> None:
    run(bench, "-k", "test_one")
    run(bench, "-k", "test_drives or test_loop", "--ssd-baseline=last")
    messages = [case.message for case in bench.cases().values()]
    assert set(bench.outcomes().values()) == {"skipped"}
    assert any("of drivex4 randread_4k_qd8" in each for each in messages), messages


PROFILE = """
    import pytest
    from pytest_ssdqual import Workload

    MINE = Workload("randrw", "4k", 8, read_percent={percent}, name="mine")

    @pytest.mark.ssd_array("raid5", widths=(3,), failed={failed})
    @pytest.mark.ssd_workload(MINE)
    @pytest.mark.ssd_promise("{claim}")
    def test_mine({fixture}, ssd_sla):
        assert ssd_sla.judge({fixture})
"""


@pytest.mark.parametrize(
    ("failed", "fixture", "claim"), [(0, "ssd_run", "steady_iops"), (1, "ssd_rebuild", "rebuild_rate")]
)
def test_another_workload_of_the_same_name_is_no_baseline(inner: Inner, failed: int, fixture: str, claim: str) -> None:
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    for percent, more in ((70, ()), (60, ("--ssd-baseline=last",))):
        inner.pytester.makepyfile(PROFILE.format(percent=percent, failed=failed, fixture=fixture, claim=claim))
        run(inner, *more)
    (case,) = inner.cases().values()
    assert case.outcome == "skipped"
    assert "is called mine_qd8" in case.message


def test_damaged_output_is_no_baseline(bench: Inner) -> None:
    run(bench, "-k", "test_one or test_drives")
    (before,) = folders(bench)
    (raw,) = before.glob("fio/raid5x3-randread_4k_qd8-run.json.gz")
    raw.write_bytes(b"something else")
    result = run(bench, "-k", "test_one or test_drives", "--ssd-baseline=last")
    result.stdout.fnmatch_lines(["*raid5x3 randread_4k_qd8 *SHA-256*"])
    assert bench.outcomes() == {
        "test_one[raid5x3-randread_4k_qd8-steady_iops]": "skipped",
        "test_one[raid5x3-randread_4k_qd8-mean_latency]": "skipped",
        "test_drives[drivex4-randread_4k_qd8]": "passed",
    }


def test_another_machine_or_firmware_is_told(bench: Inner) -> None:
    run(bench, "-k", "test_one")
    (before,) = folders(bench)
    manifest = json.loads((before / "manifest.json").read_text())
    manifest["bays"][0]["facts"]["kernel"] = "Linux 5.4"
    for drive in manifest["bays"][0]["drives"]:
        drive["firmware"] = "OLD 1"
    manifest["bays"][0]["drives"][0]["serial"] = "GONE"
    (before / "manifest.json").write_text(json.dumps(manifest))
    result = run(bench, "-k", "test_one", "--ssd-baseline=last")
    result.stdout.fnmatch_lines(
        [
            "*baseline:*6.1*5.4*",
            "*baseline: 3 *",
            "*baseline:*7.2.22*OLD 1*",
        ]
    )


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (("protocol", "text"), "line 1 of the protocol is "),
        (("bays", 0, "drives", 0, "model"), "these drives are QEMU NVMe Ctrl and its were OTHER, QEMU NVMe Ctrl"),
    ],
    ids=["protocol", "model"],
)
def test_another_product_or_protocol_is_refused(bench: Inner, spoil: tuple[str | int, ...], sentence: str) -> None:
    run(bench, "-k", "test_one")
    (before,) = folders(bench)
    manifest = json.loads((before / "manifest.json").read_text())
    found = manifest
    for key in spoil[:-1]:
        found = found[key]
    found[spoil[-1]] = "OTHER"
    (before / "manifest.json").write_text(json.dumps(manifest))
    (bench.pytester.path / "junit.xml").unlink()
    said = bench.refused("--ssd-devices=/dev/nvme*", "--ssd-protocol=quick", f"--ssd-baseline={before.name}")
    assert said.startswith(f"--ssd-baseline: {before.name} cannot"), said
    assert sentence in said


def test_a_baseline_that_is_none_is_refused(bench: Inner) -> None:
    assert "neither a run" in bench.refused("--ssd-devices=/dev/nvme*", "--ssd-baseline=nonsense")
    assert "no run in" in bench.refused("--ssd-devices=/dev/nvme*", "--ssd-baseline=last")
    assert not (bench.pytester.path / "ssdqual-runs").exists()


def test_workers_of_xdist_have_the_same_baseline(bench: Inner) -> None:
    run(bench, "-k", "test_one")
    run(bench, "-k", "test_one", "--ssd-baseline=last", "-n1")
    assert set(bench.outcomes().values()) == {"passed"}


def test_a_resumed_run_keeps_its_baseline(bench: Inner) -> None:
    run(bench, "-k", "test_one")
    (before,) = folders(bench)
    shutil.copytree(before, bench.pytester.path / "kept")
    run(bench, "-k", "test_one", "--ssd-baseline=kept")
    (after,) = set(folders(bench)) - {before}
    (bench.pytester.path / "junit.xml").unlink()
    resumed = ("--ssd-devices=/dev/nvme*", "--ssd-protocol=quick", "--ssd-spec=acme.toml", f"--ssd-resume={after.name}")
    assert "began with kept" in bench.refused(*resumed)
    run(bench, "-k", "test_one", "--ssd-baseline=kept", f"--ssd-resume={after.name}")
    assert set(bench.outcomes().values()) == {"passed"}


def test_other_drives_are_compared_with_the_baselines_median() -> None:
    def of(drive: str) -> Subject:
        return Subject((Geometry.parse("drivex3"),), (Workload("randread", "4k", 8),), drive)

    then = [(of(name), Estimate(value, value, value, 5, Unit.IOPS)) for name, value in (("a", 9), ("b", 1), ("c", 5))]
    for direction in Direction:
        assert _counterpart(of("b"), then, direction) == (then[1][1], "")
        assert _counterpart(of("new"), then, direction) == (then[2][1], "c")
    # Of the two in the middle the better one.
    assert _counterpart(of("new"), then[:2], Direction.AT_LEAST)[1] == "a"
    assert _counterpart(of("new"), then[:2], Direction.AT_MOST)[1] == "b"
