from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.captured import VERSIONS, captured

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.rig.fio.output import FioResult, StatusReader, parse, read
from pytest_ssdqual.rig.fio.status_stream import Splitter
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

EPOCH_MS = 1_795_262_515_000
BLOCK = 4096
GOOD = ["randread", "randwrite", "randrw70", "write", "fill", "stalled", "streams", "profile", "volume"]
SIDE_BY_SIDE = ["side-by-side", "side-by-side-fill", "side-by-side-streams"]


def direction(runtime_ms: int, bins: dict[int, int]) -> dict[str, object]:
    ios = sum(bins.values())
    latency: dict[str, object] = {"N": ios, "mean": 5.0, "max": max(bins, default=0)}
    if bins:
        latency["bins"] = {str(value_ns): count for value_ns, count in bins.items()}
    return {"runtime": runtime_ms if ios else 0, "total_ios": ios, "io_bytes": ios * BLOCK, "lat_ns": latency}


def document(
    asked_ms: int, reads: dict[int, int], writes: dict[int, int] | None = None, waited_ms: int = 0
) -> dict[str, object]:
    """One status, asked for and printed so many milliseconds after the start."""
    job: dict[str, object] = {"error": 0, "usr_cpu": 2.5, "sys_cpu": 10.0}
    job |= {"read": direction(asked_ms, reads), "write": direction(asked_ms, writes or {})}
    return {"fio version": "fio-3.33", "timestamp_ms": EPOCH_MS + asked_ms + waited_ms, "jobs": [job]}


def jobs_of(status: dict[str, object]) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", status["jobs"])


def written(documents: Sequence[dict[str, object]]) -> bytes:
    return "".join(json.dumps(each, indent=2) + "\n" for each in documents).encode()


def spans_ms(result: FioResult) -> list[tuple[int, int, int]]:
    return [(round(i.start_s * 1000), round(i.end_s * 1000), i.ios) for i in result.intervals]


# -- what real versions write


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", [*GOOD, *SIDE_BY_SIDE])
def test_intervals_add_up_to_the_totals(version: str, case: str) -> None:
    result = parse(captured(version, case).output)
    require_whole(result)
    assert result.intervals[0].start_s == 0
    assert result.intervals[-1].end_s == pytest.approx(result.seconds)
    assert all(before.end_s == pytest.approx(after.start_s) for before, after in pairwise(result.intervals))
    assert len(result.parts) == (2 if case in SIDE_BY_SIDE else 0)


def require_whole(result: FioResult) -> None:
    """Nothing of the totals is lost or counted twice."""
    assert LatencyHistogram.merged(i.read_latency for i in result.intervals) == result.read.latency
    assert LatencyHistogram.merged(i.write_latency for i in result.intervals) == result.write.latency
    for way, total in (("read", result.read), ("write", result.write)):
        assert sum(getattr(i, f"{way}_ios") for i in result.intervals) == total.ios
        assert sum(getattr(i, f"{way}_bytes") for i in result.intervals) == total.bytes


@pytest.mark.parametrize("version", VERSIONS)
def test_directions_have_their_own_counts_and_latencies(version: str) -> None:
    output = captured(version, "randrw70").output
    mix = parse(output)
    assert mix.read.ios / (mix.read.ios + mix.write.ios) == pytest.approx(0.7, abs=0.01)
    (job,) = jobs_of([piece for piece in Splitter().feed(output) if not isinstance(piece, str)][-1])
    for name, way in (("read", mix.read), ("write", mix.write)):
        reported = cast("dict[str, dict[str, float]]", job[name])["lat_ns"]
        assert way.latency.mean_ns == pytest.approx(reported["mean"], rel=0.01)
        assert way.latency.max_ns == pytest.approx(reported["max"], rel=0.01)
    reads = parse(captured(version, "randread").output)
    assert (reads.write.ios, reads.write.bytes, bool(reads.write.latency)) == (0, 0, False)
    assert all(i.write_ios == 0 for i in reads.intervals)
    assert 0 < reads.jobs_busy < 1


@pytest.mark.parametrize("version", VERSIONS)
def test_stall_is_one_long_interval(version: str) -> None:
    """The status asked for at 1.9 s was answered at 3.4 s; its ``runtime`` says 1.9 s.

    fio 3.33 has 89,828 I/Os' worth of bytes beside 151,406 counted ones in that document.
    """
    output = captured(version, "stalled").output
    result = parse(output)
    rates = [(i.seconds, i.ios / i.seconds) for i in result.intervals]
    long_s, during = rates[1]
    assert long_s > 2.4
    after = [rate for _, rate in rates[2:]]
    assert max(after) / min(after) < 1.15
    assert during < min(after)
    assert all(i.read_bytes == i.read_ios * BLOCK for i in result.intervals)


@pytest.mark.parametrize("version", VERSIONS)
def test_text_around_the_documents_is_kept_apart(version: str) -> None:
    (message,) = parse(captured(version, "interrupted").output).messages
    assert message.endswith("signal 2")
    assert "appears mounted" in parse(captured(version, "mounted").output).messages[0]


# -- drives side by side


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", SIDE_BY_SIDE)
def test_whole_is_the_sum_of_its_parts_at_the_same_times(version: str, case: str) -> None:
    result = parse(captured(version, case).output)
    for whole, *parts in zip(result.intervals, *result.parts, strict=True):
        assert {(each.start_s, each.seconds) for each in parts} == {(whole.start_s, whole.seconds)}
        for count in ("read_ios", "write_ios", "read_bytes", "write_bytes"):
            assert sum(getattr(each, count) for each in parts) == getattr(whole, count)
        assert LatencyHistogram.merged(each.latency for each in parts) == whole.latency
    if case == "side-by-side-streams":  # readers and writers of a drive are one part
        assert all(
            sum(each.read_ios for each in part) and sum(each.write_ios for each in part) for part in result.parts
        )


@pytest.mark.parametrize("version", VERSIONS)
def test_each_part_is_its_drives_own(version: str) -> None:
    """By the kernel's count, which knows drives by name; the second one was half as fast again and more."""
    output = captured(version, "side-by-side").output
    result = parse(output)
    *_, last = (piece for piece in Splitter().feed(output) if not isinstance(piece, str))
    kernel = {disk["name"]: disk["write_ios"] for disk in last["disk_util"]}
    first, second = (sum(each.write_ios for each in part) for part in result.parts)
    assert first == pytest.approx(kernel["loop0"], rel=0.05)
    assert second == pytest.approx(kernel["loop1"], rel=0.05)
    assert second > 1.5 * first


@pytest.mark.parametrize("version", VERSIONS)
def test_a_drive_that_failed_ended_all_of_them(version: str) -> None:
    result = parse(captured(version, "side-by-side-error").output)
    assert result.error == 28
    assert captured(version, "side-by-side-error").expectation.seconds == 30
    assert result.seconds < 1


def named(status: dict[str, object], *names: str) -> dict[str, object]:
    """``status`` with one group of equal counters for each name."""
    return status | {"jobs": [jobs_of(status)[0] | {"jobname": name} for name in names]}


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (("drive-0-reads", "drive-1-reads", "drive-2-reads"), 3),
        (("drive-0", "drive-2"), 0),
        (("drive-1", "drive-0"), 0),
        (("drive-0", "x"), 0),
        (("a", "b"), 0),
    ],
)
def test_parts_are_known_by_the_names_of_groups(names: tuple[str, ...], count: int) -> None:
    result = parse(written([named(document(1000, {64: 5}), *names)]))
    assert [[each.ios for each in part] for part in result.parts] == [[5]] * count
    assert spans_ms(result) == [(0, 1000, 5 * len(names))]


# -- time


@pytest.mark.parametrize(
    ("documents", "spans"),
    [
        ([(1000, 5), (1000, 5), (2000, 9)], [(0, 1000, 5), (1000, 2000, 4)]),
        ([(1000, 5), (1000, 7), (2000, 9)], [(0, 1000, 5), (1000, 2000, 4)]),
        ([(1000, 5), (2003, 7), (2001, 9)], [(0, 1000, 5), (1000, 2001, 4)]),
        ([(1000, 5), (4000, 7), (5000, 9)], [(0, 1000, 5), (1000, 4000, 2), (4000, 5000, 2)]),
        (
            [(1000, 5), (2000, 7, 1400), (3500, 8), (4000, 9)],
            [(0, 1000, 5), (1000, 3400, 2), (3400, 3500, 1), (3500, 4000, 1)],
        ),
        ([(1000, 5), (2001, 9, 250)], [(0, 1000, 5), (1000, 2001, 4)]),
        ([(1000, 0), (2000, 5), (2500, 6)], [(0, 1000, 0), (1000, 2000, 5), (2000, 2500, 1)]),
        (
            [(1000, 0), (2000, 0), (3000, 5), (3500, 6)],
            [(0, 1000, 0), (1000, 2000, 0), (2000, 3000, 5), (3000, 3500, 1)],
        ),
    ],
    ids=[
        "repeated", "more of the same time", "the last is earlier", "one is missing", "printed late",
        "the final one is printed late", "nothing in the first second", "late first I/O",
    ],
)  # fmt: skip
def test_intervals_are_between_documents(documents: list[tuple[int, ...]], spans: list[tuple[int, int, int]]) -> None:
    """A late answer counts to the moment at which it was printed, the final document by its run time."""
    text = written([document(ms, {64: ios} if ios else {}, None, *waited) for ms, ios, *waited in documents])
    assert spans_ms(parse(text)) == spans


@pytest.mark.parametrize("step_ms", [5_000, -5_000])
def test_a_clock_that_was_set_meanwhile_is_no_measurement(step_ms: int) -> None:
    documents = [document(1000 * n, {64: n}, waited_ms=step_ms if n > 3 else 0) for n in range(1, 8)]
    with pytest.raises(InvalidMeasurement, match="clock was set"):
        parse(written(documents))
    # Where only the counts of the whole process matter, as those of a fill, it is none of their concern.
    totals = read(written(documents)).totals()
    (interval,) = totals.intervals
    assert (interval.ios, totals.seconds) == (7, 7.0)


@pytest.mark.parametrize(
    "documents",
    [
        [document(1000, {64: 5, 128: 1}), document(2000, {64: 9})],
        [named(document(1000, {64: 5}), "drive-0"), named(document(2000, {64: 6}), "drive-0", "drive-1")],
    ],
    ids=["counters went back", "a drive is missing"],
)
def test_documents_of_several_runs_are_refused(documents: list[dict[str, object]]) -> None:
    with pytest.raises(InvalidMeasurement, match="not those of"):
        parse(written(documents))


def test_counters_that_ran_backwards_are_no_totals_either() -> None:
    documents = [document(1000 * (number + 1), {64: ios}) for number, ios in enumerate((5, 4, 9))]
    with pytest.raises(InvalidMeasurement, match="not those of"):
        read(written(documents)).totals()


def test_jobs_reported_one_by_one_are_summed() -> None:
    both = document(2000, {64: 5})
    both["jobs"] = [*jobs_of(both), *jobs_of(document(1900, {64: 1, 96: 2}))]
    result = parse(written([both]))
    assert result.read.latency == LatencyHistogram.from_bins({64: 6, 96: 2})
    assert result.read.bytes == 8 * BLOCK
    assert result.seconds == 2
    assert result.jobs_busy == 0.125


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, object]]:
    """Cumulative documents at any times, in order, with any waits."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 80)), min_size=1, max_size=12))
    bins = st.dictionaries(st.sampled_from([0, 1, 127, 129, 35584, 17_112_760_320]), st.integers(0, 10**6))
    reads: dict[int, int] = {}
    writes: dict[int, int] = {}
    asked_ms, documents = 1, []
    for length_ms, waited_ms in steps:
        asked_ms += length_ms
        for total in (reads, writes):
            for value_ns, count in draw(bins).items():
                total[value_ns] = total.get(value_ns, 0) + count
        documents.append(document(asked_ms, dict(reads), dict(writes), waited_ms))
    return documents


@given(histories())
def test_nothing_is_lost_or_counted_twice(documents: list[dict[str, object]]) -> None:
    result = parse(written(documents))
    if not result.seconds:
        assert result.intervals == ()
        return
    require_whole(result)
    assert all(i.seconds > 0 for i in result.intervals)
    assert sum(i.seconds for i in result.intervals) == pytest.approx(result.seconds)


# -- while it grows


def fed(data: bytes, sizes: Sequence[int], most: int | None = None) -> StatusReader:
    """A reader that got the bytes in pieces of these sizes, and then the rest."""
    reader = StatusReader(most)
    for size in sizes:
        reader.feed(data[:size])
        data = data[size:]
    reader.feed(data)
    return reader


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cut", [1, 100, 5_000])
def test_a_document_that_is_being_written_is_none_yet(version: str, cut: int) -> None:
    data = captured(version, "randread").output
    end = data.rindex(b"\n{") + 1
    running, last = data[:end], data[end:]
    reader = fed(running + last[:cut], [])
    assert reader.so_far() == parse(running)
    with pytest.raises(InvalidMeasurement, match="cut off after"):
        reader.whole()
    reader.feed(last[cut:])
    assert reader.whole() == parse(data)


@given(st.integers(1, 40), st.integers(1, 8))
def test_of_many_documents_some_are_kept_and_nothing_lost(count: int, most: int) -> None:
    documents = [document(1000 * n, {64: 5 * n, 128: n * n}) for n in range(1, count + 1)]
    every, some = parse(written(documents)), fed(written(documents), [], most).whole()
    assert len(some.intervals) <= most + 1
    assert (some.read, some.seconds) == (every.read, every.seconds)
    assert LatencyHistogram.merged(i.read_latency for i in some.intervals) == every.read.latency
    assert sum(i.read_bytes for i in some.intervals) == every.read.bytes
    *equal, _ = [round(i.seconds) for i in some.intervals]
    assert len(set(equal)) <= 1
    assert {i.end_s for i in some.intervals} <= {i.end_s for i in every.intervals}


def test_clock_that_was_set_is_found_between_dropped_documents() -> None:
    documents = [document(1000 * n, {64: n}, waited_ms=-5_000 if 20 < n < 23 else 0) for n in range(1, 60)]
    with pytest.raises(InvalidMeasurement, match="clock was set"):
        fed(written(documents), [], 4).whole()


def test_another_shape_is_an_error_when_it_is_asked_for() -> None:
    reader = fed(written([document(1000, {64: 5}), {"jobs": 1}]), [])
    for ask in (reader.so_far, reader.whole):
        with pytest.raises(InvalidMeasurement, match="unknown shape"):
            ask()


def test_output_without_a_document_is_no_measurement() -> None:
    for ask in (StatusReader().so_far, lambda: parse(b"")):
        with pytest.raises(InvalidMeasurement, match=r"no result$"):
            ask()
    with pytest.raises(InvalidMeasurement, match="out of memory"):
        parse(b"\nfio: out of memory\n")


# -- text


@pytest.mark.parametrize("version", VERSIONS)
def test_document_that_breaks_off_suggests_a_full_file_system(version: str) -> None:
    with pytest.raises(InvalidMeasurement, match=r"after 4 .*full"):
        parse(captured(version, "output-full").output)


@pytest.mark.parametrize(
    "text", ['{"jobs": []}', "{}", '{"fio version": "fio-9", "jobs": [{"read": 1}]}', '{"jobs": 1}']
)
def test_another_shape_is_named_not_guessed(text: str) -> None:
    with pytest.raises(InvalidMeasurement, match=r"shape|not those"):
        parse(text.encode())


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *(("128", count) for count in (-1, True, 1.5, "2", None, 2**64, 2**70, [1])),
        *((name, 1) for name in ("x", "-1", "6.4", "1" * 30, "")),
    ],
)
def test_bin_without_a_count_or_a_latency_is_malformed(name: str, count: object) -> None:
    odd = document(1000, {64: 5, 128: 6})
    read = cast("dict[str, dict[str, dict[str, object]]]", jobs_of(odd)[0]["read"])
    read["lat_ns"]["bins"] = {"64": 5, name: count}
    with pytest.raises(InvalidMeasurement, match="bins are malformed"):
        parse(written([odd]))


def test_bins_in_any_order_and_empty_ones_are_read() -> None:
    result = parse(written([document(1000, {128: 5, 64: 7, 96: 0}), document(2000, {128: 6, 96: 0, 64: 7})]))
    assert [list(each.read_latency.bins) for each in result.intervals] == [[(64, 7), (128, 5)], [(128, 1)]]
