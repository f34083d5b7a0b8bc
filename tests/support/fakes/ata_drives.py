"""A pytest plugin for ``-p``: the lab's NVMe drives are purged as ATA drives are, by the program ``hdparm`` there."""

from __future__ import annotations

from pytest_ssdqual.rig.purge import ata, purge

purge.LADDER = (purge.Rung("ATA Security Erase", purge.NVME, ata.security_erase),)
