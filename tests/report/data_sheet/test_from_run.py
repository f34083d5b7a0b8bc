"""Specs written from runs of reference drives: what is read back is what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders.kept_runs import Kept, KeptMeasurement

from pytest_ssdqual.qual.methods import toms_s3700
from pytest_ssdqual.qual.raid.geometry import ONE_DRIVE, Geometry
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import LEAST_MEANT, Claim, Published
from pytest_ssdqual.qual.spec.datasheet import QUANTITIES
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.compare.compared_run import ComparedRun
from pytest_ssdqual.report.data_sheet import from_run
from pytest_ssdqual.report.data_sheet.from_run import NoSheet

READS = Workload("randread", "4k", 32)
ONE = KeptMeasurement(74_812.6, geometry="drivex1", workload=READS)


def written(tmp_path: Path, kept: Kept) -> Spec:
    run = ComparedRun.read(kept.keep(tmp_path / "20260301T120000Z-aaaa"))
    from_run.write(run, tmp_path / "new.toml")
    return spec.load(tmp_path / "new.toml")


def published(sheet: Spec, claim: Claim, array: Geometry = ONE_DRIVE, workload: Workload = READS) -> Published:
    found = sheet.published(claim, array, workload)
    assert found
    return found


def test_a_measured_figure_is_published_with_its_run(tmp_path: Path) -> None:
    sheet = written(tmp_path, Kept([ONE]))
    found = published(sheet, Claim.STEADY_IOPS)
    assert found.value == 74_810
    assert "20260301T120000Z-aaaa" in found.source
    assert sheet.fits("ACME 9")
    assert not sheet.fits("ACME 90")
    assert sheet.product.capacity_bytes == 480_000_000_000


def test_a_maximum_below_a_percentile_is_not_published(tmp_path: Path) -> None:
    """Half a per cent of the I/Os took 50 ms, in three bursts of an hour: the level of ten an hour is 1 ms."""
    kinds = {Claim.MEAN_LATENCY: 5e5, Claim.P99_LATENCY: 1e5, Claim.P99_9_LATENCY: 5e7, Claim.MAX_LATENCY: 1e6}
    sheet = written(tmp_path, Kept([replace(ONE, value=value, claim=claim) for claim, value in kinds.items()]))
    stated = {claim for claim in kinds if sheet.published(claim, ONE_DRIVE, READS)}
    assert stated == {Claim.MEAN_LATENCY, Claim.P99_9_LATENCY}


def test_a_percentage_of_another_figure_is_not_published(tmp_path: Path) -> None:
    relative = KeptMeasurement(90, Claim.P99_LATENCY, relative_to="randwrite_4k_qd8", workload=READS)
    sheet = written(tmp_path, Kept([ONE, relative]))
    assert published(sheet, Claim.STEADY_IOPS).value == 74_810
    assert sheet.published(Claim.P99_LATENCY, ONE_DRIVE, READS) is None


def test_of_several_drives_it_is_the_typical_one(tmp_path: Path) -> None:
    drives = {"S1": 100.0, "S2": 200.0, "S3": 400.0}
    found = published(
        written(tmp_path, Kept([KeptMeasurement(100, geometry="drivex3", workload=READS, drives=drives)])),
        Claim.STEADY_IOPS,
    )
    assert found.value == 200
    assert "3 drives" in found.source


def test_a_figure_of_an_array_is_of_that_array(tmp_path: Path) -> None:
    sheet = written(tmp_path, Kept([KeptMeasurement(5000, geometry="raid5x4", workload=READS)]))
    assert published(sheet, Claim.STEADY_IOPS, Geometry.parse("raid5x4")).value == 5000
    assert sheet.published(Claim.STEADY_IOPS, ONE_DRIVE, READS) is None


@pytest.mark.parametrize("profile", toms_s3700.ON_SECTORS, ids=str)
def test_a_figure_of_a_profile_is_published_by_its_name(tmp_path: Path, profile: Workload) -> None:
    sheet = written(tmp_path, Kept([KeptMeasurement(5000, geometry="raid0x4", workload=profile)]))
    assert published(sheet, Claim.STEADY_IOPS, Geometry.parse("raid0x4"), profile).value == 5000


def test_figures_not_for_acceptance_are_approximate(tmp_path: Path) -> None:
    assert published(written(tmp_path, Kept([ONE])), Claim.STEADY_IOPS).approximate


def test_a_measured_percentile_is_promised_with_a_margin(tmp_path: Path) -> None:
    """Half of equal drives exceed a measured percentile, which a data sheet would guarantee."""
    sheet = written(tmp_path, Kept([replace(ONE, value=2e6, claim=Claim.P99_LATENCY), ONE]))
    limit = sheet.limit(Claim.P99_LATENCY, ONE_DRIVE, READS)
    assert limit
    assert limit.bound == pytest.approx(2.22e6)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(claim=st.sampled_from(sorted(QUANTITIES)), value=st.floats(1e-3, 1e12))
def test_every_quantity_is_read_back_to_four_digits(
    tmp_path_factory: pytest.TempPathFactory, claim: Claim, value: float
) -> None:
    least = max(LEAST_MEANT.get(claim.unit, 0.0), {"ns": 1.0, "B/s": 1e5}.get(claim.unit.value, 0.0))
    value = max(value, least)
    kept = Kept([replace(ONE, value=value, claim=claim)])
    found = published(written(tmp_path_factory.mktemp("run"), kept), claim)
    assert found.value == pytest.approx(value, rel=6e-4, abs=0.5 if claim.unit.value in ("ns", "B/s") else 1e-9)


@pytest.mark.parametrize(
    ("kept", "sentence"),
    [
        (Kept([]), "has no figure of a drive or of a whole array"),
        (Kept([replace(ONE, claim=Claim.MEMBER_SPREAD)]), "has no figure of a drive or of a whole array"),
        (Kept([replace(ONE, geometry="raid5x4-1failed")]), "has no figure of a drive or of a whole array"),
        (Kept([ONE], serials=()), "a spec is about one model of one size, and the drives of .* are none"),
        (Kept([ONE], model=""), "have no model"),
    ],
)
def test_a_run_without_a_sheet_says_why_and_writes_nothing(tmp_path: Path, kept: Kept, sentence: str) -> None:
    with pytest.raises(NoSheet, match=sentence):
        written(tmp_path, kept)
    assert not (tmp_path / "new.toml").exists()


def test_a_hostile_model_is_only_text(tmp_path: Path) -> None:
    model = 'A"]\n[[promise]]\nclaim="x*[?'
    sheet = written(tmp_path, Kept([ONE], model=model))
    assert len(sheet.product.models) == 1
    assert not sheet.promises


def test_a_file_that_exists_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text("mine")
    with pytest.raises(FileExistsError):
        written(tmp_path, Kept([ONE]))
    assert (tmp_path / "new.toml").read_text() == "mine"
