"""Data that a rebuild damaged: a verdict with its evidence, in one whole sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.fakes.inner_session import Inner

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign import Campaign

LAB = ("--ssd-devices=lab:2", "degraded", "-k", "mirror_survives and raid1x2")
ABOUT = "data of raid1x2 after 1 of its members was rebuilt: "
#: Longer than what pytest shows of a value.
DAMAGE = "; ".join(f"the block at byte {each << 20} of /dev/md100 does not hold what was written" for each in range(3))


def test_intact_data_are_a_verdict(inner: Inner) -> None:
    inner.suite("degraded")
    inner.run(*LAB)
    assert list(inner.outcomes().values()) == ["passed"]
    (verdict,) = inner.records("verdict")
    assert (verdict["claim"], verdict["outcome"]) == ("damage_after_rebuild", "pass")
    assert str(verdict["sentence"]).startswith(f"{ABOUT}INTACT, ")


def test_damaged_data_fail_in_one_sentence(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Campaign.rebuild

    def damaging(campaign: Campaign, geometry: Geometry, workload: Workload) -> Rebuild:
        return replace(honest(campaign, geometry, workload), damage=DAMAGE, mismatches=8)

    monkeypatch.setattr(Campaign, "rebuild", damaging)
    inner.suite("degraded")
    inner.run(*LAB)
    (case,) = inner.cases().values()
    sentence = f"{ABOUT}DAMAGED, md's check found 8 mismatches; {DAMAGE}"
    assert (case.outcome, case.message) == ("failure", sentence)
    (verdict,) = inner.records("verdict")
    assert (verdict["outcome"], verdict["sentence"]) == ("fail", sentence)
    assert case.properties["ssd.damage_after_rebuild_count"] == "9"
