"""What ``ssdqual spec --check`` says about a spec."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from support.builders.sheet import PRODUCT, figure, load, promise
from support.documents.suite_sources import shipped

from pytest_ssdqual import suites
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.data_sheet import explain

READS = figure(rw="randread", bs="4k", queue_depths=[32], iops=1000)


def explained(tmp_path: Path, *tables: str) -> str:
    return "\n".join(line.text for line in explain.lines(load(tmp_path, PRODUCT + "".join(tables))))


def missing(tmp_path: Path, *tables: str) -> str:
    return "\n".join(explain.missing(load(tmp_path, PRODUCT + "".join(tables))))


def test_the_suites_of_each_claim_are_those_that_judge_it() -> None:
    found: dict[Claim, set[str]] = defaultdict(set)
    for test in shipped():
        for claim, _ in test.judged:
            found[Claim(claim)].add(test.module.partition("/")[0])
    assert {Claim(claim): set(names) for claim, names in suites.judging().items()} == found


def test_a_figure_is_shown_with_its_source_and_its_limit(tmp_path: Path) -> None:
    text = explained(tmp_path, READS)
    assert "each drive randread_4k_qd32: steady IOPS 1,000 IOPS (sheet); limit at least 900 IOPS" in text
    assert "datasheet: 1 published quantity" in text


def test_a_figure_below_the_floor_of_its_class_is_shown(tmp_path: Path) -> None:
    (doubt,) = load(tmp_path, PRODUCT + READS).doubts()
    assert doubt in explained(tmp_path, READS)


def test_a_promise_is_shown_with_its_place_and_its_suites(tmp_path: Path) -> None:
    text = explained(tmp_path, promise(claim="rebuild_time", level="raid5", width=4, at_most="2 h"))
    assert "promise[0]: rebuild time at most 2 h, of raid5 of 4, rebuilding, every workload" in text
    assert "rebuild time: degraded" in text


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"min_percent_of_spec": 95}, "at least 95 % of the figure"),
        ({"min_percent_of_baseline": 97}, "at least 97 % of the baseline"),
        ({"relative_to": "randread_4k_qd8", "at_least": "40 %"}, "at least 40 % of randread_4k_qd8"),
        ({"at_least": "11 IOPS"}, "at least 11 IOPS"),
    ],
)
def test_every_form_of_a_limit_is_shown(tmp_path: Path, limit: dict[str, object], said: str) -> None:
    assert f"promise[0]: steady IOPS {said}, of" in explained(tmp_path, promise(claim="steady_iops", **limit))


def test_missing_figures_and_facts_are_named(tmp_path: Path) -> None:
    text = missing(tmp_path, READS)
    assert "no figure: IOPS of random writes of one drive" in text
    assert "IOPS of random reads" not in text
    assert "[endurance] is missing" in text
    assert "[product] has no capacity" in text


def test_a_promise_in_percent_of_nothing_is_named(tmp_path: Path) -> None:
    text = missing(tmp_path, READS, promise(claim="throughput", min_percent_of_spec=90))
    assert "promise[0] is in per cent of throughput, of which no figure is published" in text
    assert "promise[0]" not in missing(tmp_path, READS, promise(claim="steady_iops", min_percent_of_spec=90))


def test_a_promise_behind_a_wider_one_is_named(tmp_path: Path) -> None:
    wide, narrow = (
        promise(claim="p99_latency", at_most="2 ms"),
        promise(claim="p99_latency", level="raid5", at_most="1 ms"),
    )
    assert "promise[1] never decides: promise[0] comes first" in missing(tmp_path, wide, narrow)
    assert "never decides" not in missing(tmp_path, narrow, wide)
    # Where nothing is published, the second one decides.
    percent = promise(claim="p99_latency", max_percent_of_spec=100)
    assert "never decides" not in missing(tmp_path, percent, narrow)


def test_a_published_figure_that_no_promise_covers_is_named(tmp_path: Path) -> None:
    text = missing(tmp_path, READS, promise(claim="steady_iops", level="raid5", min_percent_of_spec=90))
    assert "1 published steady IOPS without a limit" in text


@pytest.mark.parametrize("name", spec.shipped())
def test_no_shipped_spec_has_a_promise_without_effect(name: str) -> None:
    lines = list(explain.lines(spec.load(name)))
    assert not [line.text for line in lines if "never decides" in line.text]


def test_limits_of_health_other_than_the_defaults_are_shown(tmp_path: Path) -> None:
    shown = explained(tmp_path, "[health]\nlink_errors = 0\nreallocated_blocks = 2\nerase_failures = 0\n")
    assert "CRC errors of the link: at most 0 more" in shown
    assert "reallocated blocks: at most 2 more" in shown
    assert "erase failures" not in shown
    assert "suite judges it: none" in explained(tmp_path)
