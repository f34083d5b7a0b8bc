"""Screened runs on the simulated rig: which points are measured, which are predicted, and what has them measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.plugin.plan import screened_points
from pytest_ssdqual.qual.spec import protocol, toml
from pytest_ssdqual.report.compare.compared_run import ComparedRun

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

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
#: Of 20 points 6 are drawn, and 2 chosen unless they are among those. The simulator's drives share no queue with random
#: addresses, so its arrays do up to 12 % more than predicted.
SCREEN = '\n[screen]\ntolerance = "20 %"\noutside = "40 %"\nworst = 2\n'
DEVICES = "--ssd-devices=root@dut1:/dev/nvme*"
POINTS = 20


def promised(share: float) -> str:
    """Promise this share of what the drives of the simulator do, 300 IOPS each."""
    return PRODUCT + "".join(
        promise(claim="steady_iops", width=width, at_least=f"{share * 300 * width:.0f} IOPS") for width in range(2, 7)
    )


@pytest.fixture
def six(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Six drives, of which 60 % of what they do is promised, and a protocol that screens."""
    monkeypatch.setenv("SIMULATED_DRIVES", "6")
    monkeypatch.setattr(screened_points, "draw_seed", lambda: "seed")
    folder = inner.pytester.path
    (folder / "ours.toml").write_text(toml.text("quick", protocol.FOLDER) + SCREEN)
    inner.pytester.makepyfile(test_acme=SUITE)
    (folder / "acme.toml").write_text(promised(0.6) + promise(claim="scaling_deviation", at_most="20 %"))
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
    (sweep,) = planned["sweeps"]
    wanted = {*sweep["sample"], *chosen["points"]}
    assert len(sweep["points"]) == POINTS
    assert len(sweep["sample"]) == 6
    assert set(measured(six)) == wanted
    predicted = verdicts(six, screened=True)
    assert len(predicted) == POINTS - len(wanted) == accepted["agreement"]["screened"]
    assert all("PASS" in each["sentence"] and "predicted, not measured" in each["sentence"] for each in predicted)
    assert not any(each.get("raw") for each in predicted)
    assert not any("predicted" in each["sentence"] for each in verdicts(six, screened=False))


def test_on_conditioned_drives_wide_arrays_are_measured_first(six: Inner) -> None:
    """A drive that idled beside a narrower array is not used again."""
    ours = six.pytester.path / "ours.toml"
    ours.write_text(ours.read_text().replace("[precondition]", '[precondition]\nof = "drives"'))
    run(six)
    widths = [int(str(each["geometry"]).removeprefix("raid0x")) for each in six.records("measured")]
    assert len(set(widths)) > 2
    assert widths == sorted(widths, reverse=True)


def test_every_surface_tells_predicted_from_measured(six: Inner) -> None:
    result = run(six, "-o", "ssd_page=true", "--ssd-openmetrics=run.prom")
    count = len(verdicts(six, screened=True))
    assert 0 < count < POINTS
    properties = [case.properties for case in six.cases().values()]
    predicted = [each for each in properties if "ssd.screened" in each]
    assert len(predicted) == count
    assert all("ssd.predicted_steady_iops" in each and "ssd.steady_iops" not in each for each in predicted)
    assert all("ssd.confidence_percent" not in each for each in predicted)
    shown = result.stdout.str()
    assert f"{count} of {POINTS} claims screened (≈): predicted, not measured" in shown
    assert f"{POINTS - count} claims judged at 95 %" in shown
    (folder,) = (six.pytester.path / "ssdqual-runs").iterdir()
    sentence = f"({POINTS - count} measured and {count} screened, which is predicted and not measured)"
    assert sentence in (folder / "summary.md").read_text()
    page = (folder / "report.html").read_text()
    assert sentence in page
    assert page.count("(screened: predicted)") == count
    metrics = (six.pytester.path / "run.prom").read_text().splitlines()
    assert sum(line.startswith("ssdqual_verdict_screened{") for line in metrics) == count
    assert (
        sum(line.startswith("ssdqual_predicted_") and "_low" not in line and "_high" not in line for line in metrics)
        == count
    )
    compared = ComparedRun.read(folder)
    assert len(compared.figures) == POINTS - count


def test_a_disagreement_has_all_points_measured(six: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """md does no more than 1,000 IOPS, half of what six drives are predicted to do, and all that is promised."""
    monkeypatch.setenv("SIMULATED_MD", "1000")
    (six.pytester.path / "acme.toml").write_text(promised(0.5))
    run(six)
    assert set(six.outcomes().values()) == {"passed"}
    assert len(set(measured(six))) == len(measured(six)) == POINTS
    assert verdicts(six, screened=True) == []
    (disagreed,) = six.records("screen_disagreed")
    assert "1,000 IOPS" in str(disagreed["reason"])


def test_a_predicted_failure_is_measured_and_fails_by_measurement(six: Inner) -> None:
    """A promise that drives miss is judged on what was measured, never on what was predicted."""
    spec = promise(claim="steady_iops", width=4, workload="randwrite_*", at_least="1500 IOPS")
    (six.pytester.path / "acme.toml").write_text(PRODUCT + spec + promised(0.6).removeprefix(PRODUCT))
    run(six)
    assert [name for name, outcome in six.outcomes().items() if outcome == "failure"] == [
        "test_iops[raid0x4-randwrite_4k_qd8]"
    ]
    assert "raid0x4 randwrite_4k_qd8" in measured(six)
    assert all(each["outcome"] == "pass" for each in verdicts(six, screened=True))
    assert len(verdicts(six, screened=True)) > 0


def test_a_point_too_close_to_its_limit_is_measured(six: Inner) -> None:
    """The prediction alone would be inconclusive; the measurement passes."""
    spec = promise(claim="steady_iops", width=3, at_least="850 IOPS")
    (six.pytester.path / "acme.toml").write_text(PRODUCT + spec + promised(0.6).removeprefix(PRODUCT))
    run(six)
    assert set(six.outcomes().values()) == {"passed"}
    assert {each for each in measured(six) if each.startswith("raid0x3 ")} == {
        f"raid0x3 {load}" for load in ("randread_4k_qd8", "randrw90_4k_qd8", "randrw70_4k_qd8", "randwrite_4k_qd8")
    }


def test_the_ends_of_a_sweep_are_measured_and_scaling_is_screened(six: Inner) -> None:
    six.pytester.makepyfile(test_acme=SUITE + SCALING)
    (six.pytester.path / "acme.toml").write_text(promised(0.6) + promise(claim="scaling_deviation", at_most="60 %"))
    run(six)
    assert set(six.outcomes().values()) == {"passed"}
    (planned,) = six.records("screen_planned")
    (sweep,) = planned["sweeps"]
    assert len(sweep["measured"]) == 8
    assert set(sweep["measured"]) <= set(measured(six))
    scaling = [each for each in verdicts(six, screened=True) if each["claim"] == "scaling_deviation"]
    assert scaling
    assert all(each["predicted"] and set(each["predicted"]) < set(each["geometries"]) for each in scaling)
    assert all(not {"raid0x2", "raid0x6"} & set(each["predicted"]) for each in scaling)


def test_a_sweep_that_predictions_leave_undecided_is_measured(six: Inner) -> None:
    """With a tolerance of 20 % no predicted width is surely within 20 % of the line."""
    six.pytester.makepyfile(test_acme=SUITE + SCALING)
    (six.pytester.path / "acme.toml").write_text(promised(0.6) + promise(claim="scaling_deviation", at_most="20 %"))
    run(six)
    assert set(six.outcomes().values()) == {"passed"}
    assert len(measured(six)) == POINTS
    assert verdicts(six, screened=True) == []


def test_claims_that_do_not_follow_from_iops_are_measured(six: Inner) -> None:
    six.pytester.makepyfile(test_acme=SUITE.replace('"steady_iops"', '"steady_iops", "p99_latency"'))
    run(six, "-k", "raid0x3")
    assert len(measured(six)) == 4
    assert verdicts(six, screened=True) == []


def test_figures_in_per_cent_of_others_are_measured(six: Inner) -> None:
    relation = promise(claim="steady_iops", workload="randwrite_*", relative_to="randread_4k_qd8", at_least="20 %")
    (six.pytester.path / "acme.toml").write_text(PRODUCT + relation + promised(0.6).removeprefix(PRODUCT))
    run(six)
    related = [each for each in measured(six) if "randwrite_4k" in each or "randread_4k" in each]
    assert len(related) == 10


def test_a_screened_run_needs_the_bare_drives(six: Inner) -> None:
    sentence = six.refused(DEVICES, "--ssd-protocol=ours.toml", "--ssd-spec=acme.toml", "-o", "ssd_members=false")
    assert "ssd_members = false" in sentence


def test_a_test_that_uses_the_measurement_itself_gets_no_prediction(six: Inner) -> None:
    """Such a test ends in an error, which says nothing about the drives, if its point was not measured."""
    six.pytester.makepyfile(test_acme=SUITE + "        assert ssd_run.iops > 0\n")
    run(six)
    assert set(six.outcomes().values()) == {"passed", "error"}


def test_a_figure_without_a_promise_is_reported_as_predicted(six: Inner) -> None:
    (six.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="p99_latency", at_most="1 s"))
    run(six, "-o", "ssd_measure_unpromised=true")
    skipped = [case for case in six.cases().values() if "not measured" in case.message]
    assert len(skipped) == POINTS - len(measured(six)) > 0
    assert all("predicted" in case.message and "measured " in case.message for case in skipped)
    assert not any("95 % CI" in case.message for case in skipped)


@pytest.mark.parametrize("lost_at", ["9", "31", "35"])
def test_a_resumed_run_has_the_same_sample(six: Inner, monkeypatch: pytest.MonkeyPatch, lost_at: str) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", lost_at)
    assert run(six).ret == pytest.ExitCode.INTERRUPTED
    before = set(measured(six))
    monkeypatch.delenv("SIMULATED_LOST_AT")
    run(six, "--ssd-resume=last")
    assert set(six.outcomes().values()) == {"passed"}
    (planned,) = six.records("screen_planned")
    (chosen,) = six.records("screen_chosen")
    (sweep,) = planned["sweeps"]
    assert before < set(measured(six)) == {*sweep["sample"], *chosen["points"]}


def test_each_bay_of_several_has_a_sample_of_its_own(six: Inner) -> None:
    """The worker of a bay fixes the points and writes them into the bay's run folder."""
    given = ("--ssd-protocol=ours.toml", "--ssd-spec=acme.toml", "-o", "ssd_members=true", "-n", "2")
    six.run(DEVICES, "--ssd-devices=root@dut2:/dev/nvme*", *given)
    assert set(six.outcomes().values()) == {"passed"}
    folders = sorted((six.pytester.path / "ssdqual-runs").glob("*/bays/dut*"))
    lines = [
        [json.loads(line) for path in folder.glob("records*.jsonl") for line in path.read_text().splitlines()]
        for folder in folders
    ]
    planned = [[each for each in bay if each["kind"] == "screen_planned"] for bay in lines]
    assert [len(each) for each in planned] == [1, 1]
    assert planned[0][0]["seed"] != planned[1][0]["seed"]
    assert all(any(each.get("screened") for each in bay if each["kind"] == "verdict") for bay in lines)
