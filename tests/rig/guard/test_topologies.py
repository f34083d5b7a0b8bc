"""The guard on generated machines: what carries anything in use is never passed, whatever else is said and allowed."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.builders.consents import all_risks
from support.builders.topologies import Plant, PlantDevice, Told, hearings, plants
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.rig.drives.survey_parse import topology_of
from pytest_ssdqual.rig.drives.topology import Topology
from pytest_ssdqual.rig.guard.refusals import recheck, refusals
from pytest_ssdqual.rig.machine.machine import DriveRefused, RigError

examples = settings(max_examples=100)


def seen(plant: Plant, told: Collection[Told], seed: int = 0) -> Topology:
    order = Random(seed)  # noqa: S311 (no secret)
    texts = plant.lsblk(told, order), plant.script(told, order)
    return topology_of(*texts, [disk.kname for disk in plant.disks])


def names(plant: Plant) -> set[str]:
    """Every consent that could be given."""
    return {name for disk in plant.disks for name in (disk.serial, disk.wwn, disk.sysfs_serial) if name}


def consents(plant: Plant, topology: Topology, disk: PlantDevice) -> frozenset[str]:
    """Those that are about one drive."""
    nodes = [topology.nodes[each.kname] for each in plant.paths_of(disk)]
    return frozenset(name for node in nodes for name in (node.serial, node.wwn) if name)


def reasons(plant: Plant, topology: Topology, disk: PlantDevice, wipe: Collection[str] = ()) -> set[str]:
    return {why for one in refusals(topology, [plant.match(disk)], all_risks(*wipe)) for why in one.reasons}


@examples
@given(plants(), st.data())
def test_what_carries_anything_in_use_is_never_passed(plant: Plant, data: st.DataObject) -> None:
    topology = seen(plant, data.draw(hearings(plant)), data.draw(st.integers(0, 3)))
    for disk in plant.disks:
        for wipe in (frozenset(), consents(plant, topology, disk), frozenset(names(plant))):
            found = refusals(topology, [plant.match(disk)], all_risks(*wipe), {"f" * 32})
            about = [one for one in found if disk.path in one.drive]
            assert bool(about) or not plant.in_use(disk), f"{disk.kname} is in use and was passed"


@examples
@given(plants(), st.data())
def test_free_drives_are_passed_with_consent_to_content(plant: Plant, data: st.DataObject) -> None:
    topology = seen(plant, data.draw(hearings(plant)))
    for disk in plant.disks:
        if plant.in_use(disk) or not (disk.names and topology.nodes[disk.kname].type == "disk"):
            continue
        content = any(each.has_content for each in plant.paths_of(disk))
        assert bool(reasons(plant, topology, disk)) == content, disk.kname
        node = topology.nodes[disk.kname]
        assert reasons(plant, topology, disk, consents(plant, topology, disk)) == set(), node


@examples
@given(plants(), st.data())
def test_the_order_of_lines_makes_no_difference(plant: Plant, data: st.DataObject) -> None:
    told = data.draw(hearings(plant))
    one, other = seen(plant, told, 1), seen(plant, data.draw(st.permutations(told)), 2)
    for disk in plant.disks:
        for wipe in (frozenset(), consents(plant, one, disk)):
            assert split(reasons(plant, one, disk, wipe)) == split(reasons(plant, other, disk, wipe))


def split(sentences: set[str]) -> set[frozenset[str]]:
    """Reasons, without the order of what is listed in them."""
    return {frozenset(sentence.removeprefix("carries ").replace(";", ",").split(", ")) for sentence in sentences}


@examples
@given(plants(), st.data())
def test_knowing_more_never_turns_a_refusal_into_a_pass(plant: Plant, data: st.DataObject) -> None:
    less = data.draw(hearings(plant).map(lambda told: told[: len(told) // 2]))
    more = data.draw(hearings(plant, at_least=less))
    known, better = seen(plant, less), seen(plant, more)
    for disk in plant.disks:
        for wipe in (frozenset(), consents(plant, known, disk)):
            if reasons(plant, known, disk, wipe):
                assert reasons(plant, better, disk, wipe), f"{disk.kname} was refused before more was known"


@examples
@given(plants(), st.data())
def test_what_is_not_a_whole_drive_is_never_passed(plant: Plant, data: st.DataObject) -> None:
    others = [device for device in plant.devices if device not in plant.disks]
    assume(others)
    device = data.draw(st.sampled_from(others))
    topology = seen(plant, data.draw(hearings(plant)))
    assert refusals(topology, [plant.match(device)], all_risks(*names(plant)))


def free_plants() -> st.SearchStrategy[Plant]:
    return plants().filter(lambda plant: any(is_free(plant, disk) for disk in plant.disks))


def is_free(plant: Plant, disk: PlantDevice) -> bool:
    return not plant.in_use(disk) and bool(disk.names)


class Changing:
    """A machine that shows the plant as it is when it is asked, and all of its sources speak."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.machine = ScriptedMachine()
        order = Random(0)  # noqa: S311 (no secret)
        self.machine.on("lsblk", answer=lambda argv: plant.lsblk(plant.everything(), order))
        self.machine.on("sh", answer=lambda argv: plant.script(plant.everything(), order))


def _put_to_use(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(disk.reach()))
    uses = (
        "mount",
        "mount elsewhere",
        "swap",
        "btrfs",
        "zfs",
        "writer",
        "reader",
        "generic",
        "export",
        "bcachefs",
        "opened",
    )
    plant.use(place, data.draw(st.sampled_from(uses)), "/late")


def _give_another_serial(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    disk.serial = disk.sysfs_serial = "ANOTHER"


def _give_another_wwn(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    disk.wwn, disk.sysfs_wwid = "0x5000c50012345678", "naa.5000c50012345678"


def _swap_behind_udev(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    """udev did not handle the events, so lsblk prints what it printed before."""
    disk.sysfs_serial, disk.sysfs_wwid = data.draw(
        st.sampled_from((("ANOTHER", None), (None, "naa.5000c50012345678"), ("ANOTHER", "t10.ATA ANOTHER")))
    )


def _resize(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    disk.size += 512


def _take_away(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    disk.unlisted, disk.kname, disk.path = True, "sdz", "/dev/sdz"
    plant.facts = []


def _build_on(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    plant.build(
        PlantDevice("md9", "raid1", "9:9", unlisted=data.draw(st.booleans())),
        [data.draw(st.sampled_from(disk.reach()))],
    )


def _write_a_signature(plant: Plant, disk: PlantDevice, data: st.DataObject) -> None:
    disk.signature = data.draw(
        st.sampled_from(("xfs", "linux_raid_member 3aaa0122-2982-7cfa-5331-ad66ca767371", "gpt"))
    )


CHANGES = [
    _put_to_use,
    _give_another_serial,
    _give_another_wwn,
    _swap_behind_udev,
    _resize,
    _take_away,
    _build_on,
    _write_a_signature,
]


@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=25)
@given(plant=free_plants(), data=st.data())
def test_a_drive_that_changes_between_check_and_use_is_refused(
    change: object, plant: Plant, data: st.DataObject
) -> None:
    disk = data.draw(st.sampled_from([disk for disk in plant.disks if is_free(plant, disk)]))
    machine = Changing(plant).machine
    drive = seen(plant, plant.everything()).drive(disk.kname)
    known = recheck(machine, drive)
    assert recheck(machine, drive, known=known) == known, "nothing has changed"
    assert callable(change)
    change(plant, disk, data)
    with pytest.raises((DriveRefused, RigError)):
        recheck(machine, drive, known=known)


@settings(max_examples=60)
@given(free_plants(), st.data())
def test_a_superblock_of_ours_is_no_surprise(plant: Plant, data: st.DataObject) -> None:
    disk = data.draw(st.sampled_from([disk for disk in plant.disks if is_free(plant, disk)]))
    machine = Changing(plant).machine
    drive = seen(plant, plant.everything()).drive(disk.kname)
    known = recheck(machine, drive)
    disk.signature = "linux_raid_member 3aaa0122-2982-7cfa-5331-ad66ca767371"
    recheck(machine, drive, known=known, known_uuids={"3aaa0122:29827cfa:5331ad66:ca767371"})
    with pytest.raises(DriveRefused, match=r"\(linux_raid_member\), which came"):
        recheck(machine, drive, known=known, known_uuids={"3aaa0122:29827cfa:5331ad66:00000000"})
