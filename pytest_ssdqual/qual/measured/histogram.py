"""Latency histogram in fio's own buckets: added and subtracted exactly, never re-binned, never averaged.

fio (stat.h, ``FIO_IO_U_PLAT_BITS`` = 6) divides every power of two into 64 buckets and prints each by its middle
(``plat_idx_to_val``), below 128 ns by its exact value. So a printed value is within 1/128 = 0.78 % of the true one, and
the printed value identifies its bucket.

Of an open loop, latencies count from the time at which an I/O should have begun, not from that at which it did. A job
of fio has one I/O outstanding. While that one is late, the next ones of the job should have begun, and fio begins them
afterwards, with a latency that lacks the wait (coordinated omission). fio 3.33 has no latency that includes it:
``io_submit_mode=offload`` does, but hangs at its start before fio 3.42 (fio 736c2015), and reports no latency before
its end. The jobs begin at their times whatever other jobs wait for, so only what one job omits has to be added.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.uint64]

_PLAT_BITS = 6
#: Number of histograms summed at a time: 500 buckets of each are half a megabyte.
_AT_A_TIME = 64

#: The middle of fio's last bucket, which also takes everything slower than 2**34 ns = 17.2 s (fio issue 1668).
LAST_BUCKET_NS = 17_112_760_320


class Bucket(NamedTuple):
    """One bucket: latencies ``low_ns`` <= t < ``high_ns``, printed by fio as ``value_ns``."""

    low_ns: int
    value_ns: int
    high_ns: int

    @property
    def is_last(self) -> bool:
        """Return whether ``high_ns`` is not a bound, because fio counts everything slower in this bucket too."""
        return self.value_ns >= LAST_BUCKET_NS


def bucket_of(value_ns: int) -> Bucket:
    """Return the bucket that fio prints as ``value_ns``."""
    shift = max(0, value_ns.bit_length() - 1 - _PLAT_BITS)
    low_ns = (value_ns >> shift) << shift
    return Bucket(low_ns, value_ns, low_ns + (1 << shift))


def packed_buckets(values_ns: Iterable[int]) -> bytes:
    """Pack the middles of buckets for ``LatencyHistogram.in_buckets``; ValueError unless they rise."""
    try:
        packed = array("Q", values_ns)
    except OverflowError as error:
        raise ValueError("a bucket beyond 64 bits") from error
    if not all(one < other for one, other in pairwise(packed)):
        raise ValueError("buckets must rise")
    return packed.tobytes()


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
    def in_buckets(cls, buckets: bytes, counts: Sequence[int]) -> LatencyHistogram:
        """Build from a count for each of ``packed_buckets``, some of which may be 0; ValueError as for bins."""
        if counts and min(counts) > 0 and len(buckets) == 8 * len(counts):
            try:
                return cls._packed(buckets, array("Q", counts).tobytes())
            except OverflowError:
                pass  # ``__init__`` raises with the value
        bins = zip(array("Q", buckets), counts, strict=True)
        return cls((value_ns, count) for value_ns, count in bins if count)

    @classmethod
    def merged(cls, histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """Sum of many histograms, in one pass; ValueError beyond 64 bits."""
        rest = filter(None, histograms)
        found = next(rest, None)
        if found is None:
            return EMPTY
        while some := list(islice(rest, _AT_A_TIME)):
            found = cls._sum([found, *some])
        return found

    @classmethod
    def _sum(cls, histograms: Sequence[LatencyHistogram]) -> LatencyHistogram:
        import numpy as np

        columns = [histogram._columns() for histogram in histograms]
        values = np.concatenate([values for values, _ in columns])
        counts = np.concatenate([counts for _, counts in columns])
        if int(counts.max()) * len(columns) >= 1 << 64:  # numpy would wrap around
            totals: dict[int, int] = {}
            for value_ns, count in zip(values.tolist(), counts.tolist(), strict=True):
                totals[value_ns] = totals.get(value_ns, 0) + count
            return cls.from_bins(totals)
        order = values.argsort(kind="stable")
        values, counts = values[order], counts[order]
        begins = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
        return cls._packed(values[begins].tobytes(), np.add.reduceat(counts, begins).tobytes())

    @classmethod
    def _packed(cls, values_ns: bytes, counts: bytes) -> LatencyHistogram:
        """Build from columns that are already validated."""
        made = cls.__new__(cls)
        object.__setattr__(made, "_values_ns", values_ns)
        object.__setattr__(made, "_counts", counts)
        return made

    def _columns(self) -> tuple[Column, Column]:
        import numpy as np

        return np.frombuffer(self._values_ns, np.uint64), np.frombuffer(self._counts, np.uint64)

    def __add__(self, other: LatencyHistogram) -> LatencyHistogram:
        if not other:
            return self
        return LatencyHistogram.merged((self, other)) if self else other

    def __sub__(self, earlier: LatencyHistogram) -> LatencyHistogram:
        """Counts added since ``earlier`` to a histogram that only grows; ValueError if it shrank."""
        if not earlier:
            return self
        if not self:
            raise ValueError("not a later state of the same histogram: nothing is left of it")
        import numpy as np

        values, counts = self._columns()
        old_values, old_counts = earlier._columns()
        if self._values_ns == earlier._values_ns:
            before = old_counts
        else:
            # If a bucket is gone, the place found holds another one, or lies behind the last.
            places = np.minimum(np.searchsorted(values, old_values), len(values) - 1)
            if bool((values[places] != old_values).any()):
                raise ValueError("not a later state of the same histogram: a bucket has become empty")
            before = np.zeros(len(values), np.uint64)
            before[places] = old_counts
        if bool((less := counts < before).any()):
            at = int(less.argmax())
            lost = int(before[at]) - int(counts[at])
            raise ValueError(f"not a later state of the same histogram: -{lost} I/Os at {values[at]} ns")
        added = counts - before
        used = added != 0
        return self._packed(values[used].tobytes(), added[used].tobytes())

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
        """Number of all I/Os."""
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
        """Bucket of the ``q`` quantile (0 < q <= 1), by fio's rule: the first at which at least ``q`` of all I/Os are
        counted.

        ValueError when empty, or if ``q`` is out of range.
        """
        if not 0 < q <= 1:
            raise ValueError(f"a quantile is above 0 and at most 1, not {q}")
        self._bounds()
        # 0.999 × 1000 may be 999.0000000000001 in floats, which must not require one I/O more.
        wanted = math.ceil(q * self.total * (1 - 1e-12))
        counted = 0
        for value_ns, count in self.bins:
            counted += count
            if counted >= wanted:
                return bucket_of(value_ns)
        return bucket_of(self.max_ns)

    def count_above(self, latency_ns: float) -> int:
        """Number of I/Os that may have been slower than ``latency_ns``: every bucket that reaches past it.

        The conservative side: a limit inside a bucket is never met by rounding.
        """
        return sum(count for value_ns, count in self.bins if bucket_of(value_ns).high_ns - 1 > latency_ns)

    def _bounds(self) -> tuple[int, int]:
        if not self:
            raise ValueError("the histogram is empty")
        values_ns = array("Q", self._values_ns)
        return values_ns[0], values_ns[-1]


#: Sum of no I/Os: a measurement of a day has hundreds of thousands of intervals without reads or without writes.
EMPTY = LatencyHistogram()


def from_intended_starts(latencies: Iterable[LatencyHistogram], gap_ns: float) -> Iterator[LatencyHistogram]:
    """Yield the histogram of as many I/Os for each of consecutive intervals.

    ``gap_ns``: nanoseconds between two I/Os of a job, on average. An I/O of n gaps stands for others that should have
    begun one, two, … gaps after it, and were not done before it (the correction of HdrHistogram for an expected
    interval). fio began these later: they are among the next I/Os that took less than a gap, so as many of these are
    left out, evenly. An I/O of less than two gaps is taken to delay none: of jobs that are always busy this is not so,
    and their figures have no upper end.
    """
    late = Counter[int]()
    for latency in latencies:
        counts, short = Counter[int](), Counter[int]()
        for value_ns, count in latency.bins:
            (counts if value_ns >= gap_ns else short)[value_ns] = count
            for gaps in range(1, int(value_ns / gap_ns)):
                late[bucket_of(round(value_ns - gaps * gap_ns)).low_ns] += count
        begun_late = _thinned(late, min(late.total(), short.total()))
        late -= begun_late
        counts += begun_late + _thinned(short, short.total() - begun_late.total())
        yield LatencyHistogram.from_bins(counts)


def _thinned(bins: Counter[int], total: int) -> Counter[int]:
    """Return ``total`` of the I/Os, as evenly as whole numbers allow."""
    thinned, before, whole = Counter[int](), 0, bins.total()
    for value_ns, count in sorted(bins.items()):
        after = before + count
        thinned[value_ns] = after * total // whole - before * total // whole
        before = after
    return thinned
