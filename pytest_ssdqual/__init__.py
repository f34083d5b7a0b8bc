"""Decide whether SSDs, and software RAID arrays built of them, are fit to buy, ship or put in production.

Suites may import the names of this module; everything else is private. ``docs/methods.md`` describes the methods, such
as ``stec.MIXES``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ssdqual.qual.methods import intel_910, intel_s3500, snia, stec, toms_s3500, toms_s3700
    from pytest_ssdqual.qual.workload.rounds import Rounds, Stimulus, Tracked
    from pytest_ssdqual.qual.workload.workload import Workload
    from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID, WorkloadSet

__all__ = [
    "INTEL_RAID",
    "Rounds",
    "Stimulus",
    "Tracked",
    "Workload",
    "WorkloadSet",
    "intel_910",
    "intel_s3500",
    "snia",
    "stec",
    "toms_s3500",
    "toms_s3700",
]

_MODULES = {
    "INTEL_RAID": "workload_set",
    "Rounds": "rounds",
    "Stimulus": "rounds",
    "WorkloadSet": "workload_set",
    "Tracked": "rounds",
    "Workload": "workload",
}

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import on first use: every pytest run of the environment imports this package, and few test drives."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _MODULES:
            return getattr(import_module(f"pytest_ssdqual.qual.workload.{_MODULES[name]}"), name)
        return import_module(f"pytest_ssdqual.qual.methods.{name}")
