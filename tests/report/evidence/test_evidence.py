from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.evidence import claimed

from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import LARGEST, plain
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Published
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import Widening
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import (
    About,
    Earlier,
    Ends,
    Evidence,
    Finding,
    Part,
    attach,
    carried_by,
    of_facts,
    of_observation,
)

numbers = st.floats(-1e100, 1e100)
#: Also beyond what records hold.
any_numbers = st.floats(allow_nan=False)
texts = st.text(max_size=20)
figures = st.dictionaries(texts, st.none() | numbers, max_size=3).map(
    lambda each: {name: value for name, value in each.items()}
)
stated = st.builds(Published, numbers, st.sampled_from(Unit), texts, st.booleans())
parts = st.lists(
    st.builds(Part, texts, figures, st.none() | st.sampled_from(Finding), st.lists(stated, max_size=2).map(tuple)),
    max_size=2,
).map(tuple)
ends = st.builds(Ends, *[st.none() | numbers] * 3)
promised = st.builds(
    Evidence,
    claim=texts,
    geometries=st.tuples(texts),
    workloads=st.tuples(texts, texts),
    value=numbers,
    low=st.none() | numbers,
    high=st.none() | numbers,
    n=st.integers(0, 2**60),
    unit=st.sampled_from(Unit),
    limit=numbers,
    direction=st.sampled_from(Direction),
    source=texts,
    outcome=st.sampled_from([each for each in Finding if each is not Finding.OBSERVED]),
    margin_percent=numbers,
    sentence=texts,
    protocol=texts,
    acceptance=st.booleans(),
    figures=figures,
    raw=st.tuples(texts),
    about=st.sampled_from(About),
    group=texts,
    published=st.none() | stated,
    members=parts,
    worst=texts,
    points=parts,
    remarks=st.tuples(texts),
    confidence=st.floats(0.5, 0.999),
    is_reading=st.booleans(),
    basis=texts,
    baseline=st.none() | st.builds(Earlier, texts, texts, st.sampled_from(Unit), ends, ends),
)
evidences = promised | promised.map(
    lambda each: replace(each, limit=None, margin_percent=None, outcome=Finding.OBSERVED)
)


@given(evidences)
def test_survives_json(evidence: Evidence) -> None:
    assert of_facts(json.loads(json.dumps(plain(evidence), allow_nan=False))) == evidence


@given(promised, any_numbers, st.lists(any_numbers, min_size=2, max_size=2))
def test_enormous_figures_are_infinite_and_never_stop_a_run(
    evidence: Evidence, margin: float, ends: list[float]
) -> None:
    """Quantiles of few, very different rounds have intervals of a hundred decades at small shares of an error rate."""
    low, high = sorted(ends)
    found = replace(evidence, margin_percent=margin, low=low, high=high, wider=(Widening(1e-4, low, high),))
    (carried,) = of_facts(plain(found)).wider
    assert carried.low == (low if abs(low) <= LARGEST else -math.inf)
    assert carried.high == (high if abs(high) <= LARGEST else math.inf)


@given(promised)
def test_a_verdict_has_a_limit_and_an_observation_has_none(evidence: Evidence) -> None:
    for damaged in (replace(evidence, limit=None), replace(evidence, outcome=Finding.OBSERVED)):
        with pytest.raises(ValueError, match="limit"):
            of_facts(plain(damaged))


@given(promised, st.sampled_from([("confidence", 7.0), ("confidence", 0.0), ("n", -5)]))
def test_figures_that_cannot_be_are_damage(evidence: Evidence, change: tuple[str, float]) -> None:
    name, value = change
    with pytest.raises(ValueError, match=name):
        of_facts({**plain(evidence), name: value})


KEYS = ("claim", "value", "limit", "figures", "raw", "outcome", "acceptance", "about", "members", "published")


@given(evidences, st.sampled_from(KEYS))
def test_a_record_without_a_part_is_refused(evidence: Evidence, key: str) -> None:
    record = plain(evidence)
    del record[key]
    with pytest.raises(ValueError, match=key):
        of_facts(record)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("value", "7"),
        ("geometries", "raid5x4"),
        ("outcome", "maybe"),
        ("margin_percent", True),
        ("figures", [1]),
        ("baseline", {"run": 1}),
    ],
)
def test_a_record_with_a_wrong_part_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^this is no Evidence: {key}"):
        of_facts({**plain(claimed()), key: value})


def test_what_the_interval_is_is_kept() -> None:
    evidence = claimed(low=805_000, high=818_000)
    assert evidence.interval_in_full == "95 % CI 805…818 µs"
    assert replace(evidence, confidence=0.99).interval_in_full == "99 % CI 805…818 µs"
    read = replace(evidence, is_reading=True, basis="rounds of 2 min")
    assert read.interval_in_full == "805…818 µs as read, rounds of 2 min"
    assert of_facts(json.loads(json.dumps(plain(read)))) == read


def test_an_unbounded_interval_is_json() -> None:
    evidence = claimed(high=math.inf)
    text = json.dumps(plain(evidence), allow_nan=False)
    assert of_facts(json.loads(text)).high is None
    assert evidence.interval == "812 µs…∞"


def test_an_infinite_margin_comes_back_as_one() -> None:
    evidence = replace(claimed(), margin_percent=math.inf)
    assert json.loads(json.dumps(plain(evidence), allow_nan=False))["margin_percent"] is None
    assert of_facts(plain(evidence)) == evidence


def test_what_is_kept_of_a_verdict() -> None:
    evidence = claimed(low=805_000, high=818_000)
    assert (evidence.measured, evidence.interval, evidence.bound) == ("812 µs", "805…818 µs", "≤ 500 µs")
    assert (evidence.outcome, round(evidence.margin_percent or 0, 1)) == (Finding.FAIL, -62.4)
    assert (evidence.geometries, evidence.workloads) == (("raid5x4",), ("randread_4k_qd8",))
    assert evidence.sentence.endswith("limit 500 µs: FAIL by 62.4 %")
    assert claimed(Claim.STEADY_IOPS, value=9412, bound=9000).bound == "≥ 9,000 IOPS"


def test_a_report_carries_it() -> None:
    class Report:
        pass

    report = Report()
    assert carried_by(report) == ()
    attach(report, [claimed(), claimed(value=1)])
    assert carried_by(report) == (claimed(), claimed(value=1))


CARRY = """
    import pytest
    from pytest_ssdqual.report.evidence.evidence import attach, carried_by, of_facts

    RECORD = {record!r}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        if report.when == "call":
            attach(report, [of_facts(RECORD)])
        return report

    class Reader:
        def pytest_runtest_logreport(self, report):
            for each in carried_by(report):
                print("CARRIED", report.id if hasattr(report, "id") else report.nodeid, each.sentence, each.low)

    def pytest_configure(config):
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Reader())
"""


def test_xdist_hands_it_on(pytester: pytest.Pytester) -> None:
    evidence = claimed(high=math.inf, figures={"mean_latency_ns": 311_000.5, "cpu_busy_percent": None})
    pytester.makeconftest(CARRY.format(record=plain(evidence)))
    pytester.makepyfile("def test_a(): pass\ndef test_b(): pass")
    result = pytester.runpytest_subprocess("-s", "-p", "no:cacheprovider", "-n", "2")
    result.assert_outcomes(passed=2)
    # With two workers the tests may end in any order.
    result.stdout.fnmatch_lines_random([f"*CARRIED *test_{name}* {evidence.sentence} *" for name in "ab"])


OBSERVED = of_observation(
    Claim.STEADY_IOPS,
    Subject((Geometry.parse("raid0x4"),), (Workload("randread", "4k", 8),)),
    Estimate(53_011, 52_800, 53_200, 10, Unit.IOPS),
)


def test_what_is_kept_of_a_figure_that_nothing_is_promised_of() -> None:
    assert (OBSERVED.outcome, OBSERVED.is_promised, OBSERVED.margin_percent) == (Finding.OBSERVED, False, None)
    assert (OBSERVED.measured, OBSERVED.bound) == ("53,011 IOPS", "")
    assert OBSERVED.sentence == "steady IOPS of raid0x4 randread_4k_qd8: 53,011 IOPS (95 % CI 52,800…53,200 IOPS)"
    assert of_facts(json.loads(json.dumps(plain(OBSERVED)))) == OBSERVED


def test_an_interval_for_shares_of_the_error_rate_is_read_back() -> None:
    wide = replace(OBSERVED, wider=(Widening(0.1, 52_000, math.inf),))
    record = json.loads(json.dumps(plain(wide)))
    assert of_facts(record) == wide
    record["wider"][0]["low"] = "x"
    with pytest.raises(ValueError, match=r"wider\[0\].low: should be a valid number, not 'x'"):
        of_facts(record)


def test_ours_over_what_is_published() -> None:
    assert OBSERVED.times_published is None
    beside = replace(OBSERVED, published=Published(50_000, Unit.IOPS, "a paper", approximate=True))
    assert beside.times_published == pytest.approx(1.06, abs=0.001)
    assert replace(beside, published=Published(0, Unit.IOPS, "a paper")).times_published is None
