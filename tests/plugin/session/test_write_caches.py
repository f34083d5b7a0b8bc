"""Write caches in whole sessions: switched for the run, restored however it ends, at the latest by the next run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.qual.spec import protocol, toml
from pytest_ssdqual.report.run_folder.reader import Record, read_records

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

ON, OFF = dict.fromkeys(("SSDQ0001", "SSDQ0002", "SSDQ0003"), "on"), dict.fromkeys(("SSDQ0001", "SSDQ0002"), "off")
ARGS = ("--ssd-devices=/dev/nvme*", "--ssd-protocol=off.toml", "-k", "iops and randread and raid5x3")


@dataclass(frozen=True)
class Bench:
    """Three drives whose write caches outlive a session."""

    inner: Inner
    promises: str

    @property
    def states(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self._file.read_text())
        return found

    def set(self, **states: str) -> None:
        self._file.write_text(json.dumps(states))

    @property
    def _file(self) -> Path:
        return self.inner.pytester.path / "caches.json"

    def run(self, *more: str) -> pytest.RunResult:
        return self.inner.run(self.promises, *ARGS, *more)

    def run_apart(self) -> pytest.RunResult:
        """In a process of its own, which may be interrupted or killed."""
        return self.inner.pytester.runpytest_subprocess("-p", "support.simulator.simulated_rig", self.promises, *ARGS)

    def records(self, *kinds: str) -> list[Record]:
        """Of all run folders, oldest first."""
        folders = sorted((self.inner.pytester.path / "ssdqual-runs").iterdir())
        return [record for folder in folders for record in read_records(folder, *kinds)]

    def facts(self, kind: str, name: str) -> list[Any]:
        return [record.facts[name] for record in self.records(kind)]


@pytest.fixture
def rig(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("SIMULATED_DRIVES", "3")
    monkeypatch.setenv("SIMULATED_CACHES", str(inner.pytester.path / "caches.json"))
    quick = toml.text("quick", protocol.FOLDER)
    (inner.pytester.path / "off.toml").write_text(f'write_cache = "off"\n{quick}')
    bench = Bench(inner, promises)
    bench.set(**ON)
    return bench


def test_caches_are_off_for_the_run_and_as_found_after_it(rig: Bench) -> None:
    rig.set(SSDQ0002="stuck", SSDQ0003="absent")
    assert rig.run("--collect-only").stdout.str().count("caches are switched") == 1
    assert rig.states == {"SSDQ0002": "stuck", "SSDQ0003": "absent"}, "a plan changes nothing"
    rig.run()
    kinds = [record.kind for record in rig.records()]
    assert kinds.index("write_cache_planned") < kinds.index("write_cache") < kinds.index("purging")
    assert kinds.index("array_stopped") < kinds.index("write_cache_restored") < kinds.index("run_ended")
    assert rig.facts("write_cache", "now") == ["off", "on", "absent"]
    assert rig.states == {"SSDQ0001": "on", "SSDQ0002": "stuck", "SSDQ0003": "absent"}
    states = rig.inner.suite_properties()["ssd.write_cache"].split(", ")
    assert [state.partition(" ")[0] for state in states] == ["off", "on", "absent"]


@pytest.mark.parametrize(("end", "at", "status"), [("INTERRUPTED_AT", "1", 2), ("BROKEN", "raid5x3", 1)])
def test_caches_are_restored_after_interruption_and_errors(
    rig: Bench, monkeypatch: pytest.MonkeyPatch, end: str, at: str, status: int
) -> None:
    monkeypatch.setenv(f"SIMULATED_{end}", at)
    assert rig.run_apart().ret == status
    assert rig.facts("write_cache", "now") == ["off"] * 3
    assert rig.states == ON
    assert rig.facts("write_cache_restored", "leftover") == [False] * 3


def test_measurement_during_which_a_cache_changed_does_not_count(rig: Bench) -> None:
    rig.set(SSDQ0002="reset")
    rig.run()
    assert len(rig.facts("write_cache", "now")) == 6, "they are switched again"
    # It was conditioning, which is repeated once.
    (fault,) = rig.facts("preparation_repeated", "fault")
    assert "write cache" in str(fault)
    assert "/dev/nvme1" in str(fault)
    assert rig.states == ON


def test_lost_machine_leaves_it_to_the_next_run(rig: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", "1")
    lost = rig.run()
    assert set(rig.states.values()) == {"off"}
    assert len(rig.records("write_cache_left")) == 3
    lost.stdout.fnmatch_lines(["*/dev/nvme0n1*could not be*"])
    monkeypatch.delenv("SIMULATED_LOST_AT")

    plan = rig.run("--collect-only")
    plan.stdout.fnmatch_lines(["*switched*/dev/nvme0n1*next run*"])
    assert set(rig.states.values()) == {"off"}, "a plan changes nothing"

    restoring = rig.inner.run(rig.promises, *ARGS, "--ssd-protocol=quick")
    restoring.stdout.fnmatch_lines(["*/dev/nvme0n1*on again*"])
    assert rig.facts("write_cache_restored", "leftover") == [True] * 3
    assert rig.states == ON
    assert rig.facts("write_cache", "found")[3:] == ["on"] * 3, "restored before it is read for this run"
    assert "switched the" not in rig.run("--collect-only").stdout.str()


def test_killed_run_is_resumed_with_the_same_setting(rig: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KILLED_AT", "1")
    assert rig.run_apart().ret == 9
    assert set(rig.states.values()) == {"off"}
    assert rig.records("write_cache_restored", "write_cache_left") == []
    monkeypatch.delenv("SIMULATED_KILLED_AT")
    assert rig.run("--ssd-resume=last").ret == 1
    assert rig.facts("write_cache", "found") == ["on"] * 6
    assert rig.facts("write_cache", "now") == ["off"] * 6
    assert rig.states == ON
    changes = set(rig.facts("write_cache_planned", "change"))
    assert len(changes) == 6
    assert changes == set(rig.facts("write_cache_restored", "change"))


def test_drive_that_the_guard_refuses_is_not_switched(rig: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", "1")
    rig.run()
    monkeypatch.delenv("SIMULATED_LOST_AT")
    rig.inner.pytester.makeconftest("def pytest_ssdqual_refuse_drive(drive): return 'it is on loan'")
    assert rig.run().ret == pytest.ExitCode.USAGE_ERROR
    assert set(rig.states.values()) == {"off"}
    assert rig.records("write_cache_restored") == []


def test_resumed_run_needs_the_caches_as_they_were_found(rig: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", "2")
    rig.run("--ssd-protocol=quick")
    monkeypatch.delenv("SIMULATED_LOST_AT")
    rig.set(SSDQ0002="off")
    rig.run("--ssd-protocol=quick", "--ssd-resume=last")
    (message,) = {str(record.facts["message"]) for record in rig.records("error")} - {"localhost is lost: no answer"}
    assert "SSDQ0002) is off and" in message
    assert rig.states == {"SSDQ0002": "off"}
