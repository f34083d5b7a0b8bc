"""Tests made from a data sheet: the mark ``ssd_figures`` runs a test once for each published figure of the spec.

A figure becomes the array, the workload and the claim of one test. A kind of figure that data sheets usually have and
this one lacks becomes a skipped test whose reason says so: the report lists what the sheet leaves open. With
``ssd_figures(chained=True)`` the figures are only those on which limits of arrays rest (`qual.spec.datasheet`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest

from pytest_ssdqual.plugin.plan.marks import ABSENT, ArrayRequest, ImpossibleArray, geometries
from pytest_ssdqual.qual.raid.geometry import ONE_DRIVE, Geometry, RaidLevel
from pytest_ssdqual.qual.spec import datasheet
from pytest_ssdqual.qual.spec.claims import Claim, Scope
from pytest_ssdqual.qual.spec.spec import DEFAULT, Spec
from pytest_ssdqual.qual.workload.workload import Workload

MARK = "ssd_figures"
PARAMETERS = ("ssd_geometry", "ssd_workload")
#: What is judged on each fixture; a test with another fixture has no figures.
SCOPES = {"ssd_run": Scope.RUN, "ssd_saturation": Scope.SATURATION}
#: Arrays and workloads of which one rests on each published maximum on which any other rests.
CHAINED = tuple(
    (Geometry.parse(array), Workload(kind, "4k", depth))
    for array, kind in (("raid5x8", "randwrite"), ("raid0x2", "randread"))
    for depth in (8, 1)
)
NO_SHEET = "no data sheet is known for this model: name one with --ssd-spec"


def parametrize(metafunc: pytest.Metafunc, spec: Spec, drives: int) -> None:
    """Give the test one set of parameters for each figure of ``spec``; ``drives`` is their number in this run.

    A figure of one drive is judged on all drives side by side, one of an array on that array. Raises
    ``pytest.UsageError`` for a test that requests no measurement a figure can be about.
    """
    scopes = [scope for name, scope in SCOPES.items() if name in metafunc.fixturenames]
    if len(scopes) != 1:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: a test with the mark {MARK} needs one of the fixtures "
            f"{' and '.join(SCOPES)}"
        )
    mark = metafunc.definition.get_closest_marker(MARK)
    given = dict(mark.kwargs) if mark else {}
    is_chained = given.pop("chained", False)
    if given or (mark and mark.args) or not isinstance(is_chained, bool):
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: the mark is {MARK}, or {MARK}(chained=True)")
    if is_chained:
        cases = _chained(spec, drives)
    else:
        cases = chain(_published(spec, scopes[0], drives), _absent(spec, scopes[0]))
    # Sheets of several models publish the same kinds of figures, and one test judges all drives that have one.
    found = {name: case for case, name in cases}
    metafunc.parametrize(PARAMETERS, list(found.values()), ids=list(found))


def _published(spec: Spec, scope: Scope, drives: int) -> Iterator[tuple[object, str]]:
    """Yield a set of parameters, and its id, for each published quantity of the scope."""
    for figure in spec.figures:
        for array, workload, claim in figure.places():
            if claim.scope is scope:
                yield _case(array, workload, claim, drives)


def _chained(spec: Spec, drives: int) -> Iterator[tuple[object, str]]:
    """Yield a set of parameters for each figure on which limits of arrays rest; an absent one if there is none."""
    chained = (sheet.chained(Claim.STEADY_IOPS, *place) for sheet in spec.different for place in CHAINED)
    anchors = [anchor.workload for promise in chained if promise for anchor in promise.anchors]
    yield from (_case(ONE_DRIVE, str(workload), Claim.STEADY_IOPS, drives) for workload in anchors)
    if not anchors:
        yield pytest.param(ABSENT, ABSENT), "drive-none"


def _case(array: Geometry, workload: str, claim: Claim, drives: int) -> tuple[object, str]:
    level, width = (RaidLevel.DRIVE, None) if array == ONE_DRIVE else (array.level, array.width)
    (geometry,) = geometries(ArrayRequest(level, width), drives)
    name = f"{geometry}-{workload}-{claim}"
    try:
        load = Workload.parse(workload)
    except ValueError:
        profile = f"{workload} is a profile, whose definition a data sheet does not contain"
        return _skipped(profile, claim, is_inapplicable=False), name
    if isinstance(geometry, ImpossibleArray):
        return _skipped(geometry.reason, claim), name
    return pytest.param(geometry, load, marks=pytest.mark.ssd_promise(claim.value)), name


def _absent(spec: Spec, scope: Scope) -> Iterator[tuple[object, str]]:
    """Yield a skipped set of parameters for each usual kind of figure that the sheet lacks."""
    without = f"{spec.name} publishes no" if spec.key != DEFAULT else f"{NO_SHEET}; there is no"
    if scope is Scope.RUN:
        for kind in datasheet.missing_kinds(spec.figures):
            yield _skipped(f"{without} {kind.label} of one drive", kind.claim), f"drive-{kind.name}"
    elif not any(claim.scope is scope for figure in spec.figures for claim in figure.quantities):
        yield _skipped(f"{without} figure from the purged state on", Claim.SETTLED_IOPS), "drive-from_purged_state"


def _skipped(reason: str, claim: Claim, *, is_inapplicable: bool = True) -> object:
    nothing = ImpossibleArray("none", reason, is_inapplicable)
    marks = (pytest.mark.skip(reason=reason), pytest.mark.ssd_promise(claim.value))
    return pytest.param(nothing, nothing, marks=marks)
