"""Gives each drive of a bay its spec: the sheets of ``--ssd-spec`` by model and capacity, else the shipped ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.qual.inspection.limits import CAPACITY_TOLERANCE
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec.combined import combine
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.rig.drives.failed import serial_of

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.bay.bay import Bay
    from pytest_ssdqual.rig.drives.survey import Drive

#: Spec of the lab's drives; their model does not identify them, as all of QEMU's NVMe drives have the same one.
LAB_SPEC = "ssdqual-sm300"


@dataclass(frozen=True, slots=True)
class Sheets:
    """The spec of a bay, and the sheets that it consists of."""

    spec: Spec
    #: Path or shipped name of each sheet.
    sources: tuple[str, ...]


def load(sources: Sequence[str]) -> tuple[Spec, ...]:
    """Load the sheets of ``--ssd-spec``; raise ``pytest.UsageError``, also for different ones of the same name."""
    try:
        loaded = tuple(map(specs.load, sources))
    except ValueError as error:
        raise pytest.UsageError(f"--ssd-spec: {error}") from error
    named: dict[str, Spec] = {}
    for spec in loaded:
        # Records and groups of drives tell sheets apart by their names.
        if named.setdefault(spec.key, spec) != spec:
            raise pytest.UsageError(f"--ssd-spec: two different specs are named {spec.key}; rename one of the files")
    return loaded


def assigned(sources: Sequence[str], bay: Bay, *, is_lab: bool = False, is_of_several: bool = False) -> Sheets:
    """Return the spec of a bay: of ``sources``, or of the shipped sheets if there are none.

    Raises ``pytest.UsageError`` for a drive with none or two of several sheets, and, unless another bay may have it
    (``is_of_several``), for a sheet without a drive. Also for sheets that cannot be combined.
    """
    if not sources:
        sources = (LAB_SPEC,) if is_lab else _of_models(bay.drives)
    loaded = load(sources)
    chosen = [_chosen(loaded, drive) for drive in bay.drives]
    if not is_of_several and (idle := [spec.key for spec in loaded if spec not in chosen and chosen]):
        raise pytest.UsageError(f"--ssd-spec: none of the drives is one of {' or '.join(idle)}; leave it out")
    own = {
        serial_of(drive): _of_class(spec, drive, is_lab=is_lab) for drive, spec in zip(bay.drives, chosen, strict=True)
    }
    try:
        return Sheets(combine(own) if own else loaded[0], tuple(sources))
    except ValueError as error:
        raise pytest.UsageError(f"--ssd-spec: {error}") from error


def _of_models(drives: Sequence[Drive]) -> tuple[str, ...]:
    """Return the names of the shipped sheets of these models; ``default`` for drives without one."""
    found = (specs.find_by_model(drive.model or "") for drive in drives)
    return tuple(dict.fromkeys(spec.key if spec else specs.DEFAULT for spec in found)) or (specs.DEFAULT,)


def _chosen(loaded: Sequence[Spec], drive: Drive) -> Spec:
    """Return the sheet of a drive, by its model, and by its capacity where several sheets have the model.

    A sheet without models is for drives that no other sheet names.
    """
    if len(loaded) == 1:
        return loaded[0]
    found = [spec for spec in loaded if spec.fits(drive.model or "")]
    found = found or [spec for spec in loaded if not spec.product.models]
    if len(found) > 1:
        found = [spec for spec in found if _has_capacity(spec, drive)] or found
    if len(found) == 1:
        return found[0]
    names = " and ".join(spec.key for spec in found or loaded)
    if found:
        raise pytest.UsageError(f"--ssd-spec: {names} are both for {drive.describe()}; name one of them")
    raise pytest.UsageError(f"--ssd-spec: none of {names} is for {drive.describe()}; name the sheet of this drive, too")


def _has_capacity(spec: Spec, drive: Drive) -> bool:
    capacity = spec.product.capacity_bytes
    return capacity is None or abs(drive.size_bytes - capacity) <= capacity * CAPACITY_TOLERANCE


def _of_class(spec: Spec, drive: Drive, *, is_lab: bool) -> Spec:
    """Return the spec with the class of the drive, on which the limits for any drive depend."""
    return replace(spec, drive_class=DriveClass.EMULATED if is_lab else drive.drive_class or spec.drive_class)
