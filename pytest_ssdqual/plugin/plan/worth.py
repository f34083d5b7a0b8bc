"""Worth of a plan's measurements: the order in which a time budget picks them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import OF_MEMBERS, CampaignStep, StepKind

#: Depths that suites judge on arrays: of most widths, and of few.
DEEP, SHALLOW = 8, 1


class Worth(Enum):
    """Groups of measurements, the worthiest first."""

    #: The published figures, on which all other promises rest.
    ANCHORS = "bare drives side by side"
    #: References of the arrays.
    MEMBERS = "members of arrays"
    OUTERMOST = f"QD {DEEP} of the narrowest and the widest array"
    BETWEEN = f"QD {DEEP} of the widths between"
    SHALLOW = f"QD {SHALLOW}"
    OTHERS = "others"


def by_worth(steps: Sequence[CampaignStep]) -> dict[Worth, list[CampaignStep]]:
    """Return the steps by their groups, the worthiest group first."""
    widths: dict[RaidLevel, list[int]] = {}
    for step in steps:
        if _array_depth(step):
            widths.setdefault(step.geometry.level, []).append(step.geometry.width)
    groups: dict[Worth, list[CampaignStep]] = {worth: [] for worth in Worth}
    for step in steps:
        groups[_worth(step, widths.get(step.geometry.level, ()))].append(step)
    return groups


def _worth(step: CampaignStep, widths: Sequence[int]) -> Worth:
    """Return the group of a step; ``widths`` are those of the whole arrays of its level."""
    if step.kind in OF_MEMBERS:
        return Worth.MEMBERS
    if step.kind is StepKind.MEASURED and step.geometry.is_side_by_side:
        return Worth.ANCHORS
    depth = _array_depth(step)
    if depth == DEEP:
        is_outermost = step.geometry.width in (min(widths), max(widths))
        return Worth.OUTERMOST if is_outermost else Worth.BETWEEN
    return Worth.SHALLOW if depth == SHALLOW else Worth.OTHERS


def _array_depth(step: CampaignStep) -> int:
    """Return the queue depth per drive of random I/O on a whole array; 0 for other steps."""
    geometry, what = step.geometry, step.what
    if step.kind is not StepKind.MEASURED or not isinstance(what, Workload) or not what.is_random:
        return 0
    return 0 if geometry.is_side_by_side or geometry.missing else what.qd_per_drive
