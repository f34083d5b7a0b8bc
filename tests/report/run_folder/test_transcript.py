from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_ssdqual.report.run_folder import transcript
from pytest_ssdqual.report.run_folder.journal import SCHEMA, Journal
from pytest_ssdqual.rig.machine.machine import Completed

LIMIT_BYTES = 2000


class PowerCut(BaseException):
    """Nothing that is done afterwards happens."""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal.create(tmp_path / "ssdqual-runs", "3f9a2c77d1")
    journal.rotate_bytes = LIMIT_BYTES
    return journal


def run_commands(journal: Journal, count: int) -> None:
    observe = journal.transcribe("lab")
    for _ in range(count):
        observe(Completed(("lsblk",), 0, b"x" * 100, b"", "2026-01-01T00:00:00+00:00", 0.25))


def numbers(journal: Journal, writer: str = "main") -> list[int]:
    return [each["number"] for each in transcript.read(journal.path) if each["writer"] == writer]


def packed(journal: Journal) -> list[str]:
    return [path.name for path in transcript.packed(journal.path)]


def lines(journal: Journal) -> list[bytes]:
    """As they lie there, those that are there twice as well."""
    files = [gzip.decompress(path.read_bytes()) for path in transcript.packed(journal.path)]
    return b"".join([*files, (journal.path / "transcript.jsonl").read_bytes()]).splitlines()


def test_it_is_emptied_before_it_grows_larger_than_that(journal: Journal) -> None:
    for _ in range(60):
        run_commands(journal, 1)
        assert (journal.path / "transcript.jsonl").stat().st_size <= LIMIT_BYTES
    assert packed(journal) == [f"transcript-{number:03}.jsonl.gz" for number in range(1, 1 + len(packed(journal)))]
    assert len(packed(journal)) > 3
    assert numbers(journal) == list(range(1, 61))
    assert len(lines(journal)) == 60


def test_a_short_one_stays_one_file(journal: Journal) -> None:
    journal.rotate_bytes = transcript.ROTATE_BYTES
    run_commands(journal, 60)
    assert packed(journal) == []
    assert numbers(journal) == list(range(1, 61))


def test_a_command_larger_than_that_has_its_place(journal: Journal) -> None:
    journal.rotate_bytes = 100
    run_commands(journal, 3)
    assert numbers(journal) == [1, 2, 3]


def test_number_1000_comes_after_999(journal: Journal) -> None:
    for number in (999, 1000, 2):
        (journal.path / f"transcript-{number:03}.jsonl.gz").touch()
    (journal.path / "transcript-1.jsonl.gz").touch()  # none of ours
    assert packed(journal) == [f"transcript-{each}.jsonl.gz" for each in ("002", "999", "1000")]


def test_a_later_session_counts_on_over_all_files(journal: Journal) -> None:
    run_commands(journal, 60)
    run_commands(Journal.open(journal.path, "gw0"), 1)
    (journal.path / "transcript.jsonl").write_bytes(b"")
    last = max(numbers(journal))
    assert last > 40
    run_commands(Journal.open(journal.path), 1)
    assert max(numbers(journal)) == last + 1
    assert transcript.last_number(journal.path, "gw1") == 0


RUN_COMMANDS = """
import sys
from pathlib import Path
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.rig.machine.machine import Completed
journal = Journal.open(Path(sys.argv[1]), sys.argv[2])
journal.rotate_bytes = 4000
observe = journal.transcribe("lab")
for number in range(150):
    observe(Completed(("lsblk",), 0, b"x" * 100, b"", "2026-01-01T00:00:00+00:00", 0.25))
journal.note("done")
"""


def test_processes_empty_it_under_each_others_hands(journal: Journal) -> None:
    writers = ["a", "b", "c"]
    processes = [subprocess.Popen([sys.executable, "-c", RUN_COMMANDS, journal.path, each]) for each in writers]
    assert [each.wait(60) for each in processes] == [0, 0, 0]
    assert len(packed(journal)) > 5
    assert len(lines(journal)) == 450
    for writer in writers:
        assert numbers(journal, writer) == list(range(1, 151))


#: What a rotation does to the disk, in its order.
STEPS = ("fsync", "replace", "fsync of the folder", "ftruncate", "after ftruncate")


@pytest.mark.parametrize("step", range(len(STEPS)), ids=STEPS)
def test_a_crash_in_the_middle_loses_nothing(journal: Journal, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_commands(journal, 6)
    assert packed(journal) == []
    done: list[str] = []

    def dying(real: Callable[..., None], *, after: bool = False) -> Callable[..., None]:
        def do(*args: object) -> None:
            if len(done) == step:
                raise PowerCut
            done.append(real.__name__)
            real(*args)
            if after and len(done) == step:
                raise PowerCut

        return do

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", dying(os.fsync))
        patch.setattr(os, "ftruncate", dying(os.ftruncate, after=True))
        patch.setattr(Path, "replace", dying(Path.replace))
        with pytest.raises(PowerCut):
            run_commands(journal, 8)
    assert len(done) == step
    known = max(numbers(journal))
    assert known >= 6
    assert numbers(journal) == list(range(1, known + 1))
    # Whoever is still alive, or comes later, goes on: nothing is lost, nor is anything packed twice.
    others = [Journal.open(journal.path, "gw0"), Journal.open(journal.path)]
    for each in others:
        each.rotate_bytes = LIMIT_BYTES
        run_commands(each, 20)
    assert numbers(journal, "gw0") == list(range(1, 21))
    assert numbers(journal) == list(range(1, known + 21))
    assert len(lines(journal)) == known + 40


def test_what_is_left_of_a_crash_is_known_to_readers(journal: Journal) -> None:
    run_commands(journal, 5)
    (journal.path / "transcript-001.jsonl.gz").write_bytes(
        gzip.compress((journal.path / "transcript.jsonl").read_bytes())
    )
    run_commands(journal, 1)
    assert len(lines(journal)) == 11
    assert numbers(journal) == list(range(1, 7))


def test_a_full_disk_leaves_it_as_it_is_and_it_is_tried_again(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Sequence[object]] = []

    def full(*args: object) -> None:
        tried.append(args)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(transcript, "_pack", full)
        run_commands(journal, 20)
    journal.note("run_ended")
    assert 1 < len(tried) < 5
    assert packed(journal) == []
    run_commands(journal, 20)
    assert len(packed(journal)) > 1
    assert numbers(journal) == list(range(1, 41))


def test_half_a_line_costs_no_other(journal: Journal) -> None:
    run_commands(journal, 3)
    file = journal.path / "transcript.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    run_commands(journal, 30)
    assert packed(journal) != []
    assert numbers(journal) == [1, 2, *range(4, 34)]


def test_of_a_damaged_file_what_can_be_read_is(journal: Journal) -> None:
    run_commands(journal, 60)
    first, second = transcript.packed(journal.path)[:2]
    first.write_bytes(first.read_bytes()[:-40])
    second.write_bytes(b"no gzip at all")
    found = numbers(journal)
    assert found[-1] == 60
    assert 1 < len(found) < 60
    Journal.open(journal.path)


def test_the_seal_covers_all_of_it(journal: Journal) -> None:
    run_commands(journal, 30)
    journal.seal()
    (line,) = [each for each in (journal.path / "SHA256SUMS").read_text().splitlines() if "transcript-001" in each]
    assert line.split()[0] == hashlib.sha256((journal.path / "transcript-001.jsonl.gz").read_bytes()).hexdigest()


def test_numbers_are_found_by_the_heads_of_lines_alone(journal: Journal) -> None:
    """Output of a command may look like a head."""
    told = json.dumps({"schema": SCHEMA, "number": 77, "writer": "main", "x": 1}, separators=(",", ":"))
    journal.transcribe("lab")(Completed(("echo",), 0, told.encode(), b"", "2026-01-01T00:00:00+00:00", 0.25))
    assert transcript.last_number(journal.path, "main") == 1
