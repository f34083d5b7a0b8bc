from __future__ import annotations

import pytest
from hypothesis import strategies as st

from pytest_ssdqual.rig.drives.topology import Drive, Node, Topology, is_same_firmware, plain_uuid
from pytest_ssdqual.rig.machine.machine import RigError

DRIVE = Drive("/dev/sdb", "sdb", "INTEL SSDSC2BB480G4", "BTWL1", "0x55cd", "D201", 480, 512, 4096, False, "sata")
texts = st.none() | st.text(min_size=1)
sizes = st.integers(0, 2**64)
drives = st.builds(
    Drive, size_bytes=sizes, logical_block_bytes=sizes, physical_block_bytes=sizes, queue_limit=st.none() | sizes,
    model=texts, serial=texts, wwn=texts, firmware=texts, transport=texts,
)  # fmt: skip


def test_a_drive_is_described_by_path_model_and_serial() -> None:
    assert all(each in DRIVE.describe() for each in ("/dev/sdb", "INTEL SSDSC2BB480G4", "BTWL1"))
    nameless = Drive("/dev/vdb", "vdb", None, None, None, None, 480, 512, 512, False, None)
    assert all(each in nameless.describe() for each in ("/dev/vdb", "unknown model", "no serial"))


def test_identity_is_never_a_path() -> None:
    assert DRIVE.identity == "0x55cd"
    assert Drive("/dev/sdb", "sdb", None, "S", None, None, 1, 1, 1, False, None).identity == "S"
    with pytest.raises(RigError, match="neither a WWN"):
        _ = Drive("/dev/vdb", "vdb", None, None, None, None, 480, 512, 512, False, None).identity


def test_a_node_as_a_drive() -> None:
    node = Node("sdb", "/dev/sdb", "8:16", "disk", 480, serial="S", wwn="W", logical_block_bytes=4096, read_only=True)
    assert Topology({"sdb": node}).drive("sdb") == Drive(
        "/dev/sdb", "sdb", None, "S", "W", None, 480, 4096, 512, False, None, read_only=True
    )
    with pytest.raises(KeyError):
        Topology({}).drive("sdb")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("540400WD", "540400WD", True),
        ("540400WD", "540500WD", False),
        ("00WD", "540500WD", True),
        ("BBF0", "580ABBF0", True),
        ("0WD", "540500WD", False),
        ("5405", "540500WD", False),
        ("00WD", "01WD", False),
        (None, None, True),
        ("", None, True),
        (None, "540500WD", False),
    ],
)
def test_firmware_by_the_end_that_inquiry_data_have(one: str | None, other: str | None, same: bool) -> None:
    assert is_same_firmware(one, other) is is_same_firmware(other, one) is same


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("3aaa0122:29827cfa:5331ad66:ca767371", "3aaa012229827cfa5331ad66ca767371"),
        ("3AAA0122-2982-7cfa-5331-ad66ca767371", "3aaa012229827cfa5331ad66ca767371"),
        ("00000000:00000000:00000000:00000000", None),
        ("BTWL", None),
        ("", None),
        (None, None),
    ],
)
def test_uuids_of_md_in_one_spelling(written: str | None, plain: str | None) -> None:
    assert plain_uuid(written) == plain
