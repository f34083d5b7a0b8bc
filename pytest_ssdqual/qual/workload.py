"""What is asked of a drive or an array: access pattern, transfer size, mix and depth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_ssdqual.qual.units import format_size, parse_size

#: fio's names of the access patterns we use; the value says (random, reads, writes).
PATTERNS = {
    "randread": (True, True, False),
    "randwrite": (True, False, True),
    "randrw": (True, True, True),
    "read": (False, True, False),
    "write": (False, False, True),
    "rw": (False, True, True),
}


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """One workload; ``str()`` is its pytest id, e.g. ``randrw70_4k_qd8`` (70 % reads).

    ``qd_per_drive`` is the queue depth per member, as in Intel's paper on the DC S3500 in RAID (329903-001):
    an array of N members is driven with N times as many outstanding I/Os.
    """

    rw: str
    bs: str
    qd_per_drive: int
    read_percent: int | None = None

    def __post_init__(self) -> None:
        if self.rw not in PATTERNS:
            raise ValueError(f"rw must be one of {', '.join(PATTERNS)}, not {self.rw!r}")
        # One spelling only, or equal workloads would be measured twice under two ids.
        object.__setattr__(self, "bs", format_size(parse_size(self.bs)))
        if self.qd_per_drive < 1:
            raise ValueError(f"qd_per_drive must be at least 1, not {self.qd_per_drive}")
        mixed = self.rw in ("randrw", "rw")
        if mixed and (self.read_percent is None or not 0 < self.read_percent < 100):
            raise ValueError(f"rw={self.rw} needs read_percent between 1 and 99, not {self.read_percent}")
        if not mixed and self.read_percent is not None:
            raise ValueError(f"read_percent goes with randrw or rw, not with {self.rw}")

    def __str__(self) -> str:
        mix = "" if self.read_percent is None else str(self.read_percent)
        return f"{self.rw}{mix}_{self.bs}_qd{self.qd_per_drive}"

    @property
    def block_bytes(self) -> int:
        """Transfer size in bytes."""
        return parse_size(self.bs)

    @property
    def is_random(self) -> bool:
        """Whether addresses are uniform random over the whole range."""
        return PATTERNS[self.rw][0]

    @property
    def read_fraction(self) -> float:
        """Share of I/Os that are reads, 0…1."""
        _, reads, writes = PATTERNS[self.rw]
        if reads and writes:
            return (self.read_percent or 0) / 100
        return 1.0 if reads else 0.0

    def at(self, qd_per_drive: int) -> Workload:
        """The same workload at another queue depth per drive."""
        return replace(self, qd_per_drive=qd_per_drive)
