"""Whether a test judges what its own fixtures measured.

A result that a test keeps for another one would be judged twice, and the other's own never, with two verdicts.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.plugin.plan.needs import SubjectOfTest
from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.raid.geometry import Geometry


def objection(about: SubjectOfTest, judged: Subject) -> str:
    """Return why a test that is about this may not judge that; empty if it may."""
    cells = about.rounds.measured if about.rounds else ()
    pairs = (
        ([_at_rest(each) for each in about.geometries], [_at_rest(each) for each in judged.geometries]),
        (about.workloads or cells, judged.workloads),
    )
    for own, found in pairs:
        foreign = [each for each in found if each not in own]
        if own and foreign:
            judged_and_own = f"the test judges a result of {named(foreign, 1)}, but its parameter is {named(own, 3)}"
            return f"{judged_and_own}: judge what its own fixtures measured"
    return ""


def _at_rest(geometry: Geometry) -> Geometry:
    """The load during a rebuild is that of the same array."""
    return replace(geometry, rebuilding=False)
