from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from support.builders import strategies
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator import simulated_surroundings

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings, Fill, MeasureRule, PreconditionRule, SteadyRule
from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignPlan, CampaignStep, StepKind
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio import acceptance, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import DriveRefused, InvalidMeasurement, Machine, MachineLost, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md import members as degraded
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import rebuild as rebuilding
from pytest_ssdqual.rig.measure import rounds, saturation
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import purge, zero
from pytest_ssdqual.rig.resume import readopt_array

RAID5X3, RAID5X4, RAID0X2 = Geometry(RaidLevel.RAID5, 3), Geometry(RaidLevel.RAID5, 4), Geometry(RaidLevel.RAID0, 2)
READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
STREAM = Workload("write", "128k", 8)
#: Rounds of one second each.
PROTOCOL = Protocol(
    "test",
    acceptance=False,
    fill=Fill(1, "128k"),
    precondition=PreconditionRule(5, 15),
    measure=MeasureRule(1, 5, 1, 2),
)
NONE = PreconditionRule(0, 15)
STEADY, FALLING = [1000] * 6, [4000, 3000, 2000, 1500, 1000, 700]


@dataclass
class Rig:
    """Everything below a campaign, and what it was asked for; a series that is asked for twice is the last one's."""

    drives: tuple[Drive, ...] = tuple(drive(number) for number in range(4))
    #: Of each measuring fio process, its IOPS by second, or what becomes of it.
    series: list[list[int] | RigError] = field(default_factory=list)
    lease: bool = True
    did: list[str] = field(default_factory=list)
    notes: list[tuple[str, dict[str, object]]] = field(default_factory=list)
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
        self.notes.append((kind, facts))

    @property
    def running(self) -> tuple[str, Workload]:
        """Array and workload of the fio process that was started last."""
        facts = next(facts for kind, facts in reversed(self.notes) if kind == "measuring")
        return str(facts["geometry"]), from_plain(Workload, facts["asked"])

    def keep(self, name: str, data: bytes) -> str:
        return name

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
        return {one.identity: {"method": "discard", "passed_over": []} for one in drives}

    def create(
        machine: Machine, geometry: Geometry, members: Sequence[Drive], settings: ArraySettings, *, path: str,
        uuid: str, zeroed: bool, data_offset_bytes: int | None = None, used_bytes: int | None = None,
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
        return SimpleNamespace(intervals=whole, seconds=len(numbers), parts=parts, of_target=(), reports=())

    def stop(machine: object, path: str, members: Sequence[str], uuid: str) -> tuple[str, ...]:
        rig.did.append(f"stop {path} of {len(members)}")
        return rig.pulled

    def fail(setup: Setup, array: Array, missing: int) -> Array:
        rig.did.append(f"fail {missing}")
        return replace(array, geometry=Geometry(array.geometry.level, array.geometry.width, missing))

    monkeypatch.setattr(purge, "purge", purged)
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
    setup = Setup(ScriptedMachine(), rig, protocol, rig, "m1", lambda what, seconds: None)  # type: ignore[arg-type]
    steps = [
        CampaignStep(StepKind.MEASURED, geometry, each)
        for geometry, workloads in (planned or {}).items()
        for each in workloads
    ]
    return Campaign(setup, CampaignPlan.of(steps, protocol))


def count(rig: Rig, what: str) -> int:
    return sum(one.startswith(what) for one in rig.did)


def test_the_way_of_one_measurement(rig: Rig) -> None:
    here = campaign(rig)
    measured = here.measure(RAID5X3, READ)
    here.close()
    assert rig.did == [
        "purge 3", "require_purged", "array_planned", "create raid5x3", "array_created", "fill", "filled",
        f"fio {WRITE}", "conditioned", f"fio {READ}", "steady", "measured", "stop /dev/md100 of 3", "array_stopped",
    ]  # fmt: skip
    assert measured.iops == pytest.approx(1000)
    assert rig.required == [rig.drives[:3]]
    (planned,) = [facts for kind, facts in rig.notes if kind == "array_planned"]
    assert rig.expected == [planned["uuid"]]


def test_bare_drives_are_looked_at_again_before_everything_that_writes_to_them(rig: Rig) -> None:
    here = campaign(rig)
    here.measure(Geometry.parse("drivex1"), READ)
    assert [one for one in rig.did if one.startswith(("purge", "fill", "fio"))] == [
        "purge 1", "fill", "filled", f"fio {WRITE}", f"fio {READ}",
    ]  # fmt: skip
    assert rig.required == [rig.drives[:1]] * 3
    rig.refuses = DriveRefused("it is mounted")
    with pytest.raises(DriveRefused):
        here.measure(Geometry.parse("drivex1"), WRITE)
    assert count(rig, f"fio {WRITE}") == 1


def test_an_array_with_a_member_that_kept_its_superblock_stays_on_the_books(rig: Rig) -> None:
    rig.pulled = ("/dev/nvme1n1",)
    here = campaign(rig)
    here.array(RAID5X3)
    here.close()
    kind, facts = rig.notes[-1]
    assert (kind, facts["not_erased"]) == ("array_left", ("/dev/nvme1n1",))


def test_what_is_measured_is_measured_once(rig: Rig) -> None:
    here = campaign(rig)
    assert here.measure(RAID5X3, READ) is here.measure(RAID5X3, READ)
    here.measure(RAID5X3, WRITE)
    assert (count(rig, "create"), count(rig, f"fio {READ}"), count(rig, "conditioned")) == (1, 1, 1)
    here.measure(RAID5X4, READ)
    here.measure(RAID5X3, READ)  # known, though its array is gone
    assert (count(rig, "create"), count(rig, f"fio {READ}")) == (2, 2)


def test_two_workloads_of_one_name_are_measured_both(rig: Rig) -> None:
    reads, writes = (Workload("randrw", "4k", 8, read_percent=share, name="oltp") for share in (70, 30))
    assert str(reads) == str(writes)
    here = campaign(rig, {RAID5X3: [reads, writes]})
    assert here.measure(RAID5X3, writes).workload == writes
    assert here.measure(RAID5X3, reads).workload == reads


def test_an_array_is_stopped_before_the_next_and_gets_the_drives_in_order(rig: Rig) -> None:
    here = campaign(rig)
    here.array(RAID5X4)
    here.array(RAID0X2)
    assert rig.did.index("stop /dev/md100 of 4") < rig.did.index("create raid0x2")
    assert rig.required == [rig.drives, rig.drives[:2]]
    planned = [facts["members"] for kind, facts in rig.notes if kind == "array_planned"]
    assert planned == [["S0", "S1", "S2", "S3"], ["S0", "S1"]]


def test_a_planned_array_is_written_down_with_the_uuid_it_will_have(rig: Rig) -> None:
    here = campaign(rig)
    array = here.array(RAID5X3)
    (planned,) = [facts for kind, facts in rig.notes if kind == "array_planned"]
    assert planned["uuid"] == array.uuid
    assert rig.did.index("array_planned") < rig.did.index("create raid5x3")


def test_a_bare_drive_is_an_array_without_md(rig: Rig) -> None:
    here = campaign(rig, fill=Fill(0, "128k"), precondition=NONE)
    assert here.array(Geometry(RaidLevel.DRIVE, 1)).path == "/dev/nvme0n1"
    here.measure(Geometry(RaidLevel.DRIVE, 1), READ)
    here.close()
    assert not count(rig, "create")
    assert not count(rig, "stop")


def test_each_class_of_workload_is_conditioned_once_per_array(rig: Rig) -> None:
    here = campaign(rig)
    first = here.steady(RAID5X3, READ)
    assert here.steady(RAID5X3, WRITE) is first
    here.steady(RAID5X3, STREAM)
    assert [one for one in rig.did if one.startswith("fio")] == [f"fio {WRITE}", f"fio {STREAM}"]
    here.steady(RAID5X4, READ)
    here.steady(RAID5X3, READ)
    assert count(rig, f"fio {WRITE}") == 3


def test_the_writes_of_one_class_undo_the_state_of_the_other(rig: Rig) -> None:
    here = campaign(rig)
    here.measure(RAID5X3, READ)
    here.measure(RAID5X3, STREAM)
    here.measure(Geometry.parse("raid5x3-1failed"), READ)
    writes = [facts["workload"] for kind, facts in rig.notes if kind == "conditioned"]
    assert writes == [str(WRITE), str(STREAM), str(WRITE)]
    assert count(rig, "create") == 1  # with all its members still there


def test_conditioning_goes_on_until_it_is_steady(rig: Rig) -> None:
    rig.series = [FALLING, FALLING, STEADY]
    settled = campaign(rig).steady(RAID5X3, READ)
    assert settled is not None
    assert settled.reached
    (noted,) = [facts for kind, facts in rig.notes if kind == "conditioned"]
    assert noted["seconds"] == 15
    assert len(noted["round_iops"]) == 15  # type: ignore[arg-type]


def test_steps_shorter_than_the_window_are_put_together(rig: Rig) -> None:
    settled = campaign(rig, precondition=PreconditionRule(2, 15)).steady(RAID5X3, READ)
    assert settled is not None
    assert settled.reached
    assert count(rig, f"fio {WRITE}") == 3


def test_an_array_that_does_not_settle_is_not_conditioned_again(rig: Rig) -> None:
    rig.series = [FALLING]
    here = campaign(rig)
    with pytest.raises(InvalidMeasurement, match=f"^raid5x3 did not settle within 15 s of {WRITE}: not steady"):
        here.measure(RAID5X3, READ)
    assert count(rig, "fio") == 3
    for again in (lambda: here.measure(RAID5X3, WRITE), lambda: here.steady(RAID5X3, READ)):
        with pytest.raises(InvalidMeasurement, match="did not settle"):
            again()
    assert count(rig, "fio") == 3


def test_one_killed_worker_does_not_cost_what_follows_the_preparation(rig: Rig) -> None:
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


def test_a_measurement_is_tried_until_its_window_is_steady(rig: Rig) -> None:
    rig.series = [FALLING, STEADY]
    here = campaign(rig, precondition=NONE)
    assert here.measure(RAID5X3, READ).iops == pytest.approx(1000)
    assert count(rig, f"fio {READ}") == 2


def test_what_never_is_steady_is_no_measurement(rig: Rig) -> None:
    rig.series = [FALLING]
    here = campaign(rig, precondition=NONE)
    with pytest.raises(InvalidMeasurement, match=r"^randread_4k_qd8 on raid5x3 is not steady .*after 2 attempts"):
        here.measure(RAID5X3, READ)
    assert count(rig, f"fio {READ}") == 2
    assert not count(rig, "measured")
    with pytest.raises(InvalidMeasurement, match="after 2 attempts"):
        here.measure(RAID5X3, READ)
    assert count(rig, f"fio {READ}") == 2


def test_what_is_not_believable_is_no_measurement(rig: Rig) -> None:
    rig.series = [[20] * 6]  # steady, but a handful of I/Os
    with pytest.raises(InvalidMeasurement, match="is not valid: only 100 I/Os in the window"):
        campaign(rig, precondition=NONE).measure(RAID5X3, READ)


def test_workloads_whose_tails_are_asked_for_have_longer_windows_on_every_array(rig: Rig) -> None:
    rig.series = [[1000] * 11]
    ours = campaign(rig, measure=MeasureRule(1, 5, 1, 2, 10), precondition=NONE)
    ours.tails = {READ}
    found = {
        (geometry.width, workload): ours.measure(geometry, workload).runs[0].window_s
        for geometry in (RAID5X3, RAID5X4)
        for workload in (READ, WRITE)
    }
    assert found == {(3, READ): 10, (3, WRITE): 5, (4, READ): 10, (4, WRITE): 5}


def test_a_rhythm_is_named_where_it_keeps_a_window_from_being_steady(rig: Rig) -> None:
    rig.series = [[1000] + [1300 if second % 20 < 10 else 700 for second in range(100)]]
    long = MeasureRule(1, 100, 1, 2)
    tens = SteadyRule(window=10)
    with pytest.raises(InvalidMeasurement, match=r"is not steady at 1,000 IOPS .*; it repeats every 20\.?\d* s \(±"):
        campaign(rig, precondition=NONE, measure=long, steady=tens).measure(RAID5X3, READ)
    with pytest.raises(InvalidMeasurement, match=r"did not settle within 100 s .*; it repeats every 20\.?\d* s \(±"):
        campaign(rig, precondition=PreconditionRule(100, 100), measure=long, steady=tens).measure(RAID5X3, WRITE)


def test_repeats_are_judged_together(rig: Rig) -> None:
    measured = campaign(rig, measure=MeasureRule(1, 5, 3, 2)).measure(RAID5X3, READ)
    assert len(measured.runs) == 3
    assert len(measured.round_iops()) == 15


def test_a_failure_is_told_again_and_not_repeated(rig: Rig) -> None:
    rig.series = [RigError("fio refused")]
    here = campaign(rig, precondition=NONE)
    for _ in range(3):
        with pytest.raises(RigError, match=r"^fio refused$"):
            here.measure(RAID5X3, READ)
    assert count(rig, "fio") == 1
    rig.series = []
    assert here.measure(RAID5X3, WRITE)  # another measurement is another matter


def test_an_array_that_cannot_be_built_is_not_tried_again(rig: Rig) -> None:
    rig.sick = RigError("mdadm: no room")
    here = campaign(rig)
    with pytest.raises(RigError, match=r"^mdadm: no room$"):
        here.array(RAID5X3)
    with pytest.raises(RigError, match=r"^raid5x3 was not built: mdadm: no room$"):
        here.measure(RAID5X3, READ)
    assert count(rig, "create") == 1
    assert rig.did[-2:] == ["stop /dev/md100 of 3", "array_stopped"]
    rig.sick = None
    assert here.array(RAID5X4)


def test_an_array_whose_fill_fails_is_stopped(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **more: object) -> None:
        raise InvalidMeasurement("I/O error")

    monkeypatch.setattr(acceptance, "accept_totals", refuse)
    here = campaign(rig)
    with pytest.raises(InvalidMeasurement, match="I/O error"):
        here.array(RAID5X3)
    assert rig.did[-2:] == ["stop /dev/md100 of 3", "array_stopped"]
    here.close()
    assert count(rig, "stop") == 1


def test_nothing_is_erased_that_the_guard_refuses(rig: Rig) -> None:
    rig.refuses = DriveRefused("/dev/nvme0n1 is mounted")
    with pytest.raises(DriveRefused):
        campaign(rig).array(RAID5X3)
    assert rig.did == []


def test_without_the_lease_nothing_is_written(rig: Rig) -> None:
    here = campaign(rig)
    here.array(RAID5X3)
    rig.lease = False
    with pytest.raises(LeaseLost):
        here.measure(RAID5X3, READ)
    assert not count(rig, "fio")


def test_lost_lease_ends_all_writing_also_of_steps_in_passing(rig: Rig) -> None:
    here = campaign(rig, {RAID5X3: [WRITE, READ], RAID5X4: [WRITE]})
    here.array(RAID5X3)
    rig.did.clear()
    rig.lease, rig.refuses = False, LeaseLost("the lease was lost")
    for geometry, workload in [(RAID5X4, WRITE), (RAID5X3, READ), (RAID5X3, WRITE)]:
        with pytest.raises(RigError, match="the lease was lost"):
            here.measure(geometry, workload)
    assert [one for one in rig.did if one.startswith(("purge", "create", "fill", "fio", "fail"))] == []


def test_a_sick_array_is_not_measured(rig: Rig) -> None:
    here = campaign(rig, precondition=NONE)
    here.array(RAID5X3)
    rig.sick = InvalidMeasurement("raid5x3 cannot be measured: degraded by 1 member")
    with pytest.raises(InvalidMeasurement, match="degraded"):
        here.measure(RAID5X3, READ)
    assert not count(rig, "fio")


def test_a_lost_machine_is_not_kept_as_the_outcome_of_a_measurement(rig: Rig) -> None:
    rig.series = [MachineLost("gone"), STEADY]
    here = campaign(rig, precondition=NONE)
    with pytest.raises(MachineLost):
        here.measure(RAID5X3, READ)
    assert here.measure(RAID5X3, READ)


def test_an_interrupt_leaves_the_array_to_be_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "run", interrupt)
    here = campaign(rig)
    with pytest.raises(KeyboardInterrupt):
        here.array(RAID5X3)
    here.close()
    assert rig.did[-2:] == ["stop /dev/md100 of 3", "array_stopped"]


def built(rig: Rig) -> list[str]:
    """What was built and what was failed, in order."""
    return [one for one in rig.did if one.startswith(("create", "fail"))]


def test_a_degraded_array_is_conditioned_with_all_its_members_and_then_loses_them(rig: Rig) -> None:
    here = campaign(rig)
    here.measure(Geometry.parse("raid6x4-1failed"), READ)
    assert [one for one in rig.did if one.startswith(("create", "fill", "fio", "fail"))] == [
        "create raid6x4", "fill", "filled", f"fio {WRITE}", "fail 1", f"fio {READ}"
    ]  # fmt: skip
    here.measure(Geometry.parse("raid6x4-2failed"), READ)
    assert built(rig) == ["create raid6x4", "fail 1", "fail 2"]
    assert count(rig, "conditioned") == 1
    here.measure(Geometry.parse("raid6x4"), WRITE)  # members do not come back
    assert built(rig)[3:] == ["create raid6x4"]
    assert count(rig, "conditioned") == 2


def test_a_class_that_the_array_was_not_conditioned_for_needs_it_whole(rig: Rig) -> None:
    here = campaign(rig)
    here.measure(Geometry.parse("raid5x3-1failed"), READ)
    here.measure(Geometry.parse("raid5x3-1failed"), STREAM)
    assert built(rig) == ["create raid5x3", "fail 1"] * 2


def test_a_rebuild_ends_the_use_of_an_array(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def rebuild(setup: Setup, array: Array, workload: Workload) -> Rebuild:
        rig.did.append(f"rebuild {array.geometry}")
        foreground = Measured((strategies.run(STEADY, geometry="raid5x3-1rebuilding", workload=workload),))
        return Rebuild(Geometry.parse("raid5x3-1rebuilding"), 60, 1 << 28, foreground, 0)

    monkeypatch.setattr(rebuilding, "rebuild", rebuild)
    here, rebuilt = campaign(rig), Geometry.parse("raid5x3-1rebuilding")
    assert here.rebuild(rebuilt, READ) is here.rebuild(rebuilt, READ)
    assert built(rig) == ["create raid5x3", "fail 1"]
    here.measure(Geometry.parse("raid5x3-1failed"), READ)
    assert built(rig) == ["create raid5x3", "fail 1"] * 2
    assert count(rig, "rebuild") == 1


def test_a_loop_has_its_own_purge_and_fill(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Rounds("loop", (WRITE,), (Tracked(WRITE, "steady_iops"),), fill_bs="1m", fill_passes=2)
    monkeypatch.setattr(rounds, "run", lambda setup, array, loop: RoundsResult(array.geometry, loop, ()))
    here = campaign(rig)
    here.measure(RAID5X3, READ)
    assert here.loop(RAID5X3, loop) is here.loop(RAID5X3, loop)
    here.measure(RAID5X3, WRITE)
    assert count(rig, "purge") == 3
    fills = [(facts["passes"], facts["bs"]) for kind, facts in rig.notes if kind == "filled"]
    assert fills == [(1, "128k"), (2, "1m"), (1, "128k")]


def test_a_saturation_begins_with_the_purge(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saturation, "saturate", lambda setup, array, workload: rig.did.append("saturate"))
    here = campaign(rig)
    here.array(RAID5X3)
    rig.did.clear()
    here.saturate(RAID5X3, WRITE)
    assert [one for one in rig.did if one in ("purge 3", "fill", "saturate")] == ["purge 3", "saturate"]


def test_all_that_is_planned_is_measured_before_an_array_is_taken_down(rig: Rig) -> None:
    failed = Geometry.parse("raid5x3-1failed")
    here = campaign(rig, {RAID5X3: [WRITE, READ], failed: [READ], RAID5X4: [WRITE]})
    [here.measure(each, WRITE) for each in (RAID5X3, RAID5X4)]
    assert built(rig) == ["create raid5x3", "fail 1", "create raid5x4"]
    measured = [(facts["geometry"], facts["workload"]) for kind, facts in rig.notes if kind == "measured"]
    assert measured == [
        ("raid5x3", str(WRITE)), ("raid5x3", str(READ)), ("raid5x3-1failed", str(READ)), ("raid5x4", str(WRITE)),
    ]  # fmt: skip
    here.measure(failed, READ)
    here.measure(RAID5X3, READ)
    assert count(rig, "create") == 2


def test_all_that_is_planned_is_measured_before_a_member_is_lost(rig: Rig) -> None:
    here = campaign(rig, {RAID5X3: [WRITE]})
    here.measure(Geometry.parse("raid5x3-1failed"), READ)
    here.measure(RAID5X3, WRITE)
    assert built(rig) == ["create raid5x3", "fail 1"]


def test_what_cannot_be_measured_any_more_is_not_a_reason_to_build(rig: Rig) -> None:
    failed = Geometry.parse("raid5x3-1failed")
    here = campaign(rig, {failed: [READ, STREAM]})
    here.measure(failed, READ)
    here.array(RAID5X4)
    assert built(rig) == ["create raid5x3", "fail 1", "create raid5x4"]


def test_what_fails_in_passing_is_told_to_the_test_that_asks_for_it(rig: Rig) -> None:
    rig.series = [STEADY, RigError("fio refused"), STEADY]
    here = campaign(rig, {RAID5X3: [WRITE, READ]}, precondition=NONE)
    [here.measure(each, WRITE) for each in (RAID5X3, RAID5X4)]
    with pytest.raises(RigError, match=r"^fio refused$"):
        here.measure(RAID5X3, READ)
    assert count(rig, "create") == 2


def test_an_error_that_ends_the_run_ends_it_in_passing_too(rig: Rig) -> None:
    rig.series = [STEADY, JournalError("evidence cannot be stored"), STEADY]
    here = campaign(rig, {RAID5X3: [WRITE, READ], RAID5X4: [WRITE]}, precondition=NONE)
    here.measure(RAID5X3, WRITE)
    with pytest.raises(JournalError):
        here.measure(RAID5X4, WRITE)
    assert count(rig, "create") == 1


def test_a_rebuild_is_not_done_in_passing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes hours, and its test may be skipped."""
    monkeypatch.setattr(rebuilding, "rebuild", lambda *_: pytest.fail("rebuilt"))
    here = campaign(rig)
    rebuilds = CampaignStep(StepKind.REBUILD, Geometry.parse("raid5x3-1failed"), WRITE)
    steps = [*(CampaignStep(StepKind.MEASURED, each, WRITE) for each in (RAID5X3, RAID5X4)), rebuilds]
    here.plan = CampaignPlan.of(sorted(steps, key=lambda step: step.geometry.width), here.setup.protocol)
    [here.measure(each, WRITE) for each in (RAID5X3, RAID5X4)]
    assert count(rig, "create") == 2
