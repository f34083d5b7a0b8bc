"""What a history can be done to: an array on the machine under test, or one that was never there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.steps import StepSequence
from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.rig.fio.stamped_io import Stretch


@dataclass(frozen=True, slots=True)
class Ground:
    """An array that was built."""

    size_bytes: int
    region_bytes: int
    regions: int
    #: Of the drives: what is written at once is never torn within this.
    atom_bytes: int
    #: User data of a stripe with parity; else 0.
    stripe_bytes: int
    drives: int
    #: At the beginning, where nothing is written.
    begin_bytes: int = 0


class Body(Protocol):
    """An array whose members are numbered drives. ``RigError`` or a child of it where the rig is at fault."""

    def build(self, history: StepSequence) -> Ground:
        """A new one, in place of whatever there was."""
        ...

    def abilities(self, level: RaidLevel) -> Abilities:
        """What can be done to an array of this level, and to the machine."""
        ...

    def write(self, history: int, stretches: Sequence[Stretch], *, flush: bool) -> None:
        """All of it, acknowledged."""
        ...

    def differs(self, history: int, stretches: Sequence[Stretch]) -> bool:
        """Whether any of it does not read back, or nobody can say."""
        ...

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """What is there; less of it if it cannot be read."""
        ...

    def trim(self, offset_bytes: int, size_bytes: int) -> None: ...
    def fail(self, drive: int) -> None: ...
    def remove(self, drive: int) -> None: ...
    def re_add(self, drive: int) -> None: ...
    def add(self, drive: int) -> None: ...

    def settle(self, missing: int) -> None:
        """Wait until nothing is rebuilt, and just so many members are missing."""
        ...

    def compare(self, *, repair: bool) -> int:
        """Sectors that do not agree."""
        ...

    def restart(self, members: Sequence[int], missing: int) -> None: ...

    def grow(self, drive: int) -> int:
        """Bytes of the wider array."""
        ...

    def close(self) -> None:
        """Stop what stands, and leave nothing of it on its members."""
        ...

    def cut(self, members: Sequence[int], missing: int, history: int, over: Stretch | None) -> Aftermath:
        """Cut the power and assemble what comes back; while ``over`` is overwritten, with up to ``PASSES`` more."""
        ...


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is known of a power cut."""

    #: The last generation that was written and flushed before it, as we were told.
    acknowledged: int | None = None
    #: Members were missing and parity may be wrong: md had to be forced (``mdadm --assemble --force``).
    dirty: bool = False
