"""What an earlier session of the same run has measured and left: asked before anything is measured or built again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol as Interface

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.write_counters import Written


@dataclass(frozen=True, slots=True)
class ResultKey:
    """One measurement."""

    #: ``measured``, ``saturation``, ``loop`` or ``rebuild``.
    kind: str
    geometry: Geometry
    #: A workload, or the name of a loop.
    what: str


@dataclass(frozen=True, slots=True)
class Conditioned:
    """What an array is conditioned for, random or sequential workloads: by which writes, and how they settled."""

    writes: Workload
    state: SteadyState


@dataclass(frozen=True, slots=True)
class Inheritance:
    """An array, or drives side by side, that an earlier session left filled and in order, as far as its records tell.

    Whether the drives are still as it left them is for ``adoption`` to find out.
    """

    geometry: Geometry
    #: Identities, in the array's order.
    members: tuple[str, ...]
    #: md's; empty for drives side by side.
    uuid: str
    passes: int
    fill_bs: str
    size_bytes: int
    #: Where each member's data begin.
    data_offset_bytes: int
    #: How the members came to agree.
    consistency: str
    #: None if it was only filled.
    conditioned: Conditioned | None
    #: What each member, by its identity, had been sent when that session last looked.
    counters: Mapping[str, Written]
    #: Stopped by a later session, not by the one that used it: then only in the same boot of the machine can nothing
    #: else have happened to it.
    abandoned: bool = False


class Memory(Interface):
    """The run folder of a resumed run is one."""

    def has(self, key: ResultKey) -> bool:
        """Whether it was measured and what proves it is still there."""
        ...

    def recall(self, key: ResultKey) -> object | None:
        """The value of that kind (``Measured``, ``Saturation``, …), or None if it has to be measured."""
        ...

    def inheritance(self) -> Inheritance | None:
        """What was left in order."""
        ...


class Forgetful:
    """The memory of a run that was not resumed."""

    def has(self, key: ResultKey) -> bool:
        return False

    def recall(self, key: ResultKey) -> object | None:
        return None

    def inheritance(self) -> Inheritance | None:
        return None
