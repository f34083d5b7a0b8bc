"""Finds the drives side by side that a measurement is without, and states it in the verdict on the others.

A drive that failed under the load has a verdict of its own, in the test in which it failed; a promise about each drive
is then judged on the others. A drive without a valid figure was judged nowhere, so such a promise is at best
inconclusive. A promise that compares the drives with each other never passes without one of them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pytest_ssdqual.qual.measured.judgeable import Judgeable, LeftOutDrive, describe_left_out
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import SeveralMeasured, Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.verdict import verdict as verdicts
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.drives.failed import CONDITIONING, FILL, DriveFailures
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement


def find(
    judged: Judgeable, drives: Sequence[Drive], failures: DriveFailures, failed_in: Mapping[str, str]
) -> tuple[LeftOutDrive, ...]:
    """Return the drives that ``judged`` is without, in the order of ``drives``, those of the run.

    ``failed_in`` has the ids of tests by the serial numbers of the drives that failed in them. ``InvalidMeasurement``
    if measurements are to be compared that are not of the same drives.
    """
    geometry, workload = judged.subject.geometry, judged.subject.workload
    if not geometry.is_side_by_side or geometry.width < 2:
        return ()
    reasons = _why(failures, geometry, workload)
    found = missing(_present(judged), drives[: geometry.width], failures, failed_in, reasons)
    if found and isinstance(judged, Sweep):
        raise InvalidMeasurement(f"{judged.subject} cannot be compared: {describe_left_out(found, geometry.width)}")
    return found


def missing(
    present: Container[str],
    drives: Sequence[Drive],
    failures: DriveFailures,
    failed_in: Mapping[str, str],
    reasons: Mapping[str, str],
) -> tuple[LeftOutDrive, ...]:
    """Return those of ``drives`` that are not ``present``; ``reasons`` of those without a figure, by serial number."""
    absent = []
    for place, drive in enumerate(drives):
        serial = drive.name
        if serial in present:
            continue
        failed = failures.failed.get(serial)
        why = reasons.get(serial, "has no valid figure")
        if failed:
            why = f"failed {f'in {failed_in[serial]}' if serial in failed_in else f'under the load of {failed.under}'}"
        absent.append(LeftOutDrive(serial, place, why, failed is not None))
    return tuple(absent)


def without(verdict: Verdict, drives: Sequence[LeftOutDrive]) -> Verdict:
    """Return the verdict on the other drives side by side, with the drives that it is without."""
    if not drives:
        return verdict
    found = verdicts.with_remark(verdict, describe_left_out(drives, verdict.subject.geometry.width))
    unknown = [each.serial for each in drives if not each.failed]
    if verdict.outcome not in (Outcome.PASS, Outcome.BOUNDED) or not (unknown or verdict.claim.scope is Scope.MEMBERS):
        return found
    if unknown:
        others = "pass" if verdict.outcome is Outcome.PASS else "are bounded"
        held_back = f"the others {others}, there is no valid figure of {', '.join(unknown)}"
    else:
        held_back = "the others are alike, and not all drives could be compared"
    return replace(found, outcome=Outcome.INCONCLUSIVE, held_back=held_back)


def _present(judged: Judgeable) -> set[str]:
    """Return the serial numbers of the drives that were measured; each of several measurements must have the same."""
    if not isinstance(judged, SeveralMeasured):
        return {each.drive for each in judged.members()}
    sets = [_drives(each) for each in judged]
    some, every = frozenset(chain(*sets)), sets[0].intersection(*sets)
    if not isinstance(judged, Sweep) and some != every:
        lost = ", ".join(sorted(some - every))
        raise InvalidMeasurement(f"{judged.subject} cannot be compared: not all of it was measured on {lost}")
    return sets[-1]


def _drives(measured: Measured) -> set[str]:
    return {each.drive for each in measured.members()}


def _why(failures: DriveFailures, geometry: Geometry, workload: Workload) -> dict[str, str]:
    steps = (CampaignStep(kind, geometry, workload) for kind in (StepKind.MEASURED, StepKind.SATURATION))
    return failures.left_out_of(FILL, CONDITIONING, (geometry, workload.pattern), *steps)
