"""Everything that can be judged implements one protocol; sweeps and curves are several measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import strategies

from pytest_ssdqual.qual.measured.judgeable import J, Judgeable
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Curve, Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.workload.workload import Workload

READS = Workload("randread", "4k", 8)


def measured(geometry: str, workload: Workload = READS, raw: str = "fio/a") -> Measured:
    return Measured((replace(strategies.run([1000] * 5, geometry=geometry, workload=workload), raw=raw),))


DRIVES = Measured((strategies.side_by_side([[1000] * 5, [900] * 5]),))
SWEEP = Sweep((measured("raid5x4", raw="fio/b"), measured("raid5x3")))
CURVE = Curve((measured("raid5x3"), measured("raid5x3", READS.at(1), "fio/b")))
REBUILD = Rebuild(Geometry.parse("raid5x4-1rebuilding"), 9, 9, measured("raid5x4-1rebuilding"), mismatches=0)
EVERY: tuple[Judgeable, ...] = (DRIVES, SWEEP, CURVE, Saturation(DRIVES.runs[0], 10**9), REBUILD)


@pytest.mark.parametrize("judged", EVERY, ids=lambda each: type(each).__name__)
def test_every_kind_implements_the_protocol(judged: Judgeable) -> None:
    assert type(judged) is estimators.KINDS[judged.kind]
    assert all(member.kind is judged.kind for member in judged.members())
    assert judged.raw_files()
    found: list[Judgeable] = []

    def find(one: J) -> J:
        found.append(one)
        return one

    assert judged.counterpart(find) == judged
    assert {raw for each in found for raw in each.raw_files()} == set(judged.raw_files())


def test_only_drives_side_by_side_are_judged_alone() -> None:
    drives, none = ["S0", "S1"], [""]
    assert [[each.drive for each in judged.members()] for judged in EVERY] == [drives, none, none, drives, none]
    assert all(judged.drive == "" for judged in EVERY)


def test_sweep_is_ordered_and_has_the_promise_of_the_widest() -> None:
    assert [str(each.geometry) for each in SWEEP] == ["raid5x3", "raid5x4"]
    assert str(SWEEP.subject.geometry) == "raid5x4"
    assert SWEEP.raw_files() == ("fio/a", "fio/b")


def test_curve_keeps_its_order_and_has_the_promise_of_the_first() -> None:
    assert [each.workload for each in CURVE] == [READS, READS.at(1)]
    assert CURVE.subject.workload == READS
    assert (len(CURVE), CURVE[1].workload) == (2, READS.at(1))


def test_nothing_is_no_sweep() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        Sweep(())
