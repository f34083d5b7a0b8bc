from __future__ import annotations

import pytest
from support.builders.sheet import PRODUCT, loaded

from pytest_ssdqual.qual.lots import sampling_plan
from pytest_ssdqual.qual.lots.sampling_plan import Plan
from pytest_ssdqual.qual.spec import spec


def plan(**given: object) -> Plan:
    lot = loaded(PRODUCT + table(**given)).lot
    assert lot is not None
    return lot


def table(**given: object) -> str:
    values = {key: f'"{value}"' if isinstance(value, str) else value for key, value in given.items()}
    return "[lot]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


def test_a_spec_without_a_lot_has_no_plan() -> None:
    assert loaded(PRODUCT).lot is None
    assert spec.default().lot is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"size": 500, "aql": "1.0 %"}, "ISO 2859-1 level II, AQL 1 %, code letter H; n = 50, Ac 1"),
        ({"size": 90, "aql": "1 %", "inspection": "III"}, "ISO 2859-1 level III, AQL 1 %, code letter E; n = 13, Ac 0"),
        ({"size": 24, "ltpd": "10 %"}, "LTPD 10 % at 10 % risk; n = 13, Ac 0"),
        ({"size": 500, "ltpd": "10 %", "accept": 1}, "LTPD 10 % at 10 % risk; n = 37, Ac 1"),
        ({"aql": "1 %", "ltpd": "10 %"}, "AQL 1 %, LTPD 10 %; n = 52, Ac 2"),
        ({"sample": 13, "accept": 0}, "as agreed; n = 13, Ac 0"),
        (
            {"size": 40, "sample": 8, "k": 1.74, "by": "variables"},
            "by the s-method of ISO 3951, as agreed; n = 8, k = 1.740",
        ),
        (
            {"aql": "1 %", "ltpd": "10 %", "by": "variables"},
            "by the s-method of ISO 3951, AQL 1 %, LTPD 10 %; n = 21, k = 1.761",
        ),
    ],
)  # fmt: skip
def test_plans(given: dict[str, object], expected: str) -> None:
    chosen = plan(**given)
    assert str(chosen) == expected
    assert chosen.lot == given.get("size")


def test_by_variables_is_the_same_plan_with_fewer_drives() -> None:
    attributes = plan(size=500, aql="1.0 %")
    assert isinstance(attributes, sampling_plan.ByAttributes)
    assert plan(size=500, aql="1.0 %", by="variables") == sampling_plan.as_variables(attributes)
