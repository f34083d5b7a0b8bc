"""Verdicts by ``acceptance`` with the shipped sheets of real models, on simulated drives of that speed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.qual.spec import spec

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

S3500 = "INTEL SSDSC2BB800G4", "intel-dc-s3500-800gb"
PM9A3 = "SAMSUNG MZQL27T6HBLA-00A07", "samsung-pm9a3-7t68"
#: Drives of any size: those of the lab have the lab's.
ALL = "/dev/nvme*"
#: 1,005,000 reads of 4 KiB a second, 38,000 writes of 16 KiB.
QLC = "SBFPF2BV614T001", "solidigm-d5-p5336-61t44"
DRIVES = tuple(f"SSDQ{number:04}" for number in range(1, 5))
#: One array of the suite.
READS, WRITES = "steady_state and raid5x4 and randread_4k_qd8", "steady_state and raid5x4 and randwrite_4k_qd8"


@pytest.fixture
def bought(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    monkeypatch.setenv("SIMULATED_SHEET", PM9A3[1])
    return inner


def run(
    inner: Inner, model: tuple[str, str], tests: str, *options: str, suite: str = "raid5", devices: str = "lab:4"
) -> pytest.RunResult:
    name, sheet = model
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATED_MODEL", name)
        given = (
            f"--ssd-devices={devices}",
            f"--ssd-spec={sheet}",
            "--ssd-protocol=acceptance",
            "-o",
            "ssd_members=true",
        )
        return inner.run(*given, *options, "--import-mode=importlib", inner.suite(suite), "-k", tests)


def large_qlc(inner: Inner, monkeypatch: pytest.MonkeyPatch, model: tuple[str, str], share: float = 1.0) -> None:
    """Drives of a sheet's capacity, which do this share of the random writes that it publishes."""
    name, key = model
    sheet = spec.load(key)
    content = files("pytest_ssdqual").joinpath("specs", f"{key}.toml").read_text()
    (writes,) = (int(each.iops or 0) for each in sheet.figures if each.rw == "randwrite")
    real = inner.pytester.path / "real.toml"
    real.write_text(content.replace(f"iops = {writes:_}", f"iops = {share * writes:.0f}"))
    monkeypatch.setenv("SIMULATED_SHEET", str(real))
    monkeypatch.setenv("SIMULATED_MODEL", name)
    monkeypatch.setenv("SIMULATED_SIZES", ",".join(f"{drive}={sheet.product.capacity_bytes}" for drive in DRIVES))


def slow(monkeypatch: pytest.MonkeyPatch, share: float, *drives: str) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", ",".join(f"{drive}={share}" for drive in drives))


#: Random 4 KiB writes of the simulated drives are 300 IOPS times this. The Intel S3500 of 800 GB publishes 11,500 at
#: this depth, of which its promise is 90 %.
@pytest.mark.parametrize(("outcome", "times"), [("pass", 40.0), ("fail", 30.0)])
def test_steady_iops_are_judged_by_a_sheet_that_has_the_depth(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, outcome: str, times: float
) -> None:
    slow(monkeypatch, times, *DRIVES)
    run(inner, S3500, "steady_state and randwrite and qd8", suite="raid0")
    assert [record["outcome"] for record in inner.records("verdict")] == [outcome] * 3
    assert {record["visits"] for record in inner.records("looked")} >= {2}


@pytest.mark.parametrize("tests", [READS, WRITES])
def test_drives_that_meet_their_maxima_make_an_array_that_passes(bought: Inner, tests: str) -> None:
    assert run(bought, PM9A3, tests).ret == pytest.ExitCode.OK
    (verdict,) = bought.records("verdict")
    assert verdict["outcome"] == "pass"
    assert "samsung-pm9a3-7t68" in str(verdict["sentence"])


def test_arrays_of_drives_with_slow_writes_grow(bought: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of I/Os of members 37.5 % are writes on RAID 5 of three, 31.6 % on wider ones: both decide what the drives do."""
    monkeypatch.setenv("SIMULATED_SHEET", QLC[1])
    assert (
        run(bought, QLC, "randrw70 and (grow or short)", suite="acceptance", devices="lab:8").ret == pytest.ExitCode.OK
    )
    slope, deviation = (float(str(record["value"])) for record in bought.records("verdict"))
    assert 0.95 < slope < 1.05
    assert deviation < 5


def test_an_array_of_drives_at_half_their_sheet_fails(bought: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 0.5, *DRIVES)
    assert run(bought, PM9A3, f"(published and randread) or ({READS})").ret == pytest.ExitCode.TESTS_FAILED
    verdicts = bought.records("verdict")
    assert {record["outcome"] for record in verdicts} == {"fail"}
    (of_array,) = (record for record in verdicts if record["geometries"] == ["raid5x4"])
    assert -60 < float(str(of_array["margin_percent"])) < -35


def test_the_one_drive_that_misses_its_sheet_is_the_cause(bought: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 0.75, DRIVES[1])
    run(bought, PM9A3, READS)
    (verdict,) = bought.records("verdict")
    assert verdict["outcome"] == "fail"
    assert verdict["cause"]["drives"] == [DRIVES[1]]


def test_a_path_that_limits_maxima_fails_neither_drive_nor_array(
    bought: Inner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_PATH", ",".join(f"{drive}=0.6" for drive in DRIVES))
    run(bought, PM9A3, f"(published and randread) or ({READS})")
    outcomes = {str(record["workloads"]): record["outcome"] for record in bought.records("verdict")}
    assert set(outcomes.values()) == {"bounded", "pass"}
    bounded = next(record for record in bought.records("verdict") if record["outcome"] == "bounded")
    assert bounded["cause"]["culprit"] == "path"


@pytest.mark.parametrize(("path_bytes_per_s", "culprit"), [(1.4e9, "path"), (2.2e9, "product")])
def test_writes_that_a_path_limits_accuse_no_drive(
    bought: Inner, monkeypatch: pytest.MonkeyPatch, path_bytes_per_s: float, culprit: str
) -> None:
    """The sheet promises 180,000 writes of 4 KiB a second for each of four drives, 2.9 GB/s for all.

    Drives that do half of it are not excused by a path that limits their reads.
    """
    monkeypatch.setenv("SIMULATED_PATH_BYTES", str(path_bytes_per_s))
    slow(monkeypatch, 1.0 if culprit == "path" else 0.5, *DRIVES)
    run(bought, PM9A3, f"published or {WRITES}")
    writes = next(record for record in bought.records("verdict") if "randwrite_4k_t8xqd64" in record["workloads"])
    assert writes["cause"]["culprit"] == culprit
    assert (writes["outcome"] == "fail") == (culprit == "product")


def test_an_array_is_no_pass_without_the_maximum_of_its_drives(bought: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 0.04, *DRIVES)
    monkeypatch.setenv("SIMULATED_MISTAKES", "run:drivex4:randread_4k_t8xqd64")
    assert run(bought, PM9A3, READS).ret == pytest.ExitCode.TESTS_FAILED
    (verdict,) = bought.records("verdict")
    assert verdict["outcome"] == "inconclusive"
    assert verdict["cause"] is None


def test_an_array_that_md_limits_is_bounded_and_alone_no_verdict(
    bought: Inner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_MD", "200000")
    assert run(bought, PM9A3, READS).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    (verdict,) = bought.records("verdict")
    assert verdict["outcome"] == "bounded"
    assert verdict["cause"]["culprit"] == "md"
    assert bought.outcomes().popitem()[1] == "skipped"


def test_arrays_that_md_limits_beside_one_that_passes_are_fit(bought: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    # Between what RAID 5 of three and of four drives is held to.
    monkeypatch.setenv("SIMULATED_MD", "300000")
    assert run(bought, PM9A3, "steady_state and randread_4k_qd8").ret == pytest.ExitCode.OK
    assert sorted(str(record["outcome"]) for record in bought.records("verdict")) == ["bounded", "pass"]


def test_growth_that_md_limits_is_bounded(bought: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The widest array does 61 % of what the others do per drive; the slope of the line is 0.49 then."""
    monkeypatch.setenv("SIMULATED_MD", "463000")
    run(bought, PM9A3, "randrw70 and (grow or short)", suite="acceptance", devices="lab:8")
    verdicts = bought.records("verdict")
    assert [(record["outcome"], record["cause"]["culprit"]) for record in verdicts] == [("bounded", "md")] * 2


def test_what_md_limits_is_a_failure_of_the_system(
    bought: Inner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SIMULATED_MD", "200000")
    content = files("pytest_ssdqual").joinpath("specs", f"{PM9A3[1]}.toml").read_text()
    sheet = tmp_path / "system.toml"
    sheet.write_text(content.replace("[product]", '[product]\nsubject = "system"', 1))
    assert run(bought, (PM9A3[0], str(sheet)), READS).ret == pytest.ExitCode.TESTS_FAILED
    assert [record["outcome"] for record in bought.records("verdict")] == ["fail"]


P5336 = "SOLIDIGM SBFPF2BV614T001N", "solidigm-d5-p5336-61t44"
BM1743 = "SAMSUNG MZWMO61THCLF-00AW7", "samsung-bm1743-61t44"
#: One test of bare drives.
OF_DRIVES = "steady_iops and randwrite_4k_qd8"


@pytest.mark.parametrize(
    ("model", "writes", "share"),
    [(P5336, "randwrite_16k", 1.0), (P5336, "randwrite_16k", 0.5), (BM1743, "randwrite_4k", 1.0)],
)
def test_large_qlc_drives_that_write_as_published_are_fit(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, model: tuple[str, str], writes: str, share: float
) -> None:
    large_qlc(inner, monkeypatch, model, share)
    run(inner, model, "published or (steady_iops and randwrite)", suite="acceptance", devices=ALL)
    assert inner.suite_properties()["ssd.verdict"] == ("fit" if share == 1 else "not fit")
    maximum = next(each for each in inner.records("verdict") if f"{writes}_t8xqd64" in str(each["workloads"]))
    assert maximum["outcome"] == ("pass" if share == 1 else "fail")


def test_a_qlc_drive_is_conditioned_with_its_unit(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """It prefers smaller writes than its sheet says, and is conditioned with those."""
    large_qlc(inner, monkeypatch, P5336)
    monkeypatch.setenv("SIMULATED_PREFERRED", "8192")
    run(inner, P5336, OF_DRIVES, suite="drive", devices=ALL)
    assert {record["workload"] for record in inner.records("conditioned")} == {"randwrite_8k_qd8"}


def test_a_run_whose_conditioning_exceeds_its_limit_is_refused(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    large_qlc(inner, monkeypatch, P5336)
    content = files("pytest_ssdqual").joinpath("protocols", "acceptance.toml").read_text()
    (inner.pytester.path / "short.toml").write_text(content.replace('limit = "48 h"', 'limit = "1 h"'))
    given = f"--ssd-devices={ALL}", f"--ssd-spec={P5336[1]}", "--ssd-protocol=short.toml", "-k", OF_DRIVES
    tests = "--import-mode=importlib", inner.suite("drive")
    result = inner.run(*given, *tests)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "precondition.limit" in "".join(result.errlines)
    assert inner.records("purging", "conditioned", "verdict") == []
    assert inner.run(*given, "--collect-only", *tests).ret == pytest.ExitCode.OK


def test_without_measured_members_nothing_is_promised(bought: Inner) -> None:
    result = run(bought, PM9A3, READS, "-o", "ssd_members=false")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert bought.records("measured", "verdict", "array_created") == []
    (case,) = bought.cases().values()
    assert "ssd_members" in case.message
