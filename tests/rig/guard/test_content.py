from __future__ import annotations

import pytest
from support.builders.consents import all_risks, unmarked
from support.fakes.scripted import ScriptedMachine
from support.simulator.simulated_content import Contents, labelled, superblock
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.rig.drives import survey
from pytest_ssdqual.rig.drives.topology import Signature
from pytest_ssdqual.rig.guard import label, refusals
from pytest_ssdqual.rig.guard.consent import DATA, UNREADABLE, foreign
from pytest_ssdqual.rig.guard.content import examined
from pytest_ssdqual.rig.guard.refusals import recheck
from pytest_ssdqual.rig.machine.machine import DriveRefused

ASK = "; if that may be destroyed, add --ssd-wipe=S1."
ASK_UNREADABLE = "; if that may be destroyed unread, add --ssd-unreadable=S1."
ASK_CONFIGURED = "; if nothing there needs the drive, add --ssd-configured=S1."


def disk(**more: object) -> Device:
    return Device("sdb", "disk", "8:16", serial="S1", **more)  # type: ignore[arg-type]


def machine_of(world: World, contents: Contents) -> ScriptedMachine:
    here = ScriptedMachine(contents=contents).on("lsblk", answer=lambda argv: world.lsblk())
    return here.on("sh", "-c", survey.FACTS, answer=lambda argv: world.facts(*argv[6:]))


def refused(contents: Contents, *devices: Device, wipe: tuple[str, ...] = ()) -> str:
    world = World([*devices] or [disk()])
    machine = machine_of(world, contents)
    topology = examined(machine, survey.survey(machine, ["sdb"]), ["sdb"], names=True)
    return unmarked(refusals.explain(refusals.refusals(topology, world.matches(world.disks[0]), all_risks(*wipe))))


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (Contents(), ""),
        (labelled({"/dev/sdb": label.of_drive("S1")}), ""),
        (labelled({"/dev/sdb": label.of_drive("S1")}, ["/dev/sdb"]), ""),
        (labelled({"/dev/sdb": label.of_drive("S2")}), f"carries data without a signature (first at byte 0){ASK}"),
        (Contents(data={"/dev/sdb": 1 << 30}), f"carries data without a signature (first at byte 1073741824){ASK}"),
        (Contents(pages={"/dev/sdb": b"x" * 10}), f"carries data without a signature (first at byte 0){ASK}"),
        (
            Contents(errors={"/dev/sdb": "Input/output error"}),
            f"has content that cannot be read (Input/output error at byte 0){ASK_UNREADABLE}",
        ),
        (
            Contents(files={"/etc/fstab": "/dev/b / xfs\nLABEL=b /x xfs"}, numbers={"/dev/b": "8 10"}),
            f"has a name in /etc/fstab (/dev/b){ASK_CONFIGURED}",
        ),
    ],
)
def test_what_is_not_provably_blank_needs_consent(contents: Contents, reason: str) -> None:
    said = refused(contents)
    assert said.partition("): ")[2] == reason
    assert refused(contents, wipe=("S1",)) == ""


@pytest.mark.parametrize("is_used", [False, True])
def test_member_of_an_array_that_was_used_since_needs_consent(is_used: bool) -> None:
    uuid = "3aaa012229827cfa5331ad66ca767371"
    contents = labelled({"/dev/sdb": label.of_drive("S1")}, ["/dev/sdb"])
    head = bytes(range(256)) * 256 if is_used else label.page(label.of_array(uuid)).ljust(65536, b"\0")
    contents.members["/dev/sdb"] = (superblock(uuid), head)
    reason = "data without a signature (of the array that it is a member of, at byte 1048576)"
    assert refused(contents).partition("): ")[2] == (f"carries {reason}{ASK}" if is_used else "")


@pytest.mark.parametrize(
    ("contents", "share"), [(Contents(), 0.25), (labelled({"/dev/sdb": label.of_drive("S1")}), None)]
)
def test_allocated_share_is_known_unless_it_is_our_own(contents: Contents, share: float | None) -> None:
    world = World([disk()])
    machine = ScriptedMachine(contents=contents).on("lsblk", answer=lambda argv: world.lsblk())
    reported = "allocated\0/dev/sdb\x0025\x00100\0"
    machine.on("sh", "-c", survey.FACTS, answer=lambda argv: reported + world.facts(*argv[6:]))
    topology = examined(machine, survey.survey(machine, ["sdb"]), ["sdb"])
    assert topology.nodes["sdb"].allocated == share


def test_where_there_is_a_signature_there_are_data() -> None:
    assert "data without" not in refused(Contents(data={"/dev/sdb": 4096}), disk(fstype="ext4"))
    unread = refused(Contents(errors={"/dev/sdb": "Input/output error"}), disk(fstype="ext4"))
    assert "(ext4); if that" in unread
    assert "cannot be read" in unread


def test_another_namespace_of_the_drive_is_named() -> None:
    other = Device("sdc", "disk", "8:32", serial="S1")
    said = refused(Contents(data={"/dev/sdc": 4096}), disk(), other)
    assert said.endswith(f"4096) on /dev/sdc{ASK}")


def test_data_that_came_after_the_check_are_refused() -> None:
    world, contents = World([disk()]), Contents()
    machine = machine_of(world, contents)
    drive = survey.survey(machine, ["sdb"]).drive("sdb")
    known = recheck(machine, drive)
    contents.data["/dev/sdb"] = 1 << 20
    with pytest.raises(DriveRefused, match=r"byte 1048576\), which"):
        recheck(machine, drive, known=known)
    contents.pages["/dev/sdb"] = label.page(label.of_drive("S1"))
    recheck(machine, drive, known=known)
    contents.errors["/dev/sdb"] = "Input/output error"
    with pytest.raises(DriveRefused, match="cannot be read"):
        recheck(machine, drive, known=known)


def test_a_new_signature_says_enough_of_new_data() -> None:
    found = [Signature("ext4"), Signature(DATA, detail="(first at byte 0)"), Signature(UNREADABLE, detail="(why)")]
    signature, unread = foreign(found, ())
    assert ("ext4" in signature, "(why)" in unread) == (True, True)
    (data,) = foreign(found[1:2], ())
    assert "at byte 0" in data


def test_data_that_were_given_up_may_lie_elsewhere_later() -> None:
    world, contents = World([disk()]), Contents(data={"/dev/sdb": 1 << 20})
    machine = machine_of(world, contents)
    drive = survey.survey(machine, ["sdb"]).drive("sdb")
    known = recheck(machine, drive)
    contents.data["/dev/sdb"] = 2 << 20
    recheck(machine, drive, known=known)
