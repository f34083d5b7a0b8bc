"""Wrong writes by kind, and what cuts without a loss prove."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.integrity import power_loss, stamp
from pytest_ssdqual.qual.integrity.power_loss import LossKind
from pytest_ssdqual.qual.integrity.reference_model import ReferenceModel, Region, Torn
from pytest_ssdqual.qual.integrity.stamp import Stamp

UNIT, ATOM, UNITS = 4096, 512, 4


def content(*generations: int, block: int = UNIT) -> bytes:
    """One generation in each atomic unit of 512 bytes."""
    atoms = (stamp.filled(Stamp(1, each, at * ATOM // block * block), ATOM) for at, each in enumerate(generations))
    return b"".join(atoms)


def cut(acknowledged: int, *, is_kept: bool = True) -> tuple[ReferenceModel, Region]:
    """A region that held generation 1 and was overwritten with 2, 3, … when the power was cut."""
    model, region = ReferenceModel(1, ATOM), Region(0, 0, UNITS * UNIT)
    model.add([region])
    model.wrote(region, model.begin(UNIT), flushed=True)
    model.cut(region, Torn(model.begin(UNIT, 1 << 16), acknowledged, UNIT, is_kept))
    return model, region


@given(
    acknowledged=st.integers(2, 9), atoms=st.lists(st.integers(-3, 1), min_size=32, max_size=32), is_kept=st.booleans()
)
def test_what_was_acknowledged_is_missed_only_if_it_has_to_be_kept(
    acknowledged: int, atoms: list[int], is_kept: bool
) -> None:
    generations = [max(1, acknowledged + each) for each in atoms]
    model, region = cut(acknowledged, is_kept=is_kept)
    found = power_loss.losses(model.judge(region, content(*generations)), ATOM)
    units = [generations[at : at + 8] for at in range(0, 32, 8)]
    expected: dict[LossKind, int] = {}
    for unit in units if is_kept else ():
        lost = sum(each < acknowledged for each in unit)
        if lost:
            kind = LossKind.LOST if lost == 8 else LossKind.SHORN
            expected[kind] = expected.get(kind, 0) + 1
    assert dict(found) == expected
    if not is_kept:
        assert model.older(region, acknowledged) == sum(min(unit) < acknowledged for unit in units)


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (bytes(UNIT), LossKind.LOST),
        (stamp.filled(Stamp(7, 1, 0), UNIT), LossKind.LOST),
        (stamp.filled(Stamp(1, 5, 1 << 20), UNIT), LossKind.MISPLACED),
        (b"\1" + content(*[5] * 8)[1:], LossKind.DAMAGED),
        (content(*[5] * 8)[:16] + content(*[4] * 8)[16:], LossKind.SHORN),
    ],
)
def test_no_mode_excuses_what_was_never_written_there(wrong: bytes, kind: LossKind, is_kept: bool) -> None:
    model, region = cut(5, is_kept=is_kept)
    rest = content(*[5] * 32)[UNIT:]
    assert power_loss.losses(model.judge(region, wrong + rest), ATOM) == {kind: 1}
    assert power_loss.losses(model.judge(region, b""), ATOM) == {LossKind.DAMAGED: 1}


@given(cuts=st.integers(1, 10_000))
def test_the_bound_is_the_rule_of_three(cuts: int) -> None:
    """With a greater share of losing cuts, no loss in all of them would have a chance below 5 %."""
    share = power_loss.bound_percent(cuts) / 100
    assert (1 - share) ** cuts <= 0.05
    assert share == 1 or share == pytest.approx(3 / cuts)
    assert math.isfinite(power_loss.bound_percent(0))
