from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.plugin.searches.integrity import choices
from pytest_ssdqual.qual.integrity import steps as history
from pytest_ssdqual.qual.integrity.array_state import Abilities, ArrayLife, possible
from pytest_ssdqual.qual.integrity.steps import (
    Add,
    Cut,
    Fail,
    Grow,
    ReAdd,
    RebuildMember,
    Remove,
    Restart,
    Step,
    Trim,
    Write,
)
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry

EVERYTHING = Abilities(trim=True, power_cut=True, write_hole=True)
SIZES = (4096, 65536)


def life(shape: str, bitmap: str = "internal", abilities: Abilities = EVERYTHING, spare: int = 2) -> ArrayLife:
    geometry = Geometry.parse(shape)
    return ArrayLife.begin(geometry, bitmap, geometry.width + spare, 4, 69632, abilities)


def after(begin: ArrayLife, *steps: Step) -> ArrayLife:
    for step in steps:
        begin = begin.after(step)
    return begin


@settings(max_examples=30)
@given(st.data(), st.sampled_from(["raid0x2", "raid1x2", "raid1x3", "raid5x3", "raid6x4", "raid10x4"]))
def test_no_more_members_are_lost_than_the_level_allows(data: st.DataObject, shape: str) -> None:
    now = life(shape, data.draw(st.sampled_from(history.BITMAPS)))
    for _ in range(25):
        every = [step for steps in choices(now, SIZES).values() for step in steps]
        now = now.after(data.draw(st.sampled_from(every)))
        assert now.lacking <= FACTS[now.level].may_lose(now.geometry.width)
        groups = [now.whole, now.filling, now.idle, now.failed, now.free]
        assert sum(map(len, groups)) == now.drives
        assert len(now.whole) + len(now.filling) <= now.geometry.width
        assert not now.re_addable & now.members


def test_a_spare_takes_the_place_of_a_failed_member_at_once() -> None:
    now = after(life("raid5x3"), Add(4), Fail(2))
    assert [set(each) for each in (now.whole, now.filling, now.idle, now.failed)] == [{1, 3}, {4}, set(), {2}]
    assert after(now, RebuildMember()).whole == {1, 3, 4}


def test_member_is_readded_only_with_a_bitmap_of_its_gap() -> None:
    gone = (Fail(2), Remove(2))
    assert after(life("raid5x3"), *gone, ReAdd(2)).filling == {2}
    assert life("raid5x3", "none").after(Fail(2)).after(Remove(2)).objection(ReAdd(2))
    assert after(life("raid5x3"), *gone, Add(4)).objection(ReAdd(2))
    assert after(life("raid5x3"), *gone, Restart()).objection(ReAdd(2)) == ""
    assert after(life("raid5x3"), Add(4), *gone).objection(ReAdd(2))


def test_a_restart_drops_what_had_failed() -> None:
    now = after(life("raid5x3"), Fail(2), Restart())
    assert now.failed == frozenset()
    assert 2 in now.free


def test_a_raid6_loses_two_and_not_a_third() -> None:
    now = after(life("raid6x4"), Fail(1), Fail(2))
    assert "raid6x4 cannot lose" in now.objection(Fail(3))


def test_a_member_that_is_being_rebuilt_counts_as_missing() -> None:
    now = after(life("raid5x3"), Fail(1), Add(4))
    assert now.objection(Fail(2))
    assert now.objection(Fail(4)) == ""


@pytest.mark.parametrize(("shape", "width", "regions"), [("raid5x3", 4, 6), ("raid6x4", 5, 6), ("raid1x2", 3, 4)])
def test_an_array_grows_by_a_spare_drive(shape: str, width: int, regions: int) -> None:
    now = life(shape).after(Grow(width))
    assert (now.geometry.width, now.regions) == (width, regions)


@pytest.mark.parametrize(
    ("steps", "step", "why"),
    [
        ((), Write(4, 4096), "there are regions 0 to 3"),
        ((), Write(0, 131072), "a region has 69632 bytes"),
        ((), Cut(9), "there are regions 0 to 3"),
        ((), Trim(9), "there are regions 0 to 3"),
        ((), RebuildMember(), "nothing is being rebuilt"),
        ((), Fail(9), "there are drives 1 to 5"),
        ((), Fail(0), "there are drives 1 to 5"),
        ((), Fail(5), "drive 5 is no member"),
        ((), Remove(1), "drive 1 has not failed"),
        ((), Add(1), "drive 1 is in the array"),
        ((Add(4),), Add(5), "there is a spare"),
        ((Fail(1),), Grow(4), "only a whole array without spares can grow"),
        ((), Grow(1), "drive 1 is in the array"),
        ((Fail(1),), history.CheckArray(), "members are missing"),
    ],
)
def test_what_is_not_possible_says_why(steps: tuple[Step, ...], step: Step, why: str) -> None:
    now = after(life("raid5x3"), *steps)
    assert now.objection(step) == why
    with pytest.raises(ValueError, match=why):
        now.after(step)


def test_a_raid0_can_neither_lose_nor_compare_anything() -> None:
    now = life("raid0x2")
    assert "raid0 cannot lose" in now.objection(Fail(1))
    assert "raid0 has nothing" in now.objection(history.Repair())
    assert "raid10 cannot grow" in life("raid10x4").objection(Grow(5))


def test_what_the_machine_cannot_do_is_not_possible() -> None:
    now = life("raid5x3", abilities=Abilities())
    assert "takes no discards" in now.objection(Trim(0))
    assert "pytest_ssdqual_power_cut" in now.objection(Cut())


def test_the_write_hole_is_entered_only_by_whoever_asks_for_it() -> None:
    careful = Abilities(power_cut=True)
    assert "integrity.write_hole" in after(life("raid5x3", abilities=careful), Fail(1)).objection(Cut(0))
    assert after(life("raid5x3", abilities=careful), Fail(1)).objection(Cut()) == ""
    assert life("raid5x3", abilities=careful).objection(Cut(0)) == ""
    assert after(life("raid1x2", abilities=careful), Fail(1)).objection(Cut(0)) == ""
    assert after(life("raid5x3"), Fail(1)).objection(Cut(0)) == ""


def test_what_is_left_of_a_history_is_possible() -> None:
    written = history.parse("array raid5x3 bitmap internal\nremove 2\nwrite 0 4k\nre-add 2\nfail 9\nfail 1\nfail 2\n")
    assert possible(written, life("raid5x3")).steps == (Write(0, 4096), Fail(1))
