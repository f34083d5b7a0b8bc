"""Attribution of a latency above its limit: as of a shortfall in IOPS, by what bare members do and who waits for whom.

The mean latency of a workload of one kind follows from its IOPS and is attributed by them. Percentiles do not: a host
that stalls one I/O in a hundred leaves IOPS as they are. So drives are the cause only if bare members have that tail
too, if the array has the one that is predicted from them, or if one of them does less than it did bare.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ssdqual.qual.units import format_latency
from pytest_ssdqual.qual.validity import attribution
from pytest_ssdqual.qual.validity.attribution import (
    ABOVE,
    AS_PREDICTED,
    NAMED,
    Cause,
    Culprit,
    Rule,
    ceiling_is_reached,
    drives,
    first_of,
)
from pytest_ssdqual.qual.validity.shortfall import LatencyEvidence, Shortfall

#: Largest error of a predicted percentile up to p99: 16 % on simulated drives with dies (`bench/simulated_system.py`),
#: a half on throttled drives of the lab. Beyond it drives are the cause, or are not, for certain.
TAIL_ERROR, CERTAIN = 1.2, 1.5
#: How often bare members may be slower than the limit, of what is promised, and still explain nothing.
RARELY = 1 / 3
#: A member's own figure stands out beyond this multiple of the median member's.
OWN = 1.25


def attribute(found: Shortfall) -> Cause:
    """Return the cause; ``UNEXPLAINED`` if the evidence fits none, ``UNKNOWN`` if there is none."""
    return attribution.with_nodes(first_of(RULES, found) or _unexplained(found), found)


def _members_alone_are_slower(found: Shortfall) -> Cause | None:
    """The bare members have a tail that breaks the promise, and I/Os wait at them.

    They were measured on the same host: what delays I/Os above an array delays those of bare drives, too.
    """
    asked = found.latency
    if found.depth_share is not None and found.depth_share < ABOVE:
        return None
    # An array that is far faster than predicted refutes the prediction.
    if (
        asked
        and asked.alone_ns is not None
        and CERTAIN * asked.limit_ns <= asked.alone_ns <= CERTAIN * asked.measured_ns
    ):
        return _of_members(found, asked)
    if asked and asked.often is not None and asked.often >= 1:
        return _of_members(found, asked)
    return None


def _as_predicted(found: Shortfall) -> Cause | None:
    """The array's latency and its IOPS are those that are predicted from its members."""
    asked = found.latency
    if asked is None or asked.alone_ns is None or asked.measured_ns > TAIL_ERROR * asked.alone_ns:
        return None
    if found.depth_share is not None and found.depth_share < ABOVE:
        return None
    if found.efficiency is None or found.efficiency < AS_PREDICTED or ceiling_is_reached(found):
        return None
    return _of_members(found, asked)


def _host_delays_single_ios(found: Shortfall) -> Cause | None:
    """Drives have no such tail, and tasks wait for a CPU: that delays single I/Os, and costs hardly any IOPS."""
    pressure = found.host.cpu_pressure
    if pressure is None or pressure < attribution.STARVED or not _is_beyond_members(found):
        return None
    what = f"the bare drives have no such latency, and tasks waited for a CPU for {pressure:.0%} of the time"
    return attribution.cause(Culprit.HOST, what)


def _at_the_drives(found: Shortfall) -> Cause | None:
    """All members have as many I/Os waiting as their own curves predict, and nothing says that they are not so slow."""
    share, asked = found.depth_share, found.latency
    if share is None or share < ABOVE or asked is None or asked.is_rare or _is_beyond_members(found):
        return None
    if (found.efficiency or 0) < AS_PREDICTED and (asked.alone_ns is None or attribution.as_by_curves(found)):
        return None
    return _of_members(found, asked)


#: In the order of decision, each with its confidence as of ``attribution.RULES`` (`--p99 --every 16`: 47 of 48).
RULES: Mapping[Rule, float] = {
    attribution.foreign: 0.8,
    _members_alone_are_slower: 0.89,
    attribution.drive_delivers_less: 0.8,
    _as_predicted: 0.89,
    attribution.drive_stands_out: 0.5,
    attribution.fio_is_the_bound: 0.67,
    attribution.host_is_the_bound: 0.89,
    attribution.md_is_the_bound: 0.9,
    _host_delays_single_ios: 0.67,
    _at_the_drives: 0.5,
}


def _is_beyond_members(found: Shortfall) -> bool:
    """Return True if bare members have no such tail for certain."""
    asked = found.latency
    if asked is None:
        return False
    if asked.alone_ns is not None:
        return asked.measured_ns > CERTAIN * asked.alone_ns
    return asked.often is not None and asked.often < RARELY


def _unexplained(found: Shortfall) -> Cause:
    asked = found.latency
    if asked and _is_beyond_members(found):
        alone = f"{format_latency(asked.alone_ns)} is predicted from" if asked.alone_ns else "that is too rare for"
        what = f"{format_latency(asked.measured_ns)}, where {alone} the bare drives"
        return attribution.cause(Culprit.UNEXPLAINED, what)
    why = found.why_not or "no rule tells the drives' part in such a latency from that of md and the host"
    return attribution.cause(Culprit.UNKNOWN, why)


def _of_members(found: Shortfall, asked: LatencyEvidence) -> Cause:
    """Name the path or the drives because of which the members are not faster."""
    # With a constant number of I/Os outstanding, latency is the inverse of IOPS.
    if path := attribution.path(found, lambda share: asked.measured_ns * share <= asked.limit_ns):
        return path
    slow = sorted(((share, name) for name, share in asked.own.items() if share > OWN), reverse=True)
    members = {each.drive for each in found.members}
    named = [name for share, name in slow if name in members and share - 1 >= (slow[0][0] - 1) / 2]
    far = bool(slow) and slow[0][0] >= attribution.STANDS_OUT
    if named and len(named) <= len(asked.own) / 3 and (far or _is_enough(asked, named)):
        whose = "its" if len(named) == 1 else "their"
        times = ", ".join(f"{share:.3g}" for share, _ in slow[: min(NAMED, len(named))])
        return drives(f"{whose} own latency is {times} times that of the median drive", named)
    if asked.alone_ns is not None and asked.alone_ns <= asked.limit_ns:
        factor = asked.measured_ns / asked.alone_ns
        what = f"{found.geometry} has {factor:.3g} times the latency that follows from the drives' own curves"
    elif asked.alone_ns is not None:
        what = f"{found.geometry} of these drives has {format_latency(asked.alone_ns)}, by their own curves"
    elif asked.often is not None:
        what = f"the bare drives are slower than the limit {asked.often:.2g} times as often as promised"
    else:
        what = f"the I/Os wait at them, and they do {found.efficiency or 0:.0%} of the IOPS that their curves predict"
    return Cause(Culprit.DRIVES, what, tuple(name for _, name in slow))


def _is_enough(asked: LatencyEvidence, named: list[str]) -> bool:
    """Return True if the promise would hold with the named drives replaced by median ones."""
    if asked.replaced is None:
        return True
    left = asked.replaced(named)
    if asked.alone_ns is None:
        return left < 1  # times as often as promised
    # Both are predictions of one model, so their ratio is better than either.
    return asked.measured_ns * left / asked.alone_ns <= (1 + attribution.MODEL_ERROR) * asked.limit_ns
