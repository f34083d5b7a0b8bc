"""Data that a rebuild damaged: a verdict with its evidence, in one whole sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.fakes.inner_session import Inner

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import toml
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


@pytest.mark.parametrize(("most", "limit", "outcome"), [("20 MB/s", 2e6, "pass"), ("20 GB/s", 2e9, "fail")])
def test_a_rebuild_is_judged_by_default_against_what_md_allows(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, most: str, limit: float, outcome: str
) -> None:
    """The simulated one writes 480 GB in 270 s, 1.8 GB/s."""
    monkeypatch.setenv("SIMULATED_MODEL", "ACME X")
    quick = toml.text("quick", "protocols")
    assert 'max_rate = "20 MB/s"' in quick
    (inner.pytester.path / "own.toml").write_text(quick.replace('max_rate = "20 MB/s"', f'max_rate = "{most}"'))
    given = ("--ssd-devices=/dev/nvme*", "--ssd-spec=default", "--ssd-protocol=own.toml", "--import-mode=importlib")
    inner.run(*given, inner.suite("degraded"), "-k", "rebuild_rate_of_a_raid5 and raid5x4")
    (verdict,) = inner.records("verdict")
    assert (verdict["outcome"], verdict["limit"]) == (outcome, pytest.approx(limit))
