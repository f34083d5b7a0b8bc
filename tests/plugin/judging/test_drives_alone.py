"""Which bare drives do the load of a published maximum alone: the slowest, and those that miss it beside the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

READS = "steady_state and raid5x5 and randread_4k_qd8"


def alone(inner: Inner) -> dict[str, list[str]]:
    """The serial numbers of the drives that did each load alone."""
    records: list[dict[str, Any]] = inner.records("alone")
    return {str(record["workload"]): [each["runs"][0]["members"][0] for each in record["drives"]] for record in records}


@pytest.mark.parametrize(
    ("slow", "drives"),
    [
        ("", 1),
        ("SSDQ0003=0.6", ["SSDQ0003"]),
        ("SSDQ0002=0.6,SSDQ0003=0.6", ["SSDQ0002", "SSDQ0003"]),
        # They meet their sheet, and are behind the others.
        ("SSDQ0001=0.92,SSDQ0003=0.92", ["SSDQ0001", "SSDQ0003"]),
    ],
    ids=["all sound", "one misses it", "two miss it", "two are behind"],
)
def test_the_load_of_a_maximum_is_done_alone_by_the_slowest_and_by_all_that_miss_it(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, slow: str, drives: int | list[str]
) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", slow)
    inner.run("--ssd-devices=lab:5", "-o", "ssd_members=true", inner.suite("raid5"), "-k", READS)
    found = alone(inner)
    assert list(found) == ["randread_4k_qd16", "randread_4k_qd32"]
    assert len(found["randread_4k_qd16"]) == 5, "arrays are explained by the loads of their members"
    asked = found["randread_4k_qd32"]
    assert (len(asked) if isinstance(drives, int) else asked) == drives
