"""The fixture ``ssd_read_back``: judges whether bare drives return what their fill wrote."""

from __future__ import annotations

import pytest

from pytest_ssdqual.plugin.judging import left_out
from pytest_ssdqual.plugin.stash import QUALIFICATION, RUN, keep_evidence
from pytest_ssdqual.qual.integrity.read_back import ReadBack
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.report.evidence.integrity import of_read_back
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
    run, bay = request.config.stash[QUALIFICATION], request.config.stash[RUN]
    failures = campaign.setup.failures
    absent = left_out.missing(
        {drive.serial for drive in comparison.drives},
        campaign.setup.held.drives[: geometry.width],
        failures,
        bay.failed_in,
        failures.left_out_of(FILL, CampaignStep(StepKind.READ_BACK, geometry)),
    )
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
