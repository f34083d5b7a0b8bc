from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.lab.faulty_vm import FaultyVm

from pytest_ssdqual.lab import vm
from pytest_ssdqual.lab.drives import shelf
from pytest_ssdqual.lab.image.image import Image
from pytest_ssdqual.lab.qemu_args import Hardware
from pytest_ssdqual.lab.vm import LabFailed, Reach, Vm

HARDWARE = Hardware(
    image=Image(Path("/cache/kernel"), Path("/cache/initrd")),
    accelerator="tcg",
    directory=Path("/scratch"),
    key="AAAAC3Nz",
    drives=shelf(3),
    ssh_port=2222,
)


def test_ssh_command_line() -> None:
    reach = Reach("127.0.0.1", 2222, "tester", Path("/k"), ("-F", "none"))
    assert reach.argv("true") == ["ssh", "-F", "none", "-p", "2222", "-i", "/k", "tester@127.0.0.1", "true"]


def test_nothing_of_the_callers_ssh_configuration_takes_part(tmp_path: Path) -> None:
    options = " ".join(Vm(replace(HARDWARE, directory=tmp_path), tmp_path / "identity").ssh.options)
    assert "-F none" in options
    assert "IdentityAgent=none" in options
    assert "UserKnownHostsFile=/dev/null" in options


def test_the_console_tail_ends_with_qemus_own_words(tmp_path: Path) -> None:
    (tmp_path / "console").write_bytes(b"one\r\ntwo\r\n\xff\r\n")
    (tmp_path / "stderr").write_bytes(b"qemu: no\n")
    machine = Vm(replace(HARDWARE, directory=tmp_path), tmp_path / "identity")
    assert machine.console_tail(3).split("\n") == ["two", "\\xff", "qemu: no"]


def test_a_machine_without_qemu_says_so(tmp_path: Path) -> None:
    machine = FaultyVm.of(Vm(replace(HARDWARE, directory=tmp_path), tmp_path / "identity"))
    with pytest.raises(LabFailed, match="answer from QEMU"):
        machine.pause()
    machine.power_cut()


@pytest.mark.parametrize("uptimes", [["0.10"], ["99.00", "0.10"], ["99.00", "99.00"]])
def test_a_guest_with_a_fast_clock_is_booted_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uptimes: list[str]
) -> None:
    boots = iter(uptimes)

    def booting(hardware: Hardware) -> list[str]:
        line = f"ssdqual-lab: ready after {next(boots)} s"
        return ["sh", "-c", 'echo "$1" >"$2"; exec sleep 600', "qemu", line, str(tmp_path / "console")]

    monkeypatch.setattr(vm, "qemu_argv", booting)
    monkeypatch.setattr(Vm, "_forwarded_port", lambda self: 2222)
    booted = Vm(replace(HARDWARE, directory=tmp_path), tmp_path / "identity")
    machine = FaultyVm.of(booted)
    try:
        if uptimes[-1] == "99.00":
            with pytest.raises(LabFailed, match=r"it says 99\.0"):
                machine.power_on()
        else:
            machine.power_on()
        assert list(boots) == []
        assert (machine.pid is None) is (uptimes[-1] == "99.00")
    finally:
        booted.power_cut()
    assert machine.pid is None, "both are one machine"
