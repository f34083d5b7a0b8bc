from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator.simulated_content import superblock

from pytest_ssdqual.rig.drives.topology import plain_uuid
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.guard.label import HEAD_BYTES, of_array, of_drive
from pytest_ssdqual.rig.guard.sampling import PAGE_BYTES
from pytest_ssdqual.rig.machine.machine import Completed, RigError

UUID, OTHER = "3aaa012229827cfa5331ad66ca767371", "00000000000000000000000000000001"
OFFSET, CHUNK = 1 << 20, 64 << 10
LABEL = label.page(of_array(UUID))
BLANK = bytes(CHUNK)
DATA = bytes(range(256)) * (CHUNK // 256)
FILE_SYSTEM = bytes(1024) + b"\x53\xef" + bytes(CHUNK - 1026)


def holding(heads: Mapping[str, bytes], first: bytes = superblock(UUID)) -> ScriptedMachine:
    """Drives with what is behind the data offset of each."""

    def read(argv: tuple[str, ...]) -> Completed:
        path, offset, size = argv[4], int(argv[5]), int(argv[6])
        text = first if offset == PAGE_BYTES else heads[path]
        return replace(completed(argv), stdout=gzip.compress(text[:size]))

    return ScriptedMachine().on("sh", "-c", label.RAW, answer=read)


def used(*heads: bytes, ours: tuple[str, ...] = (UUID,), first: bytes = superblock(UUID)) -> list[str]:
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
    assert used(labelled(label.page(of_array(OTHER))), ours=(UUID, OTHER)) == []


def test_level_without_chunks_has_the_whole_head() -> None:
    first = superblock(UUID, chunk_bytes=0)
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
