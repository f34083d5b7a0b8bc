"""``docs/run-folder.md`` names every kind of record that the package writes, and every key of evidence."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.plan.budget import SPENT
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Direction, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import Widening
from pytest_ssdqual.report.evidence.evidence import Earlier, Ends, Evidence, Finding, Part
from pytest_ssdqual.report.run_folder.reader import CLAIMS, PLANNED
from pytest_ssdqual.report.run_summary.errors import PASSED
from pytest_ssdqual.rig.measure.probe import CONFIRMED, EXPLORED, EXPLORED_LONGER

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_ssdqual"
DOCUMENT = (ROOT / "docs/run-folder.md").read_text()
#: Calls whose kind is in a variable, and what that may be.
BY_NAME = {
    ("plugin/plan/budget.py", "SPENT"): {SPENT},
    ("plugin/session/recorder.py", "CLAIMS"): {CLAIMS},
    ("plugin/session/recorder.py", "PLANNED"): {PLANNED},
    ("plugin/session/recorder.py", "kind"): {"error", "failed", PASSED, "skipped", "verdict", "observation"},
    ("rig/guard/cache_changes.py", "kind"): {"write_cache_restored", "write_cache_left"},
    ("rig/guard/held_drives.py", "kind"): {"array_left", "array_stopped"},
    ("rig/measure/session.py", "kind"): set(),  # as its callers say
    ("rig/measure/fixed_time.py", "kind"): {"measured", "member", EXPLORED, EXPLORED_LONGER, CONFIRMED},
}
#: First arguments of another function of that name, which notes into a log.
EVENT_LOGS = ("setup", "setup.logbook")
#: What is said above the table of records.
ABOUT = {"geometry", "uuid", "workload", "asked", "raw", "protocol", "acceptance"}
#: The heading above that table.
RECORDS = "### Kinds of records"
#: A value of everything, so that no part of the record is left out.
PUBLISHED = Published(1.0, Unit.IOPS, "a data sheet", True)
PART = Part("S1", {"iops": 1.0}, Finding.PASS, (PUBLISHED,))
PARTS = "members", "points"
ENDS = Ends(1.0, 0.9, 1.1)
EVIDENCE = Evidence(
    "steady_iops", ("raid5x4",), ("randread_4k_qd8",), 1.0, 0.9, 1.1, 5, Unit.IOPS, 0.5, Direction.AT_LEAST, "a spec",
    Finding.PASS, 50.0, "a sentence", "quick", False, published=PUBLISHED, members=(PART,), points=(PART,),
    wider=(Widening(0.1, 0.8, 1.2),), baseline=Earlier("a run", "0" * 64, Unit.IOPS, ENDS, ENDS),
    relative_to="randread_4k_qd8",
    unit_of_parts=Unit.IOPS,
)  # fmt: skip


def calls() -> Iterator[tuple[str, ast.expr, set[str]]]:
    """What each call of a logbook's or journal's ``note`` is given first, in which module, and the keys.

    ``rig.observe.environment`` has a function of that name, too, whose first argument is the log.
    """
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                # The function itself, or what is told to call it: ``callback(journal.note, "run_ended")``.
                given = [node.func, *node.args]
                function, *first = given[1:3] if ast.unparse(node.func).endswith(".callback") else given[:2]
                if first and ast.unparse(function).split(".")[-1] == "note" and ast.unparse(first[0]) not in EVENT_LOGS:
                    yield (
                        path.relative_to(PACKAGE).as_posix(),
                        first[0],
                        {each.arg for each in node.keywords if each.arg},
                    )


@functools.cache
def keys_by_kind() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module, given, named in calls():
        literal = {each.value for each in ast.walk(given) if isinstance(each, ast.Constant)}
        for kind in {each for each in literal if isinstance(each, str)} or BY_NAME[module, ast.unparse(given)]:
            found.setdefault(kind, set()).update(named)
    return found


def rows(heading: str) -> dict[str, str]:
    """The lines of the first table below a heading, by what is in their first column."""
    below = itertools.dropwhile(lambda line: not line.startswith("|"), DOCUMENT.split(heading, 1)[1].splitlines())
    lines = itertools.takewhile(lambda line: line.startswith("|"), below)
    return {
        name: line
        for line in itertools.islice(lines, 2, None)
        for name in re.findall(r"`([\w.]+)`", line.split(" | ")[0])
    }


def keys(record: object, prefix: str = "") -> set[str]:
    """With dots for what is inside; ``figures`` have the names of figures, which are not ours to list."""
    if isinstance(record, list):
        return set().union(*(keys(each, prefix) for each in record))
    if not isinstance(record, dict) or prefix.endswith("figures."):
        return set()
    inner = (keys(value, f"{prefix}{name}.") for name, value in record.items())
    return {prefix + name for name in record}.union(*inner)


def test_every_kind_of_record_is_described_and_no_other() -> None:
    described = rows(RECORDS)
    written = keys_by_kind()
    assert len(written) > 30
    assert set(described) == set(written)


@pytest.mark.parametrize("kind", sorted(keys_by_kind()))
def test_every_key_that_is_written_by_name_is_described(kind: str) -> None:
    """Keys that come as a whole, such as the figures of a run, are described in words."""
    line = rows(RECORDS)[kind]
    # A line may say that a record is as another one.
    line += "".join(rows(RECORDS)[other] for other in re.findall(r"\bas `(\w+)`", line))
    line += rows(RECORDS)["array_planned"] if "the same" in line else ""
    assert {key for key in keys_by_kind()[kind] if f"`{key}`" not in line} <= ABOUT


def test_variables_that_hold_a_kind_are_the_ones_known_here() -> None:
    given = {(module, ast.unparse(first)) for module, first, _ in calls() if isinstance(first, ast.Name)}
    assert given == set(BY_NAME)


def test_every_key_of_evidence_is_described_and_no_other() -> None:
    found = keys(plain(EVIDENCE))
    # Parts are the same in both, and described once.
    of_members, of_points = ({each.split(".", 1)[1] for each in found if each.startswith(f"{name}.")} for name in PARTS)
    assert of_members == of_points
    assert set(rows("## Evidence")) == {each for each in found if not each.startswith("points.")}


@pytest.mark.parametrize("name", ["published", "members", "points", "baseline"])
def test_the_example_has_every_part(name: str) -> None:
    assert plain(EVIDENCE)[name]
