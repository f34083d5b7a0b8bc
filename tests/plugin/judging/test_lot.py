"""Lots on a rig that was never there: accepted, rejected, skipped, and what cannot be judged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.sheet import PRODUCT, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(Workload("randread", "4k", 8))]

    @pytest.mark.ssd_promise("steady_iops")
    def test_lot(ssd_run, ssd_lot):
        verdict = ssd_lot.judge(ssd_run)
        assert verdict
"""
SPEC = PRODUCT + promise(claim="steady_iops", at_least="250 IOPS")
ARGS = ("--ssd-devices=lab:8", "--ssd-spec=acme.toml")
CASE = "test_lot[drivex8-randread_4k_qd8]"
#: By a tenth and less of one another, as drives of one lot are.
SPEEDS = (1.02, 0.98, 1.05, 1.0, 0.97, 1.03, 1.01, 0.99)


@pytest.fixture
def rig(inner: Inner) -> Inner:
    inner.pytester.makepyfile(test_one=SUITE)
    plan(inner, 'size = 40\naql = "1.5 %"')
    return inner


def plan(rig: Inner, table: str, promises: str = "") -> None:
    (rig.pytester.path / "acme.toml").write_text(f"{SPEC}\n[lot]\n{table}\n{promises}")


def slow(monkeypatch: pytest.MonkeyPatch, *shares: float) -> None:
    drives = (f"SSDQ{number:04}={share}" for number, share in enumerate(shares, start=1))
    monkeypatch.setenv("SIMULATED_SLOW", ",".join(drives))


def verdict(rig: Inner) -> dict[str, Any]:
    (found,) = rig.records("verdict")
    return found


def test_a_lot_without_a_bad_drive_is_accepted(rig: Inner) -> None:
    result = rig.run(*ARGS)
    assert rig.cases()[CASE].outcome == "passed"
    record = verdict(rig)
    assert (record["claim"], record["about"], record["group"]) == ("conforming_drives", "lot", "steady_iops")
    assert record["source"].startswith("ISO 2859-1 ")
    assert "n = 8" in record["source"]
    assert [each["outcome"] for each in record["members"]] == ["pass"] * 8
    assert record["figures"]["accepts_at_10_percent"] == pytest.approx(100 * 0.9**8)
    assert record["is_reading"] is True
    assert record["outcome"] == "pass"
    summary = " ".join(line.strip() for line in result.outlines)
    assert record["sentence"].partition(": ")[2] in summary
    assert record["remarks"][0] in summary


def test_a_bad_drive_rejects_it_and_is_named(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 1, 1, 0.6)
    rig.run(*ARGS)
    case = rig.cases()[CASE]
    assert case.outcome == "failure"
    assert case.message.startswith(verdict(rig)["sentence"])
    assert "(SSDQ0003): REJECT" in case.message
    assert any("SSDQ0003" in remark and remark in case.text for remark in verdict(rig)["remarks"])
    assert case.properties["ssd.limiting_quality_percent"] == "25"
    assert case.properties["ssd.lot"] == "steady_iops"
    assert "ssd.drive" not in case.properties  # not one of them is what the verdict is about


def test_where_an_undecided_drive_decides_it_is_an_error(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 1, 250 / 300)
    rig.run(*ARGS)
    case = rig.cases()[CASE]
    assert case.outcome == "error"
    assert "(SSDQ0002): INCONCLUSIVE" in case.message
    assert verdict(rig)["outcome"] == "inconclusive"


def test_drives_beyond_the_plans_are_not_counted(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 1, 1, 0.6, 1, 1, 1, 1, 0.6)
    plan(rig, "size = 40\nsample = 5\naccept = 1")
    rig.run(*ARGS)
    assert rig.cases()[CASE].outcome == "passed"
    assert "(SSDQ0003)" in verdict(rig)["sentence"]
    assert "(SSDQ0008): ACCEPT" in verdict(rig)["sentence"]
    assert len(verdict(rig)["members"]) == 5
    assert any("first 5" in remark for remark in verdict(rig)["remarks"])


def test_without_a_plan_no_run_begins(rig: Inner) -> None:
    (rig.pytester.path / "acme.toml").write_text(SPEC)
    result = rig.run(*ARGS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "[lot]" in result.stderr.str()
    assert "--ssd-spec=FILE" in result.stderr.str()
    assert rig.records("array_created", "measured", "conditioned") == []


def test_what_cannot_be_decided_is_not_even_measured(rig: Inner) -> None:
    plan(rig, 'size = 500\naql = "1 %"')
    result = rig.run(*ARGS)
    case = rig.cases()[CASE]
    why = "the plan needs 50 drives (ISO 2859-1 level II, AQL 1 %, code letter H; n = 50, Ac 1), 8 given"
    assert (case.outcome, case.message) == ("skipped", why)
    assert rig.records("array_created", "measured", "conditioned") == []
    assert "the plan for" not in result.stdout.str()


def test_by_variables(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, *SPEEDS)
    plan(rig, 'size = 40\naql = "1.5 %"\nby = "variables"')
    rig.run(*ARGS)
    assert rig.cases()[CASE].outcome == "passed"
    record = verdict(rig)
    assert record["claim"] == "quality_index"
    assert record["source"].startswith("by the s-method")
    assert record["value"] > record["limit"]
    assert 0.05 < record["figures"]["normality_p_value"] <= 1


def test_by_variables_a_lot_too_near_the_limit_is_rejected(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, *(0.86 * each for each in SPEEDS))
    plan(rig, 'size = 40\naql = "1.5 %"\nby = "variables"')
    rig.run(*ARGS)
    case = rig.cases()[CASE]
    assert case.outcome == "failure"
    assert ": REJECT" in case.message  # though each drive keeps its promise


def test_by_variables_an_outlier_is_no_bad_lot(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, *SPEEDS[:7], 0.6)
    plan(rig, 'size = 40\naql = "1.5 %"\nby = "variables"')
    rig.run(*ARGS)
    case = rig.cases()[CASE]
    assert case.outcome == "error"
    assert "not normally distributed" in case.message
    assert "SSDQ0008" in case.message


def test_what_nothing_is_promised_of_is_observed(rig: Inner) -> None:
    rig.pytester.makepyfile(test_one=SUITE.replace("steady_iops", "p90_latency"))
    plan(rig, 'size = 40\naql = "1.5 %"', '[[promise]]\nclaim = "p90_latency"\nworkload = "write_*"\nat_most = "1 s"')
    rig.run(*ARGS, "-o", "ssd_measure_unpromised=true")
    case = rig.cases()[CASE]
    assert case.outcome == "skipped"
    assert case.message.startswith("measured ")
    assert rig.records("verdict") == []


def test_claims_about_several_drives_make_none_of_a_lot_bad(rig: Inner) -> None:
    rig.pytester.makepyfile(test_one=SUITE.replace("steady_iops", "member_spread"))
    rig.run(*ARGS)
    assert "member_spread is not" in rig.cases()[CASE].message
    assert rig.records("verdict") == []


def test_the_shipped_suite_judges_in_the_lab(rig: Inner) -> None:
    suite = rig.suite("lot")
    rig.run("--ssd-devices=lab:8", suite)
    outcomes = rig.outcomes()
    assert Counter(outcomes.values()) == {"passed": 9}
    assert {record["claim"] for record in rig.records("verdict")} == {
        "conforming_drives", "member_spread", "drive_health",
    }  # fmt: skip
