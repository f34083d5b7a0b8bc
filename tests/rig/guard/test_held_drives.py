from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.consents import all_risks
from support.fakes.scripted import ScriptedMachine
from support.simulator.simulated_content import Contents, labelled
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.rig.drives import survey
from pytest_ssdqual.rig.drives.topology import Drive, Signature, Source, plain_uuid
from pytest_ssdqual.rig.guard import held_drives, label, sampling
from pytest_ssdqual.rig.guard.content import examined
from pytest_ssdqual.rig.guard.held_drives import (
    HeldDrives,
    clear_leftovers,
    examined_leftovers,
    mdadm_spelling,
    stoppable,
)
from pytest_ssdqual.rig.guard.lease import LeaseLost, Terms
from pytest_ssdqual.rig.machine.machine import DriveRefused, DriveSilent, LeaseTaken, Machine
from pytest_ssdqual.rig.md import mdadm

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"


@dataclass
class Leases:
    """Instead of ``rig.guard.lease``: who holds what, and whether it lasts."""

    taken: frozenset[str] = frozenset()
    lost: bool = False
    events: list[str] = field(default_factory=list)

    def __call__(self, machine: Machine, identities: Iterable[str], terms: Terms | None = None) -> Leases:
        identities = list(identities)
        if self.taken & set(identities):
            raise LeaseTaken("another run holds drives")
        self.events.append(f"take {' '.join(identities)}")
        return self

    def require(self) -> None:
        if self.lost:
            raise LeaseLost("the lease was lost")

    def release(self) -> None:
        self.events.append("release")

    def __enter__(self) -> Leases:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> Leases:
    leases = Leases()
    monkeypatch.setattr(held_drives, "Lease", leases)

    def stop(machine: object, path: str, members: list[str], uuid: str) -> tuple[str, ...]:
        leases.events.append(f"stop {path} {members}")
        return ()

    monkeypatch.setattr(mdadm, "stop", stop)
    return leases


def disks() -> list[Device]:
    return [Device(f"sd{letter}", "disk", f"8:{16 * n}", serial=f"S{n}") for n, letter in enumerate("bcd", 1)]


#: An array that lost a member when nobody looked.
LOOK = "/sys/block/md100/md/array_state:clean\n/sys/block/md100/md/degraded:1\n"


def machine_of(world: World) -> ScriptedMachine:
    """A machine that shows the world as it is when it is asked."""
    here = ScriptedMachine().on("lsblk", answer=lambda argv: world.lsblk()).on("grep", answer=LOOK)
    return here.on("sh", "-c", survey.FACTS, answer=lambda argv: world.facts(*argv[6:]))


def drives_of(world: World) -> list[Drive]:
    names = [disk.kname for disk in world.disks]
    topology = survey.survey(machine_of(world), names)
    return [topology.drive(name) for name in names]


def test_held_drives_are_leased_and_looked_at_again(leases: Leases) -> None:
    world = World(disks())
    here = machine_of(world)
    held = HeldDrives(here, drives_of(world))
    assert leases.events == ["take s1 s2 s3"]
    assert here.asked[0][0] == "lsblk"
    held.release()
    assert leases.events[-1] == "release"


def test_drive_that_does_not_answer_is_neither_read_nor_given_up(leases: Leases) -> None:
    world = World(disks())
    here, drives = machine_of(world), drives_of(world)
    held = HeldDrives(here, drives)
    world.disks[1].use, asked = "silent", len(here.asked)
    with pytest.raises(DriveSilent, match="does not answer"):
        held.require(drives)
    sampled = [path for argv in here.asked[asked:] if argv[2:3] == (sampling.SCRIPT,) for path in argv]
    assert "/dev/sdb" in sampled
    assert world.disks[1].path not in sampled
    world.disks[1].use = None
    held.require(drives)
    world.disks[0].use, world.disks[1].use = "writer", "silent"
    with pytest.raises(DriveRefused) as refused:
        held.require(drives)
    assert not isinstance(refused.value, DriveSilent)


def test_drives_that_are_taken_are_not_held(leases: Leases) -> None:
    leases.taken = frozenset({"s2"})
    with pytest.raises(LeaseTaken):
        HeldDrives(machine_of(world := World(disks())), drives_of(world))


def test_a_drive_put_to_use_in_between_frees_the_lease_again(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    world.disks[1].mountpoint = "/srv"
    with pytest.raises(DriveRefused, match=r"/dev/sdc .* is mounted at /srv"):
        HeldDrives(machine_of(world), drives)
    assert leases.events == ["take s1 s2 s3", "release"]


def test_a_foreign_drive_is_refused_before_anything_is_asked(leases: Leases) -> None:
    world = World(disks())
    mine, other = drives_of(world)[:2], drives_of(world)[2]
    held = HeldDrives(here := machine_of(world), mine)
    here.asked.clear()
    with pytest.raises(DriveRefused, match=r"^not among the drives of this run: /dev/sdd \(ACME SSD 9, serial S3\)$"):
        held.require([mine[0], other])
    with pytest.raises(DriveRefused, match="not among the drives of this run"):
        held.require([replace(mine[0], serial="another one at this path")])
    assert here.asked == []


def test_every_step_looks_at_its_drives_and_at_the_lease(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    held.require(drives[:1])
    world.disks[0].use = "swap"
    with pytest.raises(DriveRefused, match="is swap space"):
        held.require(drives[:1])
    held.require(drives[1:])
    leases.lost = True
    for look in (held.require_lease, held.require_lease_alone, lambda: held.require(drives[1:])):
        with pytest.raises(LeaseLost):
            look()


def test_source_that_goes_blind_during_the_run_refuses_the_next_step(
    leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(disks())
    drives = drives_of(world)
    held, accepting = (
        HeldDrives(machine_of(world), drives),
        HeldDrives(machine_of(world), drives, unchecked={Source.EXPORTS}),
    )
    facts = World.facts
    monkeypatch.setattr(World, "facts", lambda self, *nodes: f"blind\0exports\0unmounted\0{facts(self, *nodes)}")
    with pytest.raises(DriveRefused, match=r"whether the kernel exports a drive \(unmounted\)"):
        held.require(drives)
    accepting.require(drives)


def test_after_a_lost_connection_the_drives_are_looked_at_before_anything_goes_on(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    machine = machine_of(world)
    held = HeldDrives(machine, drives)
    array_of(*world.disks)  # in use by now, by ourselves
    machine.generation = 1
    held.require_lease()
    asked = len(machine.asked)
    held.require_lease()
    assert len(machine.asked) == asked
    machine.generation = 2
    world.disks[1].serial = "another one"
    for _ in range(2):
        with pytest.raises(
            DriveRefused, match=r"^another drive is in its place since the connection was lost: /dev/sdc .*S2"
        ):
            held.require_lease()


def test_after_a_lost_connection_what_smartctl_reported_is_no_difference(leases: Leases) -> None:
    world = World(disks())
    drives = [replace(drive, firmware="540500WD", smart_type="sat") for drive in drives_of(world)]
    machine = machine_of(world)
    held = HeldDrives(machine, drives)
    machine.generation = 1
    held.require_lease()
    held.require([replace(drives[0], firmware=None)])
    # Nor is a queue depth that the kernel changed under load.
    HeldDrives(machine, [replace(drive, queue_limit=253) for drive in drives])._require_same()
    machine.generation = 2
    with pytest.raises(DriveRefused, match="another drive is in its place"):
        HeldDrives(machine, [replace(drives[0], revision="00WD")])._require_same()


def test_after_a_lost_connection_a_drive_that_turned_read_only_is_no_other_drive(leases: Leases) -> None:
    world = World(disks())
    machine = machine_of(world)
    held = HeldDrives(machine, drives_of(world))
    machine.generation = 1
    world.disks[1].read_only = True
    with pytest.raises(DriveRefused, match=r"^/dev/sdc .*S2\) turned read-only since the connection was lost$"):
        held.require_lease()
    held.require_lease_alone()
    world.disks[2].serial = "another one"
    with pytest.raises(DriveRefused, match=r"^another drive .*: /dev/sdd .*S3\); /dev/sdc .*S2\) turned read-only"):
        held.require_lease()


@pytest.mark.parametrize(
    ("name", "value", "is_other"),
    [
        ("rotational", True, False),  # a rule of udev may set it late
        ("queue_depth", 1, False),
        ("serial", "S9", True),
        ("wwn", "0x5000c500a1b20001", True),
        ("model", "ACME SSD 8", True),
        ("size", 480_103_981_568, True),
        ("logical_block", 4096, True),
        ("transport", "usb", True),
    ],
)
def test_after_a_lost_connection_identity_decides(leases: Leases, name: str, value: object, is_other: bool) -> None:
    world = World(disks())
    held = HeldDrives(machine_of(world), drives_of(world))
    setattr(world.disks[1], name, value)
    with pytest.raises(DriveRefused, match="another drive") if is_other else nullcontext():
        held._require_same()


def test_after_a_lost_connection_another_name_in_sysfs_is_another_drive(leases: Leases) -> None:
    """udev did not handle the events, so lsblk prints the names of the drive that was there before."""
    disk, wwid = Device("sdb", "disk", "8:16", serial="S1", wwn="0x5000c500a1b20001"), ["t10.ATA S1"]
    world = World([disk])

    def facts(argv: tuple[str, ...]) -> str:
        return f"wwid\0sdb\0{wwid[0]}\0{world.facts(*argv[6:])}"

    machine = machine_of(world).on("sh", "-c", survey.FACTS, answer=facts)
    held = HeldDrives(machine, [survey.survey(machine, ["sdb"]).drive("sdb")])
    held._require_same()
    wwid[0] = "t10.ATA S2"
    with pytest.raises(DriveRefused, match=r"^another drive is in its place since the connection was lost: /dev/sdb"):
        held._require_same()
    with pytest.raises(DriveRefused, match=r"is called t10\.ata_s2, which was no name of the checked drive"):
        held.require(held.drives)


def test_after_a_lost_connection_a_link_of_unknown_speed_is_no_difference(leases: Leases) -> None:
    world = World(disks())
    HeldDrives(
        machine_of(world), [replace(each, max_link="16.0 GT/s PCIe") for each in drives_of(world)]
    )._require_same()


def test_after_a_lost_connection_a_drive_that_is_gone_does_not_stop_the_others(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    machine = machine_of(world)
    held = HeldDrives(machine, drives)
    del world.disks[1]
    machine.generation = 1
    held.require_lease()
    held.require([drives[0], drives[2]])
    with pytest.raises(DriveRefused, match=r"^/dev/sdc .*S2\): is gone\.$"):
        held.require(drives)


def test_after_a_lost_connection_a_dead_drive_does_not_stop_the_others(leases: Leases) -> None:
    """The kernel sets the capacity of an NVMe drive whose controller is dead to 0 before it removes the drive."""
    world = World(disks())
    drives = drives_of(world)
    machine = machine_of(world)
    held = HeldDrives(machine, drives)
    world.disks[1].size = 0
    machine.generation = 1
    held.require_lease()
    held.require([drives[0], drives[2]])
    with pytest.raises(DriveRefused, match=r"^/dev/sdc .*S2\): .*has no capacity"):
        held.require(drives)


@pytest.mark.parametrize("gone", [1, 3])
def test_after_a_restart_a_drive_that_is_gone_does_not_stop_the_others(leases: Leases, gone: int) -> None:
    world = World(disks())
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    del world.disks[3 - gone :]
    held.hold_again()
    held.require(drives[: 3 - gone])
    with pytest.raises(DriveRefused, match=r"^/dev/sdd .*S3\): is gone\.$"):
        held.require(drives[2:])


def test_after_a_restart_the_first_step_comes_under_the_lease(leases: Leases) -> None:
    held = HeldDrives(machine_of(world := World(disks())), drives_of(world))
    held.hold_again(lambda: leases.events.append("first"))
    assert leases.events == ["take s1 s2 s3", "take s1 s2 s3", "first"]
    leases.taken = frozenset({"s2"})
    with pytest.raises(LeaseTaken):
        held.hold_again(lambda: leases.events.append("not first"))
    assert "not first" not in leases.events


def test_after_a_restart_without_a_new_lease_the_former_one_does_not_count(leases: Leases) -> None:
    """The controller takes a while to notice that the former one ended, and another run may have the drives by then."""
    held = HeldDrives(machine_of(world := World(disks())), drives_of(world))
    leases.taken = frozenset({"s2"})
    with pytest.raises(LeaseTaken):
        held.hold_again()
    with pytest.raises(LeaseLost, match=r"^the lease on scripted ended when the machine restarted$"):
        held.require_lease()
    held.release()
    leases.taken = frozenset()
    world.disks[0].use = "swap"
    with pytest.raises(DriveRefused, match="is swap space"):
        held.hold_again()
    with pytest.raises(LeaseLost):
        held.require_lease()


def test_after_a_restart_drives_are_leased_anew_and_looked_at(leases: Leases) -> None:
    world = World(disks())
    held = HeldDrives(machine_of(world), drives_of(world))
    held.hold_again()
    assert leases.events == ["take s1 s2 s3", "take s1 s2 s3"]
    world.disks[0].use = "swap"
    with pytest.raises(DriveRefused, match="is swap space"):
        held.hold_again()
    assert leases.events[2:] == ["take s1 s2 s3", "release"]


def seen(world: World, kname: str, signature: str) -> ScriptedMachine:
    """The machine, where one drive carries a signature now."""
    line = f"signature\0/dev/{kname}\0{signature}\0"
    return machine_of(world).on("sh", "-c", survey.FACTS, answer=lambda argv: line + world.facts(*argv[6:]))


def test_what_came_after_the_check_is_refused_unless_it_is_ours(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    member = "linux_raid_member " + UUID.replace(":", "-")
    held = HeldDrives(machine_of(world), drives)
    held._machine = seen(world, "sdb", member)
    with pytest.raises(DriveRefused, match=r"/dev/sdb .* carries a signature \(linux_raid_member\), which came after"):
        held.require(drives)
    held.require(drives[1:])
    held.expect(UUID)
    held.require(drives)
    held._machine = seen(world, "sdb", "ext4 00112233-4455-6677-8899-aabbccddeeff")
    with pytest.raises(DriveRefused, match=r"carries a signature \(ext4\), which came after"):
        held.require(drives)


def test_what_the_guard_saw_is_known_until_it_is_gone(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    contents = {drive.kname: frozenset[Signature]() for drive in drives}
    with pytest.raises(DriveRefused, match="which came after it was checked"):
        HeldDrives(seen(world, "sdc", "xfs"), drives, contents)
    assert leases.events[-1] == "release"
    held = HeldDrives(seen(world, "sdc", "xfs"), drives, contents | {"sdc": frozenset({Signature("xfs")})})
    held._machine = machine_of(world)
    held.require(drives)
    held._machine = seen(world, "sdc", "xfs")
    with pytest.raises(DriveRefused, match="which came after it was checked"):
        held.require(drives)


def test_lease_that_is_lost_while_drives_are_looked_at_is_no_right(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)

    def slept(argv: tuple[str, ...]) -> str:
        leases.lost = True
        return world.lsblk()

    held._machine = machine_of(world).on("lsblk", answer=slept)
    with pytest.raises(LeaseLost):
        held.require(drives)


def test_after_a_purge_a_use_is_refused_and_data_without_a_label_are_not(leases: Leases) -> None:
    world = World(disks())
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    purged = machine_of(world)
    purged.contents = Contents(data={"/dev/sdc": 1 << 20})  # a discard that took the label and left data
    held._machine = purged
    with pytest.raises(DriveRefused, match="which came after it was checked"):
        held.require(drives)
    held.require_purged(drives)
    world.disks[1].use = "writer"
    with pytest.raises(DriveRefused, match="is open for writing"):
        held.require_purged(drives)


def array_of(*members: Device, uuid: str = UUID) -> Device:
    array = Device("md100", "raid5", "9:100", model=None, transport=None, uuid=None)
    for member in members:
        member.fstype, member.uuid, member.told_by = "linux_raid_member", uuid, "mdstat"
        member.uppers.append(array)
    return array


Noted = list[tuple[str, dict[str, object]]]


def cleared(
    world: World,
    ours: Iterable[str] = (UUID,),
    wanted: Iterable[str] | None = None,
    contents: Contents | None = None,
    wipe: Iterable[str] = (),
) -> tuple[object, Noted]:
    noted: Noted = []
    names = [disk.kname for disk in world.disks] if wanted is None else list(wanted)
    machine = machine_of(world)
    machine.contents = contents or Contents()
    topology = examined_leftovers(machine, survey.survey(machine, names), set(ours), names)
    leftovers = stoppable(topology, set(ours), names, all_risks(*wipe))
    told = clear_leftovers(machine, topology, leftovers, lambda kind, **facts: noted.append((kind, facts)))
    return told, noted


def test_what_we_left_is_stopped_under_a_lease_and_written_down(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks)
    told, noted = cleared(world)
    assert told == ("/dev/md100 of /dev/sdb, /dev/sdc, /dev/sdd",)
    assert leases.events == ["take s1 s2 s3", "stop /dev/md100 ['/dev/sdb', '/dev/sdc', '/dev/sdd']", "release"]
    facts = {"uuid": UUID, "leftover": True, "not_erased": (), "objections": ("degraded by 1 member",)}
    assert noted == [("array_stopped", facts)]


def test_a_leftover_that_somebody_used_since_needs_the_consent_of_all_members(leases: Leases) -> None:
    world = World(disks())
    array = array_of(*world.disks)
    array.fstype = "ext2"
    world.disks[0].told_by = "lsblk"
    for wipe in ((), ("S1", "S2")):
        assert cleared(world, wipe=wipe) == ((), [])
    assert leases.events == []
    assert cleared(world, wipe=("S1", "S2", "S3"))[0]


@pytest.mark.parametrize("use", ["writer", "reader"])
def test_leftover_with_a_member_that_is_open_is_left_alone(leases: Leases, use: str) -> None:
    world = World(disks())
    array_of(*world.disks)
    world.disks[1].use = use
    assert cleared(world, wipe=("S1", "S2", "S3")) == ((), [])
    assert leases.events == []


@pytest.mark.parametrize("use", ["writer", "reader"])
def test_leftover_with_a_member_that_is_open_by_another_path_is_left_alone(leases: Leases, use: str) -> None:
    world = World(disks())
    array_of(*world.disks)
    names = [disk.kname for disk in world.disks]
    world.disks.append(Device("sde", "disk", "8:64", serial="S1", use=use))
    assert cleared(world, wanted=names, wipe=("S1", "S2", "S3")) == ((), [])
    assert leases.events == []


def test_leftover_that_a_configuration_file_names_needs_consent(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks)
    text = "ARRAY /dev/md100 metadata=1.2\n"
    contents = Contents(files={"/etc/mdadm/mdadm.conf": text}, numbers={"/dev/md100": "9 64"})
    assert cleared(world, contents=contents) == ((), [])
    assert leases.events == []
    assert cleared(world, contents=contents, wipe=("S1", "S2", "S3"))[0]


def test_a_mount_point_cannot_pretend_to_be_a_leftover(leases: Leases) -> None:
    """What a use is, is never decided by its text: users name mount points and processes."""
    world = World(disks())
    array = array_of(*world.disks)
    array.mountpoint = "/srv/left over from an earlier run"
    assert cleared(world, wipe=("S1", "S2", "S3")) == ((), [])
    assert leases.events == []


def test_leftover_with_a_member_whose_label_is_gone_needs_consent(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks)
    contents = labelled({f"/dev/{disk.kname}": label.of_drive(disk.serial or "") for disk in world.disks})
    contents.data |= {"/dev/sdc": 1 << 20}
    assert cleared(world, contents=contents)[0]
    contents.pages["/dev/sdc"] = b"x"
    leases.events.clear()
    assert cleared(world, contents=contents) == ((), [])
    assert leases.events == []


def test_a_leftover_is_ours_by_its_label(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks)
    ours = label.of_array(UUID)
    assert cleared(world, contents=labelled({"/dev/md100": ours}, ["/dev/md100"]))[0]
    for owner in ("", label.of_array("00000001:00000002:00000003:00000004"), label.of_drive("S1")):
        leases.events.clear()
        foreign = labelled({"/dev/md100": owner} if owner else {}, ["/dev/md100"])
        assert cleared(world, contents=foreign) == ((), [])
        assert cleared(world, contents=Contents(errors={"/dev/md100": "Input/output error"})) == ((), [])
        assert leases.events == []


def test_an_array_with_a_label_that_no_journal_knows_is_content(leases: Leases) -> None:
    """The label is right, but the array may be another controller's, or a copy."""
    world = World(disks())
    array_of(*world.disks)
    machine = machine_of(world)
    machine.contents = labelled({"/dev/md100": label.of_array(UUID)}, ["/dev/md100"])
    topology = survey.survey(machine, ["sdb", "sdc", "sdd", "md100"])
    for ours, found in (({UUID}, False), (set[str](), True)):
        node = examined(machine, topology, ["md100"], ours).nodes["md100"]
        assert bool(node.signatures) is found


def test_what_others_made_is_left_alone(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks, uuid="00000001:00000002:00000003:00000004")
    assert cleared(world) == ((), [])
    assert leases.events == []


def test_what_is_used_by_now_is_left_alone(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks).mountpoint = "/srv"
    assert cleared(world) == ((), [])
    assert leases.events == []


def test_what_reaches_beyond_the_drives_that_were_given_is_left_alone(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks)
    assert cleared(world, wanted=["sdb", "sdc"]) == ((), [])
    assert leases.events == []


def test_a_run_that_still_lives_is_not_disturbed(leases: Leases) -> None:
    world = World(disks())
    array_of(*world.disks)
    leases.taken = frozenset({"s1"})
    with pytest.raises(LeaseTaken):
        cleared(world)
    assert leases.events == []


@given(st.text("0123456789abcdef", min_size=32, max_size=32).filter(lambda digits: set(digits) != {"0"}))
def test_uuids_have_one_meaning_in_both_spellings(digits: str) -> None:
    assert plain_uuid(mdadm_spelling(digits)) == digits
    assert mdadm_spelling(digits).count(":") == 3
