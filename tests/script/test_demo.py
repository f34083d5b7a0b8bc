"""script/demo: its commands, and the outcome that it expects."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

ROOT = Path(__file__).parents[2]
#: Prints its arguments; ends as the file ``status`` says, except for the check of the outcome.
PYTHON = """#!/bin/sh
echo "$*"
case $1 in -m) exit "$(cat status)" ;; esac
"""
CAUSE = (
    "steady IOPS of raid5x8 randread_4k_qd8: 1,402 IOPS, limit 1,920 IOPS: FAIL by 27.0 %; cause: drive SSDQ0006, slow"
)
EXPECTED = {"t[raid5x3-a]": "", "t[raid5x5-a]": "", "t[raid5x8-a]": f"<failure message={quoteattr(CAUSE)}/>"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One where nothing is really run."""
    (tmp_path / "script").mkdir()
    shutil.copy(ROOT / "script" / "demo", tmp_path / "script")
    (tmp_path / "script" / "setup").write_text('set -eu\ncd "$(dirname "$0")/.."\n')
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


def ended(checkout: Path, status: int, *arguments: str) -> tuple[int, list[str]]:
    (checkout / "status").write_text(str(status))
    argv = ["sh", "script/demo", *arguments]
    done = subprocess.run(argv, cwd=checkout, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("demo: ")]


@pytest.mark.parametrize("status", [0, 1])
def test_demo_checks_the_outcome(checkout: Path, status: int) -> None:
    returned, (pytest_line, check) = ended(checkout, status, "-v")
    assert returned == 0  # that of the check
    assert pytest_line.endswith("suites/raid5 --junitxml=demo.xml -v")
    assert "--ssd-devices=lab:8,slow=6" in pytest_line
    assert check == "script/demo_outcome.py demo.xml ssdqual-runs"


def test_demo_selects_one_workload_on_three_widths() -> None:
    (chosen,) = re.findall(r"^chosen='(.*)'$", (ROOT / "script" / "demo").read_text(), re.MULTILINE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "SIMULATED_"))}
    environment["PYTHONPATH"] = str(ROOT / "tests")
    argv = [sys.executable, "-m", "pytest", "-p", "support.simulator.simulated_rig", "-p", "no:cacheprovider"]
    argv += ["--collect-only", "-q", "--ssd-devices=lab:8", "suites/inspection", "suites/raid5", "-k", chosen]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    found = [line.partition("::")[2] for line in done.stdout.splitlines() if line.startswith("suites/raid5/")]
    assert found == [
        f"test_steady_state_iops_match_the_data_sheet[raid5x{width}-randread_4k_qd8]" for width in (3, 5, 8)
    ], done.stderr


@pytest.mark.parametrize("status", [2, 3, 4, 5])
def test_demo_that_judged_nothing_has_the_status_of_pytest(checkout: Path, status: int) -> None:
    returned, lines = ended(checkout, status)
    assert (returned, len(lines)) == (status, 1)


@pytest.mark.parametrize("status", [0, 1])
def test_full_demo_is_the_whole_suite(checkout: Path, status: int) -> None:
    command = "-m pytest --ssd-devices=lab:8 suites/raid5 --junitxml=raid5.xml -k x3"
    assert ended(checkout, status, "--full", "-k", "x3") == (status, [command])


@pytest.mark.parametrize(
    ("cases", "status"),
    [
        (EXPECTED, 0),
        (EXPECTED | {"t[raid5x8-a]": ""}, 1),
        (EXPECTED | {"t[raid5x8-a]": '<failure message="raid5x8: FAIL; cause: md"/>'}, 1),
        (EXPECTED | {"t[raid5x3-a]": EXPECTED["t[raid5x8-a]"]}, 1),
        (EXPECTED | {"t[raid5x5-a]": '<error message="not steady"/>'}, 1),
        (EXPECTED | {"t[raid5x5-a]": '<skipped message="few drives"/>'}, 1),
        ({name: EXPECTED[name] for name in ("t[raid5x3-a]", "t[raid5x8-a]")}, 1),
    ],
)
def test_only_the_slow_drive_is_the_expected_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: dict[str, str], status: int
) -> None:
    text = "".join(f"<testcase name={quoteattr(name)}>{inside}</testcase>" for name, inside in cases.items())
    (tmp_path / "demo.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    outcome = runpy.run_path(str(ROOT / "script" / "demo_outcome.py"))
    assert outcome["main"](str(tmp_path / "demo.xml"), str(tmp_path / "runs")) == status
    assert (CAUSE in capsys.readouterr().out) is (status == 0)
