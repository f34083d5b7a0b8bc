"""RAID levels as facts: members, capacity, and what one host I/O costs the members."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The md levels we build, by mdadm's own names, and a bare drive."""

    DRIVE = "drive"
    RAID0 = "raid0"
    RAID1 = "raid1"
    RAID5 = "raid5"
    RAID6 = "raid6"
    RAID10 = "raid10"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of a level at every width."""

    #: Fewest members, and the stride to the next possible number; 0 when there is only one.
    minimum: int
    step: int
    #: Members' worth of parity.
    parity: int = 0
    #: Copies of every block; 0 means one on every member.
    copies: int = 1

    def allows(self, width: int) -> bool:
        """Whether the level can have this many members."""
        if not self.step:
            return width == self.minimum
        return width >= self.minimum and (width - self.minimum) % self.step == 0

    def describe_widths(self) -> str:
        """The possible numbers of members, in words: ``an even number of drives, at least 4``."""
        if not self.step:
            return f"exactly {self.minimum} drive"
        return (
            f"{self.minimum} or more drives" if self.step == 1 else f"an even number of drives, at least {self.minimum}"
        )


#: md itself is laxer (a RAID 5 of two, a RAID 10 of three): shapes that nobody buys and whose cost differs.
#: RAID 10 is layout near-2; a RAID 1 of N is an N-way mirror.
FACTS = {
    Level.DRIVE: Facts(minimum=1, step=0),
    Level.RAID0: Facts(minimum=2, step=1),
    Level.RAID1: Facts(minimum=2, step=1, copies=0),
    Level.RAID5: Facts(minimum=3, step=1, parity=1),
    Level.RAID6: Facts(minimum=4, step=1, parity=2),
    Level.RAID10: Facts(minimum=4, step=2, copies=2),
}


@dataclass(frozen=True, slots=True, order=True)
class Geometry:
    """One array shape: a level and its number of members. ``str()`` is the pytest id (``raid5x4``)."""

    level: Level
    width: int

    def __post_init__(self) -> None:
        facts = FACTS[self.level]
        if not facts.allows(self.width):
            raise ValueError(f"{self.level} needs {facts.describe_widths()}, not {self.width}")

    def __str__(self) -> str:
        return f"{self.level}x{self.width}"

    @classmethod
    def parse(cls, text: str) -> Geometry:
        """Read ``raid5x4`` back; ValueError for anything else."""
        level, _, width = text.rpartition("x")
        if level not in list(Level) or not (width.isascii() and width.isdecimal()):
            raise ValueError(f"{text!r} is not an array; write e.g. raid5x4")
        return cls(Level(level), int(width))

    @property
    def data_drives(self) -> int:
        """Members' worth of capacity that the host can use."""
        facts = FACTS[self.level]
        return (self.width - facts.parity) // (facts.copies or self.width)

    @property
    def usable_fraction(self) -> float:
        """Share of the members' capacity that the host can use, 0…1."""
        return self.data_drives / self.width

    @property
    def has_parity(self) -> bool:
        return FACTS[self.level].parity > 0

    @property
    def is_mirror(self) -> bool:
        return FACTS[self.level].copies != 1


@dataclass(frozen=True, slots=True)
class SmallWrite:
    """Member I/Os caused by one random host write that is aligned and no larger than a chunk."""

    reads: int
    writes: int


def costs(geometry: Geometry) -> SmallWrite:
    """What one small random host write costs the members.

    Mirrors write every copy. For parity, ``handle_stripe_dirtying()`` in the kernel's drivers/md/raid5.c
    counts the pages it would have to read: read-modify-write needs the old data and the old parity
    (1 + parity), reconstruct-write the stripe's other data (N - parity - 1); it takes the smaller, and
    reconstruct-write on a tie (``rmw_level`` = 1, the default). Then data and parity are written.

    ====== ======================= =====================================
    RAID 5 N=3: 1+2                N>=4: 2+2 (a tie at 4)
    RAID 6 N=4: 1+3, N=5: 2+3      N>=6: 3+3 (a tie at 6)
    ====== ======================= =====================================

    True only after the first resync has passed the stripe (before, reconstruct-write is forced), and for
    RAID 6 of 7 and more only where the CPU has an ``xor_syndrome`` routine (else N-3 reads). Pages that
    are still in the stripe cache cost nothing, so sequential and clustered writes are cheaper than this.
    """
    facts = FACTS[geometry.level]
    if not facts.parity:
        return SmallWrite(reads=0, writes=facts.copies or geometry.width)
    return SmallWrite(
        reads=min(1 + facts.parity, geometry.width - facts.parity - 1),
        writes=1 + facts.parity,
    )


def physical_ios(geometry: Geometry, read_fraction: float) -> float:
    """Member I/Os per small random host I/O, P = r + (1 - r)(k_r + k_w), at read fraction r (0…1)."""
    write = costs(geometry)
    return read_fraction + (1 - read_fraction) * (write.reads + write.writes)


def expected_iops(geometry: Geometry, read_fraction: float, read_iops: float, write_iops: float) -> float:
    """Host IOPS of small random I/O when every member is busy all the time.

    The additive service law X = N / (r/R + (1 - r)(k_r/R + k_w/W)), with R and W the random read and write
    IOPS of one member and r the host's read fraction. It is the saturated bound: an upper one, reached
    when the queue never runs dry at any member. It therefore needs R and W *at the depth judged*, and at
    a low depth the array stays below it because random addresses leave members idle (``depth_share``).
    """
    write = costs(geometry)
    busy_s = read_fraction / read_iops + (1 - read_fraction) * (write.reads / read_iops + write.writes / write_iops)
    return geometry.width / busy_s


def effective_drives(geometry: Geometry, read_fraction: float) -> float:
    """N / P: how many drives' worth of host I/O the array can do; what linear scaling is linear in.

    RAID 5 writes from 3 to 6 to 8 drives are 1 : 1.5 : 2 by this, not 1 : 2 : 2.67; Intel's paper
    329903-001 measured 1 : 1.58 : 1.97.
    """
    return geometry.width / physical_ios(geometry, read_fraction)


def depth_share(geometry: Geometry, qd_per_drive: int) -> float:
    """Share of ``expected_iops`` that an array of even members is sure to reach at a queue depth per drive.

    Q/(Q + N - 1) with Q = N × depth I/Os in a closed network of N equal servers: exact for exponential
    service times and one member I/O per host I/O (mean-value analysis of a balanced network), a lower
    bound where service times vary less. 8 drives: 53 %, 70 %, 82 %, 90 % at depths 1, 2, 4, 8.
    """
    outstanding = geometry.width * qd_per_drive
    return outstanding / (outstanding + geometry.width - 1)
