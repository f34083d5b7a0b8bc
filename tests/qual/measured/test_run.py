from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import interval, run, side_by_side

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.workload.workload import Workload


def test_the_ramp_is_not_counted() -> None:
    measured = run([9_000, 9_000, 1_000, 1_100, 1_200, 1_300, 1_400], ramp_s=2)
    assert len(measured.counted) == 5
    assert measured.iops == 1_200
    assert measured.round_iops() == (1_000, 1_100, 1_200, 1_300, 1_400)
    assert measured.latency.total == 6_000


def test_what_follows_the_window_is_not_counted_either() -> None:
    assert run([1_000] * 5 + [9_000], window_s=5).iops == 1_000


@pytest.mark.parametrize("off_s", [-0.02, 0.02])
def test_status_a_little_early_or_late_changes_nothing(off_s: float) -> None:
    true = run([900, 900, 10, 10, 10, 10, 10, 900], ramp_s=2, window_s=5)
    shifted = tuple(replace(each, start_s=each.start_s + off_s) for each in true.intervals)
    assert replace(true, intervals=shifted).iops == 10


def test_window_is_whole_whenever_the_first_status_came() -> None:
    true = run([10] * 9, ramp_s=2, window_s=5)
    shifted = tuple(replace(each, start_s=each.start_s + 0.4) for each in true.intervals)
    assert replace(true, intervals=shifted).seconds == 5


def test_reads_and_writes_are_kept_apart() -> None:
    measured = run([1_000] * 5, workload=Workload("randrw", "4k", 8, 70))
    assert (measured.read_iops, measured.write_iops, measured.iops) == (700, 300, 1_000)
    assert measured.bytes_per_s == 4_096_000
    assert measured.read_latency.total == 3_500
    assert measured.write_latency.total == 1_500
    assert measured.bytes_written == 1_500 * 4096


def test_a_slow_report_does_not_hide_its_maximum() -> None:
    slow = (interval(0, reads=100), interval(1, seconds=2, reads=300, latency_ns=10**9), interval(3, reads=200))
    rounds = replace(run([1] * 4, rounds=4), intervals=slow).round_latency()
    assert [each.total for each in rounds] == [100, 0, 300, 200]
    assert max(each.max_ns for each in rounds if each) > 9 * 10**8


def test_a_round_nobody_saw_has_no_iops() -> None:
    measured = replace(run([1] * 4, rounds=4), intervals=(interval(0, reads=100), interval(1, reads=100)))
    assert measured.round_iops() == (100, 100, 0, 0)
    assert replace(measured, intervals=()).round_iops() == (0, 0, 0, 0)
    assert replace(measured, intervals=()).iops == 0


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40), st.integers(1, 10))
def test_no_io_is_lost_or_made_by_cutting_into_rounds(iops: list[int], rounds: int) -> None:
    measured = run(iops, rounds=rounds)
    length = measured.window_s / rounds
    assert sum(rate * length for rate in measured.round_iops()) == pytest.approx(sum(iops))
    assert sum(each.total for each in measured.round_latency()) == sum(iops)


def test_the_summary_is_plain_data() -> None:
    summary = plain(run([1_000] * 5, geometry="raid5x4").record())
    assert json.loads(json.dumps(summary)) == summary
    assert summary["geometry"] == "raid5x4"
    assert summary["workload"] == "randread_4k_qd8"
    assert summary["iops"] == 1_000
    assert json.dumps(plain(run([0] * 5).record()), allow_nan=False)


def test_a_run_is_told_in_one_line() -> None:
    assert (
        repr(run([1_000] * 5, geometry="raid5x4"))
        == "<Run raid5x4 randread_4k_qd8: 1,000 IOPS, mean 32.1 ms, fio.json>"
    )
    assert repr(run([0] * 5)) == "<Run drivex1 randread_4k_qd8: no I/O>"


def test_repeats_are_pooled() -> None:
    both = Measured((run([100] * 5), run([200] * 5)))
    assert both.iops == 150
    assert both.round_iops() == (100.0,) * 5 + (200.0,) * 5
    assert len(both.round_latency()) == 10
    assert both.latency.total == 1_500


def test_only_repeats_of_one_measurement_are_pooled() -> None:
    with pytest.raises(ValueError, match="not repeats"):
        Measured((run([100] * 5), run([100] * 5, workload=Workload("randread", "4k", 1))))
    with pytest.raises(ValueError, match="nothing was measured"):
        Measured(())


@given(st.lists(st.integers(0, 10**5), min_size=5, max_size=60), st.integers(1, 5), st.integers(0, 4))
def test_condensing_keeps_totals_and_latencies(iops: list[int], rounds: int, ramp_s: int) -> None:
    measured = run(iops, rounds=rounds, ramp_s=ramp_s)
    short = measured.condensed()
    assert len(short.intervals) <= rounds + 1
    assert short.ios == measured.ios
    assert short.seconds == pytest.approx(measured.seconds)
    assert short.bytes_written == measured.bytes_written
    assert short.latency == measured.latency
    assert short.round_latency() == measured.round_latency()


def test_condensing_whole_rounds_keeps_their_rates() -> None:
    measured = run([50, *(100, 110) * 5, *(200, 210) * 5], rounds=2, ramp_s=1)
    assert measured.condensed().round_iops() == pytest.approx(measured.round_iops())


def test_there_is_nothing_to_condense_where_nothing_was_counted() -> None:
    empty = replace(run([1] * 4), intervals=())
    assert empty.condensed() is empty


def test_rates_of_any_count_are_cut_into_the_same_rounds() -> None:
    mixed = run([1_000, 1_000, 2_000, 2_000], workload=Workload("randrw", "4k", 8, 70), rounds=2)
    assert mixed.round_rates(lambda each: each.read_ios) == (700, 1_400)
    assert mixed.round_rates(lambda each: each.write_bytes) == (300 * 4096, 600 * 4096)
    both = Measured((mixed, mixed))
    assert both.round_rates(lambda each: each.read_ios) == (700, 1_400, 700, 1_400)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40), st.integers(1, 10), st.floats(0, 3), st.floats(0.5, 3))
def test_rates_are_those_of_every_overlap_added_up(iops: list[int], rounds: int, head_s: float, seconds: float) -> None:
    # Intervals of any length, beginning at any moment, cut into rounds of any length: against the plain double loop.
    intervals = tuple(
        interval(head_s + number * seconds, seconds=seconds, reads=ios) for number, ios in enumerate(iops)
    )
    length = len(iops) * seconds / rounds
    made = replace(run([1]), intervals=intervals, window_s=rounds * length, rounds=rounds)
    for index, rate in enumerate(made.round_iops()):
        start, end = head_s + index * length, head_s + (index + 1) * length
        parts = [max(0.0, min(end, each.end_s) - max(start, each.start_s)) for each in made.counted]
        ios = sum(each.ios * part / seconds for each, part in zip(made.counted, parts, strict=True))
        assert rate == pytest.approx(ios / sum(parts) if sum(parts) else 0, rel=1e-6, abs=1e-6)


def test_latencies_of_one_direction_are_cut_into_the_same_rounds() -> None:
    mixed = run([1_000] * 4, workload=Workload("randrw", "4k", 8, 70), rounds=2)
    reads = mixed.round_latency(lambda each: (each.read_latency,))
    assert [each.total for each in reads] == [1_400, 1_400]
    assert [each.total for each in mixed.round_latency()] == [2_000, 2_000]
    assert len(Measured((mixed, mixed)).round_latency(lambda each: (each.write_latency,))) == 4


def test_drives_side_by_side_are_runs_of_their_own() -> None:
    together = side_by_side([[1_000] * 5, [500] * 5])
    assert together.iops == 1_500
    first, second = together.of_members()
    assert (str(first.geometry), first.members, first.iops) == ("drivex1", ("S0",), 1_000)
    assert (second.members, second.iops, second.latency.total) == (("S1",), 500, 2_500)
    assert [each.iops for each in Measured((together, together)).members()] == [1_000, 500]


def test_an_array_has_no_members_of_its_own() -> None:
    array = run([1_000] * 5, geometry="raid5x4")
    assert array.of_members() == (array,)
    assert Measured((array,)).members() == (Measured((array,)),)


@given(st.lists(st.integers(0, 10**5), min_size=5, max_size=40), st.integers(1, 5))
def test_condensing_keeps_every_member_and_its_slowest_second(iops: list[int], rounds: int) -> None:
    together = side_by_side([iops, [2 * each for each in iops]], rounds=rounds)
    for whole, short in zip(together.of_members(), together.condensed().of_members(), strict=True):
        assert short.ios == whole.ios
        assert short.latency == whole.latency
        assert min(each.slowest_bytes_per_s for each in short.counted) == min(
            each.bytes_per_s for each in whole.counted
        )
        assert max(each.fastest_bytes_per_s for each in short.counted) == max(
            each.bytes_per_s for each in whole.counted
        )
