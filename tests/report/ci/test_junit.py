from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Element, Error, Failure, Properties, Property, xunit2
from support.builders.evidence import claimed
from support.builders.report_page import observed
from support.documents import golden

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.evidence.evidence import About, Part

SCHEMA = Path(__file__).parents[2] / "data/junit/jenkins-xunit.xsd"


def test_numbers_are_plain_and_their_names_have_the_unit() -> None:
    figures = {"mean_latency_ns": 311_000.25, "cpu_busy_percent": None}
    found = dict(junit.properties([claimed(low=805_000, high=818_000, figures=figures)]))
    assert found == {
        "ssd.claim": "p99_latency",
        "ssd.outcome": "fail",
        "ssd.geometry": "raid5x4",
        "ssd.workload": "randread_4k_qd8",
        "ssd.p99_latency_ns": "812000",
        "ssd.p99_latency_low_ns": "805000",
        "ssd.p99_latency_high_ns": "818000",
        "ssd.limit_ns": "500000",
        "ssd.margin_percent": "-62.4",
        "ssd.confidence_percent": "95",
        "ssd.n": "5",
        "ssd.mean_latency_ns": "311000.2",
        "ssd.limit_source": "acme.toml promise[3]",
        "ssd.protocol": "snia",
        "ssd.acceptance": "true",
        "ssd.raw": "fio/raid5x4-randread_4k_qd8-run.json.gz",
    }


@pytest.mark.parametrize(
    ("claim", "name", "limit"),
    [
        (Claim.STEADY_IOPS, "ssd.steady_iops", "ssd.limit_iops"),
        (Claim.LATENCY_SPREAD_OVER_TIME, "ssd.latency_spread_over_time_ratio", "ssd.limit_ratio"),
        (Claim.SCALING_DEVIATION, "ssd.scaling_deviation_percent", "ssd.limit_percent"),
    ],
)
def test_names_by_unit(claim: Claim, name: str, limit: str) -> None:
    found = dict(junit.properties([claimed(claim, "raid5x3 raid5x8", value=1.5, bound=2)]))
    assert (found[name], found[limit]) == ("1.5", "2")
    assert found["ssd.geometry"] == "raid5x3 raid5x8"


def test_what_is_unbounded_is_left_out() -> None:
    assert "ssd.p99_latency_high_ns" not in dict(junit.properties([claimed(high=math.inf)]))


def test_no_name_twice() -> None:
    found = junit.properties([claimed(), claimed(Claim.STEADY_IOPS, value=9412, bound=9000, acceptance=False)])
    assert len(dict(found)) == len(found)
    assert dict(found)["ssd.limit_ns"] == "500000"
    assert dict(found)["ssd.2.limit_iops"] == "9000"
    assert (dict(found)["ssd.2.acceptance"], dict(found)["ssd.2.protocol"]) == ("false", "quick")
    assert junit.properties([]) == []


def test_a_figure_that_is_the_claim_itself_is_there_once() -> None:
    """Saturations have ``settled_iops`` beside the claim of that name."""
    of = replace(claimed(Claim.SETTLED_IOPS, value=300.5, bound=240), figures={"settled_iops": 300.5})
    names = [name for name, _ in junit.properties([of])]
    assert names.count("ssd.settled_iops") == 1
    assert len(set(names)) == len(names)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(0.001, 1e7))
def test_every_number_is_written_without_exponent_and_read_back(number: float) -> None:
    text = junit._plain(number)
    assert "e" not in text.lower()
    assert float(text) == pytest.approx(number, rel=1e-5, abs=1e-300)


def test_the_section_says_where_the_numbers_come_from() -> None:
    evidence = claimed(low=805_000, high=818_000, figures={"mean_latency_ns": 311_000, "x": None})
    golden.same("junit_section.txt", junit.section([replace(evidence, acceptance=False)]).splitlines())
    assert junit.section([evidence, evidence]).count("\n\n") == 1


def test_a_reading_has_no_confidence() -> None:
    read = replace(claimed(), is_reading=True, basis="rounds of 2 min")
    found = dict(junit.properties([read]))
    assert "ssd.confidence_percent" not in found
    assert (found["ssd.interval"], found["ssd.basis"]) == ("as read", "rounds of 2 min")
    assert dict(junit.properties([replace(claimed(), confidence=0.999)]))["ssd.confidence_percent"] == "99.9"


def test_what_speaks_against_the_evidence_is_in_the_section() -> None:
    assert "\n  remark    the baseline is doubtful\n" in junit.section(
        [replace(claimed(), remarks=("the baseline is doubtful",))]
    )


def test_a_figure_that_nothing_is_promised_of_has_no_limit() -> None:
    found = dict(junit.properties([observed(claimed())]))
    assert found["ssd.outcome"] == "observed"
    assert found["ssd.p99_latency_ns"] == "812000"
    assert not {"ssd.limit_ns", "ssd.limit_source", "ssd.margin_percent"} & set(found)
    assert not re.search("limit |margin ", junit.section([observed(claimed())]).split("\n", 1)[1])


def test_what_is_published_is_there_with_its_source() -> None:
    published = Published(400_000, Unit.NANOSECONDS, "a paper", approximate=True)
    evidence = replace(claimed(), published=published)
    found = dict(junit.properties([evidence]))
    assert found["ssd.published_ns"] == "400000"
    assert found["ssd.over_published_ratio"] == "2.03"
    assert (found["ssd.published_approximately"], found["ssd.published_source"]) == ("true", "a paper")
    assert "  published about 400 µs (a paper), measured is 2.03 of it" in junit.section([evidence])


def test_drives_side_by_side_are_in_one_order() -> None:
    members = (Part("S1", {"value": 402_000}), Part("S2", {"value": 812_000.5}), Part("S3"))
    evidence = replace(claimed(), members=members, worst="S2", about=About.LOOP, group="snia-latency")
    found = dict(junit.properties([evidence]))
    assert (found["ssd.drive"], found["ssd.drives"]) == ("S2", "S1 S2 S3")
    assert found["ssd.drives_values"] == "402000 812000.5 -"
    assert found["ssd.loop"] == "snia-latency"
    assert "  drive     S2" in junit.section([evidence])


@pytest.mark.parametrize("claim", Claim)
def test_every_claim_has_a_property_with_its_unit(claim: Claim) -> None:
    found = dict(junit.properties([claimed(claim, value=1.5, bound=2)]))
    assert any(name.startswith(f"ssd.{claim}") and value == "1.5" for name, value in found.items())


CONFTEST = """
    import pytest
    from pytest_ssdqual.report.ci import junit
    from pytest_ssdqual.report.evidence.evidence import of_facts

    EVIDENCE = [of_facts({record!r})]

    def pytest_runtest_setup(item):
        if {properties}:
            item.user_properties += junit.properties(EVIDENCE)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        if report.when == "call" and report.failed:
            report.longrepr.addsection("SLA evidence", junit.section(EVIDENCE))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(session):
        if not hasattr(session.config, "workerinput"):
            facts = [("ssd.machine", "root@dut7"), ("ssd.bad", "a\\x00b")] if {properties} else []
            print("WRITTEN", junit.add_suite_properties(session.config, facts))
"""
TESTS = """
    import pytest

    @pytest.fixture
    def broken():
        raise RuntimeError("the rig broke")

    @pytest.fixture
    def leaky():
        yield
        raise RuntimeError("the array would not stop")

    def test_pass(): pass
    def test_fail(): assert not "812 µs"
    def test_error(broken): pass
    def test_both(leaky): assert not "812 µs"
    def test_skip(): pytest.skip("needs 4 drives, 3 given")
"""


@pytest.fixture
def written(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Path:
    properties, *args = request.param
    pytester.makeconftest(CONFTEST.format(record=plain(claimed()), properties=properties))
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--junitxml=junit.xml", "--tb=short", *args)
    result.assert_outcomes(passed=1, failed=2, errors=2, skipped=1)
    return pytester.path / "junit.xml"


def named(element: Element) -> dict[str, str]:
    groups: list[Iterable[Property]] = list(element.iterchildren(Properties))  # type: ignore[no-untyped-call]
    return {str(each.name): str(each.value) for group in groups for each in group}


@pytest.mark.parametrize("written", [(True,), (True, "-n", "2")], indirect=True, ids=["alone", "xdist"])
def test_dashboards_find_the_properties(written: Path) -> None:
    (suite,) = xunit2.JUnitXml.fromfile(str(written))
    assert named(suite) == {"ssd.machine": "root@dut7", "ssd.bad": "a\\x00b"}
    cases = {case.name: case for case in suite}
    assert sorted(cases) == ["test_both", "test_error", "test_fail", "test_pass", "test_skip"]
    for case in cases.values():
        # Of a test that failed and then could not be torn down, pytest writes two elements.
        assert named(case)["ssd.p99_latency_ns"] == "812000"
    (failure,) = cases["test_fail"].result
    assert isinstance(failure, Failure)
    assert "limit     ≤ 500 µs (acme.toml promise[3])" in failure.text
    assert isinstance(cases["test_error"].result[0], Error)
    with pytest.raises(xmlschema.XMLSchemaValidationError, match="properties"):
        xmlschema.XMLSchema(SCHEMA).validate(written)


@pytest.mark.parametrize("written", [(False, "-n", "2")], indirect=True)
def test_without_properties_it_is_what_jenkins_accepts(written: Path) -> None:
    xmlschema.XMLSchema(SCHEMA).validate(written)


def test_without_a_junit_file_nothing_is_written(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    assert junit.add_suite_properties(config, [("ssd.machine", "lab")]) is False


def test_without_the_private_part_of_pytest_nothing_is_written(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("_pytest.junitxml.xml_key")
    assert junit.add_suite_properties(pytester.parseconfig("--junitxml=x"), [("ssd.machine", "lab")]) is False
