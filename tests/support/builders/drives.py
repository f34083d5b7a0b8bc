"""Drives of a machine under test, as a survey finds them."""

from __future__ import annotations

from pytest_ssdqual.rig.drives.topology import Drive


def drive(number: int, model: str = "ACME", size_bytes: int = 256 << 20) -> Drive:
    """Return the NVMe drive with this number, serial number S0, S1, …"""
    return named(f"nvme{number}n1", f"S{number}", model, size_bytes)


def named(kname: str, serial: str, model: str = "ACME", size_bytes: int = 256 << 20) -> Drive:
    """Return the drive with this kernel name."""
    return Drive(f"/dev/{kname}", kname, model, serial, None, None, size_bytes, 512, 512, False, "nvme")
