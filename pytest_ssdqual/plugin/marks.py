"""Marks → what each test needs, as values: which arrays under which workloads, with readable ids and skip reasons.

Only tests that bear our own marks are touched; another suite in the same environment may well have fixtures
called ``array`` or ``run``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from pytest_ssdqual.qual.geometry import FACTS, Geometry, Level
from pytest_ssdqual.qual.workload import Workload

NO_DRIVES = (
    "needs drives: add --ssd-devices='/dev/sd[b-i]' (all data on them will be DESTROYED), "
    "or --ssd-devices=lab:8 to rehearse with emulated ones"
)


@dataclass(frozen=True, slots=True)
class Family:
    """All widths of one level that a sweep compares."""

    level: Level
    geometries: tuple[Geometry, ...]

    def __str__(self) -> str:
        return str(self.level)


def parametrize(metafunc: pytest.Metafunc, drives: int | None) -> None:
    """Expand the marks of one test function for ``drives`` drives; None: this run has none.

    Fixtures called ``geometry``, ``family`` and ``workload`` get their values here; everything else follows.
    """
    mark = metafunc.definition.get_closest_marker("array")
    if mark is None or drives is None:
        return
    level, widths = _arguments(mark, metafunc.definition.nodeid)
    if "family" in metafunc.fixturenames:
        metafunc.parametrize("family", [_family(level, widths, drives)], ids=str)
    elif "geometry" in metafunc.fixturenames:
        metafunc.parametrize("geometry", _geometries(level, widths, drives), ids=str)
    if "workload" in metafunc.fixturenames:
        metafunc.parametrize("workload", _workloads(metafunc), ids=str)


def needs_drives(item: pytest.Item) -> bool:
    """Whether the item is one of ours: it can do nothing without drives."""
    return item.get_closest_marker("array") is not None


def _arguments(mark: pytest.Mark, nodeid: str) -> tuple[Level, tuple[int, ...] | None]:
    unknown = sorted(set(mark.kwargs) - {"widths"})
    if unknown:
        raise pytest.UsageError(f"{nodeid}: the mark array(level, widths=None) has no {', '.join(unknown)}")
    try:
        (name,) = mark.args
        level = Level(name)
        widths = mark.kwargs.get("widths")
        return level, None if widths is None else tuple(Geometry(level, int(width)).width for width in widths)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{nodeid}: the mark array(level, widths=None) makes no sense: {error}") from error


def _possible(level: Level, drives: int) -> list[Geometry]:
    facts = FACTS[level]
    widest = drives if facts.step else min(facts.minimum, drives)
    return [Geometry(level, width) for width in range(facts.minimum, widest + 1, facts.step or 1)]


def _geometries(level: Level, widths: Sequence[int] | None, drives: int) -> list[object]:
    """All that can be built; what cannot be is there too, skipped with its numbers."""
    wanted = _possible(level, drives) if widths is None else [Geometry(level, width) for width in widths]
    if not wanted:
        return [_skipped(level, f"{level} needs at least {FACTS[level].minimum} drives, {drives} given")]
    return [
        geometry if geometry.width <= drives else _skipped(geometry, f"needs {geometry.width} drives, {drives} given")
        for geometry in wanted
    ]


def _family(level: Level, widths: Sequence[int] | None, drives: int) -> object:
    wanted = _possible(level, drives) if widths is None else [Geometry(level, width) for width in widths]
    built = tuple(geometry for geometry in wanted if geometry.width <= drives)
    if len(built) > 1:
        return Family(level, built)
    facts = FACTS[level]
    return _skipped(level, f"needs two widths of {level} ({facts.minimum + facts.step} drives), {drives} given")


def _skipped(value: object, reason: str) -> object:
    return pytest.param(value, marks=pytest.mark.skip(reason=reason))


def _workloads(metafunc: pytest.Metafunc) -> Iterable[Workload]:
    found: list[Workload] = []
    # Marks accumulate from the module to the function; iter_markers starts with the nearest.
    for mark in metafunc.definition.iter_markers("workload"):
        for each in mark.args:
            if not isinstance(each, Workload):
                raise pytest.UsageError(
                    f"{metafunc.definition.nodeid}: the mark workload takes pytest_ssdqual.Workload, not {each!r}"
                )
            if each not in found:
                found.append(each)
        if found:
            break
    if not found:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: a test of a run needs the mark workload(*workloads)")
    return found
