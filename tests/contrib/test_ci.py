"""action.yml and contrib/ci: valid by the published schemas, and their shell lines do what the inputs say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
TEMPLATE = ROOT / "contrib/ci/gitlab.yml"
#: Prints its arguments, and leaves a run folder and JUnit.
PYTEST = """#!/bin/sh
for word; do
    printf '%s\\n' "$word"
    case $word in
    --ssd-run-dir=*) mkdir -p "${word#*=}/new" && echo "{}" >"${word#*=}/new/manifest.json" ;;
    --junitxml=*) echo '<testsuites/>' >"${word#*=}" ;;
    esac
done
exit 1
"""


def read(path: Path) -> Any:  # noqa: ANN401 (whatever YAML gives)
    return yaml.safe_load(path.read_text())


def step(name: str) -> str:
    (found,) = [each["run"] for each in read(ACTION)["runs"]["steps"] if each.get("name") == name]
    return str(found)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with an environment in which pytest is a script, and an older run folder."""
    for environment in ("ssdqual-venv", "venv"):
        pytest_file = tmp_path / environment / "bin" / "pytest"
        pytest_file.parent.mkdir(parents=True)
        pytest_file.write_text(PYTEST)
        pytest_file.chmod(0o755)
    (tmp_path / "runs" / "old").mkdir(parents=True)
    os.utime(tmp_path / "runs" / "old", (0, 0))
    return tmp_path


def shell(text: str, place: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A step as GitHub's ``shell: bash`` runs it."""
    argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    env = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(place), **env}
    return subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("path", "schema"), [(ACTION, "github-actions"), (TEMPLATE, "gitlab-ci")])
def test_file_is_valid_by_its_schema(path: Path, schema: str) -> None:
    gitlab = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *gitlab, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_input_reaches_a_step() -> None:
    action = read(ACTION)
    assert [name for name in action["inputs"] if f"inputs.{name} " not in yaml.dump(action["runs"])] == []
    assert [name for name, each in action["inputs"].items() if not each.get("required") and "default" not in each] == []


def test_action_passes_its_inputs_and_keeps_only_the_new_run(place: Path) -> None:
    inputs = {
        "DEVICES": "/dev/nvme[1-8]n1",
        "SUITES": "pytest_ssdqual.suites.raid5 my/*",
        "EXPECT": "8",
        "RESUME": "last",
    }
    runs = {"RUN_DIR": str(place / "runs")}
    done = shell(step("Qualify"), place, **inputs, **runs)
    assert done.returncode == 1  # pytest's
    assert done.stdout.splitlines() == [
        "--pyargs",
        "pytest_ssdqual.suites.raid5",
        "my/*",
        "--ssd-devices=/dev/nvme[1-8]n1",
        "--ssd-expect=8",
        f"--ssd-run-dir={place}/runs",
        f"--junitxml={place}/ssdqual-run/junit.xml",
        "--ssd-resume=last",
    ]
    os.utime(place / "ssdqual-began", (1, 1))
    fetch = step("Fetch the run folder")
    assert shell(fetch, place, **runs).returncode == 0
    kept = {path.relative_to(place / "ssdqual-run").as_posix() for path in (place / "ssdqual-run").rglob("*")}
    assert kept == {"junit.xml", "new", "new/manifest.json"}


def test_action_refuses_drives_without_a_folder_that_is_kept(place: Path) -> None:
    inputs = {"SUITES": "s", "EXPECT": "", "RUN_DIR": "", "RESUME": ""}
    assert shell(step("Qualify"), place, DEVICES="root@lab:/dev/sdb", **inputs).returncode == 4
    lab = shell(step("Qualify"), place, DEVICES="lab:8", **inputs)
    words = ["--pyargs", "s", "--ssd-devices=lab:8", f"--ssd-run-dir={place}/ssdqual"]
    assert lab.stdout.splitlines() == [*words, f"--junitxml={place}/ssdqual-run/junit.xml"]


def test_gitlab_template_does_the_same(place: Path) -> None:
    job = read(TEMPLATE)[".ssdqual"]
    variables = {name: each["value"] if isinstance(each, dict) else each for name, each in job["variables"].items()}
    variables |= {"SSDQUAL_DEVICES": "/dev/sd[b-i]", "SSDQUAL_RUN_DIR": str(place / "runs")}
    lines = [line for line in job["script"] if "pip" not in line and "-m venv" not in line]
    done = shell("\n".join(lines), place, **variables)
    assert done.stdout.splitlines() == [
        "--pyargs",
        "pytest_ssdqual.suites.raid5",
        "--ssd-devices=/dev/sd[b-i]",
        f"--ssd-run-dir={place}/runs",
        "--junitxml=junit.xml",
    ]
    os.utime(place / "began", (1, 1))
    assert shell("\n".join(job["after_script"]), place, **variables).returncode == 0
    assert [path.name for path in (place / "run").iterdir()] == ["new"]
    assert (place / "junit.xml").is_file()
