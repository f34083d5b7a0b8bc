from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.drives import drive
from support.builders.strategies import geometries
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.machine.machine import CheckRan, Completed, InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import (
    Array,
    ArrayState,
    create,
    create_argv,
    free_path,
    parse_state,
    require_healthy,
    settle,
)
from pytest_ssdqual.rig.md.survival_pattern import PatternRegion

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"
IDLE = "/sys/block/md100/md/{}:{}\n"

arrays = geometries.filter(lambda geometry: geometry.level is not RaidLevel.DRIVE)


def said(**attributes: object) -> str:
    """What ``grep`` prints of an array's directory in sysfs."""
    return "".join(IDLE.format(name, value) for name, value in attributes.items())


def argv_of(geometry: Geometry, *, assume_clean: bool = False, settings: ArraySettings | None = None) -> list[str]:
    members = [f"/dev/sd{chr(ord('b') + number)}" for number in range(geometry.width)]
    return create_argv(geometry, "/dev/md100", members, settings or ArraySettings(), UUID, assume_clean=assume_clean)


@given(arrays, st.booleans())
def test_command_names_each_drive_once_and_asks_nothing(geometry: Geometry, assume_clean: bool) -> None:
    argv = argv_of(geometry, assume_clean=assume_clean)
    named = [word for word in argv if word.startswith("/dev/sd")]
    assert len(named) == len(set(named)) == geometry.width
    assert argv[-geometry.width :] == named
    assert {f"--raid-devices={geometry.width}", "--run", f"--uuid={UUID}"} <= set(argv)
    assert "--spare-devices" not in " ".join(argv)
    redundant = geometry.level is not RaidLevel.RAID0
    assert ("--assume-clean" in argv) == (redundant and assume_clean)
    assert ("--bitmap=none" in argv) == redundant
    assert any(word.startswith("--chunk=") for word in argv) == (geometry.level is not RaidLevel.RAID1)


@given(arrays)
def test_drive_named_twice_or_missing_is_no_array(geometry: Geometry) -> None:
    twice = ["/dev/sdb"] * geometry.width
    for members in (twice, [], [f"/dev/sd{number}" for number in range(geometry.width + 1)]):
        with pytest.raises(ValueError, match=f"{geometry.width} different drives"):
            create_argv(geometry, "/dev/md100", members, ArraySettings(), UUID, assume_clean=False)


def test_the_whole_command_of_a_raid_10() -> None:
    settings = ArraySettings(chunk="128k", bitmap="internal")
    command = (
        f"mdadm --create /dev/md100 --run --metadata=1.2 --homehost=any --uuid={UUID} --level=10 --raid-devices=4 "
        "--chunk=128 --layout=n2 --bitmap=internal /dev/sdb /dev/sdc /dev/sdd /dev/sde"
    )
    assert argv_of(Geometry(RaidLevel.RAID10, 4), settings=settings) == command.split()


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (
            said(array_state="active", sync_action="resync", degraded=1, mismatch_cnt=128),
            ArrayState("active", "resync", 1, 128),
        ),
        (said(array_state="clean"), ArrayState("clean", "", 0, 0)),  # a level without redundancy
        ("", ArrayState()),
    ],
)
def test_state_of_an_array_is_read(text: str, state: ArrayState) -> None:
    assert parse_state(text) == state
    with pytest.raises(RigError, match="of a number"):
        parse_state(text + said(degraded="x"))


@pytest.mark.parametrize(
    ("state", "objections"),
    [
        (ArrayState("clean", "idle"), ()),
        (ArrayState("active", "idle", 0, 7), ()),
        (ArrayState("clean", "idle", 1), ("degraded by 1 member",)),
        (ArrayState("active", "recover", 2), ("degraded by 2 members", "recover is running")),
        (ArrayState("active", "check"), ("check is running",)),
        (ArrayState("broken"), ("its state is broken",)),
        (ArrayState("readonly", "frozen"), ("frozen is running", "its state is readonly")),
    ],
)
def test_what_forbids_a_measurement(state: ArrayState, objections: tuple[str, ...]) -> None:
    assert state.objections() == objections


@pytest.fixture
def machine() -> ScriptedMachine:
    """An array of three drives that is well, and a machine that does what it is told."""
    here = ScriptedMachine()
    here.on("mdadm", "--create").on("udevadm").on("tee").on("nproc", answer="6\n")
    here.on("grep", answer=said(array_state="clean", sync_action="idle", degraded=0, mismatch_cnt=0))
    here.on("mdadm", "--detail", answer=f"           UUID : {UUID}\n").on("blockdev", answer="536870912\n")
    here.on("mdadm", "--detail", "--export", answer=f"MD_LEVEL=raid5\nMD_UUID={UUID}\n")
    here.on("sh", "-c", mdadm.OFFSETS, answer="2048\n2048\n2048\n")
    here.on("sh", "-c", mdadm.REMOVE_EMPTY)
    return here.on("test").on("mdadm", "--stop").on("sh", "-c", mdadm.ERASE)


RAID5 = Geometry(RaidLevel.RAID5, 3)
MEMBERS = [drive(number) for number in range(3)]


def built(machine: ScriptedMachine, *, zeroed: bool = True, settings: ArraySettings | None = None) -> Array:
    return create(machine, RAID5, MEMBERS, settings or ArraySettings(), path="/dev/md100", uuid=UUID, zeroed=zeroed)


def test_array_of_zeroed_drives_is_not_resynced(machine: ScriptedMachine) -> None:
    array = built(machine)
    assert (array.consistency, array.size_bytes, array.kname) == ("zeroed", 536870912, "md100")
    assert array.members == tuple(MEMBERS)
    assert "--assume-clean" in machine.asked[0]
    created = [("beside", member.path, ("mdadm", "--create")) for member in MEMBERS]
    assert machine.bound == [*created, ("alone", "/dev/md100", ("sh", "-c"))]


@pytest.mark.parametrize(
    ("command", "answer", "cause"),
    [
        (("sh", "-c", mdadm.OFFSETS), "2040\n2040\n2040\n", "begin at byte 1044480"),
        (("mdadm", "--detail"), "UUID : 00000000:00000000:00000000:00000000\n", f"does not report {UUID}"),
        (("mdadm", "--create"), completed(["mdadm"], status=2, stderr="mdadm: /dev/nvme0n1 is busy\n"), "is busy"),
    ],
    ids=["data within the label's place", "another array", "mdadm refuses"],
)
def test_array_that_is_not_as_asked_is_an_error(
    machine: ScriptedMachine, command: tuple[str, ...], answer: str | Completed, cause: str
) -> None:
    with pytest.raises(RigError, match=cause):
        built(machine.on(*command, answer=answer))


@pytest.mark.parametrize(
    ("geometry", "chunk", "spared"),
    [
        ("raid5x3", "64k", 1 << 20),
        ("raid5x4", "64k", 6 * 196608),
        ("raid0x8", "512k", 4 << 20),
        ("raid1x2", "64k", 1 << 20),
    ],
)
def test_whole_stripes_are_spared(geometry: str, chunk: str, spared: int) -> None:
    assert mdadm.spared(Geometry.parse(geometry), ArraySettings(chunk=chunk)) == spared


def test_resync_is_waited_for_after_the_label(machine: ScriptedMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    actions = iter(["resync", "resync", "idle", "idle"])

    def state(argv: tuple[str, ...]) -> str:
        assert label.owner_of(machine.contents.pages["/dev/md100"]) == label.of_array(UUID)
        return said(array_state="active", sync_action=next(actions), degraded=0)

    assert built(machine.on("grep", answer=state), zeroed=False).consistency == "resync"
    assert "--assume-clean" not in machine.asked[0]
    assert not list(actions)


def test_md_is_tuned_before_the_resync(machine: ScriptedMachine) -> None:
    given: dict[str, bytes | None] = {}
    run = machine.run

    def noted(argv: list[str], *, stdin: bytes | None = None, **more: object) -> Completed:
        if argv[0] == "tee":
            given[argv[1]] = stdin
        return run(argv, stdin=stdin, check=False)

    machine.run = noted  # type: ignore[method-assign, assignment]
    built(machine, settings=ArraySettings(stripe_cache_pages=8192, group_threads=0))
    assert given == {
        "/sys/block/md100/md/stripe_cache_size": b"8192",
        "/sys/block/md100/md/group_thread_cnt": b"6",  # nproc's
    }


def test_a_resync_that_does_not_end_is_an_error(machine: ScriptedMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 40))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    machine.on("grep", answer=said(array_state="active", sync_action="resync"))
    with pytest.raises(RigError, match="still in resync"):
        settle(machine, "md100", 100)


@pytest.mark.parametrize(
    ("geometry", "state", "objection"),
    [
        ("raid5x3", said(array_state="clean", sync_action="idle", degraded=0), ""),
        ("raid5x3", "", "it is gone"),
        ("raid5x3-1failed", said(array_state="clean", sync_action="idle", degraded=1), ""),
        ("raid5x3-1failed", said(array_state="clean", sync_action="idle", degraded=0), "0 members instead of 1"),
        ("raid5x3-1failed", said(array_state="clean", sync_action="idle", degraded=2), "2 members instead of 1"),
        ("raid5x3-1failed", said(array_state="clean", sync_action="recover", degraded=1), "recover is running"),
        ("raid1x2", said(array_state="active", sync_action="check"), "check is running"),
        ("raid1x2", said(array_state="active", sync_action="check", degraded=1), "degraded by 1"),
        ("drivex3", "", ""),
    ],
)
def test_only_an_array_in_its_state_is_measured(
    machine: ScriptedMachine, geometry: str, state: str, objection: str
) -> None:
    array = replace(built(machine), geometry=Geometry.parse(geometry))
    machine.on("grep", answer=state or completed(["grep"], status=2))
    with pytest.raises(InvalidMeasurement, match=objection) if objection else nullcontext() as raised:
        require_healthy(machine, array)
    if raised:
        assert (type(raised.value) is CheckRan) is (objection == "check is running")


def test_targets_are_what_was_checked_without_the_reserved_end(machine: ScriptedMachine) -> None:
    array = built(machine)
    begin, whole = array.begin_bytes, Checked("/dev/md100", array.size_bytes, uuid=UUID)
    assert begin >= 1 << 20
    assert array.targets == (JobTarget("/dev/md100", array.size_bytes - begin, begin, checked=whole),)
    reserving = replace(array, reserved_bytes=1 << 20)
    assert reserving.targets == (
        JobTarget("/dev/md100", array.size_bytes - begin - (1 << 20), begin, is_part=True, checked=whole),
    )
    assert PatternRegion.of(reserving).target.checked == whole
    assert replace(array, geometry=Geometry(RaidLevel.DRIVE, 3)).targets == tuple(
        JobTarget(member.path, (256 << 20) - begin, begin, checked=Checked.of(member)) for member in MEMBERS
    )


def test_path_of_an_array_is_free_and_one_that_mdadm_takes() -> None:
    """mdadm 4.3 refuses /dev/md127 and above; udev's assembly gives them away from 127 downwards."""
    assert free_path(ScriptedMachine().on("sh", answer="sda\nmd0")) == "/dev/md100"
    used = ["md127", "md1020"]
    for _ in mdadm.NUMBERS:
        path = free_path(ScriptedMachine().on("sh", answer="\n".join(used)))
        name = path.removeprefix("/dev/")
        assert name not in used
        assert int(name[2:]) < 127
        used.append(name)
    with pytest.raises(RigError, match="scripted"):
        free_path(ScriptedMachine().on("sh", answer="\n".join(used)))
    assert len(used) > 48
    assert used[2:4] == ["md100", "md101"]
    assert "md99" in used


@pytest.mark.parametrize("shell", SHELLS)
def test_numbers_of_arrays_that_exist_or_are_configured_are_used(tmp_path: Path, shell: str) -> None:
    for folder in ("sys/block/md100", "dev/md/101", "proc", "etc/mdadm/mdadm.conf.d"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proc/mdstat").write_text("Personalities : [raid1]\nmd102 : active raid1 sdb[0] sdc[1]\n")
    text = "# ARRAY /dev/md120\nARRAY /dev/md103 UUID=1:2:3:4\nARRAY /dev/md/104 name=host:104\nMAILADDR root\n"
    (tmp_path / "etc/mdadm/mdadm.conf").write_text(text)
    (tmp_path / "etc/mdadm/mdadm.conf.d/a.conf").write_text("array <ignore> UUID=5:6:7:8\nARRAY /dev/md105\n")
    script = mdadm.USED_NUMBERS.replace("root=\n", f"root={tmp_path}\n", 1)
    names = {*run_script(shell, script, "md_numbers").split()}
    assert sorted(names - {"md*", "md[0-9]*"}) == [f"md{number}" for number in range(100, 106)]


def test_a_stopped_array_leaves_no_superblock(machine: ScriptedMachine) -> None:
    assert mdadm.stop(machine, "/dev/md100", ["/dev/sdb", "/dev/sdc"], UUID) == ()
    assert machine.asked[-4:] == [
        ("mdadm", "--stop", "/dev/md100"),
        ("udevadm", "settle", "--timeout=30"),
        ("sh", "-c", mdadm.REMOVE_EMPTY, "remove_empty", "md100"),
        ("sh", "-c", mdadm.ERASE, "erase", UUID, "/dev/sdb", "/dev/sdc"),
    ]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("state", "disks", "member", "is_removed"),
    [
        ("clear", "0", "", True),
        ("inactive", "0", "", False),
        ("clean", "3", "", False),
        ("clear", "3", "", False),
        ("clear", "0", "md/dev-sdb", False),
        ("clear", "0", "slaves/sdb", False),
        ("clear", "0", "holders/dm-0", False),
    ],
)
def test_only_a_name_without_an_array_is_removed(
    tmp_path: Path, shell: str, state: str, disks: str, member: str, is_removed: bool
) -> None:
    array = tmp_path / "sys/block/md100"
    for folder in ("md", "slaves", "holders"):
        (array / folder).mkdir(parents=True)
    (array / "md/array_state").write_text(f"{state}\n")
    (array / "md/raid_disks").write_text(f"{disks}\n")
    if member:
        (array / member).symlink_to("/nowhere")
    script = mdadm.REMOVE_EMPTY.replace("root=\n", f"root={tmp_path}\n", 1)
    assert run_script(shell, script, "remove_empty", "md99", "md100").split() == ["md100"] * is_removed
    assert (array / "md/array_state").read_text() == ("clear\n" if is_removed else f"{state}\n")


def test_only_names_of_this_program_are_looked_for() -> None:
    machine = ScriptedMachine().on("sh", "-c", mdadm.REMOVE_EMPTY, answer="md100\n")
    assert mdadm.remove_empty(machine, ["/dev/md100", "/dev/md/../sda", "/dev/sdb", ""]) == ("/dev/md100",)
    assert machine.asked[0][4:] == ("md100",)
    assert mdadm.remove_empty(ScriptedMachine(), ["/dev/md/home"]) == ()


OTHERS = "00000000:00000000:00000000:00000001"


@pytest.mark.parametrize(
    ("superblock", "kernel", "slaves", "is_stopped"),
    [
        (OTHERS, "", "", False),
        ("", "3aaa0122-2982-7cfa-5331-ad66ca767371\n", "", True),
        ("", "00000000-0000-0000-0000-000000000001\n", "sdb\n", False),
        ("", "", "sdb\n", True),
        ("", "", "", True),
        ("", "", "sdb\nsdz\n", False),
    ],
)
def test_only_an_array_of_this_run_is_stopped(
    machine: ScriptedMachine, superblock: str, kernel: str, slaves: str, is_stopped: bool
) -> None:
    """Where members do not answer, the kernel or the names of the members tell."""
    detail = f"MD_LEVEL=raid5\nMD_UUID={superblock}\n" if superblock else completed(["mdadm"], status=1)
    machine.on("mdadm", "--detail", "--export", answer=detail).on("cat", answer=kernel).on("ls", answer=slaves)
    with nullcontext() if is_stopped else pytest.raises(RigError, match="no longer this"):
        mdadm.stop(machine, "/dev/md100", ["/dev/sdb", "/dev/sdc"], UUID)
    assert (("mdadm", "--stop", "/dev/md100") in machine.asked) is is_stopped


#: Drives are files here, and what mdadm finds on them is their content.
MDADM = """#!/bin/sh
case $1 in
--examine) cat "$3" ;;
--zero-superblock) [ "${2##*/}" = worn ] || : >"$2" ;;
esac
"""


def test_only_superblocks_of_our_array_are_erased(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mdadm").write_text(MDADM)
    (tools / "mdadm").chmod(0o755)
    ours, worn, foreign, blank, gone = (tmp_path / name for name in ("ours", "worn", "foreign", "blank", "gone"))
    for each in (ours, worn):  # to one of them nothing can be written, and mdadm does not notice
        each.write_text(f"MD_LEVEL=raid5\nMD_UUID={UUID}\n")
    foreign.write_text(f"MD_UUID={UUID}0\n")
    blank.touch()
    said = subprocess.run(
        ["sh", "-c", mdadm.ERASE, "erase", UUID, *map(str, (ours, worn, foreign, blank, gone))],
        env={"PATH": f"{tools}:{os.environ['PATH']}"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.split() == [str(worn), str(foreign), str(blank), str(gone)]
    assert ours.read_text() == ""
    assert foreign.read_text()


def test_array_that_is_gone_needs_no_stop(machine: ScriptedMachine) -> None:
    machine.on("test", "-e", answer=completed(["test"], status=1)).on("sh", "-c", mdadm.ERASE, answer="/dev/sdb\n")
    assert mdadm.stop(machine, "/dev/md100", ["/dev/sdb", "/dev/sdc"], UUID) == ("/dev/sdb",)
    assert not [argv for argv in machine.asked if argv[0] == "mdadm"]


def busy(times: int) -> Callable[[tuple[str, ...]], Completed]:
    tries = iter(range(100))
    return lambda argv: completed(argv, status=int(next(tries) < times), stderr="mdadm: Cannot get exclusive access\n")


@pytest.mark.parametrize(("times", "is_stopped"), [(3, True), (9, False)])
def test_stop_is_tried_again_while_udev_has_the_array_open(
    machine: ScriptedMachine, monkeypatch: pytest.MonkeyPatch, times: int, is_stopped: bool
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with nullcontext() if is_stopped else pytest.raises(RigError, match="Cannot get exclusive"):
        mdadm.stop(machine.on("mdadm", "--stop", answer=busy(times)), "/dev/md100", ["/dev/sdb"], UUID)
    assert any(mdadm.ERASE in argv for argv in machine.asked) is is_stopped


def test_members_data_can_begin_where_they_did() -> None:
    raid0 = Geometry(RaidLevel.RAID0, 2)
    argv = create_argv(
        raid0, "/dev/md100", ["/dev/sdb", "/dev/sdc"], ArraySettings(), UUID, assume_clean=True,
        data_offset_bytes=128 << 20,
    )  # fmt: skip
    assert argv[-3:] == ["--data-offset=131072K", "/dev/sdb", "/dev/sdc"]
    assert not [word for word in argv_of(raid0) if word.startswith("--data-offset")]


@pytest.mark.parametrize(
    ("said", "offset"),
    [("2048\n2048\n2048\n", 1 << 20), ("2048\n4096\n2048\n", None), ("", None), ("2047\n", None), ("none\n", None)],
)
def test_where_the_data_begin_is_asked_of_the_kernel(machine: ScriptedMachine, said: str, offset: int | None) -> None:
    array = built(machine)
    machine.on("sh", "-c", mdadm.OFFSETS, answer=said)
    assert mdadm.data_offset(machine, array) == offset
    assert mdadm.data_offset(machine, replace(array, geometry=Geometry(RaidLevel.DRIVE, 3))) == 0


def test_the_offsets_of_all_members_are_found(tmp_path: Path) -> None:
    """The script itself, on a directory like that of sysfs."""
    for name, sectors in {"dev-sdb": 2048, "dev-nvme0n1": 4096}.items():
        folder = tmp_path / "md100/md" / name
        folder.mkdir(parents=True)
        (folder / "offset").write_text(f"{sectors}\n")
    script = mdadm.OFFSETS.replace("/sys/block/", f"{tmp_path}/")
    assert script != mdadm.OFFSETS
    said = subprocess.run(["sh", "-c", script, "offsets", "md100"], capture_output=True, text=True, check=True).stdout
    assert sorted(said.split()) == ["2048", "4096"]


@pytest.mark.parametrize(
    ("answer", "missing", "objections"),
    [
        (said(array_state="clean", sync_action="idle", degraded=0), 0, ()),
        (
            said(array_state="clean", sync_action="recover", degraded=1),
            0,
            ("degraded by 1 member", "recover is running"),
        ),
        (said(array_state="clean", sync_action="recover", degraded=1), 1, ("recover is running",)),
        (said(array_state="clean", sync_action="idle", degraded=2), 1, ("degraded by 2 members instead of 1",)),
        (said(array_state="clean", sync_action="idle", degraded=0), 1, ()),
        ("", 0, ("it is gone",)),
        (RigError("no answer"), 0, ("its state could not be read: no answer",)),
    ],
)
def test_last_check_of_an_array_objects_and_never_fails(
    machine: ScriptedMachine, answer: str | RigError, missing: int, objections: tuple[str, ...]
) -> None:
    machine.on("grep", answer=answer)
    assert mdadm.final_objections(machine, "/dev/md100", missing) == objections


@pytest.mark.parametrize("action", ["check", "idle", "resync", "repair"])
@pytest.mark.parametrize("uuid", [UUID, OTHERS])
def test_only_a_check_of_this_run_s_array_is_ended(action: str, uuid: str) -> None:
    array = Array(Geometry.parse("raid1x2"), "/dev/md100", (), UUID, 1, "zeroed")
    now = [action]
    machine = ScriptedMachine().on("grep", answer=lambda argv: said(array_state="active", sync_action=now[0]))

    def end(argv: tuple[str, ...]) -> Completed:
        now[0] = "idle"
        return completed(argv)

    machine.on("tee", answer=end).on("mdadm", "--detail", "--export", answer=f"MD_UUID={uuid}\n")
    is_refused = action == "check" and uuid != UUID
    with pytest.raises(RigError, match="no longer this") if is_refused else nullcontext():
        assert mdadm.end_check(machine, array) is (action == "check")
    ended = ("tee", "/sys/block/md100/md/sync_action") in machine.asked
    assert ended is (action == "check" and not is_refused)
