"""Decide whether SSDs, and software RAID arrays built of them, are fit to buy, ship or put in production.

What a suite author may import; everything else is private. Of the methods, ``stec.MIXES`` and the like: see
``docs/methods.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ssdqual.qual.methods import intel_910, intel_s3500, snia, stec, toms_s3500, toms_s3700
    from pytest_ssdqual.qual.workload.rounds import Loop, Tracked
    from pytest_ssdqual.qual.workload.workload import Workload
    from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID, Series

__all__ = [
    "INTEL_RAID",
    "Loop",
    "Series",
    "Tracked",
    "Workload",
    "intel_910",
    "intel_s3500",
    "snia",
    "stec",
    "toms_s3500",
    "toms_s3700",
]

_PLACES = {
    "INTEL_RAID": "workload_set",
    "Loop": "rounds",
    "Series": "workload_set",
    "Tracked": "rounds",
    "Workload": "workload",
}

if not TYPE_CHECKING:  # or any name at all would pass for one of ours

    def __getattr__(name: str) -> object:
        """Load on first use: the plugin is imported in every pytest run of its environment, and few test drives."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _PLACES:
            return getattr(import_module(f"pytest_ssdqual.qual.workload.{_PLACES[name]}"), name)
        return import_module(f"pytest_ssdqual.qual.methods.{name}")
