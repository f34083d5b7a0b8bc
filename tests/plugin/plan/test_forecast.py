from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.sheet import EVERY_DEPTH

from pytest_ssdqual.plugin.plan import forecast, order, step_prices
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.protocol_rules import PreconditionRule, RebuildRule, VisitRule
from pytest_ssdqual.qual.workload.rounds import Rounds, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind

READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
GB = 10**9
GEOMETRIES = st.sampled_from([level for level in RaidLevel if level is not RaidLevel.DRIVE]).flatmap(
    lambda level: st.integers(0, 5).map(lambda more: Geometry(level, FACTS[level].minimum + more * FACTS[level].step))
)


def planned(
    measured: Mapping[Geometry, Sequence[Workload]] | None = None,
    saturated: Mapping[Geometry, Sequence[Workload]] | None = None,
    loops: Mapping[Geometry, Sequence[Rounds]] | None = None,
    rebuilt: Mapping[Geometry, Sequence[Workload]] | None = None,
) -> Steps:
    """All steps in the order of execution."""
    kinds = {
        StepKind.MEASURED: measured, StepKind.SATURATION: saturated, StepKind.LOOP: loops, StepKind.REBUILD: rebuilt,
    }  # fmt: skip
    return order.in_order(
        CampaignStep(kind, geometry, each)
        for kind, by_array in kinds.items()
        for geometry, several in (by_array or {}).items()
        for each in several
    )


def test_figures_of_the_plan_are_of_protocol_and_data_sheet() -> None:
    intel, sheet = protocol.load("intel"), spec.load("intel-dc-s3500-480gb")
    wanted = {Geometry(RaidLevel.RAID5, 4): [WRITES, READS]}
    found = forecast.predict(planned(wanted), intel, sheet, 4, 480_000_000_000)
    (array,) = found.arrays
    rate = sheet.product.sequential_write_bytes_per_s or step_prices.FILL_BYTES_PER_S
    fill_s = step_prices.BUILD_S + 480e9 / rate
    assert array.condition_s == pytest.approx(fill_s + intel.precondition.step_s)
    once_s = 2 * 2 * (720 + step_prices.OVERHEAD_S)
    assert array.measure_s == once_s
    # Conditioning until it is given up, and each window again.
    assert array.at_most_s == pytest.approx(fill_s + intel.precondition.limit_s + 2 * once_s)
    assert array.bytes_written >= 4 * 480e9  # a fill writes all members, parity too
    assert found.endurance_bytes == sheet.endurance_bytes


@given(GEOMETRIES, st.integers(1, 10**13))
def test_a_fill_wears_every_member_once(geometry: Geometry, drive_bytes: int) -> None:
    bare = spec.default()
    (array,) = forecast.predict(
        planned({geometry: [READS]}), protocol.load("quick"), bare, geometry.width, drive_bytes
    ).arrays
    assert array.bytes_written == drive_bytes * geometry.width


@given(GEOMETRIES)
def test_writes_cost_their_copies_and_their_parity(geometry: Geometry) -> None:
    sheet, quick = spec.load(EVERY_DEPTH), protocol.load("quick")
    reads = forecast.predict(planned({geometry: [READS]}), quick, sheet, geometry.width, 1).arrays[0].bytes_written
    both = (
        forecast.predict(planned({geometry: [READS, WRITES]}), quick, sheet, geometry.width, 1).arrays[0].bytes_written
    )
    iops = sheet.expected_iops(geometry, WRITES)
    assert iops
    copies = {
        RaidLevel.RAID0: 1,
        RaidLevel.RAID1: geometry.width,
        RaidLevel.RAID5: 2,
        RaidLevel.RAID6: 3,
        RaidLevel.RAID10: 2,
    }
    seconds = quick.measure.repeats * (quick.measure.ramp_s + quick.measure.window_s)
    assert both - reads == pytest.approx(iops * 4096 * seconds * copies[geometry.level], abs=2)


def test_tails_are_planned_with_their_own_windows() -> None:
    quick, geometry = protocol.load("quick"), Geometry(RaidLevel.RAID5, 4)
    bare, tails = spec.default(), frozenset({READS})
    (plain,) = forecast.predict(planned({geometry: [READS, WRITES]}), quick, bare, 4, 1).arrays
    (longer,) = forecast.predict(planned({geometry: [READS, WRITES]}), quick, bare, 4, 1, tails).arrays
    assert quick.measure.tail_window_s
    assert longer.measure_s - plain.measure_s == quick.measure.tail_window_s - quick.measure.window_s
    assert longer.at_most_s - plain.at_most_s == quick.measure.attempts * (
        quick.measure.tail_window_s - quick.measure.window_s
    )


RULE = VisitRule(cells=(2, 2, 3), cell_s=60.0, ramp_s=5.0, refresh_s=180.0)
OURS = replace(protocol.load("acceptance"), visits=RULE)
CELL_S = 60 + 5 + step_prices.OVERHEAD_S
REFRESHED_S = 180 + step_prices.OVERHEAD_S + step_prices.BUILD_S
RAID5X3, RAID5X4 = Geometry(RaidLevel.RAID5, 3), Geometry(RaidLevel.RAID5, 4)
SHEET = spec.load("intel-dc-s3500-480gb")


def visited(measured: Mapping[Geometry, Sequence[Workload]], settings: protocol.Protocol = OURS) -> PrintedPlan:
    steps = order.in_order(planned(measured), of_drives=True)
    return forecast.predict(steps, settings, SHEET, 4, 480 * GB)


def test_drives_that_arrays_share_are_conditioned_once() -> None:
    found = {each.geometry: each for each in visited({RAID5X3: [WRITES], RAID5X4: [WRITES]}).arrays}
    rate = SHEET.product.sequential_write_bytes_per_s or step_prices.FILL_BYTES_PER_S
    writes = SHEET.expected_iops(Geometry(RaidLevel.DRIVE, 4), WRITES)
    assert writes
    step_s, capacity_s = OURS.precondition.step_s, 480e9 / (writes * 4096)
    drives = found["drivex4 conditioning"]
    filled_s = step_prices.BUILD_S + 480e9 / rate
    conditioned_s = step_s * math.ceil(capacity_s / step_s)
    # The drives of the widest array have just been written to; those of the next one have not.
    refreshed_s = 180 + step_prices.OVERHEAD_S
    assert drives.condition_s == pytest.approx(filled_s + conditioned_s + refreshed_s)
    most_s = step_s * math.ceil(OURS.precondition.limit_capacities * capacity_s / step_s)
    assert drives.at_most_s == pytest.approx(filled_s + most_s + refreshed_s)


def test_each_array_is_visited_twice_to_all_rounds() -> None:
    plan = visited({RAID5X3: [WRITES, READS], RAID5X4: [WRITES]})
    rows = {each.geometry: each for each in plan.arrays}
    for name, workloads in (("raid5x3", 2), ("raid5x4", 1)):
        row = rows[name]
        assert row.condition_s == pytest.approx(step_prices.BUILD_S + REFRESHED_S)
        assert row.measure_s == pytest.approx(workloads * (2 + 2) * CELL_S)
        assert row.at_most_s - row.seconds == pytest.approx(REFRESHED_S + workloads * 3 * CELL_S)
    assert (plan.least_visits, plan.most_visits) == (2, 3)
    assert plan.seconds == pytest.approx(sum(each.seconds for each in plan.arrays))


def test_the_second_round_of_visits_is_in_reversed_order() -> None:
    plan = visited({RAID5X3: [WRITES], RAID5X4: [WRITES]})
    names, starts_s = zip(*plan.starts, strict=True)
    assert names == ("drivex4", "raid5x4", "drivex4", "raid5x3", "drivex4", "raid5x3", "drivex4", "raid5x4")
    last, before = starts_s[-1], starts_s[-3]
    assert plan.seconds - last == pytest.approx(2 * CELL_S)
    assert last - before == pytest.approx(2 * CELL_S + REFRESHED_S)
    assert plan.planned.start_s("raid5x4", 1) == last


def test_one_visit_is_the_least_where_a_protocol_has_one() -> None:
    plan = visited({RAID5X3: [WRITES]}, replace(OURS, visits=replace(RULE, cells=(2,))))
    row = plan.arrays[-1]
    assert row.measure_s == pytest.approx(2 * CELL_S)
    assert row.at_most_s == row.seconds
    assert (plan.least_visits, plan.most_visits) == (1, 1)


def test_each_access_pattern_has_a_conditioning_of_its_own() -> None:
    sequential = Workload("write", "128k", 8)
    rows = {each.geometry: each for each in visited({RAID5X3: [WRITES, sequential]}).arrays}
    alone = {each.geometry: each for each in visited({RAID5X3: [WRITES]}).arrays}
    both, one = rows["raid5x3"], alone["raid5x3"]
    assert both.measure_s == pytest.approx(2 * one.measure_s)
    assert both.condition_s == pytest.approx(2 * one.condition_s)
    assert rows["drivex3 conditioning"].condition_s > alone["drivex3 conditioning"].condition_s


def test_a_test_waits_for_its_whole_experiment() -> None:
    plan = visited({RAID5X3: [WRITES], RAID5X4: [WRITES]})
    assert plan.longest_s == pytest.approx(plan.at_most_s)


def test_cells_and_refreshes_write() -> None:
    reads, writes = (visited({RAID5X4: [each.at(32)]}).arrays[-1] for each in (READS, WRITES))
    iops = SHEET.expected_iops(RAID5X4, WRITES.at(32))
    assert iops
    assert writes.bytes_written - reads.bytes_written == pytest.approx(iops * 4096 * 2 * 4 * 65, abs=2)
    bare = SHEET.expected_iops(Geometry(RaidLevel.DRIVE, 4), WRITES)
    assert bare
    assert reads.bytes_written == pytest.approx(4 * bare * 4096 * 180, abs=2)


def test_a_published_protocol_has_no_visits() -> None:
    plan = forecast.predict(planned({RAID5X4: [READS]}), protocol.load("intel"), SHEET, 4, 480 * GB)
    assert (plan.least_visits, plan.most_visits) == (0, 0)
    assert plan.starts == (("raid5x4", 0.0),)


def test_what_no_sheet_has_is_assumed_and_said() -> None:
    steps = order.in_order(planned({RAID5X4: [READS]}), of_drives=True)
    plan = forecast.predict(steps, OURS, spec.default(), 4, 480 * GB)
    (assumption,) = plan.assumptions
    assert assumption.startswith("30,000 ")
    # A drive of 480 GB needs an hour for one capacity of random writes at that rate.
    assert plan.arrays[0].condition_s > 480e9 / (30_000 * 4096)
    assert plan.arrays[0].bytes_written > 2 * 4 * 480e9, "the fill and the conditioning"


LOOP = Rounds("rounds", (READS, WRITES), (Tracked(WRITES, "steady_iops"),), fill_bs="1m", fill_passes=2)


def rows(wanted: Steps, sheet: str = "ssdqual-sm300", drive_bytes: int = GB) -> dict[str, PlannedArray]:
    plan = forecast.predict(wanted, protocol.load("quick"), spec.load(sheet), 8, drive_bytes)
    return {each.geometry: each for each in plan.arrays}


def test_a_loop_lasts_from_one_window_to_its_last_round() -> None:
    quick = protocol.load("quick")
    row = rows(planned(loops={RAID5X4: [LOOP]}))["raid5x4 rounds"]
    round_s = 2 * (quick.loop.cell_s + step_prices.OVERHEAD_S)
    assert row.condition_s == step_prices.BUILD_S + 2 * GB / step_prices.FILL_BYTES_PER_S
    assert row.measure_s == pytest.approx(5 * round_s)
    assert row.at_most_s - row.seconds == pytest.approx(20 * round_s)
    # 300 writes a second of 4 KiB, each with its parity, in a cell of every round.
    more_bytes = row.at_most_bytes - row.bytes_written
    assert more_bytes == pytest.approx(20 * 300 * quick.loop.cell_s * 4096 * 2, abs=1)
    assert row.bytes_written == pytest.approx(2 * 4 * GB + 5 * 300 * quick.loop.cell_s * 4096 * 2, abs=1)


def test_the_pre_writes_of_a_loop_cost_time_and_writes() -> None:
    quick = protocol.load("quick")
    longer = replace(LOOP, pre_write=WRITES, pre_write_cells=5)
    plain, found = (rows(planned(loops={RAID5X4: [each]}))["raid5x4 rounds"] for each in (LOOP, longer))
    assert found.measure_s - plain.measure_s == pytest.approx(5 * (5 * quick.loop.cell_s + step_prices.OVERHEAD_S))
    written = found.bytes_written - plain.bytes_written
    assert written == pytest.approx(5 * 300 * 5 * quick.loop.cell_s * 4096 * 2, abs=1)


@pytest.mark.parametrize(("cell_s", "needed"), [(1.0, 2), (2.0, 0)])
def test_a_cell_with_too_few_ios_is_announced(cell_s: float, needed: int) -> None:
    """The lab's drives do 60 I/Os of 1 MiB in a second, on each of four side by side."""
    quick = protocol.load("quick")
    short = replace(quick, loop=replace(quick.loop, cell_s=cell_s))
    steps = planned(loops={Geometry(RaidLevel.DRIVE, 4): [snia.THROUGHPUT[1], LOOP]})
    found = forecast.predict(steps, short, spec.load("ssdqual-sm300"), 4, GB).too_short
    assert len(found) == bool(needed)
    assert all("snia-throughput-1m" in each and f"to {needed} s" in each for each in found)


def test_a_saturation_lasts_until_its_volume_or_its_time_is_over() -> None:
    quick = protocol.load("quick")
    slow = rows(planned(saturated={RAID5X4: [WRITES]}))["raid5x4 saturation"]
    assert slow.measure_s == quick.saturation.limit_s + step_prices.OVERHEAD_S
    assert slow.bytes_written == pytest.approx(300 * 4096 * quick.saturation.limit_s * 2, abs=1)
    small = rows(planned(saturated={RAID5X4: [WRITES]}), drive_bytes=1 << 20)["raid5x4 saturation"]
    assert small.measure_s == pytest.approx(4 * 3 * (1 << 20) / (300 * 4096) + step_prices.OVERHEAD_S)
    unknown = rows(planned(saturated={RAID5X4: [WRITES]}), "default")["raid5x4 saturation"]
    assert unknown.bytes_written == 4 * 3 * GB * 2  # at worst the whole volume


def test_drives_side_by_side_wear_like_one_each() -> None:
    one, four = (rows(planned({Geometry(RaidLevel.DRIVE, width): [WRITES]}))[f"drivex{width}"] for width in (1, 4))
    assert four.bytes_written == pytest.approx(4 * one.bytes_written, abs=4)
    assert (four.condition_s, four.measure_s) == (one.condition_s, one.measure_s)


def test_a_rebuild_writes_every_replaced_member_once() -> None:
    geometry = Geometry.parse("raid6x6-2rebuilding")
    row = rows(planned(rebuilt={geometry: [READS]}))["raid6x6-2rebuilding"]
    fill = 6 * GB
    precondition = rows(planned({Geometry(RaidLevel.RAID6, 6): [READS]}))["raid6x6"].bytes_written - fill
    assert row.bytes_written == pytest.approx(fill + precondition + 2 * GB, abs=2)
    assert row.measure_s >= 2 * GB / step_prices.FILL_BYTES_PER_S  # written, and checked


@pytest.mark.parametrize(("most", "rate"), [(None, 204.8e6), (10**9, 10**9), (10**10, 5600e6)])
def test_a_rebuild_and_its_check_take_the_time_of_mds_limit(most: int | None, rate: float) -> None:
    """md copies at most 204.8 MB/s of each member by default, however fast the drives are."""
    sheet = spec.load("micron-7450-pro-7t68")
    limited = replace(protocol.load("intel"), rebuild=RebuildRule(max_bytes_per_s=most))
    cost = step_prices.Prices(limited, sheet, 7680 * GB).rebuild(Geometry.parse("raid5x4-1rebuilding"), READS)
    assert cost.least.seconds == pytest.approx(2 * 7680 * GB / rate, rel=0.01)
    allowed_s = max(24 * 3600, 12 * 7680 * GB / rate)
    assert cost.most.seconds == pytest.approx(allowed_s + 7680 * GB / rate, rel=0.01)


def test_the_plan_warns_of_steps_longer_than_the_protocol_allows() -> None:
    geometry, sheet = Geometry.parse("raid6x6-1rebuilding"), spec.load("ssdqual-sm300")
    steps, quick = planned(rebuilt={geometry: [READS]}), protocol.load("quick")
    usual, day = (replace(quick, rebuild=RebuildRule(limit_s)) for limit_s in (None, 24 * 3600.0))
    assert not forecast.predict(steps, usual, sheet, 6, 30_000 * GB).too_short
    assert not forecast.predict(steps, day, sheet, 6, 10_000 * GB).too_short
    (warning,) = forecast.predict(steps, day, sheet, 6, 30_000 * GB).too_short
    assert "30 TB" in warning
    assert "41.7 h" in warning
    volume = replace(protocol.load("quick"), precondition=PreconditionRule(6.0, 3600.0, capacities=1.0))
    (slow,) = forecast.predict(planned({geometry.healthy: [WRITES]}), volume, sheet, 6, 100 * GB).impossible
    assert "capacity of raid6x6" in slow


@pytest.mark.parametrize(
    ("key", "days"),
    [
        ("solidigm-d5-p5336-61t44", 1.15),
        ("samsung-bm1743-61t44", 1.6),
        ("solidigm-d5-p5336-122t88", 4.6),
        ("micron-6600-ion-122t88", 8.7),
    ],
)
def test_large_drives_are_conditioned_in_the_days_of_their_rate(key: str, days: float) -> None:
    """Six capacities of them take weeks: a limit in hours would end them before a slow drive has settled."""
    sheet, acceptance = spec.load(key), protocol.load("acceptance")
    size_bytes, drives = sheet.product.capacity_bytes or 0, Geometry(RaidLevel.DRIVE, 4)
    found = forecast.predict(planned({drives: [WRITES]}), acceptance, sheet, 4, size_bytes)
    assert not found.impossible
    fill_s = size_bytes / (sheet.product.sequential_write_bytes_per_s or math.inf)
    assert (found.arrays[0].condition_s - fill_s) / 86400 == pytest.approx(days, rel=0.02)
    assert found.at_most_s - fill_s > 5.9 * days * 86400


def test_a_drive_over_its_limit_is_impossible_or_a_remark() -> None:
    drives, acceptance = Geometry(RaidLevel.DRIVE, 4), protocol.load("acceptance")
    short = replace(acceptance, precondition=replace(acceptance.precondition, limit_s=3600.0))
    for key, is_known in (("samsung-bm1743-61t44", True), ("default", False)):
        found = forecast.predict(planned({drives: [WRITES]}), short, spec.load(key), 4, 61_440 * GB)
        assert (len(found.impossible), len(found.too_short)) == (int(is_known), int(not is_known))


@pytest.mark.parametrize(
    ("key", "preferred", "words"),
    [
        ("solidigm-d5-p5336-61t44", None, ("map 16 KiB", "4 times")),
        ("solidigm-d5-p5336-61t44", 8192, ("map 8 KiB", "2 times")),
        ("solidigm-d5-p5336-61t44", 4096, ()),
        ("micron-6500-ion-30t72", 16384, ()),
        ("samsung-bm1743-61t44", 16384, ("prefer writes of 16 KiB", "indirection_unit")),
        ("micron-7450-pro-7t68", 262144, ()),
        ("micron-7450-pro-7t68", None, ()),
    ],
)
def test_the_plan_says_what_drives_map_at_a_time(key: str, preferred: int | None, words: tuple[str, ...]) -> None:
    sheet = replace(spec.load(key), preferred_write_bytes=preferred)
    steps = planned({Geometry(RaidLevel.DRIVE, 4): [WRITES]})
    found = forecast.predict(steps, protocol.load("acceptance"), sheet, 4, 61_440 * GB).unit
    assert bool(found) == bool(words)
    assert all(word in found for word in words)


def test_an_array_is_conditioned_once_for_all_that_becomes_of_it() -> None:
    healthy, failed, rebuilt = map(Geometry.parse, ("raid5x4", "raid5x4-1failed", "raid5x4-1rebuilding"))
    found = rows(planned({healthy: [WRITES], failed: [READS]}, rebuilt={rebuilt: [READS]}))
    assert found["raid5x4"].condition_s > step_prices.BUILD_S
    assert found["raid5x4-1failed"].condition_s == found["raid5x4-1rebuilding"].condition_s == 0
    alone = rows(planned({failed: [READS]}, rebuilt={rebuilt: [READS, WRITES]}))
    once = found["raid5x4"].condition_s
    assert alone["raid5x4-1failed"].condition_s == once
    assert alone["raid5x4-1rebuilding"].condition_s == once  # the second one needs an array of its own


def test_the_second_rebuild_of_a_raid_6_needs_a_new_array() -> None:
    one, two = map(Geometry.parse, ("raid6x4-1rebuilding", "raid6x4-2rebuilding"))
    found = rows(planned({Geometry(RaidLevel.RAID6, 4): [READS]}, rebuilt={one: [READS], two: [READS]}))
    assert found["raid6x4-2rebuilding"].condition_s == 0
    assert found["raid6x4-1rebuilding"].condition_s == found["raid6x4"].condition_s


def test_a_protocol_with_a_volume_conditions_for_longer() -> None:
    stec, sheet = protocol.load("stec"), spec.load("intel-dc-s3500-480gb")
    geometry = Geometry(RaidLevel.RAID0, 4)
    (row,) = forecast.predict(planned({geometry: [READS]}), stec, sheet, 4, 480 * GB).arrays
    rate = step_prices.Prices(stec, sheet, 480 * GB).host_bytes_per_s(geometry, WRITES)
    assert rate
    fill_s = 480 * GB / (sheet.product.sequential_write_bytes_per_s or step_prices.FILL_BYTES_PER_S)
    steps_s = row.condition_s - step_prices.BUILD_S - fill_s
    least_s = stec.precondition.capacities * 4 * 480 * GB / rate
    assert least_s <= steps_s < least_s + stec.precondition.step_s
    assert row.at_most_s - row.seconds == pytest.approx(
        stec.precondition.limit_s - steps_s + (stec.measure.attempts - 1) * row.measure_s
    )


@given(
    st.lists(st.tuples(GEOMETRIES, st.sampled_from(["", "-1failed", "-1rebuilding"])), max_size=4),
    st.sampled_from(["ssdqual-sm300", "default", "intel-dc-s3500-800gb"]),
)
def test_costs_are_never_negative_and_every_array_is_there(arrays: list[tuple[Geometry, str]], sheet: str) -> None:
    lost = [(str(each) + state) for each, state in arrays if not state or FACTS[each.level].may_lose(each.width)]
    geometries = [Geometry.parse(name) for name in lost]
    found = rows(
        planned(
            {each: [READS, WRITES] for each in geometries if not each.rebuilding},
            saturated={each: [WRITES] for each in geometries if not each.missing},
            rebuilt={each: [READS] for each in geometries if each.rebuilding},
        ),
        sheet,
    )
    assert all(each.condition_s >= 0 and each.measure_s > 0 and each.bytes_written >= 0 for each in found.values())
    assert {name.removesuffix(" saturation") for name in found} == set(map(str, geometries))
