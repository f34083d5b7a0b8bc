"""Detects whether KVM works on this host, by starting a kernel.

On some hosts with nested virtualization /dev/kvm opens, but a guest hangs before its first console line.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from pytest_ssdqual.lab import host
from pytest_ssdqual.lab.image.image import Image

#: A kernel under a working KVM prints its first line within half a second.
_DEADLINE_S = 5.0


def accelerator(image: Image, cache: Path) -> str:
    """Return ``kvm`` or ``tcg``; the cache stores the result for this boot of the host, this QEMU and this kernel."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    stored = cache / f"accelerator-{_key(image)}"
    if stored.is_file():
        return stored.read_text(encoding="ascii")
    name = "kvm" if _starts_a_kernel(image) else "tcg"
    cache.mkdir(parents=True, exist_ok=True)
    for old in cache.glob("accelerator-*"):
        old.unlink(missing_ok=True)
    stored.write_text(name, encoding="ascii")
    return name


def _key(image: Image) -> str:
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        booted = ""
    qemu = shutil.which(host.QEMU) or ""
    facts = (booted, qemu, str(Path(qemu).stat().st_mtime_ns if qemu else 0), str(image.kernel), str(os.getuid()))
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:12]


def probe_argv(image: Image) -> list[str]:
    """Return the command line of a kernel without a root file system, which prints lines, panics, and so ends QEMU."""
    return [
        *(host.QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", host.MACHINE, "-accel", "kvm", "-cpu", "max", "-m", "256M"),
        *("-kernel", str(image.kernel), "-append", f"console={host.CONSOLE} panic=-1", "-serial", "stdio"),
    ]


def _starts_a_kernel(image: Image) -> bool:
    try:
        done = subprocess.run(
            probe_argv(image), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_DEADLINE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"Kernel panic" in done.stdout
