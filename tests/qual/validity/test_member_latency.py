from __future__ import annotations

import pytest
from support.builders.strategies import histogram

from pytest_ssdqual.qual.raid import prediction
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.raid.prediction import Prediction
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity import shortfall
from pytest_ssdqual.qual.validity.shortfall import LatencyEvidence, Rate

ARRAY = Geometry.parse("raid0x4")
ASKED = LatencyEvidence(20e6, 5e6)
MS = 1_000_000


def curve(drive: str, slow: int, of: int = 100_000, tail: float = 1.0) -> MemberCurve:
    """A drive with dies; ``slow`` of its I/Os take 9 ms, and one spell in ten has such a one if there are any."""
    latency = histogram({MS: of - slow, 9 * MS: slow} if slow else {MS: of})
    shape = (*(0.9,) * 58, *(0.9 + tail,) * 6)
    maxima = ((9 * MS if slow else MS), *(MS,) * 9)
    rates = ((1.0, 1_000.0), (8.0, 7_000.0))
    points = (CurvePoint(depth, Estimate(rate, rate, rate, 5, Unit.IOPS), shape, (), latency, maxima, 10.0)
              for depth, rate in rates)  # fmt: skip
    return MemberCurve(drive, 1.0, tuple(points))


def predicted(curves: list[MemberCurve]) -> Prediction:
    return prediction.predict(ARRAY, 1.0, 16, curves)


def test_slow_ios_of_bare_members_add_up_to_those_of_the_array() -> None:
    curves = [curve("A", 400), curve("B", 0), curve("C", 0), curve("D", 0)]
    found = shortfall.of_rare(ASKED, predicted(curves), curves, Rate(0.0005, is_of_spells=False))
    # 0.4 % of a quarter of the I/Os, where 0.05 % are promised.
    assert found.often == pytest.approx(2.0, rel=0.1)
    assert found.replaced
    assert found.replaced(["A"]) == 0
    assert max(found.own, key=lambda name: found.own[name]) == "A"


def test_rare_ios_of_a_short_observation_are_unknown() -> None:
    curves = [curve(name, 0, of=2_000) for name in "ABCD"]
    assert shortfall.of_rare(ASKED, predicted(curves), curves, Rate(1e-5, is_of_spells=False)).often is None
    longer = [curve(name, 0, of=400_000) for name in "ABCD"]
    assert shortfall.of_rare(ASKED, predicted(longer), longer, Rate(1e-5, is_of_spells=False)).often == 0


def test_spells_with_a_slow_io_are_counted_by_the_hour() -> None:
    curves = [curve("A", 50), curve("B", 50), curve("C", 0), curve("D", 0)]
    found = shortfall.of_rare(ASKED, predicted(curves), curves, Rate(10.0, is_of_spells=True))
    # One spell of each in 100 s is 72 an hour of both.
    assert found.often == pytest.approx(7.2)
    one = [curve("A", 50), *(curve(name, 0) for name in "BCD")]
    assert shortfall.of_rare(ASKED, predicted(one), one, Rate(10.0, is_of_spells=True)).often is None


def test_percentile_is_predicted_and_a_tail_stands_out() -> None:
    curves = [curve("A", 3_000, tail=20.0), curve("B", 0), curve("C", 0), curve("D", 0)]
    even = predicted([curve(name, 0) for name in "ABCD"])
    found = shortfall.of_quantile(ASKED, predicted(curves), curves, 0.99, lambda drives: even)
    assert found.alone_ns == predicted(curves).quantile_ns(0.99)
    assert found.replaced
    assert found.replaced(["A"]) < found.alone_ns
    assert found.own["A"] > 5
    assert found.own["B"] == 1


def test_no_percentile_is_predicted_of_rate_limited_drives() -> None:
    flat = [
        MemberCurve(name, 1.0, tuple(CurvePoint(depth, Estimate(300, 300, 300, 5, Unit.IOPS)) for depth in (1, 8)))
        for name in "ABCD"
    ]
    found = shortfall.of_quantile(ASKED, predicted(flat), flat, 0.99, lambda drives: predicted(flat))
    assert found.alone_ns is None
