from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from support.builders import strategies
from support.builders.drives import drive
from support.builders.measuring import PROTOCOL, READ, WRITE, setup_of
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator import simulated_surroundings

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec.protocol_rules import MeasureRule, PreconditionRule, SteadyRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignPlan, CampaignStep, StepKind
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio import acceptance, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import DriveRefused, InvalidMeasurement, Machine, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md import members as degraded
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import purge, zero
from pytest_ssdqual.rig.purge.purge import Purged
from pytest_ssdqual.rig.resume import readopt_array

RAID5X3, RAID5X4, RAID0X2 = Geometry(RaidLevel.RAID5, 3), Geometry(RaidLevel.RAID5, 4), Geometry(RaidLevel.RAID0, 2)
NONE = PreconditionRule(0, 15)
STEADY, FALLING = [1000] * 6, [4000, 3000, 2000, 1500, 1000, 700]


@dataclass
class Rig(Logbook):
    """Everything below a campaign, and what it was asked for; a series that is asked for twice is the last one's."""

    drives: tuple[Drive, ...] = tuple(drive(number) for number in range(4))
    #: Of each measuring fio process, its IOPS by second, or what becomes of it.
    series: list[list[int] | RigError] = field(default_factory=list)
    lease: bool = True
    did: list[str] = field(default_factory=list)
    required: list[Sequence[Drive]] = field(default_factory=list)
    #: UUIDs of arrays whose superblocks are no surprise.
    expected: list[str] = field(default_factory=list)
    refuses: RigError | None = None
    sick: RigError | None = None
    #: Members that could not be erased when the array was stopped.
    pulled: tuple[str, ...] = ()
    #: Faults of fills, and the seconds that each fill may take.
    fill_faults: list[RigError] = field(default_factory=list)
    fill_s: list[float] = field(default_factory=list)
    leased: ScriptedMachine = field(default_factory=ScriptedMachine)

    def require(self, drives: Sequence[Drive]) -> None:
        if self.refuses:
            raise self.refuses
        self.required.append(drives)

    def require_purged(self, drives: Sequence[Drive]) -> None:
        self.did.append("require_purged")

    def expect(self, uuid: str) -> None:
        self.expected.append(uuid)

    def require_lease(self) -> None:
        if not self.lease:
            raise LeaseLost("the lease was lost")

    def note(self, kind: str, **facts: object) -> None:
        if kind not in ("purging", "measuring", "ran"):
            self.did.append(kind)
        super().note(kind, **facts)

    @property
    def running(self) -> tuple[str, Workload]:
        """Array and workload of the fio process that was started last."""
        facts = next(facts for kind, facts in reversed(self.notes) if kind == "measuring")
        return str(facts["geometry"]), from_plain(Workload, facts["asked"])

    def next_series(self) -> list[int]:
        found = self.series.pop(0) if len(self.series) > 1 else self.series[0] if self.series else STEADY
        if isinstance(found, RigError):
            raise found
        return found


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()

    def purged(machine: Machine, drives: Sequence[Drive], *, best: bool) -> dict[str, object]:
        rig.did.append(f"purge {len(drives)}")
        return {one.identity: Purged("discard") for one in drives}

    def create(
        machine: Machine, geometry: Geometry, members: Sequence[Drive], settings: object, *, path: str, uuid: str,
        **room: object,
    ) -> Array:  # fmt: skip
        rig.did.append(f"create {geometry}")
        if rig.sick:
            raise rig.sick
        return Array(geometry, path, tuple(members), uuid, 512 << 20, "zeroed")

    def healthy(machine: Machine, array: Array) -> None:
        if rig.sick:
            raise rig.sick

    def run(machine: Machine, job: Job, seconds: float, *, is_watched: bool = False) -> FinishedProcess:
        if job.expectation.written_bytes is not None:
            rig.did.append("fill")
            rig.fill_s.append(seconds)
            if rig.fill_faults:
                raise rig.fill_faults.pop(0)
            return FinishedProcess(completed(["fio"]), gzip.compress(b"[]"))
        rig.did.append(f"fio {rig.running[1]}")
        return FinishedProcess(completed(["fio"]), gzip.compress(repr(rig.next_series()).encode()))

    def accept(output: Iterable[bytes], *rest: object, **more: object) -> object:
        numbers = [int(word) for word in b"".join(output).decode().strip("[]").split(",") if word]
        if not numbers:
            return SimpleNamespace(intervals=())
        geometry, workload = rig.running
        alone = strategies.run(numbers, workload=workload).intervals
        whole = strategies.run(numbers, geometry=geometry, workload=workload).intervals
        parts = (alone,) if "drive" in geometry else ()
        return SimpleNamespace(intervals=whole, seconds=len(numbers), parts=parts)

    def stop(machine: object, path: str, members: Sequence[str], uuid: str) -> tuple[str, ...]:
        rig.did.append(f"stop {path}:{len(members)}")
        return rig.pulled

    def fail(setup: Setup, array: Array, missing: int) -> Array:
        rig.did.append(f"fail {missing}")
        return replace(array, geometry=Geometry(array.geometry.level, array.geometry.width, missing))

    monkeypatch.setattr(purge, "purge", purged)
    monkeypatch.setattr(array_lifecycle, "sample", lambda machine, drive: ())
    monkeypatch.setattr(zero, "zero", lambda machine, drives: True)
    monkeypatch.setattr(readopt_array, "count", lambda setup, array, moment: None)
    monkeypatch.setattr(mdadm, "create", create)
    monkeypatch.setattr(mdadm, "require_healthy", healthy)
    monkeypatch.setattr(mdadm, "end_check", lambda machine, array: False)
    monkeypatch.setattr(mdadm, "final_objections", lambda machine, path, missing: ())
    monkeypatch.setattr(mdadm, "free_path", lambda machine: "/dev/md100")
    monkeypatch.setattr(mdadm, "data_offset", lambda machine, array: 1 << 20)
    monkeypatch.setattr(mdadm, "stop", stop)
    monkeypatch.setattr(degraded, "fail_members", fail)
    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(acceptance, "accept", accept)
    monkeypatch.setattr(acceptance, "accept_totals", accept)
    simulated_surroundings.unseen(monkeypatch)
    return rig


def campaign(rig: Rig, planned: Mapping[Geometry, Sequence[Workload]] | None = None, **changes: object) -> Campaign:
    protocol = replace(PROTOCOL, **changes)  # type: ignore[arg-type]
    setup = setup_of(rig, protocol, machine=ScriptedMachine(), held=rig)
    steps = [
        CampaignStep(StepKind.MEASURED, geometry, each)
        for geometry, workloads in (planned or {}).items()
        for each in workloads
    ]
    return Campaign(setup, CampaignPlan.of(steps, protocol))


def count(rig: Rig, what: str) -> int:
    return sum(one.startswith(what) for one in rig.did)


def test_measurement_goes_from_the_purge_to_the_stop(rig: Rig) -> None:
    here = campaign(rig)
    array = here.array(RAID5X3)
    measured = here.measure(RAID5X3, READ)
    here.close()
    assert rig.did == [
        "purge 3", "require_purged", "erased", "array_planned", "create raid5x3", "array_created", "fill", "filled",
        f"fio {WRITE}", "conditioned", f"fio {READ}", "steady", "measured", "stop /dev/md100:3", "array_stopped",
    ]  # fmt: skip
    assert measured.iops == pytest.approx(1000)
    assert rig.required == [rig.drives[:3]]
    (planned,) = [facts for kind, facts in rig.notes if kind == "array_planned"]
    assert rig.expected == [planned["uuid"]] == [array.uuid]
    assert planned["members"] == ["S0", "S1", "S2"]


def test_bare_drives_are_checked_before_everything_that_writes(rig: Rig) -> None:
    here = campaign(rig)
    drive_alone = Geometry.parse("drivex1")
    assert here.array(drive_alone).path == "/dev/nvme0n1"
    here.measure(drive_alone, READ)
    assert [one for one in rig.did if one.startswith(("purge", "fill", "fio"))] == [
        "purge 1", "fill", "filled", f"fio {WRITE}", f"fio {READ}",
    ]  # fmt: skip
    assert rig.required == [rig.drives[:1]] * 3
    rig.refuses = DriveRefused("it is mounted")
    with pytest.raises(DriveRefused):
        here.measure(drive_alone, WRITE)
    here.close()
    assert (count(rig, f"fio {WRITE}"), count(rig, "create"), count(rig, "stop")) == (1, 0, 0)


def test_array_with_a_member_that_kept_its_superblock_is_left(rig: Rig) -> None:
    rig.pulled = ("/dev/nvme1n1",)
    here = campaign(rig)
    here.array(RAID5X3)
    here.close()
    kind, facts = rig.notes[-1]
    assert (kind, facts["not_erased"]) == ("array_left", ["/dev/nvme1n1"])


def test_two_workloads_of_one_name_are_measured_both(rig: Rig) -> None:
    reads, writes = (Workload("randrw", "4k", 8, read_percent=share, name="oltp") for share in (70, 30))
    assert str(reads) == str(writes)
    here = campaign(rig, {RAID5X3: [reads, writes]})
    assert here.measure(RAID5X3, writes).workload == writes
    assert here.measure(RAID5X3, reads).workload == reads


def test_array_that_does_not_settle_is_not_conditioned_again(rig: Rig) -> None:
    rig.series = [FALLING]
    here = campaign(rig)
    for ask in (
        lambda: here.measure(RAID5X3, READ),
        lambda: here.measure(RAID5X3, WRITE),
        lambda: here.steady(RAID5X3, READ),
    ):
        with pytest.raises(InvalidMeasurement, match="not settle within"):
            ask()
    assert count(rig, "fio") == 3


def test_one_killed_worker_costs_a_second_preparation_only(rig: Rig) -> None:
    killed = InvalidMeasurement("a worker of fio was killed by signal 9")
    rig.fill_faults, rig.series = [killed], [killed, STEADY]
    assert campaign(rig).measure(RAID5X3, READ).iops == pytest.approx(1000)
    assert (rig.did.count("fill"), rig.did.count("preparation_repeated")) == (2, 2)
    assert count(rig, "create") == 1


def test_a_fill_may_take_as_long_as_one_drive_needs(rig: Rig) -> None:
    """All of its drives are written at the same time."""
    here = campaign(rig)
    here.array(RAID5X3)
    here.array(Geometry.parse("raid0x4"))
    first, second = rig.fill_s
    assert first == second


def test_what_never_is_steady_is_no_measurement(rig: Rig) -> None:
    rig.series = [FALLING]
    here = campaign(rig, precondition=NONE)
    for _ in range(2):
        with pytest.raises(InvalidMeasurement, match="after 2 attempts"):
            here.measure(RAID5X3, READ)
    assert (count(rig, f"fio {READ}"), count(rig, "measured")) == (2, 0)
    rig.series = [FALLING, STEADY]
    assert here.measure(RAID5X3, WRITE).iops == pytest.approx(1000)


def test_workloads_with_tails_have_longer_windows_on_every_array(rig: Rig) -> None:
    rig.series = [[1000] * 11]
    ours = campaign(rig, measure=MeasureRule(1, 5, 1, 2, 10), precondition=NONE)
    ours.tails = {READ}
    windows_s = {
        (geometry.width, workload): ours.measure(geometry, workload).runs[0].window_s
        for geometry in (RAID5X3, RAID5X4)
        for workload in (READ, WRITE)
    }
    assert windows_s == {(3, READ): 10, (3, WRITE): 5, (4, READ): 10, (4, WRITE): 5}


@pytest.mark.parametrize("rule", [NONE, PreconditionRule(100, 100)], ids=["measurement", "conditioning"])
def test_rhythm_that_keeps_a_window_from_being_steady_is_named(rig: Rig, rule: PreconditionRule) -> None:
    rig.series = [[1000] + [1300 if second % 20 < 10 else 700 for second in range(100)]]
    here = campaign(rig, precondition=rule, measure=MeasureRule(1, 100, 1, 2), steady=SteadyRule(window=10))
    with pytest.raises(InvalidMeasurement, match=r"repeats every 20\.?\d*"):
        here.measure(RAID5X3, WRITE)


def test_repeats_are_judged_together(rig: Rig) -> None:
    measured = campaign(rig, measure=MeasureRule(1, 5, 3, 2)).measure(RAID5X3, READ)
    assert len(measured.runs) == 3
    assert len(measured.round_iops()) == 15


@pytest.mark.parametrize("error", [InvalidMeasurement("I/O error"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_array_whose_fill_does_not_end_is_stopped(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def refuse(*_: object, **more: object) -> None:
        raise error

    monkeypatch.setattr(process, "run", refuse)
    here = campaign(rig)
    with pytest.raises(type(error)):
        here.array(RAID5X3)
    here.close()
    assert rig.did[-2:] == ["stop /dev/md100:3", "array_stopped"]
    assert count(rig, "stop") == 1


def test_nothing_is_erased_that_the_guard_refuses(rig: Rig) -> None:
    rig.refuses = DriveRefused("/dev/nvme0n1 is mounted")
    with pytest.raises(DriveRefused):
        campaign(rig).array(RAID5X3)
    assert rig.did == []


def test_lost_lease_ends_all_writing_also_of_steps_in_passing(rig: Rig) -> None:
    here = campaign(rig, {RAID5X3: [WRITE, READ], RAID5X4: [WRITE]})
    here.array(RAID5X3)
    rig.did.clear()
    rig.lease, rig.refuses = False, LeaseLost("the lease was lost")
    for geometry, workload in [(RAID5X4, WRITE), (RAID5X3, READ), (RAID5X3, WRITE)]:
        with pytest.raises(LeaseLost):
            here.measure(geometry, workload)
    assert [one for one in rig.did if one.startswith(("purge", "create", "fill", "fio", "fail"))] == []


def test_a_journal_that_cannot_be_written_ends_the_run(rig: Rig) -> None:
    rig.series = [STEADY, JournalError("evidence cannot be stored"), STEADY]
    here = campaign(rig, {RAID5X3: [WRITE, READ], RAID5X4: [WRITE]}, precondition=NONE)
    here.measure(RAID5X3, WRITE)
    with pytest.raises(JournalError):
        here.measure(RAID5X4, WRITE)
    assert (count(rig, "create"), count(rig, "measured"), here.setup.failures.failed) == (1, 1, {})


def test_a_sick_array_is_not_measured(rig: Rig) -> None:
    here = campaign(rig, precondition=NONE)
    here.array(RAID5X3)
    rig.sick = InvalidMeasurement("raid5x3 cannot be measured: degraded by 1 member")
    with pytest.raises(InvalidMeasurement, match="degraded"):
        here.measure(RAID5X3, READ)
    assert not count(rig, "fio")
