"""Causes of broken promises, of simulated drives whose fault is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders import strategies
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

from pytest_ssdqual.plugin.judging import attributor
from pytest_ssdqual.qual.measured.run import Measured, Visited

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

LOADS = '"randread", "4k", 8', '"randwrite", "4k", 8'
SUITE = suite('"raid5", widths=[4]', iops=("steady_iops", *LOADS), efficiency=("array_efficiency", *LOADS))
DEVICES, QUICK = "--ssd-devices=root@dut1:/dev/nvme*", "--ssd-protocol=quick"


@pytest.fixture
def four(inner: Inner) -> Inner:
    """Four drives that do 1,200 reads and 300 writes a second as RAID 5, of which 1,150 and 285 are promised."""
    inner.pytester.makepyfile(test_acme=SUITE)
    (inner.pytester.path / "acme.toml").write_text(
        PRODUCT
        + promise(claim="steady_iops", workload="randread_*", at_least="1150 IOPS")
        + promise(claim="steady_iops", at_least="285 IOPS")
        + promise(claim="array_efficiency", at_least="90 %")
    )
    return inner


def judged(inner: Inner, *args: str) -> dict[str, str]:
    inner.run(DEVICES, QUICK, "--ssd-spec=acme.toml", "-o", "ssd_members=true", *args)
    return inner.outcomes()


def sentences(inner: Inner) -> list[str]:
    return [str(record["sentence"]) for record in inner.records("verdict")]


def test_flawless_drives_pass_and_the_array_is_as_predicted(four: Inner) -> None:
    """Members are measured before arrays, and once."""
    assert set(judged(four).values()) == {"passed"}
    (reads, writes) = (each for each in four.records("verdict") if each["claim"] == "array_efficiency")
    assert 93 < reads["value"] < 107
    assert 93 < writes["value"] < 107
    kinds = [str(record["kind"]) for record in four.records("member", "alone", "measured")]
    assert kinds == ["member"] * (len(kinds) - 3) + ["alone", "measured", "measured"]
    assert {record["geometry"] for record in four.records("member")} == {"drivex4"}
    judged(four, "--ssd-resume=last")
    assert len(four.records("member")) == len(kinds) - 3
    assert len(four.records("alone")) == 1


def test_a_slow_drive_is_named_and_the_array_is_not_blamed(four: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ10002=0.8")
    outcomes = judged(four)
    assert {name.partition("[")[0].rpartition(".")[2]: found for name, found in outcomes.items()} == {
        "test_iops": "failure",
        "test_efficiency": "passed",
    }
    assert all("cause: drive SSDQ10002" in each for each in sentences(four) if "FAIL" in each)


def test_drives_below_an_md_that_is_the_bound_are_not_failed(four: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same is a failure of a system."""
    monkeypatch.setenv("SIMULATED_MD", "150")
    assert set(judged(four, "-k", "iops").values()) == {"skipped"}
    assert all("cause: md" in each for each in sentences(four))
    four.folder().rename(four.pytester.path / "before")
    spec = four.pytester.path / "acme.toml"
    spec.write_text(spec.read_text().replace("[product]", '[product]\nsubject = "system"'))
    assert set(judged(four).values()) == {"failure"}
    assert all("cause: md" in each for each in sentences(four))


LATENCIES = suite(
    '"raid5", widths=[4]',
    p99=("p99_latency", '"randread", "4k", 8'),
    sequential=("steady_iops", '"read", "128k", 8'),
)


@pytest.fixture
def latencies(inner: Inner) -> Inner:
    """Four drives that as RAID 5 have a p99 latency of 53 ms and do 1,200 sequential reads a second."""
    inner.pytester.makepyfile(test_acme=LATENCIES)
    (inner.pytester.path / "acme.toml").write_text(
        PRODUCT + promise(claim="p99_latency", at_most="60 ms") + promise(claim="steady_iops", at_least="1150 IOPS")
    )
    return inner


def test_a_drive_whose_ios_wait_is_named_also_for_a_percentile(
    latencies: Inner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ10002=0.6")
    assert set(judged(latencies).values()) == {"failure"}
    assert all("cause: drive SSDQ10002" in each for each in sentences(latencies) if "FAIL" in each)


def test_a_percentile_that_md_breaks_is_no_failure_of_drives(latencies: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MD", "600")
    found = {name.partition("[")[0].rpartition(".")[2]: each for name, each in judged(latencies).items()}
    assert found["test_p99"] == "error"
    (p99,) = (each for each in sentences(latencies) if "p99" in each)
    assert "cause: md" in p99


SWEEP = """
    import pytest
    from pytest_ssdqual import Workload

    READS = Workload("randread", "4k", 8)
    pytestmark = [pytest.mark.ssd_array("raid0", widths=[2, 3, 4]), pytest.mark.ssd_workload(READS)]

    @pytest.mark.ssd_promise("scaling_deviation")
    def test_scaling(ssd_sweep, ssd_sla):
        verdict = ssd_sla.judge(ssd_sweep)
        assert verdict
"""


SETTINGS = """
    import pytest
    from pytest_ssdqual import Workload

    pytestmark = [pytest.mark.ssd_workload(Workload("randwrite", "4k", 8))]

    @pytest.mark.ssd_array("raid5", most=1, settings=("", "s256", "t8"))
    @pytest.mark.ssd_promise("settings_gain")
    def test_settings(ssd_sweep, ssd_sla):
        verdict = ssd_sla.judge(ssd_sweep)
        assert verdict
"""


@pytest.mark.parametrize(("share", "outcome"), [(1.5, "bounded"), (1.0, "pass")])
def test_better_settings_of_md_are_no_failure_of_drives(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, share: float, outcome: str
) -> None:
    inner.pytester.makepyfile(test_acme=SETTINGS)
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="settings_gain", at_most="1.2"))
    monkeypatch.setenv("SIMULATED_SETTINGS", f"s256=0.5,t8={share}")
    judged(inner)
    (verdict,) = inner.records("verdict")
    assert verdict["outcome"] == outcome
    assert [each["name"] for each in verdict["points"]] == ["raid5x4", "raid5x4-t8", "raid5x4-s256"]
    arrays = {each["geometry"]: each["settings"] for each in inner.records("array_created")}
    assert arrays["raid5x4-s256"]["stripe_cache_pages"] == 256
    assert arrays["raid5x4-t8"]["group_threads"] == 8
    if outcome == "bounded":
        assert verdict["cause"]["culprit"] == "md"
        assert "t8" in verdict["cause"]["evidence"]


def test_a_sweep_that_bends_at_a_slow_drive_names_it(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner.pytester.makepyfile(test_acme=SWEEP)
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="scaling_deviation", at_most="10 %"))
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ10004=0.7")
    assert judged(inner) == {"test_scaling[raid0-randread_4k_qd8]": "failure"}
    (sentence,) = sentences(inner)
    assert "cause: drive SSDQ10004" in sentence


def test_without_members_efficiency_is_skipped(four: Inner) -> None:
    four.run(DEVICES, QUICK, "--ssd-spec=acme.toml")
    outcomes = {name.partition("[")[0]: found for name, found in four.outcomes().items()}
    assert outcomes == {"test_iops": "passed", "test_efficiency": "skipped"}
    assert four.records("member", "alone") == []


def test_a_pair_of_mirrors_is_compared_with_its_bare_drive(inner: Inner) -> None:
    inner.pytester.makepyfile(
        test_acme=suite(
            '"raid10", widths=[2]', pair=("times_one_drive", '"randwrite", "4k", 8', '"randrw", "4k", 8, 70')
        )
    )
    promised = promise(claim="times_one_drive", at_least=0.9)
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promised)
    assert sorted(judged(inner).values()) == ["passed", "skipped"]
    (verdict,) = inner.records("verdict")
    assert verdict["value"] == pytest.approx(1, abs=0.1)


def test_an_odd_last_cell_is_not_asked_for_the_cause() -> None:
    cells = Measured(
        tuple(strategies.run([rate] * 5) for rate in (1000, 1010, 990, 1005, 10)),
        Visited((2, 3), 22, 0.95, 0.01, 5.0, 0.01, 5.0),
    )
    assert attributor._typical(cells).iops == 1000
    assert attributor._typical(Measured(cells.runs)).iops == 10
