"""Names of the shipped suites, and ids of their tests, in a checkout and in an installed package."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pytest_ssdqual import suites

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COLLECT = ("--ssd-devices=lab:3", "--collect-only", "-q", "-k", "capacity")
BY_NAME = ("--pyargs", "pytest_ssdqual.suites.raid5")


def ended(place: Path, package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in ``place`` with the package of that folder."""
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    return subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, check=False)


def collected(place: Path, package: Path, *arguments: str) -> list[str]:
    done = ended(place, package, *arguments, *COLLECT)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel."""
    place = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


def test_ids_are_those_of_the_checkout_wherever_a_suite_is(installed: Path, tmp_path: Path) -> None:
    ids = collected(ROOT, ROOT, "suites/raid5")
    assert ids == ["suites/raid5/test_capacity.py::test_capacity_is_that_of_the_data_drives[raid5x3]"]
    assert collected(ROOT, ROOT, *BY_NAME) == ids
    assert collected(tmp_path, ROOT, *BY_NAME) == ids
    assert collected(tmp_path, installed, *BY_NAME) == ids


def test_wheel_has_every_suite_once(installed: Path) -> None:
    folder = installed / "pytest_ssdqual" / "suites"
    # Runs of the other tests compile the unpacked files.
    found = {each.name for each in folder.iterdir() if each.is_dir()} - {"__pycache__"}
    assert sorted(found) == sorted([*suites.names(), "meta"])
    assert (folder / "__init__.py").read_text() == Path(suites.__file__).read_text()


def test_drives_without_a_suite_are_refused_in_the_checkout() -> None:
    done = ended(ROOT, ROOT, "--ssd-devices=lab:3")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "name a suite" in done.stderr


def test_pytest_prints_its_help_without_the_tests_packages(tmp_path: Path) -> None:
    (tmp_path / "hypothesis.py").write_text("raise ModuleNotFoundError('hypothesis')")
    path = Path(os.pathsep.join([str(tmp_path), str(ROOT)]))
    for option, expected in (("--help", "--ssd-devices"), ("--markers", "ssd_array")):
        done = ended(ROOT, path, "-p", "no:hypothesispytest", option)
        assert (done.returncode, expected in done.stdout) == (0, True), done.stderr
