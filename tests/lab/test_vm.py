from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_ssdqual.lab.host import ARCHITECTURES
from pytest_ssdqual.lab.image import Image
from pytest_ssdqual.lab.media import drive_argv, shelf
from pytest_ssdqual.lab.vm import Hardware, LabFailed, Reach, Vm, kernel_arguments, qemu_argv

HARDWARE = Hardware(
    architecture=ARCHITECTURES[0],
    image=Image(Path("/cache/kernel"), Path("/cache/initrd")),
    accelerator="tcg",
    directory=Path("/scratch"),
    key="AAAAC3Nz",
    drives=shelf(3),
    ssh_port=2222,
)


def value_of(argv: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(argv) if name == option]


def test_argv_is_whole() -> None:
    argv = qemu_argv(HARDWARE)
    assert argv[0] == "qemu-system-x86_64"
    assert value_of(argv, "-accel") == ["tcg,thread=multi"]
    assert value_of(argv, "-kernel") == ["/cache/kernel"]
    assert value_of(argv, "-initrd") == ["/cache/initrd"]
    assert value_of(argv, "-netdev") == ["user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:2222-:22"]
    assert "-no-reboot" in argv


def test_every_drive_is_on_the_command_line_after_the_machine() -> None:
    argv = qemu_argv(HARDWARE)
    drives = [
        part for position, drive in enumerate(HARDWARE.drives) for part in drive_argv(position, drive, Path("/scratch"))
    ]
    assert argv[-len(drives) :] == drives


def test_kvm_is_asked_for_without_emulation_options() -> None:
    assert value_of(qemu_argv(replace(HARDWARE, accelerator="kvm")), "-accel") == ["kvm"]


def test_a_comma_in_the_directory_does_not_end_the_option() -> None:
    argv = qemu_argv(replace(HARDWARE, directory=Path("/a,b"), drives=()))
    assert value_of(argv, "-chardev") == [
        "file,id=console,path=/a,,b/console",
        "socket,id=qmp,path=/a,,b/qmp,server=on,wait=off",
    ]


def test_the_guest_learns_the_key_from_its_command_line() -> None:
    words = kernel_arguments(ARCHITECTURES[0], "AAAA/b+c=").split()
    assert "ssdqual.key=AAAA/b+c=" in words
    assert "console=ttyS0" in words


def test_reach_survives_json() -> None:
    reach = Reach("127.0.0.1", 2222, "root", Path("/scratch/identity"), ("-F", "none"))
    assert Reach.from_json(json.loads(json.dumps(reach.to_json()))) == reach


def test_reach_of_something_else_is_refused() -> None:
    data = Reach("127.0.0.1", 2222, "root", Path("/x"), ()).to_json() | {"options": "-F none"}
    with pytest.raises(TypeError, match="options"):
        Reach.from_json(data)


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
    vm = Vm(replace(HARDWARE, directory=tmp_path), tmp_path / "identity")
    assert vm.console_tail(3) == "two\n\\xff\nqemu: no"


def test_a_machine_without_qemu_says_so(tmp_path: Path) -> None:
    vm = Vm(replace(HARDWARE, directory=tmp_path), tmp_path / "identity")
    with pytest.raises(LabFailed, match="no answer from QEMU"):
        vm.pause()
    vm.stop()
