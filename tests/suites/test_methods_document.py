"""``docs/methods.md`` against what there is: every id of the sources once, every test and every figure it names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from support.documents.published_sets import EVERYTHING, WORKLOADS
from support.documents.suite_sources import shipped

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import WorkloadSet

DOCUMENT = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
#: Everything that the sources are numbered by, and how far.
NUMBERED = {
    "A-P": 10, "A-": 38, "A-D": 7, "A-W": 8, "B-": 10, "C-": 11, "D-P": 4, "D-": 11, "E-R": 11, "E-W": 11, "E-M": 7,
    "E-": 8,
}  # fmt: skip
ID = re.compile(r"([A-E]-[PDWRM]?)(\d+)")
TEST = re.compile(r"`(?P<function>\w+/test_\w+\.py::test_\w+)(?:\[(?P<id>[^\]`]+)\])?`")
FIGURE = re.compile(r"`(?P<sheet>[a-z0-9-]+)`: (?P<text>[^|]+)")
FUNCTIONS = {str(each): each for each in shipped()}


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One line of a table that is about the sources' statements."""

    ids: tuple[str, ...]
    cells: tuple[str, ...]

    def __str__(self) -> str:
        return self.ids[0]

    @property
    def tests(self) -> list[tuple[str, str]]:
        """Functions with the ids of their parameters (globs)."""
        return [(found["function"], found["id"] or "") for found in TEST.finditer(" ".join(self.cells))]


def rows() -> Iterator[DocumentRow]:
    for line in DOCUMENT.splitlines():
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
        if line.startswith("|") and (ids := tuple(expanded(cells[0]))):
            yield DocumentRow(ids, cells)


def expanded(cell: str) -> Iterator[str]:
    """``E-R1 to E-R3`` → three ids."""
    found = ID.findall(cell)
    if len(found) == 2 and " to " in cell:
        (kind, first), (_, last) = found
        yield from (f"{kind}{number}" for number in range(int(first), int(last) + 1))
    elif re.fullmatch(ID, cell):
        yield cell


ROWS = list(rows())
WITH_FIGURE = [row for row in ROWS if FIGURE.search(row.cells[-1])]


def test_every_statement_of_the_sources_has_its_line() -> None:
    wanted = Counter(
        f"{kind}{number:02}" if kind.endswith("-") else f"{kind}{number}"
        for kind, last in NUMBERED.items()
        for number in range(1, last + 1)
    )
    assert Counter(each for row in ROWS for each in row.ids) == wanted


def test_every_statement_has_a_test_a_place_or_a_reason() -> None:
    assert not [row for row in ROWS if len(row.cells) < 3 or not row.cells[2]]


@pytest.mark.parametrize("function", sorted({each["function"] for each in TEST.finditer(DOCUMENT)}))
def test_every_function_that_is_named_is_in_a_suite(function: str) -> None:
    assert function in FUNCTIONS


def test_every_module_of_a_method_is_named() -> None:
    named = {each["function"].partition("::")[0] for each in TEST.finditer(DOCUMENT)}
    methods = {str(Path(each).parent) for each in named} - {"drive"}
    modules = {each.module for each in shipped() if str(Path(each.module).parent) in methods}
    # The health of the drives is no claim of a publication.
    assert {each for each in modules if not each.endswith("/test_health.py")} <= named


def test_every_id_that_is_named_is_collected(collected: tuple[str, ...]) -> None:
    named = {(each["function"], each["id"]) for each in TEST.finditer(DOCUMENT) if each["id"]}
    missing = [f"{function}[{glob}]" for function, glob in sorted(named) if not matching(collected, function, glob)]
    assert not missing


@pytest.mark.parametrize("row", WITH_FIGURE, ids=str)
def test_a_figure_is_the_one_of_the_data_sheet(row: DocumentRow, collected: tuple[str, ...]) -> None:
    found = FIGURE.search(row.cells[-1])
    assert found
    function, glob = row.tests[0]
    sheet = spec.load(found["sheet"])
    ((claim, _),) = FUNCTIONS[function].judged
    stated = [published(sheet, claim, each) for each in matching(collected, function, glob)]
    first, _, last = found["text"].strip().partition(" … ")
    assert str(stated[0]) == first
    assert len(stated) == len(row.ids)
    assert not last or str(stated[-1]) == last


def published(sheet: spec.Spec, claim: str, parameters: str) -> Published | None:
    geometry, _, workload = parameters.partition("-")
    found = next(each for each in WORKLOADS if str(each) == workload)
    return sheet.published(Claim(claim), Geometry.parse(geometry), found)


def matching(collected: tuple[str, ...], function: str, glob: str) -> list[str]:
    """Parameter ids, shallowest queue first."""
    parts = [each.partition("[") for each in collected]
    found = [rest.removesuffix("]") for name, _, rest in parts if name == function]
    return sorted((each for each in found if fnmatchcase(each, glob)), key=lambda each: (len(each), each))


#: The data sheets of each source's own arrays.
SHEETS = {
    "A": ("intel-dc-s3500-480gb", "intel-dc-s3500-800gb"),
    "B": ("intel-dc-s3500-raid0",),
    "C": ("stec-unnamed-sata-ssd",),
    "D": ("intel-dc-s3700-800gb",),
    "E": ("intel-910-400gb", "intel-320", "intel-910-promised"),
}
FIRST_OF_SERIES = {str(each): each.workloads[0] for each in EVERYTHING if isinstance(each, WorkloadSet)}


@pytest.mark.parametrize("row", [row for row in ROWS if row.tests], ids=str)
def test_a_statement_has_a_limit_or_is_shown_only(row: DocumentRow, collected: tuple[str, ...]) -> None:
    sheets = [spec.default(), *map(spec.load, SHEETS[row.ids[0][0]])]
    limits = [
        sheet.limit(Claim(claim), geometry, workload) or sheet.relation(Claim(claim), geometry, workload)
        for function, glob in row.tests
        for claim, _ in FUNCTIONS[function].judged
        for geometry, workload in map(_place, matching(collected, function, glob or "*"))
        for sheet in sheets
    ]
    assert any(limits) != ("shown" in row.cells[2] and "not judged" in row.cells[2])


def _place(parameters: str) -> tuple[Geometry, Workload]:
    array, _, name = parameters.partition("-")
    known = {str(each): each for each in WORKLOADS} | FIRST_OF_SERIES
    found = next(known[each] for each in (name, name.partition("-")[2], name.rpartition("-")[2]) if each in known)
    return Geometry.parse(array if "x" in array else f"{array}x8"), found
