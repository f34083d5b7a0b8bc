from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.claim import Claim, Direction
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.histogram import LatencyHistogram
from pytest_ssdqual.qual.measurement import Interval, Measured, Run
from pytest_ssdqual.qual.protocol import SteadyRule
from pytest_ssdqual.qual.steady import judge
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import Outcome
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.report.evidence import (
    Evidence,
    Figure,
    attach,
    carried_by,
    figures_of,
    figures_of_steady,
    from_record,
)

Claimed = Callable[..., Evidence]

numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=20)
evidences = st.builds(
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
    outcome=st.sampled_from(Outcome),
    margin_percent=numbers,
    sentence=texts,
    protocol=texts,
    acceptance=st.booleans(),
    figures=st.dictionaries(texts, st.none() | numbers, max_size=3).map(
        lambda each: tuple(Figure(name, value) for name, value in each.items())
    ),
    raw=st.tuples(texts),
)


@given(evidences)
def test_survives_json(evidence: Evidence) -> None:
    assert from_record(json.loads(json.dumps(evidence.to_record(), allow_nan=False))) == evidence


@given(evidences, st.sampled_from(["claim", "estimate", "limit", "figures", "raw", "outcome", "acceptance"]))
def test_a_record_without_a_part_is_refused(evidence: Evidence, key: str) -> None:
    record = evidence.to_record()
    del record[key]
    with pytest.raises(ValueError, match=key):
        from_record(record)


@pytest.mark.parametrize(
    ("key", "value"),
    [("estimate", 7), ("geometries", "raid5x4"), ("outcome", "maybe"), ("margin_percent", True), ("figures", [1])],
)
def test_a_record_with_a_wrong_part_is_refused(claimed: Claimed, key: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"is not|no evidence|valid"):
        from_record({**claimed().to_record(), key: value})


def test_what_a_newer_version_adds_is_ignored(claimed: Claimed) -> None:
    assert from_record({**claimed().to_record(), "colour": "green"}) == claimed()


def test_an_unbounded_interval_is_json(claimed: Claimed) -> None:
    evidence = claimed(high=math.inf)
    text = json.dumps(evidence.to_record(), allow_nan=False)
    assert from_record(json.loads(text)).high is None
    assert evidence.interval == "812 µs…∞ s"


def test_an_infinite_margin_comes_back_as_one(claimed: Claimed) -> None:
    evidence = replace(claimed(), margin_percent=math.inf)
    assert json.loads(json.dumps(evidence.to_record(), allow_nan=False))["margin_percent"] is None
    assert from_record(evidence.to_record()) == evidence


def test_what_is_kept_of_a_verdict(claimed: Claimed) -> None:
    evidence = claimed(low=805_000, high=818_000)
    assert (evidence.measured, evidence.interval, evidence.bound) == ("812 µs", "805…818 µs", "≤ 500 µs")
    assert (evidence.outcome, round(evidence.margin_percent, 1)) == (Outcome.FAIL, -62.4)
    assert (evidence.geometries, evidence.workloads) == (("raid5x4",), ("randread_4k_qd8",))
    assert evidence.sentence.endswith("limit 500 µs: FAIL by 62.4 %")
    assert claimed(Claim.STEADY_IOPS, value=9412, bound=9000).bound == "≥ 9,000 IOPS"


def test_a_report_carries_it(claimed: Claimed) -> None:
    class Report:
        pass

    report = Report()
    assert carried_by(report) == ()
    attach(report, [claimed(), claimed(value=1)])
    assert carried_by(report) == (claimed(), claimed(value=1))


CARRY = """
    import pytest
    from pytest_ssdqual.report.evidence import attach, carried_by, from_record

    RECORD = {record!r}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        if report.when == "call":
            attach(report, [from_record(RECORD)])
        return report

    class Reader:
        def pytest_runtest_logreport(self, report):
            for each in carried_by(report):
                print("CARRIED", report.id if hasattr(report, "id") else report.nodeid, each.sentence, each.low)

    def pytest_configure(config):
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Reader())
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_xdist_hands_it_on(pytester: pytest.Pytester, claimed: Claimed, workers: str) -> None:
    evidence = claimed(high=math.inf, figures=(Figure("mean_latency_ns", 311_000.5), Figure("cpu_busy_percent", None)))
    pytester.makeconftest(CARRY.format(record=evidence.to_record()))
    pytester.makepyfile("def test_a(): pass\ndef test_b(): pass")
    result = pytester.runpytest_subprocess("-s", "-p", "no:cacheprovider", "-n", workers)
    result.assert_outcomes(passed=2)
    # With two workers the tests may end in any order.
    result.stdout.fnmatch_lines_random([f"*CARRIED *test_{name}* {evidence.sentence} *" for name in "ab"])


def _measured(cpu_busy: float | None, latency_ns: int, ios: int) -> Measured:
    histogram, empty = LatencyHistogram(((latency_ns, ios),)) if ios else LatencyHistogram(()), LatencyHistogram(())
    interval = Interval(0, 1, ios, 0, ios * 4096, 0, histogram, empty)
    run = Run(Workload("randread", "4k", 2), Geometry.parse("raid5x4"), ("A",), (interval,), 0, 1, 1, "x", cpu_busy)
    return Measured((run, run))


def test_figures_of_a_measurement() -> None:
    figures = {each.name: each.value for each in figures_of(_measured(0.25, 1_000_000, 8000))}
    assert figures["iops"] == 8000
    assert figures["ios"] == 16000
    assert figures["counted_s"] == 2
    assert figures["cpu_busy_percent"] == 25
    assert figures["mean_latency_ns"] == pytest.approx(1_000_000, rel=0.01)
    # 8,000 IOPS × 1 ms are 8 outstanding, and 2 × 4 drives were asked for.
    assert figures["littles_law_percent"] == pytest.approx(100, rel=0.01)


def test_figures_of_nothing() -> None:
    figures = {each.name: each.value for each in figures_of(_measured(None, 1, 0))}
    assert figures["mean_latency_ns"] is figures["littles_law_percent"] is figures["cpu_busy_percent"] is None


def test_figures_of_a_steady_state_are_percentages() -> None:
    figures = {each.name: each.value for each in figures_of_steady(judge([90, 100, 100, 100, 110], SteadyRule()))}
    assert figures["steady_rounds"] == 5
    assert figures["steady_range_percent"] == pytest.approx(20)
    assert figures["steady_slope_percent"] == pytest.approx(16)
