"""Which sheet each drive of a run is judged by."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.sheet import figure, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DEVICES, QUICK = "--ssd-devices=/dev/nvme*", "--ssd-protocol=quick"
BOTH = "--ssd-spec=nine.toml,three.toml"


def sheet(name: str, models: str, text: str = "", **more: str) -> str:
    keys = "".join(f'{key} = "{value}"\n' for key, value in more.items())
    return f'[product]\nname = "{name}"\nmodels = [{models}]\n{keys}\n{text}'


def rate(iops: int) -> str:
    return figure(rw="randread", bs="4k", queue_depths=[8], iops=iops)


@pytest.fixture(autouse=True)
def two_models(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_DRIVES", "4")
    monkeypatch.setenv("SIMULATED_MODEL", "ACME 9|ACME 3")
    # The simulator's drives serve 300 IOPS.
    inner.pytester.path.joinpath("nine.toml").write_text(sheet("ACME nine", '"ACME 9*"', rate(1_000)))
    inner.pytester.path.joinpath("three.toml").write_text(sheet("ACME three", '"ACME 3*"', rate(300)))


def judged_by(inner: Inner) -> list[str]:
    (path,) = inner.pytester.path.glob("ssdqual-runs/*/manifest.json")
    (bay,) = json.loads(path.read_text())["bays"]
    return [bay["sheets"][drive["wwn"] or drive["serial"]] for drive in bay["drives"]]


STEADY = "drivex4-randread_4k_qd8-steady_iops"


def test_each_drive_is_judged_by_its_own_sheet(inner: Inner) -> None:
    result = inner.run(DEVICES, QUICK, BOTH, inner.suite("datasheet"))
    (case,) = [case for name, case in inner.cases().items() if STEADY in name]
    assert case.outcome == "failure"
    assert case.properties["ssd.drives_failed"] == "SSDQ0001 SSDQ0003"
    assert "900 IOPS" in case.message
    found: Any
    (found,) = inner.records("verdict")
    assert "SSDQ0002, SSDQ0004" in json.dumps(found)
    assert {part["name"]: part["figures"]["limit"] for part in found["members"]} == {
        "SSDQ0001": 900, "SSDQ0002": 270, "SSDQ0003": 900, "SSDQ0004": 270,
    }  # fmt: skip
    assert judged_by(inner) == ["nine (NVMe)", "three (NVMe)"] * 2
    # Both publish far less than any drive of the class has to do.
    result.stdout.fnmatch_lines(["*nine: *1,000 IOPS*", "*three: *300 IOPS*"])


@pytest.mark.parametrize("strict", ["nine.toml", "three.toml"])
def test_each_drives_health_is_judged_by_its_own_sheet(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, strict: str
) -> None:
    # The drive of three.toml counts one more.
    monkeypatch.setenv("SIMULATED_TROUBLE", "shutdown:SSDQ0002")
    path = inner.pytester.path / strict
    path.write_text(path.read_text() + "[health]\nunsafe_shutdowns = 0\n")
    inner.run(DEVICES, QUICK, BOTH, inner.suite("datasheet"))
    (record,) = inner.records("drive_worsened")
    assert bool(record["defects"]) is (strict == "three.toml")


def test_an_array_of_several_sheets_is_refused(inner: Inner) -> None:
    result = inner.run(DEVICES, QUICK, BOTH, inner.suite("raid0"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (said,) = [line for line in result.errlines if line]
    assert "--ssd-mixed" in said
    assert inner.records("array_created", "measured") == []


def test_a_mixed_array_is_judged_by_the_slowest(inner: Inner) -> None:
    inner.pytester.path.joinpath("nine.toml").write_text(
        sheet("ACME nine", '"ACME 9*"', promise(claim="steady_iops", at_least="10,000 IOPS"))
    )
    inner.pytester.path.joinpath("three.toml").write_text(
        sheet("ACME three", '"ACME 3*"', promise(claim="steady_iops", at_least="100 IOPS"))
    )
    inner.run(
        DEVICES, QUICK, BOTH, "--ssd-mixed", inner.suite("raid0"), "-k", "steady_iops and raid0x4-randread_4k_qd8"
    )
    (case,) = inner.cases().values()
    assert case.outcome == "passed"
    (found,) = inner.records("verdict")
    assert "the slowest" in json.dumps(found)


@pytest.mark.parametrize(
    ("sheets", "said"),
    [
        ("nine.toml,three.toml,other.toml", "none of the drives is one of other"),
        ("nine.toml,three.toml,any.toml", "nine and any are both for /dev/nvme0n1"),
        ("nine.toml,other.toml", "none of nine and other is for /dev/nvme1n1"),
        ("nine.toml,large.toml", "not 30 TB"),
    ],
)
def test_a_sheet_that_is_for_none_or_for_one_too_many_is_refused(inner: Inner, sheets: str, said: str) -> None:
    path = inner.pytester.path
    path.joinpath("other.toml").write_text(sheet("Other", '"OTHER*"'))
    path.joinpath("any.toml").write_text(sheet("Any", '"ACME *"'))
    path.joinpath("large.toml").write_text(sheet("Large", '"ACME 3*"', capacity="30 TB"))
    refusal = inner.refused(DEVICES, QUICK, f"--ssd-spec={sheets}", inner.suite("drive"))
    assert said in refusal
    assert refusal.count("\n") == 0


def test_different_sheets_of_one_name_are_refused(inner: Inner) -> None:
    path = inner.pytester.path
    path.joinpath("other").mkdir()
    path.joinpath("nine.toml").rename(path / "other" / "three.toml")
    refusal = inner.refused(DEVICES, QUICK, "--ssd-spec=other/three.toml,three.toml", inner.suite("drive"))
    assert "are named three; " in refusal


def test_sheets_with_different_relative_promises_are_refused(inner: Inner) -> None:
    for name, percent in (("nine", 150), ("three", 20)):
        relative = promise(claim="steady_iops", relative_to="randread_4k_qd8", at_least=f"{percent} %")
        path = inner.pytester.path / f"{name}.toml"
        path.write_text(path.read_text() + relative)
    refusal = inner.refused(DEVICES, QUICK, BOTH, inner.suite("drive"))
    assert refusal.startswith("--ssd-spec: ACME nine")
    assert "same promises" in refusal
    assert refusal.count("\n") == 0


def test_a_sheet_without_models_is_for_drives_without_another(inner: Inner) -> None:
    inner.pytester.path.joinpath("rest.toml").write_text(sheet("Rest", "", rate(300)))
    inner.run(DEVICES, QUICK, "--ssd-spec=nine.toml,rest.toml", inner.suite("datasheet"))
    assert sorted(set(judged_by(inner))) == ["nine (NVMe)", "rest (NVMe)"]


def test_without_a_spec_each_model_has_its_shipped_sheet(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "SAMSUNG MZQL27T6HBLA-00A07|ACME 3")
    args = ("--ssd-force-spec", "--ssd-mixed", inner.suite("drive"), "-k", "p99 and randread_4k")
    inner.run(DEVICES, QUICK, *args)
    assert sorted(set(judged_by(inner))) == ["default (NVMe)", "samsung-pm9a3-7t68 (NVMe)"]


def test_the_default_limit_is_that_of_the_class(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "ACME 9")
    inner.run(DEVICES, QUICK, inner.suite("drive"), "-k", "p99 and randread_4k")
    (found,) = inner.records("verdict")
    assert "SATA and SAS" in found["source"]


def test_the_inspection_compares_each_drive_with_its_own_sheet(inner: Inner) -> None:
    path = inner.pytester.path
    table = '[inspection]\nfirmware = ["{}"]\n'
    path.joinpath("nine.toml").write_text(sheet("ACME nine", '"ACME 9*"', table.format("*")))
    path.joinpath("three.toml").write_text(sheet("ACME three", '"ACME 3*"', table.format("X1")))
    inner.run(DEVICES, BOTH, "--ssd-read-only", inner.suite("inspection"), "-k", "model or firmware")
    cases = {name.rpartition("::")[2]: case for name, case in inner.cases().items()}
    failed = {name: case.message for name, case in cases.items() if case.outcome == "failure"}
    assert [name for name in cases if "model" in name and cases[name].outcome == "passed"]
    assert all("SSDQ0001" not in message for message in failed.values())
