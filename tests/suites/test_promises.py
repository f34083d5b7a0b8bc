"""A suite's test reads as its promise: it judges one claim, on what that claim is about, and asserts the verdict."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.documents.suite_sources import SUITES, SuiteTest, shipped

from pytest_ssdqual.qual.spec.claims import OF_LATENCY, Claim, Scope

ALL = list(shipped())
#: Modules whose claims are those of the data sheet's figures.
OF_FIGURES = ("datasheet/test_published_figures.py", "test_published_maxima.py")
#: Without those.
JUDGING = [each for each in ALL if {"ssd_sla", "ssd_lot"} & set(each.fixtures) and not each.module.endswith(OF_FIGURES)]
#: The fixture that holds what a claim is judged on.
SUBJECTS: dict[Scope, tuple[str, ...]] = {
    Scope.RUN: ("ssd_run",),
    Scope.PREDICTED: ("ssd_run",),
    Scope.MEMBERS: ("ssd_run",),
    Scope.SWEEP: ("ssd_sweep",),
    Scope.CURVE: ("ssd_runs",),
    Scope.SATURATION: ("ssd_saturation",),
    Scope.REBUILD: ("ssd_rebuild",),
}
PUBLISHED = ("intel_910", "intel_s3500", "snia", "stec", "toms_s3500", "toms_s3700")
LEVELS = ("drive", "raid0", "raid1", "raid5", "raid6", "raid10")


@pytest.mark.parametrize("test", JUDGING, ids=str)
def test_one_claim_is_judged_on_what_it_is_about(test: SuiteTest) -> None:
    ((claim, subject),) = test.judged
    allowed = SUBJECTS[Claim(claim).scope]
    if Claim(claim).scope is Scope.RUN:  # the load of a rebuild is an ordinary measurement
        allowed = (*allowed, "ssd_rebuild.foreground")
    if Claim(claim) in OF_LATENCY:
        allowed = (*allowed, "ssd_saturation")
    assert subject in allowed
    assert subject.partition(".")[0] in test.fixtures


@pytest.mark.parametrize("test", ALL, ids=str)
def test_it_is_three_lines_at_most(test: SuiteTest) -> None:
    assert test.statements <= 2


def test_every_level_and_every_publication_is_a_suite() -> None:
    folders = {path.parent.name for path in SUITES.glob("*/test_*.py")}
    assert {*PUBLISHED, *LEVELS, "lot"} <= folders


@pytest.mark.parametrize("level", [each for each in LEVELS if each != "drive"])
def test_all_levels_of_arrays_are_asked_the_same(level: str) -> None:
    def asked(name: str) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        return {(each.name, each.judged) for each in ALL if each.module.startswith(f"{name}/")}

    assert asked("raid0") <= asked(level)


@pytest.mark.parametrize("path", sorted(SUITES.glob("*/test_*.py")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_module_has_a_docstring_and_no_private_import(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    private = {name for name in imported if name and name.startswith("pytest_ssdqual.")}
    assert not private or path.parent.name == "meta"
