"""The suite of over-provisioning on simulated drives: spare must not make writes slower."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

PARTS = {72, 85, 93}
#: One that conditions drives, and measures in visits.
VISITS = """
    acceptance = false
    fill = { passes = 1, bs = "1m" }
    precondition = { step = "10 min", limit = "2 h", of = "drives" }
    visits = { cell = "20 s", ramp = "1 s", cells = [2, 2, 2, 3], refresh = "0 s" }
"""


def run(inner: Inner, *more: str) -> pytest.RunResult:
    return inner.run("--ssd-devices=lab:2", "--ssd-spec=default", *more, inner.suite("over_provisioning"))


def gains(inner: Inner) -> dict[str, str]:
    """Outcome of each share of spare."""
    found = inner.outcomes().items()
    return {name.rpartition("-")[2].rstrip("]"): case for name, case in found if name.startswith("test_gain")}


@pytest.mark.parametrize("protocol", ["quick", "brief.toml"])
def test_each_part_has_a_fill_of_its_own_that_writes_nothing_else(inner: Inner, protocol: str) -> None:
    (inner.pytester.path / "brief.toml").write_text(textwrap.dedent(VISITS))
    result = run(inner, f"--ssd-protocol={protocol}")
    assert result.ret == 0, result.outlines[-30:]
    assert {each.get("region_percent") for each in inner.records("filled")} == {None, *PARTS}
    patterns = Counter(str(each["pattern"]) for each in inner.records("conditioned"))
    assert patterns == Counter(["random", *(f"random_reg{part}" for part in PARTS)])
    assert gains(inner) == dict.fromkeys(("spare7", "spare15", "spare28"), "passed")
    # Nothing is promised of it, so it was not read.
    assert {case for name, case in inner.outcomes().items() if "amplification" in name} == {"skipped"}


def test_drives_that_get_slower_with_spare_fail(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_WEAK", "region_percent==72 speed=0.5")
    run(inner)
    assert gains(inner) == {"spare7": "passed", "spare15": "passed", "spare28": "failure"}


def test_a_promised_gain_is_judged(inner: Inner) -> None:
    """These drives gain nothing, of which a spec promises half as much again."""
    gain = promise(claim="spare_gain", workload="randwrite_4k_reg72_qd32", at_least=1.5)
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + gain)
    inner.run("--ssd-devices=lab:2", "--ssd-spec=acme.toml", "-k", "gain", inner.suite("over_provisioning"))
    assert gains(inner)["spare28"] == "failure"


def test_drives_that_were_not_purged_have_no_spare(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_LEFT", "SSDQ0002=purge")
    run(inner, "-k", "gain")
    assert gains(inner) == dict.fromkeys(("spare7", "spare15", "spare28"), "error")
    assert not inner.records("verdict")
