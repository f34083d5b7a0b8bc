"""The shipped suites as pytest collects them on a rig that was never there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def collected() -> tuple[str, ...]:
    """Ids of all tests of all suites with 24 drives, as ``raid5/test_scaling.py::test_…[raid5-randread_4k_qd8]``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "SIMULATED_"))}
    environment["PYTHONPATH"] = str(ROOT / "tests")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "support.simulator.simulated_rig",
        "-p",
        "no:cacheprovider",
        "--collect-only",
        "-q",
    ]
    done = subprocess.run(
        [*argv, "--ssd-devices=lab:24", "suites"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the suites cannot be collected\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return tuple(line.removeprefix("suites/") for line in done.stdout.splitlines() if "::test_" in line)
