from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.validity import attribution
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.validity.side_by_side import DriveFigure, SideBySide, Trait, TraitKind, attribute

NODE, HBA, FIRMWARE = (
    (TraitKind.PLACE, "NUMA node"),
    (TraitKind.SHARED, "SAS controller"),
    (TraitKind.DRIVE, "firmware"),
)
SCHEDULER = TraitKind.HOST, "I/O scheduler"


def drives(
    *scores: float,
    kind: tuple[TraitKind, str] = NODE,
    values: Sequence[str] = (),
    alone: Mapping[str, float] | None = None,
) -> SideBySide:
    """Drives of which those below their limit break the promise; ``values`` are of one trait."""
    figures = [
        DriveFigure(f"S{number}", score, score < 1, 0.01, frozenset([Trait(*kind, values[number])] if values else []))
        for number, score in enumerate(scores)
    ]
    return SideBySide(tuple(figures), together=(alone or {}).get)


def answer(found: SideBySide) -> tuple[Culprit, tuple[str, ...]]:
    cause = attribute(found)
    return cause.culprit, cause.drives


@pytest.mark.parametrize("others", [1, 2, 3, 7, 23])
def test_drive_far_behind_its_siblings_is_named(others: int) -> None:
    cause = attribute(drives(0.6, *[1.02] * others))
    assert (cause.culprit, cause.drives) == (Culprit.DRIVE, ("S0",))
    assert "59 %" in cause.evidence
    assert cause.confidence > 0.9


def test_what_most_drives_show_is_the_product() -> None:
    assert answer(drives(*[0.8] * 8)) == (Culprit.PRODUCT, ())
    assert answer(drives(*[0.8] * 5, *[1.02] * 3)) == (Culprit.PRODUCT, ())
    assert "drive S0 most" in attribute(drives(0.4, *[0.9] * 7)).evidence


def test_a_drive_within_the_scatter_of_its_lot_is_not_named() -> None:
    assert answer(drives(0.97, 1.01, 1.0, 1.005)) == (Culprit.PRODUCT, ())
    # A lot whose drives differ by 5 %.
    assert answer(drives(0.93, 1.01, 1.06, 1.12, 1.17, 1.04, 1.09, 1.2)) == (Culprit.PRODUCT, ())


def test_half_of_the_drives_are_named_only_if_slow_alone() -> None:
    half = drives(*[0.8] * 4, *[1.02] * 4)
    assert answer(half) == (Culprit.UNKNOWN, ())
    assert answer(replace(half, together=lambda serial: 0.99)) == (Culprit.DRIVES, ("S0", "S1", "S2", "S3"))
    assert answer(replace(half, together=lambda serial: 0.79)) == (Culprit.PATH, ("S0", "S1", "S2", "S3"))
    # They are slower together, and alone they would not keep it either.
    assert answer(replace(half, together=lambda serial: 0.89))[0] is Culprit.UNKNOWN


def test_all_drives_that_are_faster_alone_are_slowed_by_a_path() -> None:
    assert answer(replace(drives(*[0.8] * 4), together=lambda serial: 0.75))[0] is Culprit.PATH


def test_path_is_proven_by_the_same_load() -> None:
    slowed = replace(drives(*[0.8] * 4), together=lambda serial: 0.75)
    assert not attribute(slowed).is_proven
    known = {"S0": 0.75, "S1": 0.75, "S2": 0.99, "S3": 0.75}
    cause = attribute(replace(slowed, alone=known))
    assert cause.is_proven
    assert (cause.culprit, cause.drives) == (Culprit.PATH, ("S0", "S1", "S3"))


def test_a_path_that_excuses_no_drive_is_not_the_cause() -> None:
    slowed = replace(drives(*[0.8] * 4), together=lambda serial: 0.75)
    assert answer(replace(slowed, alone=dict.fromkeys(("S0", "S1", "S2", "S3"), 0.99))) == (Culprit.PRODUCT, ())


@pytest.mark.parametrize(("share", "is_proven"), [(0.75, True), (0.99, False), (None, False)])
def test_a_host_is_proven_by_drives_that_keep_the_promise_alone(share: float | None, is_proven: bool) -> None:
    busy = replace(drives(*[0.8] * 4), host=attribution.cause(Culprit.HOST, "busy"))
    alone = {} if share is None else {f"S{number}": share for number in range(4)}
    cause = attribute(replace(busy, alone=alone))
    assert (cause.culprit, cause.is_proven) == (Culprit.HOST, is_proven)


@pytest.mark.parametrize(
    ("kind", "values", "culprit"),
    [
        (HBA, "aaaabbbb", Culprit.PATH),
        (NODE, "00001111", Culprit.PATH),
        (SCHEDULER, "bbbbnnnn", Culprit.HOST),
        (FIRMWARE, "11112222", Culprit.DRIVES),
        # Others share it, too, so it distinguishes nobody.
        (HBA, "aaaaaabb", Culprit.UNKNOWN),
    ],
)
def test_what_exactly_the_slow_half_shares_decides(kind: tuple[TraitKind, str], values: str, culprit: Culprit) -> None:
    assert answer(drives(*[0.8] * 4, *[1.02] * 4, kind=kind, values=values))[0] is culprit


@pytest.mark.parametrize(
    ("values", "culprit"),
    [("1000", Culprit.PATH), ("1001", Culprit.DRIVE), ("1234", Culprit.DRIVE)],
)
def test_drive_at_a_place_of_its_own_is_not_named(values: str, culprit: Culprit) -> None:
    assert answer(drives(0.8, 1.02, 1.02, 1.02, values=values)) == (culprit, ("S0",))


def test_a_busy_host_is_the_cause_of_what_most_drives_show_only() -> None:
    host = attribution.cause(Culprit.HOST, "its CPUs were 93% busy")
    assert answer(replace(drives(*[0.8] * 4), host=host))[0] is Culprit.HOST
    assert answer(replace(drives(0.8, 1.02, 1.02, 1.02), host=host)) == (Culprit.DRIVE, ("S0",))


def test_comparison_is_broken_by_the_drives_behind() -> None:
    spread = replace(drives(300, 300, 204, 300), behind=0.85, compares=True)
    assert answer(spread) == (Culprit.DRIVE, ("S2",))
    # One drive is faster than all others: none is behind.
    assert answer(replace(drives(200, 100, 100, 100), behind=0.85, compares=True)) == (Culprit.PRODUCT, ())


def test_without_scores_the_drives_that_break_it_are_counted() -> None:
    """A limit of zero has no ratio."""
    one = [DriveFigure(f"S{number}", None, number == 0) for number in range(4)]
    assert answer(SideBySide(tuple(one))) == (Culprit.DRIVE, ("S0",))
    assert answer(SideBySide(tuple(replace(each, breaks=True) for each in one)))[0] is Culprit.PRODUCT


def test_a_single_drive_is_named_without_confidence() -> None:
    cause = attribute(drives(0.5))
    assert (cause.culprit, cause.drives, cause.confidence) == (Culprit.DRIVE, ("S0",), 0.5)


@given(st.lists(st.floats(0.01, 2), min_size=2, max_size=24), st.randoms())
def test_a_named_drive_is_behind_the_median_of_the_others(scores: list[float], source: object) -> None:
    found = drives(*scores)
    if not found.broken:
        return
    cause: Cause = attribute(found)
    if cause.culprit.is_drive:
        assert all(found.shares[serial] < found.behind for serial in cause.drives)
        assert 2 * len(cause.drives) <= len(scores)
