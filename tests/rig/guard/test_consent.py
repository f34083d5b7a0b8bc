from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from support.builders.consents import of, unmarked, wiped

from pytest_ssdqual.rig.drives.topology import BlindSpot, Match, Node, Signature, Source, Topology, Use, UseKind
from pytest_ssdqual.rig.guard import refusals
from pytest_ssdqual.rig.guard.consent import (
    DATA,
    NAMED,
    UNREADABLE,
    Consent,
    Risk,
    content,
    foreign,
    missing,
    options,
)

OURS = "3aaa012229827cfa5331ad66ca767371"
BLKID = "3aaa0122-2982-7cfa-5331-ad66ca767371"
OTHER = "00112233-4455-6677-8899-aabbccddeeff"


def drive(kname: str = "sda", *signatures: Signature, **more: str) -> Node:
    plain = {"serial": "S1", **more}
    return Node(kname, f"/dev/{kname}", "8:0", "disk", 480, signatures=signatures, **plain)  # type: ignore[arg-type]


def said(*nodes: Node, given: Collection[Consent] = (), free: bool = True) -> list[str]:
    topology = Topology({node.kname: node for node in nodes})
    return [unmarked(each.reason) for each in missing(topology, nodes, given, {OURS}, free=free)]


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
    assert text.index("linux_raid_member") < text.index("gpt")


def test_consent_is_offered_for_each_path_by_its_serial() -> None:
    nodes = drive("sda"), drive("sdb", Signature("ext4"), serial="S, 2"), drive("sdc", Signature("xfs"), serial="S3")
    (text,) = said(*nodes)
    assert text.endswith("add '--ssd-wipe=S\\, 2,S3'")
    (left,) = said(*nodes, given=wiped("S, 2"))
    assert left.endswith("add --ssd-wipe=S3")
    assert "ext4" not in left
    assert said(*nodes, given=wiped("S, 2", "S3")) == []
    (in_use,) = said(*nodes, free=False)
    assert all(each in in_use for each in ("(ext4) on /dev/sdb", "(xfs) on /dev/sdc"))
    assert "--ssd-wipe" not in in_use


def test_nothing_is_offered_that_would_not_help() -> None:
    (text,) = said(drive("sda", Signature("ext4")), drive("sdb", Signature("xfs"), serial=""))
    assert text.endswith("on /dev/sdb")


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


def listed(node: Node) -> tuple[Consent, ...]:
    """The consents that the refusal of a drive offers."""
    return tuple(
        each for found in missing(Topology({"sda": node}), [node], (), {OURS}, free=True) for each in found.consents
    )


RISKY = {
    Risk.CONTENT: drive("sda", Signature("ext4", OTHER)),
    Risk.SHARED: replace(drive(), uses=(Use(UseKind.MULTIPORT),)),
    Risk.CONFIGURED: drive("sda", Signature(NAMED, "/etc/fstab")),
    Risk.UNREADABLE: drive("sda", Signature(UNREADABLE)),
}


@pytest.mark.parametrize("risk", Risk)
def test_each_risk_has_a_consent_of_its_own(risk: Risk) -> None:
    (consent,) = listed(RISKY[risk])
    assert (consent.risk, consent.name) == (risk, "S1")
    assert said(RISKY[risk], given=of([risk], "S1")) == []
    others = of([other for other in Risk if other is not risk], "S1")
    assert said(RISKY[risk], given=others) == said(RISKY[risk])


def test_consent_with_a_mark_is_for_the_listed_content_alone() -> None:
    given = listed(drive("sda", Signature("gpt"), Signature("ext4", OTHER)))
    assert said(drive("sda", Signature("ext4", OTHER), Signature("gpt")), given=given) == []
    assert said(drive("sda"), given=given) == [], "nothing is destroyed"
    for other in (Signature("ext4", BLKID), Signature("xfs", OTHER), Signature(DATA)):
        (text,) = said(drive("sda", Signature("gpt"), other), given=given)
        assert "--ssd-wipe=S1 was given" in text
    assert said(drive("sda", Signature(DATA)), given=listed(drive("sda", Signature(DATA)))) == []


def test_content_on_an_array_needs_a_consent_without_a_mark() -> None:
    """Stopping the array changes what is found, while the consent has to last."""
    array = Node("md1", "/dev/md1", "9:1", "raid1", 480, signatures=(Signature("ext4", OTHER),))
    disk = replace(drive("sda"), holders=("md1",))
    (found,) = missing(Topology({"sda": disk, "md1": array}), [disk], (), {OURS}, free=True)
    assert found.consents == (Consent(Risk.CONTENT, "S1"),)


def test_all_options_of_several_refusals_are_in_the_last_line() -> None:
    nodes = {"sda": drive("sda", Signature("ext4")), "sdb": replace(RISKY[Risk.SHARED], kname="sdb", serial="S2")}
    topology = Topology(nodes, candidates=frozenset(nodes), blind=(BlindSpot(Source.EXPORTS, "why"),))
    matches = [Match(node.path, node.path, kname) for kname, node in nodes.items()]
    refused = refusals.refusals(topology, matches)
    *_, last = unmarked(refusals.explain(refused)).splitlines()
    assert last.partition(": ")[2] == "--ssd-wipe=S1 --ssd-shared=S2 --ssd-unchecked=exports"
    given = [consent for each in refused for consent in each.consents]
    assert refusals.refusals(topology, matches, given, unchecked={Source.EXPORTS}) == ()
    (left,) = refusals.refusals(topology, matches, given, unchecked={Source.OPENERS})
    assert left.blind == (Source.EXPORTS,)


@drawn(
    st.text(st.characters(exclude_characters="\\", categories=("L", "P", "N")), min_size=1),
    st.from_regex("[0-9a-f]{8}", fullmatch=True),
)
def test_options_are_understood_as_they_are_printed(name: str, mark: str) -> None:
    consents = Consent(Risk.CONTENT, name, mark), Consent(Risk.CONTENT, name), Consent(Risk.SHARED, name)
    for word in shlex.split(options(consents)):
        option, _, value = word.partition("=")
        risk = Risk(option.removeprefix("--ssd-"))
        assert Consent.parse(risk, value) == tuple(each for each in consents if each.risk is risk)
