"""Of several bays none ends early without a word, and none takes others with it: whatever a worker comes to."""

from __future__ import annotations

import signal
import subprocess
import threading
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest
from support.fakes.warm_python import REAL
from support.lab.rehearsed import STEP_DEADLINE_S, await_that, foreign_environment

from pytest_ssdqual.plugin.session.bay_start import BayStart
from pytest_ssdqual.plugin.session.recorder import Recorder
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_summary.run_view import RunView

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

FEW = ("--ssd-protocol=quick", "-k", "iops and randread and x4")
TWO = ("--ssd-devices=root@dut1:/dev/nvme*", "--ssd-devices=root@dut2:/dev/nvme*")
THREE = (*TWO, "--ssd-devices=root@dut3:/dev/nvme*")
TEST = "test_iops[{}-raid5x4-randread_4k_qd8]"
#: Of a conftest: whether this is the worker of a bay.
SERVES = """
    import os, pytest, shutil
    from pytest_ssdqual.plugin.stash import RUN

    def serves(config, name):
        return RUN in config.stash and config.stash[RUN].qualification.name == name
"""


def statuses(inner: Inner) -> dict[str, int]:
    """Of each bay, as its manifest has it."""
    bays = [path.name for path in fleet.bay_folders(inner.folder())]
    return {bay: inner.manifest(bay)["exit_status"] for bay in bays}


def error(inner: Inner, test: str) -> str:
    root = ET.parse(inner.pytester.path / "junit.xml").getroot()  # noqa: S314 (our own)
    (case,) = (each for each in root.iter("testcase") if each.get("name") == test)
    return "\n".join(each.text or "" for each in case.iter("error"))


def test_however_a_worker_ends_only_its_own_bay_is_lost(inner: Inner, promises: str) -> None:
    """After a usage error, xdist takes the tests of a worker that ended in order for run."""
    inner.pytester.makeconftest(
        SERVES
        + """
    def pytest_collection_modifyitems(config, items):
        if serves(config, "dut1"):
            raise pytest.UsageError("its journal is full")

    @pytest.hookimpl(trylast=True)
    def pytest_configure(config):
        global IS_WORKER
        IS_WORKER = hasattr(config, "workerinput")
        if serves(config, "dut2"):
            raise RuntimeError("not today")

    def pytest_runtest_logstart(nodeid):
        if "[dut3" in nodeid and IS_WORKER:
            raise RuntimeError("a broken plugin")
    """
    )
    result = inner.run(*THREE, "--ssd-devices=root@dut4:/dev/nvme*", promises, *FEW, "-n", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["INTERNALERROR> *"])
    found = {name: case.outcome for name, case in inner.cases().items() if "dut1" in name}
    assert set(found.values()) == {"error"}
    assert any("its journal is full" in each.text for each in inner.cases().values())
    assert "RuntimeError: not today" in error(inner, "dut2")
    assert "RuntimeError: a broken plugin" in error(inner, TEST.format("dut3"))
    assert inner.outcomes()[TEST.format("dut4")] == "passed"
    assert statuses(inner) == {"dut1": 1, "dut2": 1, "dut3": 1, "dut4": 0}
    assert inner.records("error", bay="dut1")


def test_a_bay_for_which_xdist_starts_no_worker_is_lost_until_a_later_session_begins_it(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_ONLY", "root@dut1")
    monkeypatch.setenv("SIMULATED_KILLED_AT", "1")
    inner.run(*THREE, promises, *FEW, "-n", "1", "--max-worker-restart=0")
    for bay in ("dut2", "dut3"):
        assert f"{bay} did not begin" in error(inner, bay)
        assert RunView.read(inner.folder() / "bays" / bay).verdict.counts.errors == 1
    assert statuses(inner) == {"dut1": 1, "dut2": 1, "dut3": 1}
    monkeypatch.delenv("SIMULATED_KILLED_AT")
    assert inner.run(*THREE, promises, *FEW, "-n", "2", "--ssd-resume=last").ret == 0
    assert RunView.read(inner.folder() / "bays" / "dut2").verdict.counts.errors == 0


def test_what_cannot_be_collected_is_an_error_of_every_bay(inner: Inner, promises: str) -> None:
    """Of what two workers report alike, xdist tells once."""
    inner.pytester.makepyfile(test_broken="raise RuntimeError('not importable')")
    inner.run(*TWO, promises, *FEW, "-n", "2")
    for bay in ("dut1", "dut2"):
        assert "RuntimeError: not importable" in error(inner, f"collection[{bay}]")
        assert [record["test"] for record in inner.records("error", bay=bay)] == [f"test_broken.py::collection[{bay}]"]
    assert statuses(inner) == {"dut1": 1, "dut2": 1}


@pytest.mark.parametrize("is_mended", [True, False])
def test_a_file_with_tests_in_a_later_session_is_no_error_then(inner: Inner, promises: str, is_mended: bool) -> None:
    inner.pytester.makepyfile(test_broken="raise RuntimeError('not importable')")
    inner.run(*TWO, promises, *FEW, "-n", "2", "--continue-on-collection-errors")
    bays = fleet.bay_folders(inner.folder())
    assert [RunView.read(bay).verdict.counts.errors for bay in bays] == [1, 1]
    broken = inner.pytester.path / "test_broken.py"
    if is_mended:
        broken.write_text((inner.pytester.path / "test_promises.py").read_text())
    else:
        broken.unlink()
    ended = inner.run(*TWO, promises, *FEW, "-n", "2", "--ssd-resume=last")
    assert ended.ret == (pytest.ExitCode.OK if is_mended else pytest.ExitCode.NO_TESTS_COLLECTED)
    assert [RunView.read(bay).verdict.counts.errors for bay in bays] == [int(not is_mended)] * 2


MANY = """
import pathlib, time
import pytest

def await_file(name):
    deadline = time.monotonic() + 120
    while not pathlib.Path(name).exists() and time.monotonic() < deadline:
        time.sleep(0.05)

@pytest.mark.parametrize("number", range(40))
def test_one_of_many(number, request):
    if "dut1" in request.node.nodeid:
        await_file("begun")
        assert number < 1
    else:
        pathlib.Path("begun").touch()
        await_file("failed")
        time.sleep(0.25)
"""


def test_the_first_failure_stops_all_bays(inner: Inner, promises: str) -> None:
    """Whoever asks for that does not want to wait for days of other bays."""
    inner.pytester.makepyfile(test_a=MANY)
    inner.pytester.makeconftest(
        """
    import pathlib

    def pytest_runtest_logreport(report):
        if report.failed and hasattr(report, "node"):
            pathlib.Path("failed").touch()
    """
    )
    inner.run(*TWO, "test_a.py", "--ssd-protocol=quick", "-n", "2", "-x")
    outcomes = inner.outcomes()
    assert "test_one_of_many[dut1-1]" in outcomes
    assert [name for name, outcome in outcomes.items() if outcome != "passed"] == ["test_one_of_many[dut1-1]"]
    assert 1 <= len([name for name in outcomes if "dut2" in name]) < 40
    assert statuses(inner) == {"dut1": 2, "dut2": 2}


def test_a_bay_that_cannot_be_finished_takes_no_other_with_it(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Recorder.count

    def count(recorder: Recorder, status: int) -> None:
        if recorder.run.qualification.name == "dut1":
            raise RuntimeError("nobody thought of that")
        whole(recorder, status)

    monkeypatch.setattr(Recorder, "count", count)
    result = inner.run(*THREE, promises, *FEW, "-n", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert inner.outcomes() == {TEST.format(bay): "passed" for bay in ("dut1", "dut2", "dut3")}
    assert any("nobody thought of that" in line for line in result.outlines)
    for bay in ("dut1", "dut2", "dut3"):
        assert len(inner.records("run_ended", bay=bay)) == 1
        assert (inner.folder() / "bays" / bay / "SHA256SUMS").is_file()


def test_a_folder_that_is_gone_does_not_hinder_other_bays(inner: Inner, promises: str) -> None:
    inner.pytester.makeconftest(
        SERVES
        + """
    def pytest_sessionfinish(session):
        if serves(session.config, "dut1"):
            shutil.rmtree(session.config.stash[RUN].journal.path)
    """
    )
    result = inner.run(*TWO, promises, *FEW, "-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert inner.outcomes()[TEST.format("dut2")] == "passed"
    assert statuses(inner) == {"dut2": 0}
    assert (inner.folder() / "bays" / "dut2" / "SHA256SUMS").is_file()
    assert any("is not complete" in line for line in result.outlines)


def test_a_verdict_that_could_not_be_kept_is_not_green(inner: Inner, promises: str) -> None:
    """Even if there is room again when the run ends."""
    inner.pytester.makeconftest(
        """
    from pytest_ssdqual.report.run_folder.journal import Journal, JournalError
    whole = Journal.note

    def note(self, kind, **facts):
        if kind == "verdict" and self.path.name == "dut1":
            raise JournalError("no room")
        whole(self, kind, **facts)

    Journal.note = note

    def pytest_unconfigure():
        Journal.note = whole
    """
    )
    result = inner.run(*TWO, promises, *FEW, "-n", "2")
    assert inner.outcomes() == {TEST.format("dut1"): "error", TEST.format("dut2"): "passed"}
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_run_of_several_bays_needs_neither_terminal_nor_page(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = inner.pytester.path / "step.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    assert inner.run(*TWO, promises, *FEW, "-n", "2", "-p", "no:terminal", "--ssd-page=no").ret == 0
    assert statuses(inner) == {"dut1": 0, "dut2": 0}
    assert "dut2" in step.read_text()
    assert not (inner.folder() / "report.html").exists()


def test_labs_are_booted_by_a_thread_that_lives_with_the_run(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel ends QEMU with the thread that started it."""
    inner.pytester.makeconftest(
        """
    import threading
    from pytest_ssdqual.plugin.bay import bay
    threads = bay.threads = []
    real = bay._boot_lab

    def boot(*given):
        threads.append(threading.current_thread())
        return real(*given)

    bay._boot_lab = boot

    def pytest_unconfigure():
        bay._boot_lab = real
    """
    )
    from pytest_ssdqual.plugin.bay import bay

    (inner.pytester.path / "bays.toml").write_text(
        '[[bay]]\nname = "far"\nhost = "dut7"\ndevices = "/dev/nvme*"\n[[bay]]\nname = "one"\ndevices = "lab:4"\n'
    )
    monkeypatch.setattr(bay, "threads", [], raising=False)
    inner.run("--ssd-bays=bays.toml", promises, *FEW, "-n", "2")
    assert vars(bay)["threads"] == [threading.main_thread()]
    assert statuses(inner) == {"far": 0, "one": 0}


def test_one_bay_of_a_run_goes_on_by_its_name(inner: Inner, promises: str) -> None:
    """Alone its tests would bear other names, and what was judged would stand beside what is."""
    inner.run(*TWO, promises, *FEW, "-n", "2")
    (inner.pytester.path / "junit.xml").unlink()
    one = (*TWO, promises, *FEW, "--ssd-bay=dut2")
    name = inner.folder().name
    assert "add -n 1" in inner.refused(*one, "--ssd-resume=last")
    told = inner.refused(*one, f"--ssd-resume={name}/bays/dut2")
    assert told.endswith(f"--ssd-resume={name} --ssd-bay=dut2 -n 1")
    assert inner.run(*one, "-n", "1", "--ssd-resume=last").ret == 0
    assert inner.outcomes() == {TEST.format("dut2"): "passed"}
    assert len(inner.records("verdict", bay="dut2")) == 1
    assert len(inner.records("run_ended", bay="dut2")) == 2
    assert len(inner.records("run_ended", bay="dut1")) == 1
    # As after a crash while the first words of a hundred bays were written: it begins when the others go on.
    of_dut2 = inner.folder() / "bays" / "dut2"
    (of_dut2 / "records.jsonl").write_text("")
    (of_dut2 / "manifest.json").unlink()
    assert inner.run(*TWO, promises, *FEW, "-n", "2", "--ssd-resume=last").ret == 0
    assert len(inner.records("run_resumed", bay="dut1")) == len(inner.records("run_started", bay="dut2")) == 1
    assert [len(inner.records("measured", bay=bay)) for bay in ("dut1", "dut2")] == [1, 1]


def test_a_run_of_which_nothing_was_begun_is_not_resumed(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_HELD", "1")
    inner.refused(*TWO, promises, *FEW, "-n", "2")
    told = inner.refused(*TWO, promises, *FEW, "-n", "2", f"--ssd-resume={inner.folder().name}")
    assert "nothing to resume" in told


def test_a_consent_is_for_one_drive(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Serial numbers are unique of one vendor's drives only. It clears nothing away before that is certain."""
    cleared: list[str] = []
    monkeypatch.setattr(BayStart, "clear", lambda start: cleared.append(start.name))
    inner.pytester.makeconftest(
        """
    from pytest_ssdqual.plugin.bay import bay
    from dataclasses import replace
    real = bay.ssh.connect

    def pytest_configure(config):
        from support.simulator import simulated_rig
        whole = simulated_rig.Scene.of_environment.__func__
        simulated_rig.Scene.of_environment = classmethod(
            lambda cls, machine="": replace(whole(cls, machine), model=f"model of {machine}")
        )
        config.add_cleanup(lambda: setattr(simulated_rig.Scene, "of_environment", classmethod(whole)))
    """
    )
    same = ("--ssd-devices=root@a1:/dev/nvme*", "--ssd-devices=root@b1:/dev/nvme*")
    told = inner.refused(*same, promises, *FEW, "-n", "2", "--ssd-force-spec", "--ssd-wipe=SSDQ10001")
    assert told.startswith("--ssd-wipe=SSDQ10001: ")
    assert "WWN" in told
    assert cleared == []


#: As if all that a worker has to take down took much longer: xdist kills what has not ended after ten seconds, and
#: execnet ends a process ten seconds after it was interrupted.
HASTY = """
from execnet.gateway_base import WorkerPool
from xdist.workermanage import NodeManager

NodeManager.EXIT_TIMEOUT = 0.01
wait = WorkerPool.waitall
WorkerPool.waitall = lambda pool, timeout=None: wait(pool, 0.01 if timeout and timeout <= 10 else timeout)
"""


def test_a_cancelled_job_ends_all_bays_in_order(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To pytest's process alone, as CI systems do: what is under way is taken down by its workers."""
    monkeypatch.setenv("SIMULATED_TAKES", "60")
    inner.pytester.makepyfile(hasty=HASTY)
    plugins = ["-p", "support.simulator.simulated_rig", "-p", "hasty"]
    argv = [REAL, "-m", "pytest", *plugins, "--junitxml=junit.xml", *THREE, promises, *FEW]
    place = inner.pytester.path
    with (place / "output").open("w") as output:
        run = subprocess.Popen([*argv, "-n", "2"], cwd=place, env=foreign_environment(), stdout=output, stderr=output)
    try:
        await_that(lambda: all(measures(inner, bay) for bay in ("dut1", "dut2")), "both to measure")
        run.send_signal(signal.SIGTERM)
        assert run.wait(STEP_DEADLINE_S) == pytest.ExitCode.INTERRUPTED
    finally:
        run.kill()
        run.wait()
    assert [len(inner.records("array_stopped", bay=bay)) for bay in ("dut1", "dut2", "dut3")] == [1, 1, 0]
    assert statuses(inner) == {"dut1": 2, "dut2": 2, "dut3": 2}
    assert fleet.read(inner.folder()).exit_status == 2
    assert inner.outcomes() == {}
    for bay in ("dut1", "dut2", "dut3"):
        assert (inner.folder() / "bays" / bay / "SHA256SUMS").is_file()


def measures(inner: Inner, bay: str) -> bool:
    try:
        return bool(inner.records("measuring", bay=bay))
    except (OSError, ValueError):  # there is no folder yet, or a line is being written
        return False
