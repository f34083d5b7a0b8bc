from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.qual.explore import dimensions as spaces
from pytest_ssdqual.qual.explore.dimensions import Budget, Space
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec.protocol_rules import ExploreRule, MeasureRule
from pytest_ssdqual.qual.workload.workload import Workload

RANDOM, SEQUENTIAL = Space.of(Workload("randread", "4k", 1)), Space.of(Workload("read", "128k", 1))
CORNER = Workload("randwrite", "64k", 16, offset="512", sync=True)

drawn = st.sampled_from([RANDOM, SEQUENTIAL]).flatmap(
    lambda space: st.tuples(*(st.sampled_from(each.values) for each in space.dimensions)).map(
        lambda values: (space, space.at(values))
    )
)


@given(drawn)
def test_every_combination_is_a_workload_and_read_back(found: tuple[Space, Workload]) -> None:
    space, workload = found
    assert workload.is_random == space.plain.is_random
    assert space.at(space.values(workload)) == workload
    assert Workload.parse(str(workload)) == workload


@settings(max_examples=30)
@given(drawn)
def test_what_is_simpler_by_one_is_less_complex_and_of_the_space(found: tuple[Space, Workload]) -> None:
    space, workload = found
    simpler = list(space.simpler(workload))
    assert all(space.complexity(each) < space.complexity(workload) for each in simpler)
    assert [space.complexity(each) for each in simpler] == sorted(space.complexity(each) for each in simpler)
    # Whatever is taken back one by one ends at the plain one.
    assert bool(simpler) == (workload != space.plain)


@given(drawn)
def test_nothing_is_simpler_than_the_plain_one(found: tuple[Space, Workload]) -> None:
    space, workload = found
    assert space.complexity(space.plain) <= space.complexity(workload)
    assert len(space.departures(workload)) == space.complexity(workload)[0]
    assert space.departures(space.plain) == ()


def test_fewer_departures_are_simpler_however_far_they_go() -> None:
    far, near = Workload("randread", "256k", 1), Workload("randread", "8k", 2)
    assert RANDOM.complexity(far) < RANDOM.complexity(near)


def test_departures_are_told_in_words() -> None:
    assert RANDOM.departures(CORNER) == ("size 64k", "depth 16", "reads 0 %", "offset 512", "flush sync")
    assert SEQUENTIAL.departures(Workload("read", "128k", 1, gap="1m", region_percent=10)) == ("gap 1m", "region 10 %")


def test_what_makes_no_sense_beside_the_others_is_left_out() -> None:
    values = dict(zip((each.name for each in RANDOM.dimensions), RANDOM.values(RANDOM.plain), strict=True))
    reads = RANDOM.at(tuple({**values, "flush": "sync", "compressible": 50, "dedupe": 50}.values()))
    assert reads == RANDOM.plain
    assert RANDOM.at(tuple({**values, "offset": "4k"}.values())) == RANDOM.plain
    assert RANDOM.at(tuple({**values, "offset": "4k", "size": "8k"}.values())).offset == "4k"


def test_without_writes_their_flushes_go_too() -> None:
    assert Workload("randread", "64k", 16, offset="512") in list(RANDOM.simpler(CORNER))
    assert replace(CORNER, sync=False) in list(RANDOM.simpler(CORNER))
    assert replace(CORNER, bs="32k") in list(RANDOM.simpler(CORNER))


@pytest.mark.parametrize(
    "workload",
    [
        Workload("read", "4k", 1),
        Workload("randread", "4k", 3),
        Workload("randread", "4k", 1, threads=2),
        Workload("randread", "4k", 1, random_percent=50),
        Workload("randwrite", "4k", 1, sync=True, fsync=1),
    ],
)
def test_a_workload_of_elsewhere_is_none_of_the_space(workload: Workload) -> None:
    with pytest.raises(ValueError, match="workloads around randread_4k_qd1"):
        RANDOM.values(workload)


def test_drives_with_blocks_of_4k_are_asked_for_nothing_smaller() -> None:
    space = Space.of(Workload("randread", "4k", 1), 4096)
    sizes, offsets = ({each.name: each.values for each in space.dimensions}[name] for name in ("size", "offset"))
    assert "512" not in sizes
    assert offsets == ("0", "4k")


@pytest.mark.parametrize(
    "plain",
    [
        Workload("randwrite", "4k", 1),
        Workload("randread", "4k", 1, zipf=120),
        Workload("randread", "4k", 1, offset="512"),
    ],
)
def test_a_search_starts_from_plain_reads(plain: Workload) -> None:
    with pytest.raises(ValueError, match="search starts from"):
        Space.of(plain)


@pytest.mark.parametrize(
    ("spent_s", "searched", "next_s", "allowed"),
    [(0, 0, 100, True), (0, 0, 101, False), (94, 3, 6, True), (95, 3, 6, False), (0, 4, 6, False)],
)
def test_a_budget_is_of_time_and_of_workloads(spent_s: float, searched: int, next_s: float, allowed: bool) -> None:
    assert Budget(100, 4).allows(spent_s, searched, next_s) == allowed


def test_a_fixed_protocol_probes_for_a_minute_once() -> None:
    intel = protocols.load("intel")
    probing = spaces.probing(intel)
    assert (intel.measure.window_s, intel.measure.repeats) == (600, 2)
    assert probing.measure == MeasureRule(120, 60, 1, 1)
    assert spaces.probe_s(probing) == 180
    assert spaces.longer(probing).measure.window_s == 300
    said = replace(intel, explore=ExploreRule(measurement_s=30))
    assert spaces.probing(said).measure.window_s == 30
    assert spaces.probing(protocols.load("quick")).measure.window_s == 5


def test_probe_of_a_protocol_with_visits_is_one_cell() -> None:
    protocol = protocols.load("acceptance")
    probing = spaces.probing(protocol)
    assert protocol.visits is not None
    assert probing.visits is None
    assert probing.measure == replace(protocol.measure, window_s=protocol.visits.cell_s, repeats=1, attempts=1)
    said = replace(protocol, explore=ExploreRule(measurement_s=30))
    assert spaces.probing(said).measure.window_s == 30
