"""Workloads at a rate: their ids, what each job has to do, and what cannot be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ssdqual.qual.workload.workload import Workload


@pytest.mark.parametrize("rate", [{"rate_iops": 40_000}, {"rate_percent": 70}])
@pytest.mark.parametrize("more", [{}, {"streams_per_drive": 2}, {"threads": 4}])
def test_an_id_is_read_back(rate: dict[str, Any], more: dict[str, Any]) -> None:
    workload = Workload("randread", "4k", 64, **rate, **more)
    assert Workload.parse(str(workload)) == workload
    assert not workload.is_usual


def test_a_rate_is_per_drive_or_of_the_target_with_threads() -> None:
    assert Workload("randread", "4k", 64, rate_iops=40_000).asked_iops(4) == 160_000
    assert Workload("randread", "4k", 16, rate_iops=40_000, threads=4).asked_iops(4) == 40_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate_iops": -1},
        {"rate_iops": 1000, "rate_percent": 50},
        {"rate_iops": 100_001},
        {"rate_iops": 100},
        {"rate_iops": 1000, "zipf": 120},
        {"rate_iops": 1000, "burst_s": 1, "idle_s": 1},
        {"rate_iops": 1000, "rw": "read"},
        {"rate_iops": 1000, "rw": "randread+randwrite"},
        {"rate_iops": 1000, "rw": "randrw", "read_percent": 99},
    ],
)
def test_what_cannot_be_asked_for_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rate|times a second"):
        Workload(**{"rw": "randread", "bs": "4k", "qd_per_drive": 10, **wrong})
