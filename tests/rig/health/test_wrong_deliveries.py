"""The inspection finds each wrong delivery by the check that is for it, names its drive, and nothing else deviates."""

from __future__ import annotations

import pytest
from support.documents import golden
from support.documents import wrong_deliveries as wrong
from support.documents.wrong_deliveries import DELIVERIES, Delivery

from pytest_ssdqual.qual.inspection import checks
from pytest_ssdqual.qual.inspection.checks import Answer


def found(delivery: Delivery) -> dict[str, checks.InspectionVerdict]:
    records = delivery.records()
    return {
        name: checks.InspectionVerdict(name, checks.check(name, records, delivery.limits)) for name in checks.CHECKS
    }


@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda each: each.name.replace(" ", "-"))
def test_a_wrong_delivery_fails_by_name(delivery: Delivery) -> None:
    verdicts = found(delivery)
    deviating = {name for name, each in verdicts.items() if each.answer is Answer.DEVIATES}
    assert deviating == {delivery.check, *delivery.also}
    own = verdicts[delivery.check]
    serials = {delivery.records()[number].name for number in delivery.wrong}
    assert {each.drive for each in own.of(Answer.DEVIATES)} == serials
    assert all(f"drive {serial} " in own.sentence for serial in serials)
    assert not own


@pytest.mark.parametrize("kind", ["nvme", "sata", "sas"])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_right_delivery_deviates_in_nothing(kind: str, ordered: bool) -> None:
    verdicts = found(Delivery("right", "", kind, wrong=(), ordered=ordered))
    assert [each.sentence for each in verdicts.values() if each.answer is Answer.DEVIATES] == []
    unknown = {name for name, each in verdicts.items() if each.answer is Answer.UNKNOWN}
    # smartctl does not report what a SAS drive can do at most, so its link needs an order.
    assert unknown == ({"link_speed"} if kind == "sas" and not ordered else set())
    assert sum(bool(each) for each in verdicts.values()) >= 11


def test_every_check_catches_a_delivery() -> None:
    # Whatever a drive does by itself is no deviation.
    assert {each.check for each in DELIVERIES} == set(checks.CHECKS) - {"activity"}


def test_the_document_lists_every_delivery() -> None:
    assert len({each.name for each in DELIVERIES}) == len(DELIVERIES) >= 25
    if wrong.is_to_be_written():
        wrong.write(wrong.table())
    assert wrong.committed() == wrong.table(), (
        f"write it anew: {wrong.WRITE}=1 pytest tests/rig/health/test_wrong_deliveries.py"
    )


def test_golden_sentences() -> None:
    golden.check("inspection.txt", "\n".join(found(each)[each.check].sentence for each in DELIVERIES) + "\n")
