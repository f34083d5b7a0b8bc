"""Fit of spec and drives: a run by the sheet of other drives, or on unlike drives, does not begin unless asked for.

A wrong sheet judges by wrong limits, and an array is as slow as its slowest member. A run that was asked for with
``--ssd-force-spec`` or ``--ssd-mixed`` has the differences as remarks, in its header and its manifest. The lab is
exempt: its drives are scale models with one model string (D127).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.qual.inspection.limits import CAPACITY_TOLERANCE, matches
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard import refusals

#: Number of drives in a sentence.
MOST_NAMED = 8


def require(run: Qualification) -> tuple[str, ...]:
    """Return the differences that were asked for, as remarks; ``pytest.UsageError`` for any other.

    A run with ``--ssd-read-only`` begins with any drives: its tests judge model, capacity and likeness themselves.
    """
    settings, drives = run.settings, run.bay.drives
    if settings.devices.lab is not None or settings.read_only:
        return ()
    of_spec, of_drives = list(unfit(run.spec, drives)), _unlike(run)
    refused = []
    if of_spec and not settings.force_spec:
        refused.append(f"{_sentence(run.spec, of_spec)}; name another with --ssd-spec, or add --ssd-force-spec")
    if of_drives and not (settings.mixed or run.spec.inspection.mixed):
        refused.append(
            f"the drives are not alike: {named(of_drives, MOST_NAMED, '; ')}; if that is meant, add --ssd-mixed, or, "
            "which the inspection accepts, too, mixed = true to the table inspection of the spec"
        )
    if refused:
        raise pytest.UsageError("\n".join(refused))
    forced = (f"{_sentence(run.spec, of_spec)} (--ssd-force-spec)",) if of_spec else ()
    return (*forced, *((f"the drives are not alike: {named(of_drives, MOST_NAMED, '; ')}",) if of_drives else ()))


def refused_array(run: Qualification) -> str:
    """Return why no array of the run's drives may be built, whose sizes or sheets differ; empty if one may.

    Drives side by side may differ in both.
    """
    drives = run.bay.drives
    if sizes := refusals.unequal(drives):
        return f"these drives cannot form one array: {'; '.join(sizes)}"
    own = [run.spec.of(drive.name) for drive in drives]
    mixed = run.settings.mixed or any(spec.inspection.mixed for spec in own)
    if run.settings.devices.lab is not None or mixed or len({spec.key for spec in own}) < 2:
        return ""
    return f"an array of drives with several sheets ({run.spec.assignment}) needs --ssd-mixed"


def _unlike(run: Qualification) -> list[str]:
    """Return the unlike drives; with several sheets of --ssd-spec, which say that models differ, within each sheet."""
    if len(run.settings.specs) < 2:
        return list(unlike(run.bay.drives))
    groups: dict[str, list[Drive]] = {}
    for drive in run.bay.drives:
        groups.setdefault(run.spec.of(drive.name).key, []).append(drive)
    return [sentence for drives in groups.values() for sentence in unlike(drives)]


def unfit(spec: Spec, drives: Sequence[Drive]) -> Iterator[str]:
    """Yield each drive whose model or capacity is not the spec's; a spec without models is for any."""
    for drive in drives:
        product = spec.of(drive.name).product
        models, capacity = product.models, product.capacity_bytes
        if models and not matches(drive.model or "", models):
            yield f"{drive.describe()} is none of its models ({', '.join(models)})"
        elif capacity and abs(drive.size_bytes - capacity) > capacity * CAPACITY_TOLERANCE:
            yield f"{drive.describe()} has {format_capacity(drive.size_bytes)}, not {format_capacity(capacity)}"


def unlike(drives: Sequence[Drive]) -> Iterator[str]:
    """Yield each drive whose model or firmware is not that of most drives."""
    for what, values in (
        ("model", [drive.model or "unknown" for drive in drives]),
        ("firmware", [drive.firmware or "unknown" for drive in drives]),
    ):
        if not values:
            continue
        usual, count = Counter(values).most_common(1)[0]
        for drive, value in zip(drives, values, strict=True):
            if value != usual:
                yield f"{drive.describe()} has the {what} {value}, {count} of {len(drives)} have {usual}"


def _sentence(spec: Spec, of_spec: Sequence[str]) -> str:
    return f"the spec {spec.key} is not for these drives: {named(of_spec, MOST_NAMED, '; ')}"
