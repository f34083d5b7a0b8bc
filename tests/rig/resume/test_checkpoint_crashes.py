"""A session that ends between any two system calls leaves a checkpoint that promises no more than the drives hold."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders import strategies
from support.builders.drives import drive
from support.builders.measuring import PROTOCOL, READ, STREAM, WRITE, setup_of
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator import simulated_surroundings

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import MeasureRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder.journal import Journal, read_checkpoint
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio import acceptance, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.health import write_counters
from pytest_ssdqual.rig.health.write_counters import Written
from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.md import mdadm, members, survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, precondition
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import purge, zero
from pytest_ssdqual.rig.purge.purge import Purged
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import Checkpoint

ONCE = replace(PROTOCOL, measure=MeasureRule(1, 5, 1, 1))
FILL = PROTOCOL.fill


@dataclass
class World:
    """Drives, and the session that works on them."""

    journal: Journal | None = None
    step_number: int = 0
    # What the drives hold.
    uuid: str = ""
    filled: bool = False
    #: The access pattern that they are conditioned for.
    conditioned: str | None = None
    #: Something is being written.
    torn: bool = False
    running: bool = False
    #: Written to by what no measurement may build on, such as the pattern of a rebuild.
    spoiled: bool = False
    #: The process that is started next, and its purpose.
    workload: Workload = READ
    purpose: str = ""
    array: Array | None = None
    drives: tuple[Drive, ...] = field(default_factory=lambda: tuple(map(drive, range(3))))

    def step(self) -> None:
        """Count a point at which the session may end: what is there now is what it would leave."""
        self.step_number += 1
        journal, self.journal = self.journal, None  # what reads it here is no step
        if journal:
            require_honest(self, read_checkpoint(journal.path))
        self.journal = journal

    def write(self, change: Callable[[], None]) -> None:
        """Change the drives; in the middle they hold neither the old nor the new."""
        self.step()
        self.torn = True
        self.step()
        change()
        self.torn = False
        self.step()

    @property
    def setup(self) -> Setup:
        held = SimpleNamespace(
            drives=self.drives,
            require=lambda drives: None,
            require_purged=lambda drives: None,
            require_lease=lambda: None,
            expect=lambda uuid: None,
            leased=ScriptedMachine(),
        )
        return setup_of(self.journal, ONCE, machine=ScriptedMachine(), held=held)

    # What happens below the session

    def purged(self, machine: Machine, drives: Sequence[Drive], *, best: bool) -> dict[str, object]:
        self.write(lambda: self._hold("", filled=False))
        return {each.identity: Purged("discard") for each in drives}

    def _hold(self, uuid: str, *, filled: bool) -> None:
        self.uuid, self.filled, self.spoiled = uuid, filled, False
        self.conditioned = self.conditioned if filled else None

    def create(
        self, machine: Machine, geometry: Geometry, drives: Sequence[Drive], of: object, *, path: str, uuid: str,
        data_offset_bytes: int | None = None, **room: object,
    ) -> Array:  # fmt: skip
        self.write(lambda: self._hold(uuid, filled=data_offset_bytes is not None and self.filled))
        self.running = True
        self.step()
        return Array(geometry, path, tuple(drives), uuid, 512 << 20, "zeroed")

    def run(self, machine: Machine, job: Job, seconds: float) -> FinishedProcess:
        fills = job.expectation.written_bytes is not None
        if fills:
            self.write(lambda: setattr(self, "filled", True))
        elif self.workload.writes:
            self.write(self._written)
        numbers = [] if fills else [1000] * 6
        return FinishedProcess(completed(["fio"]), gzip.compress(repr(numbers).encode(), 1))

    def _written(self) -> None:
        if self.purpose == "saturation":
            self.spoiled = True
        self.conditioned = self.workload.pattern if self.purpose == "precondition" else self.conditioned

    def patterned(self, setup: Setup, array: Array, *rest: object) -> tuple[str, FinishedProcess]:
        self.write(lambda: setattr(self, "spoiled", True))
        return "fio/pattern", FinishedProcess(completed(["fio"]), b"")

    def stop(self, machine: object, path: str, drives: Sequence[str], uuid: str) -> tuple[str, ...]:
        self.step()
        self.running = False
        self.step()
        return ()

    # What a session does

    def build(self) -> None:
        self.close()
        self.array = array_lifecycle.build(self.setup, Geometry.parse("raid5x3"), FILL)
        readopt_array.count(self.setup, self.array, "built")

    def condition(self, workload: Workload) -> None:
        self._begin("precondition", workload)
        if self.array:
            precondition.until_steady(self.setup, self.array, workload)
            readopt_array.count(self.setup, self.array, "conditioned")

    def measure(self, workload: Workload) -> None:
        self._begin("run", workload)
        if self.array:
            fixed_time.measure(self.setup, self.array, workload)
            readopt_array.count(self.setup, self.array, "measured")

    def saturate(self) -> None:
        self._begin("saturation", WRITE)
        if self.array:
            window = fixed_time.ProcessWindow(0.0, 5, 5)
            fixed_time.run(self.setup, self.array, WRITE, "saturation", window)

    def _begin(self, purpose: str, workload: Workload) -> None:
        self.workload = precondition.conditioning(workload) if purpose == "precondition" else workload
        self.purpose = purpose

    def lose_a_member(self) -> None:
        if self.array and not self.array.geometry.missing:
            self.array = members.fail_members(self.setup, self.array, 1)

    def close(self) -> None:
        array, self.array = self.array, None
        if array:
            array_lifecycle.stop(self.setup, array)
            readopt_array.count(self.setup, array, "closed")

    def resume(self) -> None:
        """Close, and begin again with what was left."""
        self.close()
        left = read_checkpoint(self.journal.path) if self.journal else None
        if left and left.is_intact:
            self.array = readopt_array.take_over(self.setup, left)


ACTIONS: dict[str, Callable[[World], None]] = {
    "build": World.build,
    "condition": lambda world: world.condition(WRITE),
    "condition sequentially": lambda world: world.condition(STREAM),
    "read": lambda world: world.measure(READ),
    "write": lambda world: world.measure(WRITE),
    "saturate": World.saturate,
    "lose a member": World.lose_a_member,
    "resume": World.resume,
    "close": World.close,
}


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., World]:
    """Play a session in a run folder of its own, and look at each step at what it would leave."""
    now = World()

    def accept(output: Iterable[bytes], *rest: object, **more: object) -> object:
        numbers = [int(word) for word in b"".join(output).decode().strip("[]").split(",") if word]
        intervals = strategies.run(numbers, geometry="raid5x3", workload=now.workload).intervals if numbers else ()
        return SimpleNamespace(intervals=intervals, seconds=len(numbers), parts=())

    def unless_crashed(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **more: Any) -> Any:  # noqa: ANN401
            if now.journal:
                now.step()
            return None if name == "fsync" else real(*args, **more)

        return call

    for module, name, value in (
        (purge, "purge", lambda *a, **m: now.purged(*a, **m)), (zero, "zero", lambda machine, drives: True),
        (array_lifecycle, "sample", lambda machine, drive: ()), (label, "write_drives", lambda machine, drives: None),
        (mdadm, "create", lambda *a, **m: now.create(*a, **m)), (mdadm, "stop", lambda *a: now.stop(*a)),
        (mdadm, "require_healthy", lambda machine, array: None),
        (mdadm, "end_check", lambda machine, array: False),
        (mdadm, "final_objections", lambda machine, path, missing: ()),
        (mdadm, "free_path", lambda machine: "/dev/md100"), (mdadm, "data_offset", lambda machine, array: 1 << 20),
        (members, "require", lambda *a: None), (members, "lose", lambda *a: now.step()),
        (survival_pattern, "_run", lambda *a: now.patterned(*a)), (readopt_array, "_empty", lambda *a: []),
        (process, "run", lambda *a, **m: now.run(*a)), (acceptance, "accept", accept),
        (acceptance, "accept_totals", accept),
        (write_counters, "read", lambda machine, drives, **m: {
            each.identity: Written("boot", 1, 2, 0, None) for each in drives}),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    simulated_surroundings.unseen(monkeypatch)
    for name in ("open", "write", "fsync", "replace", "unlink"):
        monkeypatch.setattr(os, name, unless_crashed(name))

    def played(actions: Sequence[str]) -> World:
        nonlocal now
        now = World()
        journal = Journal.create_at(tmp_path / f"run-{len(list(tmp_path.iterdir()))}")
        now = World(journal)
        for each in actions:
            ACTIONS[each](now)
        world, now = now, World()
        require_honest(world, left_by(world))
        return world

    return played


def left_by(world: World) -> Checkpoint | None:
    assert world.journal
    return read_checkpoint(world.journal.path)


def require_honest(world: World, left: Checkpoint | None) -> None:
    if left is None:
        return
    assert not world.spoiled
    assert left.uuid == world.uuid
    assert world.filled or not left.filled
    assert left.conditioned is None or left.conditioned.writes.pattern == world.conditioned
    assert left.writing or not left.filled or not world.torn
    assert world.running is False or not left.stopped


WAY = ["build", "condition", "read", "write", "condition sequentially", "resume", "read", "lose a member", "build",
       "saturate", "close"]  # fmt: skip


def test_crash_at_every_step_leaves_an_honest_checkpoint(play: Callable[..., World]) -> None:
    assert play(WAY).step_number > 300


@given(st.lists(st.sampled_from(sorted(ACTIONS)), max_size=6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_crash_in_any_order_leaves_an_honest_checkpoint(play: Callable[..., World], actions: list[str]) -> None:
    play(["build", *actions])


def test_what_was_closed_in_order_is_left_intact(play: Callable[..., World]) -> None:
    left = left_by(play(["build", "condition", "read", "resume", "read", "close"]))
    assert left
    assert left.is_intact
    assert left.conditioned
    assert left.conditioned.writes.pattern == "random"
    assert left_by(play(["build", "lose a member", "close"])) is None
    assert left_by(play(["build", "saturate", "close"])) is None
