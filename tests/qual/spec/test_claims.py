from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit, Scope
from pytest_ssdqual.qual.units import Unit

MANUAL = Path(__file__).parents[3] / "docs" / "specs.md"
ROW = re.compile(r"^\| `([a-z0-9._]+)` \| ([^|]+) \| `(at_least|at_most)` \| ([^|]+) \|", flags=re.MULTILINE)
UNITS = {
    "IOPS": Unit.IOPS,
    "latency": Unit.NANOSECONDS,
    "throughput": Unit.BYTES_PER_SECOND,
    "ratio": Unit.RATIO,
    "per cent": Unit.PERCENT,
    "time": Unit.SECONDS,
    "count": Unit.COUNT,
    "temperature": Unit.CELSIUS,
}


def test_the_manual_has_every_claim_with_its_unit_and_direction() -> None:
    rows = {name: (UNITS[unit], Direction(direction)) for name, unit, direction, _ in ROW.findall(MANUAL.read_text())}
    assert rows == {claim.value: (claim.unit, claim.direction) for claim in Claim}


def test_labels_are_words_and_all_different() -> None:
    labels = [claim.label for claim in Claim]
    assert len(set(labels)) == len(labels)
    assert not [label for label in labels if "_" in label or "iops" in label or "qd" in label]
    assert Claim.P99_9_LATENCY.label == "p99.9 latency"
    assert Claim.READ_IOPS.label == "read IOPS"


def test_every_claim_needs_something_measured() -> None:
    assert {claim.scope for claim in Claim} == set(Scope)


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan")])
def test_no_limit_is_zero_or_less(bound: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Limit(Direction.AT_LEAST, bound, Unit.IOPS, "here")


def test_a_limit_is_a_sentence() -> None:
    limit = Limit(Direction.AT_MOST, 1_400_000, Unit.NANOSECONDS, "acme.toml promise[0]")
    assert str(limit) == "at most 1.4 ms"
