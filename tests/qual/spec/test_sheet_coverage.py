"""Which usual kinds of figures a data sheet lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.sheet import PRODUCT, figure, load

from pytest_ssdqual.qual.spec import sheet_coverage
from pytest_ssdqual.qual.spec.sheet_coverage import USUAL_FIGURES


def missing(tmp_path: Path, *figures: str) -> set[str]:
    return {kind.name for kind in sheet_coverage.missing(load(tmp_path, PRODUCT + "".join(figures)).figures)}


def test_an_empty_sheet_lacks_every_kind(tmp_path: Path) -> None:
    names = [kind.name for kind in USUAL_FIGURES]
    assert missing(tmp_path) == set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (figure(rw="randread", bs="4k", queue_depths=[32], iops=1000), "randread_iops"),
        (figure(workload="randwrite_4k_t4xqd64", iops=1000), "randwrite_iops"),
        (figure(workload="randrw70_8k_qd32", iops=1000), "randrw_iops"),
        (figure(rw="read", bs="128k", queue_depths=[32], throughput="500 MB/s"), "read_throughput"),
        (figure(rw="write", bs="128k", queue_depths=[32], throughput="500 MB/s"), "write_throughput"),
        (figure(rw="randread", bs="4k", queue_depths=[1], mean_latency="90 us"), "randread_latency"),
        (figure(rw="randwrite", bs="4k", queue_depths=[1], p50_latency="20 us"), "randwrite_latency"),
    ],
)
def test_a_figure_covers_exactly_its_kind(tmp_path: Path, given: str, kind: str) -> None:
    assert {each.name for each in USUAL_FIGURES} - missing(tmp_path, given) == {kind}


def test_a_figure_of_an_array_covers_no_kind(tmp_path: Path) -> None:
    assert len(missing(tmp_path, figure(workload="randread_4k_qd8", array="raid5x4", iops=1000))) == len(USUAL_FIGURES)
