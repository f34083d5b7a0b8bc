"""Traces: four formats become one normal form, and nothing of a file reaches fio but times, offsets and sizes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.workload.trace import STREAMS, TARGET, Trace, TraceIo, iolog, placed
from pytest_ssdqual.qual.workload.workload import Workload

V3 = """fio version 3 iolog
5 /dev/sda add
5 /dev/sda open
7 /dev/sda write 4096 8192
1000007 /dev/sdb read 0 512
1000008 /dev/sda close
"""
V2 = """fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda write 4096 8192
/dev/sda wait 1000 0
/dev/sda read 0 512
"""
BLKPARSE = """  8,0    3        1     0.000000000   697  Q   W 8 + 16 [kjournald]
  8,0    3        2     0.000001829   697  D   W 8 + 16 [kjournald]
  8,0    0        3     1.000000000     0  Q  RA 0 + 1 [a program]
CPU0 (sda):
 Reads Queued:           1,        1KiB
"""
CSV = """op, time, size, offset, comment
W,3.5,8192,4096,"a, b"
read,4.5,512,0,
"""
IOS = (TraceIo(0, 4096, 8192, True), TraceIo(1_000_000, 0, 512, False))
IO = st.builds(
    TraceIo,
    st.integers(0, 10**12),
    st.integers(0, 1 << 40).map(lambda sector: 512 * sector),
    st.integers(1, 2048).map(lambda sectors: 512 * sectors),
    st.booleans(),
)


def read(text: str, name: str = "/home/anna/Mail server-2.csv") -> Trace:
    return Trace.read(name, text.splitlines(keepends=True))


@pytest.mark.parametrize("text", [V3, V2, BLKPARSE, CSV], ids=["v3", "v2", "blkparse", "csv"])
def test_all_formats_have_one_normal_form(text: str) -> None:
    trace = read(text)
    assert trace.ios == IOS
    assert trace.sha256 == read(V3).sha256
    assert trace.name == "mailserver2"


def test_normal_form_has_no_name_of_a_device() -> None:
    normal = "".join(read(V3).lines())
    assert {line.split()[1] for line in normal.splitlines()[1:]} == {TARGET}
    assert "/" not in normal


@given(st.lists(IO, min_size=1, max_size=40))
def test_normal_form_is_read_back(ios: list[TraceIo]) -> None:
    trace = read("".join(iolog(sorted(ios))))
    again = read("".join(trace.lines()))
    assert (again.ios, again.sha256) == (trace.ios, trace.sha256)
    assert not trace.refused


@given(st.lists(IO, min_size=1, max_size=40), st.integers(1 << 20, 1 << 42), st.integers(0, 1 << 20))
def test_placed_ios_are_inside_the_target(ios: list[TraceIo], size: int, begin: int) -> None:
    size, begin = size // 512 * 512, begin * 4096
    for io, was in zip(placed(ios, size, begin), ios, strict=True):
        assert begin <= io.offset <= io.offset + io.size <= begin + size
        assert io.offset % 512 == 0
        if was.offset + was.size <= size // 4096 * 4096:
            assert io.offset == was.offset + begin


def test_placed_io_larger_than_the_target() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        placed([TraceIo(0, 0, 1 << 20, False)], 4096, 0)


@pytest.mark.parametrize(
    "line",
    [
        "1.0,0,0,R",
        "1.0,0,100,R",
        "1.0,-512,512,R",
        "nan,0,512,R",
        "inf,0,512,W",
        "1.0,0,512,D",
        "1.0,0",
        "x,0,512,R",
        f"{'1' * 140_000},0,512,R",
    ],
)
def test_line_that_no_drive_could_do_is_refused(line: str) -> None:
    trace = read(f"time,offset,size,op\n0,0,512,R\n{line}\n{line}\n")
    assert len(trace.ios) == 1
    assert list(trace.refused.values()) == [(3, 2)]
    assert any("line 3" in sentence for sentence in trace.sentences())


def test_the_summary_counts_in_one_unit_each() -> None:
    said = "\n".join(read("time,offset,size,op\n0,3145728,512,R\n1,0,512,R\n2,0,512,D\n").sentences())
    assert "2 MiB have I/Os, the last of them ends at 4 MiB" in said
    assert "1 lines" not in said


def test_requests_of_another_device_are_refused() -> None:
    other = BLKPARSE.replace("8,0    0 ", "8,16   0 ")
    assert read(other).ios == IOS[:1]
    assert {count for _, count in read(other).refused.values()} == {1, 2}


@pytest.mark.parametrize("text", ["", "hello\n", "fio version 1 iolog\n", "time,offset\n1,2\n", "\x7fELF", V3[:20]])
def test_file_without_a_usable_io(text: str) -> None:
    with pytest.raises(ValueError, match=r"no known format|no I/O that can be replayed"):
        read(text)


@pytest.mark.parametrize("head", ['"op","time","offset","size"', "op,\ttime,\toffset,\tsize\t\r"])
def test_columns_of_csv_may_be_quoted_and_an_operation_first(head: str) -> None:
    assert read(f"{head}\nwait\nR,0,0,512\n").ios == (TraceIo(0, 0, 512, False),)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    for head in ("", "fio version 3 iolog\n", "fio version 2 iolog\n", "time,offset,size,op\n"):
        with suppress(ValueError):  # any other exception is a fault
            assert read(head + text).ios


def steady(seconds: int, per_s: int, write_every: int = 4) -> Trace:
    rows = (
        f"{n / per_s},{4096 * (n % 999)},4096,{'R' if n % write_every else 'W'}\n" for n in range(seconds * per_s + 1)
    )
    return Trace.read("night.csv", ("time,offset,size,op\n", *rows))


def test_workload_has_mix_scale_and_trace() -> None:
    trace = steady(60, 100)
    workload = trace.workload(200)
    assert str(workload) == "night_x200_t32xqd1"
    assert (workload.rw, workload.read_percent, workload.block_bytes) == ("randrw", 75, 4096)
    assert workload.outstanding(4) == STREAMS
    assert not workload.is_usual
    replay = workload.replay
    assert replay
    assert (replay.due_s, replay.sha256) == (30, trace.sha256)
    assert from_plain(Workload, plain(workload)) == workload
    assert replay.pace(30, replay.ios) == 1
    assert replay.pace(30, replay.ios // 2) == pytest.approx(2, rel=0.01)


def test_pure_directions_have_no_mix() -> None:
    assert steady(60, 100, 1).workload(100).rw == "randwrite"
    assert steady(60, 100, 10**9).workload(100).read_percent == 99
    reads = steady(60, 100, 10**9).ios[1:]
    assert Trace("reads", reads, {}).workload(100).rw == "randread"


def test_trace_that_is_too_short_or_too_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="30 s"):
        steady(50, 10).workload(200)
    monkeypatch.setattr("pytest_ssdqual.qual.workload.trace.MOST_PER_S", 10)
    with pytest.raises(ValueError, match="per second"):
        steady(30, 11).workload(100)
    assert steady(30, 9).workload(100).replay
