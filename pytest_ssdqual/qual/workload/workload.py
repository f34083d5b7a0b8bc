"""Workload: access pattern, transfer sizes, mix of reads and writes, queue depth, and its id."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_size, parse_size

#: Access patterns; the value says (random, reads, writes). The ones with ``+`` are two independent streams side by
#: side, one that reads and one that writes, each with the whole depth: nothing fixes their mix. ``trimwrite`` discards
#: each block and then writes it, so that the target stays full and reads of it read flash.
PATTERNS = {
    "randread": (True, True, False),
    "randwrite": (True, False, True),
    "randrw": (True, True, True),
    "read": (False, True, False),
    "write": (False, False, True),
    "trimwrite": (False, False, True),
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
    r"(?:_dedup(?P<dedupe_percent>\d+))?(?:_on(?P<burst_s>\d+)s_idle(?P<idle_s>\d+)s)?"
    r"(?:_rate(?P<rate_iops>\d+))?(?:_rate(?P<rate_percent>\d+)pct)?(?:_s(?P<streams_per_drive>\d+))?"
    r"_(?:t(?P<threads>\d+)x)?qd(?P<qd_per_drive>\d+)(?:_beside_(?P<beside>.+))?"
)
#: Its fields that are no numbers.
TEXTS = frozenset({"rw", "bs", "offset", "gap", "sync", "beside", "zones"})
#: Form of ``Workload.zones``.
ZONES = re.compile(r"[1-9]\d?/[1-9]\d?(?::[1-9]\d?/[1-9]\d?)+", re.ASCII)
NAME = re.compile(r"[a-z][a-z0-9]*")
#: fio cannot draw from Zipf's distribution at an exponent of exactly 1; beyond 5 it would use only one block.
ZIPF_FORBIDDEN, ZIPF_MOST = 100, 500
#: I/Os per second of one job at a rate, of each direction. fio takes whole numbers, so a small one is rounded by much;
#: it draws the time between two I/Os in whole microseconds, which above this is wrong by more than one per cent.
LEAST_OF_JOB, MOST_OF_JOB = 20, 10_000


@frozen
class Replay:
    """A trace (`qual.workload.trace`) and the speed of its replay."""

    #: Of its normal form.
    sha256: str
    #: 200 is twice the rate of the trace.
    scale_percent: int
    ios: int
    #: From the first to the last I/O of the trace.
    span_s: float
    bytes_moved: int
    bytes_written: int

    @property
    def due_s(self) -> float:
        """Duration of a replay that keeps its pace."""
        return 100 * self.span_s / self.scale_percent

    def pace(self, seconds: float, ios: int) -> float:
        """Duration of a replay over that of the trace; of a part, what the whole would take at its rate."""
        return seconds * self.ios / (self.due_s * ios)


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
    #: The I/Os are those of a trace, each of ``threads`` jobs has a share; ``bs`` divides their offsets and sizes.
    replay: Replay | None = None
    #: Id of writes that run on the same target beside these reads, in jobs of their own: ``write_128k_qd16``.
    beside: str = ""
    #: I/Os per second that begin at random times (Poisson), whatever the drive does: per drive as the depth, or with
    #: ``threads`` of the target; 0: each job begins one when one ends. The depth is then the most that is outstanding.
    rate_iops: int = 0
    #: The same in per cent of the maximum that the sheet publishes for one drive; the plan makes ``rate_iops`` of it.
    rate_percent: int = 0

    def __post_init__(self) -> None:
        if self.rw not in PATTERNS:
            raise ValueError(f"rw must be one of {', '.join(PATTERNS)}, not {self.rw!r}")
        # Canonical spelling, or equal workloads would be measured twice under two ids.
        object.__setattr__(self, "bs", _one_spelling(self.bs))
        for each in ("offset", "gap", "align"):
            given = getattr(self, each)
            object.__setattr__(self, each, format_size(parse_size(given)) if given != "0" else "0")
        self._check_load()
        self._check_beside()
        self._check_mix()
        self._check_addresses()
        self._check_writes()
        self._check_rate()
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

    def _check_beside(self) -> None:
        """Require reads beside writes: counts of fio tell the two apart by direction, and a drive has a job of each."""
        if not self.beside:
            return
        other = _parsed(self.beside)
        own = PATTERNS[self.rw]
        both = (self, other)
        is_special = any(
            load.threads or load.streams_per_drive > 1 or load.burst_s or load.rate_iops or load.rate_percent
            for load in both
        )
        if own[2] or other.reads or is_special:
            raise ValueError(
                f"{other} cannot run beside {self.rw}: reads run beside writes, both without threads, streams, "
                "pauses or a rate; write e.g. randread_4k_qd1_beside_write_128k_qd16"
            )
        object.__setattr__(self, "beside", str(other))

    def _check_rate(self) -> None:
        if not self.rate_iops and not self.rate_percent:
            return
        if min(self.rate_iops, self.rate_percent) < 0 or (self.rate_iops and self.rate_percent):
            raise ValueError(f"give rate_iops or rate_percent, above 0, not {self.rate_iops} and {self.rate_percent}")
        more = (
            self.zipf,
            self.zones,
            self.fsync,
            self.dedupe_percent,
            self.burst_s,
            self.random_percent < 100,
            self.has_streams,
        )
        if not self.is_random or len(self.sizes) > 1 or any(more):
            raise ValueError("a rate goes with uniform random I/O of one size, without flushes, repetitions or pauses")
        if self.rate_iops:
            shares = [share for share in (self.read_fraction, 1 - self.read_fraction) if share]
            least, most = (self.job_rate * extreme(shares) for extreme in (min, max))
            if least < LEAST_OF_JOB or most > MOST_OF_JOB:
                raise ValueError(
                    f"each of the I/Os outstanding would repeat {self.job_rate:.4g} times a second, {LEAST_OF_JOB} to "
                    f"{MOST_OF_JOB:,} of each direction are possible: change qd_per_drive ({self.qd_per_drive})"
                )

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
        pauses += f"_x{self.replay.scale_percent}" if self.replay else ""
        rate = f"_rate{self.rate_iops}" if self.rate_iops else ""
        rate += f"_rate{self.rate_percent}pct" if self.rate_percent else ""
        where, how = f"{random}{zipf}{offset}{gap}{region}{align}", f"{stable}{entropy}{pauses}{rate}{streams}"
        beside = f"_beside_{self.beside}" if self.beside else ""
        return f"{kind}{where}{how}_{threads}qd{self.qd_per_drive}{beside}"

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
        """Mean transfer size in bytes; exact where all have one size, and beside another workload only a guess."""
        if self.replay:
            return self.replay.bytes_moved / self.replay.ios
        own = sum(size * share for size, share in self.sizes) / 100
        return own if self.aggressor is None else (own + self.aggressor.block_bytes) / 2

    @property
    def aggressor(self) -> Workload | None:
        """The writes that run beside it; None if it is alone."""
        return _parsed(self.beside) if self.beside else None

    @property
    def writer(self) -> Workload:
        """The workload whose writes determine the state of the drives: the aggressor, or itself."""
        return self.aggressor or self

    @property
    def smallest_bytes(self) -> int:
        return min(size for size, _ in self.sizes)

    @property
    def largest_bytes(self) -> int:
        return max(size for size, _ in (*self.sizes, *self.writer.sizes))

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
            self.replay,
            self.beside,
            self.rate_iops,
            self.rate_percent,
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
        writes: ``random_zipf120_reg50``. Beside writes it is their pattern.
        """
        if self.aggressor:
            return self.aggressor.pattern
        addresses = "random" if self.is_random else "sequential"
        zipf = f"_zipf{self.zipf}" if self.is_skewed and self.zipf else ""
        zipf += f"_{self._zoned}" if self.is_skewed and self.zones else ""
        region = f"_reg{self.region_percent}" if self.is_skewed and self.region_percent < 100 else ""
        return f"{addresses}{zipf}{region}"

    @property
    def has_streams(self) -> bool:
        """Return whether reads and writes are independent streams, whose mix is a result."""
        return "+" in self.rw or self.beside != ""

    @property
    def has_untimed(self) -> bool:
        """Return whether its jobs also wait for what no latency includes: flushes, or discards."""
        return self.fsync > 0 or self.rw == "trimwrite"

    @property
    def reads(self) -> bool:
        return PATTERNS[self.rw][1]

    @property
    def writes(self) -> bool:
        return PATTERNS[self.rw][2] or self.beside != ""

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
        own = self.jobs(width) * self.qd_per_drive
        if self.aggressor:
            return own + self.aggressor.outstanding(width)
        return 2 * own if self.has_streams else own

    @property
    def job_rate(self) -> float:
        """I/Os per second of each job at a rate, of which each has one outstanding; 0 without a rate."""
        return self.rate_iops / (self.qd_per_drive * (self.threads or self.streams_per_drive))

    @property
    def job_gap_ns(self) -> float:
        """Nanoseconds between two I/Os of a job in an open loop, on average; 0 if each begins when one ends."""
        if self.replay:
            return 1e9 * self.jobs(1) * self.replay.due_s / self.replay.ios
        return 1e9 / self.job_rate if self.rate_iops else 0.0

    def asked_iops(self, width: int) -> float:
        """I/Os per second that one target of ``width`` members is asked for; 0 without a rate."""
        return self.job_rate * self.outstanding(width)

    def depth_per_member(self, width: int) -> float:
        """Outstanding host I/Os per member: the depth at which one drive's figure is comparable."""
        return self.outstanding(width) / width

    def at(self, qd_per_drive: int) -> Workload:
        """The same workload at another queue depth."""
        return replace(self, qd_per_drive=qd_per_drive)


@lru_cache(maxsize=64)
def _parsed(name: str) -> Workload:
    return Workload.parse(name)


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
