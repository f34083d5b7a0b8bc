"""The 16-byte stamp repeated through every written block: history, generation, offset.

A cell is ``SQ``, the number of the history (2 bytes), the generation (4 bytes, both big-endian) and the byte offset in
the array of the transfer that wrote it (8 bytes, little-endian: fio's ``%o``). Every write has its own generation, so
data of an earlier write, of another place or of foreign origin are distinguished without a log of the writes; and
because a whole block repeats one cell, any wrong byte is detected.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

MAGIC = b"SQ"
CELL_BYTES = 16
#: Number of histories and generations that a cell can hold.
HISTORIES, GENERATIONS = 1 << 16, 1 << 32


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """The content of one cell."""

    history: int
    generation: int
    #: Offset of the transfer in the array.
    offset_bytes: int

    @property
    def cell(self) -> bytes:
        return MAGIC + struct.pack(">HI", self.history, self.generation) + struct.pack("<Q", self.offset_bytes)

    def at(self, offset_bytes: int) -> Stamp:
        """Return the stamp of another transfer of the same write."""
        return replace(self, offset_bytes=offset_bytes)

    @classmethod
    def of_cell(cls, cell: bytes) -> Stamp | None:
        """Decode 16 bytes; None if they are not a stamp."""
        if len(cell) != CELL_BYTES or cell[:2] != MAGIC:
            return None
        history, generation = struct.unpack(">HI", cell[2:8])
        return cls(history, generation, struct.unpack("<Q", cell[8:])[0])


def fio_pattern(history: int, generation: int) -> str:
    """The stamp as fio's ``verify_pattern``, which fills in the offset; ``ValueError`` for numbers out of range."""
    if not (0 <= history < HISTORIES and 0 <= generation < GENERATIONS):
        raise ValueError(f"history {history}, generation {generation}: there is no room for such numbers")
    return f"0x{MAGIC.hex()}{history:04x}{generation:08x}%o"


def filled(written: Stamp, size_bytes: int) -> bytes:
    """A block of this stamp."""
    return written.cell * (size_bytes // CELL_BYTES)


def cells(block: bytes) -> frozenset[bytes]:
    """The different cells of a block: one if it is intact."""
    first = block[:CELL_BYTES]
    if block == first * (len(block) // CELL_BYTES):
        return frozenset((first,))
    return frozenset(block[at : at + CELL_BYTES] for at in range(0, len(block), CELL_BYTES))
