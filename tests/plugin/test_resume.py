from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.sheet import PRODUCT, promise
from support.fakes.inner_session import TESTS

from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.lock import FolderLock

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

#: One of every kind of measurement, and tests that need several of them.
SUITE = """
    import pytest
    from pytest_ssdqual import Rounds, Tracked, Workload

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    LOOP = Rounds("pair", (READS, WRITES), (Tracked(WRITES, "steady_iops"),), fill_bs="128k")
    raid5 = pytest.mark.ssd_array("raid5", widths=(3, 4))
    small = pytest.mark.ssd_array("raid5", widths=(3,), failed=1)
    both = pytest.mark.ssd_workload(READS, WRITES)

    @pytest.mark.ssd_promise("steady_iops")
    @raid5
    @both
    def test_iops(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("p99_latency")
    @raid5
    @both
    def test_p99(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("scaling_slope")
    @raid5
    @both
    def test_scaling(ssd_sweep, ssd_sla):
        assert ssd_sla.judge(ssd_sweep)

    @pytest.mark.ssd_promise("settled_iops")
    @pytest.mark.ssd_array("drive", widths=(1,))
    @pytest.mark.ssd_workload(WRITES)
    def test_settled(ssd_saturation, ssd_sla):
        assert ssd_sla.judge(ssd_saturation)

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_array("drive")
    @pytest.mark.ssd_rounds(LOOP)
    def test_loop(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("steady_iops")
    @small
    @pytest.mark.ssd_workload(READS)
    def test_degraded(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("rebuild_time")
    @small
    @pytest.mark.ssd_workload(READS)
    def test_rebuilt(ssd_rebuild, ssd_sla):
        assert ssd_sla.judge(ssd_rebuild)
"""
SPEC = (
    PRODUCT
    + promise(claim="steady_iops", workload="randread_*", at_least="250 IOPS")
    + promise(claim="steady_iops", at_least="100 IOPS")
    + promise(claim="p99_latency", at_most="60 ms")
    + promise(claim="scaling_slope", at_least=0.85)
)
MEASUREMENTS = ("measured", "saturation", "loop", "rebuild")


@dataclass(frozen=True)
class LostRun:
    """The only run folder."""

    path: Path

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in (self.path / "records.jsonl").read_text().splitlines()]
        return [line for line in lines if line["kind"] in kinds or not kinds]

    def manifest(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.path / "manifest.json").read_text())
        return read

    @property
    def measured(self) -> Counter[tuple[str, ...]]:
        """What was measured, and how often."""
        return Counter(
            (each["kind"], each["geometry"], each.get("loop") or each["workload"])
            for each in self.records(*MEASUREMENTS)
        )

    @property
    def judged(self) -> Counter[tuple[str, ...]]:
        return Counter(
            (each["kind"], each["test"], each["claim"], each["outcome"])
            for each in self.records("verdict", "observation")
        )


@dataclass(frozen=True)
class PassedRun:
    """A suite that can be run, lost and resumed."""

    inner: Inner

    @property
    def root(self) -> Path:
        return self.inner.pytester.path / "ssdqual-runs"

    def __call__(self, *args: str, devices: str = "/dev/nvme*") -> pytest.RunResult:
        options = ("--ssd-spec=acme.toml", "--ssd-protocol=quick", "-o", "ssd_measure_unpromised=true")
        return self.inner.run(f"--ssd-devices={devices}", *options, *args)

    def interrupted(self, monkeypatch: pytest.MonkeyPatch, at: int, *more: str) -> LostRun:
        """With Ctrl-C at fio's process of this number; and what drives have been through is kept from then on."""
        monkeypatch.setenv("SIMULATED_MEDIA", "media.json")
        monkeypatch.setenv("SIMULATED_INTERRUPTED_AT", str(at))
        args = ("--ssd-devices=/dev/nvme*", "--ssd-spec=acme.toml", "--ssd-protocol=quick", *PART, *more)
        result = self.inner.pytester.runpytest_subprocess("-p", "support.simulator.simulated_rig", *args)
        assert result.ret == pytest.ExitCode.INTERRUPTED, result.outlines
        monkeypatch.delenv("SIMULATED_INTERRUPTED_AT")
        return self.folder()

    def folder(self) -> LostRun:
        (path,) = self.root.iterdir()
        return LostRun(path)

    def refused(self, *args: str) -> str:
        """What is said when it cannot be resumed."""
        result = self("--ssd-resume=last", *args)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, result.outlines
        return "\n".join(line for line in result.errlines if line).removeprefix("ERROR: --ssd-resume: ")


@pytest.fixture
def run(inner: Inner) -> PassedRun:
    inner.pytester.makepyfile(test_all=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    return PassedRun(inner)


#: The quickest part of it: two workloads on two arrays.
PART = ("-k", "iops")


def lose(run: PassedRun, monkeypatch: pytest.MonkeyPatch, at: int, *args: str) -> LostRun:
    """PassedRun until the machine is lost at fio's process of this number."""
    monkeypatch.setenv("SIMULATED_LOST_AT", str(at))
    result = run(*args)
    assert result.ret == pytest.ExitCode.INTERRUPTED, result.outlines
    monkeypatch.delenv("SIMULATED_LOST_AT")
    return run.folder()


def kind_of(ran: dict[str, Any]) -> tuple[str, str]:
    """What a process of fio does, without the number of its round; and the state of the array if it is not whole."""
    return ran["fio"].partition("-")[0], ran["geometry"].partition("-")[2]


@pytest.mark.parametrize("of_kind", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["kind", "process"])
def test_lost_run_ends_like_whole_one(run: PassedRun, monkeypatch: pytest.MonkeyPatch, *, of_kind: bool) -> None:
    """Lose the machine at a process of fio, and resume: all is measured and judged, nothing twice.

    At the last process of each kind, which has most behind it; at every process in the night.
    """
    first = run()
    whole, cases = run.folder(), run.inner.outcomes()
    measured, judged = whole.measured, whole.judged
    assert {kind for kind, _, _ in measured} == set(MEASUREMENTS)
    assert set(measured.values()) == {1}
    processes = list(enumerate(map(kind_of, whole.records("ran")), start=1))
    last = {kind: number for number, kind in processes}
    shutil.rmtree(run.root)
    assert (len(processes), len(last)) == (19, 6)
    for number in sorted(last.values()) if of_kind else range(1, len(processes) + 1):
        lose(run, monkeypatch, number)
        result = run("--ssd-resume=last")
        folder = run.folder()
        assert result.ret == first.ret, result.outlines
        assert run.inner.outcomes() == cases
        assert (folder.measured, folder.judged) == (measured, judged), f"lost at {number}"
        assert len(folder.manifest()["sessions"]) == 2
        shutil.rmtree(run.root)


def test_what_was_measured_by_all_sessions_is_one_run(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lose(run, monkeypatch, 3, *PART)
    lose(run, monkeypatch, 3, "--ssd-resume=last", *PART)
    result = run("--ssd-resume=last", *PART)
    assert "2 measurements reused" in result.stdout.str()
    assert set(folder.measured.values()) == {1}
    manifest = folder.manifest()
    sessions = manifest["sessions"]
    assert [each["exit_status"] for each in sessions] == [2, 2, 0]
    assert [bool(each["ended"]) for each in sessions] == [True, True, True]
    assert (manifest["exit_status"], manifest["started"]) == (0, sessions[0]["started"])
    assert [each["kind"] for each in folder.records("run_started", "run_resumed", "run_ended")] == [
        "run_started", "run_ended", "run_resumed", "run_ended", "run_resumed", "run_ended",
    ]  # fmt: skip
    numbers = [json.loads(line)["number"] for line in (folder.path / "transcript.jsonl").read_text().splitlines()]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))  # those of threads may change places
    sums = (folder.path / "SHA256SUMS").read_text().splitlines()
    names = {path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file()}
    assert {line.split("  ")[1] for line in sums} == {each for each in names if not each.startswith(".")} - {
        "SHA256SUMS"
    }


def test_a_complete_run_is_judged_again_without_its_drives(run: PassedRun) -> None:
    run()
    before = run.folder().records()
    cases = {name: (each.message, each.properties) for name, each in run.inner.cases().items()}
    run("--ssd-resume=last")
    assert {name: (each.message, each.properties) for name, each in run.inner.cases().items()} == cases
    new = [each["kind"] for each in run.folder().records()[len(before) :]]
    assert set(new) == {"run_resumed", "run_ended", "health", "shared_links"}


def test_with_xdist_the_worker_recalls(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(run, monkeypatch, 5, *PART, "-n", "1")
    result = run("--ssd-resume=last", *PART, "-n", "1")
    result.assert_outcomes(passed=4)
    folder = run.folder()
    assert set(folder.measured.values()) == {1}
    assert {each["writer"] for each in folder.records("measured")} == {"gw0"}


def test_what_is_damaged_is_measured_again_and_told(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan of a run that is resumed is of what is left, and changes nothing."""
    folder = lose(run, monkeypatch, 5, *PART)
    before = folder.records()
    text = run("--ssd-resume=last", *PART, "--collect-only").stdout.str()
    assert "2 measurements reused" in text
    assert "raid5x4" in text.split("the plan for")[1]
    assert "raid5x3" not in text.split("the plan for")[1]
    assert run.folder().records() == before
    assert (folder.path / "SHA256SUMS").exists()
    name = "fio/raid5x3-randread_4k_qd8-run.json.gz"
    (folder.path / name).write_bytes(b"")
    result = run("--ssd-resume=last", *PART)
    (resumed,) = folder.records("run_resumed")
    (said,) = resumed["damaged"]
    assert (resumed["recalled"], name in said) == (1, True)
    result.stdout.fnmatch_lines([f"ssdqual: {said}"])
    assert folder.measured["measured", "raid5x3", "randread_4k_qd8"] == 2
    result.assert_outcomes(passed=4)


# -- what is damaged, and what failed


def test_a_failure_is_not_recalled_but_tried_again(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_BROKEN", "raid5x4")
    run(*PART)
    monkeypatch.delenv("SIMULATED_BROKEN")
    result = run("--ssd-resume=last", *PART)
    result.assert_outcomes(passed=4)
    assert len(run.folder().records("error")) == 2


def test_a_verdict_that_changes_says_so(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured again need not come out the same."""
    run(*PART)
    folder = run.folder()
    (folder.path / "fio/raid5x3-randread_4k_qd8-run.json.gz").unlink()
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0001=0.25")
    result = run("--ssd-resume=last", *PART)
    result.assert_outcomes(passed=3, failed=1)
    *_, last = folder.records("verdict")
    assert len(folder.records("verdict")) == 5
    assert (last["outcome"], last["test"]) == ("fail", "test_all.py::test_iops[raid5x3-randread_4k_qd8]")
    (superseded,) = [each for each in folder.records("verdict")[:-1] if each["test"] == last["test"]]
    assert (superseded["outcome"], superseded["time"]) == ("pass", last["supersedes"])


# -- conditioning that is kept


def test_conditioning_is_kept_after_ctrl_c(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its confirmation is run: one window instead of a purge, a fill and all of it."""
    folder = run.interrupted(monkeypatch, 3)
    before = folder.records()
    run("--ssd-resume=last", *PART).assert_outcomes(passed=4)
    after = folder.records()[len(before) :]
    (kept,) = folder.records("conditioning_kept")
    (confirmed,) = folder.records("conditioning_confirmed")
    assert (kept["geometry"], confirmed["confirmed"]) == ("raid5x3", True)
    assert [each["geometry"] for each in after if each["kind"] == "purging"] == ["raid5x4"]
    assert [each["geometry"] for each in after if each["kind"] == "conditioned"] == ["raid5x4"]
    assert set(folder.measured.values()) == {1}


def test_conditioned_drives_are_kept_after_ctrl_c(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """The array that was visited is assembled of them again; cells that it had are not measured again."""
    drives = f"--ssd-protocol={TESTS / 'rehearsal' / 'drives.toml'}"
    folder = run.interrupted(monkeypatch, 5, drives)
    before = [(cell["geometry"], cell["workload"], cell["visit"]) for cell in folder.records("cell")]
    run("--ssd-resume=last", *PART, drives).assert_outcomes(passed=4)
    for kind in ("purging", "filled", "conditioned", "conditioning_kept"):
        assert len(folder.records(kind)) == 1, kind
    cells = [(cell["geometry"], cell["workload"], cell["visit"]) for cell in folder.records("cell")]
    assert before
    assert len(cells) == len(set(cells)) == 2 * 2 * 2
    assert set(folder.measured.values()) == {1}


@pytest.mark.parametrize("change", ["written", "purged"])
def test_conditioning_is_not_kept_on_drives_that_changed(
    run: PassedRun, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    folder = run.interrupted(monkeypatch, 3)
    media = run.inner.pytester.path / "media.json"
    state = json.loads(media.read_text())
    if change == "written":
        state["written"]["nvme1n1"] += 200
    else:
        state["filled"].remove("nvme1n1")
    media.write_text(json.dumps(state))
    run("--ssd-resume=last", *PART).assert_outcomes(passed=4)
    (not_kept,) = folder.records("conditioning_not_kept")
    assert len(not_kept["reasons"]) == 1
    assert not_kept["reasons"][0].startswith("SSDQ0002 ")
    assert [each["geometry"] for each in folder.records("purging")] == ["raid5x3", "raid5x3", "raid5x4"]


def test_conditioning_is_not_kept_if_another_array_comes_first(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run.interrupted(monkeypatch, 6)  # on raid5x4
    (folder.path / "fio/raid5x3-randread_4k_qd8-run.json.gz").unlink()
    run("--ssd-resume=last", *PART).assert_outcomes(passed=4)
    assert not folder.records("conditioning_kept", "conditioning_not_kept")


# -- what is refused


def test_what_is_refused_is_on_record_and_resumed_by_its_path_with_drives_in_other_places(
    run: PassedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lose(run, monkeypatch, 2, *PART)
    refused = f"{folder.path.name} cannot be resumed: the "
    for name, value, word in (("DRIVES", "5", "SSDQ0005"), ("MODEL", "ACME", "ACME now")):
        with monkeypatch.context() as other:
            other.setenv(f"SIMULATED_{name}", value)
            said = run.refused(*PART)
        assert said.startswith(refused)
        assert word in said
        assert folder.records("resume_refused")[-1]["reasons"] == f"--ssd-resume: {said}"
    assert (folder.path / "SHA256SUMS").exists()  # it was sealed before
    before = folder.records()
    for writer in ("main", "gw0"):
        claim = FolderLock(folder.path, writer)
        assert run.refused(*PART).startswith(f"{folder.path} is in use")
        claim.release()
    assert folder.records() == before
    elsewhere = run.inner.pytester.path / "elsewhere"
    elsewhere.mkdir()
    moved = LostRun(Path(shutil.move(folder.path, elsewhere)))
    reverse = ",".join(f"/dev/nvme{number}n1" for number in (3, 2, 1, 0))
    run(f"--ssd-resume=elsewhere/{moved.path.name}", *PART, devices=reverse).assert_outcomes(passed=4)
    assert set(moved.measured.values()) == {1}
    members = {tuple(each["members"]) for each in moved.records("array_created") if each["geometry"] == "raid5x3"}
    assert members == {("SSDQ0001", "SSDQ0002", "SSDQ0003")}
    assert list(run.root.iterdir()) == []


def test_another_spec_or_protocol_is_refused(run: PassedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lose(run, monkeypatch, 2, *PART)
    name = folder.path.name
    assert run.refused("--ssd-protocol=intel").partition("protocol ")[2].startswith("is intel ")
    spec = run.inner.pytester.path / "acme.toml"
    spec.write_text(SPEC.replace("0.85", "0.9"))
    line = f"line {SPEC.splitlines().index('at_least = 0.85') + 1}"
    said = run.refused()
    assert said.startswith(f"{name} cannot be resumed: {line} ")
    assert said.index("at_least = 0.9") < said.index("at_least = 0.85")
    assert run.refused("--collect-only").startswith(f"{name} cannot be resumed: {line} ")
    spec.write_text(SPEC)
    manifest = folder.manifest()
    was = manifest["defaults"]["text"]
    manifest["defaults"]["text"] = was.replace("at_least = 0.9", "at_least = 0.8", 1)
    (folder.path / "manifest.json").write_text(json.dumps(manifest))
    assert "the promises default " in run.refused()
    assert len(folder.records("resume_refused")) == 3


def test_a_run_holds_its_folder_unsealed_while_it_lives(run: PassedRun) -> None:
    run.inner.pytester.makepyfile(
        test_inside="""
        import pytest
        from pathlib import Path
        from pytest_ssdqual.report.run_folder.lock import FolderLock, StillWritten

        def test_it():
            (folder,) = Path("ssdqual-runs").iterdir()
            assert not (folder / "SHA256SUMS").exists()
            with pytest.raises(StillWritten):
                FolderLock(folder.absolute(), "main")
        """
    )
    for resume in ((), ("--ssd-resume=last",)):
        run("test_inside.py", *resume).assert_outcomes(passed=1)
        assert (run.folder().path / "SHA256SUMS").exists()
    FolderLock(run.folder().path, "main").release()


def test_what_there_is_not_cannot_be_resumed(run: PassedRun) -> None:
    assert run.refused().endswith(f"no run in {run.root}")
    refused = Journal.create(run.root, "aaaaaaaa")
    refused.note("run_refused", reasons="/dev/nvme0n1 is mounted")
    refused.seal()
    assert run.refused().endswith(f"no run in {run.root}")
    result = run(f"--ssd-resume={refused.path.name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "nothing to resume" in result.stderr.str()
