from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.sheet import PRODUCT, figure, loaded, promise

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.combined import combine
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.workload import Workload

TWO, ARRAY = Geometry.parse("drivex2"), Geometry.parse("raid0x2")
READS = Workload("randread", "4k", 8)
RATE = figure(rw="randread", bs="4k", queue_depths=[8], iops=1_000)


def sheets(fast: str, slow: str) -> Spec:
    one, other = (loaded(PRODUCT + text) for text in (fast, slow))
    return combine({"S1": replace(one, key="fast"), "S2": replace(other, key="slow")})


def test_drives_with_the_same_sheet_have_it() -> None:
    acme = loaded(PRODUCT + RATE)
    assert combine({"S1": acme, "S2": acme}) is acme
    assert acme.assignment == ""


def test_each_drive_has_the_limit_of_its_own_sheet() -> None:
    both = sheets(RATE, RATE.replace("1000", "400"))
    limit = both.limit(Claim.STEADY_IOPS, TWO, READS)
    assert limit is not None
    own = {drive: each.bound for drive in ("S1", "S2", "") if (each := limit.of(drive))}
    assert own == {"S1": 900, "S2": 360, "": 360}


@pytest.mark.parametrize(("fast", "slow", "unit"), [("16k", "8k", 8192), ("16k", "", None), ("64k", "64k", 65536)])
def test_drives_of_two_sheets_map_as_much_as_the_lesser_says(fast: str, slow: str, unit: int | None) -> None:
    lines = (f'indirection_unit = "{each}"\n' if each else "" for each in (fast, slow))
    assert sheets(*lines).unit_bytes == unit


@pytest.mark.parametrize(("preferred", "unit"), [(None, 16384), (16384, 16384), (8192, 8192), (262144, 16384)])
def test_drives_map_no_more_than_they_prefer_to_be_written(preferred: int | None, unit: int) -> None:
    sheet = loaded(PRODUCT + 'indirection_unit = "16k"\n')
    assert replace(sheet, preferred_write_bytes=preferred).unit_bytes == unit


@pytest.mark.parametrize(
    ("claim", "fast", "slow", "bound"),
    [
        ("steady_iops", {"at_least": "900 IOPS"}, {"at_least": "400 IOPS"}, 400),
        ("p99_latency", {"at_most": "1 ms"}, {"at_most": "3 ms"}, 3_000_000),
    ],
)
def test_an_array_has_the_limit_of_its_slowest_drive(
    claim: str, fast: dict[str, str], slow: dict[str, str], bound: float
) -> None:
    both = sheets(promise(claim=claim, **fast), promise(claim=claim, **slow))
    limit = both.limit(Claim(claim), ARRAY, READS)
    assert limit is not None
    assert (limit.bound, limit.of("S1")) == (bound, limit)


def test_drives_of_other_arrays_do_not_lower_a_limit() -> None:
    fast, slow = (
        replace(loaded(PRODUCT + rate + promise(claim="steady_iops", at_least=least)), key=key)
        for rate, least, key in ((RATE, "900 IOPS", "fast"), (RATE.replace("1000", "400"), "400 IOPS", "slow"))
    )
    three = combine({"S1": fast, "S2": fast, "S3": slow})
    wider = Geometry.parse("raid0x3")
    bounds = [limit.bound for each in (ARRAY, wider) if (limit := three.limit(Claim.STEADY_IOPS, each, READS))]
    assert bounds == [900, 400]
    assert three.expected_iops(ARRAY, READS) == pytest.approx(2_000)
    assert three.expected_iops(wider, READS) == pytest.approx(1_200)


def test_neither_drive_nor_array_without_a_limit_is_judged() -> None:
    silent = promise(claim="steady_iops", level="raid1", at_least="1 IOPS")
    both = sheets(RATE, silent)
    limit = both.limit(Claim.STEADY_IOPS, TWO, READS)
    assert limit is not None
    assert limit.of("S1") is not None
    assert limit.of("S2") is None
    assert both.limit(Claim.STEADY_IOPS, ARRAY, READS) is None
    assert both.why_no_limit(Claim.STEADY_IOPS, ARRAY, READS).startswith("ACME 9 promises")


def test_no_promise_of_how_alike_different_models_are() -> None:
    both = sheets(RATE, RATE.replace("1000", "400"))
    assert both.limit(Claim.MEMBER_SPREAD, TWO, READS) is None
    assert "different sheets" in both.why_no_limit(Claim.MEMBER_SPREAD, TWO, READS)


def test_a_figure_is_that_of_a_drive() -> None:
    both = sheets(RATE, RATE.replace("1000", "400"))
    assert both.published(Claim.STEADY_IOPS, TWO, READS) is None
    found = both.of("S2").published(Claim.STEADY_IOPS, TWO, READS)
    assert found is not None
    assert found.value == 400


def test_heat_is_promised_only_if_every_sheet_promises_it() -> None:
    heat = promise(claim="sustained_temperature", at_most="70 °C")
    assert sheets(heat, heat).promises_heat(TWO, READS)
    assert not sheets(heat, RATE).promises_heat(TWO, READS)


def of_another(percent: int, **more: object) -> str:
    return promise(claim="steady_iops", relative_to="randwrite_4k_qd8", at_least=f"{percent} %", **more)


def of_baseline(percent: int) -> str:
    return promise(claim="steady_iops", min_percent_of_baseline=percent)


NUMBER = promise(claim="steady_iops", at_least="300 IOPS")
LATENCY = promise(claim="p99_latency", at_most="1 ms")


@pytest.mark.parametrize(
    ("fast", "slow"),
    [
        (of_another(80), of_another(30)),
        (of_another(80), NUMBER),
        (NUMBER, of_another(80)),
        (of_another(80), of_another(80, level="raid0")),
        (of_another(80), LATENCY),  # the default promises are in per cent of figures
        (of_baseline(95), of_baseline(50)),
        (of_baseline(95), NUMBER),
        (of_baseline(95), of_another(95)),
        (promise(claim="steady_iops", workload="*_qd8", at_least="1 IOPS") + of_another(80), of_another(80)),
    ],
)
def test_promises_in_per_cent_of_a_measurement_must_be_the_same(fast: str, slow: str) -> None:
    with pytest.raises(ValueError, match="promises of steady_iops"):
        sheets(fast, slow)


@pytest.mark.parametrize("other", ["", NUMBER.replace("300", "900"), RATE])
def test_equal_promises_in_per_cent_are_those_of_all_drives(other: str) -> None:
    both = sheets(of_another(80, workload="randread*") + NUMBER, of_another(80, workload="randread*") + other)
    relation = both.relation(Claim.STEADY_IOPS, TWO, READS)
    assert relation is not None
    assert relation.percent == 80
    again = sheets(of_baseline(95) + NUMBER, of_baseline(95) + other).relation(Claim.STEADY_IOPS, TWO, READS)
    assert again is not None
    assert again.percent == 95


def test_limits_and_baselines_of_drives_are_not_mixed() -> None:
    text = promise(claim="steady_iops", min_percent_of_spec=90) + of_baseline(95)
    both = sheets(RATE + text, text)
    assert both.limit(Claim.STEADY_IOPS, TWO, READS) is None
    assert both.relation(Claim.STEADY_IOPS, TWO, READS) is None
    assert both.why_no_limit(Claim.STEADY_IOPS, TWO, READS).endswith("of a baseline")
