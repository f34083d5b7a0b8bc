"""Gives each drive of a bay its spec: the sheets of ``--ssd-spec`` by model and capacity, else the shipped ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

import pytest

from pytest_ssdqual.plugin.bay.bay import Bay
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.qual.inspection.limits import CAPACITY_TOLERANCE
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.combined import combine
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.rig.drives.survey import Drive

#: Spec of the lab's drives; their model does not identify them, as all of QEMU's NVMe drives have the same one.
LAB_SPEC = "ssdqual-sm300"
#: A capacity in a model string or a name: ``3T84``, ``076T``, ``960G``, ``480H``, ``7.68 TB``.
_CAPACITY = re.compile(r"\d+T\d*|\d{3,}(?=[GH])G?|[\d.]+ ?[TG]B")
#: Least likeness of a model and a sheet's, as of ``difflib``, and number of models in a sentence.
ALIKE, MOST_NAMED = 0.6, 4


def load(sources: Sequence[str]) -> tuple[Spec, ...]:
    """Load the sheets of ``--ssd-spec``; raise ``pytest.UsageError``, also for different ones of the same name."""
    with usage_error(ValueError, of="--ssd-spec"):
        loaded = tuple(map(specs.load, sources))
    named: dict[str, Spec] = {}
    for spec in loaded:
        # Records and groups of drives tell sheets apart by their names.
        if named.setdefault(spec.key, spec) != spec:
            raise pytest.UsageError(f"--ssd-spec: two different specs are named {spec.key}; rename one of the files")
    return loaded


def assigned(sources: Sequence[str], bay: Bay, *, is_lab: bool, is_of_several: bool) -> tuple[Spec, tuple[str, ...]]:
    """Return the spec of a bay: of ``sources``, or of the shipped sheets if there are none, and the sources.

    Raises ``pytest.UsageError`` for a drive with none or two of several sheets, and, unless another bay may have it
    (``is_of_several``), for a sheet without a drive. Also for sheets that cannot be combined.
    """
    if not sources:
        sources = (LAB_SPEC,) if is_lab else _of_models(bay.drives)
    loaded = load(sources)
    chosen = [_chosen(loaded, drive) for drive in bay.drives]
    if not is_of_several and (idle := [spec.key for spec in loaded if spec not in chosen and chosen]):
        raise pytest.UsageError(f"--ssd-spec: none of the drives is one of {' or '.join(idle)}; leave it out")
    stated = min((each for drive in bay.drives if (each := drive.preferred_write_bytes)), default=None)
    own = {
        drive.name: replace(_of_class(spec, drive, is_lab=is_lab), preferred_write_bytes=stated)
        for drive, spec in zip(bay.drives, chosen, strict=True)
    }
    with usage_error(ValueError, of="--ssd-spec"):
        return combine(own) if own else loaded[0], tuple(sources)


def require(run: Qualification, tests: Mapping[pytest.Item, Claim | None], of: int) -> None:
    """Raise ``pytest.UsageError`` if tests have their limits from a sheet, and a drive has none.

    ``tests`` are those of the ``of`` selected ones, each with a claim that it judges by a sheet. A sheet that the user
    names is enough, ``default`` too. The promises for any drive alone pass a drive at a hundredth of its sheet.
    """
    models = run.without_sheet
    if run.settings.specs or not models or not tests:
        return
    item, claim = next(iter(tests.items()))
    first = f"the {claim.label} of {item.nodeid}" if claim else item.nodeid
    raise pytest.UsageError(
        unknown(run.bay.drives, models, f", and {len(tests):,} of {of:,} tests judge by one, {first} first")
    )


def remarks(run: Qualification) -> tuple[str, ...]:
    """Return what is doubtful in the sheets, or the remark that no figure of a sheet is judged."""
    if not (models := run.without_sheet):
        return tuple(f"{sheet.key}: {doubt}" for sheet in run.spec.different for doubt in sheet.doubts())
    why = "--ssd-spec=default" if run.settings.specs else "none is known"
    near = alike(run.bay.drives, models)
    return (f"no figure of a data sheet is judged for {named(models, MOST_NAMED)}: {why}{near}",)


def unknown(drives: Sequence[Drive], models: Sequence[str], judged: str = "") -> str:
    """Return the sentence about models without a sheet, what is ``judged`` by one, and the three ways out."""
    return (
        f"no data sheet is known for {named(models, MOST_NAMED)}{alike(drives, models)}{judged}: name a file of your "
        "own with --ssd-spec=FILE; or measure a drive that you trust with --ssd-spec=default and -o "
        "ssd_measure_unpromised=true, and make the file of that run with ssdqual spec --from RUN; or judge no figure "
        "of a sheet with --ssd-spec=default"
    )


def alike(drives: Sequence[Drive], models: Sequence[str]) -> str:
    """Return, in brackets, the shipped sheets that are nearest to drives of these models; "" if none is.

    Nearest is what is called alike, else what has the same class and capacity: HPE's numbers name no maker.
    """
    near = dict.fromkeys(spec.key for model in models if (spec := nearest(model)))
    words = "similar products"
    if not near:
        own = [drive for drive in drives if drive.model in models]
        near = dict.fromkeys(spec.key for drive in own for spec in _of_kind(drive))
        words = "drives of this class and capacity"
    return f" (shipped sheets of {words}: {named([*near], MOST_NAMED)})" if near else ""


def nearest(model: str) -> Spec | None:
    """Return the shipped sheet whose name or model resembles a model string most; None if none does.

    Capacities are left out: a sheet of the same series is nearer than one of the same capacity.
    """
    known: dict[str, Spec] = {}
    for spec in map(specs.load, specs.shipped()):
        if spec.product.models and spec.key != LAB_SPEC:
            names = (
                spec.name.removeprefix(spec.product.vendor).strip(),
                *(each.strip("*") for each in spec.product.models),
            )
            known |= dict.fromkeys(map(_series, names), spec)
    words = [_series(word) for word in (model, *re.split(r"[\s_]+", model))]
    # A pattern is a prefix: what follows in the model string says nothing.
    ratio, name = max(
        (SequenceMatcher(None, word[: len(name)], name).ratio(), name) for word in words for name in known
    )
    return known[name] if ratio >= ALIKE else None


def _series(name: str) -> str:
    """Return a name or model string without its capacity: ``kcd8xrug#`` of ``KCD8XRUG3T84``."""
    return _CAPACITY.sub("#", name).lower()


def _of_kind(drive: Drive) -> list[Spec]:
    """Return the shipped sheets of drives of the same class and capacity."""
    sheets = map(specs.load, specs.shipped())
    return [
        spec for spec in sheets
        if spec.drive_class and spec.drive_class is drive.drive_class and spec.product.capacity_bytes
        and _has_capacity(spec, drive)
    ]  # fmt: skip


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
