from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.builders.sheet import PRODUCT, figure, loaded

from pytest_ssdqual.qual.spec import datasheet
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit, Scope
from pytest_ssdqual.qual.spec.datasheet import USUAL_FIGURES
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


def missing(*figures: str) -> set[str]:
    return {kind.name for kind in datasheet.missing_kinds(loaded(PRODUCT + "".join(figures)).figures)}


def test_an_empty_sheet_lacks_every_kind() -> None:
    names = [kind.name for kind in USUAL_FIGURES]
    assert missing() == set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (figure(rw="randread", bs="4k", queue_depths=[32], iops=1000), "randread_iops"),
        (figure(workload="randwrite_4k_t4xqd64", iops=1000), "randwrite_iops"),
        (figure(workload="randrw70_8k_qd32", iops=1000), "randrw_iops"),
        (figure(rw="read", bs="128k", queue_depths=[32], throughput="500 MB/s"), "read_throughput"),
        (figure(rw="write", bs="128k", queue_depths=[32], throughput="500 MB/s"), "write_throughput"),
        (figure(rw="randread", bs="4k", queue_depths=[1], mean_latency="90 us"), "randread_latency"),
        (figure(rw="randwrite", bs="4k", queue_depths=[1], p50_latency="20 us"), "randwrite_latency"),
    ],
)
def test_a_figure_covers_exactly_its_kind(given: str, kind: str) -> None:
    assert {each.name for each in USUAL_FIGURES} - missing(given) == {kind}


def test_a_figure_of_an_array_covers_no_kind() -> None:
    assert len(missing(figure(workload="randread_4k_qd8", array="raid5x4", iops=1000))) == len(USUAL_FIGURES)
