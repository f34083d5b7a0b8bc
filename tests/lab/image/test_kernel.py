from __future__ import annotations

import gzip
import lzma
import shutil
import struct
import subprocess

import pytest

from pytest_ssdqual.lab.image.kernel import alias_table, dependency_table, has_pvh_entry, inflate, load_order, vmlinux

ROOT = "usr/lib/modules/6.1/"


def module(depends: str = "", *aliases: str) -> bytes:
    info = [f"depends={depends}", *(f"alias={alias}" for alias in aliases), "vermagic=6.1"]
    return b"\x7fELF\0" + b"".join(entry.encode() + b"\0" for entry in info)


PACKED = {
    f"{ROOT}kernel/drivers/md/raid456.ko": module("async-raid6-recov,md-mod", "md-level-5", "md-raid5"),
    f"{ROOT}kernel/drivers/md/md-mod.ko.xz": lzma.compress(module("", "md")),
    f"{ROOT}kernel/crypto/async_raid6_recov.ko.gz": gzip.compress(module("xor")),
    f"{ROOT}kernel/crypto/xor.ko": module(),
    f"{ROOT}kernel/drivers/net/e1000.ko": module(),
    f"{ROOT}modules.order": b"",
}


def test_modules_are_loaded_after_what_they_need_and_no_others() -> None:
    order = [one.name for one in load_order(PACKED, ["raid456"])]
    assert sorted(order) == ["async_raid6_recov", "md_mod", "raid456", "xor"]
    assert order.index("xor") < order.index("async_raid6_recov") < order.index("raid456") == 3


def test_what_the_kernel_has_built_in_is_left_out() -> None:
    assert load_order(PACKED, ["nvme", "xor"]) == load_order(PACKED, ["xor"])


def test_modules_are_kept_uncompressed() -> None:
    (md,) = load_order(PACKED, ["md-mod"])
    assert md.path == f"{ROOT}kernel/drivers/md/md-mod.ko"
    assert md.image == module("", "md")


def test_tables_for_modprobe() -> None:
    modules = load_order(PACKED, ["raid456"])
    assert b"alias md-level-5 raid456\n" in alias_table(modules)
    lines = dependency_table(modules, ROOT).decode().splitlines()
    assert "kernel/crypto/xor.ko:" in lines
    needed = ("kernel/crypto/async_raid6_recov.ko", "kernel/crypto/xor.ko", "kernel/drivers/md/md-mod.ko")
    assert f"kernel/drivers/md/raid456.ko: {' '.join(needed)}" in lines


def elf(note_type: int, owner: bytes = b"Xen\0") -> bytes:
    note = struct.pack("<III", len(owner), 8, note_type) + owner + bytes(8)
    header = b"\x7fELF\x02\x01\x01".ljust(32, b"\0") + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 1)
    program = struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4)
    return header.ljust(64, b"\0") + program + note


def bz_image(payload: bytes) -> bytes:
    """Setup header, one setup sector, the payload 16 bytes into the protected-mode part."""
    image = bytearray(1024)
    image[0x1F1] = 1
    struct.pack_into("<II", image, 0x248, 16, len(payload))
    return bytes(image) + bytes(16) + payload + bytes(64)


SIZE = bytes(4)


def test_a_kernel_that_can_be_started_directly_is_unpacked() -> None:
    assert vmlinux(bz_image(lzma.compress(elf(18)) + SIZE)) == elf(18)
    assert vmlinux(bz_image(gzip.compress(elf(18)))) == elf(18)


@pytest.mark.parametrize("tool", ["zstd", "lz4"])
def test_kernels_of_other_compressions(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    argv = {"zstd": ["zstd", "-c"], "lz4": ["lz4", "-l", "-c"]}[tool]
    packed = subprocess.run(argv, input=elf(18), capture_output=True, check=True).stdout
    assert vmlinux(bz_image(packed + SIZE)) == elf(18)


def test_a_kernel_without_the_entry_point_stays_packed() -> None:
    image = bz_image(gzip.compress(elf(17)))
    assert vmlinux(image) == image


def test_a_damaged_or_unknown_payload_stays_packed() -> None:
    for payload in (b"\x1f\x8bnonsense", b"\xfd7zXZnonsense", b"whatever"):
        image = bz_image(payload + SIZE)
        assert vmlinux(image) == image


def test_a_missing_tool_leaves_the_kernel_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    image = bz_image(b"\x28\xb5\x2f\xfd" + bytes(16))
    assert vmlinux(image) == image
    with pytest.raises(FileNotFoundError, match="lz4"):
        inflate(b"\x02\x21\x4c\x18")


def test_the_note_must_be_xens() -> None:
    assert has_pvh_entry(elf(18))
    assert not has_pvh_entry(elf(18, b"GNU\0"))
    assert not has_pvh_entry(b"MZ")
