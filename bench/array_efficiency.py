"""Prints the efficiency of every predicted array of a run folder: measured over predicted IOPS.

    python bench/array_efficiency.py ssdqual-runs/RUN

On flawless drives below an md and a host that are not the bound, it is 100 %. The prediction is the package's own, from
the member measurements of the same run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid import member_curve, prediction
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.rig.resume.checkpoint import ResultKey


def measured(folder: Path, kind: str) -> list[Measured]:
    """Return all measurements of a kind, from fio's output."""
    reader = RunReader.read(folder, kind)
    records = list(reader.of(kind))
    memory = Recollection.of(folder, records, sums={})
    keys = [ResultKey(kind, geometry_of(each.facts), str(each.facts["workload"])) for each in records]
    found = (memory.recall(key) for key in dict.fromkeys(keys))
    return [each for each in found if isinstance(each, Measured)]


def geometry_of(facts: Mapping[str, object]) -> Geometry:
    return Geometry.parse(str(facts["geometry"]))


def curves(bare: list[Measured], alike: Workload, drives: tuple[str, ...]) -> tuple[MemberCurve, ...]:
    """Return the curves at the mix of ``alike``."""
    points: dict[str, list[CurvePoint]] = {drive: [] for drive in drives}
    for each in bare:
        if each.workload.at(1) == alike.at(1):
            for one in each.members():
                if one.drive in points:
                    points[one.drive].append(CurvePoint.of(one, iops(one, ConfidenceLevel())))
    return tuple(MemberCurve(drive, alike.read_fraction, tuple(found)) for drive, found in points.items())


def main() -> None:
    folder = Path(sys.argv[1])
    bare, worst = measured(folder, "member"), 0.0
    for each in measured(folder, "measured"):
        geometry, workload = each.geometry, each.workload
        if member_curve.objection(geometry, workload, ArraySettings().striping):
            continue
        drives = each.runs[0].members[: geometry.width - geometry.missing]
        needed = member_curve.member_workloads(geometry, workload)[0]
        found = prediction.predict(
            geometry, workload.read_fraction, workload.outstanding(geometry.width), curves(bare, needed, drives)
        )
        share = each.iops / found.iops.value
        worst = max(worst, abs(share - 1))
        print(f"{geometry} {workload}: {each.iops:,.0f} of {found.iops.value:,.0f} IOPS, {share:.1%}")
    print(f"farthest from 100 %: {worst:.1%}")


if __name__ == "__main__":
    main()
