"""An array's limit by the maxima of its drives, which are judged there as in their own tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders import sheet, strategies

from pytest_ssdqual.plugin.judging.chain import Chain, ChainedLimit
from pytest_ssdqual.plugin.judging.siblings import Siblings
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, ErrorControl
from pytest_ssdqual.qual.workload.workload import Workload

SHEET = (
    sheet.PRODUCT
    + sheet.figure(rw="randread", bs="4k", conditions="unpublished", iops=1000)
    + sheet.figure(rw="randwrite", bs="4k", conditions="unpublished", iops=500)
    + sheet.promise(claim="steady_iops", min_percent_of_spec=90)
)
ARRAY, LOAD = Geometry(RaidLevel.RAID0, 3), Workload("randread", "4k", 8)
#: What a figure of unpublished conditions is judged with.
MOST = Workload("randread", "4k", 64, threads=8)
MEMBERS = ("S0", "S1", "S2")
#: What the array's drives can do by their own curves.
PREDICTED = 2000.0
#: Second by second, around 85 % of the published figure.
LOW = (850, 830, 870, 830, 870)


def limit(tmp_path: Path, rates: Sequence[Sequence[int]], claims: int, load: Workload = LOAD) -> ChainedLimit:
    """Return the limit of the array after its drives did so many IOPS at each of their maxima."""

    def member(workload: Workload) -> Measured:
        return Measured((strategies.side_by_side(rates, workload=workload),))

    campaign = SimpleNamespace(member=member, alone=lambda workload=None: None)

    def faster(
        geometry: Geometry, workload: Workload, drives: Sequence[str], factors: Mapping[str, float]
    ) -> SimpleNamespace:
        return SimpleNamespace(iops=SimpleNamespace(value=PREDICTED * max(factors.values(), default=1.0)))

    attributor = cast(Any, SimpleNamespace(campaign=lambda: campaign, faster=faster))
    siblings = cast(Siblings, SimpleNamespace(cause=lambda verdicts, judged: None))
    family = ErrorControl(claims, BONFERRONI)
    chain = Chain(sheet.load(tmp_path, SHEET), attributor, siblings, family)
    found = chain.limit(Claim.STEADY_IOPS, ARRAY, load, MEMBERS)
    assert found is not None
    return found


def test_drives_that_miss_their_maximum_raise_the_limit_of_their_array(tmp_path: Path) -> None:
    found = limit(tmp_path, [LOW, LOW, LOW], claims=1)
    assert found.limit.bound == pytest.approx(0.9 * PREDICTED / 0.85)
    assert not found.doubt


@pytest.mark.parametrize(
    ("load", "factor"),
    [(Workload("randwrite", "4k", 8), 1.0), (Workload("randrw", "4k", 8, 70), 0.0007 / 0.85 + 0.0006)],
)
def test_what_a_drive_misses_of_one_kind_raises_only_its_share_of_a_mix(
    tmp_path: Path, load: Workload, factor: float
) -> None:
    """The drives do 850 of 1,000 reads, and of the published 500 writes more than all."""
    at_sheet = 0.0007 + 0.0006 if load.read_fraction else 1.0
    found = limit(tmp_path, [LOW, LOW, LOW], claims=1, load=load)
    assert found.limit.bound == pytest.approx(0.9 * PREDICTED * factor / at_sheet)


def test_drives_that_reach_their_maximum_are_the_measure_of_their_array(tmp_path: Path) -> None:
    found = limit(tmp_path, [[1000, 990, 1010, 990, 1010]] * 3, claims=1000)
    assert found.limit.bound == pytest.approx(0.9 * PREDICTED)
    assert not found.doubt


@pytest.mark.parametrize(("rates", "claims"), [(LOW, 1000), ((850, 700, 1000, 700, 1000), 1)])
def test_a_maximum_whose_own_test_is_undecided_raises_no_limit_and_leaves_a_doubt(
    tmp_path: Path, rates: Sequence[int], claims: int
) -> None:
    """So the array does not fail by it, and passes no more than its drives do."""
    found = limit(tmp_path, [rates] * 3, claims)
    assert found.limit.bound == pytest.approx(0.9 * PREDICTED)
    assert str(MOST) in found.doubt
