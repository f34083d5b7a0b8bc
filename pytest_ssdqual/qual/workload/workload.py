"""Workload: access pattern, transfer sizes, mix of reads and writes, queue depth, and its id."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_size, parse_size

#: Access patterns; the value says (random, reads, writes). The ones with ``+`` are two independent streams side by
#: side, one that reads and one that writes, each with the whole depth: nothing fixes their mix.
PATTERNS = {
    "randread": (True, True, False),
    "randwrite": (True, False, True),
    "randrw": (True, True, True),
    "read": (False, True, False),
    "write": (False, False, True),
    "rw": (False, True, True),
    "randread+randwrite": (True, True, True),
    "read+write": (False, True, True),
}
#: Form of the ids that ``Workload.parse`` reads, with the names of its fields; ids of profiles are different.
ID = re.compile(
    r"(?P<rw>[a-z]+(?:\+[a-z]+)?)(?P<read_percent>\d+)?_(?P<bs>\d+[kmg]?)(?:_rnd(?P<random_percent>\d+))?"
    r"(?:_zipf(?P<zipf>\d+))?(?:_zoned(?P<zones>\d+x\d+(?:_\d+x\d+)+))?"
    r"(?:_off(?P<offset>\d+[kmg]?))?(?:_gap(?P<gap>\d+[kmg]?))?(?:_reg(?P<region_percent>\d+))?"
    r"(?P<sync>_sync)?(?:_fsync(?P<fsync>\d+))?(?:_comp(?P<compressible_percent>\d+))?"
    r"(?:_dedup(?P<dedupe_percent>\d+))?(?:_on(?P<burst_s>\d+)s_idle(?P<idle_s>\d+)s)?(?:_s(?P<streams_per_drive>\d+))?"
    r"_(?:t(?P<threads>\d+)x)?qd(?P<qd_per_drive>\d+)"
)
#: Its fields that are no numbers.
TEXTS = frozenset({"rw", "bs", "offset", "gap", "sync", "zones"})
#: Form of ``Workload.zones``.
ZONES = re.compile(r"[1-9]\d?/[1-9]\d?(?::[1-9]\d?/[1-9]\d?)+", re.ASCII)
NAME = re.compile(r"[a-z][a-z0-9]*")
#: fio cannot draw from Zipf's distribution at an exponent of exactly 1; beyond 5 it would use only one block.
ZIPF_FORBIDDEN, ZIPF_MOST = 100, 500


@frozen
class Workload:
    """One workload; ``str()`` is its pytest id, e.g. ``randrw70_4k_qd8`` (70 % reads).

    Load is given in one of two ways:

    - ``qd_per_drive`` alone: an array of N members is driven by N × ``streams_per_drive`` jobs of this depth, so it has
    N
      times as many outstanding I/Os as one drive (Intel's paper on the DC S3500 in RAID, 329903-001).
    - with ``threads``: the target, whatever it consists of, is driven by this many jobs, each of depth ``qd_per_drive``
      (SNIA PTS: thread count × queue depth; Intel 910: one job). Id: ``randwrite_4k_t4xqd32``.

    ``bs`` is one size, or a mix in fio's spelling of ``bssplit`` (``4k/60:64k/40``, per cent of I/Os), which then needs
    a ``name``: the id begins with it (``webserver_qd8``).
    """

    #: The pattern, in fio's words: ``randread``, ``randwrite``, ``randrw``, ``read``, ``write`` or ``rw``.
    rw: str
    #: The size of a transfer: ``4k``; binary, as in fio.
    bs: str
    #: Outstanding I/Os: per drive, or with ``threads`` per thread.
    qd_per_drive: int
    #: Share of reads; only for patterns that do both.
    read_percent: int | None = None
    #: Share of I/Os at random addresses, in a random pattern; the others follow the previous one.
    random_percent: int = 100
    #: Shift of every address: ``512`` makes each 4 KiB I/O straddle two pages.
    offset: str = "0"
    #: Jobs for each drive, each of depth ``qd_per_drive``; without ``threads``.
    streams_per_drive: int = 1
    #: Jobs for the whole target, however many drives it has.
    threads: int | None = None
    #: Begin of the id, instead of pattern and size: lower case letters and digits.
    name: str = ""
    #: In a random pattern, the exponent of Zipf's distribution in hundredths (120 is fio's ``zipf:1.2``, which uses
    #: some blocks far more often than others); 0 for a uniform distribution.
    zipf: int = 0
    #: In a random pattern, the skew of addresses in fio's spelling of ``zoned``: per cent of the I/Os and of the range,
    #: for each zone from the beginning on (``50/5:30/15:20/80``: half of the I/Os in the first 5 %); empty for none.
    zones: str = ""
    #: In a sequential pattern, bytes skipped after each transfer: a stride of ``bs`` + ``gap``.
    gap: str = "0"
    #: Share of the target that is used, from its beginning. Writes to a part of drives begin with a purge and a fill of
    #: that part, so the rest is spare for them.
    region_percent: int = 100
    #: Each write completes only when it would survive a loss of power (O_SYNC: with FUA, or followed by a flush).
    sync: bool = False
    #: Writes between flushes, during which no other I/O is outstanding; 0 for no flush.
    fsync: int = 0
    #: Share of each written block that is zeroes.
    compressible_percent: int = 0
    #: Share of written blocks that repeat an earlier one.
    dedupe_percent: int = 0
    #: In a random mix of sizes, addresses are multiples of this; ``0`` for 4 KiB, or the smallest size if that is more.
    #: IOMeter aligns on sectors by default: ``512``.
    align: str = "0"
    #: Length of the bursts between pauses, seconds; 0 without pauses. What is measured, seconds included, is that
    #: of the bursts.
    burst_s: int = 0
    #: Length of the pause after each burst, seconds; 0 without pauses.
    idle_s: int = 0

    def __post_init__(self) -> None:
        if self.rw not in PATTERNS:
            raise ValueError(f"rw must be one of {', '.join(PATTERNS)}, not {self.rw!r}")
        # Canonical spelling, or equal workloads would be measured twice under two ids.
        object.__setattr__(self, "bs", _one_spelling(self.bs))
        for each in ("offset", "gap", "align"):
            given = getattr(self, each)
            object.__setattr__(self, each, format_size(parse_size(given)) if given != "0" else "0")
        self._check_load()
        self._check_mix()
        self._check_addresses()
        self._check_writes()
        if self.name and not NAME.fullmatch(self.name):
            raise ValueError(f"a name is lower case letters and digits, not {self.name!r}")
        if "/" in self.bs and not self.name:
            raise ValueError(f"a mix of sizes ({self.bs}) needs a name")

    def _check_addresses(self) -> None:
        if not 0 < self.random_percent <= 100 or (self.random_percent < 100 and not self.is_random):
            raise ValueError(f"random_percent is 1 to 100, of a random pattern, not {self.random_percent}")
        if self.offset_bytes >= self.smallest_bytes:
            raise ValueError(f"the offset ({self.offset}) must be smaller than a transfer ({self.bs})")
        if self.zipf and (not self.is_random or self.random_percent < 100):
            raise ValueError(f"zipf goes with a pattern all of whose addresses are random, not with {self.rw}")
        if not 0 <= self.zipf <= ZIPF_MOST or self.zipf == ZIPF_FORBIDDEN:
            raise ValueError(f"zipf is 1 to {ZIPF_MOST} hundredths, but not {ZIPF_FORBIDDEN}; it is {self.zipf}")
        if self.zones:
            self._check_zones()
        if self.align != "0" and (not self.is_random or len(self.sizes) < 2 or self.smallest_bytes % self.align_bytes):
            raise ValueError(
                f"align ({self.align}) divides the smallest size of a random mix of sizes, not {self.rw} {self.bs}"
            )
        if self.gap != "0" and (self.is_random or len(self.sizes) > 1):
            raise ValueError(f"a gap goes with sequential transfers of one size, not with {self.rw} {self.bs}")
        if not 0 < self.region_percent <= 100:
            raise ValueError(f"region_percent is 1 to 100, not {self.region_percent}")

    def _check_zones(self) -> None:
        if not self.is_random or self.random_percent < 100 or self.zipf:
            raise ValueError(
                f"zones go with a pattern all of whose addresses are random, and without zipf, not {self.rw}"
            )
        is_spelled = ZONES.fullmatch(self.zones)
        shares = [list(map(int, zone.split("/"))) for zone in self.zones.split(":")] if is_spelled else []
        if list(map(sum, zip(*shares, strict=True))) != [100, 100]:
            raise ValueError(
                f"zones are shares of the I/Os and of the range that add up to 100 % each, such as 50/5:30/15:20/80, "
                f"not {self.zones!r}"
            )

    def _check_writes(self) -> None:
        for name, most in (("fsync", 1_000_000), ("compressible_percent", 100), ("dedupe_percent", 100)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is 0 to {most}, not {getattr(self, name)}")
        if (self.sync or self.fsync or self.compressible_percent or self.dedupe_percent) and not self.writes:
            raise ValueError(f"sync, fsync, compressible_percent and dedupe_percent go with writes, not with {self.rw}")

    def _check_load(self) -> None:
        for name in ("qd_per_drive", "streams_per_drive"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if min(self.burst_s, self.idle_s) < 0 or (self.burst_s == 0) != (self.idle_s == 0):
            raise ValueError(f"burst_s and idle_s are above 0, or both 0, not {self.burst_s} and {self.idle_s}")
        if self.threads is not None and (self.threads < 1 or self.streams_per_drive > 1):
            raise ValueError(f"threads must be at least 1 and excludes streams_per_drive, not {self.threads}")

    def _check_mix(self) -> None:
        mixed = self.rw in ("randrw", "rw")
        if mixed and (self.read_percent is None or not 0 < self.read_percent < 100):
            raise ValueError(f"rw={self.rw} needs read_percent between 1 and 99, not {self.read_percent}")
        if not mixed and self.read_percent is not None:
            raise ValueError(f"read_percent goes with randrw or rw, not with {self.rw}")

    def __str__(self) -> str:
        mix = "" if self.read_percent is None else str(self.read_percent)
        kind = self.name or f"{self.rw}{mix}_{self.bs}"
        random = "" if self.name or self.random_percent == 100 else f"_rnd{self.random_percent}"
        zipf = f"_zipf{self.zipf}" if self.zipf else ""
        zipf += f"_{self._zoned}" if self.zones else ""
        offset = "" if self.offset == "0" else f"_off{self.offset}"
        gap = "" if self.gap == "0" else f"_gap{self.gap}"
        region = "" if self.region_percent == 100 else f"_reg{self.region_percent}"
        stable = ("_sync" if self.sync else "") + (f"_fsync{self.fsync}" if self.fsync else "")
        entropy = f"_comp{self.compressible_percent}" if self.compressible_percent else ""
        entropy += f"_dedup{self.dedupe_percent}" if self.dedupe_percent else ""
        streams = "" if self.streams_per_drive == 1 else f"_s{self.streams_per_drive}"
        threads = "" if self.threads is None else f"t{self.threads}x"
        align = "" if self.align == "0" else f"_align{self.align}"
        pauses = f"_on{self.burst_s}s_idle{self.idle_s}s" if self.burst_s else ""
        where, how = f"{random}{zipf}{offset}{gap}{region}{align}", f"{stable}{entropy}{pauses}{streams}"
        return f"{kind}{where}{how}_{threads}qd{self.qd_per_drive}"

    @classmethod
    def parse(cls, text: str) -> Workload:
        """Read ``randrw70_4k_qd8`` back; ValueError for anything else, and for profiles, whose ids are only names."""
        found = ID.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is not a workload; write e.g. randrw70_4k_qd8")
        stated = {name: value for name, value in found.groupdict().items() if value}
        given: dict[str, Any] = {name: value if name in TEXTS else int(value) for name, value in stated.items()}
        given["zones"] = stated.get("zones", "").replace("x", "/").replace("_", ":")
        return cls(**{**given, "sync": "sync" in given})

    @property
    def _zoned(self) -> str:
        return f"zoned{self.zones.replace('/', 'x').replace(':', '_')}"

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Transfer sizes in bytes, each with its share of I/Os in per cent."""
        return _sizes(self.bs)

    @property
    def block_bytes(self) -> float:
        """Mean transfer size in bytes; exact where all have one size."""
        return sum(size * share for size, share in self.sizes) / 100

    @property
    def smallest_bytes(self) -> int:
        return min(size for size, _ in self.sizes)

    @property
    def largest_bytes(self) -> int:
        return max(size for size, _ in self.sizes)

    @property
    def offset_bytes(self) -> int:
        return 0 if self.offset == "0" else parse_size(self.offset)

    @property
    def gap_bytes(self) -> int:
        return 0 if self.gap == "0" else parse_size(self.gap)

    @property
    def align_bytes(self) -> int:
        return 0 if self.align == "0" else parse_size(self.align)

    @property
    def is_usual(self) -> bool:
        """Return whether only size, mix, depth and alignment characterise it, as in data sheets."""
        more = (
            self.zipf,
            self.zones,
            self.gap_bytes,
            self.sync,
            self.fsync,
            self.compressible_percent,
            self.dedupe_percent,
            self.align_bytes,
            self.burst_s,
        )
        return self.region_percent == 100 and not any(more)

    @property
    def is_random(self) -> bool:
        """Return whether addresses are random over the whole range (or ``random_percent`` of them)."""
        return PATTERNS[self.rw][0]

    @property
    def is_skewed(self) -> bool:
        """Return whether some blocks are written far more often than others."""
        return self.writes and (self.zipf > 0 or self.zones != "" or self.region_percent < 100)

    @property
    def pattern(self) -> str:
        """Return what a drive has to be conditioned for: ``random``, ``sequential``, or with its skew.

        The drive places its data after the addresses that were written, so a skew counts only if it
        writes: ``random_zipf120_reg50``.
        """
        addresses = "random" if self.is_random else "sequential"
        zipf = f"_zipf{self.zipf}" if self.is_skewed and self.zipf else ""
        zipf += f"_{self._zoned}" if self.is_skewed and self.zones else ""
        region = f"_reg{self.region_percent}" if self.is_skewed and self.region_percent < 100 else ""
        return f"{addresses}{zipf}{region}"

    @property
    def has_streams(self) -> bool:
        """Return whether reads and writes are independent streams, whose mix is a result."""
        return "+" in self.rw

    @property
    def reads(self) -> bool:
        return PATTERNS[self.rw][1]

    @property
    def writes(self) -> bool:
        return PATTERNS[self.rw][2]

    @property
    def read_fraction(self) -> float:
        """Share of I/Os that are reads, 0…1; for independent streams 0.5, which is only a guess."""
        if self.reads and self.writes:
            return 0.5 if self.has_streams else (self.read_percent or 0) / 100
        return 1.0 if self.reads else 0.0

    @property
    def busy_share(self) -> float:
        """Share of the time in which it does I/O, above 0 to 1."""
        return self.burst_s / (self.burst_s + self.idle_s) if self.burst_s else 1.0

    def bursts(self, seconds: float) -> int:
        """Number of whole bursts, each with its pause, in so many seconds; 0 for a workload without pauses."""
        return int(seconds / (self.burst_s + self.idle_s)) if self.burst_s else 0

    def jobs(self, width: int) -> int:
        """Jobs that drive one target of ``width`` members; for independent streams, per direction."""
        return width * self.streams_per_drive if self.threads is None else self.threads

    def outstanding(self, width: int) -> int:
        """Outstanding I/Os of one target of ``width`` members."""
        return self.jobs(width) * self.qd_per_drive * (2 if self.has_streams else 1)

    def depth_per_member(self, width: int) -> float:
        """Outstanding host I/Os per member: the depth at which one drive's figure is comparable."""
        return self.outstanding(width) / width

    def at(self, qd_per_drive: int) -> Workload:
        """The same workload at another queue depth."""
        return replace(self, qd_per_drive=qd_per_drive)


def _one_spelling(bs: str) -> str:
    if "/" not in bs:
        return format_size(parse_size(bs))
    sizes = _sizes(bs)
    if sum(share for _, share in sizes) != 100 or min(share for _, share in sizes) < 1:
        raise ValueError(f"the shares of {bs} do not add up to 100 %")
    if len({size for size, _ in sizes}) < len(sizes):
        raise ValueError(f"a size appears twice in {bs}")
    return ":".join(f"{format_size(size)}/{share}" for size, share in sizes)


@lru_cache(maxsize=1024)
def _sizes(bs: str) -> tuple[tuple[int, int], ...]:
    if "/" not in bs:
        return ((parse_size(bs), 100),)
    pairs = [part.split("/") for part in bs.split(":")]
    if not all(len(pair) == 2 and pair[1].isascii() and pair[1].isdecimal() for pair in pairs):
        raise ValueError(f"{bs!r} is not a mix of sizes; write e.g. 4k/60:64k/40")
    return tuple((parse_size(size), int(share)) for size, share in pairs)
