"""Calibration of the load: as few jobs as keep a CPU at ease, and nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec.protocol_rules import LoadRule
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.load import DriveLoad, Load, LoadTrial
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, MachineLost
from pytest_ssdqual.rig.measure import load_calibration
from pytest_ssdqual.rig.measure.load_calibration import EASE, least
from pytest_ssdqual.rig.measure.session import LoadChoice, Setup
from pytest_ssdqual.rig.observe.placement import NUMA_NODES

NODES = "node 0 0-7\nnode 1 8-15\n==placement nvme0n1\nnuma_node 0\ninterrupt 0\n==placement nvme1n1\nnuma_node 1\n==\n"


@dataclass
class LoadBench:
    """Drives of a known speed, read by jobs of a known speed."""

    #: IOPS of one job at a whole CPU, by engine; an engine that is missing does not work.
    job_iops: dict[str, float]
    drive_iops: float = 1_000_000
    drives: tuple[Drive, ...] = (drive(0), drive(1))
    nodes: str = NODES
    lost: bool = False
    #: Paths of drives that cannot be read.
    broken: tuple[str, ...] = ()
    tried: list[tuple[str, int]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    leases: int = 0

    def require_lease(self) -> None:
        self.leases += 1

    def note(self, kind: str, **facts: object) -> None:
        self.records.append({"kind": kind, **facts})

    def try_load(self, machine: object, target: JobTarget, load: Load) -> LoadTrial:
        if self.lost:
            raise MachineLost("dut1 is lost")
        if target.path in self.broken:
            raise InvalidMeasurement(f"I/O error on {target.path}: medium error")
        self.tried.append((load.engine, load.jobs))
        if load.engine not in self.job_iops:
            raise InvalidMeasurement(f"this fio lacks the I/O engine {load.engine}")
        iops = min(self.drive_iops, load.jobs * self.job_iops[load.engine])
        return LoadTrial(load.engine, load.jobs, iops, iops / load.jobs / self.job_iops[load.engine])

    def choose(self, protocol: str = "acceptance", **rule: object) -> DriveLoad:
        setup = Setup(
            machine=ScriptedMachine().on("sh", "-c", NUMA_NODES, answer=self.nodes),
            held=cast(Any, self),
            protocol=replace(protocols.load(protocol), load=LoadRule(**cast(Any, rule))),
            logbook=cast(Any, self),
            machine_id="",
            progress=lambda what, seconds: None,
            load=LoadChoice(None),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(load_calibration, "try_load", self.try_load)
            load_calibration.require(setup)
            load_calibration.require(setup)  # once
        (record,) = self.records
        assert record["kind"] == "load"
        assert record["load"] == setup.load.chosen
        return setup.load.drives


def test_a_fast_drive_gets_as_many_jobs_as_keep_a_cpu_at_ease() -> None:
    bench = LoadBench({"io_uring": 400_000, "libaio": 350_000})
    found = bench.choose()
    assert (found.engine, found.array_engine, found.jobs) == ("io_uring", "libaio", 4)
    assert bench.tried == [("io_uring", 1), ("io_uring", 2), ("io_uring", 4)]
    assert bench.leases == 3
    assert found.cpus == {"S0": "0-7", "S1": "8-15"}


def test_a_slow_drive_gets_one_job_and_one_trial() -> None:
    bench = LoadBench(
        {"io_uring": 400_000}, drive_iops=90_000, nodes="node 0 0-7\n==placement nvme0n1\nnuma_node 0\n==\n"
    )
    found = bench.choose()
    assert (found.jobs, len(bench.tried), found.cpus) == (1, 1, {})


def test_libaio_is_used_where_io_uring_does_not_work() -> None:
    bench = LoadBench({"libaio": 350_000})
    found = bench.choose()
    assert (found.engine, found.jobs) == ("libaio", 8)
    assert "io_uring" in found.why


def test_a_drive_that_cannot_be_read_is_left_to_the_measurement() -> None:
    bench = LoadBench({"io_uring": 400_000}, broken=("/dev/nvme0n1",))
    assert (bench.choose().jobs, bench.tried[0]) == (4, ("io_uring", 1))
    none = LoadBench({"io_uring": 400_000}, broken=("/dev/nvme0n1", "/dev/nvme1n1"))
    found = none.choose()
    assert (found.engine, found.jobs) == ("libaio", 1)
    assert "medium error" in found.why


def test_each_model_is_tried_and_the_most_demanding_counts() -> None:
    bench = LoadBench({"io_uring": 400_000}, drives=(drive(0), drive(1, "OTHER")))
    assert bench.choose().jobs == 4
    assert len(bench.tried) == 6


def test_what_the_protocol_says_needs_no_calibration() -> None:
    bench = LoadBench({})
    assert bench.choose(engine="io_uring", jobs=6).of(["S0"], bare=False).engine == "io_uring"
    assert bench.tried == []
    short = LoadBench({})
    found = short.choose("quick")
    assert (found.engine, found.jobs, short.tried) == ("libaio", 1, [])
    some = LoadBench({"io_uring": 400_000})
    assert some.choose(jobs=2).jobs == 2
    assert some.tried == [("io_uring", 2)]
    assert LoadBench({"io_uring": 400_000}).choose(numa=False).cpus == {}


def test_a_lost_machine_is_no_reason_for_another_engine() -> None:
    with pytest.raises(MachineLost):
        LoadBench({"io_uring": 1, "libaio": 1}, lost=True).choose()


def test_more_jobs_than_cpus_are_not_at_ease() -> None:
    two, four = LoadTrial("libaio", 2, 73_000, 0.94), LoadTrial("libaio", 4, 53_000, 0.47)
    assert least([LoadTrial("libaio", 1, 49_000, 1.0), two, four]) == two
    assert least([two, replace(four, iops=72_500)]).jobs == 4


@given(st.floats(1e4, 4e6), st.floats(5e4, 1e6))
def test_the_chosen_jobs_reach_what_any_number_of_jobs_reaches(drive_iops: float, job_iops: float) -> None:
    counts = (1, 2, 4, 8, 16)
    reached = [min(drive_iops, count * job_iops) for count in counts]
    trials = [
        LoadTrial("libaio", count, iops, iops / count / job_iops) for count, iops in zip(counts, reached, strict=True)
    ]
    chosen = least(trials)
    assert chosen.iops * 1.03 >= max(reached)
    fast = [each for each in trials if each.iops * 1.03 > max(reached)]
    assert chosen.jobs_busy <= EASE or all(each.jobs_busy > EASE for each in fast)
