from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from support.builders.sheet import PRODUCT, bound, figure, loaded, promise
from support.builders.strategies import geometries, workloads

from pytest_ssdqual.qual.methods import intel_910, toms_s3700
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Direction
from pytest_ssdqual.qual.spec.promises import Promise, Relation
from pytest_ssdqual.qual.workload.workload import Workload

READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
HEALTHY, DEGRADED, REBUILDING = (Geometry.parse(f"raid5x4{state}") for state in ("", "-1failed", "-1rebuilding"))


def test_a_promise_is_about_whole_arrays_unless_it_names_a_state() -> None:
    whole = promise(claim="p99_latency", at_most="1 ms")
    degraded = promise(claim="p99_latency", state="degraded", at_most="2 ms")
    acme = loaded(PRODUCT + whole + degraded)
    assert [bound(acme, "p99_latency", each, READ) for each in (HEALTHY, DEGRADED, REBUILDING)] == [1e6, 2e6, None]
    assert "promises no p99" in acme.why_no_limit(Claim.P99_LATENCY, REBUILDING, READ)


def test_states_are_those_of_an_array() -> None:
    states = [array.state for array in (HEALTHY, DEGRADED, REBUILDING)]
    assert TypeAdapter(Promise).json_schema()["properties"]["state"]["anyOf"][0]["enum"] == states


def test_a_claim_about_a_rebuild_needs_no_state() -> None:
    text = promise(claim="rebuild_time", at_most="2 h") + promise(
        claim="rebuild_rate", state="rebuilding", at_least="9 MB/s"
    )
    acme = loaded(PRODUCT + text)
    for array in (HEALTHY, REBUILDING):
        assert bound(acme, "rebuild_time", array, READ) == 7_200
        assert bound(acme, "rebuild_rate", array, READ) == 9_000_000


def test_a_width_is_a_number_of_members() -> None:
    text = promise(claim="steady_iops", width=6, at_least="6 IOPS") + promise(claim="steady_iops", at_least="1 IOPS")
    acme = loaded(PRODUCT + text)
    assert [bound(acme, "steady_iops", each, READ) for each in ("raid0x6", "raid5x6", "raid0x5")] == [6, 6, 1]


def test_published_figure_of_an_array_comes_before_the_law() -> None:
    text = (
        figure(rw="randread", bs="4k", queue_depths=[8], iops=1_000)
        + figure(array="raid0x4", workload="randread_4k_qd8", iops=3_000, approximate=True)
        + promise(claim="steady_iops", min_percent_of_spec=90)
    )
    acme = loaded(PRODUCT + text)
    assert bound(acme, "steady_iops", "raid0x4", READ) == 2_700
    assert bound(acme, "steady_iops", "raid0x5", READ) == 4_500
    limits = [acme.limit(Claim.STEADY_IOPS, Geometry.parse(array), READ) for array in ("raid0x4", "raid0x5")]
    assert [limit.source for limit in limits if limit] == [
        "acme.toml promise[0]: 90 % of about 3,000 IOPS from acme (sheet)",
        "acme.toml promise[0]: 90 % of 5,000 IOPS from acme (one drive's figures, by the law of raid0x5)",
    ]


def test_iops_may_be_a_bare_number() -> None:
    acme = loaded(PRODUCT + promise(claim="steady_iops", at_least=75_000))
    assert acme.promises[0].at_least == 75_000


def test_unpublished_figure_gives_way_to_the_next_promise() -> None:
    spec = loaded(
        PRODUCT
        + figure(rw="randread", bs="4k", queue_depths=[8], p99_latency="2 ms")
        + promise(claim="p99_latency", max_percent_of_spec=150)
        + promise(claim="p99_latency", workload="*_qd8", at_most="7 ms"),
    )
    one = Geometry.parse("drivex1")
    assert bound(spec, "p99_latency", one, Workload("randread", "4k", 8)) == 3e6
    assert bound(spec, "p99_latency", one, Workload("randwrite", "4k", 8)) == 7e6
    assert bound(spec, "p99_latency", one, Workload("randwrite", "4k", 1)) is None


def test_a_published_p99_replaces_the_default_of_every_drive() -> None:
    spec = loaded(PRODUCT + figure(rw="randread", bs="4k", queue_depths=[8], p99_latency="200 us"))
    one = Geometry.parse("drivex1")
    assert bound(spec, "p99_latency", one, Workload("randread", "4k", 8)) == 2e5
    assert bound(spec, "p99_latency", one, Workload("randwrite", "4k", 8)) == 1e7


def test_latencies_are_promised_in_percent_of_what_is_published() -> None:
    text = figure(array="raid0x4", workload="randread_4k_qd8", mean_latency="1 ms", throughput="100 MB/s")
    text += promise(claim="mean_latency", max_percent_of_spec=120) + promise(claim="throughput", min_percent_of_spec=50)
    acme = loaded(PRODUCT + text)
    limit = acme.limit(Claim.MEAN_LATENCY, Geometry.parse("raid0x4"), READ)
    assert limit is not None
    assert (limit.bound, limit.direction) == (1_200_000, Direction.AT_MOST)
    assert bound(acme, "throughput", "raid0x4", READ) == 50_000_000
    # There is a law for IOPS only.
    assert bound(acme, "mean_latency", "raid0x5", READ) is None
    assert "randread_4k_qd8 on raid0x5" in acme.why_no_limit(Claim.MEAN_LATENCY, Geometry.parse("raid0x5"), READ)


RELATIVE = promise(claim="p99_latency", workload="randrw*", relative_to="randread_4k_qd8", at_most="250 %") + promise(
    claim="p99_latency", at_most="1 ms"
)
MIXED = Workload("randrw", "4k", 8, read_percent=70)


def test_a_limit_can_be_relative_to_another_workload() -> None:
    acme = loaded(PRODUCT + RELATIVE)
    assert acme.relation(Claim.P99_LATENCY, HEALTHY, MIXED) == Relation(
        READ, Direction.AT_MOST, 250, "acme.toml promise[0]"
    )
    assert "at most 250" in str(acme.relation(Claim.P99_LATENCY, HEALTHY, MIXED))
    assert acme.limit(Claim.P99_LATENCY, HEALTHY, MIXED) is None
    assert "randrw70_4k_qd8 only relative" in acme.why_no_limit(Claim.P99_LATENCY, HEALTHY, MIXED)
    assert acme.relation(Claim.P99_LATENCY, HEALTHY, WRITE) is None
    assert bound(acme, "p99_latency", HEALTHY, WRITE) == 1e6


def test_a_limit_can_be_relative_to_an_earlier_run() -> None:
    acme = loaded(PRODUCT + promise(claim="p99_latency", workload="randrw*", max_percent_of_baseline=110))
    assert acme.relation(Claim.P99_LATENCY, HEALTHY, MIXED) == Relation(
        None, Direction.AT_MOST, 110, "acme.toml promise[0]"
    )
    assert "at most 110" in str(acme.relation(Claim.P99_LATENCY, HEALTHY, MIXED))
    assert acme.relation(Claim.P99_LATENCY, HEALTHY, READ) is None
    assert acme.limit(Claim.P99_LATENCY, HEALTHY, MIXED) is None
    assert "of a baseline" in acme.why_no_limit(Claim.P99_LATENCY, HEALTHY, MIXED)


def test_no_workload_is_compared_with_itself() -> None:
    acme = loaded(PRODUCT + RELATIVE.replace('workload = "randrw*"\n', ""))
    assert acme.relation(Claim.P99_LATENCY, HEALTHY, READ) is None
    assert bound(acme, "p99_latency", HEALTHY, READ) == 1e6
    assert acme.relation(Claim.P99_LATENCY, HEALTHY, WRITE) is not None


def test_references_are_what_must_be_measured_with_a_workload() -> None:
    text = RELATIVE
    text += promise(claim="steady_iops", relative_to="randread_4096_qd8", at_least="40 %")
    text += promise(claim="mean_latency", level="raid0", relative_to="randwrite_4k_qd8", at_most="150 %")
    text += promise(claim="max_latency", state="degraded", relative_to="randwrite_4k_qd1", at_most="150 %")
    acme = loaded(PRODUCT + text)
    assert acme.references(HEALTHY, MIXED) == (READ,)
    assert acme.references(Geometry.parse("raid0x4"), MIXED) == (READ, WRITE)
    assert acme.references(Geometry.parse("raid0x4"), READ) == (WRITE,)
    assert acme.references(DEGRADED, MIXED) == (WRITE.at(1),)


def test_defaults_make_nobody_measure_more_than_was_asked() -> None:
    assert loaded(PRODUCT).references(HEALTHY, MIXED) == ()


def test_small_upper_per_cent_and_large_ratio_may_be_meant() -> None:
    text = promise(claim="throttled_time", at_most="0.1 %") + promise(claim="scaling_deviation", at_most="1 %")
    text += promise(claim="latency_spread_over_time", at_most=30) + promise(claim="qd_gain", at_least=50)
    text += promise(claim="unaligned_penalty", at_most=19) + promise(claim="steady_iops", min_percent_of_spec=1.5)
    assert [each.bound for each in loaded(PRODUCT + text).promises] == [0.1, 1, 30, 50, 19, None]


@pytest.mark.parametrize(("given", "factor"), [(0.9, 0.9), (3, 3), (99, 99), ("99 x", 99), ("150 x", 150)])
def test_a_factor_may_be_large_if_it_says_so(given: object, factor: float) -> None:
    acme = loaded(PRODUCT + promise(claim="fresh_to_steady", at_most=given))
    assert acme.promises[0].at_most == factor


@pytest.mark.parametrize("workload", [READ, MIXED, *toms_s3700.ON_SECTORS, intel_910.STREAMS.workloads[0]], ids=str)
@pytest.mark.parametrize("glob", ["{0}", "*_{0.qd_per_drive}", "*qd[0-9]*", "?*qd{0.qd_per_drive}", "[!x]*"])
def test_a_promise_may_name_any_workload(workload: Workload, glob: str) -> None:
    named = glob.format(workload).replace("*_", "*_*qd")
    acme = loaded(PRODUCT + promise(claim="p99_latency", workload=named, at_most="1 ms"))
    assert bound(acme, "p99_latency", HEALTHY, workload) == 1e6


@pytest.mark.parametrize(
    ("glob", "workload", "does_match"),
    [
        ("*_qd8", "randread_4k_qd8", True),
        ("*_qd8", "randread_4k_s4_qd8", False),
        ("*qd8", "randread_4k_t1xqd8", True),
        ("*qd8", "randread_4k_t8xqd8", False),
        ("*qd[1248]", "randread_4k_t2xqd4", False),
        ("*qd[!1]", "randread_4k_t2xqd4", False),
        ("*qd?", "randread_4k_t2xqd4", False),
        ("randread_*8", "randread_4k_t8xqd8", False),
        ("randread_*8", "randread_4k_qd8", True),
        # Jobs are named, or any depth is meant.
        ("*t8xqd8", "randread_4k_t8xqd8", True),
        ("*_t*xqd8", "randread_4k_t8xqd8", True),
        ("*_t?xqd[1248]", "randread_4k_t8xqd8", True),
        ("*_s4_qd8", "randread_4k_s4_qd8", True),
        ("*_s*_qd8", "randwrite_4k_sync_s4_qd8", True),
        ("*_sync_qd8", "randwrite_4k_sync_qd8", True),
        ("*_sync*_qd8", "randwrite_4k_sync_s4_qd8", False),
        ("randread_*", "randread_4k_t8xqd8", True),
        ("randread_*qd*", "randread_4k_s4_qd8", True),
        ("randread_4k_t8xqd8", "randread_4k_t8xqd8", True),
    ],
)
def test_glob_with_a_depth_matches_several_jobs_only_by_name(glob: str, workload: str, does_match: bool) -> None:
    promise = Promise(claim=Claim.P99_LATENCY, workload=glob, at_most=1e6)
    assert promise.matches(Claim.P99_LATENCY, HEALTHY, Workload.parse(workload)) is does_match


def test_a_test_without_a_limit_says_that_a_glob_names_no_jobs() -> None:
    text = promise(claim="p99_latency", level="raid5", workload="*qd8", at_most="1 ms")
    acme = loaded(PRODUCT + text)
    several, raid0 = Workload("randread", "4k", 8, threads=8), Geometry.parse("raid0x4")
    assert "as in '*_t*xqd8'" in acme.why_no_limit(Claim.P99_LATENCY, Geometry.parse("raid5x4"), several)
    assert acme.why_no_limit(Claim.P99_LATENCY, raid0, several).endswith("for raid0x4 randread_4k_t8xqd8")


@given(geometries, workloads, st.sampled_from(Claim))
def test_a_promise_without_conditions_is_about_every_whole_array(
    geometry: Geometry, workload: Workload, claim: Claim
) -> None:
    general = Promise(claim=claim, at_least=1.0)
    assert general.matches(claim, geometry, workload)
    assert general.relation is None


GENERAL = promise(claim="steady_iops", at_least="300 IOPS")


@pytest.mark.parametrize(
    "special",
    [
        {"workload": "randread_*"},
        {"level": "raid5"},
        {"level": "raid5", "width": 3},
        {"class": "sata"},
        {},
    ],
)
def test_a_promise_behind_a_wider_one_is_dead(special: dict[str, object]) -> None:
    first = promise(claim="steady_iops", at_least="900 IOPS", **special)
    wide, narrow = loaded(PRODUCT + GENERAL + first).promises
    assert wide.covers(narrow)
    assert narrow.covers(wide) is not bool(special)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"state": "degraded", "at_least": "300 IOPS"}, {"at_least": "900 IOPS"}),
        ({"min_percent_of_spec": 90}, {"at_least": "900 IOPS"}),
        ({"at_least": "90 %", "relative_to": "randread_4k_qd8"}, {"at_least": "900 IOPS"}),
        ({"class": "nvme_gen4", "at_least": "300 IOPS"}, {"at_least": "900 IOPS"}),
        ({"at_least": "300 IOPS", "class": "sata"}, {"at_least": "900 IOPS", "class": "sas"}),
        ({"workload": "*_qd8", "at_least": "300 IOPS"}, {"workload": "randread_*", "at_least": "900 IOPS"}),
    ],
)
def test_a_promise_that_something_is_left_for_is_not(first: dict[str, object], second: dict[str, object]) -> None:
    text = PRODUCT + promise(claim="steady_iops", **first) + promise(claim="steady_iops", **second)
    before, after = loaded(text).promises
    assert not before.covers(after)
