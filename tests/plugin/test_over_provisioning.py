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


def outcomes(inner: Inner, test: str) -> dict[str, str]:
    return {name.partition("-")[2]: case for name, case in inner.outcomes().items() if name.startswith(test)}


@pytest.mark.parametrize("protocol", ["quick", "brief.toml"])
def test_each_part_has_a_fill_of_its_own_that_writes_nothing_else(inner: Inner, protocol: str) -> None:
    (inner.pytester.path / "brief.toml").write_text(textwrap.dedent(VISITS))
    result = run(inner, f"--ssd-protocol={protocol}")
    assert result.ret == 0, result.outlines[-30:]
    assert {each.get("region_percent") for each in inner.records("filled")} == {None, *PARTS}
    patterns = Counter(str(each["pattern"]) for each in inner.records("conditioned"))
    assert patterns == Counter(["random", *(f"random_reg{part}" for part in PARTS)])
    assert set(outcomes(inner, "test_steady_iops").values()) == {"passed", "skipped"}
    assert Counter(outcomes(inner, "test_p99").values())["passed"] == len(PARTS)
    # Nothing is promised of it, so it was not read.
    assert set(outcomes(inner, "test_write_amplification").values()) == {"skipped"}


def test_drives_that_get_slower_with_spare_fail(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_WEAK", "region_percent==72 speed=0.5")
    run(inner)
    found = outcomes(inner, "test_steady_iops")
    assert {name: each for name, each in found.items() if each != "skipped"} == {
        "randwrite_4k_reg72_qd32]": "failure",
        "randwrite_4k_reg85_qd32]": "passed",
        "randwrite_4k_reg93_qd32]": "passed",
    }


def test_a_promised_gain_is_judged(inner: Inner) -> None:
    """These drives gain nothing, of which a spec promises half as much again."""
    gain = promise(
        claim="steady_iops", workload="randwrite_4k_reg72_qd32", relative_to="randwrite_4k_qd32", at_least="150 %"
    )
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + gain)
    inner.run("--ssd-devices=lab:2", "--ssd-spec=acme.toml", "-k", "steady_iops", inner.suite("over_provisioning"))
    assert outcomes(inner, "test_steady_iops")["randwrite_4k_reg72_qd32]"] == "failure"
