"""Geometry of an array: level, members, capacity, and what one host I/O costs the members.

Costs of parity are those of a small host I/O in one stripe, with all members or some missing. There members are
numbers; ``parity`` holds those with the stripe's parity (P, or P and Q), ``missing`` those that failed. The algorithm
is Linux md's, drivers/md/raid5.c. Counted at the members of arrays of 3 to 7 drives (/proc/diskstats, Linux 6.1), reads
and writes were within 3 % of it in every case below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import AsText
from pytest_ssdqual.qual.units import format_size, parse_size


class RaidLevel(StrEnum):
    """The supported md levels, by mdadm's names, and a bare drive."""

    DRIVE = "drive"
    RAID0 = "raid0"
    RAID1 = "raid1"
    RAID5 = "raid5"
    RAID6 = "raid6"
    RAID10 = "raid10"


@frozen
class Facts:
    """Properties of a level at every width."""

    #: Fewest members, and the stride to the next possible number.
    minimum: int
    step: int
    #: Members' worth of parity.
    parity: int = 0
    #: Copies of every block; 0 for one on every member.
    copies: int = 1
    #: Members that may always be lost; None for all but one.
    tolerates: int | None = 0
    #: Fewest members where the number is not given; 0 for ``minimum``.
    narrowest: int = 0

    def allows(self, width: int) -> bool:
        """Return whether the level can have this many members."""
        return width >= self.minimum and (width - self.minimum) % self.step == 0

    @property
    def usual_minimum(self) -> int:
        """Fewest members of an array whose width the caller left open."""
        return self.narrowest or self.minimum

    def describe_widths(self) -> str:
        """Possible numbers of members, in words: ``an even number of drives, at least 2``."""
        if self.step > 1:
            return f"an even number of drives, at least {self.minimum}"
        return f"{self.minimum} or more drives"

    def may_lose(self, width: int) -> int:
        """Number of members that an array of this width can lose, whichever they are, without losing data."""
        return width - 1 if self.tolerates is None else self.tolerates


#: md also accepts a RAID 5 of two and a RAID 10 of three, which are not used in practice and cost differently.
#: RAID 10 is layout near-2; a RAID 10 of two is one mirror, which a sweep over mirrors begins with if its mark has
#: that width. A RAID 1 of N is an N-way mirror. Several drives are no array: they are measured side by
#: side, each on its own, by one fio process.
FACTS = {
    RaidLevel.DRIVE: Facts(minimum=1, step=1),
    RaidLevel.RAID0: Facts(minimum=2, step=1),
    RaidLevel.RAID1: Facts(minimum=2, step=1, copies=0, tolerates=None),
    RaidLevel.RAID5: Facts(minimum=3, step=1, parity=1, tolerates=1),
    RaidLevel.RAID6: Facts(minimum=4, step=1, parity=2, tolerates=2),
    RaidLevel.RAID10: Facts(minimum=2, step=2, copies=2, tolerates=1, narrowest=4),
}
#: Smallest chunk: a page (mdadm(8), --chunk).
PAGE_BYTES = 4096
#: Form of ``Tuning`` in ids.
TUNING = r"(?:-c(?P<chunk>\d{1,7}[km]))?(?:-s(?P<stripes>\d{1,5}))?(?:-t(?P<threads>\d{1,4}))?"
ID = re.compile(
    rf"(?P<level>[a-z]+\d*)x(?P<width>\d{{1,4}}){TUNING}(?:-(?P<missing>\d{{1,4}})(?P<state>failed|rebuilding))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, order=True)
class Tuning(AsText):
    """Settings of md that an array has instead of those of the protocol; 0 for that of the protocol.

    ``str()`` is its part of the array's id: ``-c256k-s32768-t8``.
    """

    chunk_bytes: int = 0
    #: Pages of each member in the stripe cache (``stripe_cache_size``), RAID 5 and 6.
    stripe_cache_pages: int = 0
    #: Workers on each NUMA node (``group_thread_cnt``), RAID 5 and 6.
    group_threads: int = 0

    def __str__(self) -> str:
        values = {"c": self.chunk_bytes, "s": self.stripe_cache_pages, "t": self.group_threads}
        texts = {letter: format_size(value) if letter == "c" else value for letter, value in values.items() if value}
        return "".join(f"-{letter}{text}" for letter, text in texts.items())

    @classmethod
    def of(cls, match: re.Match[str]) -> Tuning:
        """Return the settings of a match of ``TUNING``; ValueError for a chunk that md refuses."""
        chunk = parse_size(match["chunk"]) if match["chunk"] else 0
        if chunk & (chunk - 1) or 0 < chunk < PAGE_BYTES:
            raise ValueError(f"a chunk is a power of two of at least 4k, not {match['chunk']}")
        return cls(chunk, int(match["stripes"] or 0), int(match["threads"] or 0))

    @classmethod
    def parse(cls, text: str) -> Tuning:
        """Read ``c256k-s32768-t8``, or nothing for the protocol's settings; ValueError for anything else."""
        match = re.fullmatch(TUNING, f"-{text}" if text else "", re.ASCII)
        if not match:
            raise ValueError(f"{text!r} are no settings of md; write e.g. c256k-s32768-t8 (chunk, stripes, threads)")
        return cls.of(match)


#: All settings as the protocol has them.
PROTOCOLS = Tuning()


@dataclass(frozen=True, slots=True, order=True)
class Geometry(AsText):
    """One array shape: a level and its number of members. ``str()`` is the pytest id (``raid5x4``).

    A redundant level may have members missing (``raid6x6-2failed``) or rebuilding (``raid6x6-2rebuilding``), with other
    costs and other promises. ``drivex4`` is four drives side by side. Settings of md that are not those of the protocol
    are in the id, too (``raid5x4-s32768``).
    """

    level: RaidLevel
    width: int
    missing: int = 0
    rebuilding: bool = False
    tuning: Tuning = PROTOCOLS

    def __post_init__(self) -> None:
        facts = FACTS[self.level]
        if self.tuning.chunk_bytes and self.level in (RaidLevel.DRIVE, RaidLevel.RAID1):
            raise ValueError(f"{self.level} has no chunks; remove -c of {self}")
        if (self.tuning.stripe_cache_pages or self.tuning.group_threads) and not facts.parity:
            raise ValueError(f"{self.level} has no stripe cache and no group threads; remove -s and -t of {self}")
        if not facts.allows(self.width):
            raise ValueError(f"{self.level} needs {facts.describe_widths()}, not {self.width}")
        if not 0 <= self.missing <= facts.may_lose(self.width):
            lose = facts.may_lose(self.width)
            raise ValueError(f"{self.level} of {self.width} may lose {lose} of its members, not {self.missing}")
        if self.rebuilding and not self.missing:
            raise ValueError("an array that is rebuilt has members missing")

    def __str__(self) -> str:
        state = f"-{self.missing}{'rebuilding' if self.rebuilding else 'failed'}" if self.missing else ""
        return f"{self.level}x{self.width}{self.tuning}{state}"

    @classmethod
    def parse(cls, text: str) -> Geometry:
        """Read ``raid5x4`` or ``raid5x4-1failed`` back; ValueError for anything else."""
        found = ID.fullmatch(text)
        if not found or found["level"] not in list(RaidLevel):
            raise ValueError(f"{text!r} is not an array; write e.g. raid5x4")
        missing = int(found["missing"] or 0)
        is_rebuilding = found["state"] == "rebuilding"
        return cls(RaidLevel(found["level"]), int(found["width"]), missing, is_rebuilding, Tuning.of(found))

    @property
    def healthy(self) -> Geometry:
        """The same array with all its members."""
        return replace(self, missing=0, rebuilding=False)

    @property
    def state(self) -> str:
        """``healthy``, ``degraded`` or ``rebuilding``, as promises name it."""
        if self.rebuilding:
            return "rebuilding"
        return "degraded" if self.missing else "healthy"

    @property
    def is_side_by_side(self) -> bool:
        """Return whether its members are independent drives that only share the fio process."""
        return self.level is RaidLevel.DRIVE

    @property
    def target(self) -> Geometry:
        """What one target of fio's jobs is: the array, or each of the drives side by side."""
        return ONE_DRIVE if self.is_side_by_side else self

    @property
    def targets(self) -> int:
        """Number of targets."""
        return self.width if self.is_side_by_side else 1

    @property
    def data_drives(self) -> int:
        """Members' worth of capacity that the host can use."""
        facts = FACTS[self.level]
        return (self.width - facts.parity) // (facts.copies or self.width)

    @property
    def has_parity(self) -> bool:
        return FACTS[self.level].parity > 0


#: The geometry of one drive, alone or as each of several side by side.
ONE_DRIVE = Geometry(RaidLevel.DRIVE, 1)


@frozen
class MemberLoad:
    """I/Os of one member, or of all together, per small random host I/O, on average over the whole array."""

    #: Member reads per host read.
    reads_for_read: Fraction
    #: Member reads per host write.
    reads_for_write: Fraction
    writes_for_write: Fraction

    def busy_s(self, read_fraction: float, read_iops: float, write_iops: float) -> float:
        """Service time of the member for its part of one host I/O, seconds."""
        reads = read_fraction * self.reads_for_read + (1 - read_fraction) * self.reads_for_write
        return reads / read_iops + (1 - read_fraction) * self.writes_for_write / write_iops


@cache
def loads(geometry: Geometry) -> tuple[MemberLoad, ...]:
    """Load of every present member. ValueError for an array that is rebuilding: there is no cost model then.

    The last members are the missing ones. With parity, by ``read_for_read`` and ``read_for_write``, averaged over all
    places of the parity (it rotates; in RAID 6, Q is the member after P) and all addresses, with p = 1 or 2 parity and
    k missing:

      ============ ===========================================================================================
      host read    (k + 1)(N - k)/N member reads, evenly: (k + 1)/N of each member
      host write   (p + 1)(N - k)/N member writes; before them 2(p + 1)(N - p - 1)/N member reads with k = 1,
                   4(N - 3)(2N - 5)/(N(N - 2)) with k = 2 neighbours
      ============ ===========================================================================================

    RAID 6 with one missing is uneven: its neighbours hold less parity of the stripes that are modified, all others do
    up to 6 % more than the mean and are the bottleneck. Two missing that are not neighbours cost up to 6 % more in
    arrays of up to ten. N-way mirrors with k missing share reads among N - k and write N - k. In RAID 10 (near 2) the
    twin of a missing member does the work of both, 2/N of all reads and as before 2/N of all writes.
    """
    if geometry.rebuilding:
        raise ValueError(f"no law says what {geometry} can do")
    facts = FACTS[geometry.level]
    if facts.parity:
        return _parity_loads(geometry.width, facts.parity, geometry.missing)
    nothing, left = Fraction(0), geometry.width - geometry.missing
    if geometry.level is RaidLevel.RAID1:
        return (MemberLoad(Fraction(1, left), nothing, Fraction(1)),) * left
    usual = MemberLoad(Fraction(1, geometry.width), nothing, Fraction(facts.copies, geometry.width))
    twin = MemberLoad(usual.writes_for_write, nothing, usual.writes_for_write)
    return (usual,) * (left - geometry.missing) + (twin,) * geometry.missing


def _parity_loads(width: int, parity: int, missing: int) -> tuple[MemberLoad, ...]:
    gone = frozenset(range(width - missing, width))
    read, modify, write = Counter[int](), Counter[int](), Counter[int]()
    for first in range(width):
        parity_members = frozenset((first + number) % width for number in range(parity))
        for target in set(range(width)) - parity_members:
            read.update(read_for_read(target, width, gone))
            modify.update(read_for_write(target, width, parity_members, gone))
            write.update((parity_members | {target}) - gone)
    ios = width * (width - parity)
    return tuple(
        MemberLoad(Fraction(read[each], ios), Fraction(modify[each], ios), Fraction(write[each], ios))
        for each in range(width - missing)
    )


@cache
def costs(geometry: Geometry) -> MemberLoad:
    """Load of all present members together.

    A read costs one unless parity replaces a missing member. Mirrors write every copy. With parity, ``read_for_write``
    gives the reads; then data and parity are written. With all members:

      ====== ======================= =====================================
      RAID 5 N=3: 1+2                N>=4: 2+2 (a tie at 4)
      RAID 6 N=4: 1+3, N=5: 2+3      N>=6: 3+3 (a tie at 6)
      ====== ======================= =====================================

    Valid only after the first resync has passed the stripe (before, reconstruct-write is forced), and for RAID 6 of 7
    and more only if the CPU has an ``xor_syndrome`` routine (else N-3 reads). Pages that are still in the stripe cache
    cost nothing, so sequential and clustered writes are cheaper. For a rebuilding array: the cost where it is not
    rebuilt yet.
    """
    of_members = loads(replace(geometry, rebuilding=False))
    return MemberLoad(
        Fraction(sum(each.reads_for_read for each in of_members)),
        Fraction(sum(each.reads_for_write for each in of_members)),
        Fraction(sum(each.writes_for_write for each in of_members)),
    )


def expected_iops(geometry: Geometry, read_fraction: float, read_iops: float, write_iops: float) -> float:
    """Host IOPS of small random I/O when the busiest member is always busy.

    The additive service law: with r the host's read fraction, R and W the random read and write IOPS of one member, and
    of every member its ``loads`` c (reads for a host read), k_r and k_w (reads and writes for a host write),

        X = 1 / max over members of (r c/R + (1 - r)(k_r/R + k_w/W))

    which for an array with all its members is N / (r/R + (1 - r)(K_r/R + K_w/W)) with ``costs`` K; special cases of
    degraded ones are N R/2 for reads of RAID 5 and of RAID 10, N W/2 for writes of RAID 10. It is an upper bound,
    reached when that member's queue never runs empty. So R and W must be those *at the depth judged*, and at a low
    depth the array stays below the bound because random addresses leave members idle (``depth_share``). ValueError for
    an array that is rebuilding.
    """
    return 1 / max(each.busy_s(read_fraction, read_iops, write_iops) for each in loads(geometry))


def effective_drives(geometry: Geometry, read_fraction: float) -> float:
    """Drives' worth of host I/O that the array can do, the abscissa of linear scaling; N/P with all members.

    RAID 5 writes from 3 to 6 to 8 drives are 1 : 1.5 : 2 by this, not 1 : 2 : 2.67; Intel's paper 329903-001 measured 1
    : 1.58 : 1.97.
    """
    return expected_iops(geometry, read_fraction, 1.0, 1.0)


def depth_share(geometry: Geometry, qd_per_drive: int) -> float:
    """Lower bound of the share of ``expected_iops`` that an array of even members reaches at a queue depth per drive.

    Q/(Q + M - 1) with Q = N × depth I/Os in a closed network of the M present servers: exact for exponential service
    times, equal loads and one member I/O per host I/O (mean-value analysis of a balanced network), a lower bound if
    service times vary less or one member has more work than the others. 8 drives: 53 %, 70 %, 82 %, 90 % at depths 1,
    2, 4, 8.
    """
    outstanding = geometry.width * qd_per_drive
    return outstanding / (outstanding + geometry.width - geometry.missing - 1)


def read_for_read(target: int, width: int, missing: AbstractSet[int]) -> AbstractSet[int]:
    """Members read for a host read of ``target``.

    A missing block is computed, and ``need_this_block()`` then reads every other block of the stripe: N - 1 with one
    missing, in RAID 6 too, where N - 2 would suffice.
    """
    return frozenset(range(width)) - missing if target in missing else frozenset((target,))


def read_for_write(target: int, width: int, parity: AbstractSet[int], missing: AbstractSet[int]) -> AbstractSet[int]:
    """Members read before a host write of one whole page of ``target``.

    ``handle_stripe_dirtying()`` counts the pages that either way of computing the new parity would have to read:

    * read-modify-write: the old data and the old parity, 1 + parity;
    * reconstruct-write: the stripe's other data, N - parity - 1;

    and takes the smaller, reconstruct-write on a tie (``rmw_level`` = 1, the default). A page that cannot be read
    counts 2 N, which excludes that way; if both are excluded, ``handle_stripe_fill()`` reads everything and computes
    the rest. md does not notice that missing parity need not be computed: it reads the other data as for any
    reconstruct-write.
    """
    modified = parity | {target}
    others = frozenset(range(width)) - modified
    if modified & missing:
        return frozenset(range(width)) - missing if others & missing else others
    return modified if others & missing or len(modified) < len(others) else others
