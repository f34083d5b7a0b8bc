"""Verdicts by ``acceptance`` with the shipped sheets of real models, on simulated drives of that speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

#: Random 4 KiB writes of the simulated drives are 300 IOPS times this. The Intel S3500 of 800 GB publishes 11,500, of
#: which its promise is 90 %.
SPEEDS = {"pass": 40.0, "fail": 30.0}


def run(inner: Inner, model: str, sheet: str, times: float) -> pytest.RunResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATED_MODEL", model)
        patch.setenv("SIMULATED_SLOW", ",".join(f"SSDQ{number:04}={times}" for number in range(1, 5)))
        options = ("--ssd-devices=lab:4", f"--ssd-spec={sheet}", "--ssd-protocol=acceptance")
        selected = ("--import-mode=importlib", inner.suite("raid0"), "-k", "steady_state and randwrite and qd8")
        return inner.run(*options, *selected)


@pytest.mark.parametrize(("outcome", "times"), SPEEDS.items())
def test_steady_iops_are_judged_by_the_sheet_of_the_model(inner: Inner, outcome: str, times: float) -> None:
    run(inner, "INTEL SSDSC2BB800G4", "intel-dc-s3500-800gb", times)
    assert [record["outcome"] for record in inner.records("verdict")] == [outcome] * 3
    assert {record["visits"] for record in inner.records("looked")} >= {2}


def test_a_model_that_publishes_no_such_figure_is_not_green(inner: Inner) -> None:
    result = run(inner, "SAMSUNG MZQL27T6HBLA-00A07", "samsung-pm9a3-7t68", 4000.0)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert inner.records("measured", "verdict", "array_created") == []
