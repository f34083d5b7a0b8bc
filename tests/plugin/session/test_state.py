from __future__ import annotations

import subprocess
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import drives

from pytest_ssdqual.plugin.session import state
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.rig.drives.failed import DriveFailures
from pytest_ssdqual.rig.health import health
from pytest_ssdqual.rig.health.health import DriveHealth

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

NONSENSE = """
[product]
name = "ACME 9"
models = []
colour = "red"
[[promise]]
claim = "steady_iops"
at_least = "fast"
[[promise]]
claim = "no_claim"
at_most = "1 ms"
"""


def test_every_error_of_a_spec_with_its_path(inner: Inner) -> None:
    (inner.pytester.path / "acme.toml").write_text(NONSENSE)
    said = inner.refused("--ssd-devices=lab:3", "--ssd-spec=acme.toml").splitlines()
    assert said[0].startswith("--ssd-spec: acme.toml: ")
    assert [line.removeprefix("--ssd-spec: ").split(": ")[1] for line in said] == [
        "product.colour", "promise[0].at_least", "promise[1].claim",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--ssd-spec=nowhere/acme.toml", "--ssd-spec: acme.toml: cannot be read: No such file or directory"),
        ("--ssd-spec=acme", "--ssd-spec: acme: is not shipped (there are: default, intel-320, "),
        ("--ssd-protocol=hasty", "--ssd-protocol: hasty: is not shipped (there are: acceptance, intel, intel910"),
        ("--ssd-protocol=sequential", "--ssd-protocol: sequential: is not shipped (there are: acceptance, intel"),
        ("--ssd-protocol=hasty.toml", "--ssd-protocol: hasty.toml: cannot be read: No such file or directory"),
    ],
)
def test_a_document_that_is_not_there(inner: Inner, option: str, sentence: str) -> None:
    said = inner.refused("--ssd-devices=lab:3", option)
    assert said.startswith(sentence)
    assert "\n" not in said
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_the_data_sheet_is_found_by_the_drives_model(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "INTEL SSDSC2BB480G4")
    inner.pytester.makepyfile("def test_it(): pass")
    inner.run("--ssd-devices=/dev/nvme*").stdout.fnmatch_lines(["*INTEL SSDSC2BB480G4 *spec *S3500*480*"])
    monkeypatch.setenv("SIMULATED_MODEL", "ACME 9")
    text = inner.run("--ssd-devices=/dev/nvme*").stdout.str()
    assert "S3500" not in text


def test_without_a_figure_what_needs_one_is_skipped(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "ACME 9")
    inner.run(
        "--ssd-devices=/dev/nvme*",
        "--ssd-protocol=intel",
        "--ssd-spec=default",
        inner.suite("raid5"),
        "-k",
        "raid5x3-randread_4k_qd8 and data_sheet",
    )
    (case,) = inner.cases().values()
    assert case.outcome == "skipped"
    assert "randread_4k_qd8" in case.message


def test_the_run_folder_is_whole(inner: Inner, promises: str) -> None:
    inner.run("--ssd-devices=lab:3", promises)
    folder = inner.folder()
    manifest = inner.manifest()
    assert manifest["exit_status"] == 1
    assert manifest["ended"] >= manifest["started"]
    assert [kind for kind in ("run_started", "measured", "verdict", "run_ended") if not inner.records(kind)] == []
    sums = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert sums.returncode == 0
    assert (folder / "health").is_dir()
    assert any((folder / "health").iterdir())


def test_a_bad_run_folder_is_a_sentence(inner: Inner) -> None:
    (inner.pytester.path / "taken").write_text("a file")
    said = inner.refused("--ssd-devices=lab:3", "--ssd-run-dir=taken")
    assert said.startswith("evidence cannot be")
    assert "\n" not in said


def test_what_a_run_did_to_a_drive_is_told(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "critical" not in inner.run("--ssd-devices=lab:3", promises).stdout.str()
    monkeypatch.setenv("SIMULATED_WORN", "1")
    told = inner.run("--ssd-devices=lab:3", promises).stdout.str().splitlines()
    assert len([line for line in told if "drive SSDQ000" in line and "critical warning" in line]) == 3


def test_a_kernel_without_md_is_found_before_anything_is_purged(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, promises: str
) -> None:
    monkeypatch.setenv("SIMULATED_NO_MD", "raid456: modprobe: FATAL: Module raid456 not found\n")
    inner.run("--ssd-devices=/dev/nvme*", promises, "-k", "iops", "--ssd-protocol=quick")
    assert set(inner.outcomes().values()) == {"error"}
    assert all("no md driver" in case.message for case in inner.cases().values())
    assert inner.records("purging", "array_planned") == []


def test_a_drive_that_is_gone_has_not_the_health_of_the_drive_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, present = drives.named("nvme0n1", "GONE"), drives.named("nvme0n1", "PRESENT")
    before, after = (DriveHealth(True, 30, 3, 0, {"nvme": errors}, 100, 10**12, "{}") for errors in (0, 5))
    failures = DriveFailures({gone.path: before}, {"GONE": FailedDrive("GONE", ("it did not come back",), ())})
    kept: list[str] = []
    worsened: dict[str, Any] = {}
    monkeypatch.setattr(health, "read", lambda channel, drives: {drive.path: after for drive in drives})
    monkeypatch.setattr(state, "keep_health", lambda journal, drive, reading, when: kept.append(drive.name))
    journal = SimpleNamespace(note=lambda kind, **facts: worsened.update({facts["drive"]: facts["findings"]}))
    run = BayRun(SimpleNamespace(journal=journal), ExitStack())  # type: ignore[arg-type]
    setup = SimpleNamespace(failures=failures, held=SimpleNamespace(drives=(gone, present)))
    run._health_after(SimpleNamespace(unfinished=tuple), setup)  # type: ignore[arg-type]
    assert kept == ["PRESENT"]
    assert len(worsened[gone.identity]) == 1
    assert worsened[present.identity]
