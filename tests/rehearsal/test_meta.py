"""The gate itself, on real mdadm and fio: what must pass, fail, be an error and be skipped does so."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.lab.rehearsed import LabHost

pytestmark = pytest.mark.lab

META = Path(__file__).parents[2] / "suites" / "meta"
#: As short as can be. Whether anything settles is not the question.
BRIEF = """
acceptance = false
[fill]
passes = 1
bs = "1m"
[precondition]
step = "4 s"
limit = "4 s"
[measure]
ramp = "0 s"
window = "4 s"
repeats = 1
attempts = 1
[members]
window = "0 s"
[steady]
window = 3
range_percent = 1000
slope_percent = 1000
"""


def test_the_meta_suite_has_the_outcomes_it_must_have(lab: LabHost, tmp_path: Path) -> None:
    shutil.copytree(META, tmp_path / "meta", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "brief.toml").write_text(BRIEF)
    session = [
        sys.executable, "-m", "pytest", "--rootdir=.", "-p", "no:cacheprovider", "--junitxml=junit.xml",
        "--ssd-devices=lab:/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ000[1-3]", f"--ssd-ssh-config={lab.ssh_config}",
        "--ssd-spec=meta/meta.toml", "--ssd-protocol=brief.toml", "meta",
    ]  # fmt: skip
    done = subprocess.run(session, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    found = {}
    for case in ET.parse(tmp_path / "junit.xml").getroot().iter("testcase"):  # noqa: S314 (our own)
        results = [(each.tag, each.get("message", "")) for each in case if each.tag != "properties"]
        found[case.get("name", "")] = results[0] if results else ("passed", "")
    expected = tomllib.loads((META / "outcomes.toml").read_text())
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        name: each["outcome"] for name, each in expected.items()
    }, found
    assert [name for name, (_, said) in found.items() if not fnmatchcase(said, expected[name].get("message", ""))] == []
