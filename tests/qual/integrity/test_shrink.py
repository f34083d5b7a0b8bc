from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.qual.integrity import steps as history
from pytest_ssdqual.qual.integrity.array_state import Abilities, ArrayLife, shorten
from pytest_ssdqual.qual.integrity.steps import Cut, Fail, ReAdd, Remove, StepSequence, Write
from pytest_ssdqual.qual.raid.geometry import Geometry

RAID5 = Geometry.parse("raid5x3")
BEGIN = ArrayLife.begin(RAID5, "internal", 4, 4, 69632, Abilities(trim=True, power_cut=True, write_hole=True))
LONG = history.parse(
    """array raid5x3 bitmap internal
    write 3 64k
    trim 2
    fail 1
    restart
    add 4
    rebuild
    write 2 16k unflushed
    fail 3
    write 1 64k unflushed
    remove 3
    read
    write 2 16k
    re-add 3
    rebuild
    cut 2 64k
    """
)


def kinds(trial: StepSequence) -> list[type]:
    return [type(step) for step in trial.steps]


def re_added_after_a_write(trial: StepSequence) -> bool:
    found = kinds(trial)
    return ReAdd in found and Write in found[found.index(Remove) : found.index(ReAdd)]


def test_what_has_nothing_to_do_with_it_is_left_out() -> None:
    short = shorten(LONG, BEGIN, re_added_after_a_write)
    assert short.steps == (Fail(3), Remove(3), Write(0, 4096), ReAdd(3))
    assert short.bitmap == "internal"


def test_steps_are_made_simpler_where_that_fails_too() -> None:
    assert str(shorten(LONG, BEGIN, lambda trial: Cut in kinds(trial))) == "array raid5x3 bitmap none\ncut\n"
    needs_region = shorten(LONG, BEGIN, lambda trial: Cut(2, 65536) in trial.steps)
    assert needs_region.steps == (Cut(2, 65536),)


def test_nothing_is_tried_twice_and_not_much_is_tried() -> None:
    tried: list[StepSequence] = []

    def fails(trial: StepSequence) -> bool:
        tried.append(trial)
        return re_added_after_a_write(trial)

    shorten(LONG, BEGIN, fails)
    assert len(tried) == len(set(tried))
    assert len(tried) < 60


def test_what_does_not_happen_again_stays_as_it_was() -> None:
    assert shorten(LONG, BEGIN, lambda trial: False) == LONG


def test_an_empty_history_is_the_shortest() -> None:
    assert shorten(LONG, BEGIN, lambda trial: True).steps == ()


@settings(max_examples=30)
@given(st.sets(st.sampled_from(range(len(LONG.steps))), min_size=1, max_size=3))
def test_only_possible_histories_are_tried(wanted: set[int]) -> None:
    steps = {LONG.steps[index] for index in wanted}

    def fails(trial: StepSequence) -> bool:
        life = replace(BEGIN, bitmap=trial.bitmap == "internal")
        for step in trial.steps:
            assert life.objection(step) == ""
            life = life.after(step)
        return steps <= set(trial.steps)

    assert steps <= set(shorten(LONG, BEGIN, fails).steps)
