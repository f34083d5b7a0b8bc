from __future__ import annotations

from support.builders.strategies import side_by_side

from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.rig.campaign.conditioning_series import ConditioningSeries

#: Twenty values suffice for it.
RULE = SequentialRule(first_s=20, limit_s=100, report_s=1, slowest_s=10)


def test_an_array_has_the_series_of_its_own_drives() -> None:
    found = ConditioningSeries()
    for _ in range(3):
        found.add(side_by_side([[1_000] * 60, [1_000, 500] * 30]))
    assert found.rates == {"S0": [1_000] * 180, "S1": [1_000, 500] * 90}
    assert found.excursions(["S0"], RULE, 0.95)
    assert found.excursions(["S0", "S9"], RULE, 0.95) == ()
    assert found.excursions([], RULE, 0.95) == ()


def test_a_drive_that_was_left_out_of_a_step_has_shown_nothing() -> None:
    found = ConditioningSeries()
    found.add(side_by_side([[1_000] * 60, [1_000] * 60]))
    found.add(side_by_side([[1_000] * 60]))
    assert found.excursions(["S0"], RULE, 0.95)
    assert found.excursions(["S0", "S1"], RULE, 0.95) == ()
