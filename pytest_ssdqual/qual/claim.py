"""What can be promised of a product: the claims, each with its unit and the side of the limit that is good."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.qual.units import Unit, format_value


class Claim(StrEnum):
    """By the names used in specs and suites."""

    STEADY_IOPS = "steady_iops"
    P99_LATENCY = "p99_latency"
    LATENCY_SPREAD_OVER_TIME = "latency_spread_over_time"
    LATENCY_SPREAD_BETWEEN_WIDTHS = "latency_spread_between_widths"
    SCALING_SLOPE = "scaling_slope"
    SCALING_DEVIATION = "scaling_deviation"

    @property
    def label(self) -> str:
        """In a sentence: ``p99 latency``."""
        return self.value.replace("_", " ").replace("iops", "IOPS")

    @property
    def unit(self) -> Unit:
        return _SHAPES[self][0]

    @property
    def direction(self) -> Direction:
        """On which side of its limit the claim is kept."""
        return _SHAPES[self][1]


class Direction(StrEnum):
    AT_LEAST = "at_least"
    AT_MOST = "at_most"


_SHAPES = {
    Claim.STEADY_IOPS: (Unit.IOPS, Direction.AT_LEAST),
    Claim.P99_LATENCY: (Unit.NANOSECONDS, Direction.AT_MOST),
    Claim.LATENCY_SPREAD_OVER_TIME: (Unit.RATIO, Direction.AT_MOST),
    Claim.LATENCY_SPREAD_BETWEEN_WIDTHS: (Unit.RATIO, Direction.AT_MOST),
    Claim.SCALING_SLOPE: (Unit.RATIO, Direction.AT_LEAST),
    Claim.SCALING_DEVIATION: (Unit.PERCENT, Direction.AT_MOST),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """Where a promise is broken."""

    direction: Direction
    bound: float
    unit: Unit
    #: Where it comes from, for the evidence: ``default.toml promise[3]``.
    source: str

    def __post_init__(self) -> None:
        if not self.bound > 0:
            raise ValueError(f"a limit must be above zero, not {self.bound}")

    def __str__(self) -> str:
        return f"{self.direction.replace('_', ' ')} {format_value(self.bound, self.unit)}"

    def to_record(self) -> dict[str, object]:
        """Plain data in base units."""
        return {
            "direction": self.direction.value,
            "bound": self.bound,
            "unit": self.unit.value,
            "source": self.source,
        }
