"""What the wear of a run says about the drives' endurance is an observation beside their health."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

HEALTH = """

@pytest.mark.ssd_array("drive")
def test_drives_are_healthy(ssd_health):
    assert ssd_health
"""


@pytest.mark.parametrize(("trouble", "observed"), [("endurance:SSDQ0002", {"SSDQ0002"}), ("", set[str]())])
def test_wear_and_writes_of_a_run_are_a_remark(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, observed: set[str]
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    promises = promise(claim="steady_iops", at_least="1 IOPS")
    (inner.pytester.path / "acme.toml").write_text(f'{PRODUCT}\n[endurance]\ntbw = "14,000 TB"\n{promises}')
    inner.pytester.makepyfile(test_one=suite('"drive"', iops=("steady_iops", '"randwrite", "4k", 8')) + HEALTH)
    inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", "--ssd-protocol=quick").assert_outcomes(passed=2)
    (verdict,) = (record for record in inner.records("verdict") if record["claim"] == "drive_health")
    remarks = [remark for remark in verdict["remarks"] if "endurance" in remark]
    assert {remark.partition(":")[0] for remark in remarks} == observed
    assert all("14 PB" in remark for remark in remarks)
