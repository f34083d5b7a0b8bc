"""``suites/latency_at_rate`` with simulated drives of the shipped sheets, and what a rate cannot be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.qual.spec import spec

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

PM9A3 = "samsung-pm9a3-7t68"
#: The slowest, the most usual and the fastest drives: SATA, PCIe 4 and 5.
MODELS = {
    "intel-dc-s3500-800gb": "INTEL SSDSC2BB800G4",
    PM9A3: "SAMSUNG MZQL27T6HBLA-00A07",
    "micron-9550-max-6t4": "MTFDLBQ6T4THB",
}


def run(inner: Inner, sheet: str, *more: str, tests: str = "rate") -> pytest.RunResult:
    """Drives of this machine have a class, emulated ones have none."""
    suite = inner.suite("latency_at_rate")
    options = (
        "--ssd-devices=/dev/nvme*",
        f"--ssd-spec={sheet}",
        "--ssd-protocol=acceptance",
        "--import-mode=importlib",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATED_DRIVES", "2")
        patch.setenv("SIMULATED_MODEL", MODELS.get(sheet, "unknown"))
        if sheet in MODELS:
            size = spec.load(sheet).product.capacity_bytes
            patch.setenv("SIMULATED_SHEET", sheet)
            patch.setenv("SIMULATED_SIZES", f"SSDQ0001={size},SSDQ0002={size}")
        return inner.run(*options, *more, suite, "-k", tests)


def outcomes(inner: Inner) -> dict[tuple[str, str], set[str]]:
    """By claim, and by the rate in the workload's id."""
    outcomes: dict[tuple[str, str], set[str]] = {}
    for record in inner.records("verdict"):
        outcomes.setdefault((record["claim"], record["workloads"][0]), set()).add(record["outcome"])
    return outcomes


@pytest.mark.parametrize("sheet", MODELS)
def test_sound_drives_of_shipped_sheets_pass(inner: Inner, sheet: str) -> None:
    result = run(inner, sheet)
    result.assert_outcomes(passed=18)
    assert {claim for claim, _ in outcomes(inner)} == {"rate_kept", "p99_latency", "p99.9_latency"}


def test_a_drive_whose_p99_explodes_at_80_percent_fails(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KNEE", "0.8")
    run(inner, PM9A3, tests="p99_latency_at and randread")
    assert outcomes(inner) == {
        ("p99_latency", "randread_4k_rate550000_qd512"): {"pass"},
        ("p99_latency", "randread_4k_rate770000_qd512"): {"pass"},
        ("p99_latency", "randread_4k_rate990000_qd512"): {"fail"},
    }


def test_a_drive_that_does_not_keep_the_rate_fails(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0001=0.8,SSDQ0002=0.8")
    run(inner, PM9A3, tests="rate_is_kept and randread")
    verdicts = outcomes(inner)
    assert verdicts["rate_kept", "randread_4k_rate770000_qd512"] == {"pass"}
    assert verdicts["rate_kept", "randread_4k_rate990000_qd512"] == {"fail"}


def test_without_a_sheet_it_is_skipped_with_the_reason(inner: Inner) -> None:
    result = run(inner, "default", "-rs")
    result.assert_outcomes(skipped=18)
    assert {"publishes no maximum" in case.message for case in inner.cases().values()} == {True}
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
