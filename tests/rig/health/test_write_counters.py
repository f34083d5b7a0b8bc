from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.drives import named
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health import health
from pytest_ssdqual.rig.health.write_counters import SCRIPT, Written, read, unchanged, written_since
from pytest_ssdqual.rig.machine.machine import Completed, MachineLost, RigError

BOOT = "d81e9a8b-eae8-4da3-8801-991cb446e1d3"
#: /sys/block/nvme0n1/stat of the lab (Linux 6.1) after 4 MiB were written, and of a kernel before 4.18.
STAT = "      98        0     4192       35        8        0     8192       35        0       60       71        3        0     1024        0        0        0"  # noqa: E501
OLD_STAT = "98 0 4192 35 8 0 8192 35 0 60 71"
SMART = (Path(__file__).parents[2] / "data" / "smartctl" / "qemu-nvme-7.3.json").read_text()
NOW = Written(BOOT, 2, 8192, 1024, 512_000_000)

counts = st.integers(0, 1 << 50)
looks = st.builds(Written, st.sampled_from(["a", "b"]), st.integers(0, 3), counts, counts, st.none() | counts)


def drive(kname: str = "nvme0n1") -> Drive:
    return named(kname, f"S-{kname}")


def machine(*lines: str, boot: str = f"boot {BOOT}") -> ScriptedMachine:
    here = ScriptedMachine().on("sh", "-c", SCRIPT, answer="\n".join((boot, *lines)) + "\n")
    return here.on("sh", "-c", health.SCRIPT, answer=lambda argv: f"{SMART}\n" * len(argv[4::2]))


def test_all_drives_are_counted_by_one_command() -> None:
    here = machine(f"sda 7 {OLD_STAT}", f"nvme0n1 2 {STAT}")
    found = read(here, [drive(), drive("sda")], smart=False)
    assert found == {"S-nvme0n1": Written(BOOT, 2, 8192, 1024, None), "S-sda": Written(BOOT, 7, 8192, 0, None)}
    assert here.asked == [("sh", "-c", SCRIPT, "counters", "nvme0n1", "sda")]
    here.asked.clear()
    units = json.loads(SMART)["nvme_smart_health_information_log"]["data_units_written"]
    assert read(here, [drive()])["S-nvme0n1"].host_bytes == units * 512_000
    assert len(here.asked) == 2, "the drives' own figures take another command"
    assert read(here, []) == {}
    assert len(here.asked) == 2


@pytest.mark.parametrize("answer", [completed(["sh"], status=127), "", "{}\n"])
def test_a_drive_that_keeps_no_figures_is_counted_all_the_same(answer: str | Completed) -> None:
    here = machine(f"nvme0n1 2 {STAT}").on("sh", "-c", health.SCRIPT, answer=answer)
    assert read(here, [drive()])["S-nvme0n1"] == Written(BOOT, 2, 8192, 1024, None)


def test_a_machine_that_is_lost_is_no_matter_of_figures() -> None:
    here = machine(f"nvme0n1 2 {STAT}").on("sh", "-c", health.SCRIPT, answer=MachineLost("it is gone"))
    with pytest.raises(MachineLost):
        read(here, [drive()])


@pytest.mark.parametrize(
    "here", [machine(), machine(f"nvme1n1 2 {STAT}"), machine(f"nvme0n1 2 {STAT}", boot="boot"), machine(boot="")]
)
def test_what_the_kernel_does_not_say_is_not_made_up(here: ScriptedMachine) -> None:
    with pytest.raises(RigError, match="counters for /dev/nvme0n1"):
        read(here, [drive()], smart=False)


def block(place: Path, name: str, stat: str, diskseq: str | None = None) -> None:
    (place / "block" / name).mkdir(parents=True)
    (place / "block" / name / "stat").write_text(stat + "\n")
    if diskseq is not None:
        (place / "block" / name / "diskseq").write_text(diskseq + "\n")


def ran_in(place: Path) -> ScriptedMachine:
    """Runs the script for real, on a /sys of our own."""
    (place / "boot_id").write_text(BOOT + "\n")
    script = SCRIPT.replace("/sys/block", str(place / "block"))
    script = script.replace("/proc/sys/kernel/random/boot_id", str(place / "boot_id"))

    def answer(argv: tuple[str, ...]) -> str:
        return subprocess.run(["sh", "-c", script, *argv[3:]], capture_output=True, text=True, check=True).stdout

    return ScriptedMachine().on("sh", "-c", SCRIPT, answer=answer)


@pytest.mark.parametrize(("head", "paths", "sectors"), [(0, (3, 4), 7), (7, (3, 4), 7), (7, (), 7), (0, (5,), 5)])
def test_a_drive_with_several_paths_is_counted_once(
    tmp_path: Path, head: int, paths: tuple[int, ...], sectors: int
) -> None:
    block(tmp_path, "nvme2n1", f"0 0 0 0 0 0 {head} 0 0 0 0", "5")
    block(tmp_path, "nvme2n2", "0 0 0 0 0 0 999 0 0 0 0", "6")
    block(tmp_path, "nvme2c1n2", "0 0 0 0 0 0 999 0 0 0 0", "7")
    for number, path in enumerate(paths):
        block(tmp_path, f"nvme2c{number}n1", f"0 0 0 0 0 0 {path} 0 0 0 0", str(8 + number))
    assert read(ran_in(tmp_path), [drive("nvme2n1")], smart=False)["S-nvme2n1"] == Written(BOOT, 5, sectors, 0, None)


def test_the_script_reads_sysfs(tmp_path: Path) -> None:
    written = {
        "nvme0n1": (STAT, "2", Written(BOOT, 2, 8192, 1024, None)),
        "nvme0n10": ("0 0 0 0 0 0 5 0 0 0 0", "3", Written(BOOT, 3, 5, 0, None)),
        "sda": (OLD_STAT, None, Written(BOOT, 0, 8192, 0, None)),
        "cciss/c0d0": ("0 0 0 0 0 0 9 0 0 0 0", "4", Written(BOOT, 4, 9, 0, None)),
    }
    for kname, (stat, diskseq, _) in written.items():
        block(tmp_path, kname.replace("/", "!"), stat, diskseq)
    found = read(ran_in(tmp_path), list(map(drive, written)), smart=False)
    assert list(found.values()) == [counted for *_, counted in written.values()]
    with pytest.raises(RigError, match="no write counters"):
        read(ran_in(tmp_path), [drive("sdz")], smart=False)


@given(looks, st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_within_one_boot_it_is_exact(look: Written, sectors: int, discarded: int) -> None:
    now = replace(look, sectors=look.sectors + sectors, discarded_sectors=look.discarded_sectors + discarded)
    assert written_since(look, now) == (sectors + discarded) * 512


@pytest.mark.parametrize(
    "then",
    [
        replace(NOW, boot_id="another"),
        replace(NOW, appearance=1),
        replace(NOW, sectors=8193),  # it began anew, whatever else it says
        replace(NOW, discarded_sectors=1025),
    ],
)
def test_otherwise_it_is_the_drive_s_own_figure(then: Written) -> None:
    now = replace(NOW, host_bytes=512_512_000)
    assert written_since(then, now) == 512_000
    assert written_since(then, replace(NOW, host_bytes=None)) is None
    assert written_since(replace(then, host_bytes=None), NOW) is None
    assert written_since(then, replace(NOW, host_bytes=0)) is None  # an emulated drive forgets it with its power


REBOOTED = Written("another", 1, 0, 0, None)


@pytest.mark.parametrize(
    ("now", "allowance_bytes", "why"),
    [
        (NOW, 0, ""),
        (replace(NOW, sectors=NOW.sectors + 10), 0, "written to meanwhile: 5,120 bytes"),
        (replace(NOW, sectors=NOW.sectors + 10), 5119, "written to meanwhile: 5,120 bytes"),
        (replace(NOW, sectors=NOW.sectors + 10), 5120, ""),
        (replace(NOW, discarded_sectors=NOW.discarded_sectors + 2048), 4096, "1,048,576 bytes"),
        (REBOOTED, 1 << 60, "cannot determine"),
        (None, 1 << 60, "not among the drives"),
        # A drive's own figure goes up by a unit for little.
        *(
            (replace(REBOOTED, host_bytes=512_000_000 + units * 512_000), 8192, why)
            for units, why in ((0, ""), (1, ""), (2, "written to"), (131, "written to"))
        ),
    ],
)
def test_drives_are_unchanged_within_the_allowance(now: Written | None, allowance_bytes: int, why: str) -> None:
    reasons = unchanged({"S1": NOW, "S2": NOW}, {"S2": NOW, **({"S1": now} if now else {})}, allowance_bytes)
    assert len(reasons) == bool(why)
    assert all("S1" in reason and why in reason for reason in reasons)
