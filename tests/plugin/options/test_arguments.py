"""Checks of test paths and output files before any drive is opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


@pytest.fixture
def block_devices(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that ``stat`` says are block devices."""
    paths = [inner.pytester.path / f"sd{letter}" for letter in "bcde"]
    for path in paths:
        path.touch()
    real = Path.stat

    def faked(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = real(path, follow_symlinks=follow_symlinks)
        if path not in paths:
            return found
        return os.stat_result((stat.S_IFBLK | 0o660, *found[1:]))

    monkeypatch.setattr(Path, "stat", faked)
    return list(map(str, paths))


def nothing_was_opened(inner: Inner) -> bool:
    return not (inner.pytester.path / "ssdqual-runs").exists()


def test_unquoted_pattern_is_refused(inner: Inner, promises: str, block_devices: list[str]) -> None:
    told = inner.refused("-v", "--ssd-devices", *block_devices, promises, "test_promises.py", "-k", "iops and randread")
    assert f"{block_devices[-1]}: 3 devices" in told
    assert nothing_was_opened(inner)


def test_what_is_below_dev_is_no_test(inner: Inner, promises: str) -> None:
    """Also if it is no block device of here, and if tests are named as modules."""
    told = inner.refused("--pyargs", "--ssd-devices", "/dev/sdzb", "/dev/sdzc", "/dev/null", promises)
    assert "/dev/null: 2 devices" in told


def test_a_plan_that_nobody_typed_is_refused_with_a_junit_file(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ("--ssd-devices=lab:3", promises, "--collect-only")
    assert inner.run(*plan).ret == pytest.ExitCode.OK
    (inner.pytester.path / "junit.xml").unlink()
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    assert "PYTEST_ADDOPTS" in inner.refused(*plan[:2])


@pytest.mark.parametrize("paths", [["suites/none"], ["test_promises.py", "gone.py::test_iops[a-b]"]])
@pytest.mark.parametrize("more", [(), ("-n", "2"), ("--collect-only",)])
def test_missing_test_paths_are_refused(inner: Inner, promises: str, paths: list[str], more: tuple[str, ...]) -> None:
    told = inner.refused("--ssd-devices=lab:3", promises, *paths, *more)
    assert told.endswith(f" not found: {paths[-1]}")
    assert nothing_was_opened(inner)


def test_pyargs_are_checked(inner: Inner, promises: str) -> None:
    told = inner.refused("--ssd-devices=lab:3", promises, "--pyargs", "no_such_package.suites")
    assert told.endswith(" not found: no_such_package.suites")
    package = inner.pytester.mkpydir("acme_suites")
    (inner.pytester.path / "test_promises.py").rename(package / "test_promises.py")
    inner.pytester.syspathinsert()
    result = inner.run("--ssd-devices=lab:3", promises, "--pyargs", "acme_suites.test_promises", "-k", "randread")
    result.assert_outcomes(failed=1, skipped=1)


@pytest.mark.parametrize("option", ["--junitxml", "--ssd-openmetrics", "--html"])
def test_unwritable_outputs_are_refused(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    (inner.pytester.path / "file").touch()
    (inner.pytester.path / "folder").mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and may(path, mode))
    (inner.pytester.path / "locked").mkdir()
    expected = {
        "file/x": f"{option}=file/x: ", "folder": f"{option}=folder: a folder; name a file in it",
        "locked/x": f"{option}=locked/x: no permission to write into {inner.pytester.path / 'locked'}",
    }  # fmt: skip
    for path, sentence in expected.items():
        if option == "--html" and path != "locked/x":
            continue  # pytest-html makes the folder when it is configured
        result = inner.pytester.runpytest_inprocess(
            "-p", "support.simulator.simulated_rig", "--ssd-devices=lab:3", promises, f"{option}={path}"
        )
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        told = "\n".join(result.errlines)
        assert sentence in told or (option == "--junitxml" and "a filename" in told)  # pytest's own
        assert nothing_was_opened(inner)


@pytest.mark.parametrize("path", ["new/folder/junit.xml", "/dev/null", "junit.xml"])
def test_writable_outputs_are_accepted(inner: Inner, promises: str, path: str) -> None:
    result = inner.pytester.runpytest_inprocess(
        "-p",
        "support.simulator.simulated_rig",
        "--ssd-devices=lab:3",
        promises,
        f"--junitxml={path}",
        "-k",
        "iops and randread",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert Path(inner.pytester.path, path).exists()


@pytest.mark.parametrize("args", [("--ssd-devices=",), ("--ssd-devices", "")])
def test_empty_devices_are_refused_with_a_hint(inner: Inner, promises: str, args: tuple[str, ...]) -> None:
    assert inner.refused(*args, promises).endswith("not set?")


def test_removed_pattern_is_refused_with_a_hint(inner: Inner, promises: str) -> None:
    assert inner.refused(promises, "--ssd-devices", "test_promises.py").endswith(": quote it")
