"""The shipped suites as pytest collects them on a rig that was never there."""

from __future__ import annotations

import pytest
from support.fakes import suite_session


@pytest.fixture(scope="session")
def collected() -> tuple[str, ...]:
    """Ids of all tests of all suites with 24 drives, as ``raid5/test_scaling.py::test_…[raid5-randread_4k_qd8]``."""
    done = suite_session.run("--collect-only", "--ssd-devices=lab:24", "suites")
    if done.returncode:
        raise RuntimeError(f"the suites cannot be collected\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return tuple(line.removeprefix("suites/") for line in done.stdout.splitlines() if "::test_" in line)
