"""Table, page, manifest and checksums when other plugins fail at the end of the session."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

PLAIN = """
    import pytest

    @pytest.hookimpl(HOW)
    def pytest_sessionfinish():
        raise OSError(30, "Read-only file system", "another.xml")
"""
WRAPPER = """
    import pytest

    @pytest.hookimpl(wrapper=True, HOW)
    def pytest_sessionfinish():
        if BEFORE:
            raise OSError(30, "Read-only file system", "another.xml")
        yield
        raise OSError(30, "Read-only file system", "another.xml")
"""
JUNIT = ("--junitxml=results/junit.xml", "-o", "ssd_page=true")
#: Registered last, so it is called before any other wrapper.
OUTERMOST = """
    import pytest

    class Outermost:
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_sessionfinish(self):
            raise OSError(30, "Read-only file system", "another.xml")
            yield

    def pytest_sessionstart(session):
        session.config.pluginmanager.register(Outermost())
"""
START = """
    import pytest

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(session):
        raise OSError(30, "Read-only file system", "another.xml")
"""
SUMMARY = """
    def pytest_terminal_summary():
        raise OSError(30, "Read-only file system", "another.xml")
"""


def run(inner: Inner, *args: str) -> pytest.RunResult:
    """Run in a process of its own: an exception at the end of a session leaves ``pytest.main``."""
    return inner.pytester.runpytest_subprocess("-p", "support.simulator.simulated_rig", *args)


def on_the_controller(source: str) -> str:
    """Return a conftest that does nothing on xdist's workers."""
    return f"""
import textwrap, types

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        module = types.ModuleType("failing")
        exec(textwrap.dedent({source!r}), module.__dict__)
        config.pluginmanager.register(module)
"""


def assert_whole(inner: Inner, status: int) -> None:
    folder = inner.folder()
    checked = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert checked.returncode == 0
    sums = (folder / "SHA256SUMS").read_text()
    assert {"summary.md", "manifest.json"} <= {line.split("  ")[1] for line in sums.splitlines()}
    manifest = inner.manifest()
    assert manifest["ended"]
    assert manifest["exit_status"] == status
    assert [record["exit_status"] for record in inner.records("run_ended")] == [status]


def plugins() -> dict[str, str]:
    first, last = (WRAPPER.replace("HOW", f"{how}=True") for how in ("tryfirst", "trylast"))
    return {
        "plain": PLAIN.replace("HOW", ""),
        "tryfirst": PLAIN.replace("HOW", "tryfirst=True"),
        "before": first.replace("BEFORE", "True"),
        "after": last.replace("BEFORE", "False"),
        "outermost": OUTERMOST,
    }


@pytest.mark.parametrize(
    ("source", "workers"),
    [*((source, ()) for source in plugins().values()), (on_the_controller(OUTERMOST), ("-n", "1"))],
    ids=[*plugins(), "outermost-xdist"],
)
def test_failing_plugin_loses_nothing_and_makes_the_run_fail(
    inner: Inner, promises: str, source: str, workers: tuple[str, ...]
) -> None:
    inner.pytester.makeconftest(source)
    result = run(inner, "--ssd-devices=lab:4", promises, "-k", "iops and randread and x4", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.stdout.str().count("storage qualification =") == 1
    assert "Read-only file system" in result.stderr.str()  # the traceback of what failed
    # What fails last fails after the run folder was closed.
    is_last = source == plugins()["after"]
    assert_whole(inner, pytest.ExitCode.OK if is_last else pytest.ExitCode.TESTS_FAILED)


def test_unwritable_junit_loses_nothing(inner: Inner, promises: str) -> None:
    inner.pytester.makeconftest(
        """
        import pathlib, shutil

        def pytest_runtest_setup(item):
            if pathlib.Path("results").is_dir():
                shutil.rmtree("results")
                pathlib.Path("results").write_text("a file in the place of the folder")
        """
    )
    (inner.pytester.path / "results").mkdir()
    result = run(inner, "--ssd-devices=lab:3", promises, *JUNIT, "-k", "iops and randread")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([
        "*= FAILURES =*", "*= storage qualification =*", "report: *", "ssdqual: an error while the session ended: *",
        "*= short test summary info =*",
    ])  # fmt: skip
    (page,) = (inner.pytester.path / "ssdqual-runs").glob("*/report.html")
    assert f"  {page.name}\n" in (page.parent / "SHA256SUMS").read_text()
    assert_whole(inner, pytest.ExitCode.TESTS_FAILED)


@pytest.mark.parametrize(("source", "status", "of_process"), [(START, 3, 3), (SUMMARY, 0, 1)], ids=["start", "summary"])
def test_run_is_closed_after_other_failures(
    inner: Inner, promises: str, source: str, status: int, of_process: int
) -> None:
    inner.pytester.makeconftest(source)
    result = run(inner, "--ssd-devices=lab:4", promises, "-k", "iops and randread and x4")
    assert result.ret == of_process
    assert_whole(inner, status)


def test_failing_plugin_with_several_bays(inner: Inner, promises: str) -> None:
    inner.pytester.makeconftest(on_the_controller(PLAIN.replace("HOW", "")))
    two = ("--ssd-devices=root@dut1:/dev/nvme*", "--ssd-devices=root@dut2:/dev/nvme*")
    args = (*two, promises, "--ssd-protocol=quick", "-n", "2", "-k", "iops and randread and x4", "-o", "ssd_page=true")
    assert run(inner, *args).ret == pytest.ExitCode.TESTS_FAILED
    fleet = inner.folder()
    assert inner.fleet()["exit_status"] == pytest.ExitCode.TESTS_FAILED
    for name in ("report.html", "summary.md", "bays/dut1/report.html", "bays/dut2/SHA256SUMS"):
        assert Path(fleet, name).is_file()
