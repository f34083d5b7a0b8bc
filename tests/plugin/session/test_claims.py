"""The claims of a run as a family: counted, kept, judged together, told at the end."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import strategies
from support.builders.sheet import PRODUCT, promise

import pytest_ssdqual
from pytest_ssdqual.plugin.judging.evidence_builder import EvidenceBuilder
from pytest_ssdqual.plugin.judging.sla import Inconclusive, Sla
from pytest_ssdqual.plugin.plan.stopping import Promises
from pytest_ssdqual.plugin.session.recorder import planned_in
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Curve, Sweep
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, ErrorControl
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE
from pytest_ssdqual.report.run_folder.reader import Record, RunReader

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

QUICK = Path(pytest_ssdqual.__file__).parent / "protocols" / "quick.toml"

#: Four drives and two workloads, judged one by one, by their mean and by their slowest I/Os; and what asks for no
#: verdict.
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    pytestmark = [
        pytest.mark.ssd_array("drive"),
        pytest.mark.ssd_workload(Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)),
    ]

    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("max_latency")
    def test_slowest(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    def test_measured(ssd_run):
        pass
"""
#: The drives do 300, ±3.7 at 95 % from the five rounds of a window.
SPEC = (
    PRODUCT
    + promise(claim="steady_iops", workload="randread_*", at_least="{reads} IOPS")
    + promise(claim="steady_iops", at_least="250 IOPS")
    + promise(claim="max_latency", at_most="1 s", times_per_hour=3600)
)
ARGS = ("--ssd-devices=lab:4", "--ssd-spec=acme.toml", "--ssd-protocol=own.toml")
#: Of the 16 claims that were planned and judged…
FAILS_ALONE, FAILS_ANYHOW = "304", "330"


@pytest.fixture
def rig(inner: Inner) -> Inner:
    inner.pytester.makepyfile(test_family=SUITE)
    promised(inner, FAILS_ALONE)
    control(inner, "none")
    return inner


def promised(rig: Inner, reads: str) -> None:
    (rig.pytester.path / "acme.toml").write_text(SPEC.format(reads=reads))


def control(rig: Inner, name: str) -> None:
    text = QUICK.read_text(encoding="utf-8") + f'\n[verdict]\nfamily = "{name}"\n'
    (rig.pytester.path / "own.toml").write_text(text, encoding="utf-8")


def told(result: pytest.RunResult) -> str:
    """The summary, unwrapped."""
    return " ".join(line.strip() for line in result.outlines)


def family(rig: Inner) -> dict[str, Any]:
    manifest: dict[str, Any] = rig.manifest()
    found: dict[str, Any] = manifest["family"]
    return found


def test_how_many_verdicts_are_wrong_by_chance_is_told(rig: Inner) -> None:
    result = rig.run(*ARGS, "-v")
    assert rig.cases()["test_iops[drivex4-randread_4k_qd8]"].outcome == "failure"
    assert "16 promises judged" in told(result)
    recorded = family(rig)
    assert (recorded["claims_planned"], recorded["claims_judged"], recorded["readings"]) == (16, 16, 0)
    assert recorded["expected_false_failures"] == pytest.approx(16 * 0.025)
    assert [each["drive"] for each in recorded["failures"]] == [f"SSDQ000{number}" for number in range(1, 5)]
    assert {each["upheld_benjamini_hochberg"] for each in recorded["failures"]} == {False}
    assert all(0.025 < each["p_value"] < 0.05 for each in recorded["failures"])
    properties = rig.suite_properties()
    assert {name: value for name, value in properties.items() if name.startswith("ssd.family.")} == {
        "ssd.family.control": "none",
        "ssd.family.claims_planned": "16",
        "ssd.family.claims_judged": "16",
        "ssd.family.expected_false_failures": "0.4",
        "ssd.family.expected_false_passes": "0.4",
        "ssd.family.failures": "4",
        "ssd.family.failures_upheld_benjamini_hochberg": "0",
        "ssd.family.failures_upheld_benjamini_yekutieli": "0",
    }


def test_a_failure_beyond_doubt_is_upheld(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0003=0.5")
    promised(rig, "250")
    control(rig, "bonferroni")
    rig.run(*ARGS)
    case = rig.cases()["test_iops[drivex4-randread_4k_qd8]"]
    assert case.outcome == "failure"
    assert float(case.properties["ssd.p_value"]) < 1e-5
    failures = family(rig)["failures"]
    assert [(each["drive"], each["upheld_benjamini_hochberg"]) for each in failures] == [("SSDQ0003", True)] * 2
    (verdict,) = [each for each in rig.records("verdict") if each["claim"] == "steady_iops"][:1]
    members: Any = verdict["members"]
    assert ["p_value" in each["figures"] for each in members] == [False, False, True, False]
    assert all(each["low"] < each["value"] < each["high"] for each in (one["figures"] for one in members))


def test_family_wise_control_asks_more_of_a_failure(rig: Inner) -> None:
    control(rig, "bonferroni")
    rig.run(*ARGS)
    case = rig.cases()["test_iops[drivex4-randread_4k_qd8]"]
    assert case.outcome == "error"
    assert "over 16 claims" in case.message
    assert rig.cases()["test_iops[drivex4-randwrite_4k_qd8]"].outcome == "passed"
    recorded = family(rig)
    assert recorded["expected_false_failures"] == pytest.approx(0.025)
    assert (recorded["control"], recorded["failures"]) == ("bonferroni", [])


def test_a_continued_run_keeps_its_number_of_claims(rig: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    control(rig, "bonferroni")
    monkeypatch.setenv("SIMULATED_LOST_AT", "3")
    assert rig.run(*ARGS).ret == pytest.ExitCode.INTERRUPTED
    monkeypatch.delenv("SIMULATED_LOST_AT")
    # Four claims by themselves: 1 - 0.05/4 would still not do, but the sentence says what was planned.
    rig.run(*ARGS, "--ssd-resume=last", "-k", "iops and randread")
    (case,) = rig.cases().values()
    assert "over 16 claims" in case.message
    assert [each["count"] for each in rig.records("claims_planned")] == [16]
    recorded = family(rig)
    assert (recorded["claims_planned"], recorded["claims_judged"]) == (16, 4)


def test_xdists_controller_knows_what_its_worker_has_counted(rig: Inner) -> None:
    control(rig, "bonferroni")
    rig.run(*ARGS, "-n", "1")
    assert family(rig)["claims_planned"] == 16
    assert "over 16 claims" in rig.cases()["test_iops[drivex4-randread_4k_qd8]"].message


def test_measuring_ends_by_the_same_judgement(tmp_path: Path) -> None:
    """What fails alone ends a sequential measurement, but not while it may still be one of many."""
    (tmp_path / "acme.toml").write_text(SPEC.format(reads=FAILS_ALONE))
    measured = Measured((strategies.run([303, 297, 300, 297, 303], geometry="drivex1"),))
    asked = {(measured.geometry, measured.workload): frozenset({Claim.STEADY_IOPS})}

    def is_done(family: ErrorControl) -> bool:
        return Promises(spec.load(tmp_path / "acme.toml"), protocol.load("quick"), asked, family)(measured).done

    assert is_done(ErrorControl(16))
    assert not is_done(ErrorControl(16, BONFERRONI))
    assert is_done(ErrorControl(1, BONFERRONI))


READS = Workload("randread", "4k", 8)
#: Around 1, for rates with an interval of some per cent.
UNEVEN = (1.01, 0.99, 1.0, 0.99, 1.01)


def uneven(iops: float, geometry: str = "raid0x2", workload: Workload = READS) -> Measured:
    rates = [round(iops * each) for each in UNEVEN]
    return Measured((strategies.run(rates, geometry=geometry, workload=workload),))


@pytest.mark.parametrize(
    ("claim", "limit", "judged"),
    [
        ("steady_iops", 'at_least = "1020 IOPS"', uneven(1000)),
        ("steady_iops", f'at_least = "104 %"\nrelative_to = "{READS.at(1)}"', uneven(1000)),
        ("qd_gain", "at_least = 1.1", Curve((uneven(1000, workload=READS.at(1)), uneven(1050)))),
        ("scaling_slope", "at_least = 1.1", Sweep((uneven(1000, "raid0x2"), uneven(2000, "raid0x4")))),
    ],
    ids=["run", "relation", "curve", "sweep"],
)
def test_every_kind_of_claim_has_to_stand_up_to_its_family(
    tmp_path: Path, claim: str, limit: str, judged: Judgeable
) -> None:
    one = f'{PRODUCT}[[promise]]\nclaim = "{claim}"\n{limit}\n'
    (tmp_path / "acme.toml").write_text(one)
    sheet = spec.load(tmp_path / "acme.toml")
    noted: list[Evidence] = []

    def judge(family: ErrorControl) -> bool:
        account = EvidenceBuilder("snia", beside=sheet, family=family)
        reference = partial(uneven, 1000)
        sla = Sla(
            sheet, "error", account, noted.append, lambda _, workload: reference(workload=workload),
            promised=[Claim(claim)],
        )  # fmt: skip
        return bool(sla.judge(judged))

    assert not judge(ErrorControl(10**4))
    assert noted[0].outcome is Finding.FAIL
    found = noted[0].figures["p_value"]
    assert found is not None
    assert 1e-6 < found < 0.05
    with pytest.raises(Inconclusive, match="over 1,000,000 claims"):
        judge(ErrorControl(10**6, BONFERRONI))


def test_where_nothing_is_judged_nothing_is_told(rig: Inner) -> None:
    result = rig.run(*ARGS, "-k", "test_measured")
    assert "correction for" not in told(result)
    assert [each["count"] for each in rig.records("claims_planned")] == [1]
    manifest = rig.manifest()
    assert manifest["family"] is None


def test_the_first_count_of_a_run_folder_holds() -> None:
    def planned(kind: str, *counts: object) -> int | None:
        records = (Record(kind, "2026-11-21T18:00:00Z", {"count": each, "control": "none"}) for each in counts)
        return planned_in(RunReader(Path(), UNREADABLE, tuple(records)))

    assert planned("claims_planned", 16, 4) == 16
    assert planned("run_started", 3) is None
    assert planned("claims_planned", "many") is None
