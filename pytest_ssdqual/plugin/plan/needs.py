"""The steps that one test needs, and the reasons why these drives cannot serve them.

A test that these drives cannot serve is skipped as a whole: a part of a method's workloads is not the method.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import pytest

from pytest_ssdqual.plugin.plan import marks
from pytest_ssdqual.plugin.plan.marks import ArrayFamily, needs_drives
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import WorkloadSet
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.label import HEAD_BYTES

T = TypeVar("T")

#: fio's limit (REAL_MAX_JOBS in its fio.h).
MOST_JOBS = 4096
#: Kinds of steps that do something else with a workload than measure it, by the fixture that needs them.
APART = {"ssd_saturation": StepKind.SATURATION, "ssd_rebuild": StepKind.REBUILD, "ssd_explore": StepKind.SEARCH}
#: Kinds of steps without a workload, by the fixture that needs them.
KINDS = {
    "ssd_integrity": StepKind.INTEGRITY,
    "ssd_power_cuts": StepKind.INTEGRITY,
    "ssd_discard": StepKind.DISCARD,
    "ssd_erasure": StepKind.ERASURE,
    "ssd_read_back": StepKind.READ_BACK,
}


@frozen
class SubjectOfTest:
    """What the parameters of a test say that it is about; None for what it has none of."""

    geometry: Geometry | None
    family: ArrayFamily | None
    workload: Workload | None
    series: WorkloadSet | None
    rounds: Rounds | None

    @property
    def geometries(self) -> tuple[Geometry, ...]:
        """One array, or all widths of a sweep."""
        if self.family:
            return self.family.geometries
        return (self.geometry,) if self.geometry else ()

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The workload of the test, and those of its set."""
        own = (self.workload,) if self.workload else ()
        return (*own, *(self.series.workloads if self.series else ()))


def subject(item: pytest.Item) -> SubjectOfTest:
    """Return what a test is about."""
    given = marks.parameters(item)

    def of_kind(name: str, kind: type[T]) -> T | None:
        value = given.get(name)
        return value if isinstance(value, kind) else None

    return SubjectOfTest(
        of_kind("ssd_geometry", Geometry),
        of_kind("_ssd_widths", ArrayFamily),
        of_kind("ssd_workload", Workload),
        of_kind("ssd_workload_set", WorkloadSet),
        of_kind(marks.ROUNDS, Rounds),
    )


def of(item: pytest.Item) -> tuple[CampaignStep, ...]:
    """Return the steps that a test needs; none if it does not use the drives."""
    names = marks.fixtures(item)
    if not needs_drives(item) or "_ssd_campaign" not in names:
        return ()
    if "ssd_power_cuts" in names and not item.config.getoption("ssd_power_off"):
        return ()  # skipped
    about = subject(item)
    own = (about.workload,) if about.workload else ()
    kinds = [kind for name, kind in KINDS.items() if name in names]
    work: list[tuple[StepKind, Workload | Rounds | None]] = [
        (kind, workload) for name, kind in APART.items() if name in names for workload in own
    ]
    is_apart = bool(work or StepKind.INTEGRITY in kinds) and "ssd_run" not in names
    if about.rounds:  # single runs and workload sets are cells of the rounds
        work.append((StepKind.LOOP, about.rounds))
    else:
        measured = about.workloads[len(own) :] if is_apart else about.workloads
        work += [(StepKind.MEASURED, workload) for workload in measured]
    if kinds or not work:
        work.append((kinds[0] if kinds else StepKind.ARRAY, None))
    return tuple(CampaignStep(kind, geometry, what) for geometry in about.geometries for kind, what in work)


def objections(steps: Iterable[CampaignStep], drives: Sequence[Drive]) -> tuple[str, ...]:
    """Return the reasons why these drives cannot serve the steps, each once; empty if they can."""
    return tuple(dict.fromkeys(chain.from_iterable(_of_step(step, drives) for step in steps)))


def _of_step(step: CampaignStep, drives: Sequence[Drive]) -> Iterator[str]:
    workloads: Iterable[Workload] = (step.what,) if isinstance(step.what, Workload) else ()
    if isinstance(step.what, Rounds):
        workloads = dict.fromkeys((*(workload for workload, _ in step.what.processes), *step.what.measured))
    for workload in workloads:
        if workload.rate_percent or (workload.rate_iops and step.kind is not StepKind.MEASURED):
            yield f"{workload} has a rate, which is possible with the mark ssd_workload and the fixture ssd_run"
        yield from _objections(step.geometry, workload, drives[: step.geometry.width])


def _objections(geometry: Geometry, workload: Workload, members: Sequence[Drive]) -> Iterator[str]:
    if not members:
        return
    yield from _of_depth(geometry, workload, members)
    for each in (workload, workload.writer):
        yield from _of_blocks(each, max(drive.logical_block_bytes for drive in members))
        yield from _of_size(geometry, each, min(drive.size_bytes for drive in members))


def _of_blocks(workload: Workload, block: int) -> Iterator[str]:
    if odd := [size for size, _ in workload.sizes if size % block]:
        yield f"{workload} has {min(odd):,}-byte I/O, these drives have blocks of {block:,} bytes"
    elif workload.offset_bytes % block:
        yield f"{workload} begins at byte {workload.offset_bytes:,}, these drives have blocks of {block:,} bytes"


def _of_depth(geometry: Geometry, workload: Workload, members: Sequence[Drive]) -> Iterator[str]:
    if workload.rate_iops:  # the depth is reached only if the drive does not keep the rate
        width = geometry.width
        jobs = width * workload.outstanding(1) if geometry.is_side_by_side else workload.outstanding(width)
        if jobs > MOST_JOBS:
            yield f"{workload} on {geometry} needs {jobs:,} jobs, one for each I/O; fio has {MOST_JOBS:,} at most"
        return
    limits = [drive.queue_limit for drive in members if drive.queue_limit is not None]
    if not limits:
        return
    if geometry.is_side_by_side:
        depth = workload.depth_per_member(1)
    else:
        depth = workload.outstanding(geometry.width) / (geometry.width - geometry.missing)
    if depth > min(limits):
        yield f"{workload} on {geometry} has {depth:.4g} I/Os outstanding per drive, these drives queue {min(limits)}"


def _of_size(geometry: Geometry, workload: Workload, drive_bytes: int) -> Iterator[str]:
    """Yield a reason if the target is too small: each stream has an equal share of it, which must hold a transfer."""
    width = 1 if geometry.is_side_by_side else geometry.width
    whole = drive_bytes if geometry.is_side_by_side else drive_bytes * geometry.data_drives
    target = (whole - HEAD_BYTES) * workload.region_percent // 100
    streams = 1 if workload.is_random else workload.jobs(width) * (2 if workload.has_streams else 1)
    over = workload.smallest_bytes if workload.gap_bytes % workload.smallest_bytes else 0
    needed = workload.offset_bytes + streams * (workload.largest_bytes + over)
    if needed > target:
        yield (
            f"{workload} needs {format_capacity(needed)} for {streams} stream{'s' if streams > 1 else ''}, "
            f"{'a drive' if geometry.is_side_by_side else geometry} has {format_capacity(whole)}"
        )
