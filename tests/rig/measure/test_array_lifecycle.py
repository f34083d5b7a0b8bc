"""How an array comes by its name; what else is done to build one is in test_campaign.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.drives import named
from support.builders.measuring import setup_of
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings, Fill, PartialFill
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import FRESH
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import jobs
from pytest_ssdqual.rig.fio.jobs import JobEnd, JobTarget
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure
from pytest_ssdqual.rig.purge import purge, zero
from pytest_ssdqual.rig.purge.purge import Purged

RAID1 = Geometry.parse("raid1x2")
DRIVES = tuple(named(f"sd{letter}", letter) for letter in "bcd")


THEIRS = "00000000:00000000:00000000:00000001"


@dataclass
class Hall:
    """A machine on which others build arrays, too; logbook and hold of one who does."""

    #: Names that others take between the look and mdadm, one at each attempt.
    others: list[str] = field(default_factory=list)
    arrays: dict[str, str] = field(default_factory=dict)
    planned: list[tuple[object, object, object]] = field(default_factory=list)
    did: list[str] = field(default_factory=list)
    #: What mdadm says otherwise.
    refuses: bool = False

    def note(self, kind: str, **facts: object) -> None:
        self.did.append(kind)
        if kind == "array_planned":
            self.planned.append((facts["uuid"], facts["device"], facts["members"]))

    def keep(self, name: str, data: bytes) -> str:
        return name

    def expect(self, uuid: str) -> None:
        self.did.append("expect")

    def create(
        self, machine: object, geometry: Geometry, members: tuple[Drive, ...], settings: object, *, path: str,
        uuid: str, zeroed: bool, **room: object,
    ) -> Array:  # fmt: skip
        if self.others:
            self.arrays[self.others.pop(0)] = THEIRS
        if path in self.arrays or self.refuses:
            raise CommandFailed("mdadm: no", completed(["mdadm"], status=2))
        self.arrays[path] = uuid
        return Array(geometry, path, tuple(members), uuid, 1 << 28, "zeroed")

    def stop(self, machine: object, path: str, members: object, uuid: str) -> tuple[str, ...]:
        if self.arrays.get(path, uuid) != uuid:
            raise RigError(f"{path} is no longer this run's array")
        self.did.append(f"stop {path}")
        return ()

    def setup(self) -> Setup:
        def detail(argv: tuple[str, ...]) -> Completed:
            uuid = self.arrays.get(argv[-1])
            return completed(argv, f"MD_LEVEL=raid1\nMD_UUID={uuid}\n") if uuid else completed(argv, status=1)

        machine = ScriptedMachine().on("mdadm", "--detail", "--export", answer=detail)
        machine.on("cat", answer=completed(["cat"], status=1))

        def used(argv: tuple[str, ...]) -> Completed:
            return completed(argv, "\n".join(path[5:] for path in self.arrays))

        machine.on("sh", "-c", mdadm.USED_NUMBERS, answer=used).on("ls", answer=used)
        return setup_of(self, None, machine=machine, held=self)


@pytest.fixture
def hall(monkeypatch: pytest.MonkeyPatch) -> Hall:
    hall = Hall()
    monkeypatch.setattr(mdadm, "create", hall.create)
    monkeypatch.setattr(mdadm, "stop", hall.stop)
    monkeypatch.setattr(mdadm, "final_objections", lambda machine, path, missing: ())
    return hall


@pytest.fixture
def built(hall: Hall) -> Callable[[], Array]:
    return lambda: array_lifecycle.create(
        hall.setup(), RAID1, DRIVES[:2], ArraySettings(), zeroed=True, later=DRIVES[2:]
    )


def test_array_is_recorded_with_its_drives_before_it_exists(hall: Hall, built: Callable[[], Array]) -> None:
    array = built()
    assert hall.planned == [(array.uuid, "/dev/md100", [drive.identity for drive in DRIVES])]
    assert hall.did == ["expect", "array_planned"]


def test_name_that_another_bay_takes_is_left_to_it(hall: Hall, built: Callable[[], Array]) -> None:
    hall.others = ["/dev/md100", "/dev/md101"]
    array = built()
    assert array.path == "/dev/md102"
    assert [(uuid, path) for uuid, path, _ in hall.planned] == [
        (array.uuid, f"/dev/md10{number}") for number in range(3)
    ]
    assert hall.did == ["expect"] + ["array_planned"] * 3
    assert hall.arrays == {"/dev/md100": THEIRS, "/dev/md101": THEIRS, "/dev/md102": array.uuid}


def test_names_are_not_tried_for_ever(hall: Hall, built: Callable[[], Array]) -> None:
    hall.others = [f"/dev/md{number}" for number in range(100, 200)]
    with pytest.raises(CommandFailed):
        built()
    assert len(hall.planned) == array_lifecycle.MOST_NAMES
    assert not [each for each in hall.did if each.startswith("stop")]


def test_what_fails_for_another_reason_is_taken_down(hall: Hall, built: Callable[[], Array]) -> None:
    hall.refuses = True
    with pytest.raises(CommandFailed):
        built()
    assert hall.did == ["expect", "array_planned", "stop /dev/md100", "array_stopped"]


def test_an_array_that_cannot_be_stopped_is_recorded(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[tuple[str, object]] = []
    monkeypatch.setattr(hall, "note", lambda kind, **facts: noted.append((kind, facts["device"])))
    hall.arrays["/dev/md100"] = THEIRS
    with pytest.raises(RigError):
        array_lifecycle.take_down(hall.setup(), "/dev/md100", DRIVES[:2], "0:0:0:2")
    assert noted == [("array_left", "/dev/md100")]


@pytest.mark.parametrize(
    ("name", "did"),
    [
        ("drivex2", ["require", "purge", "require_purged", "label", "array_created"]),
        ("raid0x2", ["require", "purge", "require_purged", "label", "create", "array_created"]),
        ("raid1x2", ["require", "purge", "require_purged", "zero", "label", "create", "array_created"]),
    ],
)
def test_drives_are_labelled_between_purge_and_build(
    monkeypatch: pytest.MonkeyPatch, name: str, did: list[str]
) -> None:
    """Zeroing would erase a label, and md's superblocks come behind it."""
    order: list[str] = []

    def doing(what: str, answer: object = None) -> Callable[..., object]:
        def done(*_: object, **more: object) -> object:
            order.append(what)
            return answer

        return done

    array = Array(Geometry.parse(name), "/dev/md100", DRIVES[:2], "", 1 << 28, "zeroed")
    monkeypatch.setattr(drive_failure, "reading_before", lambda setup, array, is_measured=True: None)
    monkeypatch.setattr(array_lifecycle, "sample", lambda machine, drive: ())
    monkeypatch.setattr(purge, "purge", doing("purge", {drive.identity: Purged("discard") for drive in DRIVES}))
    monkeypatch.setattr(zero, "zero", doing("zero", True))
    monkeypatch.setattr(label, "write_drives", doing("label"))
    monkeypatch.setattr(array_lifecycle, "create", doing("create", array))
    monkeypatch.setattr(mdadm, "data_offset", lambda machine, array: 1 << 20)
    held = SimpleNamespace(
        drives=DRIVES, require=doing("require"), require_purged=doing("require_purged"), leased=ScriptedMachine()
    )
    protocol = SimpleNamespace(purge="discard", array=ArraySettings())
    book = SimpleNamespace(note=lambda kind, **facts: order.append(kind) if kind == "array_created" else None)
    setup = setup_of(book, protocol, machine=ScriptedMachine(), held=held)
    array_lifecycle.build(setup, Geometry.parse(name), FRESH)
    assert order == did


@given(st.integers(1 << 15, 1 << 40), st.integers(1, 99), st.sampled_from(["4k", "16k"]))
def test_a_part_is_filled_exactly_as_far_as_it_is_used(sectors: int, percent: int, bs: str) -> None:
    """No byte behind it, or the spare would be none, and no byte that conditioning or the workload uses is left out."""
    target = JobTarget("/dev/sdx", 512 * sectors, 1 << 20)
    part = array_lifecycle.filled_part(target, PartialFill(1, "128k", percent))
    workload = Workload("randwrite", bs, 8, region_percent=percent)
    ((_, options),) = jobs.streams(workload, target, 1, JobEnd(10))
    used = next(int(option.removeprefix("--size=")) for option in options if option.startswith("--size="))
    assert part.begin_bytes == target.begin_bytes
    assert 0 <= part.size_bytes - used < workload.smallest_bytes
    assert part.size_bytes <= target.size_bytes * percent / 100
    assert array_lifecycle.filled_part(target, Fill(1, "128k")) == target
