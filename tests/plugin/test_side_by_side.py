"""A drive side by side that fails or never settles ends its own tests only; the others are measured without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.report.view.fitness import Fitness
from pytest_ssdqual.report.view.run_view import RunView

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    pytestmark = pytest.mark.ssd_array("drive")
    LOADS = Workload("randread", "4k", 8), Workload("randread", "4k", 1)

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_workload(*LOADS)
    def test_iops(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    @pytest.mark.ssd_promise("member_spread")
    @pytest.mark.ssd_workload(*LOADS)
    def test_even(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    def test_health(ssd_health):
        assert ssd_health
"""
SPEC = PRODUCT + promise(claim="steady_iops", at_least="1 IOPS") + promise(claim="member_spread", at_least=0.5)
DEEP, SHALLOW = "randread_4k_qd8", "randread_4k_qd1"


def run(inner: Inner, *options: str, drives: int = 4, protocol: str = "quick") -> pytest.RunResult:
    inner.pytester.makepyfile(test_side=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    return inner.run(f"--ssd-devices=lab:{drives}", "--ssd-spec=acme.toml", f"--ssd-protocol={protocol}", *options)


def drives_of(record: dict[str, object]) -> list[str]:
    (only,) = record["runs"]  # type: ignore[misc]
    return list(only["members"])


@pytest.mark.parametrize(("trouble", "word"), [("pulled", "dropped out"), ("media", "media errors")])
def test_failed_drive_is_one_failure_and_the_others_are_judged(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, word: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", f"{trouble}:SSDQ0002")
    run(inner)
    cases = inner.cases()
    print({name: (case.outcome, case.message) for name, case in cases.items()})
    first, second = (cases[f"test_iops[drivex4-{each}]"] for each in (DEEP, SHALLOW))
    assert first.outcome == "failure"
    assert word in first.message
    assert first.properties["ssd.drives_failed"] == "SSDQ0002"
    assert second.outcome == "passed"
    assert "SSDQ0002" not in second.properties["ssd.drives"]
