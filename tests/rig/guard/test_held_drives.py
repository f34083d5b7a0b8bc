from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.consents import all_risks
from support.fakes.leases import Leases
from support.fakes.scripted import ScriptedMachine
from support.simulator.simulated_content import Contents, labelled
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.rig.drives import survey
from pytest_ssdqual.rig.drives.topology import Drive, Signature, Source, plain_uuid
from pytest_ssdqual.rig.guard import held_drives, label, refusals, sampling
from pytest_ssdqual.rig.guard.content import examined
from pytest_ssdqual.rig.guard.held_drives import (
    HeldDrives,
    clear_leftovers,
    examined_leftovers,
    mdadm_spelling,
    stoppable,
)
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import DriveRefused, DriveSilent, LeaseTaken
from pytest_ssdqual.rig.md import mdadm

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> Leases:
    leases = Leases()
    monkeypatch.setattr(held_drives, "Lease", leases)

    def stop(machine: object, path: str, members: list[str], uuid: str) -> tuple[str, ...]:
        leases.events.append(f"stop {path} {','.join(members)}")
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


@pytest.fixture
def world() -> World:
    return World(disks())


def test_drive_that_does_not_answer_is_neither_read_nor_given_up(leases: Leases, world: World) -> None:
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


def test_held_drives_are_leased_and_checked_again(leases: Leases, world: World) -> None:
    drives = drives_of(world)
    here = machine_of(world)
    held = HeldDrives(here, drives)
    assert leases.events == ["take s1,s2,s3"]
    assert here.asked[0][0] == "lsblk"
    held.release()
    assert leases.events[-1] == "release"
    world.disks[1].mountpoint = "/srv"
    with pytest.raises(DriveRefused, match=r"/dev/sdc .*/srv"):
        HeldDrives(machine_of(world), drives)
    assert leases.events[2:] == ["take s1,s2,s3", "release"]
    leases.taken = frozenset({"s2"})
    with pytest.raises(LeaseTaken):
        HeldDrives(machine_of(world), drives)


def test_foreign_drive_is_refused_before_anything_is_asked(leases: Leases, world: World) -> None:
    mine, other = drives_of(world)[:2], drives_of(world)[2]
    held = HeldDrives(here := machine_of(world), mine)
    here.asked.clear()
    for drives in ([mine[0], other], [replace(mine[0], serial="another one at this path")]):
        with pytest.raises(DriveRefused, match=r"^not among"):
            held.require(drives)
    assert here.asked == []


def test_drives_in_use_are_the_same_and_others_in_place_are_not(leases: Leases, world: World) -> None:
    """A self-test changes no data, so members of an array that stands may do it, but it is begun by path."""
    held = HeldDrives(machine_of(world), drives_of(world))
    world.disks[0].use = "swap"
    held.require_same()
    world.disks[1].serial = "another"
    with pytest.raises(DriveRefused, match=r"another drive .*/dev/sdc"):
        held.require_same()
    leases.lost = True
    with pytest.raises(LeaseLost):
        held.require_same()


def test_every_step_checks_its_drives_and_the_lease(leases: Leases, world: World) -> None:
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    held.require(drives[:1])
    world.disks[0].use = "swap"
    with pytest.raises(DriveRefused, match="is swap space"):
        held.require(drives[:1])
    held.require(drives[1:])

    def slept(argv: tuple[str, ...]) -> str:
        leases.lost = True
        return world.lsblk()

    held._machine = machine_of(world).on("lsblk", answer=slept)
    with pytest.raises(LeaseLost):
        held.require(drives[1:])  # it is lost while drives are checked
    for check in (held.require_lease, held.require_lease_alone):
        with pytest.raises(LeaseLost):
            check()


def test_source_that_goes_blind_refuses_the_next_step(
    leases: Leases, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    accepting = HeldDrives(machine_of(world), drives, unchecked={Source.EXPORTS})
    facts = World.facts
    monkeypatch.setattr(World, "facts", lambda self, *nodes: f"blind\0exports\0unmounted\0{facts(self, *nodes)}")
    with pytest.raises(DriveRefused, match=r"\(unmounted\)"):
        held.require(drives)
    accepting.require(drives)


def test_after_a_lost_connection_drives_are_checked_once(leases: Leases, world: World) -> None:
    machine = machine_of(world)
    held = HeldDrives(machine, drives_of(world))
    array_of(*world.disks)  # in use by now, by this run
    machine.generation = 1
    held.require_lease()
    asked = len(machine.asked)
    held.require_lease()
    assert len(machine.asked) == asked
    machine.generation = 2
    world.disks[1].serial = "another one"
    for _ in range(2):
        with pytest.raises(DriveRefused, match=r"^another drive.*/dev/sdc .*S2"):
            held.require_lease()


@pytest.mark.parametrize(
    ("checked", "is_other"),
    [
        ({"firmware": "540500WD", "smart_type": "sat"}, False),  # by smartctl
        ({"firmware": None}, False),
        ({"queue_limit": 253}, False),  # the kernel changes it under load
        ({"max_link": "16.0 GT/s PCIe"}, False),  # unknown now
        ({"revision": "00WD"}, True),
    ],
)
def test_after_a_lost_connection_what_the_kernel_knows_decides(
    leases: Leases, world: World, checked: dict[str, str | int | None], is_other: bool
) -> None:
    drives = [replace(each, **checked) for each in drives_of(world)]  # type: ignore[arg-type]
    held = HeldDrives(machine_of(world), drives)
    with pytest.raises(DriveRefused, match="another drive") if is_other else nullcontext():
        held._require_same()
    held.require([replace(drives[0], firmware=None)])


def test_after_a_lost_connection_a_read_only_drive_is_the_same(leases: Leases, world: World) -> None:
    machine = machine_of(world)
    held = HeldDrives(machine, drives_of(world))
    machine.generation = 1
    world.disks[1].read_only = True
    with pytest.raises(DriveRefused, match=r"^/dev/sdc .*read-only"):
        held.require_lease()
    held.require_lease_alone()
    world.disks[2].serial = "another one"
    with pytest.raises(DriveRefused, match=r"^another drive.*/dev/sdd.*/dev/sdc .*read-only"):
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
def test_after_a_lost_connection_identity_decides(
    leases: Leases, world: World, name: str, value: object, is_other: bool
) -> None:
    held = HeldDrives(machine_of(world), drives_of(world))
    setattr(world.disks[1], name, value)
    with pytest.raises(DriveRefused, match="another drive") if is_other else nullcontext():
        held._require_same()


def test_after_a_lost_connection_another_name_in_sysfs_decides(leases: Leases) -> None:
    """udev did not handle the events, so lsblk prints the names of the drive that was there before."""
    disk, wwid = Device("sdb", "disk", "8:16", serial="S1", wwn="0x5000c500a1b20001"), ["t10.ATA S1"]
    world = World([disk])

    def facts(argv: tuple[str, ...]) -> str:
        return f"wwid\0sdb\0{wwid[0]}\0{world.facts(*argv[6:])}"

    machine = machine_of(world).on("sh", "-c", survey.FACTS, answer=facts)
    held = HeldDrives(machine, [survey.survey(machine, ["sdb"]).drive("sdb")])
    held._require_same()
    wwid[0] = "t10.ATA S2"
    with pytest.raises(DriveRefused, match=r"another drive .*/dev/sdb"):
        held._require_same()
    with pytest.raises(DriveRefused, match=r"is called t10\.ata_s2"):
        held.require(held.drives)


@pytest.mark.parametrize("moment", ["connection", "restart"])
@pytest.mark.parametrize(("gone", "is_dead"), [(1, False), (1, True), (3, False)])
def test_drive_that_is_gone_does_not_stop_the_others(
    leases: Leases, world: World, moment: str, gone: int, is_dead: bool
) -> None:
    """The kernel sets the capacity of an NVMe drive whose controller is dead to 0 before it removes the drive."""
    drives = drives_of(world)
    machine = machine_of(world)
    held = HeldDrives(machine, drives)
    if is_dead:
        world.disks[2].size = 0
    else:
        del world.disks[3 - gone :]
    if moment == "restart":
        held.hold_again()
    else:
        machine.generation = 1
        held.require_lease()
    held.require(drives[: 3 - gone])
    with pytest.raises(DriveRefused, match=rf"^/dev/sdd .*S3\): .*{'has no capacity' if is_dead else 'is gone'}"):
        held.require(drives[2:])


def test_after_a_restart_drives_are_leased_and_checked_anew(leases: Leases, world: World) -> None:
    """The controller takes a while to notice that the former lease ended, and another run may have the drives then."""
    held = HeldDrives(machine_of(world), drives_of(world))
    held.hold_again(lambda: leases.events.append("first"))
    assert leases.events == ["take s1,s2,s3", "take s1,s2,s3", "first"]
    leases.taken = frozenset({"s2"})
    with pytest.raises(LeaseTaken):
        held.hold_again(lambda: leases.events.append("again"))
    with pytest.raises(LeaseLost, match="the machine restarted"):
        held.require_lease()
    held.release()
    leases.taken = frozenset()
    world.disks[0].use = "swap"
    with pytest.raises(DriveRefused, match="is swap space"):
        held.hold_again(lambda: leases.events.append("again"))
    assert leases.events[3:] == ["take s1,s2,s3", "again", "release"]
    with pytest.raises(LeaseLost):
        held.require_lease()


def test_drives_that_swapped_names_in_a_power_cut_are_held_on(leases: Leases, world: World) -> None:
    first, second, third = drives_of(world)
    held = HeldDrives(machine_of(world), (first, second, third))
    world.disks[0].kname, world.disks[1].kname = "sdc", "sdb"
    with pytest.raises(DriveRefused, match="S2 where S1"):
        held.require([first])
    now = {first: replace(first, path="/dev/sdc", kname="sdc"), second: replace(second, path="/dev/sdb", kname="sdb")}
    held.identify_again(now)
    assert held.drives == (now[first], now[second], third)
    held.require(held.drives)
    with pytest.raises(DriveRefused, match="not among"):
        held.require([first])
    assert leases.events == ["take s1,s2,s3"], "the machine kept its power"


def test_a_drive_whose_name_another_has_after_a_power_cut_is_no_objection_to_that_one(
    leases: Leases, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = drives_of(world)
    held = HeldDrives(machine_of(world), (second, third, first))
    back = replace(second, path=first.path, kname=first.kname)
    world.disks[1].kname = first.kname
    del world.disks[0]
    own, stale = held._contents[second.kname], held._contents.pop(first.kname)
    assert own is not stale
    held._contents[first.kname] = stale  # the last one
    known: list[object] = []

    def recorded(*arguments: object, **named: object) -> dict[str, object]:
        known.append(cast("dict[str, object]", named["known"])[back.kname])
        return {}

    with monkeypatch.context() as patch:
        patch.setattr(refusals, "recheck", recorded)
        held.identify_again({second: back, third: third})
    assert known[0] is own
    held.require_same()
    held.require([back, third])
    with pytest.raises(DriveRefused, match="S2 where S1"):
        held.require([first])


@pytest.mark.parametrize("fault", ["use", "serial", "lease"])
def test_a_drive_that_lost_its_power_is_checked_again(leases: Leases, world: World, fault: str) -> None:
    first, *_ = drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    world.disks[0].kname = "sdz"
    if fault == "lease":
        held.hold_again()
        held._lease = None
    else:
        setattr(world.disks[0], fault, "swap")
    with pytest.raises(LeaseLost if fault == "lease" else DriveRefused):
        held.identify_again({first: replace(first, path="/dev/sdz", kname="sdz")})


def seen(world: World, kname: str, signature: str) -> ScriptedMachine:
    """The machine, where one drive carries a signature now."""
    line = f"signature\0/dev/{kname}\0{signature}\0"
    return machine_of(world).on("sh", "-c", survey.FACTS, answer=lambda argv: line + world.facts(*argv[6:]))


AFTER = "which came after it was checked"


def test_what_came_after_the_check_is_refused_unless_it_is_ours(leases: Leases, world: World) -> None:
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    held._machine = seen(world, "sdb", "linux_raid_member " + UUID.replace(":", "-"))
    with pytest.raises(DriveRefused, match=rf"/dev/sdb .*\(linux_raid_member\), {AFTER}"):
        held.require(drives)
    held.require(drives[1:])
    held.expect(UUID)
    held.require(drives)
    held._machine = seen(world, "sdb", "ext4 00112233-4455-6677-8899-aabbccddeeff")
    with pytest.raises(DriveRefused, match=rf"\(ext4\), {AFTER}"):
        held.require(drives)


def test_what_the_guard_found_is_known_until_it_is_gone(leases: Leases, world: World) -> None:
    drives = drives_of(world)
    contents = {drive.kname: frozenset[Signature]() for drive in drives}
    with pytest.raises(DriveRefused, match=AFTER):
        HeldDrives(seen(world, "sdc", "xfs"), drives, contents)
    assert leases.events[-1] == "release"
    held = HeldDrives(seen(world, "sdc", "xfs"), drives, contents | {"sdc": frozenset({Signature("xfs")})})
    held._machine = machine_of(world)
    held.require(drives)
    held._machine = seen(world, "sdc", "xfs")
    with pytest.raises(DriveRefused, match=AFTER):
        held.require(drives)


def test_after_a_purge_a_use_is_refused_and_data_are_not(leases: Leases, world: World) -> None:
    drives = drives_of(world)
    held = HeldDrives(machine_of(world), drives)
    purged = machine_of(world)
    purged.contents = Contents(data={"/dev/sdc": 1 << 20})  # a discard that took the label and left data
    held._machine = purged
    with pytest.raises(DriveRefused, match=AFTER):
        held.require(drives)
    held.require_purged(drives)
    world.disks[1].use = "writer"
    with pytest.raises(DriveRefused, match="open for writing"):
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


def test_leftover_is_stopped_under_a_lease_and_recorded(leases: Leases, world: World) -> None:
    array_of(*world.disks)
    told, noted = cleared(world)
    assert all(path in str(told) for path in ("/dev/md100", "/dev/sdb", "/dev/sdc", "/dev/sdd"))
    assert leases.events == ["take s1,s2,s3", "stop /dev/md100 /dev/sdb,/dev/sdc,/dev/sdd", "release"]
    facts = {"uuid": UUID, "leftover": True, "not_erased": (), "objections": ("degraded by 1 member",)}
    assert noted == [("array_stopped", facts)]
    leases.events.clear()
    leases.taken = frozenset({"s1"})  # its run still lives
    with pytest.raises(LeaseTaken):
        cleared(world)
    assert leases.events == []


EVERY, FOREIGN = ("S1", "S2", "S3"), "00000001:00000002:00000003:00000004"


def of_drives(**changed: bytes) -> Contents:
    """Members with their labels, and data behind that of one."""
    contents = labelled({f"/dev/sd{letter}": label.of_drive(f"S{n}") for n, letter in enumerate("bcd", 1)})
    contents.data |= {"/dev/sdc": 1 << 20}
    contents.pages |= {f"/dev/{kname}": page for kname, page in changed.items()}
    return contents


CONFIGURED = Contents(
    files={"/etc/mdadm/mdadm.conf": "ARRAY /dev/md100 metadata=1.2\n"}, numbers={"/dev/md100": "9 64"}
)


@pytest.mark.parametrize("consents", [(), ("S1", "S2"), EVERY], ids=["no consent", "some", "all"])
@pytest.mark.parametrize(
    ("array", "member", "contents", "needs"),
    [
        ({}, {}, None, ()),
        ({"fstype": "ext2"}, {}, None, EVERY),  # used since
        ({}, {}, CONFIGURED, EVERY),
        ({}, {}, of_drives(), ()),
        ({}, {}, of_drives(sdc=b"x"), ("S2",)),  # a member whose label is gone
        ({}, {"use": "writer"}, None, None),
        ({}, {"use": "reader"}, None, None),
        ({"mountpoint": "/srv"}, {}, None, None),
        # What a use is, is never decided by its text: users name mount points and processes.
        ({"mountpoint": "/srv/left over from an earlier run"}, {}, None, None),
    ],
)
def test_leftover_is_stopped_if_unused_or_with_consent(
    leases: Leases,
    world: World,
    array: dict[str, str],
    member: dict[str, str],
    contents: Contents | None,
    needs: tuple[str, ...] | None,
    consents: tuple[str, ...],
) -> None:
    left = array_of(*world.disks)
    if array.get("fstype"):
        world.disks[0].told_by = "lsblk"
    for device, changes in ((left, array), (world.disks[1], member)):
        for name, value in changes.items():
            setattr(device, name, value)
    told, noted = cleared(world, contents=contents, wipe=consents)
    is_stopped = needs is not None and set(needs) <= set(consents)
    assert bool(told) is bool(noted) is bool(leases.events) is is_stopped


@pytest.mark.parametrize("use", ["writer", "reader"])
def test_leftover_with_a_member_open_by_another_path_is_left(leases: Leases, world: World, use: str) -> None:
    array_of(*world.disks)
    names = [disk.kname for disk in world.disks]
    world.disks.append(Device("sde", "disk", "8:64", serial="S1", use=use))
    assert cleared(world, wanted=names, wipe=EVERY) == ((), [])
    assert leases.events == []


@pytest.mark.parametrize(
    ("uuid", "wanted"), [(FOREIGN, ["sdb", "sdc", "sdd"]), (UUID, ["sdb", "sdc"])], ids=["foreign", "other drives"]
)
def test_array_of_another_run_or_of_other_drives_is_left(
    leases: Leases, world: World, uuid: str, wanted: list[str]
) -> None:
    array_of(*world.disks, uuid=uuid)
    assert cleared(world, wanted=wanted, wipe=EVERY) == ((), [])
    assert leases.events == []


def test_leftover_is_ours_by_its_label(leases: Leases, world: World) -> None:
    array_of(*world.disks)
    assert cleared(world, contents=labelled({"/dev/md100": label.of_array(UUID)}, ["/dev/md100"]))[0]
    leases.events.clear()
    for owner in ("", label.of_array(FOREIGN), label.of_drive("S1")):
        assert cleared(world, contents=labelled({"/dev/md100": owner} if owner else {}, ["/dev/md100"])) == ((), [])
    assert cleared(world, contents=Contents(errors={"/dev/md100": "Input/output error"})) == ((), [])
    assert leases.events == []


def test_an_array_with_a_label_that_no_journal_knows_is_content(leases: Leases, world: World) -> None:
    """The label is right, but the array may be another controller's, or a copy."""
    array_of(*world.disks)
    machine = machine_of(world)
    machine.contents = labelled({"/dev/md100": label.of_array(UUID)}, ["/dev/md100"])
    topology = survey.survey(machine, ["sdb", "sdc", "sdd", "md100"])
    for ours, found in (({UUID}, False), (set[str](), True)):
        node = examined(machine, topology, ["md100"], ours).nodes["md100"]
        assert bool(node.signatures) is found


@given(st.text("0123456789abcdef", min_size=32, max_size=32).filter(lambda digits: set(digits) != {"0"}))
def test_uuids_have_one_meaning_in_both_spellings(digits: str) -> None:
    assert plain_uuid(mdadm_spelling(digits)) == digits
    assert mdadm_spelling(digits).count(":") == 3
