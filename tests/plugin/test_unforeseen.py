"""Unexpected errors cost no drive hours: they are remembered, and the same one again ends the run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import lab_with_every_depth

from pytest_ssdqual.report.run_folder import checksums

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

AGAIN = "the same unforeseen error came again, so nothing more is built or measured: IndexError: "


def builds(inner: Inner) -> Counter[object]:
    return Counter(record["geometry"] for record in inner.records("array_created"))


@pytest.mark.parametrize(
    ("where", "workers"), [("fill", ()), ("run", ()), ("run", ("-n", "1"))], ids=["fill", "run", "run-xdist"]
)
def test_same_error_twice_ends_the_run(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, where: str, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SIMULATED_MISTAKES", where)
    result = inner.run("--ssd-devices=lab:6", inner.suite("raid5"), "-k", "randwrite_4k_qd8 or capacity", *workers)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert sum(builds(inner).values()) <= 2
    assert len(inner.records("array_stopped")) == sum(builds(inner).values())
    errors = [case.message for case in inner.cases().values() if case.outcome == "error"]
    assert {"raid5x4-" in name or "raid5x4]" in name for name in list(inner.cases())[-1:]} == {True}
    assert AGAIN in errors[-1]
    assert "simulated_rig.py" not in "".join(errors)  # the place is in the package
    result.stdout.fnmatch_lines([f"!*Interrupted: {AGAIN}*"])
    folder = inner.folder()
    assert (folder / "SHA256SUMS").read_bytes() == checksums.text(folder)
    assert [record["exit_status"] for record in inner.records("run_ended")] == [pytest.ExitCode.INTERRUPTED]


def test_single_error_is_remembered(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MISTAKES", "fill:raid5x4")
    sheet = lab_with_every_depth(inner.pytester.path)
    result = inner.run("--ssd-devices=lab:5", sheet, inner.suite("raid5"), "-k", "randwrite_4k_qd8")
    result.assert_outcomes(passed=9, errors=2 + 2)
    assert builds(inner) == {"raid5x3": 1, "raid5x4": 1, "raid5x5": 1}
    assert len(inner.records("array_stopped")) == 3
    told = [case for case in inner.cases().values() if case.outcome == "error"]
    with_traceback = [case for case in told if "simulated_rig.py" in case.text]
    assert len(with_traceback) == 1
    assert {"IndexError: fill:raid5x4" in case.message for case in told} == {True}


def test_failed_measurement_builds_nothing_again(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MISTAKES", "run:raid5x4:randread_4k_qd8")
    few = ("-k", "randread_4k_qd8 or randwrite_4k_qd8")
    sheet = lab_with_every_depth(inner.pytester.path)
    result = inner.run("--ssd-devices=lab:5", sheet, inner.suite("raid5"), *few)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert builds(inner) == {"raid5x3": 1, "raid5x4": 1, "raid5x5": 1}
    failed = {name for name, outcome in inner.outcomes().items() if outcome != "passed"}
    assert failed
    assert all("randread_4k_qd8" in name for name in failed)


def test_other_bays_continue(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut1")
    monkeypatch.setenv("SIMULATED_MISTAKES", "run")
    two = ("--ssd-devices=root@dut1:/dev/nvme*", "--ssd-devices=root@dut2:/dev/nvme*")
    result = inner.run(*two, promises, "--ssd-protocol=quick", "-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    of_each = {bay: {case.outcome for name, case in inner.cases().items() if bay in name} for bay in ("dut1", "dut2")}
    assert of_each == {"dut1": {"error"}, "dut2": {"passed", "failure", "error"}}
