"""Drives side by side: a column for each, the outlier marked; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.part import Finding, Part
from pytest_ssdqual.report.view.labels import label, sorting
from pytest_ssdqual.report.view.tables import MARK, Grid, figure, rows

#: After the figure of a drive that is not as good as promised, or of which that is not sure.
SIGN = {Finding.FAIL: "!", Finding.INCONCLUSIVE: "?"}
#: Fewest characters that a serial number is shortened to.
SHORTEST = 4


def members(evidence: Sequence[Evidence]) -> Iterator[Grid]:
    """A grid for each claim about drives that were measured side by side."""
    found = [each for each in sorted(evidence, key=sorting) if each.members]
    for claim, geometries in dict.fromkeys((each.claim, each.geometries) for each in found):
        group = [each for each in found if (each.claim, each.geometries) == (claim, geometries)]
        yield _grid(f"{label(claim)} · {' '.join(geometries)}", group)


def _grid(title: str, evidence: Sequence[Evidence]) -> Grid:
    alone = [_alone(each, part) for each in evidence for part in each.members]
    short = shortened(list(dict.fromkeys(each.worst for each in alone)))
    return Grid(title, tuple(short.values()), tuple(rows(alone, lambda each: short[each.worst])), _marked)


def shortened(serials: Sequence[str]) -> dict[str, str]:
    """The shortest ends of serial numbers that still tell them apart: ``…0001``."""
    longest = max(map(len, serials))
    for length in range(SHORTEST, longest):
        ends = [serial[-length:] for serial in serials]
        if len(set(ends)) == len(set(serials)):
            return {
                serial: serial if len(serial) <= length + 1 else f"…{end}"
                for serial, end in zip(serials, ends, strict=True)
            }
    return {serial: serial for serial in serials}


def _alone(evidence: Evidence, part: Part) -> Evidence:
    """What one drive did, as if nothing else had been measured; likeness is shown as what it was computed from."""
    value, iops, slowest_ns = part.figure("value"), part.figure("iops"), part.figure("slowest_ns")
    outcome = part.outcome
    if outcome is None:  # nothing is judged of a single drive: only the slowest is at fault
        outcome = evidence.outcome if part.name == evidence.worst or evidence.outcome not in MARK else Finding.PASS
    if slowest_ns is not None:
        return replace(evidence, worst=part.name, value=slowest_ns, unit=Unit.NANOSECONDS, outcome=outcome, limit=None)
    if value is None:
        return replace(evidence, worst=part.name, value=iops or 0.0, unit=Unit.IOPS, outcome=outcome, limit=None)
    return replace(evidence, worst=part.name, value=value, outcome=outcome)


def _marked(evidence: Evidence) -> str:
    return f"{figure(evidence.value, evidence.unit)}{SIGN.get(evidence.outcome, '')}"
