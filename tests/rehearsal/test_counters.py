"""The kernel's count of what a drive was sent moves with every write, and with nothing else."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest
from support.lab.bare_drives import MIB, Bench

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings, Bitmap
from pytest_ssdqual.rig.drives.survey import survey
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.health import write_counters
from pytest_ssdqual.rig.health.write_counters import Written
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.purge import nvme

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

#: What ``md.create`` adds to a member at most. ``mdadm --create --assume-clean`` writes 5,632 bytes, with
#: an internal bitmap 15,872 on a drive of 256 MiB and up to 128 KiB more on large ones; the label is the first MiB of
#: the array.
CREATING_BYTES, CREATING_BITMAP_BYTES = label.HEAD_BYTES + (32 << 10), label.HEAD_BYTES + (192 << 10)


def look(here: Bench) -> dict[str, Written]:
    return write_counters.read(here.machine, here.drives, smart=False)


def sent(before: dict[str, Written], now: dict[str, Written]) -> list[int | None]:
    return [write_counters.written_since(before[name], now[name]) for name in before]


def test_a_write_is_counted_to_the_byte_where_it_was_made(here: Bench) -> None:
    before = look(here)
    here.write(here.drives[0].path, "4k", 3)
    here.write(here.drives[2].path, "512", 1, at=100)
    now = look(here)
    assert sent(before, now) == [12288, 0, 512, 0]
    (sentence,) = write_counters.unchanged(before, now, 512)
    assert sentence.startswith(here.drives[0].identity)
    assert "12,288 bytes" in sentence


def test_discards_and_zeroes_are_counted(here: Bench) -> None:
    before = look(here)
    here.machine.run(["blkdiscard", here.drives[1].path])
    here.machine.run(["blkdiscard", "--zeroout", "--length", str(MIB), here.drives[3].path])
    now = look(here)
    assert sent(before, now) == [0, here.drives[1].size_bytes, 0, MIB]


def test_reading_surveying_and_formatting_are_not(here: Bench) -> None:
    """A format goes past the block layer: whoever relies on the count must look at what the drive holds, too."""
    before = look(here)
    here.machine.run(["dd", f"if={here.drives[0].path}", "of=/dev/null", "bs=1M", "count=8"])
    survey(here.machine, [drive.kname for drive in here.drives])
    nvme.format_namespace(here.machine, here.drives[1])
    assert write_counters.unchanged(before, look(here), 0) == []


def test_the_drive_s_own_figure_is_there(here: Bench) -> None:
    before = write_counters.read(here.machine, here.drives)[here.drives[0].identity]
    here.write(here.drives[0].path, "1M", 2)
    now = write_counters.read(here.machine, here.drives)[here.drives[0].identity]
    assert now.boot_id == before.boot_id
    assert now.appearance == before.appearance > 0
    # 2 MiB are four units of 512,000 bytes and a bit, rounded up before and after.
    assert now.host_bytes is not None
    assert before.host_bytes is not None
    assert 4 <= (now.host_bytes - before.host_bytes) / 512_000 <= 5
    assert write_counters.written_since(replace(before, boot_id="another"), now) == now.host_bytes - before.host_bytes


def test_a_replugged_drive_counts_anew_and_that_is_told(here: Bench) -> None:
    name = here.drives[3].identity
    here.write(here.drives[3].path, "4k", 1)
    before = look(here)
    here.lab.vm.pull("SSDQ0004")
    here.lab.vm.plug("SSDQ0004")
    here.machine.run(["udevadm", "settle"])
    here.machine.run(["timeout", "60", "sh", "-c", f"until [ -b {here.drives[3].path} ]; do sleep 0.1; done"])
    now = look(here)
    assert now[name].appearance > before[name].appearance
    assert write_counters.written_since(before[name], now[name]) is None
    (sentence,) = write_counters.unchanged(before, now, MIB)
    assert sentence.startswith(f"cannot determine whether {name}")


@pytest.mark.every_release
@pytest.mark.parametrize(("name", "bitmap"), [("raid1x2", "internal"), ("raid5x3", "none"), ("raid6x4", "internal")])
def test_what_md_adds_when_an_array_is_built_and_taken_down(here: Bench, name: str, bitmap: Bitmap) -> None:
    geometry = Geometry.parse(name)
    members = here.drives[: geometry.width]
    settings = replace(ArraySettings(), bitmap=bitmap)
    uuid = ":".join(secrets.token_hex(4) for _ in range(4))
    path = mdadm.free_path(here.machine)
    before = look(here)
    array = mdadm.create(here.machine, geometry, members, settings, path=path, uuid=uuid, zeroed=True)
    try:
        built = look(here)
        here.write(array.path, "64k", 4)
        written = look(here)
    finally:
        left = mdadm.stop(here.machine, path, [drive.path for drive in members], uuid)
    assert left == ()
    stopped = look(here)
    creating = CREATING_BITMAP_BYTES if bitmap == "internal" else CREATING_BYTES
    assert all(0 < (each or 0) <= creating for each in sent(before, built)[: geometry.width])
    assert write_counters.unchanged(built, written, write_counters.STOPPING_BYTES) != []
    assert all(
        4096 <= (each or 0) <= write_counters.STOPPING_BYTES for each in sent(written, stopped)[: geometry.width]
    )
    assert sent(stopped, look(here)) == [0, 0, 0, 0]
