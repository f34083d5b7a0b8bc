from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from pytest_ssdqual.lab.drives import drive_argv, shelf
from pytest_ssdqual.lab.image.image import Image
from pytest_ssdqual.lab.qemu_args import Hardware, kernel_arguments, qemu_argv

HARDWARE = Hardware(
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
    words = kernel_arguments("AAAA/b+c=").split()
    assert "ssdqual.key=AAAA/b+c=" in words
    assert "console=ttyS0" in words
