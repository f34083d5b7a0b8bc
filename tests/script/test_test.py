"""script/test: two parts of the tests, one outcome."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Says what it is asked to do, and ends as the file named by its part says.
PYTHON = """#!/bin/sh
echo "$PYTEST_SSDQUAL_PART $*"
exit "$(cat "$PYTEST_SSDQUAL_PART")"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One where nothing is really run."""
    (tmp_path / "script").mkdir()
    shutil.copy(ROOT / "script" / "test", tmp_path / "script")
    (tmp_path / "script" / "setup").write_text('set -eu\ncd "$(dirname "$0")/.."\n')
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "ruff", "mypy", "lint-imports"):
        path = tmp_path / ".venv" / "bin" / name
        path.write_text(PYTHON if name == "python" else "#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("unit", "lab", "status", "told"),
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
def test_both_parts_are_run_and_both_count(checkout: Path, unit: int, lab: int, status: int, told: str) -> None:
    done, lines = ended(checkout, unit, lab)
    assert done == status
    assert lines == [
        "unit -m pytest --numprocesses=auto --maxprocesses=4 -m not lab",
        "lab -m pytest -m not lab",
        f"script/test: {told}",
    ]


@pytest.mark.parametrize(("unit", "lab"), [(2, 0), (3, 0), (4, 0), (0, 2)])
def test_ctrl_c_and_wrong_arguments_end_it_all(checkout: Path, unit: int, lab: int) -> None:
    done, lines = ended(checkout, unit, lab)
    assert done == unit + lab
    assert len(lines) == 1 + (unit == 0)


def ended(checkout: Path, unit: int, lab: int) -> tuple[int, list[str]]:
    (checkout / "unit").write_text(str(unit))
    (checkout / "lab").write_text(str(lab))
    argv: list[str | Path] = [checkout / "script" / "test", "-m", "not lab"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


SOME = """
import pytest

def test_arithmetic():
    pass

@pytest.mark.lab
def test_rehearsal():
    pass
"""


@pytest.mark.parametrize(
    ("part", "ran", "file"),
    [
        ("unit", {"test_arithmetic"}, "results.xml"),
        ("lab", {"test_rehearsal"}, "results-lab.xml"),
        ("", {"test_arithmetic", "test_rehearsal"}, "results.xml"),
    ],
)
def test_a_part_has_its_tests_and_its_own_junit_file(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, part: str, ran: set[str], file: str
) -> None:
    shutil.copy(ROOT / "conftest.py", pytester.path)
    pytester.makeini("[pytest]\nmarkers = lab: needs the lab\n")
    pytester.makepyfile(SOME)
    monkeypatch.setenv("PYTEST_SSDQUAL_PART", part)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    result = pytester.runpytest_subprocess("--junitxml=results.xml")
    result.assert_outcomes(passed=len(ran), deselected=2 - len(ran))
    assert [name for name in sorted(os.listdir(pytester.path)) if name.endswith(".xml")] == [file]  # noqa: PTH208
    cases = ET.parse(pytester.path / file).getroot().iter("testcase")  # noqa: S314 (our own)
    assert {case.get("name") for case in cases} == ran
