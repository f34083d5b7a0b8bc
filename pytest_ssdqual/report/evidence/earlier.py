"""What a figure in per cent of a baseline was made of, as evidence keeps it; to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.baseline import Since
from pytest_ssdqual.report.evidence.part import finite, mapping, number


@dataclass(frozen=True, slots=True)
class Ends:
    """A figure and its interval, in base units; an end is None where it is unbounded."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The baseline, and both figures."""

    #: Name of its run folder, and the digest of its records.
    run: str
    sha256: str
    unit: Unit
    now: Ends
    then: Ends


def of_since(since: Since) -> Earlier:
    """What is kept of it."""
    now, then = (Ends(*map(finite, (each.value, each.low, each.high))) for each in (since.now, since.then))
    return Earlier(since.run, since.sha256, since.now.unit, now, then)


def record(earlier: Earlier) -> dict[str, object]:
    """Plain JSON data."""
    ends = {name: {"value": e.value, "low": e.low, "high": e.high} for name, e in _both(earlier)}
    return {"run": earlier.run, "sha256": earlier.sha256, "unit": earlier.unit.value, **ends}


def of_record(plain: object) -> Earlier:
    """The inverse; ``KeyError``, ``TypeError`` or ``ValueError`` if it is none."""
    found = mapping(plain)
    now, then = (_ends(mapping(found[name])) for name in ("now", "then"))
    return Earlier(str(found["run"]), str(found["sha256"]), Unit(str(found["unit"])), now, then)


def _both(earlier: Earlier) -> tuple[tuple[str, Ends], ...]:
    return ("now", earlier.now), ("then", earlier.then)


def _ends(plain: Mapping[str, object]) -> Ends:
    return Ends(number(plain["value"]), number(plain["low"]), number(plain["high"]))
