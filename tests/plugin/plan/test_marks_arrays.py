from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.plugin.plan import marks
from pytest_ssdqual.plugin.plan.marks import ArrayRequest, ImpossibleArray, Widths, family, geometries, parse_list
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel

levels = st.sampled_from(RaidLevel)
counts = st.integers(1, 30)


@st.composite
def requests(draw: st.DrawFn) -> ArrayRequest:
    level = draw(levels)
    facts = FACTS[level]
    width = draw(st.none() | st.integers(0, 8).map(lambda more: facts.minimum + more * facts.step))
    most = facts.may_lose(width or facts.minimum)
    return ArrayRequest(level, width, draw(st.integers(0, most)))


@given(requests())
def test_a_request_is_read_back(request: ArrayRequest) -> None:
    assert ArrayRequest.parse(str(request)) == request


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("raid4", "'raid4' is not an array; write one of drive, raid0, raid1, raid5, raid6, raid10, or e.g. raid5x4"),
        ("raid5x", "'raid5x' is not an array"),
        ("raid5x2", "raid5 needs 3 or more drives, not 2"),
        ("raid10x5", "raid10 needs an even number of drives, at least 2, not 5"),
        ("raid0x4-1failed", "raid0 may lose 0 of its members, not 1"),
        ("raid5x4-1rebuilding", "is not an array"),
        ("drive-1failed", "drive may lose 0 of its members, not 1"),
    ],
)
def test_what_is_no_array_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        ArrayRequest.parse(text)


array = pytest.mark.ssd_array


@pytest.mark.parametrize(
    ("mark", "word"),
    [
        (array("raid4"), "'raid4' is not a level"),
        (array(), "give one level"),
        (array("raid0", failed=1), "raid0 may lose 0"),
        (array("raid1", widths=[2], failed=2), "raid1 of 2 may lose 1"),
        (array(default="raid7"), "'raid7' is not an array"),
        (array(default=""), "names no array"),
        (array("raid5", default="raid5"), "default is a complete list"),
        (array(default="raid5", failed=1), "default is a complete list"),
        (array("raid5", width=4), "has no width"),
        (array("raid5", settings=["large"]), "'large' are no settings"),
        (array("raid0", settings=["s256"]), "no stripe cache"),
        (array("raid5", most="x3"), "not 'x3'"),
        (array("raid5", most=0), "at least 1"),
        (array("drive", most=2), "side by side"),
        (array("raid5", widths=["many"]), "many"),
        (array("raid10", widths=[5]), "an even number"),
    ],
)
def test_a_mark_that_makes_no_sense_is_a_sentence(mark: pytest.MarkDecorator, word: str) -> None:
    with pytest.raises(pytest.UsageError, match=rf"^test_it: the mark ssd_array.*{re.escape(word)}"):
        marks._asked(mark.mark, "test_it", ())


def test_a_list_has_each_array_once() -> None:
    assert list(map(str, parse_list("drive, raid5x4,raid0,drive"))) == ["drive", "raid5x4", "raid0"]
    for nothing in ("", " , "):
        with pytest.raises(ValueError, match="names no array"):
            parse_list(nothing)


@given(levels, counts, st.integers(0, 2), st.booleans())
def test_every_array_of_a_level_is_built_and_none_left_out(
    level: RaidLevel, drives: int, missing: int, rebuilding: bool
) -> None:
    facts = FACTS[level]
    if facts.tolerates is not None and missing > facts.tolerates:
        with pytest.raises(ValueError, match=f"{level} may lose"):
            Widths(level, None, missing)
        return
    found = geometries(Widths(level, None, missing), drives, rebuilding=rebuilding and missing > 0)
    built = [each for each in found if isinstance(each, Geometry)]
    wanted = [drives] if level is RaidLevel.DRIVE else range(facts.usual_minimum, drives + 1, facts.step)
    assert [each.width for each in built] == [width for width in wanted if facts.may_lose(width) >= missing]
    assert {(each.missing, each.rebuilding) for each in built} <= {(missing, rebuilding and missing > 0)}
    assert all(str(drives) in each.reason for each in found if isinstance(each, ImpossibleArray))
    assert found


@given(requests(), counts)
def test_a_request_is_one_array_or_the_numbers_that_say_why_not(request: ArrayRequest, drives: int) -> None:
    (found,) = geometries(request, drives)
    if isinstance(found, ImpossibleArray):
        assert str(drives) in found.reason
        assert found.name == str(request)
    else:
        assert (found.level, found.missing) == (request.level, request.missing)
        assert found.width == (request.width or drives) <= drives


@pytest.mark.parametrize(
    ("request_", "drives", "reason"),
    [
        ("raid5", 2, "raid5 needs at least 3 drives, 2 given"),
        ("raid10", 5, "raid10 needs an even number of drives, at least 2, 5 given"),
        ("raid0x24", 8, "needs 24 drives, 8 given"),
        ("raid1-2failed", 2, "raid1 of 2 drives may not lose 2 of them"),
    ],
)
def test_why_not(request_: str, drives: int, reason: str) -> None:
    (found,) = geometries(ArrayRequest.parse(request_), drives)
    assert isinstance(found, ImpossibleArray)
    assert found.reason == reason


def test_an_odd_drive_is_not_left_over_without_a_word() -> None:
    *built, odd = geometries(Widths(RaidLevel.RAID10), 7)
    assert list(map(str, built)) == ["raid10x4", "raid10x6"]
    assert isinstance(odd, ImpossibleArray)
    assert (odd.name, "7 given" in odd.reason) == ("raid10x7", True)


def test_families() -> None:
    found = family(Widths(RaidLevel.RAID5, (3, 5, 9)), 8)
    assert not isinstance(found, ImpossibleArray)
    assert list(map(str, found.geometries)) == ["raid5x3", "raid5x5"]
    drives = family(ArrayRequest(RaidLevel.DRIVE), 8)
    assert isinstance(drives, ImpossibleArray)
    assert "no widths" in drives.reason
    assert str(family(Widths(RaidLevel.DRIVE, (1, 8)), 8)) == "drive"
    too_few = family(Widths(RaidLevel.RAID1, None, 2), 3)
    assert isinstance(too_few, ImpossibleArray)
    assert (too_few.name, "(4 drives), 3 given" in too_few.reason) == ("raid1-2failed", True)


def test_a_request_of_one_width_has_no_others_to_compare() -> None:
    alone = family(ArrayRequest.parse("raid5x4"), 8)
    assert isinstance(alone, ImpossibleArray)
    assert alone.name == "raid5x4"
    assert [family(ArrayRequest.parse("raid5x99"), 8)] == geometries(ArrayRequest.parse("raid5x99"), 8)
    every = family(ArrayRequest.parse("raid5"), 5)
    assert not isinstance(every, ImpossibleArray)
    assert list(map(str, every.geometries)) == ["raid5x3", "raid5x4", "raid5x5"]


@given(st.sampled_from([each for each in RaidLevel if each is not RaidLevel.DRIVE]), counts)
def test_ends_are_the_narrowest_and_the_widest_array(level: RaidLevel, drives: int) -> None:
    every, ends = (geometries(Widths(level, most=most), drives) for most in (None, 2))
    built = [each for each in every if isinstance(each, Geometry)]
    assert [each for each in ends if isinstance(each, Geometry)] == sorted({*built[:1], *built[-1:]})
    assert [each for each in ends if each not in built] == [each for each in every if each not in built]


def test_ends_of_named_widths_and_the_widest_that_is_impossible() -> None:
    found = geometries(Widths(RaidLevel.RAID5, (7, 5, 3, 8, 9), most=2), 7)
    assert list(map(str, found)) == ["raid5x3", "raid5x7", "raid5x9"]
    assert isinstance(found[-1], ImpossibleArray)


@pytest.mark.parametrize(("drives", "widths"), [(8, ["raid5x3", "raid5x8"]), (4, ["raid5x3", "raid5x4"])])
def test_family_of_ends_has_two_widths(drives: int, widths: list[str]) -> None:
    found = family(Widths(RaidLevel.RAID5, most=2), drives)
    assert not isinstance(found, ImpossibleArray)
    assert (found.name, list(map(str, found.geometries))) == ("raid5", widths)
    alone = family(Widths(RaidLevel.RAID5, most=2), 3)
    assert isinstance(alone, ImpossibleArray)
    assert "(4 drives)" in alone.reason
