"""What the latencies of bare members make of an array's: percentiles by prediction, rare slow I/Os by counting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.raid.prediction import Prediction
from pytest_ssdqual.qual.validity.shortfall import LatencyEvidence

#: Deepest quantile that a simulation of 3,000 I/Os finds: 30 of them are beyond it.
DEEPEST = 0.99
#: Fewest slow I/Os, and fewest spells with one, of all bare members together that say how often they come.
FEWEST_IOS, FEWEST_SPELLS = 10, 2

#: Predicts the array with the named drives replaced by median ones.
Replace = Callable[[Collection[str]], Prediction]


@frozen
class Rate:
    """How often I/Os may be slower than a limit: a share of all I/Os, or a number of spells an hour."""

    promised: float
    is_of_spells: bool

    @classmethod
    def of_share(cls, share: float) -> Rate:
        return cls(share, is_of_spells=False)

    @classmethod
    def of_spells(cls, per_hour: float) -> Rate:
        return cls(per_hour, is_of_spells=True)

    def at(self, point: CurvePoint, limit_ns: float) -> tuple[int, float]:
        """Return how many I/Os or spells of a bare drive were slower, and the rate of these."""
        if self.is_of_spells:
            slow, of = sum(each > limit_ns for each in point.slowest_ns), len(point.slowest_ns) * point.spell_s / 3600
        else:
            slow, of = point.latency.count_above(limit_ns), float(point.latency.total)
        return slow, slow / of if of else 0.0


def of_quantile(
    evidence: LatencyEvidence, prediction: Prediction, curves: Sequence[MemberCurve], q: float, again: Replace
) -> LatencyEvidence:
    """Return the evidence with the quantile as predicted, at most ``DEEPEST``.

    Not of rate-limited drives: they serve a budget, and the simulated queues in front of them vary far more than real
    ones (2.5 times the p99 latency of even throttled drives).
    """
    own = {
        curve.drive: point.latency.quantile(q).value_ns for curve, point in _points(prediction, curves) if point.latency
    }
    if any(curve.is_rate_limited for curve in curves):
        return replace(evidence, own=_relative(own))
    alone_ns = prediction.quantile_ns(q)
    return replace(
        evidence, alone_ns=alone_ns, own=_relative(own), replaced=lambda drives: again(drives).quantile_ns(q)
    )


def of_mean(
    evidence: LatencyEvidence, prediction: Prediction, curves: Sequence[MemberCurve], is_read: bool, again: Replace
) -> LatencyEvidence:
    """Return the evidence with the mean latency of reads or of writes, as predicted."""

    def mean_ns(found: Prediction) -> float:
        return fmean(found.read_latencies_ns if is_read else found.write_latencies_ns)

    own = {
        curve.drive: 1e9 * point.depth / point.iops.value * fmean(shape)
        for curve, point in _points(prediction, curves)
        if (shape := point.reads if is_read else point.writes)
    }
    return replace(
        evidence, alone_ns=mean_ns(prediction), own=_relative(own), replaced=lambda drives: mean_ns(again(drives))
    )


def of_rare(
    evidence: LatencyEvidence, prediction: Prediction, curves: Sequence[MemberCurve], rate: Rate
) -> LatencyEvidence:
    """Return the evidence with how often bare members were slower than the limit, at the depths of the array.

    Rare slow I/Os of several members hardly coincide, so each delays another I/O of the array: their rates add up.
    """
    counted = {
        curve.drive: rate.at(point, evidence.limit_ns)
        for curve, point in _points(prediction, curves)
    }  # fmt: skip
    slow, fewest = sum(number for number, _ in counted.values()), FEWEST_SPELLS if rate.is_of_spells else FEWEST_IOS
    evidence = replace(evidence, is_rare=True)
    # Of the array's I/Os, those that have one at this member.
    weights = {
        each.drive: 1.0 if rate.is_of_spells else each.iops / prediction.iops.value for each in prediction.members
    }
    own = {drive: weights[drive] * found / rate.promised for drive, (_, found) in counted.items()}
    expected = _seen(curves, prediction, rate)
    if slow < fewest and expected < fewest:
        return evidence

    def replaced(drives: Collection[str]) -> float:
        others = [often for drive, often in own.items() if drive not in drives]
        usual = median(others) if others else 0.0
        return sum(usual if drive in drives else often for drive, often in own.items())

    usual = median(own.values())
    stands_out = {drive: often / usual if usual else float(often > 0) * 1e3 for drive, often in own.items()}
    return replace(evidence, often=sum(own.values()), own=stands_out, replaced=replaced)


def _seen(curves: Sequence[MemberCurve], prediction: Prediction, rate: Rate) -> float:
    """Return how many slow I/Os or spells the bare members would have shown if they were as frequent as promised."""
    points = [point for _, point in _points(prediction, curves)]
    if rate.is_of_spells:
        # The promise is about the array; each member may have its part of it.
        return rate.promised * sum(len(each.slowest_ns) * each.spell_s for each in points) / 3600 / max(1, len(points))
    ios = sum(each.iops for each in prediction.members) / prediction.iops.value
    return rate.promised * sum(each.latency.total for each in points if each.latency) / ios


def _points(prediction: Prediction, curves: Sequence[MemberCurve]) -> list[tuple[MemberCurve, CurvePoint]]:
    """Return each member's curve with its point nearest to the depth that the median member has in the array."""
    depth = max(1.0, median(each.depth for each in prediction.members))
    return [(curve, curve.nearest(depth)) for curve in curves]


def _relative(own: Mapping[str, float]) -> Mapping[str, float]:
    usual = median(own.values()) if own else 0.0
    return {drive: value / usual for drive, value in own.items()} if usual else {}
