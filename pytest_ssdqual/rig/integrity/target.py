"""The target of an integrity test: an md array on the machine under test, or a simulated one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.steps import StepSequence
from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.rig.fio.stamped_io import Stretch


@frozen
class TargetLayout:
    """Layout of the array that was built."""

    size_bytes: int
    region_bytes: int
    regions: int
    #: Atomic unit of the drives: a write is never torn within this.
    atom_bytes: int
    #: User data of a stripe with parity; otherwise 0.
    stripe_bytes: int
    drives: int
    #: Bytes at the beginning of the array where nothing is written.
    begin_bytes: int = 0


class IntegrityTarget(Protocol):
    """An array whose members are numbered drives. ``RigError`` or a child of it where the rig is at fault."""

    def build(self, history: StepSequence) -> TargetLayout:
        """Build a new array in place of the former one."""

    def abilities(self, level: RaidLevel) -> Abilities:
        """Return what steps are possible with an array of this level, and with the machine."""

    def write(self, history: int, stretches: Sequence[Stretch], *, flush: bool) -> None:
        """Write all stretches; they are acknowledged when this returns."""

    def differs(self, history: int, stretches: Sequence[Stretch]) -> bool:
        """Return True if a stretch reads back different data, or cannot be read."""

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """Return the content of a range; fewer bytes if it cannot be read."""

    def trim(self, offset_bytes: int, size_bytes: int) -> None: ...
    def fail(self, drive: int) -> None: ...
    def remove(self, drive: int) -> None: ...
    def re_add(self, drive: int) -> None: ...
    def add(self, drive: int) -> None: ...

    def settle(self, missing: int) -> None:
        """Wait until no rebuild runs, and exactly ``missing`` members are missing."""

    def compare(self, *, repair: bool) -> int:
        """Compare copies or parity of all members; return the number of sectors that disagree."""

    def restart(self, members: Sequence[int]) -> None: ...

    def grow(self, drive: int) -> int:
        """Grow the array by a drive; return its new size in bytes."""

    def close(self) -> None:
        """Stop the array, and erase it from its members."""

    def cut(self, members: Sequence[int], missing: int, history: int, over: Stretch | None) -> PowerCutOutcome:
        """Cut the power and assemble the array again; ``over`` is overwritten meanwhile, up to ``PASSES`` times."""


@frozen
class PowerCutOutcome:
    """State after a power cut."""

    #: The last generation whose write and flush was acknowledged before it.
    acknowledged: int | None = None
    #: True if members were missing and parity may be wrong, so that md had to be forced (``--assemble --force``).
    dirty: bool = False
