from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.run_folder import checksums
from pytest_ssdqual.report.run_folder.journal import INLINE_BYTES, SCHEMA, Journal, JournalError
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.rig.machine.machine import Completed, RigError
from pytest_ssdqual.rig.measure.session import Logbook

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**99), 10**99) | st.floats(-1e99, 1e99) | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3),
    max_leaves=8,
)
RESERVED = {"schema", "kind", "time", "writer", "self"}
names = st.text(max_size=10).filter(lambda name: name not in RESERVED)
events_noted = st.lists(st.tuples(st.text(max_size=10), st.dictionaries(names, plain, max_size=3)), max_size=4)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.create(tmp_path / "ssdqual-runs", "3f9a2c77d1")


def completed(stdout: bytes = b"", stderr: bytes = b"", status: int = 0) -> Completed:
    return Completed(("lsblk", "--json"), status, stdout, stderr, "2026-01-01T00:00:00+00:00", 0.25)


def transcript(journal: Journal) -> list[dict[str, object]]:
    return [json.loads(line) for line in (journal.path / "transcript.jsonl").read_text().splitlines()]


@contextlib.contextmanager
def disk_full_after(bytes_of_a_file: int) -> Iterator[None]:
    """No file may grow beyond this: the write that would is cut short, as on a full disk, and the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_of_a_file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_run_folder_is_named_by_time_and_run(journal: Journal) -> None:
    assert re.fullmatch(r"\d{8}T\d{6}Z-3f9a2c77", journal.path.name)
    assert sorted(each.name for each in journal.path.iterdir()) == [
        "fio",
        "health",
        "records.jsonl",
        "transcript",
        "transcript.jsonl",
    ]


def test_a_station_can_write_into_it(journal: Journal) -> None:
    logbook: Logbook = journal
    logbook.note("measured", raw=logbook.keep("run.json.gz", b""))
    (record,) = read_records(journal.path)
    assert record.facts["raw"] == "fio/run.json.gz"


def test_a_run_folder_that_cannot_be_is_a_rig_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="Not a directory"):
        Journal.create(tmp_path / "file", "1")
    assert issubclass(JournalError, RigError)


def test_only_a_run_folder_can_be_opened(tmp_path: Path, journal: Journal) -> None:
    with pytest.raises(JournalError, match="not a run folder"):
        Journal.open(tmp_path)
    Journal.open(journal.path, "gw0").note("measured")
    assert [dict(each.facts) for each in read_records(journal.path)] == [{"writer": "gw0"}]


def test_a_record_after_over_a_day_has_the_time_since_the_last(journal: Journal) -> None:
    times = iter([0.0, 86_400.0, 86_401.0, 300_000.0])
    journal.clock = lambda: next(times)
    for _ in range(4):
        journal.note("measured")
    assert [each.facts.get("since_last_s") for each in read_records(journal.path)] == [None, None, None, 213_599.0]


@given(events_noted)
def test_what_is_noted_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, dict[str, object]]]
) -> None:
    journal = Journal.create(tmp_path_factory.mktemp("runs"), "1")
    for kind, facts in events:
        journal.note(kind, **facts)
    records = list(read_records(journal.path))
    assert [(each.kind, {**each.facts, "writer": 0}) for each in records] == [
        (kind, {**facts, "writer": 0}) for kind, facts in events
    ]
    assert all(each.time.endswith("+00:00") for each in records)


def test_facts_cannot_pose_as_the_head_of_a_line(journal: Journal) -> None:
    journal.note("measured", time="never", schema=99)
    (record,) = read_records(journal.path)
    assert record.time.startswith("20")


def test_infinity_is_null(journal: Journal) -> None:
    journal.note("verdict", high=math.inf, rounds=(1.0, math.nan))
    (record,) = read_records(journal.path)
    assert (record.facts["high"], record.facts["rounds"]) == (None, [1.0, None])


def test_a_name_that_is_no_text_is_kept(journal: Journal) -> None:
    journal.note("error", message=os.fsdecode(b"/dev/\xff"))
    (record,) = read_records(journal.path)
    assert record.facts["message"] == "/dev/\udcff"


def test_what_cannot_be_json_leaves_no_line(journal: Journal) -> None:
    with pytest.raises(TypeError):
        journal.note("measured", thing=object())
    assert list(read_records(journal.path)) == []


def test_a_planned_array_is_on_disk_when_note_returns(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    journal.note("array_planned", uuid="1")
    assert synced == ["records.jsonl"]


def test_a_full_disk_is_told_and_costs_no_other_line(journal: Journal) -> None:
    journal.note("run_started")
    before = (journal.path / "records.jsonl").read_bytes()
    assert len(before) < 200
    with disk_full_after(200), pytest.raises(JournalError, match=re.escape(os.strerror(errno.EFBIG))):
        journal.note("measured", filler="x" * 500)
    assert (journal.path / "records.jsonl").read_bytes() == before
    journal.note("run_ended")
    assert [each.kind for each in read_records(journal.path)] == ["run_started", "run_ended"]


def test_half_a_line_of_a_writer_that_died_costs_no_other_line(journal: Journal) -> None:
    journal.note("run_started")
    with (journal.path / "records.jsonl").open("ab") as file:
        file.write(f'{{"schema":{SCHEMA},"kind":"meas'.encode())
    journal.note("run_ended")
    assert [each.kind for each in read_records(journal.path)] == ["run_started", "run_ended"]


def test_no_space_at_all(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(full, data))
    with pytest.raises(JournalError, match=re.escape(os.strerror(errno.ENOSPC))):
        journal.note("measured")


def test_a_folder_that_is_gone_is_not_made_again(journal: Journal) -> None:
    (journal.path / "records.jsonl").unlink()
    with pytest.raises(JournalError, match="No such file"):
        journal.note("measured")
    assert not (journal.path / "records.jsonl").exists()


APPEND = """
import sys
from pathlib import Path
from pytest_ssdqual.report.run_folder.journal import Journal
journal = Journal.open(Path(sys.argv[1]), sys.argv[2])
for number in range(60):
    journal.note("measured", number=number, filler=sys.argv[2] * 3000)
    journal.keep("raid5x4-run.json.gz", f"{sys.argv[2]} {number}".encode())
"""


def test_processes_share_a_run_folder(journal: Journal) -> None:
    writers = ["a", "b", "c"]
    processes = [subprocess.Popen([sys.executable, "-c", APPEND, journal.path, each]) for each in writers]
    assert [each.wait(60) for each in processes] == [0, 0, 0]
    records = list(read_records(journal.path))
    for writer in writers:
        mine = [each.facts for each in records if each.facts["writer"] == writer]
        assert [each["number"] for each in mine] == list(range(60))
        assert {each["filler"] for each in mine} == {writer * 3000}
    kept = {each.read_text() for each in (journal.path / "fio").iterdir()}
    assert kept == {f"{writer} {number}" for writer in writers for number in range(60)}


def test_raw_files_never_overwrite_each_other(journal: Journal) -> None:
    names = [journal.keep("raid5x4-randread_4k_qd8-run.json.gz", data) for data in (b"1", b"2", b"3")]
    assert names == [f"fio/raid5x4-randread_4k_qd8-run{suffix}.json.gz" for suffix in ("", "-2", "-3")]
    assert [(journal.path / name).read_bytes() for name in names] == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("name", "stored"),
    [("../../etc/passwd", "_._.._etc_passwd"), ("S 123/4.json", "S_123_4.json"), ("", "_"), ("-rf", "_rf")],
)
def test_a_raw_file_stays_in_its_folder(journal: Journal, name: str, stored: str) -> None:
    assert journal.keep(name, b"1", folder="health") == f"health/{stored}"
    assert [each.name for each in (journal.path / "health").iterdir()] == [stored]


def test_a_raw_file_is_whole_or_not_there(journal: Journal) -> None:
    with disk_full_after(100), pytest.raises(JournalError, match="evidence cannot be stored"):
        journal.keep("run.json.gz", b"x" * 500)
    assert list((journal.path / "fio").iterdir()) == []


def test_a_manifest_that_cannot_be_replaced_stays(journal: Journal) -> None:
    journal.write_manifest({"run_id": "1", "margin": math.inf})
    with disk_full_after(100), pytest.raises(JournalError):
        journal.write_manifest({"run_id": "2" * 500})
    assert json.loads((journal.path / "manifest.json").read_text()) == {"schema": SCHEMA, "run_id": "1", "margin": None}


def test_the_transcript_has_every_command(journal: Journal) -> None:
    observe = journal.transcribe("root@dut7")
    observe(completed(b"{}\xff", b"warning"))
    observe(completed(status=1))
    first, second = transcript(journal)
    assert first == {
        "schema": SCHEMA,
        "number": 1,
        "writer": "main",
        "machine": "root@dut7",
        "argv": ["lsblk", "--json"],
        "status": 0,
        "started": "2026-01-01T00:00:00+00:00",
        "elapsed_s": 0.25,
        "stdout": "{}\\xff",
        "stderr": "warning",
    }
    assert (second["number"], second["status"]) == (2, 1)


def test_long_output_has_a_file_of_its_own(journal: Journal) -> None:
    long = b"x" * (INLINE_BYTES + 1)
    journal.transcribe("lab")(completed(long, long[1:]))
    (line,) = transcript(journal)
    assert line["stdout_file"] == "transcript/main-1.out"
    assert (journal.path / "transcript/main-1.out").read_bytes() == long
    assert "stdout" not in line
    assert line["stderr"] == "x" * INLINE_BYTES


def test_fio_output_that_came_through_a_command_is_stored_once(journal: Journal) -> None:
    packed = gzip.compress(os.urandom(INLINE_BYTES))
    journal.transcribe("lab")(completed(packed))
    kept = journal.path / journal.keep("run.json.gz", packed)
    spilled = journal.path / "transcript/main-1.out"
    assert kept.read_bytes() == packed
    assert kept.samefile(spilled)
    assert not (journal.path / journal.keep("run.json.gz", packed)).samefile(spilled)


def test_without_hard_links_it_is_stored_twice(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    packed = gzip.compress(os.urandom(INLINE_BYTES))
    journal.transcribe("lab")(completed(packed))
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert (journal.path / journal.keep("run.json.gz", packed)).read_bytes() == packed


def test_threads_share_a_transcript(journal: Journal) -> None:
    observe = journal.transcribe("lab")
    threads = [threading.Thread(target=lambda: [observe(completed(b"y")) for _ in range(25)]) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(int(str(each["number"])) for each in transcript(journal)) == list(range(1, 101))


def test_a_full_disk_is_reported_after_the_clean_up(journal: Journal) -> None:
    observe = journal.transcribe("lab")
    observe(completed())
    with disk_full_after((journal.path / "transcript.jsonl").stat().st_size):
        observe(completed(b"mdadm --stop"))
    with pytest.raises(JournalError, match=r"transcript\.jsonl"):
        journal.note("array_stopped", uuid="1")
    journal.note("run_ended")
    assert [each.kind for each in read_records(journal.path)] == ["array_stopped", "run_ended"]
    assert [each["number"] for each in transcript(journal)] == [1]


def test_sums_cover_every_file(journal: Journal) -> None:
    journal.note("run_started")
    journal.keep("run.json.gz", b"data")
    journal.write_manifest({})
    journal.seal()
    journal.seal()
    sums = dict(line.split("  ")[::-1] for line in (journal.path / "SHA256SUMS").read_text().splitlines())
    assert sorted(sums) == ["fio/run.json.gz", "manifest.json", "records.jsonl", "transcript.jsonl"]
    assert sums["fio/run.json.gz"] == hashlib.sha256(b"data").hexdigest()
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=journal.path, capture_output=True)
    assert checked.returncode == 0
    (journal.path / "fio/run.json.gz").write_bytes(b"date")
    changed = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=journal.path, capture_output=True)
    assert b"fio/run.json.gz: FAILED" in changed.stdout


def test_a_later_session_counts_on(journal: Journal) -> None:
    """Numbers tell that a line is missing, so they must not begin anew."""
    for _ in range(3):
        journal.transcribe("lab")(completed())
    Journal.open(journal.path, "gw0").transcribe("lab")(completed())
    Journal.open(journal.path).transcribe("lab")(completed())
    assert [(each["writer"], each["number"]) for each in transcript(journal)] == [
        ("main", 1), ("main", 2), ("main", 3), ("gw0", 1), ("main", 4),
    ]  # fmt: skip


def test_a_seal_can_be_taken_off(journal: Journal) -> None:
    journal.unseal()
    journal.seal()
    assert (journal.path / "SHA256SUMS").exists()
    journal.unseal()
    assert not (journal.path / "SHA256SUMS").exists()
    shutil.rmtree(journal.path)
    with pytest.raises(JournalError):
        journal.unseal()


def test_nothing_is_written_after_the_seal(journal: Journal) -> None:
    journal.seal()
    journal.transcribe("lab")(completed())
    for write in (
        lambda: journal.note("waiting"),
        lambda: journal.keep("a.json", b""),
        lambda: journal.write_manifest({}),
    ):
        with pytest.raises(JournalError, match="sealed"):
            write()
    assert checksums.changed(journal.path) == ()


def test_a_thread_that_still_writes_is_stopped_by_the_seal(journal: Journal) -> None:
    refused: list[str] = []
    began, sealed = threading.Event(), threading.Event()

    def write() -> None:
        is_last = False
        try:
            while not is_last:
                is_last = sealed.is_set()
                journal.note("waiting")
                began.set()
        except JournalError as error:
            refused.append(str(error))

    thread = threading.Thread(target=write)
    thread.start()
    began.wait()
    journal.seal()
    sealed.set()
    thread.join()
    assert (len(refused), checksums.changed(journal.path)) == (1, ())
