from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import run

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain

FOREGROUND = Measured((run([1_000] * 5, geometry="raid5x4-1rebuilding"),))


def rebuild(seconds: float = 100.0, written: int = 50_000_000_000, mismatches: int = 0, damage: str = "") -> Rebuild:
    return Rebuild(Geometry.parse("raid5x4-1rebuilding"), seconds, written, FOREGROUND, mismatches, damage)


def test_the_rate_of_a_member() -> None:
    found = rebuild()
    assert found.rate_bytes_per_s == 500_000_000
    assert found.rate().value == 500_000_000


@given(st.floats(0.1, 1e6), st.integers(0, 10**15), st.floats(0, 60))
def test_the_interval_is_that_of_the_clock(seconds: float, written: int, resolution_s: float) -> None:
    found = replace(rebuild(seconds, written), resolution_s=resolution_s)
    time, rate = found.time(), found.rate()
    assert (time.low, time.high) == (max(0.0, seconds - resolution_s), seconds + resolution_s)
    assert time.is_reading
    assert rate.is_reading
    for end, other in ((time.low, rate.high), (time.high, rate.low)):
        assert other == (pytest.approx(written / end) if end else math.inf)


def test_intact_data_are_true_and_say_so() -> None:
    intact = rebuild().intact
    assert intact
    assert repr(intact) == (
        "data of raid5x4 after 1 of its members was rebuilt: INTACT, all read back as written and all members agree"
    )


@pytest.mark.parametrize(
    ("mismatches", "damage", "said"),
    [
        (8, "", "DAMAGED, md's check found 8 mismatches"),
        (0, "the pattern at 4 GiB was lost", "DAMAGED, the pattern at 4 GiB was lost"),
        (1_024, "2 reads failed", "DAMAGED, md's check found 1,024 mismatches; 2 reads failed"),
    ],
)
def test_either_kind_of_damage_is_enough(mismatches: int, damage: str, said: str) -> None:
    intact = rebuild(mismatches=mismatches, damage=damage).intact
    assert not intact
    assert repr(intact).endswith(said)


def test_the_summary_is_plain_data() -> None:
    summary = plain(rebuild(mismatches=8).summary())
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["geometry"] == "raid5x4-1rebuilding"
    assert (summary["intact"], summary["mismatches"], summary["rate_bytes_per_s"]) == (False, 8, 5e8)


@pytest.mark.parametrize("change", [{"seconds": 0.0}, {"written": -1}, {"mismatches": -1}])
def test_what_cannot_be_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="not a rebuild"):
        rebuild(**change)  # type: ignore[arg-type]
