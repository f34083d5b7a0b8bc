"""Judges what drives return of their data: after a fill, power cuts, discards and purges.

Of the fixtures ``ssd_read_back``, ``ssd_power_cuts``, ``ssd_discard`` and ``ssd_erasure``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

import pytest

from pytest_ssdqual.plugin.judging import left_out
from pytest_ssdqual.plugin.judging.health import DrivesHealth
from pytest_ssdqual.plugin.plan import applicability, needs
from pytest_ssdqual.plugin.stash import RUN, keep_evidence
from pytest_ssdqual.qual.integrity import power_loss
from pytest_ssdqual.qual.integrity.erasure import NONE, DiscardedTarget, ErasedDrive
from pytest_ssdqual.qual.integrity.read_back import ReadBack
from pytest_ssdqual.qual.measured.judgeable import LeftOutDrive
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.report.evidence.integrity import of_power_cuts, of_read_back
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.drives.failed import FILL
from pytest_ssdqual.rig.integrity import erase
from pytest_ssdqual.rig.integrity.md_target import MdTarget
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement


def judge(request: pytest.FixtureRequest, campaign: Campaign, geometry: Geometry) -> ReadBack:
    """Return the comparison of all data, and record it as evidence of the test.

    ``InvalidMeasurement`` if no drive has a finding, and one could not be decided: it was left out, or what it returned
    proves nothing about it. A drive that failed has a verdict of its own.
    """
    comparison = campaign.read_back(geometry)
    absent = _absent(request, campaign, geometry, {drive.serial for drive in comparison.drives})
    undecided = [str(drive) for drive in absent if not drive.failed]
    undecided += [f"{drive.serial} ({drive.doubt})" for drive in comparison.drives if drive.doubt]
    if undecided and not any(drive.findings for drive in comparison.drives):
        raise InvalidMeasurement(
            f"the data of {geometry} were not judged: nothing is decided about {', '.join(undecided)}"
        )
    failed = [str(drive) for drive in absent if drive.failed]
    remarks = (*failed, *(f"nothing is decided about {drive}" for drive in undecided))
    keep_evidence(request.node, of_read_back(comparison, remarks))
    return comparison


def _absent(
    request: pytest.FixtureRequest, campaign: Campaign, geometry: Geometry, present: Collection[str]
) -> tuple[LeftOutDrive, ...]:
    """Return the drives that are not among those with these serial numbers."""
    failures, failed_in = campaign.setup.failures, request.config.stash[RUN].failed_in
    reasons = failures.left_out_of(FILL, CampaignStep(StepKind.READ_BACK, geometry))
    return left_out.missing(present, campaign.setup.held.drives[: geometry.width], failures, failed_in, reasons)


def after_power_cuts(request: pytest.FixtureRequest, campaign: Campaign, geometry: Geometry) -> DrivesHealth:
    """Cut the power of the drives, and record what they lost as evidence of the test; raises as ``drive_cuts.run``.

    Skips the test if the site has given no commands.
    """
    run = request.config.stash[RUN].qualification
    if not (commands := run.settings.power):
        applicability.skip(
            "the power of the drives cannot be cut: give the site's commands, --ssd-power-off=COMMAND and "
            "--ssd-power-on=COMMAND (docs/integrity.md)"
        )
    from pytest_ssdqual.rig.integrity import drive_cuts

    def is_protected(serial: str) -> bool:
        return run.spec.of(serial).product.power_loss_protection

    losses = campaign.apart(geometry, lambda: drive_cuts.run(campaign.setup, geometry, commands, is_protected))
    findings = {drive.serial: drive.findings for drive in losses}
    has_lost = any(findings.values())
    absent = _absent(request, campaign, geometry, findings)
    uncut = [str(drive) for drive in absent if not drive.failed]
    if uncut and not has_lost:
        raise InvalidMeasurement(f"nothing is decided about {', '.join(uncut)}: their power was not cut")
    cuts = (max if has_lost else min)(drive.judged for drive in losses)
    result = DrivesHealth(findings, f"data after {counted(cuts, 'power cut')}")
    bound = "" if has_lost else f", so at most {power_loss.bound_percent(cuts):.3g} % lose any (95 % confidence)"
    evidence = of_power_cuts(losses, cuts, f"{result!r}{bound}")
    keep_evidence(request.node, replace(evidence, remarks=(*evidence.remarks, *map(str, absent))))
    return result


def judge_erased(request: pytest.FixtureRequest, campaign: Campaign, geometry: Geometry) -> DrivesHealth:
    """Return what is left of discarded ranges or purged drives, by the name of the fixture, as evidence of the test.

    Skips the test if the drives or md take no discards, or no drive can be purged. ``InvalidMeasurement`` if nothing
    was found, and a drive was left out.
    """
    setup, kind = campaign.setup, needs.KINDS[str(request.fixturename)]
    targets: Sequence[DiscardedTarget | ErasedDrive]
    if kind is StepKind.DISCARD:
        if not MdTarget(setup).abilities(geometry.level).trim:
            applicability.skip(
                f"{geometry} takes no discards; RAID 5 and 6 need devices_handle_discard_safely of raid456"
            )
        targets = campaign.spend(CampaignStep(kind, geometry), partial(erase.discard, setup))
    else:
        targets = campaign.spend(CampaignStep(kind, geometry), partial(erase.purge, setup))
    findings = {target.name: target.findings for target in targets if getattr(target, "method", "") != NONE}
    if not findings:
        applicability.skip(f"{geometry} was not purged: {targets[0].remarks[0]}")
    judged = DrivesHealth(findings, f"{kind} on {geometry}, data")
    members = setup.held.drives[: geometry.width] if geometry.is_side_by_side else ()
    undecided = [drive.name for drive in members if drive.name not in findings]
    if judged and undecided:
        raise InvalidMeasurement(f"{kind} on {geometry}: nothing is decided about {', '.join(undecided)}")
    evidence = health.counted(
        kind.value, str(geometry), health.LOAD, findings,
        sentence=repr(judged), remarks=tuple(remark for target in targets for remark in target.remarks),
        source="a drive keeps its promises about discarded and erased data (docs/integrity.md)",
        blames_drives=geometry.is_side_by_side,
    )  # fmt: skip
    keep_evidence(request.node, evidence)
    return judged
