from __future__ import annotations

import pytest

from pytest_ssdqual.rig.drives.topology import Node, Signature, Topology
from pytest_ssdqual.rig.guard.consent import content, foreign, missing

OURS = "3aaa012229827cfa5331ad66ca767371"
BLKID = "3aaa0122-2982-7cfa-5331-ad66ca767371"
OTHER = "00112233-4455-6677-8899-aabbccddeeff"


def drive(kname: str = "sda", *signatures: Signature, **more: str) -> Node:
    plain = {"serial": "S1", **more}
    return Node(kname, f"/dev/{kname}", "8:0", "disk", 480, signatures=signatures, **plain)  # type: ignore[arg-type]


def said(*nodes: Node, wipe: tuple[str, ...] = (), free: bool = True) -> list[str]:
    topology = Topology({node.kname: node for node in nodes})
    return list(missing(topology, nodes, wipe, {OURS}, free=free))


@pytest.mark.parametrize(
    ("listed", "probed", "is_ours"),
    [
        (BLKID, BLKID, True),
        (BLKID, "", True),
        ("", BLKID, True),
        (BLKID, OTHER, False),  # udev's database is stale
        (OTHER, BLKID, False),
        ("", "", False),
    ],
)
def test_a_superblock_is_ours_if_every_source_says_so(listed: str, probed: str, is_ours: bool) -> None:
    node = drive("sda", Signature("linux_raid_member", probed), fstype="linux_raid_member", uuid=listed)
    assert (said(node) == []) == is_ours


def test_what_is_beside_it_is_not() -> None:
    (text,) = said(drive("sda", Signature("linux_raid_member", BLKID), Signature("gpt"), uuid=BLKID))
    assert text.startswith("carries a signature (linux_raid_member), a signature (gpt); if that")


def test_consent_is_offered_for_each_path_with_content_by_its_own_serial() -> None:
    nodes = drive("sda"), drive("sdb", Signature("ext4"), serial="S, 2"), drive("sdc", Signature("xfs"), serial="S3")
    (text,) = said(*nodes)
    assert text.endswith("if that may be destroyed, add '--ssd-wipe=S\\, 2' --ssd-wipe=S3")
    assert said(*nodes, wipe=("S, 2",)) == [
        "carries a signature (xfs) on /dev/sdc; if that may be destroyed, add --ssd-wipe=S3"
    ]
    assert said(*nodes, wipe=("S, 2", "S3")) == []
    assert said(*nodes, free=False) == ["carries a signature (ext4) on /dev/sdb, a signature (xfs) on /dev/sdc"]


def test_nothing_is_offered_that_would_not_help() -> None:
    assert said(drive("sda", Signature("ext4")), drive("sdb", Signature("xfs"), serial="")) == [
        "carries a signature (ext4), a signature (xfs) on /dev/sdb"
    ]


def test_content_is_what_was_probed() -> None:
    topology = Topology({"sda": drive("sda", Signature("ext4", OTHER))})
    assert content(topology, "sda") == {Signature("ext4", OTHER)}
    assert content(topology, "sdb") == frozenset()


def test_only_superblocks_of_ours_are_not_foreign() -> None:
    found = [Signature("linux_raid_member", BLKID), Signature("ext4", BLKID), Signature("linux_raid_member", OTHER)]
    assert foreign(found, {"3AAA0122:29827CFA:5331AD66:CA767371"}) == [
        "a signature (ext4)",
        "a signature (linux_raid_member)",
    ]
    assert len(foreign(found, ())) == 3
