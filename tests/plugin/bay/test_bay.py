from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.consents import wiped
from support.fakes.scripted import ScriptedMachine
from support.simulator.simulated_disks import Device, World
from support.simulator.simulated_rig import Scene, SimulatedMachine

from pytest_ssdqual.plugin.bay import bay
from pytest_ssdqual.plugin.bay.bay import Bay
from pytest_ssdqual.plugin.session.controller import STOPPED
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.rig.drives import survey as blockdev
from pytest_ssdqual.rig.drives.survey import survey
from pytest_ssdqual.rig.drives.topology import Match, Signature
from pytest_ssdqual.rig.guard import held_drives, lease, refusals, sampling
from pytest_ssdqual.rig.machine import facts as provenance
from pytest_ssdqual.rig.machine.machine import Completed, Machine
from pytest_ssdqual.rig.machine.ssh import SshTarget

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


def usage_error(pytester: pytest.Pytester, *args: str) -> str:
    """What pytest says without the simulated rig."""
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "\n".join(line for line in result.errlines if line)
    assert said.startswith("ERROR: ")
    return said.removeprefix("ERROR: ")


def test_a_bay_travels_as_plain_data() -> None:
    machine = SimulatedMachine("dut7", Scene.of_environment())
    topology = survey(machine, ["nvme0n1", "nvme1n1"])
    drives = topology.drive("nvme0n1"), topology.drive("nvme1n1")
    for target in (None, SshTarget("root@dut7", ("-F", "config"), "dut7"), SshTarget("root@dut7")):
        contents = {
            "nvme0n1": frozenset({Signature("ext4", "0011"), Signature("gpt")}),
            "nvme1n1": frozenset[Signature](),
        }
        bay = Bay(target, drives, {"kernel": "Linux 6.1"}, ("a remark",), contents)
        assert from_plain(Bay, json.loads(json.dumps(plain(bay)))) == bay
    assert Bay(None, drives).machine == "localhost"
    assert Bay(SshTarget("root@dut7"), drives).machine == "root@dut7"


@pytest.mark.parametrize(
    ("scene", "sentence"),
    [
        (
            {"MISSING": "fio mdadm smartctl"},
            "localhost has no fio, mdadm and smartctl: install the packages fio mdadm smartmontools there",
        ),
        ({"MISSING": "nvme"}, "localhost has no nvme: install the package nvme-cli there"),
        (
            {"UNKNOWN_OPTION": "status-interval"},
            "fio-3.33 on localhost does not know the option status-interval; "
            "install a newer package fio (3.19 suffices)",
        ),
    ],
)
def test_what_the_machine_lacks_is_named_with_its_package(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, scene: dict[str, str], sentence: str
) -> None:
    for name, value in scene.items():
        monkeypatch.setenv(f"SIMULATED_{name}", value)
    assert inner.refused("--ssd-devices=/dev/nvme*") == sentence


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--ssd-devices=/dev/sdz",), "Nothing on localhost matches '/dev/sdz'; `lsblk` there lists its drives."),
        (
            ("--ssd-devices=dut7:/dev/sdz",),
            "Nothing on dut7 matches '/dev/sdz'; `lsblk` there lists its drives.",
        ),
    ],
)
def test_a_pattern_that_names_nothing(inner: Inner, args: tuple[str, ...], sentence: str) -> None:
    assert inner.refused(*args) == sentence
    assert inner.refused(*args, "--collect-only") == sentence


UNIDENTIFIED = """{"smartctl": {"exit_status": 1, "messages": [
    {"string": "/dev/nvme0n1: Unknown device type", "severity": "error"},
    {"string": "please specify it with the -d option", "severity": "error"}]}}"""


def test_a_drive_that_smartctl_cannot_identify_is_refused(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "ACME 9")
    monkeypatch.setenv("SIMULATED_UNIDENTIFIED", UNIDENTIFIED)
    for more in (("--collect-only",), ()):
        said = inner.refused("--ssd-devices=/dev/nvme*", *more)
        assert said.startswith("smartctl: /dev/nvme0n1 (")
        assert "Unknown device type" in said
        assert "--ssd-smart-type=/dev/nvme0n1=TYPE" in said
        assert "--ssd-smart-type=/dev/nvme0n1=none" in said


QUICK = "--ssd-protocol=quick"
#: What smartctl 7.3 says of QEMU's scsi-hd: INQUIRY is answered, nothing of health is.
NO_HEALTH = """{"smartctl": {"exit_status": 4, "version": [7, 3]}, "device": {"protocol": "SCSI"},
    "model_name": "QEMU HARDDISK"}"""


def test_drives_of_a_hypervisor_run_without_health(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, promises: str
) -> None:
    monkeypatch.setenv("SIMULATED_WITHOUT_HEALTH", NO_HEALTH)
    monkeypatch.setenv("SIMULATED_MODEL", "QEMU HARDDISK")
    inner.suite("drive")
    result = inner.run(
        "--ssd-devices=/dev/nvme*", promises, "--ssd-force-spec", QUICK, "-k", "steady_iops and read_4k_qd8"
    )
    assert "errors" not in result.parseoutcomes()
    assert len(inner.records("verdict")) == 1
    assert result.stdout.str().count("(QEMU HARDDISK)") == 1
    assert {drive["smart_type"] for bay in inner.manifest()["bays"] for drive in bay["drives"]} == {"none"}
    assert inner.verdict().counts.unread == 4


def test_the_inspection_of_a_hypervisors_drives_has_no_error(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_WITHOUT_HEALTH", NO_HEALTH)
    monkeypatch.setenv("SIMULATED_MODEL", "QEMU HARDDISK")
    inner.suite("inspection")
    result = inner.run("--ssd-devices=/dev/nvme*", "--ssd-read-only")
    outcomes = result.parseoutcomes()
    assert not {"failed", "errors"} & set(outcomes)
    cases = inner.cases()
    assert "of a hypervisor" in cases["test_drives_are_not_worn"].message
    assert cases["test_drives_have_unique_serials_and_wwns"].outcome == "passed"


@pytest.mark.parametrize("args", [(), ("--ssd-smart-type=nvme",)])
def test_unreadable_drives_are_refused_with_one_option(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SIMULATED_WITHOUT_HEALTH", NO_HEALTH)
    monkeypatch.setenv("SIMULATED_MODEL", "QEMU HARDDISK" if args else "ACME 9")
    said = inner.refused("--ssd-devices=/dev/nvme*", *args)
    assert "\n" not in said
    assert said.count("no health that") == 1
    assert said.endswith("--ssd-smart-type=none")
    assert all(f"/dev/nvme{number}n1" in said for number in range(4))


@pytest.mark.slow
@pytest.mark.parametrize("given", ["nvme", "/dev/nvme0n1=nvme", "none", "/dev/nvme0*=none"])
def test_an_unidentified_drive_is_accepted_with_a_type_or_option(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("SIMULATED_UNIDENTIFIED", UNIDENTIFIED)
    monkeypatch.setenv("SIMULATED_MODEL", "ACME 9")
    inner.suite("drive")
    # The forecast of the default protocol takes 15 s of simulated drives, which are no matter here.
    more = ("--ssd-protocol=quick", "--ssd-spec=default", "--collect-only", "drive")
    plan = inner.run("--ssd-devices=/dev/nvme*", f"--ssd-smart-type={given}", *more)
    assert plan.ret == 0
    assert ("is not read" in plan.stdout.str()) is given.endswith("none")


def test_one_type_for_all_drives_of_a_controller_is_refused(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "shared")
    said = inner.refused("--ssd-devices=/dev/nvme*", "--ssd-smart-type=megaraid,4")
    assert "serial number S " in said


@pytest.mark.parametrize("given", ["/dev/sdz=sat", "/dev/nvme9n1=none"])
def test_a_smart_type_for_no_drive_of_the_run(inner: Inner, given: str) -> None:
    said = inner.refused("--ssd-devices=/dev/nvme*", f"--ssd-smart-type={given}")
    assert said.startswith(f"--ssd-smart-type: '{given.partition('=')[0]}' ")


def test_this_machine_is_asked_for_real(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in provenance.TOOLS:
        if shutil.which(name) is None:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    said = usage_error(pytester, "--ssd-devices=/dev/no-such-drive*")
    assert "localhost matches '/dev/no-such-drive*'" in said


def test_a_host_that_does_not_answer(pytester: pytest.Pytester) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and never listened to: nobody else can answer there
        config = pytester.path / "ssh_config"
        config.write_text(f"Host dut7\n    HostName 127.0.0.1\n    Port {taken.getsockname()[1]}\n    User root\n")
        said = usage_error(pytester, "--ssd-devices=dut7:/dev/sdb", f"--ssd-ssh-config={config}")
    assert said.startswith("cannot reach dut7 ")
    assert "Connection refused; " in said
    assert "\n" not in said


def test_a_host_that_does_not_exist(pytester: pytest.Pytester) -> None:
    said = usage_error(pytester, "--ssd-devices=no-such-host.invalid:/dev/sdb")
    assert said.startswith("cannot reach no-such-host.invalid ")
    assert "resolve" in said
    assert "\n" not in said


def test_a_lab_without_qemu(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(pytester.path))
    said = usage_error(pytester, "--ssd-devices=lab:3")
    assert "needs qemu-system-" in said
    assert "apt-get install qemu-system-x86" in said


def test_planning_for_a_lab_boots_none(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(pytester.path))
    pytester.makepyfile("import pytest\n@pytest.mark.ssd_array('raid5')\ndef test_it(ssd_geometry): pass")
    result = pytester.runpytest_inprocess("--ssd-devices=lab:4", "--collect-only")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*test_it[[]raid5x4]*"])


HELD = (
    "another run holds drives on localhost: /dev/nvme0n1 (SSDQ0001), /dev/nvme1n1 (SSDQ0002): held by anna@one, "
    "process 77, run 20261122T093701Z-ab12 for 60 min, by its plan for about 2 h more"
)


def test_who_holds_the_drives_is_said_before_anything_else(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard would only say that they are in use, or that something is on them."""
    monkeypatch.setenv("SIMULATED_HELD", "1000")
    told = f"{HELD}; --ssd-wait=DURATION waits for them"
    assert inner.refused("--ssd-devices=/dev/nvme*", "--ssd-wipe=NONE") == told
    assert inner.refused("--ssd-devices=/dev/nvme*", "--collect-only", "--ssd-wait=1 h") == told


def test_drives_that_another_run_holds_are_waited_for(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LOOK_EVERY_S", 0.0)
    monkeypatch.setenv("SIMULATED_HELD", "2")
    inner.pytester.makepyfile("def test_campaign(_ssd_campaign):\n    pass")
    result = inner.run("--ssd-devices=/dev/nvme*", "--ssd-wait=2 h")
    result.assert_outcomes(passed=1)
    assert len([line for line in result.outlines if line.startswith(f"ssdqual: {HELD}; ")]) == 1


@pytest.mark.parametrize(
    "bays",
    [
        ("--ssd-devices=/dev/nvme*",),
        ("--ssd-devices=root@dut1:/dev/nvme*", "--ssd-devices=root@dut2:/dev/nvme*", "-n", "2"),
    ],
    ids=["one", "several"],
)
def test_who_stops_the_waiting_is_told_what_came_of_it(inner: Inner, bays: tuple[str, ...]) -> None:
    """Of an interruption as early as this pytest says nothing. Several bays wait in threads, signals reach another."""
    inner.pytester.makeconftest(
        """
    import itertools, os, signal, time
    from pytest_ssdqual.rig.guard import lease

    calls = itertools.count()

    def stopped(*_, **__):
        if next(calls) == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(120)

    lease.await_free = stopped
    """
    )
    inner.pytester.makepyfile("def test_campaign(_ssd_campaign):\n    pass")
    result = inner.pytester.runpytest_subprocess(
        "-p", "support.simulator.simulated_rig", "--junitxml=junit.xml", *bays, "--ssd-wait=2 h"
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert [line for line in result.errlines if line] == [f"Exit: {STOPPED}"]
    assert not (inner.pytester.path / "junit.xml").exists()
    folder = inner.folder()
    if "-n" in bays:
        assert inner.fleet()["exit_status"] == pytest.ExitCode.INTERRUPTED
    else:
        assert "stopped before it" in (folder / "records.jsonl").read_text()
        assert (folder / "SHA256SUMS").is_file()
    assert "run_started" not in "".join(each.read_text() for each in folder.rglob("records.jsonl"))


def test_what_the_names_mean_is_looked_up_anew_after_waiting(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the hours of another run a drive may have been replaced, and its name be that of a third one."""
    monkeypatch.setattr(lease, "LOOK_EVERY_S", 0.0)
    monkeypatch.setenv("SIMULATED_HELD", "1")
    asked: list[int] = []

    def expand(machine: Machine, patterns: Sequence[str]) -> tuple[Match, ...]:
        asked.append(len(asked))
        found = blockdev.expand(machine, patterns)
        return found if len(asked) == 1 else found[:-1]

    monkeypatch.setattr(bay, "expand", expand)
    inner.pytester.makepyfile("def test_campaign(_ssd_campaign):\n    assert len(_ssd_campaign.setup.held.drives) == 3")
    inner.run("--ssd-devices=/dev/nvme*", "--ssd-wait=2 h").assert_outcomes(passed=1)
    assert asked == [0, 1]


def test_waiting_in_vain_is_told(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LOOK_EVERY_S", 0.0)
    monkeypatch.setenv("SIMULATED_HELD", "1000000")
    assert inner.refused("--ssd-devices=/dev/nvme*", "--ssd-wait=0.1 s").startswith(f"{HELD}, ")


LEFT = "3aaa0122:29827cfa:5331ad66:ca767371"


def leftover(fstype: str | None = None) -> tuple[World, ScriptedMachine]:
    """A machine with an array that an earlier run left, and what somebody put on it since."""
    array = Device("md100", "raid1", "9:100", model=None, transport=None, fstype=fstype)
    disks = [
        Device(
            f"sd{letter}", "disk", f"8:{16 * number}", serial=f"S{number}", fstype="linux_raid_member", uuid=LEFT,
            told_by=told_by, uppers=[array],
        )
        for number, (letter, told_by) in enumerate((("b", "lsblk"), ("c", "mdstat")), 1)
    ]  # fmt: skip
    world = World(disks)
    machine = ScriptedMachine().on("lsblk", answer=lambda argv: world.lsblk())
    return world, machine.on("sh", "-c", blockdev.FACTS, answer=lambda argv: world.facts(*argv[6:]))


def as_planned(world: World, machine: ScriptedMachine, *wipe: str) -> list[str]:
    """What the guard says of both drives in a run that only collects."""
    ours, wanted, consents = frozenset({LEFT}), {"sdb", "sdc"}, wiped(*wipe)
    topology, _ = bay._without_leftovers(machine, survey(machine, wanted), ours, wanted, consents)  # type: ignore[arg-type]
    assert not [argv for argv in machine.asked if argv[0] == "mdadm"]
    return [str(each) for each in refusals.refusals(topology, world.matches(), consents, ours)]


def test_a_plan_is_without_what_a_run_would_clear_away() -> None:
    assert as_planned(*leftover()) == []


def test_a_plan_refuses_a_leftover_that_was_used_since() -> None:
    said = as_planned(*leftover("ext2"))
    assert len(said) == 2
    for number, line in enumerate(said, 1):
        assert "/dev/md100 (raid1)" in line
        ask = f"add --ssd-wipe=S{number}."
        assert "(ext2) on /dev/md100" in line
        assert line.endswith(ask)
    assert len(as_planned(*leftover("ext2"), "S1")) == 2
    assert as_planned(*leftover("ext2"), "S1", "S2") == []


def cleared(monkeypatch: pytest.MonkeyPatch, *, refuses: bool = False) -> tuple[Bay, list[str]]:
    """The bay after ``clear``, and the arrays that were stopped, in a world with a leftover array."""
    world, machine = leftover()
    stopped: list[str] = []

    def clear_leftovers(
        channel: object, topology: object, leftovers: Sequence[refusals.Leftover], note: object
    ) -> tuple[str, ...]:
        stopped.extend(each.kname for each in leftovers)
        for disk in world.disks:
            disk.fstype, disk.uuid, disk.uppers = None, None, []
        return tuple(f"/dev/{each.kname}" for each in leftovers)

    monkeypatch.setattr(held_drives, "clear_leftovers", clear_leftovers)
    drives = survey(machine, {"sdb", "sdc"})
    known = Bay(None, tuple(drives.drive(name) for name in ("sdb", "sdc")))
    opened = bay.OpenedBay(known, machine, tuple(world.matches()), has_leftovers=True)  # type: ignore[arg-type]
    settings = SimpleNamespace(consents=frozenset(), unchecked=frozenset(), is_of_several=False)
    ours, refuse = (lambda: frozenset({LEFT})), (lambda drive: ["not today"] if refuses else [])
    opener = bay.BayOpener(settings, ExitStack(), ours, refuse)  # type: ignore[arg-type]
    return opener.clear(opened, lambda kind, **facts: None), stopped


def test_clear_stops_leftovers_and_checks_the_drives_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found, stopped = cleared(monkeypatch)
    assert stopped == ["md100"]
    assert ["/dev/md100" in remark for remark in found.remarks] == [True]
    assert set(found.contents) == {"sdb", "sdc"}
    with pytest.raises(pytest.UsageError, match="not today"):
        cleared(monkeypatch, refuses=True)


@pytest.fixture
def unequal(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of four drives has half the capacity."""
    assert inner
    monkeypatch.setenv("SIMULATED_SIZES", "SSDQ0002=240057409536")


@pytest.mark.usefixtures("unequal")
def test_drives_of_different_size_are_measured_side_by_side(inner: Inner, promises: str) -> None:
    inner.suite("drive")
    result = inner.run(
        "--ssd-devices=/dev/nvme*", promises, "--ssd-force-spec", QUICK, "-k", "steady_iops and read_4k_qd8"
    )
    assert "errors" not in result.parseoutcomes()
    (verdict,) = inner.records("verdict")
    assert (verdict["protocol"], verdict["acceptance"]) == ("quick", False)


@pytest.mark.usefixtures("unequal")
@pytest.mark.parametrize("args", [("--ssd-read-only",), ()])
def test_the_inspection_names_the_drive_of_another_size(inner: Inner, args: tuple[str, ...]) -> None:
    inner.suite("inspection")
    inner.run("--ssd-devices=/dev/nvme*", *args, "-k", "alike")
    (case,) = inner.cases().values()
    assert case.outcome == "failure"
    assert "SSDQ0002" in case.message


@pytest.mark.usefixtures("unequal")
def test_an_array_of_drives_of_different_size_is_refused(inner: Inner) -> None:
    inner.suite("raid0")
    inner.suite("drive")
    result = inner.run("--ssd-devices=/dev/nvme*", QUICK, "raid0", "drive")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (said,) = [line for line in result.errlines if line]
    assert "one array" in said
    assert "SSDQ0002" in said
    assert inner.records("array_created", "measured") == []


@pytest.mark.parametrize(
    ("share", "content", "is_remarked"),
    [
        (None, (), False),
        (1e-6, (), False),
        (0.25, (), True),
        (0.999999, (), True),
        (1.0, (), False),
        (0.25, (Signature("ext4"),), False),
    ],
)
def test_blank_drive_that_reports_allocated_blocks_is_remarked(
    share: float | None, content: tuple[Signature, ...], is_remarked: bool
) -> None:
    """Many drives always report all of them, and some whole units for a label."""
    topology = survey(SimulatedMachine("dut7", Scene.of_environment()), ["nvme1n1"])
    node = replace(topology.nodes["nvme1n1"], allocated=share, signatures=content)
    found = replace(topology, nodes={"nvme1n1": node})
    assert len([*bay._allocated(found, [topology.drive("nvme1n1")])]) == is_remarked


def test_remark_on_allocated_blocks_is_on_record(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, nuse = World.facts, "allocated\0/dev/nvme1n1\000250000\0001000000\0"
    monkeypatch.setattr(World, "facts", lambda self, *nodes: nuse + facts(self, *nodes))
    inner.pytester.makepyfile("def test_it(): pass")
    inner.run("--ssd-devices=/dev/nvme*")
    assert ["SSDQ0002" in each for each in inner.manifest()["remarks"] if "NUSE" in each] == [True]


def test_samples_are_taken_thoroughly_when_a_run_begins(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later checks of the same drives spend less."""
    spent: list[str] = []
    run = SimulatedMachine.run

    def recording(machine: SimulatedMachine, argv: Sequence[str], **how: Any) -> Completed:  # noqa: ANN401
        if tuple(argv[:3]) == ("sh", "-c", sampling.SCRIPT):
            spent.append(argv[6])
        return run(machine, argv, **how)

    monkeypatch.setattr(SimulatedMachine, "run", recording)
    inner.pytester.makepyfile("def test_it(): pass")
    inner.run("--ssd-devices=/dev/nvme*")
    assert spent[0] == "200"  # hundredths of a second
