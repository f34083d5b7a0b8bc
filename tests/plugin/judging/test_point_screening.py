"""Screened runs on the simulated rig: which points are measured, which are predicted, and what has them measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.qual.spec import protocol

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    LOADS = [
        Workload("randread", "4k", 8), Workload("randrw", "4k", 8, 90), Workload("randrw", "4k", 8, 70),
        Workload("randwrite", "4k", 8),
    ]
    pytestmark = [pytest.mark.ssd_array("raid0", widths=[2, 3, 4, 5, 6]), pytest.mark.ssd_workload(*LOADS)]

    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict
"""
SCALING = """
    @pytest.mark.ssd_promise("scaling_deviation")
    def test_scaling(ssd_sweep, ssd_sla):
        verdict = ssd_sla.judge(ssd_sweep)
        assert verdict
"""
#: Of 20 points 6 are drawn, and 2 chosen unless they are among those.
SCREEN = '\n[screen]\ntolerance = "10 %"\noutside = "40 %"\nworst = 2\n'
DEVICES = "--ssd-devices=root@dut1:/dev/nvme*"
POINTS = 20


def promised(share: float) -> str:
    """Promise this share of what the drives of the simulator do, 300 IOPS each."""
    return PRODUCT + "".join(
        promise(claim="steady_iops", array=f"raid0x{width}", at_least=f"{share * 300 * width:.0f} IOPS")
        for width in range(2, 7)
    )


@pytest.fixture
def six(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Six drives, of which three quarters of what they do is promised, and a protocol that screens."""
    monkeypatch.setenv("SIMULATED_DRIVES", "6")
    folder = inner.pytester.path
    (folder / "ours.toml").write_text((protocol.toml.text("quick", protocol.FOLDER)) + SCREEN)
    inner.pytester.makepyfile(test_acme=SUITE)
    (folder / "acme.toml").write_text(promised(0.75) + promise(claim="scaling_deviation", at_most="20 %"))
    return inner


def run(inner: Inner, *args: str) -> pytest.RunResult:
    given = ("--ssd-protocol=ours.toml", "--ssd-spec=acme.toml", "-o", "ssd_members=true")
    return inner.run(DEVICES, *given, *args)


def measured(inner: Inner) -> list[str]:
    return [f"{each['geometry']} {each['workload']}" for each in inner.records("measured")]


def verdicts(inner: Inner, *, screened: bool) -> list[dict[str, Any]]:
    return [each for each in inner.records("verdict") if bool(each.get("screened")) is screened]


def test_most_points_are_predicted_and_marked(six: Inner) -> None:
    run(six)
    assert set(six.outcomes().values()) == {"passed"}
    (planned,) = six.records("screen_planned")
    (chosen,) = six.records("screen_chosen")
    (accepted,) = six.records("screen_accepted")
    (sweep,) = planned["sweeps"]  # type: ignore[attr-defined]
    wanted = {*sweep["sample"], *chosen["points"]}  # type: ignore[misc]
    assert len(sweep["points"]) == POINTS
    assert len(sweep["sample"]) == 6
    assert set(measured(six)) == wanted
    predicted = verdicts(six, screened=True)
    assert len(predicted) == POINTS - len(wanted) == accepted["screened"]
    assert all("PASS" in each["sentence"] and "predicted, not measured" in each["sentence"] for each in predicted)
    assert not any(each.get("raw") for each in predicted)
    assert not any("predicted" in each["sentence"] for each in verdicts(six, screened=False))
