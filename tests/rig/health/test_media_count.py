"""What drives count of their own writes to flash."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.drives import drive
from support.builders.strategies import seen, seen_drive
from support.fakes.scripted import ScriptedMachine
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.measured.environment import MediaCount
from pytest_ssdqual.rig.health import media_count
from pytest_ssdqual.rig.health.media_count import OCP_GUID, between, parse, read, with_growth

GIB = 1 << 30
#: Keys of Intel's log in nvme-cli's order; of each item the count is its number in units.
INTEL_KEYS = 0xAB, 0xAC, 0xAD, 0xB8, 0xC7, 0xE2, 0xE3, 0xE4, 0xEA, 0xF0, 0xF3, 0xF4, 0xF5
INTEL = b"".join(
    bytes([key, 0, 0, 100, 0]) + (1000 + number).to_bytes(6, "little") + b"\0" for number, key in enumerate(INTEL_KEYS)
).ljust(512, b"\0")


def ocp(written: int, guid: bytes = OCP_GUID) -> str:
    log = written.to_bytes(16, "little") + bytes(480) + guid
    return f"c0 {log.hex()}"


def attributes(**raw: int) -> str:
    table = [{"name": name, "raw": {"value": value}} for name, value in raw.items()]
    return json.dumps({"ata_smart_attributes": {"table": table}})


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (ocp(123_456_789_012_345), MediaCount(123_456_789_012_345)),
        (f"{ocp(77, bytes(16))}\nca {INTEL.hex()}", MediaCount(1011 * 32 * 2**20)),
        (f"c0 \nca {INTEL.hex()}", MediaCount(1011 * 32 * 2**20)),
        (attributes(Host_Writes_32MiB=5, NAND_Writes_32MiB=11), MediaCount(11 * 32 * 2**20)),
        (attributes(Lifetime_Writes_GiB=5, Flash_Writes_GiB=7), MediaCount(7 * GIB)),
        # A Crucial MX500: 0.46 million pages of its own beside 3.7 million of the host.
        (
            attributes(Host_Program_Page_Count=3_699_503, FTL_Program_Page_Count=461_048),
            MediaCount(4_160_551, 3_699_503),
        ),
        (attributes(Host_Program_Page_Count=9, Bckgnd_Program_Page_Cnt=0), MediaCount(9, 9)),
        # Nothing that identifies itself, no value, no unit, a half, and no answer.
        (ocp(77, bytes(16)), None),
        (f"c0 \nca {bytes(512).hex()}", None),
        (ocp(0), None),
        (ocp(2**128 - 1), None),
        (ocp(77)[:900], None),
        (attributes(NAND_Writes=7, Total_LBAs_Written=3), None),
        (attributes(Host_Program_Page_Count=9), None),
        ("c0 \nca ", None),
        ("c0 7?", None),
        ("[]", None),
        ("", None),
    ],
)  # fmt: skip
def test_only_what_identifies_itself_is_a_count(answer: str, count: MediaCount | None) -> None:
    assert parse(answer) == count


@given(st.text() | st.builds("c0 {}\nca {}".format, st.binary().map(bytes.hex), st.binary().map(bytes.hex)))
def test_any_answer_is_a_count_or_none(answer: str) -> None:
    found = parse(answer)
    assert found is None or found.written > 0


@given(st.integers(1, 10**15), st.integers(0, 10**9), st.sampled_from([1, 512_000, 32 << 20, GIB]))
def test_the_resolution_is_at_least_the_unit(before: int, more: int, unit: int) -> None:
    """A count of whole units may be off by one of them, whatever the unit is."""
    grown = between(MediaCount(before * unit), MediaCount((before + more) * unit))
    assert grown is not None
    assert (grown.written, grown.step % unit) == (more * unit, 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [(MediaCount(7), MediaCount(6)), (MediaCount(7), MediaCount(9, 5)), (MediaCount(7, 5), MediaCount(9))],
)
def test_a_count_that_is_another_one_has_no_growth(before: MediaCount, after: MediaCount) -> None:
    assert between(before, after) is None


def test_drives_without_a_count_are_not_asked_again() -> None:
    drives = [drive(0), drive(1)]
    first, second = (each.sysfs_name for each in drives)
    script = "sh", "-c", media_count.SCRIPT, "media"
    one, two = ((each.sysfs_name, each.path, each.smart_type) for each in drives)
    machine = ScriptedMachine(
        {
            (*script, *one, *two): f"=={first}\n{ocp(70)}\n=={second}\nc0 \nca \n",
        }
    )
    machine.on(*script, *one[:2], "auto", answer=f"=={first}\n{ocp(98)}\n")
    before = seen([seen_drive(each.name, None, None) for each in drives])
    after = with_growth(machine, drives, read(machine, drives), before)
    assert [each.media for each in after.drives] == [MediaCount(28, step=14), None]
    assert machine.asked[-1] == (*script, *one)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_asks_each_drive_for_its_own_log(tmp_path: Path, shell: str) -> None:
    """An OCP drive is asked once, one that refuses that log for Intel's, a SATA drive by smartctl."""
    (tmp_path / "ocp").write_bytes(bytes.fromhex(ocp(4711)[3:]))
    (tmp_path / "intel").write_bytes(INTEL)
    asked = tmp_path / "asked"
    programs = {
        "nvme": f"#!/bin/sh\necho $* >>{asked}\ncase $* in *nvme0n1*0xc0*) cat {tmp_path}/ocp;; *nvme1n1*0xca*) "
        f"cat {tmp_path}/intel;; *) exit 1;; esac\n",
        "smartctl": f"#!/bin/sh\necho '{attributes(NAND_Writes_1GiB=3)}'\n",
    }
    for name, program in programs.items():
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    words = [word for name in ("nvme0n1", "nvme1n1", "nvme2n1", "sda") for word in (name, f"/dev/{name}", "auto")]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    text = run_script(shell, media_count.SCRIPT, "media", *words, "sdb", "/dev/sdb", "none", env=env)
    answers = dict(part.partition("\n")[::2] for part in f"\n{text}".split("\n=="))
    counts = {name: parse(answers[name]) for name in ("nvme0n1", "nvme1n1", "nvme2n1", "sda", "sdb")}
    written = {name: count and count.written for name, count in counts.items()}
    assert written == {"nvme0n1": 4711, "nvme1n1": 1011 * 32 * 2**20, "nvme2n1": None, "sda": 3 * GIB, "sdb": None}
    assert [line.split()[1] for line in asked.read_text().splitlines()] == [
        "/dev/nvme0n1",
        *["/dev/nvme1n1"] * 2,
        *["/dev/nvme2n1"] * 2,
    ]
