"""The fixtures ``ssd_read_back`` and ``ssd_power_cuts``: judge whether bare drives return what was written to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from pytest_ssdqual.plugin.judging import left_out
from pytest_ssdqual.plugin.judging.health import DrivesHealth
from pytest_ssdqual.plugin.plan import applicability
from pytest_ssdqual.plugin.stash import QUALIFICATION, RUN, keep_evidence
from pytest_ssdqual.qual.integrity import power_loss
from pytest_ssdqual.qual.integrity.read_back import ReadBack
from pytest_ssdqual.qual.measured.judgeable import LeftOutDrive
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.report.evidence.integrity import of_power_cuts, of_read_back
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.drives.failed import FILL
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement


def judge(request: pytest.FixtureRequest, campaign: Campaign, geometry: Geometry) -> ReadBack:
    """Return the comparison of all data, and record it as evidence of the test.

    ``InvalidMeasurement`` if no drive has a finding, and one could not be decided: it was left out, or what it returned
    proves nothing about it. A drive that failed has a verdict of its own.
    """
    comparison = campaign.read_back(geometry)
    run = request.config.stash[QUALIFICATION]
    absent = _absent(request, campaign, geometry, {drive.serial for drive in comparison.drives})
    undecided = [str(drive) for drive in absent if not drive.failed]
    undecided += [f"{drive.serial} ({drive.doubt})" for drive in comparison.drives if drive.doubt]
    if undecided and not any(drive.findings for drive in comparison.drives):
        raise InvalidMeasurement(
            f"the data of {geometry} were not judged: nothing is decided about {', '.join(undecided)}"
        )
    failed = [str(drive) for drive in absent if drive.failed]
    remarks = (*failed, *(f"nothing is decided about {drive}" for drive in undecided))
    evidence = of_read_back(comparison, remarks, protocol=run.protocol.name, acceptance=run.acceptance)
    keep_evidence(request, evidence)
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
    run = request.config.stash[QUALIFICATION]
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
    if not has_lost and any(not drive.failed for drive in absent):
        raise InvalidMeasurement(f"nothing is decided about {', '.join(map(str, absent))}: their power was not cut")
    cuts = (max if has_lost else min)(drive.judged for drive in losses)
    result = DrivesHealth(findings, f"data after {counted(cuts, 'power cut')}")
    bound = "" if has_lost else f", so at most {power_loss.bound_percent(cuts):.3g} % lose any (95 % confidence)"
    evidence = of_power_cuts(losses, cuts, f"{result!r}{bound}", protocol=run.protocol.name, acceptance=run.acceptance)
    keep_evidence(request, replace(evidence, remarks=(*evidence.remarks, *map(str, absent))))
    return result
