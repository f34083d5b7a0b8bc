from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders.survey_records import probed
from support.fakes.scripted import CommandsOnly, ScriptedMachine, completed
from support.shells import SHELLS, shell_argv
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.rig.drives.survey import (
    PERL_PROBE,
    PYTHON_PROBE,
    Match,
    NotABlockDevice,
    NothingMatches,
    UnusablePattern,
    expand,
    survey,
)
from pytest_ssdqual.rig.drives.topology import Use, UseKind
from pytest_ssdqual.rig.guard.refusals import refusals
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, RigError


class Here(CommandsOnly):
    """The scripts for real, on this computer, as whoever runs the tests, under one shell after another."""

    name = "here"

    def __init__(self, shell: str) -> None:
        self.shell = shell_argv(shell)

    def run(self, argv: Sequence[str], *, check: bool = True, **how: Any) -> Completed:  # noqa: ANN401
        argv = (*self.shell, *argv[1:]) if argv[0] == "sh" else tuple(argv)
        done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        if check and done.returncode:
            raise CommandFailed(f"{argv} failed", completed(argv, status=done.returncode))
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr, "", 0.0)


@pytest.fixture(params=SHELLS)
def here(request: pytest.FixtureRequest) -> Here:
    return Here(request.param)


def some_block_device() -> str:
    for device in sorted(Path("/sys/class/block").glob("*")):
        path = Path("/dev") / device.name
        if path.is_block_device() and not (device / "partition").exists():
            return str(path)
    pytest.skip("no block device has a node here")


@pytest.mark.parametrize(
    "nasty",
    [
        "$(touch {x})",
        "`touch {x}`",
        "; touch {x}",
        "/dev/null; touch {x}",
        "' ; touch {x} ; '",
        '" ; touch {x} ; "',
        "a b\ntouch {x}\n",
        "$((x[$(touch {x})]))",
        "${{x:=$(touch {x})}}",
        "* $(touch {x}) ?",
        "\\$(touch {x})",
        "-e {x}",
        "%s\\n%d{x}",
    ],
)
def test_nothing_in_a_pattern_is_ever_run(here: Here, tmp_path: Path, nasty: str) -> None:
    canary = tmp_path / "canary"
    pattern = f"{tmp_path}/{nasty.format(x=canary)}"
    with pytest.raises(NothingMatches) as refusal:
        expand(here, [pattern])
    assert not canary.exists()
    assert repr(pattern) in str(refusal.value), "the pattern came back as it was written"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_pattern_without_a_match_is_an_error(text: str) -> None:
    with pytest.raises(NothingMatches, match=r"^Nothing on here"):
        expand(Here("dash"), [f"/nowhere/{text}x"])


def test_patterns_are_globbed_and_links_resolved_by_number(here: Here, tmp_path: Path) -> None:
    device = some_block_device()
    kname = Path(device).name
    for name in ("nvme-ACME SSD_1", "nvme-ACME SSD_1_1", "other"):
        (tmp_path / name).symlink_to(device)
    pattern = f"{tmp_path}/nvme-ACME*"
    assert expand(here, [pattern]) == (Match(pattern, f"{tmp_path}/nvme-ACME SSD_1", kname),), "two links, one drive"
    assert expand(here, [f"{tmp_path}/other", device]) == (
        Match(f"{tmp_path}/other", f"{tmp_path}/other", kname),
        Match(device, device, kname),
    )


def test_blank_in_a_pattern_does_not_make_it_two(here: Here, tmp_path: Path) -> None:
    device = some_block_device()
    for pattern in (f"{tmp_path}/x {device}", f"{tmp_path}/x\n{device}", f"{tmp_path}/x*\t{device}"):
        with pytest.raises(NothingMatches):
            expand(here, [pattern])
    for name, pattern in (("ACME SSD", "ACME S*"), ("disk[1]", "disk[1]")):
        (tmp_path / name).symlink_to(device)
        assert [match.written_path for match in expand(here, [f"{tmp_path}/{pattern}"])] == [f"{tmp_path}/{name}"]


def test_an_alias_made_by_mknod_is_the_device_it_is(here: Here, tmp_path: Path) -> None:
    device = some_block_device()
    alias = tmp_path / "not-a-link"
    try:
        os.mknod(alias, 0o060600, Path(device).stat().st_rdev)
    except PermissionError:
        pytest.skip("only root makes device nodes")
    assert [match.kname for match in expand(here, [str(alias)])] == [Path(device).name]


@pytest.mark.parametrize("name", ["file", "directory", "dangling", "null"])
def test_what_is_not_a_block_device_is_refused(here: Here, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "dangling").symlink_to("/nowhere")
    (tmp_path / "null").symlink_to("/dev/null")
    path = str(tmp_path / name)
    with pytest.raises(NotABlockDevice) as refusal:
        expand(here, [path])
    assert repr(path) in str(refusal.value)
    with pytest.raises(NotABlockDevice, match="a block device"):
        expand(here, [path[:-1] + "?"])


@pytest.mark.parametrize("pattern", ["sdb", "", "~/x", "./sdb", "/dev/sdb\0"])
def test_only_absolute_paths(pattern: str) -> None:
    with pytest.raises(UnusablePattern, match="an absolute path"):
        expand(ScriptedMachine(), ["/dev/sda", pattern])


def answer(*patterns: Sequence[tuple[str, str, str]]) -> ScriptedMachine:
    words = []
    for found in patterns:
        words.append("pattern x")
        for path, kname, disk in found:
            words += [f"path {path}", f"kname {kname}", f"disk {disk}"]
    return ScriptedMachine().on("sh", answer="".join(f"{word}\0" for word in (*words, "end ")))


def test_glob_of_a_disk_and_its_partitions_names_the_disk() -> None:
    machine = answer([("/dev/sda", "sda", ""), ("/dev/sda1", "sda1", "sda"), ("/dev/sdb1", "sdb1", "sdb")])
    assert [match.kname for match in expand(machine, ["/dev/sd*"])] == ["sda", "sdb1"]
    machine = answer([("/dev/sda", "sda", "")], [("/dev/sda1", "sda1", "sda")])
    assert [match.kname for match in expand(machine, ["/dev/sda", "/dev/sda1"])] == ["sda", "sda1"]


def test_kernel_names_with_a_slash() -> None:
    assert expand(answer([("/dev/cciss/c0d0", "cciss!c0d0", "")]), ["/dev/cciss/*"])[0].kname == "cciss/c0d0"


@pytest.mark.parametrize("text", ["", "pattern x\0", "pattern x\0path /dev/sda\0kname sda\0disk \0", "end \0"])
def test_an_answer_cut_short_is_an_error_not_an_empty_set(text: str) -> None:
    with pytest.raises(RigError):
        expand(ScriptedMachine().on("sh", answer=text), ["/dev/sda"])


def test_survey_is_two_commands_with_user_data_as_parameters() -> None:
    world = World([Device("sda", "disk", "8:0"), Device("sdb", "disk", "8:16")])
    machine = ScriptedMachine().on("lsblk", answer=world.lsblk()).on("sh", answer=world.facts("/dev/sdb"))
    topology = survey(machine, ["sdb", "sdb"])
    assert topology.candidates == {"sdb"}
    assert [argv[0] for argv in machine.asked] == ["lsblk", "sh"]
    _, dash_c, script, name, *parameters = machine.asked[1]
    assert (dash_c, name, parameters) == ("-c", "facts", [PERL_PROBE, PYTHON_PROBE, "/dev/sdb"])
    assert "sdb" not in script


def test_only_paths_to_a_candidate_are_opened() -> None:
    twins = Device("sdb", "disk", "8:16", serial="S"), Device("sdc", "disk", "8:32", serial="S")
    world = World([*twins, Device("sdd", "disk", "8:48", serial="other")])
    opened: list[tuple[str, ...]] = []

    def facts(argv: tuple[str, ...]) -> str:
        opened.append(argv[6:])
        return (
            probed(world.facts(*argv[6:]), "/dev/sdc", 16) if "/dev/sdc" in argv else world.facts(*argv[6:])
        )  # as if its file system was hidden

    machine = ScriptedMachine().on("lsblk", answer=world.lsblk()).on("sh", answer=facts)
    topology = survey(machine, ["sdb"])
    assert opened == [("/dev/sdb",), ("/dev/sdb", "/dev/sdc")]
    assert topology.candidates == {"sdb"}, "the other one may not be destroyed"
    assert topology.nodes["sdc"].uses == (Use(UseKind.EXCLUSIVE),)
    (refusal,) = refusals(topology, world.matches(twins[0]))
    (reason,) = refusal.reasons
    assert "/dev/sdc (same serial" in reason
    assert "exclusively" in reason


@pytest.mark.parametrize(
    ("lsblk", "cut"),
    [*((text, "") for text in ("", "[]", '{"blockdevices": {}}', '{"blockdevices": [{"kname": null}]}')),
     ('{"blockdevices": []}', "end\0")],
)  # fmt: skip
def test_answer_that_is_not_understood_is_a_rig_error(lsblk: str, cut: str) -> None:
    facts = World([]).facts().removesuffix(cut)
    machine = ScriptedMachine().on("lsblk", answer=lsblk).on("sh", answer=facts)
    with pytest.raises(RigError, match="end missing" if cut else "cannot be listed"):
        survey(machine)


@pytest.mark.skipif(not shutil.which("lsblk"), reason="no lsblk here")
def test_this_computer_can_be_surveyed(here: Here) -> None:
    device = some_block_device()
    topology = survey(here, [Path(device).name])
    assert topology.candidates == {Path(device).name}
    assert topology.nodes[Path(device).name].path == device
    assert set(topology.nodes) >= {
        name.name.replace("!", "/") for name in Path("/sys/class/block").glob("*") if (name / "dev").exists()
    }


@pytest.mark.skipif(not shutil.which("lsblk"), reason="no lsblk here")
def test_the_root_of_this_computer_is_found_in_use(here: Here) -> None:
    device = Path("/").stat().st_dev
    topology = survey(here)
    mounted = [node for node in topology.nodes.values() if "/" in node.mountpoints]
    number = f"{os.major(device)}:{os.minor(device)}"
    if number not in {node.device_number for node in topology.nodes.values()}:
        pytest.skip("the root file system is on no block device")
    assert [node.device_number for node in mounted] == [number]


@pytest.mark.parametrize("interpreter", [("perl", "-e"), ("python3", "-I", "-S", "-c")])
def test_the_probe_opens_exclusively_and_tells_the_error(interpreter: tuple[str, ...], tmp_path: Path) -> None:
    if not shutil.which(interpreter[0]):
        pytest.skip(f"no {interpreter[0]} here")
    probe = PERL_PROBE if interpreter[0] == "perl" else PYTHON_PROBE
    odd = tmp_path / "a b$(x)"
    odd.touch()
    argv = [*interpreter, probe, "drives", str(odd), "/nowhere/at all"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == f"probe\0{odd}\0{0}\0probe\0/nowhere/at all\0{2}\0"
    assert "O_EXCL" in probe
    assert "O_RDONLY" in probe


#: An interpreter whose pointers are narrow, where each node is a namespace: both by what stands before the probe.
NARROW = {
    "perl": ("length(pack('P', '')) == 8", "0", "BEGIN { *CORE::GLOBAL::ioctl = sub (*$$) { 1 } }\n"),
    "python3": ('struct.calcsize("P") == 8', "False", "import fcntl\nfcntl.ioctl = lambda *words: 1\n"),
}


@pytest.mark.parametrize("is_nvme", [True, False])
@pytest.mark.parametrize("interpreter", [("perl", "-e"), ("python3", "-I", "-S", "-c")])
def test_probe_of_32_bits_is_blind_only_for_nvme(interpreter: tuple[str, ...], tmp_path: Path, is_nvme: bool) -> None:
    """Drives of SATA have no reservations, so that a machine with a narrow perl can test them."""
    if not shutil.which(interpreter[0]):
        pytest.skip(f"no {interpreter[0]} here")
    width, narrow, devices = NARROW[interpreter[0]]
    probe = PERL_PROBE if interpreter[0] == "perl" else PYTHON_PROBE
    assert width in probe
    probe = (devices if is_nvme else "") + probe.replace(width, narrow)
    node = tmp_path / "node"
    node.touch()
    done = subprocess.run([*interpreter, probe, "drives", str(node)], capture_output=True, text=True, check=True)
    why = f"a program of 32 bits cannot ask for the reservations of {node}"
    blind = f"blind_drive\0reservations\0{node}\0{why}\0" if is_nvme else ""
    assert done.stdout == f"probe\0{node}\0{0}\0{blind}"


def test_drive_that_reports_no_reservations_is_named_once(tmp_path: Path) -> None:
    """The probe goes on with the next drive."""
    if not shutil.which("perl"):
        pytest.skip("no perl here")
    call = "$| = 1;\nmy $mode"
    assert call in PERL_PROBE
    ask = 'print "found" if defined reserve_in("/dev/sdx", \\*STDIN, 0);\nexit;\n'
    fails = "BEGIN { *CORE::GLOBAL::ioctl = sub (*$$) { $! = 5; undef } }\n"
    probe = fails + PERL_PROBE.replace(call, ask + call)
    done = subprocess.run(["perl", "-e", probe], capture_output=True, text=True, check=True)
    assert done.stdout.count("blind_drive") == 1
    assert "found" not in done.stdout
