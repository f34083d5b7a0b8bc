"""What ``ssdqual spec --check`` says about a spec."""

from __future__ import annotations

import difflib
from collections import defaultdict

import pytest
from support.builders.sheet import PRODUCT, figure, loaded, promise
from support.documents import golden
from support.documents.suite_sources import shipped

from pytest_ssdqual import suites
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.data_sheet import explain

READS = figure(rw="randread", bs="4k", queue_depths=[32], iops=1000)


def test_the_suites_of_each_claim_are_those_that_judge_it() -> None:
    found: dict[Claim, set[str]] = defaultdict(set)
    for test in shipped():
        for claim, _ in test.judged:
            found[Claim(claim)].add(test.module.partition("/")[0])
    assert {Claim(claim): set(names) for claim, names in suites.judging().items()} == found


WIDE, NARROW = (
    promise(claim="p99_latency", at_most="2 ms"),
    promise(claim="p99_latency", level="raid5", at_most="1 ms"),
)
SPECS = {
    "a figure": READS,
    "a promise": promise(claim="rebuild_time", level="raid5", width=4, at_most="2 h"),
    "per cent of the spec": promise(claim="steady_iops", min_percent_of_spec=95),
    "per cent of the baseline": promise(claim="steady_iops", min_percent_of_baseline=97),
    "relative": promise(claim="steady_iops", relative_to="randread_4k_qd8", at_least="40 %"),
    "absolute": promise(claim="steady_iops", at_least="11 IOPS"),
    "per cent of nothing": READS + promise(claim="throughput", min_percent_of_spec=90),
    "per cent of a figure": READS + promise(claim="steady_iops", min_percent_of_spec=90),
    "behind a wider one": WIDE + NARROW,
    "before a wider one": NARROW + WIDE,
    # Where nothing is published, the second one decides.
    "behind one in per cent": promise(claim="p99_latency", max_percent_of_spec=100) + NARROW,
    "a figure that no promise covers": READS + promise(claim="steady_iops", level="raid5", min_percent_of_spec=90),
    "limits of health": "[health]\nlink_errors = 0\nreallocated_blocks = 2\nerase_failures = 0\n",
}


def explained(*tables: str) -> list[str]:
    return [line.text for line in explain.lines(loaded("".join([PRODUCT, *tables])))]


def test_what_is_said_of_a_spec_that_promises_nothing() -> None:
    golden.same("specs.txt", explained())


@pytest.mark.parametrize("tables", SPECS.values(), ids=SPECS)
def test_what_is_said_of_a_spec_otherwise(tables: str) -> None:
    difference = difflib.ndiff(explained(), explained(tables))
    golden.same("specs.txt", [line for line in difference if line.startswith(("+", "-"))])


@pytest.mark.parametrize("name", spec.shipped())
def test_no_shipped_spec_has_a_promise_without_effect(name: str) -> None:
    lines = list(explain.lines(spec.load(name)))
    assert not [line.text for line in lines if "never decides" in line.text]
