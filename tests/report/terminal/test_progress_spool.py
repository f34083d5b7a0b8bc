from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from pytest_ssdqual.qual.progress_events import Begun, LoadBegun, Looked, News, Now, Steadiness
from pytest_ssdqual.report.run_folder import checksums
from pytest_ssdqual.report.terminal import progress_spool
from pytest_ssdqual.report.terminal.progress_spool import SpoolReader, SpoolWriter

LOAD = LoadBegun("measure", "raid5x4", "randwrite_4k_qd8", ("raid5x4",))


def polled(reader: SpoolReader) -> list[News]:
    return [news for _, news, _ in reader.poll()]


def test_what_a_worker_tells_arrives_once_with_its_name_and_time(tmp_path: Path) -> None:
    one, two = SpoolWriter(tmp_path, "gw0", clock=lambda: 7.5), SpoolWriter(tmp_path, "gw1", clock=lambda: 8.5)
    reader = SpoolReader(tmp_path)
    one.write(Begun("fill", 60))
    two.write(LOAD)
    one.write(Now(1.0, (300.0,), 4096))
    assert list(reader.poll()) == [
        ("gw0", Begun("fill", 60), 7.5),
        ("gw0", Now(1.0, (300.0,), 4096), 7.5),
        ("gw1", LOAD, 8.5),
    ]
    assert polled(reader) == []
    one.write(Looked("goes on"))
    assert polled(reader) == [Looked("goes on")]


def test_days_take_a_few_kilobytes_and_leave_the_last_state(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "gw0", limit_bytes=4096)
    writer.write(Begun("fill", 60))
    writer.write(LOAD)
    writer.write(Looked("look 1"))
    for second in range(5000):
        writer.write(Now(float(second), (300.0,), second))
    assert writer.path.stat().st_size <= 4096
    found = polled(SpoolReader(tmp_path))
    assert found[:3] == [Begun("fill", 60), LOAD, Looked("look 1")]
    assert found[-1] == Now(4999.0, (300.0,), 4999)


def test_whoever_reads_on_gets_nothing_twice_when_it_begins_anew(tmp_path: Path) -> None:
    writer, reader = SpoolWriter(tmp_path, "gw0", limit_bytes=2048), SpoolReader(tmp_path)
    writer.write(Looked("look 1"))
    told: list[News] = []
    for second in range(300):
        writer.write(Now(float(second), (300.0,), second))
        told += polled(reader)
    assert told == [Looked("look 1"), *(Now(float(second), (300.0,), second) for second in range(300))]


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    writer, reader = SpoolWriter(tmp_path, "gw0"), SpoolReader(tmp_path)
    writer.write(Begun("fill", 60))
    whole = writer.path.read_bytes()
    writer.path.write_bytes(whole[:-9])
    assert polled(reader) == []
    with writer.path.open("ab") as file:
        file.write(whole[-9:])
    assert polled(reader) == [Begun("fill", 60)]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[1]",
        b"\xff\xfe",
        b'{"number":1,"at_s":"x","event":"Idle","fields":{}}',
        b'{"number":1,"at_s":1,"event":"x","fields":{}}',
        b'{"number":1,"at_s":1,"event":"Begun","fields":{"what":7,"expected_s":0}}',
        b"NaN",
    ],
)
def test_what_is_not_ours_is_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / ".live-gw0.jsonl"
    path.write_bytes(
        line + b'\n{"number":2,"at_s":1,"event":"Steadiness","fields":{"reached":true,"sentence":"so","brief":""}}\n'
    )
    assert polled(SpoolReader(tmp_path)) == [Steadiness(True, "so")]


def test_nothing_that_can_go_wrong_is_an_error(tmp_path: Path) -> None:
    writer, reader = SpoolWriter(tmp_path / "gone", "gw0"), SpoolReader(tmp_path / "gone")
    writer.write(Begun("fill", 60))
    assert polled(reader) == []
    (tmp_path / "secret").write_text('{"number":1,"at_s":1,"event":"Idle","fields":{}}\n')
    (tmp_path / ".live-gw0.jsonl").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / ".live-gw1.jsonl")
    assert polled(SpoolReader(tmp_path)) == []


def test_it_is_private_no_evidence_and_gone_at_the_end(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "gw0")
    writer.write(Begun("fill", 60))
    assert stat.S_IMODE(writer.path.stat().st_mode) == 0o600
    assert checksums.text(tmp_path) == b""
    SpoolReader(tmp_path).remove()
    assert list(tmp_path.iterdir()) == []


def test_threads_share_a_pen(tmp_path: Path) -> None:
    writer, reader = SpoolWriter(tmp_path, "gw0"), SpoolReader(tmp_path)

    def tell() -> None:
        for second in range(100):
            writer.write(Now(float(second), (1.0,), 0))

    threads = [threading.Thread(target=tell) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(polled(reader)) == 300


def test_the_name_is_one_of_those_that_are_no_evidence() -> None:
    assert progress_spool.PREFIX.startswith(".")
