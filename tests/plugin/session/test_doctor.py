"""``ssdqual doctor``: what it finds, its exit status, and that it only reads."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from support.simulator.simulated_rig import SimulatedMachine

from pytest_ssdqual.plugin.session import doctor
from pytest_ssdqual.plugin.session.bay_start import BayStart
from pytest_ssdqual.plugin.session.doctor import Diagnosis
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.rig.md import driver

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DEVICES = "--ssd-devices=/dev/nvme*"
SHEET = "samsung-pm9a3-7t68"
SOUND = {"MODEL": "SAMSUNG MZQL27T6HBLA-00A07", "SIZES": ",".join(f"SSDQ000{n}=7681501126656" for n in range(1, 5))}
READ_BY = {"sh", "lsblk", "fio", "smartctl", "cat", "id", "nvme"}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Diagnosis]:
    """The diagnoses that are printed."""
    kept: list[Diagnosis] = []
    real = doctor.examined

    def examined(start: BayStart) -> Diagnosis:
        kept.append(real(start))
        return kept[-1]

    monkeypatch.setattr(doctor, "examined", examined)
    for name, value in SOUND.items():
        monkeypatch.setenv(f"SIMULATED_{name}", value)
    return kept


def rows(diagnosis: Diagnosis, title: str) -> list[dict[str, str]]:
    (section,) = [each for each in diagnosis.sections if each.title.startswith(title)]
    table = section.table
    return [dict(zip(table.columns, map(str, row), strict=True)) for row in table.rows]


def column(diagnosis: Diagnosis, title: str, name: str) -> list[str]:
    return [row[name] for row in rows(diagnosis, title)]


def test_a_sound_machine_has_no_objection_and_is_not_changed(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, found: list[Diagnosis]
) -> None:
    asked: list[tuple[str, ...]] = []
    real = SimulatedMachine._done

    def done(machine: SimulatedMachine, argv: tuple[str, ...], stdin: bytes | None) -> object:
        asked.append(argv)
        return real(machine, argv, stdin)

    def tether(*_: object, **__: object) -> None:
        pytest.fail("a lease was taken, or fio was started")

    monkeypatch.setattr(SimulatedMachine, "_done", done)
    monkeypatch.setattr(SimulatedMachine, "tether", tether)
    before = set(inner.pytester.path.iterdir())
    assert inner.run("--ssd-doctor", DEVICES, "--ssd-expect=4").ret == 0
    (diagnosis,) = found
    assert diagnosis.objections == []
    assert column(diagnosis, "Drives", "sheet") == [SHEET] * 4
    assert column(diagnosis, "Drives", "state") == ["free"] * 4
    assert set(column(diagnosis, "Guard", "state")) == {"answers"}
    assert set(column(diagnosis, "md driver", "state")) == {"available"}
    assert set(column(diagnosis, "fio", "state")) == {"can be loaded"}
    assert set(inner.pytester.path.iterdir()) == before
    assert {argv[0] for argv in asked} <= READ_BY
    assert all("--parse-only" in argv or "--version" in argv for argv in asked if argv[0] == "fio")
    assert [argv[4] for argv in asked if argv[:3] == ("sh", "-c", driver.LOAD)] == ["-n"]


@pytest.mark.parametrize(
    ("scene", "options", "objection"),
    [
        ({"MISSING": "fio"}, [], "has no fio: install the package fio"),
        ({"NO_MD": "raid456: modprobe: FATAL: Module raid456 not found"}, [], "Module raid456 not found"),
        ({"HELD": "1"}, [], "held by anna@one"),
        ({"TROUBLE": "used:SSDQ0002"}, [], r"SSDQ0002\): is open for writing by qemu"),
        ({"DATA": "/dev/nvme1n1"}, [], r"SSDQ0002\): carries data without a signature"),
        ({"TROUBLE": "locked:SSDQ0003"}, [], r"SSDQ0003\): .*locked"),
        ({"MODEL": "SAMSUNG MZQL27T6HBLB-00A07"}, [], f"no data sheet is known for .*{SHEET}"),
        ({"MODEL": "ACME 9", "SIZES": ""}, [f"--ssd-spec={SHEET}"], f"the spec {SHEET} is not for these drives"),
        ({}, ["--ssd-expect=5"], r"4 drives found on localhost, 5 drives expected"),
        ({}, ["--ssd-wipe=SSDQ0009"], "is the serial of no drive that was named"),
    ],
)
def test_what_prevents_a_run_is_named_and_is_the_exit_status(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, found: list[Diagnosis], scene: dict[str, str], options: list[str],
    objection: str,
) -> None:  # fmt: skip
    for name, value in scene.items():
        monkeypatch.setenv(f"SIMULATED_{name}", value)
    assert inner.run("--ssd-doctor", DEVICES, *options).ret == 1
    (diagnosis,) = found
    (sentence,) = diagnosis.objections
    assert re.search(objection, sentence)
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_one_objection_does_not_hide_the_others(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, found: list[Diagnosis]
) -> None:
    monkeypatch.setenv("SIMULATED_MISSING", "mdadm hdparm")
    monkeypatch.setenv("SIMULATED_NO_MD", "md_mod: not found")
    monkeypatch.setenv("SIMULATED_LIMITS", "kernel.io_uring_disabled=2\nmemlock=64\nnofile=1024\n")
    monkeypatch.setenv("SIMULATED_DATA", "/dev/nvme1n1")
    monkeypatch.setenv("SIMULATED_TROUBLE", "used:SSDQ0003")
    assert inner.run("--ssd-doctor", DEVICES).ret == 1
    (diagnosis,) = found
    assert len(diagnosis.objections) == 4
    missing = {row["tool"] for row in rows(diagnosis, "localhost") if row["version"] == "missing"}
    assert missing == {"mdadm", "hdparm"}
    assert column(diagnosis, "md driver", "state") == ["missing"] * 5
    states = column(diagnosis, "fio", "state")
    assert states[0] == "can be loaded"
    assert "kernel.io_uring_disabled=2" in states[1]
    assert states[2:4] == ["64 KiB", "1024"]
    drives = rows(diagnosis, "Drives")
    assert [row["state"] for row in drives] == ["free", "refused", "refused", "free"]
    assert drives[1]["consent"].startswith("--ssd-wipe=SSDQ0002@")
    assert [row["consent"] for row in drives if row is not drives[1]] == [""] * 3
    assert [bool(row["firmware"]) for row in drives] == [True, False, False, True]


def test_an_unknown_model_has_the_nearest_sheet(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, found: list[Diagnosis]
) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "SAMSUNG MZQL27T6HBLB-00A07|ACME 9")
    inner.run("--ssd-doctor", DEVICES, "--ssd-mixed")
    assert column(found[0], "Drives", "sheet")[:2] == [f"none; near {SHEET}", "none"]
    assert inner.run("--ssd-doctor", DEVICES, "--ssd-mixed", f"--ssd-spec={specs.DEFAULT}").ret == 0
    assert column(found[1], "Drives", "sheet") == [specs.DEFAULT] * 4


def test_an_engine_that_the_protocol_names_must_work(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, found: list[Diagnosis]
) -> None:
    monkeypatch.setenv("SIMULATED_LIMITS", "kernel.io_uring_disabled=2")
    assert inner.run("--ssd-doctor", DEVICES).ret == 0
    quick = files("pytest_ssdqual").joinpath("protocols", "quick.toml").read_text()
    (inner.pytester.path / "own.toml").write_text(f'{quick}\n[load]\nengine = "io_uring"\n')
    assert inner.run("--ssd-doctor", DEVICES, "--ssd-protocol=own.toml").ret == 1
    assert "io_uring" in found[1].objections[0]


def test_each_bay_is_examined(inner: Inner, monkeypatch: pytest.MonkeyPatch, found: list[Diagnosis]) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut2")
    monkeypatch.setenv("SIMULATED_MISSING", "mdadm")
    both = [f"--ssd-devices=root@dut{number}:/dev/nvme*" for number in (1, 2)]
    assert inner.run("--ssd-doctor", *both, "--ssd-spec=default").ret == 1
    assert [(each.machine, len(each.objections)) for each in found] == [("root@dut1", 0), ("root@dut2", 1)]
    assert inner.run("--ssd-doctor", "--ssd-devices=lab:3").ret == 0
    assert column(found[2], "Drives", "serial") == [f"SSDQ000{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--ssd-devices=/dev/sdz"],
        [DEVICES, "--ssd-protocol=quik"],
        [DEVICES, "--ssd-spec=nothing.toml"],
        [DEVICES, "--ssd-read-only"],
        [DEVICES, "raid5"],
        ["--ssd-devices", "/dev/nvme0n1", "/dev/nvme1n1"],
        [DEVICES, "--ssd-resume=last"],
    ],
)
def test_a_wrong_request_is_one_sentence(inner: Inner, options: list[str]) -> None:
    assert "\n" not in inner.refused("--ssd-doctor", *options)


def test_the_hook_of_a_site_objects(inner: Inner, found: list[Diagnosis]) -> None:
    inner.pytester.makeconftest(
        "def pytest_ssdqual_refuse_drive(drive):\n    return 'is Anna\\'s' if drive.serial == 'SSDQ0002' else None\n"
    )
    assert inner.run("--ssd-doctor", DEVICES).ret == 1
    assert "is Anna's" in found[0].objections[0]
    assert column(found[0], "Drives", "state") == ["free", "refused", "free", "free"]
