from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.rig.drives import health
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.drives.write_counters import SCRIPT, Written, read, unchanged, written_since
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
    serial = f"S-{kname}"
    return Drive(f"/dev/{kname}", kname, "ACME", serial, None, None, 256 << 20, 512, 512, False, "nvme")


def machine(*lines: str, boot: str = f"boot {BOOT}") -> ScriptedMachine:
    here = ScriptedMachine().on("sh", "-c", SCRIPT, answer="\n".join((boot, *lines)) + "\n")
    return here.on("sh", "-c", health.SCRIPT, answer=lambda argv: f"{SMART}\n" * len(argv[4::2]))


def test_all_drives_are_counted_by_one_command() -> None:
    here = machine(f"sda 7 {OLD_STAT}", f"nvme0n1 2 {STAT}")
    found = read(here, [drive(), drive("sda")], smart=False)
    assert found == {
        "S-nvme0n1": Written(BOOT, 2, 8192, 1024, None),
        "S-sda": Written(BOOT, 7, 8192, 0, None),
    }
    assert here.asked == [("sh", "-c", SCRIPT, "counters", "nvme0n1", "sda")]


def test_with_the_drives_own_figures_it_takes_another() -> None:
    here = machine(f"nvme0n1 2 {STAT}")
    units = json.loads(SMART)["nvme_smart_health_information_log"]["data_units_written"]
    assert read(here, [drive()])["S-nvme0n1"].host_bytes == units * 512_000
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
    with pytest.raises(RigError, match=r"reports no write counters for /dev/nvme0n1 \(ACME, serial S-nvme0n1\)"):
        read(here, [drive()], smart=False)


def test_of_no_drives_nothing_is_asked() -> None:
    assert read(here := ScriptedMachine(), []) == {}
    assert here.asked == []


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


def test_the_script_reads_sysfs(tmp_path: Path) -> None:
    block(tmp_path, "nvme0n1", STAT, "2")
    block(tmp_path, "nvme0n10", "0 0 0 0 0 0 5 0 0 0 0", "3")
    block(tmp_path, "sda", OLD_STAT)
    block(tmp_path, "cciss!c0d0", "0 0 0 0 0 0 9 0 0 0 0", "4")
    found = read(ran_in(tmp_path), [drive("sda"), drive(), drive("cciss/c0d0"), drive("nvme0n10")], smart=False)
    assert list(found.values()) == [
        Written(BOOT, 0, 8192, 0, None),
        Written(BOOT, 2, 8192, 1024, None),
        Written(BOOT, 4, 9, 0, None),
        Written(BOOT, 3, 5, 0, None),
    ]


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


def test_a_drive_that_is_gone_is_not_counted(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="reports no write counters"):
        read(ran_in(tmp_path), [drive()], smart=False)


@given(looks)
def test_a_look_survives_the_journal(look: Written) -> None:
    assert from_plain(Written, json.loads(json.dumps(plain(look)))) == look


@pytest.mark.parametrize("wrong", [{"sectors": None}, {"sectors": "8192"}, {"appearance": True}, {"host_bytes": "1"}])
def test_a_record_of_something_else_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="this is no Written"):
        from_plain(Written, {**plain(NOW), **wrong})


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


def test_drives_that_nobody_wrote_to_are_unchanged() -> None:
    before = {"S1": NOW, "S2": replace(NOW, appearance=3)}
    assert unchanged(before, {**before, "S3": NOW}, 0) == []


@pytest.mark.parametrize(("allowance_bytes", "told"), [(0, True), (5119, True), (5120, False)])
def test_more_than_is_allowed_is_told(allowance_bytes: int, told: bool) -> None:
    now = {"S1": replace(NOW, sectors=NOW.sectors + 10), "S2": NOW}
    says = ["S1 was written to meanwhile: 5,120 bytes"] if told else []
    assert unchanged({"S1": NOW, "S2": NOW}, now, allowance_bytes) == says


def test_a_discard_changes_a_drive_too() -> None:
    now = {"S1": replace(NOW, discarded_sectors=NOW.discarded_sectors + 2048)}
    assert unchanged({"S1": NOW}, now, 4096) == ["S1 was written to meanwhile: 1,048,576 bytes"]


def test_what_cannot_be_told_is_not_taken_for_unchanged() -> None:
    rebooted = replace(NOW, boot_id="another", host_bytes=None)
    (sentence,) = unchanged({"S1": NOW}, {"S1": rebooted}, 1 << 60)
    assert sentence.startswith("cannot determine whether S1 was written to")
    assert unchanged({"S1": NOW}, {"S2": NOW}, 1 << 60) == ["S1 is not among the drives any more"]


@pytest.mark.parametrize(("units", "told"), [(0, False), (1, False), (2, True), (131, True)])
def test_a_drive_s_own_figure_goes_up_by_a_unit_for_little(units: int, told: bool) -> None:
    rebooted = Written("another", 1, 0, 0, NOW.host_bytes and NOW.host_bytes + units * 512_000)
    assert bool(unchanged({"S1": NOW}, {"S1": rebooted}, 8192)) is told
