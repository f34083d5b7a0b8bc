from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from support.builders import strategies
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.plugin.plan import needs, stopping
from pytest_ssdqual.plugin.plan.stopping import ClaimsByMeasurement, Promises
from pytest_ssdqual.qual.measured.run import SPELL_S, Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import Fill, MeasureRule, PreconditionRule, VerdictRule, VisitRule
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.ci import markdown
from pytest_ssdqual.report.run_summary.overview import overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

READS = Workload("randread", "4k", 8)
RAID5X3 = Geometry.parse("raid5x3")
SPEC = (
    PRODUCT
    + promise(claim="steady_iops", at_least="{iops} IOPS")
    + promise(claim="p99_latency", at_most="{p99}")
    + promise(claim="member_spread", at_least=0.9)
    + promise(claim="mean_latency", relative_to="randread_4k_qd4", at_most="110 %")
)
PROTOCOL = Protocol(
    "test",
    acceptance=True,
    fill=Fill(1, "128k"),
    precondition=PreconditionRule(5, 15),
    measure=MeasureRule(0, 60, 1, 2),
    verdict=VerdictRule(0.95, 1.0),
    visits=VisitRule(),
)


def sheet(tmp_path: Path, iops: int = 500, p99: str = "1 s") -> Spec:
    path = tmp_path / "acme.toml"
    path.write_text(SPEC.format(iops=iops, p99=p99))
    return spec.load(path)


def measured(iops: int = 1000, scatter: float = 0.002, geometry: Geometry = RAID5X3) -> Measured:
    """Two visits of two cells."""
    run = strategies.run([iops] * 20, geometry=str(geometry), rounds=1)
    cell = replace(run, spell_length_s=SPELL_S).condensed()
    return Measured((cell,) * 4, strategies.visited(scatter=scatter))


ROUGH = 0.2


def asked_for(*claims: str, geometry: Geometry = RAID5X3) -> dict[tuple[Geometry, Workload], frozenset[Claim]]:
    return {(geometry, READS): frozenset(map(Claim, claims))}


# -- what is asked for


def item(*marks: pytest.Mark) -> pytest.Item:
    found = SimpleNamespace(
        nodeid="test_it.py::test_it",
        iter_markers=lambda name: [each for each in marks if each.name == name],
        get_closest_marker=lambda name: None,
    )
    return cast("pytest.Item", found)


def claims_of(monkeypatch: pytest.MonkeyPatch, items: Iterable[pytest.Item]) -> ClaimsByMeasurement:
    monkeypatch.setattr(needs, "of", lambda item: (CampaignStep(StepKind.MEASURED, RAID5X3, READS),))
    return stopping.asked(items)


def test_claims_are_those_that_marks_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    iops, tail = pytest.mark.ssd_promise("steady_iops").mark, pytest.mark.ssd_promise("p99_latency", "throughput").mark
    assert claims_of(monkeypatch, [item(iops)]) == asked_for("steady_iops")
    assert claims_of(monkeypatch, [item(tail, iops)]) == asked_for("steady_iops", "p99_latency", "throughput")
    assert claims_of(monkeypatch, [item(iops), item(tail)]) == asked_for("steady_iops", "p99_latency", "throughput")
    assert claims_of(monkeypatch, [item()]) == asked_for()


def test_a_mark_that_names_no_claim_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.UsageError, match=r"'p99_latencies'.*'p99_latency'"):
        claims_of(monkeypatch, [item(pytest.mark.ssd_promise("p99_latencies").mark)])
    with pytest.raises(pytest.UsageError, match="are steady_iops, "):
        claims_of(monkeypatch, [item(pytest.mark.ssd_promise(99).mark)])


def test_a_test_that_is_skipped_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    skipped = SimpleNamespace(function=len, get_closest_marker=lambda name: name == "skip")
    assert claims_of(monkeypatch, [cast("pytest.Item", skipped)]) == {}


def test_tails_are_of_promised_percentiles_that_are_asked_for(tmp_path: Path) -> None:
    """On one array is enough: others of the workload are compared with it."""
    others = {(Geometry.parse("raid5x4"), Workload("randread", "4k", 4)): frozenset({Claim.STEADY_IOPS})}
    ours = sheet(tmp_path)
    assert stopping.tails(asked_for("steady_iops", "p99_latency") | others, ours) == {READS}
    assert stopping.tails(asked_for("steady_iops") | others, ours) == set()
    assert stopping.tails(asked_for("p99.9_latency"), ours) == set()


# -- when it is known


def test_a_claim_that_is_clear_is_enough(tmp_path: Path) -> None:
    for limit in (900, 1100):
        decision = Promises(sheet(tmp_path, limit), PROTOCOL, asked_for("steady_iops"))(measured())
        assert decision.done
        assert decision.sentence.endswith(f", limit {limit:,} IOPS")


def test_a_claim_near_its_limit_is_not(tmp_path: Path) -> None:
    decision = Promises(sheet(tmp_path, 1000), PROTOCOL, asked_for("steady_iops"))(measured(scatter=ROUGH))
    assert not decision.done
    assert "limit 1,000 IOPS" in decision.sentence


def test_a_claim_that_is_surely_within_the_margin_is_enough(tmp_path: Path) -> None:
    assert Promises(sheet(tmp_path, 1000), PROTOCOL, asked_for("steady_iops"))(measured()).done


def test_all_that_is_asked_for_has_to_be_clear(tmp_path: Path) -> None:
    here, rough = sheet(tmp_path, 1000, "1 s"), measured(scatter=ROUGH)
    assert Promises(here, PROTOCOL, asked_for("p99_latency"))(rough).done
    decision = Promises(here, PROTOCOL, asked_for("steady_iops", "p99_latency"))(rough)
    assert not decision.done
    assert decision.sentence.startswith("steady IOPS")


def test_heat_does_not_hold_up_a_measurement(tmp_path: Path) -> None:
    """Its readings exist only after fio has ended, with a promise or without."""
    ask = asked_for("steady_iops", "sustained_temperature", "throttled_time")
    assert Promises(sheet(tmp_path), PROTOCOL, ask)(measured()).done
    path = tmp_path / "acme.toml"
    heat = '[[promise]]\nclaim = "throttled_time"\nat_most = "1 %"\n'
    path.write_text(SPEC.format(iops=500, p99="1 s") + heat)
    assert Promises(spec.load(path), PROTOCOL, ask)(measured()).done


@pytest.mark.parametrize("claims", [(), ("mean_latency",), ("qd_knee",), ("throughput",)])
def test_references_and_figures_without_limits_must_be_precise(tmp_path: Path, claims: tuple[str, ...]) -> None:
    ask = Promises(sheet(tmp_path), PROTOCOL, asked_for(*claims))
    assert ask(measured()).done
    decision = ask(measured(scatter=ROUGH))
    assert not decision.done
    assert decision.sentence.endswith("% is wanted)")


def test_a_claim_with_a_limit_needs_no_precision(tmp_path: Path) -> None:
    ask = Promises(sheet(tmp_path, 100), PROTOCOL, asked_for("steady_iops"))
    assert ask.question(RAID5X3, READS).precision_percent is None
    assert ask(measured(scatter=0.05)).done


WIDER, WIDEST = Geometry.parse("raid5x4"), Geometry.parse("raid5x5")
SCALING = asked_for("scaling_deviation") | asked_for("scaling_deviation", geometry=WIDER)


def of_widths(tmp_path: Path) -> Promises:
    """Two widths, whose scaling has the default limits."""
    return Promises(sheet(tmp_path), PROTOCOL, SCALING)


def test_a_width_has_no_precision_of_its_own(tmp_path: Path) -> None:
    assert of_widths(tmp_path).question(RAID5X3, READS).precision_percent is None
    assert of_widths(tmp_path)(measured(scatter=ROUGH)).done, "no other width is known"


@pytest.mark.parametrize(("wider", "scatter", "is_enough"), [(1333, 0.002, True), (1200, 0.04, False)])
def test_a_point_is_decided_with_its_sweeps(tmp_path: Path, wider: int, scatter: float, *, is_enough: bool) -> None:
    """Four drives do 4/3 of three; 1,200 IOPS are 10 % less, which is the limit."""
    ask, other = of_widths(tmp_path), measured(wider, scatter, WIDER)
    assert ask(measured(scatter=scatter), [other]).done is is_enough
    assert ask(other, [measured(scatter=scatter)]).done is is_enough


def test_only_widths_whose_tests_ask_for_the_sweep_count(tmp_path: Path) -> None:
    rough = measured(1200, ROUGH, WIDER)
    assert not of_widths(tmp_path)(measured(), [rough]).done
    narrow_only = Promises(sheet(tmp_path), PROTOCOL, asked_for("scaling_deviation"))
    assert narrow_only(measured(), [rough]).done
    other_load = replace(rough, runs=tuple(replace(each, workload=READS.at(4)) for each in rough.runs))
    assert of_widths(tmp_path)(measured(), [other_load]).done


def test_a_degraded_array_is_no_width_of_the_sweep_of_whole_ones(tmp_path: Path) -> None:
    degraded = Geometry.parse("raid5x4-1failed")
    asked = asked_for("scaling_deviation") | asked_for("scaling_deviation", geometry=degraded)
    ask = Promises(sheet(tmp_path), PROTOCOL, asked)
    assert ask(measured(), [measured(1200, ROUGH, degraded)]).done


def test_spreads_of_latency_between_widths_need_no_precise_iops(tmp_path: Path) -> None:
    asked = asked_for("latency_spread_between_widths", "steady_iops")
    assert Promises(sheet(tmp_path), PROTOCOL, asked).question(RAID5X3, READS).precision_percent is None


def test_what_does_not_fit_does_not_hold_up(tmp_path: Path) -> None:
    assert Promises(sheet(tmp_path), PROTOCOL, asked_for("steady_iops", "member_spread"))(measured()).done


def test_a_mistake_of_arithmetic_is_no_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("math domain error")

    monkeypatch.setattr(group_sequential, "judge_all", broken)
    ask = Promises(sheet(tmp_path), PROTOCOL, asked_for("steady_iops"))
    with pytest.raises(ValueError, match="math domain error"):
        ask(measured())


# -- whole sessions


IN_A_VARIABLE = """
    WHAT = "steady_" + "iops"

    @pytest.mark.ssd_promise(WHAT)
    @pytest.mark.ssd_workload(Workload("randread", "4k", 4))
    def test_variable(ssd_run, ssd_sla):
        judge = ssd_sla.judge
        assert judge(WHAT, ssd_run)
"""


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drives that hardly scatter. Cells come in random order: usual ones need more visits in one run of ten."""
    monkeypatch.setenv("SIMULATED_SCATTER", "0")
    monkeypatch.setenv("SIMULATED_NOISE", "0.001")


@pytest.mark.usefixtures("even")
def test_a_claim_in_a_variable_costs_the_time_of_that_claim(inner: Inner) -> None:
    inner.pytester.makepyfile(test_it=SUITE + IN_A_VARIABLE)
    (inner.pytester.path / "acme.toml").write_text(SHEET.format(reads=400, writes=100))
    (inner.pytester.path / "visits.toml").write_text(VISITS)
    inner.run("--ssd-devices=/dev/nvme*", "--ssd-spec=acme.toml", "--ssd-protocol=visits.toml", "-k", "variable")
    assert set(inner.outcomes().values()) == {"passed"}
    assert [each["decided"] for each in inner.records("looked")] == [True]


def test_a_test_that_judges_has_to_declare_what(inner: Inner) -> None:
    inner.pytester.makepyfile(test_it=SUITE.replace('@pytest.mark.ssd_promise("steady_iops")', "@pytest.mark.xfail"))
    for devices in ([], ["--ssd-devices=/dev/nvme*", "--ssd-protocol=quick"]):
        result = inner.run(*devices)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert any('@pytest.mark.ssd_promise("p99_latency")' in line for line in result.errlines)
    assert not inner.records("measured") if (inner.pytester.path / "ssdqual-runs").is_dir() else True


#: What has no limit is measured, too.
EVERYTHING = ("-o", "ssd_measure_unpromised=true")


def test_a_mistake_of_a_test_is_an_error_with_its_traceback(inner: Inner) -> None:
    inner.pytester.makepyfile(test_it=SUITE.replace("assert ssd_sla.judge(ssd_run)", "assert ssd_run.no_such_figure"))
    inner.run("--ssd-devices=/dev/nvme*", "--ssd-protocol=quick", "--ssd-spec=default", *EVERYTHING)
    cases = inner.cases().values()
    assert {case.outcome for case in cases} == {"error"}
    assert all("AttributeError" in case.text and "test_it.py" in case.text for case in cases)


def test_what_is_judged_without_being_declared_is_an_error(inner: Inner) -> None:
    inner.pytester.makepyfile(test_it=SUITE.replace("ssd_sla.judge(ssd_run)", 'ssd_sla.judge("throughput", ssd_run)'))
    inner.run("--ssd-devices=/dev/nvme*", "--ssd-protocol=quick", "--ssd-spec=default", *EVERYTHING)
    cases = inner.cases().values()
    assert {case.outcome for case in cases} == {"error"}
    assert all('add @pytest.mark.ssd_promise("throughput")' in case.message for case in cases)


SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    pytestmark = pytest.mark.ssd_array("raid5", widths=(3,))

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_workload(Workload("randread", "4k", 8), Workload("randwrite", "4k", 8))
    def test_iops(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)
"""
#: As the shipped one, with short cells.
VISITS = """
    acceptance = false
    fill = { passes = 1, bs = "1m" }
    precondition = { step = "10 min", limit = "2 h", of = "drives" }
    members = { window = "0 s" }
    [visits]
    cell = "20 s"
    ramp = "1 s"
    cells = [2, 2, 2, 3]
    refresh = "1 min"
"""
SHEET = (
    PRODUCT
    + promise(claim="steady_iops", workload="randread_*", at_least="{reads} IOPS")
    + promise(claim="steady_iops", at_least="{writes} IOPS")
)


@pytest.fixture
def suite(inner: Inner) -> Callable[..., pytest.RunResult]:
    """900 reads and 300 writes a second, held against these limits."""

    def run(reads: int, writes: int, *args: str) -> pytest.RunResult:
        (inner.pytester.path / "acme.toml").write_text(SHEET.format(reads=reads, writes=writes))
        (inner.pytester.path / "visits.toml").write_text(VISITS)
        inner.pytester.makepyfile(test_it=SUITE)
        return inner.run("--ssd-devices=/dev/nvme*", "--ssd-spec=acme.toml", "--ssd-protocol=visits.toml", *args)

    return run


@pytest.mark.usefixtures("even")
def test_a_session_ends_each_measurement_once_it_is_decided(
    inner: Inner, suite: Callable[..., pytest.RunResult]
) -> None:
    suite(600, 500)
    assert inner.outcomes() == {
        "test_iops[raid5x3-randread_4k_qd8]": "passed",
        "test_iops[raid5x3-randwrite_4k_qd8]": "failure",
    }
    looked = inner.records("looked")
    assert [(each["visits"], each["decided"]) for each in looked] == [(2, True)] * 2
    of_writes = next(each for each in looked if each["workload"] == "randwrite_4k_qd8")
    assert str(of_writes["sentence"]).endswith("limit 500 IOPS")


def test_what_is_near_goes_on_and_what_is_on_the_limit_ends(
    inner: Inner, suite: Callable[..., pytest.RunResult]
) -> None:
    suite(900, 200)
    cases = inner.cases()
    undecided = cases["test_iops[raid5x3-randread_4k_qd8]"]
    assert undecided.outcome == "error"
    assert "INCONCLUSIVE" in undecided.message
    assert cases["test_iops[raid5x3-randwrite_4k_qd8]"].outcome == "passed"
    looked = inner.records("looked")
    reads = [each for each in looked if each["workload"] == "randread_4k_qd8"]
    writes = [each for each in looked if each["workload"] == "randwrite_4k_qd8"]
    assert [each["visits"] for each in reads] == [2, 3, 4]
    assert len(writes) <= len(reads)
    assert writes[-1]["decided"]
    assert not reads[-1]["decided"]


def test_a_collection_is_planned_from_two_visits_to_the_last(suite: Callable[..., pytest.RunResult]) -> None:
    lines = suite(500, 600, "--collect-only").outlines
    assert any("protocol visits" in line for line in lines)
    assert any("two visits" in line and "4 times" in line for line in lines)


@pytest.mark.usefixtures("even")
def test_cells_before_an_interruption_are_not_measured_again(
    inner: Inner, suite: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_MEDIA", "media.json")
    monkeypatch.setenv("SIMULATED_INTERRUPTED_AT", "5")
    suite(400, 700, "--collect-only")  # writes the files
    args = ("--ssd-devices=/dev/nvme*", "--ssd-spec=acme.toml", "--ssd-protocol=visits.toml")
    result = inner.pytester.runpytest_subprocess("-p", "support.simulator.simulated_rig", *args)
    assert result.ret == pytest.ExitCode.INTERRUPTED, result.outlines
    before = len(inner.records("cell"))
    assert 0 < before < 8
    assert not inner.records("measured")
    (folder,) = (inner.pytester.path / "ssdqual-runs").glob("*T*")
    (line,) = [each for each in result.outlines if "continue with:" in each]
    assert line.endswith(f"{args[-1]} --ssd-resume={folder.name}")
    monkeypatch.delenv("SIMULATED_INTERRUPTED_AT")
    suite(400, 700, "--ssd-resume=last")
    assert sorted(inner.outcomes().values()) == ["failure", "passed"]
    cells = [(each["workload"], each["visit"]) for each in inner.records("cell")]
    for workload in ("randread_4k_qd8", "randwrite_4k_qd8"):
        assert [cells.count((workload, visit)) for visit in range(3)] == [2, 2, 0]


@pytest.mark.usefixtures("even")
def test_workers_measure_as_one_process_does(inner: Inner, suite: Callable[..., pytest.RunResult]) -> None:
    suite(400, 700)
    alone = {each["workload"]: each["visits"] for each in inner.records("looked")}
    shutil.rmtree(inner.pytester.path / "ssdqual-runs")
    suite(400, 700, "-n1")
    assert {each["workload"]: each["visits"] for each in inner.records("looked")} == alone


#: Time for one of the two workloads, and for its conditioning.
FOR_ONE = "--ssd-budget=54min"


def test_a_budget_leaves_out_what_does_not_fit(inner: Inner, suite: Callable[..., pytest.RunResult]) -> None:
    lines = suite(400, 700, "--ssd-budget=3h").outlines
    assert any(": 2 of 2" in line for line in lines)
    assert sorted(inner.outcomes().values()) == ["failure", "passed"]
    shutil.rmtree(inner.pytester.path / "ssdqual-runs")
    suite(400, 700, FOR_ONE, "-n1")
    left_out, measured = sorted(inner.cases().values(), key=lambda case: case.outcome)
    assert (left_out.outcome, measured.outcome) == ("error", "failure")
    assert "randread_4k_qd8 on raid5x3" in left_out.message
    assert "54 min" in left_out.message
    assert [each["workload"] for each in inner.records("measured")] == ["randwrite_4k_qd8"]


def test_a_budget_is_on_every_surface(inner: Inner, suite: Callable[..., pytest.RunResult]) -> None:
    lines = suite(400, 700, FOR_ONE).outlines
    assert any("left out: 1" in line for line in lines)
    properties = inner.suite_properties()
    found = {name: properties[f"ssd.budget_{name}"] for name in ("s", "left_out", "cut_short")}
    assert found == {"s": "3240", "left_out": "1", "cut_short": "0"}
    run, shown = RunView.read(inner.folder()), "54 min; 1 measurement left out"
    assert ("Budget", shown) in overview(run).facts
    assert f"- Budget: `{shown}`\n" in markdown.text(inner.folder())


def test_a_resumed_run_keeps_its_budget_and_spent_time(inner: Inner, suite: Callable[..., pytest.RunResult]) -> None:
    suite(400, 700, "--ssd-budget=3h")
    suite(400, 700, "--ssd-resume=last")
    assert inner.suite_properties()["ssd.budget_s"] == "10800"
    assert inner.manifest()["budget_s"] == 10_800
    first, second = inner.records("budget")
    assert first["seconds"] == second["seconds"] == 3 * 3600
    assert first["spent_s"] == 0
    assert second["spent_s"] > 0


def test_other_protocols_are_compared_on_demand(suite: Callable[..., pytest.RunResult]) -> None:
    heading = "ssdqual: the same tests by each protocol for acceptance"
    assert heading not in suite(400, 700, "--collect-only").outlines
    lines = suite(400, 700, "--collect-only", "-v").outlines
    names = [name for name in protocol.shipped() if protocol.load(name).acceptance]
    table = lines[lines.index(heading) + 1 :][: len(names) + 2]
    assert [line.split()[0] for line in table] == ["protocol", *names, "visits"]


def test_unused_promises_are_reported(tmp_path: Path) -> None:
    (tmp_path / "acme.toml").write_text(
        PRODUCT
        + promise(claim="steady_iops", workload="randraed_*", at_least="9 IOPS")
        + promise(claim="steady_iops", workload="randread_*", at_least="9 IOPS")
        + '[[promise]]\nclaim = "steady_iops"\nclass = ["sata", "sas"]\nworkload = "randwrite_*"\nat_least = "9 IOPS"\n'
        + promise(claim="p99_latency", at_most="9 ms")
    )
    own = spec.load(tmp_path / "acme.toml")
    wanted = {(Geometry.parse("raid5x3"), Workload("randread", "4k", 8)): frozenset({Claim.STEADY_IOPS})}
    misspelt, of_class = stopping.unused(wanted, own, ["./acme.toml"])
    assert of_class.startswith("acme.toml promise[2] ")
    assert misspelt.startswith("acme.toml promise[0] (steady_iops of")
    assert stopping.unused(wanted, spec.default(), ["default"]) == ()
