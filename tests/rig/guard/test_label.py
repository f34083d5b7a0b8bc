from __future__ import annotations

import gzip
import struct
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator.simulated_content import superblock

from pytest_ssdqual.rig.drives.fencing import REFUSED, Checked
from pytest_ssdqual.rig.drives.topology import Drive, plain_uuid
from pytest_ssdqual.rig.guard import label, sampling
from pytest_ssdqual.rig.guard.label import (
    HEAD_BYTES,
    MD_BITMAP,
    MD_SUPERBLOCK,
    UNUSED_LOG,
    is_owned,
    of_array,
    of_drive,
    owner_of,
    page,
)
from pytest_ssdqual.rig.guard.sampling import PAGE_BYTES, DeviceSample, SampledPage
from pytest_ssdqual.rig.machine import local
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, DriveRefused, RigError

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"
DRIVE = Drive("/dev/sdb", "sdb", "ACME", "S1", "0x5001", "1", 1 << 30, 512, 4096, False, "sata")


@given(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), min_size=1, max_size=256))
def test_a_label_names_its_owner(identity: str) -> None:
    data = page(of_drive(identity))
    assert len(data) == 4096
    assert data.startswith(b"pytest-ssdqual test data, may be overwritten\n")
    assert owner_of(data) == of_drive(identity)


@given(st.integers(0, 4095), st.integers(1, 255))
def test_a_label_with_any_other_byte_is_none(at: int, change: int) -> None:
    data = bytearray(page(of_drive("S1"), "0" * 32))
    data[at] ^= change
    assert owner_of(bytes(data)) == ""


def test_arrays_are_owners_by_their_uuid_in_any_spelling() -> None:
    assert of_array(UUID) == of_array(UUID.replace(":", "").upper()) != of_drive(UUID)


def sample(*pages: SampledPage, owner: str = of_drive("S1")) -> DeviceSample:
    return DeviceSample("/dev/sdb", 194, (SampledPage(0, "70797465", "00"), *pages), page(owner), 1 << 20)


SUPERBLOCK = SampledPage(4096, MD_SUPERBLOCK + "00" * 12, "00" * 16)
BITMAP = SampledPage(8192, MD_BITMAP + "00" * 12, "0200" * 8)
LOG = SampledPage(49152, "0800000000000000" * 2, UNUSED_LOG)


@pytest.mark.parametrize(
    ("pages", "ours"),
    [
        ((), True),
        ((SUPERBLOCK,), True),
        ((SUPERBLOCK, BITMAP, SampledPage(12288, "0200" * 8, "0200" * 8), LOG), True),
        ((BITMAP,), True),
        ((SampledPage(8192, MD_SUPERBLOCK + "00" * 12, "00" * 16),), False),
        ((BITMAP, SampledPage(16384, "0200" * 8, "0200" * 8)), False),
        ((SampledPage(4096, "0200" * 8, "0200" * 8),), False),
        ((SampledPage((1 << 20) - 4096, "4c41424f", "00" * 16),), False),
    ],
)
def test_only_md_may_write_behind_a_label(pages: tuple[SampledPage, ...], ours: bool) -> None:
    assert is_owned(sample(*pages), [of_drive("S1")]) is ours


def test_the_label_of_another_drive_is_content() -> None:
    assert not is_owned(sample(owner=of_drive("S2")), [of_drive("S1")])
    assert not is_owned(sample(), [])
    assert not is_owned(DeviceSample("/dev/sdb", 194), [""])


def test_drives_are_labelled_by_their_identity_and_alone() -> None:
    machine = ScriptedMachine()
    label.write_drives(machine, [DRIVE])
    assert machine.bound == [("alone", "/dev/sdb", ("sh", "-c"))]
    assert owner_of(machine.contents.pages["/dev/sdb"]) == of_drive("0x5001")
    label.write_array(machine, Checked("/dev/md100", 1 << 30), UUID)
    assert owner_of(machine.contents.pages["/dev/md100"]) == of_array(UUID)


def test_a_drive_that_takes_no_label_is_an_error() -> None:
    failed = completed(["sh"], status=1, stderr="dd: error writing '/dev/sdb': Input/output error")
    with pytest.raises(CommandFailed, match=r"serial S1\).*Input/output error$"):
        label.write_drives(ScriptedMachine().on("sh", "-c", label.SCRIPT, answer=failed), [DRIVE])
    refused = completed(["sh"], status=REFUSED, stderr="/dev/sdb: Device or resource busy")
    with pytest.raises(DriveRefused, match="labelled: /dev/sdb: Device"):
        label.write_drives(ScriptedMachine().on("sh", "-c", label.SCRIPT, answer=refused), [DRIVE])


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    image = tmp_path / "image"
    image.write_bytes(b"old" * (2 << 20))
    done = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no loop devices here")
    yield done.stdout.strip()
    subprocess.run(["losetup", "--detach", done.stdout.strip()], check=True)


def test_a_label_that_was_written_is_found_again(loop: str) -> None:
    """Through a real channel, bound to a real device; what is behind the first MiB stays."""
    machine = local.connect()
    try:
        size = 6 << 20
        (before,) = sampling.take(machine, {loop: size}).values()
        assert before.first_data == 0
        assert before.data_at is not None
        behind = Path(loop).read_bytes()[1 << 20 :]
        label.write_array(machine, Checked(loop, size), UUID)
        (after,) = sampling.take(machine, {loop: size}).values()
        with pytest.raises(DriveRefused, match="where 4096 were"):
            label.write_array(machine, Checked(loop, 4096), UUID)
    finally:
        machine.close()
    assert is_owned(after, [of_array(UUID)])
    assert Path(loop).read_bytes()[1 << 20 :] == behind


PLAIN, OTHER = "3aaa012229827cfa5331ad66ca767371", "00000000000000000000000000000001"
OFFSET, CHUNK = 1 << 20, 64 << 10
LABEL = label.page(of_array(PLAIN))
BLANK = bytes(CHUNK)
DATA = bytes(range(256)) * (CHUNK // 256)
FILE_SYSTEM = bytes(1024) + b"\x53\xef" + bytes(CHUNK - 1026)


def holding(heads: Mapping[str, bytes], first: bytes = superblock(PLAIN)) -> ScriptedMachine:
    """Drives with what is behind the data offset of each."""

    def read(argv: tuple[str, ...]) -> Completed:
        path, offset, size = argv[4], int(argv[5]), int(argv[6])
        text = first if offset == PAGE_BYTES else heads[path]
        return replace(completed(argv), stdout=gzip.compress(text[:size]))

    return ScriptedMachine().on("sh", "-c", label.RAW, answer=read)


def used(*heads: bytes, ours: tuple[str, ...] = (PLAIN,), first: bytes = superblock(PLAIN)) -> list[str]:
    paths = {f"/dev/sd{letter}": head for letter, head in zip("bcd", heads, strict=False)}
    return sorted(label.used(holding(paths, first), paths, ours))


def labelled(page: bytes = LABEL, size: int = CHUNK) -> bytes:
    return page.ljust(size, b"\0")


def test_array_with_its_label_on_one_member_is_ours() -> None:
    assert used(labelled(), BLANK, DATA) == []
    assert used(DATA, labelled()) == []


def test_array_without_a_label_is_ours_while_it_is_blank() -> None:
    assert used(BLANK, BLANK) == []
    assert used(BLANK, FILE_SYSTEM) == ["/dev/sdb", "/dev/sdc"]


@pytest.mark.parametrize(
    "head",
    [
        FILE_SYSTEM,
        labelled(label.page(of_array(OTHER))),
        labelled(label.page(of_drive("S1"))),
        labelled()[:-1] + b"x",
        labelled()[:-1],
        b"",
    ],
)
def test_array_whose_label_was_overwritten_is_somebodys(head: bytes) -> None:
    assert used(head, head) == ["/dev/sdb", "/dev/sdc"]


def test_reassembled_array_may_have_the_former_label() -> None:
    assert used(labelled(label.page(of_array(OTHER))), ours=(PLAIN, OTHER)) == []


def test_level_without_chunks_has_the_whole_head() -> None:
    first = superblock(PLAIN, chunk_bytes=0)
    assert used(labelled(size=HEAD_BYTES), first=first) == []
    assert used(labelled(size=HEAD_BYTES - 1) + b"x", first=first) == ["/dev/sdb"]


def test_superblock_that_is_gone_meanwhile_is_no_proof() -> None:
    assert used(labelled(), first=bytes(PAGE_BYTES)) == ["/dev/sdb"]


def test_answer_that_is_no_answer_is_an_error() -> None:
    machine = ScriptedMachine().on("sh", "-c", label.RAW, answer="command not found")
    with pytest.raises(RigError, match="/dev/sdb holds"):
        label.used(machine, ["/dev/sdb"], ())


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**31), st.integers(0, 2**31))
def test_superblock_is_read_as_md_writes_it(uuid: bytes, chunk: int, offset: int) -> None:
    page = bytearray(superblock(uuid.hex()))
    struct.pack_into("<I", page, 88, chunk)
    struct.pack_into("<Q", page, 128, offset)
    found = label.Superblock.parse(bytes(page))
    assert found == label.Superblock(uuid.hex(), 512 * offset, 512 * chunk)
    assert not any(uuid) or plain_uuid(found.uuid) == found.uuid
    assert label.Superblock.parse(bytes(page[:-1])) is None
