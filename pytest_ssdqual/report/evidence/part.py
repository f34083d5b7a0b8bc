"""Pieces of evidence: named figures, and the several things that one verdict was made of; to JSON and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.qual.spec.datasheet import Published
from pytest_ssdqual.qual.units import Unit


class Finding(StrEnum):
    """What came of it: a verdict's outcome, or just a figure, because nothing was promised."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    OBSERVED = "observed"


@dataclass(frozen=True, slots=True)
class Figure:
    """One more number worth keeping beside a verdict; the unit is in the name: ``mean_latency_ns``."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """One of several that a figure was made of: a drive by its serial number, a workload of a series by its id."""

    name: str
    figures: tuple[Figure, ...] = ()
    #: Of a drive: what came of it, judged by itself.
    outcome: Finding | None = None
    #: What is published of it, of whatever quantity.
    published: tuple[Published, ...] = ()

    def figure(self, name: str) -> float | None:
        return next((each.value for each in self.figures if each.name == name), None)

    def stated(self, unit: Unit) -> Published | None:
        """What is published of it in this unit."""
        return next((each for each in self.published if each.unit is unit), None)


def finite(value: float | None) -> float | None:
    """JSON has neither infinity nor NaN."""
    return value if value is not None and math.isfinite(value) else None


def number(value: object) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"{value!r} is not a number")
    return value


def unbounded(value: object) -> float:
    found = number(value)
    return math.inf if found is None else found


def mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not a mapping")
    return value


def listed(value: object) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{value!r} is not a list")
    return value


def texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, listed(value)))


def figures_record(figures: Iterable[Figure]) -> dict[str, float | None]:
    return {figure.name: finite(figure.value) for figure in figures}


def figures_of_record(plain: object) -> tuple[Figure, ...]:
    return tuple(Figure(name, number(value)) for name, value in mapping(plain).items())


def published_record(published: Published) -> dict[str, object]:
    return {
        "value": published.value,
        "unit": published.unit.value,
        "source": published.source,
        "approximate": published.approximate,
    }


def published_of_record(plain: object) -> Published:
    found = mapping(plain)
    value, unit = unbounded(found["value"]), Unit(str(found["unit"]))
    return Published(value, unit, str(found["source"]), found["approximate"] is True)


def part_record(part: Part) -> dict[str, object]:
    return {
        "name": part.name,
        "figures": figures_record(part.figures),
        "outcome": part.outcome and part.outcome.value,
        "published": [published_record(each) for each in part.published],
    }


def part_of_record(plain: object) -> Part:
    found = mapping(plain)
    return Part(
        name=str(found["name"]),
        figures=figures_of_record(found["figures"]),
        outcome=None if found["outcome"] is None else Finding(str(found["outcome"])),
        published=tuple(map(published_of_record, listed(found["published"]))),
    )
