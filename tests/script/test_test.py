"""script/test: parts of the tests, one outcome."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_ssdqual.lab.image.release import RELEASES

ROOT = Path(__file__).parents[2]
#: Prints its arguments and ends with the status in the file named by its part; the second time with the next line's.
#: bench/house.py ends with the status in the file house.
PYTHON = """#!/bin/sh
if [ "$1" = bench/house.py ]; then exit "$(cat house)"; fi
echo "$PYTEST_SSDQUAL_PART${PYTEST_SSDQUAL_AGAIN:+ again} $*"
nice >"$PYTEST_SSDQUAL_PART.nice"
read -r status <"$PYTEST_SSDQUAL_PART"
sed -i 1d "$PYTEST_SSDQUAL_PART"
exit "$status"
"""
SLOWEST = "--durations=25 --durations-min=10"
#: What is left out unless it is asked for.
LESS = "-m not nightly"
UNIT = f"unit -m pytest -o cache_dir=.pytest_cache/unit {SLOWEST} --numprocesses=auto --maxprocesses=4"
AGAIN = "--last-failed --last-failed-no-failures=none"
LAB = f"lab -m pytest -o cache_dir=.pytest_cache/lab {SLOWEST}"
UNHURRIED = f"unhurried -m pytest -o cache_dir=.pytest_cache/unhurried {SLOWEST}"
QUICK = UNIT.replace("unit", "quick")
FAULTS = f"faults -m pytest -o cache_dir=.pytest_cache/faults {SLOWEST}"
ALL = f"lab,unhurried,faults -m pytest -o cache_dir=.pytest_cache/lab,unhurried,faults {SLOWEST}"
#: The last line: what unit tests and tests in the lab have come to.
ENDED = "script/test: unit tests: {}; tests in the lab: {}"
ALONE = "passed, some only alone"
#: All parts pass.
GOOD: dict[str, list[int]] = {"unit": [0], "lab": [0], "unhurried": [0], "faults": [0]}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One where nothing is really run."""
    (tmp_path / "script").mkdir()
    shutil.copy(ROOT / "script" / "test", tmp_path / "script")
    (tmp_path / "script" / "setup").write_text('set -eu\ncd "$(dirname "$0")/.."\n')
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "ruff", "mypy", "lint-imports", "shellcheck"):
        path = tmp_path / ".venv" / "bin" / name
        path.write_text(PYTHON if name == "python" else "#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "house").write_text("0")
    return tmp_path


@pytest.mark.parametrize(
    ("unit", "lab", "status", "outcome"),
    [
        (0, 0, 0, "unit tests: passed; tests in the lab: passed"),
        (1, 0, 1, "unit tests: FAILED; tests in the lab: passed"),
        (0, 1, 1, "unit tests: passed; tests in the lab: FAILED"),
        (1, 1, 1, "unit tests: FAILED; tests in the lab: FAILED"),
        (0, 5, 0, "unit tests: passed; tests in the lab: none selected"),
        (5, 0, 0, "unit tests: none selected; tests in the lab: passed"),
        (5, 1, 1, "unit tests: none selected; tests in the lab: FAILED"),
        (1, 5, 1, "unit tests: FAILED; tests in the lab: none selected"),
        (5, 5, 5, "unit tests: none selected; tests in the lab: none selected"),
    ],
)
def test_with_arguments_both_parts_are_run_once_and_both_count(
    checkout: Path, unit: int, lab: int, status: int, outcome: str
) -> None:
    done, lines = ended(checkout, "-m", "not lab", unit=[unit], all=[lab])
    assert done == status
    assert lines == [f"{UNIT} -m not lab", f"{ALL} -m not lab", f"script/test: {outcome}"]


def test_parts_run_beside_each_other_by_priority(checkout: Path) -> None:
    done, lines = ended(checkout, **GOOD)
    assert done == 0
    commands = [f"{each} {LESS}" for each in (UNIT, LAB, UNHURRIED, FAULTS)]
    assert lines == [*commands, ENDED.format("passed", "passed")]
    least = os.nice(0)  # these tests have some more themselves, and there is nothing beyond 19
    lower, lowest = min(least + 5, 19), min(least + 10, 19)
    assert [nice_of(checkout, part) for part in GOOD] == [lowest, least, lower, lower]


@pytest.mark.parametrize("arguments", [[], ["--quick"], ["-x"]])
def test_package_above_its_budget_runs_no_tests(checkout: Path, arguments: list[str]) -> None:
    (checkout / "house").write_text("1")
    assert ended(checkout, *arguments) == (1, [])


def test_nightly_leaves_nothing_out(checkout: Path) -> None:
    done, lines = ended(checkout, "--nightly", **GOOD | {"faults": [1, 0]})
    assert done == 0
    assert lines[:4] == [UNIT, LAB, UNHURRIED, FAULTS]
    assert lines[5] == f"{FAULTS} {AGAIN}".replace("faults", "faults again", 1)


def test_nightly_takes_no_arguments(checkout: Path) -> None:
    argv: list[str | Path] = [checkout / "script" / "test", "--nightly", "-x"]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 4


def test_repetitions_and_chosen_parts_have_the_usual_priority(checkout: Path) -> None:
    ended(checkout, **GOOD | {"unhurried": [1, 0]})
    assert nice_of(checkout, "unhurried") == os.nice(0)
    ended(checkout, "-x", unit=[0], all=[0])
    assert [nice_of(checkout, part) for part in ("unit", "lab,unhurried,faults")] == [os.nice(0)] * 2


@pytest.mark.parametrize(("status", "said"), [(0, "passed"), (1, "FAILED"), (5, "none selected")])
def test_quick_runs_unit_tests_only(checkout: Path, status: int, said: str) -> None:
    done, lines = ended(checkout, "--quick", "-x", quick=[status])
    assert done == status
    assert lines[:1] == [f"{QUICK} -x"]
    assert lines[1].endswith(f": {said}")


@pytest.mark.parametrize(
    ("part", "command", "second"), [("lab", LAB, 0), ("unhurried", UNHURRIED, 1), ("faults", FAULTS, 5)]
)
def test_rehearsals_that_failed_are_run_again_alone(checkout: Path, part: str, command: str, second: int) -> None:
    done, lines = ended(checkout, **GOOD | {part: [1, second]})
    assert done == bool(second)
    again = f"script/test: some rehearsals of the part {part} failed; they run again, alone"
    result = "FAILED" if second else ALONE
    outcome = ENDED.format("passed", result)
    assert lines[4:] == [again, f"{command} {AGAIN}".replace(part, f"{part} again", 1), outcome]


def test_unit_tests_get_no_second_chance(checkout: Path) -> None:
    done, lines = ended(checkout, **GOOD | {"unit": [1, 0]})
    assert done == 1
    assert lines[4:] == [ENDED.format("FAILED", "passed")]


@pytest.mark.parametrize("lasting", ["lab", "unhurried", "faults"])
def test_what_passes_alone_makes_nothing_else_pass(checkout: Path, lasting: str) -> None:
    failing = {"lab": [1, 0], "unhurried": [1, 0], "faults": [1, 0]}
    done, lines = ended(checkout, **GOOD | failing | {lasting: [1, 1]})
    assert done == 1
    assert lines[-1] == ENDED.format("passed", "FAILED")
    done, _ = ended(checkout, **GOOD | failing | {"unit": [1, 0]})
    assert done == 1
    done, lines = ended(checkout, **GOOD | failing)
    assert done == 0
    assert lines[-1] == ENDED.format("passed", ALONE)


def test_parts_without_a_test_are_not_missed_unless_all_are(checkout: Path) -> None:
    empty = {"lab": [5], "unhurried": [5], "faults": [5]}
    done, lines = ended(checkout, **GOOD | empty)
    assert done == 0
    assert lines[-1] == ENDED.format("passed", "none selected")
    done, _ = ended(checkout, **GOOD | empty | {"unit": [5]})
    assert done == 5
    done, lines = ended(checkout, **GOOD | empty | {"faults": [0]})
    assert done == 0
    assert lines[-1] == ENDED.format("passed", "passed")


@pytest.mark.parametrize(("unit", "lab"), [(2, 0), (3, 0), (4, 0), (0, 2)])
def test_ctrl_c_and_wrong_arguments_end_it_all(checkout: Path, unit: int, lab: int) -> None:
    done, lines = ended(checkout, "-x", unit=[unit], all=[lab])
    assert done == unit + lab
    assert len(lines) == 1 + (unit == 0)


@pytest.mark.parametrize("part", ["lab", "unhurried", "faults"])
def test_an_error_inside_of_pytest_ends_it_all_in_each_part(checkout: Path, part: str) -> None:
    done, lines = ended(checkout, **GOOD | {part: [3]})
    assert done == 3
    assert not any(line.startswith("script/test: unit") for line in lines)


@pytest.mark.parametrize(("statuses", "expected"), [([0, 0, 0], 0), ([0, 1, 0], 1), ([0, 0, 5], 1)])
def test_core_of_the_rehearsals_runs_on_all_releases(checkout: Path, statuses: list[int], expected: int) -> None:
    done, lines = ended(checkout, "--all-releases", "-x", all=statuses)
    assert done == expected
    assert [line for line in lines if not line.startswith("script/test: ")] == [f"{ALL} -m every_release -x"] * 3
    outcomes = [line.split()[2] for line in lines if line.startswith("script/test: debian")]
    assert outcomes == [{0: "passed", 1: "FAILED", 5: "none"}[status] for status in statuses]


def nice_of(checkout: Path, part: str) -> int:
    """Of the last run of a part."""
    return int((checkout / f"{part}.nice").read_text())


def test_all_releases_of_the_lab_are_run() -> None:
    names = " ".join(release.name for release in RELEASES)
    assert f"release in {names};" in (ROOT / "script" / "test").read_text()


def ended(checkout: Path, *arguments: str, **statuses: list[int]) -> tuple[int, list[str]]:
    for part, each in statuses.items():
        name = "lab,unhurried,faults" if part == "all" else part
        (checkout / name).write_text("".join(f"{status}\n" for status in each))
    argv: list[str | Path] = [checkout / "script" / "test", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


SOME = """
import pytest

def test_arithmetic():
    pass

@pytest.mark.slow
def test_hard_arithmetic():
    pass

@pytest.mark.lab
def test_rehearsal():
    pass

@pytest.mark.lab
@pytest.mark.unhurried
def test_patient_rehearsal():
    pass
"""

FAULT = """
import pytest

@pytest.mark.lab
@pytest.mark.unhurried
def test_fault():
    pass
"""
REHEARSALS = {"test_rehearsal", "test_patient_rehearsal", "test_fault"}


@pytest.mark.parametrize(
    ("marks", "place", "parts"),
    [
        ((), "tests/rig/test_x.py", {"unit", "quick"}),
        (("slow",), "tests/rig/test_x.py", {"unit"}),
        (("lab",), "tests/rehearsal/test_x.py", {"lab"}),
        (("lab", "unhurried"), "tests/rehearsal/test_x.py", {"unhurried"}),
        (("lab", "unhurried"), "tests/rehearsal/test_fleet.py", {"faults"}),
        (("lab",), "suites/faults/test_drives.py", {"faults"}),
    ],
)
def test_a_test_is_of_the_parts_that_its_marks_and_its_place_say(
    marks: Sequence[str], place: str, parts: set[str]
) -> None:
    parts_of = runpy.run_path(str(ROOT / "conftest.py"))["parts_of"]
    item = SimpleNamespace(path=ROOT / place, get_closest_marker=lambda name: name if name in marks else None)
    assert parts_of(item) == parts


@pytest.mark.parametrize(
    ("part", "ran", "file"),
    [("quick", {"test_arithmetic"}, "results.xml"), ("lab,unhurried,faults", REHEARSALS, "results-lab.xml")],
)
def test_a_part_has_its_tests_and_its_own_junit_file(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, part: str, ran: set[str], file: str
) -> None:
    shutil.copy(ROOT / "conftest.py", pytester.path)
    pytester.makeini("[pytest]\nmarkers =\n    lab: needs the lab\n    unhurried: whenever\n    slow: seconds\n")
    pytester.makepyfile(SOME)
    (faults := pytester.path / "suites" / "faults").mkdir(parents=True)
    (faults / "test_drives.py").write_text(FAULT)
    monkeypatch.setenv("PYTEST_SSDQUAL_PART", part)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    result = pytester.runpytest_subprocess("--junitxml=results.xml")
    result.assert_outcomes(passed=len(ran), deselected=5 - len(ran))
    assert [name for name in sorted(os.listdir(pytester.path)) if name.endswith(".xml")] == [file]  # noqa: PTH208
    cases = ET.parse(pytester.path / file).getroot().iter("testcase")  # noqa: S314 (our own)
    assert {case.get("name") for case in cases} == ran


SKIPPED = """
import pytest

def test_that_skips():
    pytest.skip("nothing to look at")

@pytest.mark.skip(reason="never")
def test_that_is_skipped():
    pass

@pytest.mark.xfail(strict=True)
def test_that_is_wrong_as_expected():
    assert False
"""


def test_what_is_skipped_when_it_is_run_again_has_not_passed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "conftest.py", pytester.path)
    pytester.makeini("[pytest]\nmarkers =\n    lab: needs the lab\n    unhurried: whenever\n")
    pytester.makepyfile(SKIPPED)
    monkeypatch.setenv("PYTEST_SSDQUAL_PART", "")
    monkeypatch.setenv("PYTEST_SSDQUAL_AGAIN", "yes")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    pytester.runpytest_subprocess().assert_outcomes(xfailed=1, failed=1, errors=1)
