"""Names of arrays, workloads and claims in tables: shortened, and in the order people expect; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.report.evidence.evidence import Evidence

#: ``raid5x4``, ``raid5x4-1failed``.
ARRAY = re.compile(r"(?P<level>[a-z]+\d*)x(?P<width>\d+)(?P<state>-.*)?")
#: ``randrw70_4k_off512_t4xqd32``; names of profiles have no size.
WORKLOAD = re.compile(
    r"(?P<rw>[a-z+]+\d*)_(?P<bs>\d+[kmgt]?)(?P<more>(?:_[a-z]+\d*[kmg]?)*)_(?:t(?P<t>\d+)x)?qd(?P<qd>\d+)"
)


def sorting(evidence: Evidence) -> tuple[object, ...]:
    """Claims as the enum has them, then levels, workloads, widths."""
    known = [claim.value for claim in Claim]
    rank = known.index(evidence.claim) if evidence.claim in known else len(known)
    geometries = tuple(map(parse_geometry, evidence.geometries))
    return rank, evidence.claim, geometries[0][:2], order_of(evidence), geometries


def span(names: Sequence[str]) -> str:
    """The first and the last: ``raid5x3…x8``, ``randread_4k_qd1…qd32``."""
    first, last = names[0], names[-1]
    if first == last:
        return first
    shared = re.match(r"(raid\d+)x\d+|(.*_)qd\d+", first)
    prefix = (shared[1] or shared[2]) if shared else ""
    return f"{first}…{last.removeprefix(prefix)}"


def label(claim: str) -> str:
    return claim.replace("_", " ").replace("iops", "IOPS").replace("qd ", "QD ")


def parse_geometry(name: str) -> tuple[str, str, int]:
    """Level, state and width."""
    found = ARRAY.fullmatch(name)
    return (found["level"], found["state"] or "", int(found["width"])) if found else (name, "", 0)


def order_of(evidence: Evidence) -> tuple[tuple[str, int, str, int, int, str], ...]:
    """Pattern, transfer size, depth; what is spelled otherwise comes by its name."""
    return tuple(map(workload_order, evidence.workloads))


def workload_order(name: str) -> tuple[str, int, str, int, int, str]:
    """For sorting workloads by their ids."""
    found = WORKLOAD.fullmatch(name)
    if not found:
        kind, _, depth = name.rpartition("qd")
        return (kind, 0, "", 0, int(depth) if depth.isdecimal() else 0, name)
    return (found["rw"], parse_size(found["bs"]), found["more"], int(found["t"] or 0), int(found["qd"]), name)
