"""Marks → what each test is about, as values: arrays, workloads, series and loops, with readable ids and skip reasons.

Only tests that bear our own marks are touched; another suite in the same environment may well have fixtures
called ``array`` or ``run``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

import pytest

from pytest_ssdqual.plugin.plan import arrays
from pytest_ssdqual.plugin.plan.arrays import Family, Impossible, Request, Widths
from pytest_ssdqual.qual.raid.geometry import Geometry, Level
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.workload.rounds import Loop
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import Series

T = TypeVar("T")

NO_DRIVES = (
    "needs drives: add --ssd-devices='/dev/sd[b-i]' (all data on them will be DESTROYED), "
    "or --ssd-devices=lab:8 to rehearse with emulated ones"
)
ARRAY = "array(level, widths=None, failed=0)"
#: What is measured on a degraded array that is then rebuilt is measured by other tests.
NOT_WITH_REBUILD = ("run", "runs", "sweep", "saturation", "loop_result", "array", "steady")


def parametrize(metafunc: pytest.Metafunc, drives: int | None, instead: Sequence[Request] = ()) -> None:
    """Expand the marks of one test function for ``drives`` drives; None: this run has none.

    Fixtures called ``geometry``, ``family``, ``workload``, ``series`` and ``loop`` get their values here; everything
    else follows. ``instead`` are the arrays that the user wants methods to be run on.
    """
    mark = metafunc.definition.get_closest_marker("array")
    if mark is None or drives is None:
        return
    names, nodeid = metafunc.fixturenames, metafunc.definition.nodeid
    asked = _asked(mark, nodeid, instead)
    published(metafunc.definition)
    if "rebuild" in names and (both := [each for each in NOT_WITH_REBUILD if each in names]):
        raise pytest.UsageError(
            f"{nodeid}: a test of a rebuild cannot ask for {both[0]} too; what ran meanwhile is rebuild.foreground"
        )
    if "family" in names:
        _parametrize(metafunc, "family", [arrays.family(each, drives) for each in asked])
    elif "geometry" in names:
        found = [arrays.geometries(each, drives, rebuilding="rebuild" in names) for each in asked]
        _parametrize(metafunc, "geometry", [each for part in found for each in part])
    if "series" in names:
        _parametrize(metafunc, "series", _values(metafunc.definition, "series", Series, "a series"))
    loops = _given(metafunc.definition, "loop", Loop)
    if "loop" in names and loops and "workload" in names:
        cells = [(loop, cell) for loop in loops for cell in _cells(metafunc.definition, loop)]
        metafunc.parametrize(("loop", "workload"), cells, ids=[f"{loop}-{cell}" for loop, cell in cells])
    elif "loop" in names and loops:
        _parametrize(metafunc, "loop", loops)
    elif "workload" in names:
        _parametrize(metafunc, "workload", _values(metafunc.definition, "workload", Workload, "a run"))


def needs_drives(item: pytest.Item) -> bool:
    """Whether the item is one of ours: it can do nothing without drives."""
    return item.get_closest_marker("array") is not None


def published(item: pytest.Item) -> str | None:
    """The shipped data sheet whose figures the test is to be read beside; None: that of the run.

    ``pytest.UsageError`` if there is no such sheet.
    """
    mark = item.get_closest_marker("published")
    if mark is None:
        return None
    from pytest_ssdqual.qual.spec import spec

    if len(mark.args) != 1 or mark.kwargs or mark.args[0] not in spec.shipped():
        raise pytest.UsageError(
            f"{item.nodeid}: the mark published(sheet) takes the name of a shipped data sheet "
            f"({', '.join(spec.shipped())}), not {', '.join(map(repr, mark.args)) or 'nothing'}"
        )
    return str(mark.args[0])


def promised(item: pytest.Item) -> frozenset[Claim]:
    """The claims that the marks ``promise`` of a test name, those of its module and class included.

    ``pytest.UsageError`` for a name that is no claim.
    """
    names = [name for mark in item.iter_markers("promise") for name in mark.args]
    for name in names:
        if name not in list(Claim):
            close = get_close_matches(str(name), list(Claim), 1)
            raise pytest.UsageError(
                f"{item.nodeid}: the mark promise(*claims) names {name!r}, which is no claim; "
                + (f"did you mean '{close[0]}'?" if close else f"there are {', '.join(Claim)}")
            )
    return frozenset(map(Claim, names))


def require_promises(items: Iterable[pytest.Item]) -> None:
    """``pytest.UsageError`` if a test judges something and does not declare what: drive time is planned by that."""
    for item in filter(needs_drives, items):
        names = set(getattr(item, "fixturenames", ()))
        # A search judges whatever the spec promises of the workloads that it draws.
        if not promised(item) and "sla" in names and "explore" not in names:
            raise pytest.UsageError(
                f"{item.nodeid}: a test with the fixture {'lot' if 'lot' in names else 'sla'} declares what it judges: "
                'add for example @pytest.mark.promise("p99_latency")'
            )


def _asked(mark: pytest.Mark, nodeid: str, instead: Sequence[Request]) -> Sequence[Widths | Request]:
    unknown = sorted(set(mark.kwargs) - {"widths", "failed", "default"})
    if unknown:
        raise pytest.UsageError(f"{nodeid}: the mark {ARRAY} has no {', '.join(unknown)}")
    try:
        if "default" in mark.kwargs:
            if mark.args or len(mark.kwargs) > 1:
                raise ValueError("default is a whole list of arrays, nothing goes with it")  # noqa: TRY301
            return instead or arrays.parse_list(mark.kwargs["default"])
        (level,) = mark.args
        widths = mark.kwargs.get("widths")
        wanted = None if widths is None else tuple(int(width) for width in widths)
        return (Widths(Level(level), wanted, int(mark.kwargs.get("failed", 0))),)
    except (AttributeError, TypeError, ValueError) as error:
        raise pytest.UsageError(f"{nodeid}: the mark {ARRAY} makes no sense: {error}") from error


def _parametrize(metafunc: pytest.Metafunc, name: str, values: Sequence[object]) -> None:
    parameters = [
        pytest.param(each, marks=pytest.mark.skip(reason=each.reason)) if isinstance(each, Impossible) else each
        for each in values
    ]
    metafunc.parametrize(name, parameters, ids=[str(each) for each in values])


def _given(item: pytest.Item, name: str, kind: type[T]) -> list[T]:
    """The arguments of the nearest mark of this name, each once."""
    for mark in item.iter_markers(name):  # the nearest comes first: a function's own replaces its module's
        wrong = next((each for each in mark.args if not isinstance(each, kind)), None)
        if wrong is not None:
            raise pytest.UsageError(
                f"{item.nodeid}: the mark {name} takes pytest_ssdqual.{kind.__name__}, not {wrong!r}"
            )
        if mark.args:
            return list(dict.fromkeys(mark.args))
    return []


def _values(item: pytest.Item, name: str, kind: type[T], what: str) -> list[T]:
    found = _given(item, name, kind)
    if not found:
        star = name if name == "series" else f"{name}s"
        raise pytest.UsageError(f"{item.nodeid}: a test of {what} needs the mark {name}(*{star})")
    return found


def _cells(item: pytest.Item, loop: Loop) -> Sequence[Workload]:
    """Those of the loop that the mark ``workload`` names; all of them without it."""
    wanted = _given(item, "workload", Workload)
    foreign = [each for each in wanted if each not in loop.workloads]
    if foreign:
        raise pytest.UsageError(f"{item.nodeid}: {foreign[0]} is no workload of the loop {loop}")
    return wanted or loop.workloads


__all__ = [
    "NO_DRIVES",
    "Family",
    "Geometry",
    "needs_drives",
    "parametrize",
    "promised",
    "published",
    "require_promises",
]
