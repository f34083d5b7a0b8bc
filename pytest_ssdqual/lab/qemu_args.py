"""QEMU's command line. Pure functions only."""

from __future__ import annotations

from pathlib import Path

from pytest_ssdqual.lab.drives import ScaleModel, adapter_argv, drive_argv
from pytest_ssdqual.lab.host import CONSOLE, EMULATED_CPU, MACHINE, QEMU
from pytest_ssdqual.lab.image.image import Image
from pytest_ssdqual.qual.frozen import frozen

#: PCI slot where the guest's initramfs expects its root disk.
ROOT_SLOT = 0x1E


@frozen
class Hardware:
    """The hardware of a virtual machine."""

    image: Image
    #: ``kvm`` or ``tcg``.
    accelerator: str
    #: Directory of the virtual machine: sockets, console, drives.
    directory: Path
    #: The public key for logins, without its type.
    key: str
    drives: tuple[ScaleModel, ...]
    #: On 127.0.0.1; 0 lets the host choose a free one.
    ssh_port: int = 0
    #: The host allocates it as it is used. The SNIA rounds need 128 MiB of 1 MiB transfers for every drive.
    memory_mib: int = 2048
    cpus: int = 2


def qemu_argv(hardware: Hardware) -> list[str]:
    """Return QEMU's whole command line."""
    directory = str(hardware.directory).replace(",", ",,")
    is_emulated = hardware.accelerator == "tcg"
    accelerator, cpu = ("tcg,thread=multi", EMULATED_CPU) if is_emulated else (hardware.accelerator, "max")
    # fmt: off
    argv = [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none",
        "-machine", MACHINE, "-accel", accelerator, "-cpu", cpu,
        "-smp", str(hardware.cpus), "-m", f"{hardware.memory_mib}M",
        # a guest that panics ends the emulation instead of starting over
        "-no-reboot",

        "-kernel", str(hardware.image.kernel), "-initrd", str(hardware.image.initrd),
        "-append", kernel_arguments(hardware.key),
        *(root_argv(hardware.directory) if hardware.image.root else []),

        "-chardev", f"file,id=console,path={directory}/console", "-serial", "chardev:console",
        "-chardev", f"socket,id=qmp,path={directory}/qmp,server=on,wait=off", "-mon", "chardev=qmp,mode=control",

        # restrict: the guest can open no connections
        "-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{hardware.ssh_port}-:22",
        "-device", "virtio-net-pci,netdev=net,romfile=",
    ]
    # fmt: on
    argv += adapter_argv(hardware.drives)
    for position, drive in enumerate(hardware.drives):
        argv += drive_argv(position, drive, hardware.directory)
    return argv


def root_file(directory: Path) -> Path:
    """Return the path of this machine's copy of the root file system."""
    return directory / "root.raw"


def root_argv(directory: Path) -> list[str]:
    """Return QEMU's arguments for the root disk, whose adapter has a fixed address on the bus."""
    file = str(root_file(directory)).replace(",", ",,")
    return [
        *("-blockdev", f"driver=file,node-name=root,filename={file},cache.no-flush=on,discard=unmap"),
        *("-device", f"virtio-scsi-pci,id=root-hba,addr={ROOT_SLOT:#x}"),
        *("-device", "scsi-hd,id=root-disk,bus=root-hba.0,drive=root,vendor=SSDQUAL,product=SYSTEM,serial=ROOT0001"),
    ]


def kernel_arguments(key: str) -> str:
    # panic=-1: reboot at once, which -no-reboot makes the end of QEMU.
    # norandmaps: QEMU caches translated code by virtual address, so with randomized addresses it translates a
    # program again at each start: 44 ms of processor time for /bin/true instead of 10 (QEMU 7.2).
    # The rest saves seconds of an emulated boot: no clock calibration, no mitigations, no watchdogs.
    return (
        f"console={CONSOLE} quiet panic=-1 mitigations=off tsc=reliable no_timer_check nowatchdog "
        f"norandmaps raid=noautodetect random.trust_cpu=on rdinit=/init ssdqual.key={key}"
    )
