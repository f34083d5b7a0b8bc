from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ssdqual.qual.integrity import steps
from pytest_ssdqual.qual.integrity.reference_model import Mismatch, MismatchKind, Survival
from pytest_ssdqual.qual.raid.geometry import Geometry

SHORT = steps.parse("array raid5x3 bitmap internal\nfail 2\nwrite 3 64k\nre-add 2\nrebuild\n")
KEPT = Survival(Geometry.parse("raid5x3"), histories=20, steps=800, compared=10_000, atom_bytes=512, seconds=60.0)
STALE = Mismatch(MismatchKind.STALE, 1_234_944, "generation 3", "generation 7")
LOST = replace(KEPT, findings=(STALE, STALE, STALE), shortest=SHORT, replay="pytest --ssd-replay=x.history")


def test_what_survived_is_true_and_says_what_was_tried() -> None:
    assert KEPT
    assert repr(KEPT) == "all data of raid5x3 survived 20 histories with 800 steps"
    assert repr(replace(KEPT, histories=1, steps=7)) == "all data of raid5x3 survived 1 history with 7 steps"


def test_fewer_histories_than_planned_are_told() -> None:
    cut = replace(KEPT, cut_short="of 50 planned ones: integrity.limit was reached")
    assert repr(cut).endswith("800 steps (of 50 planned ones: integrity.limit was reached)")


def test_what_is_lost_is_one_sentence() -> None:
    assert not LOST
    assert repr(LOST) == (
        "raid5x3: 3 blocks of 512 bytes do not hold what was acknowledged and flushed; the first, at byte 1,234,944 of "
        "the array: it holds an earlier write: generation 3, expected generation 7, after: fail 2, write 3 64k, "
        "re-add 2, rebuild; replay it with: pytest --ssd-replay=x.history"
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            Mismatch(MismatchKind.MIXED, 0, "generations 1, 2", "generation 1 or 2", settled=False),
            "what was acknowledged; the",
        ),
        (
            Mismatch(MismatchKind.WRITE_HOLE, 4096, "zeroes", "generation 1"),
            "the write hole has lost data: 1 block of 512 bytes does not hold what was acknowledged and flushed and "
            "was not being written when the power failed; the first, at byte 4,096 of the array: zeroes, expected gen",
        ),
        (
            Mismatch(MismatchKind.DISAGREE, None, "8 sectors do not agree", "0"),
            "copies or parity do not agree: 8 sectors",
        ),
        (Mismatch(MismatchKind.UNREADABLE, None, "fio found a difference"), "raid5x3: fio found a difference, after:"),
        (
            Mismatch(MismatchKind.UNREADABLE, 0, "0 of 4096 bytes were read"),
            "it cannot be read: 0 of 4096 bytes were read",
        ),
    ],
)
def test_each_kind_has_its_words(found: Mismatch, said: str) -> None:
    assert said in repr(replace(LOST, findings=(found,)))


def test_what_does_not_happen_again_is_told() -> None:
    assert "not happen again" in repr(replace(LOST, happened_again=False))
    assert "happen again" not in repr(replace(LOST, happened_again=True))


def test_blocks_are_counted() -> None:
    assert LOST.wrong == 3
    assert replace(LOST, findings=(Mismatch(MismatchKind.DISAGREE, None, "8 sectors"),)).wrong == 0
