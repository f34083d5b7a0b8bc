"""Dimensions of a workload search, the order of simplicity, and the search's budget.

A workload of a space is the plain one with departures. The simplest one that breaks a promise has the fewest, because
each remaining departure is one more thing that its reader has to consider.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.protocol import LONGEST_PROBE_S, Protocol
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.workload import Workload

#: Values of each dimension, the plainest first; the plain workload's own size precedes all others.
SIZES = ("4k", "8k", "16k", "32k", "64k", "128k", "256k", "2k", "1k", "512")
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
READ_PERCENTS = (100, 0, 70, 50, 30)
OFFSETS = ("0", "512", "4k")
ZIPFS, GAPS = (0, 120), ("0", "4k", "64k", "1m")
REGIONS_PERCENT = (100, 10, 1)
FLUSHES = ("", "sync", "fsync")
COMPRESSIBLE_PERCENTS, DEDUPE_PERCENTS = (0, 50, 90), (0, 50)

#: Value of one dimension.
Value = int | str
#: Length of the second attempt, in multiples of the first.
LONGER = 5


@frozen
class Dimension:
    """A property that can be varied, its plainest value first."""

    name: str
    values: tuple[Value, ...]


@frozen
class Space:
    """All valid combinations of the dimensions' values."""

    #: The workload with the first value of every dimension; random or sequential, like the whole space.
    plain: Workload
    dimensions: tuple[Dimension, ...]

    @classmethod
    def of(cls, plain: Workload, block_bytes: int = 512) -> Space:
        """Build the space around ``plain``, which must be pure reads without any departure, for drives with such
        blocks.

        ValueError for any other workload.
        """
        if plain.writes or not plain.is_usual or plain.offset_bytes or len(plain.sizes) > 1:
            raise ValueError(f"a search starts from plain reads of one size, not from {plain}")
        sizes = dict.fromkeys((plain.bs, *SIZES))
        whole = tuple(each for each in sizes if parse_size(each) % block_bytes == 0)
        offsets = tuple(each for each in OFFSETS if each == "0" or parse_size(each) % block_bytes == 0)
        addresses = Dimension("zipf", ZIPFS) if plain.is_random else Dimension("gap", GAPS)
        return cls(
            plain,
            (
                Dimension("size", whole),
                Dimension("depth", tuple(dict.fromkeys((plain.qd_per_drive, *DEPTHS)))),
                Dimension("reads", READ_PERCENTS),
                Dimension("offset", offsets),
                addresses,
                Dimension("region", REGIONS_PERCENT),
                Dimension("flush", FLUSHES),
                Dimension("compressible", COMPRESSIBLE_PERCENTS),
                Dimension("dedupe", DEDUPE_PERCENTS),
            ),
        )

    def at(self, values: Sequence[Value]) -> Workload:
        """The workload with these values, one of each dimension.

        Values without effect beside the others are dropped: flushes and contents of pure reads, an offset as large as a
        transfer.
        """
        given = dict(zip((each.name for each in self.dimensions), values, strict=True))
        size, reads = str(given["size"]), int(given["reads"])
        writes = reads < 100
        offset = str(given["offset"])
        fits = offset == "0" or parse_size(offset) < parse_size(size)
        return replace(
            self.plain,
            rw=_pattern(reads, is_random=self.plain.is_random),
            bs=size,
            qd_per_drive=int(given["depth"]),
            read_percent=reads if 0 < reads < 100 else None,
            offset=offset if fits else "0",
            zipf=int(given.get("zipf", 0)),
            gap=str(given.get("gap", "0")),
            region_percent=int(given["region"]),
            sync=writes and given["flush"] == "sync",
            fsync=int(writes and given["flush"] == "fsync"),
            compressible_percent=int(given["compressible"]) if writes else 0,
            dedupe_percent=int(given["dedupe"]) if writes else 0,
        )

    def values(self, workload: Workload) -> tuple[Value, ...]:
        """Inverse of ``at``; ValueError for a workload that is not in this space."""
        found: dict[str, Value] = {
            "size": workload.bs,
            "depth": workload.qd_per_drive,
            "reads": round(100 * workload.read_fraction),
            "offset": workload.offset,
            "zipf": workload.zipf,
            "gap": workload.gap,
            "region": workload.region_percent,
            "flush": next((name for name in ("sync", "fsync") if getattr(workload, name)), ""),
            "compressible": workload.compressible_percent,
            "dedupe": workload.dedupe_percent,
        }
        values = tuple(found[each.name] for each in self.dimensions)
        known = all(value in each.values for value, each in zip(values, self.dimensions, strict=True))
        if not known or self.at(values) != workload:
            raise ValueError(f"{workload} is not among the workloads around {self.plain}")
        return values

    def departures(self, workload: Workload) -> tuple[str, ...]:
        """Differences from the plain workload, in words: ``size 64k``, ``flush sync``."""
        return tuple(
            f"{each.name} {value}" + (" %" if each.name in ("reads", "region", "compressible", "dedupe") else "")
            for value, each in zip(self.values(workload), self.dimensions, strict=True)
            if value != each.values[0]
        )

    def complexity(self, workload: Workload) -> tuple[int, int, tuple[int, ...]]:
        """Sort key: fewer departures first, then smaller ones."""
        places = tuple(
            each.values.index(value) for value, each in zip(self.values(workload), self.dimensions, strict=True)
        )
        return sum(place > 0 for place in places), sum(places), places

    def simpler(self, workload: Workload) -> Iterator[Workload]:
        """Yield every workload that has one departure removed or reduced, all others unchanged; simplest first."""
        values = self.values(workload)
        found: dict[Workload, None] = {}
        for index, each in enumerate(self.dimensions):
            for value in each.values[: each.values.index(values[index])]:
                found[self.at((*values[:index], value, *values[index + 1 :]))] = None
        # Values that lost their effect are dropped as well, which may remove more than one departure.
        yield from sorted(found, key=self.complexity)


@frozen
class Budget:
    """Budget of a search, shrinking included."""

    #: Drive time: from the start of fio to its end, ramps and failed attempts included.
    seconds: float
    #: Number of different workloads.
    workloads: int

    def allows(self, spent_s: float, searched: int, next_s: float) -> bool:
        """Return whether one more workload fits that takes ``next_s`` without failures."""
        return searched < self.workloads and spent_s + next_s <= self.seconds


def probing(protocol: Protocol) -> Protocol:
    """Protocol of a probe: the given one, but a single short measurement of fixed length.

    A probe only suggests; the protocol itself measures a suspect again.
    """
    # A round lasts at least a second.
    usual_s = min(protocol.measure.window_s, max(LONGEST_PROBE_S, protocol.steady.window))
    window_s = protocol.explore.measurement_s or usual_s
    return replace(protocol, visits=None, measure=replace(protocol.measure, window_s=window_s, attempts=1, repeats=1))


def longer(probing: Protocol) -> Protocol:
    """Protocol of the second attempt of a failed probe, ``LONGER`` times as long.

    The slowest workloads have too few I/Os in the first attempt, and uneven ones need longer rounds.
    """
    return replace(probing, measure=replace(probing.measure, window_s=LONGER * probing.measure.window_s))


def probe_s(probing: Protocol) -> float:
    """Time of one measurement, seconds."""
    return probing.measure.ramp_s + probing.measure.window_s


def _pattern(read_percent: int, *, is_random: bool) -> str:
    kind = {100: "read", 0: "write"}.get(read_percent, "rw")
    return f"rand{kind}" if is_random else kind
