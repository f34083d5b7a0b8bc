"""A session of shipped suites on a rig that was never there, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def run(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with these arguments and variables, without those of the session around it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "SIMULATED_"))}
    plugins = ("-p", "support.simulator.simulated_rig", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-q", *args],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(ROOT / "tests"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
