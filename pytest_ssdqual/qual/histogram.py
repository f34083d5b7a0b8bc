"""Latency histograms in fio's own buckets: summed and differenced exactly, never re-binned, never averaged.

fio (stat.h, ``FIO_IO_U_PLAT_BITS`` = 6) parts every power of two into 64 buckets and prints each by its
middle (``plat_idx_to_val``), below 128 ns by its exact value. A printed value is therefore within
1/128 = 0.78 % of the true one, and its bucket can be found again from the value alone.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_PLAT_BITS = 6

#: The middle of fio's last bucket, which also takes everything slower than 2**34 ns = 17.2 s (fio issue 1668).
LAST_BUCKET_NS = 17_112_760_320


class Bucket(NamedTuple):
    """One bucket: latencies ``low_ns`` <= t < ``high_ns``, printed by fio as ``value_ns``."""

    low_ns: int
    value_ns: int
    high_ns: int

    @property
    def is_last(self) -> bool:
        """Whether ``high_ns`` is no bound at all, because fio counts everything slower here too."""
        return self.value_ns >= LAST_BUCKET_NS


def bucket_of(value_ns: int) -> Bucket:
    """The bucket that fio prints as ``value_ns``."""
    shift = max(0, value_ns.bit_length() - 1 - _PLAT_BITS)
    low_ns = (value_ns >> shift) << shift
    return Bucket(low_ns, value_ns, low_ns + (1 << shift))


@dataclass(frozen=True, slots=True, repr=False, init=False)
class LatencyHistogram:
    """Counts per bucket, without empty buckets.

    Packed, 16 bytes a bucket: five hours of 24 drives are some millions of buckets, and as tuples of tuples each took
    124 bytes (CPython 3.11).
    """

    #: Eight bytes for each bucket in use, in rising order of latency.
    _values_ns: bytes
    _counts: bytes

    def __init__(self, bins: Iterable[tuple[int, int]] = ()) -> None:
        """From ``(value_ns, count)`` in rising order; ValueError if they do not rise or if one is empty."""
        values_ns, counts = array("Q"), array("Q")
        previous = -1
        try:
            for value_ns, count in bins:
                if value_ns <= previous or count < 1:
                    raise ValueError(f"bins must rise and hold something: {count} I/Os at {value_ns} ns")
                values_ns.append(value_ns)
                counts.append(count)
                previous = value_ns
        except OverflowError as error:
            raise ValueError(f"a bin beyond 64 bits: {count} I/Os at {value_ns} ns") from error
        object.__setattr__(self, "_values_ns", values_ns.tobytes())
        object.__setattr__(self, "_counts", counts.tobytes())

    @classmethod
    def from_bins(cls, bins: Mapping[int, int]) -> LatencyHistogram:
        """From fio's ``bins`` (json+): bucket middle in nanoseconds → count. ValueError for negative counts."""
        return cls(sorted((value_ns, count) for value_ns, count in bins.items() if count))

    @classmethod
    def merged(cls, histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """The sum of many, in one pass."""
        counts: dict[int, int] = {}
        for histogram in histograms:
            for value_ns, count in histogram.bins:
                counts[value_ns] = counts.get(value_ns, 0) + count
        return cls.from_bins(counts)

    def __add__(self, other: LatencyHistogram) -> LatencyHistogram:
        if not other:
            return self
        return LatencyHistogram.merged((self, other)) if self else other

    def __sub__(self, earlier: LatencyHistogram) -> LatencyHistogram:
        """What was added since ``earlier`` to a histogram that only grows; ValueError if it shrank."""
        counts = dict(self.bins)
        for value_ns, count in earlier.bins:
            counts[value_ns] = counts.get(value_ns, 0) - count
            if counts[value_ns] < 0:
                raise ValueError(f"not a later state of the same histogram: {counts[value_ns]} I/Os at {value_ns} ns")
        return LatencyHistogram.from_bins(counts)

    @property
    def bins(self) -> Iterator[tuple[int, int]]:
        """``(value_ns, count)`` in rising order."""
        return zip(array("Q", self._values_ns), array("Q", self._counts), strict=True)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __repr__(self) -> str:
        if not self:
            return "<LatencyHistogram: empty>"
        return f"<LatencyHistogram: {self.total:,} I/Os, {self.min_ns:,}…{self.max_ns:,} ns>"

    @property
    def total(self) -> int:
        """All I/Os."""
        return sum(array("Q", self._counts))

    @property
    def min_ns(self) -> int:
        """Middle of the lowest bucket in use; ValueError when empty."""
        return self._bounds()[0]

    @property
    def max_ns(self) -> int:
        """Middle of the highest bucket in use (within 0.78 % of the slowest I/O); ValueError when empty."""
        return self._bounds()[1]

    @property
    def sum_ns(self) -> int:
        """Time spent by all I/Os together, each counted at the middle of its bucket."""
        return sum(value_ns * count for value_ns, count in self.bins)

    @property
    def mean_ns(self) -> float:
        """Mean latency from bucket middles; ValueError when empty."""
        self._bounds()
        return self.sum_ns / self.total

    def quantile(self, q: float) -> Bucket:
        """The bucket that holds the ``q`` quantile (0 < q <= 1), by fio's rule: the first one at which at least
        ``q`` of all I/Os are counted. ValueError when empty.
        """
        if not 0 < q <= 1:
            raise ValueError(f"a quantile is above 0 and at most 1, not {q}")
        self._bounds()
        # 0.999 × 1000 is 999.0000000000001 in places: no I/O more may be asked for than the decimal fraction says.
        wanted = math.ceil(q * self.total * (1 - 1e-12))
        counted = 0
        for value_ns, count in self.bins:
            counted += count
            if counted >= wanted:
                return bucket_of(value_ns)
        return bucket_of(self.max_ns)

    def count_above(self, latency_ns: float) -> int:
        """I/Os that may have been slower than ``latency_ns``: every bucket that reaches past it.

        The strict side of the bucket, so a limit inside a bucket is never met by rounding.
        """
        return sum(count for value_ns, count in self.bins if bucket_of(value_ns).high_ns - 1 > latency_ns)

    def _bounds(self) -> tuple[int, int]:
        if not self:
            raise ValueError("the histogram is empty")
        values_ns = array("Q", self._values_ns)
        return values_ns[0], values_ns[-1]
