"""Decide whether SSDs, and software RAID arrays built of them, are fit to buy, ship or put in production.

What a suite author may import; everything else is private.
"""

from __future__ import annotations

from pytest_ssdqual.qual.matrix import INTEL_RAID
from pytest_ssdqual.qual.workload import Workload

__all__ = ["INTEL_RAID", "Workload"]
