"""The receiving inspection, and drives that the spec is not for, on the simulated rig."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import inspected
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.plugin.session import artefacts
from pytest_ssdqual.report.html import run_page

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DEVICES = "--ssd-devices=/dev/nvme*"
MODEL = "QEMU NVMe Ctrl"


@pytest.fixture
def spec(inner: Inner) -> str:
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="1 IOPS"))
    return "--ssd-spec=acme.toml"


def test_healthy_new_drives_pass_without_a_lease(inner: Inner, spec: str) -> None:
    result = inner.run(
        DEVICES, spec, "--ssd-read-only", inner.suite("inspection"), "-k", "not serials"
    )  # they have no WWN
    outcomes = inner.outcomes()
    assert set(outcomes.values()) <= {"passed", "skipped"}, outcomes
    assert result.ret == pytest.ExitCode.OK
    assert len(inner.records("inspected")) == 4
    assert inner.records("measured") == []
    assert "fio" not in {str(argv[0]) for each in _transcript(inner) if (argv := each.get("argv"))}


def test_a_used_drive_fails_by_its_serial(inner: Inner, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    smart = inspected.smart_of_nvme("SSDQ0002", MODEL)
    smart["nvme_smart_health_information_log"]["power_on_hours"] = 9_000
    smart["power_on_time"] = {"hours": 9_000}
    monkeypatch.setenv("SIMULATED_INSPECTED", json.dumps({"SSDQ0002": {"smart": json.dumps(smart)}}))
    inner.run(DEVICES, spec, "--ssd-read-only", inner.suite("inspection"), "-k", "hardly_powered_on")
    (case,) = inner.cases().values()
    assert case.outcome == "failure"
    assert "SSDQ0002" in case.message
    assert "SSDQ0001" not in case.message
    assert "fio command" not in _page(inner), "nothing was measured by fio"


def test_a_running_self_test_is_an_error_with_the_cure(
    inner: Inner, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extended = {"SSDQ0002": {"self-test": "2 20 " + "0 " * 562}}
    monkeypatch.setenv("SIMULATED_INSPECTED", json.dumps(extended))
    inner.run(DEVICES, spec, "--ssd-read-only", inner.suite("inspection"), "-k", "not serials")
    bad = {name: case for name, case in inner.cases().items() if case.outcome not in ("passed", "skipped")}
    assert set(bad) == {"test_drives_run_nothing_by_themselves", "test_drives_are_cool_at_rest"}
    for case in bad.values():
        assert case.outcome == "error"
        assert "SSDQ0002 " in case.message
        assert "80 % left" in case.message
        assert "smartctl -X" in case.message


def test_a_run_that_only_reads_measures_nothing(inner: Inner, spec: str) -> None:
    result = inner.run(DEVICES, spec, "--ssd-read-only", inner.suite("drive"))
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert set(inner.outcomes().values()) == {"skipped"}
    assert inner.records("measured") == []


def test_a_sheet_of_other_drives_is_refused_unless_it_is_forced(inner: Inner) -> None:
    sheet = PRODUCT.replace(f', "{MODEL}"', "") + promise(claim="steady_iops", at_least="1 IOPS")
    assert MODEL not in sheet
    (inner.pytester.path / "other.toml").write_text(sheet)
    inner.pytester.makepyfile(test_nothing="def test_nothing(_ssd_campaign):\n    pass")
    sentence = inner.refused(DEVICES, "--ssd-spec=other.toml", "--ssd-protocol=quick")
    assert "--ssd-force-spec" in sentence
    result = inner.run(DEVICES, "--ssd-spec=other.toml", "--ssd-protocol=quick", "--ssd-force-spec")
    assert "for these drives" in result.stdout.str()


def test_unlike_drives_are_refused_with_both_consents(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "ACME 9|ACME 3")
    inner.pytester.makepyfile(test_nothing="def test_nothing(_ssd_campaign):\n    pass")
    sentence = inner.refused(DEVICES, "--ssd-spec=default", "--ssd-protocol=quick")
    assert all(word in sentence for word in ("ACME 9", "ACME 3", "--ssd-mixed", "mixed = true"))


def _page(inner: Inner) -> str:
    """The page of the run."""
    artefacts.make_page(inner.folder(), run_page.write)
    return (inner.folder() / "report.html").read_text()


def _transcript(inner: Inner) -> list[dict[str, Any]]:
    (folder,) = (inner.pytester.path / "ssdqual-runs").glob("*T*")
    return [json.loads(line) for line in (folder / "transcript.jsonl").read_text().splitlines()]
