"""The fixtures ``ssd_discard`` and ``ssd_erasure``: judge what is left of discarded and of purged data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from pytest_ssdqual.plugin.judging.health import DrivesHealth
from pytest_ssdqual.plugin.plan import applicability, needs
from pytest_ssdqual.plugin.stash import QUALIFICATION, keep_evidence
from pytest_ssdqual.qual.integrity.erasure import NONE, DiscardedTarget, ErasedDrive
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.integrity import erase
from pytest_ssdqual.rig.integrity.md_target import MdTarget
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement


def judge(request: pytest.FixtureRequest, campaign: Campaign, geometry: Geometry) -> DrivesHealth:
    """Return what is left of discarded ranges or purged drives, by the name of the fixture, as evidence of the test.

    Skips the test if the drives or md take no discards, or no drive can be purged. ``InvalidMeasurement`` if nothing
    was found, and a drive was left out.
    """
    setup, run, kind = campaign.setup, request.config.stash[QUALIFICATION], needs.KINDS[str(request.fixturename)]
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
    wrong = tuple(drive.name for drive in members if findings.get(drive.name))
    evidence = health.counted(
        kind.value, str(geometry), health.LOAD, findings,
        sentence=repr(judged), remarks=tuple(remark for target in targets for remark in target.remarks),
        protocol=run.protocol.name, acceptance=run.acceptance,
        source="a drive keeps its promises about discarded and erased data (docs/integrity.md)",
        cause=Cause(Culprit.DRIVE, findings[wrong[0]][0], wrong) if wrong else None,
    )  # fmt: skip
    keep_evidence(request, evidence)
    return judged
