"""Run folders are private, and nothing is written or read outside of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.report.resume.rebuild_measurements import Forgotten, Shelf
from pytest_ssdqual.report.resume.resume import NotResumable, Past
from pytest_ssdqual.report.run_folder import checksums, safe_files
from pytest_ssdqual.report.run_folder.find import NoSuchRun, find
from pytest_ssdqual.report.run_folder.journal import SCHEMA, Journal, JournalError
from pytest_ssdqual.report.run_folder.lock import FolderLock
from pytest_ssdqual.report.run_folder.reader import left_behind, read_records
from pytest_ssdqual.rig.machine.machine import Completed

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def whole_run(root: Path) -> Journal:
    """A run folder with a file of every kind in it."""
    journal = Journal.create(root / "new" / "ssdqual-runs", "aaaaaaaa")
    claim = FolderLock(journal.path, "main")
    journal.note("run_started")
    journal.keep("run.json.gz", b"x")
    journal.keep("extra.txt", b"x", folder="more")
    journal.transcribe("dut")(Completed(("ls",), 0, b"x" * 10_000, b"", "2026", 0.1))
    journal.write_manifest({"a": 1})
    journal.seal()
    claim.release()
    return journal


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o377])
def test_whatever_the_umask_nobody_else_can_look_in(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        journal = whole_run(tmp_path)
    every = [journal.path, *journal.path.rglob("*")]
    assert {oct(path.stat().st_mode & 0o7777) for path in every if path.is_dir()} == {"0o700"}
    assert {oct(path.stat().st_mode & 0o7777) for path in every if path.is_file()} == {"0o600"}
    assert len(every) > 10
    assert oct(journal.path.parent.stat().st_mode & 0o7777) == "0o755"
    safe_files.require_ours(journal.path)


def test_what_another_writer_takes_away_meanwhile_is_no_danger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker joins while another one packs the transcript: the packed file's first name is listed, and gone."""
    journal = whole_run(tmp_path)
    (journal.path / ".transcript-002.jsonl.gz.part").touch(mode=0o600)
    files = safe_files.files_below(journal.path)
    walk = os.walk

    def gone_at_once(*args: Any, **options: Any) -> Iterator[tuple[str, list[str], list[str]]]:  # noqa: ANN401
        found = list(walk(*args, **options))
        (journal.path / ".transcript-002.jsonl.gz.part").unlink()
        yield from found

    monkeypatch.setattr(os, "walk", gone_at_once)
    safe_files.require_ours(journal.path)
    (journal.path / ".transcript-002.jsonl.gz.part").touch(mode=0o600)
    left = safe_files.files_below(journal.path)
    assert [path.name for path in files if path not in left] == [".transcript-002.jsonl.gz.part"]


def test_where_everybody_could_replace_it_none_is_made(tmp_path: Path) -> None:
    root = tmp_path / "open"
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(JournalError, match=r"may be written by everybody, .*: chmod o-w"):
        Journal.create(root, "a")
    root.chmod(0o1777)  # as /tmp
    Journal.create(root, "a")


@as_root
def test_nor_where_another_user_could(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "theirs"
    root.mkdir()
    root.chmod(0o1777)
    os.chown(root, 4711, 4711)
    with pytest.raises(JournalError, match="belongs to another user \\(uid 4711\\)"):
        Journal.create(root, "a")
    monkeypatch.setenv("SUDO_UID", "4711")  # they said so themselves
    Journal.create(root, "a")


@pytest.mark.parametrize("kind", ["file", "dangling", "loop", "readonly"])
def test_what_cannot_hold_run_folders(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "runs"
    match kind:
        case "file":
            root.touch()
        case "dangling":
            root.symlink_to(tmp_path / "nowhere")
        case "loop":
            root.symlink_to(root)
        case _:
            root = Path("/proc/ssdqual-runs")
    with pytest.raises(JournalError, match="evidence cannot be stored in"):
        Journal.create(root, "a")


def test_a_link_to_a_folder_of_the_users_choice_is_fine(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    Journal.create(tmp_path / "runs", "a").note("run_started")
    assert len(list((tmp_path / "disk").iterdir())) == 1


def test_a_folder_that_is_replaced_under_way_is_not_written_to(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "runs", "a")
    trap = tmp_path / "trap"
    journal.path.rename(tmp_path / "moved")
    trap.mkdir()
    for name in ("records.jsonl", "transcript.jsonl", "manifest.json"):
        (trap / name).write_text("theirs\n")
    journal.path.symlink_to(trap)
    observe = journal.transcribe("dut")
    observe(Completed(("ls",), 0, b"", b"", "2026", 0.1))
    for write in (
        lambda: journal.note("x"), lambda: journal.keep("x", b""), lambda: journal.write_manifest({}), journal.seal,
        journal.unseal,
    ):  # fmt: skip
        with pytest.raises(JournalError, match="another folder has replaced it"):
            write()
    assert {path.name: path.read_text() for path in trap.iterdir()} == dict.fromkeys(
        ("records.jsonl", "transcript.jsonl", "manifest.json"), "theirs\n"
    )


def test_nor_is_another_folder_of_the_same_name(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "a")
    other = Journal.create(tmp_path, "b")
    journal.path.rename(tmp_path / "moved")
    other.path.rename(journal.path)
    with pytest.raises(JournalError, match="another folder has replaced it"):
        journal.note("x")
    assert (journal.path / "records.jsonl").read_text() == ""


def test_nor_a_link_that_got_the_number_of_what_was_there(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "a")
    journal.path.rename(tmp_path / "moved")
    journal.path.symlink_to(tmp_path / "moved")
    journal._inode = journal.path.lstat().st_ino
    with pytest.raises(JournalError, match="another folder has replaced it"):
        journal.note("x")


LINKS = (
    "records.jsonl",
    "transcript.jsonl",
    "manifest.json",
    "fio",
    "fio/x.json.gz",
    "transcript",
    ".main.lock",
    "SHA256SUMS",
)


@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_a_run_folder_is_never_followed(tmp_path: Path, name: str) -> None:
    journal = whole_run(tmp_path)
    victim = tmp_path / "victim"
    planted = journal.path / name
    if planted.is_dir():
        victim.mkdir()
        planted.rename(tmp_path / "away")
    else:
        victim.write_text(f'{{"schema":{SCHEMA},"kind":"run_started","time":"x"}}\n')
        planted.unlink(missing_ok=True)
    planted.symlink_to(victim)
    before = [victim.read_text()] if victim.is_file() else list(victim.iterdir())
    with pytest.raises(NotResumable, match=r"is a symbolic link, which no run creates"):
        Past.read(journal.path)
    with pytest.raises(JournalError, match=r"is a symbolic link"):
        Journal.open(journal.path)
    if name == ".main.lock":
        with pytest.raises(JournalError):
            FolderLock(journal.path, "main")
    if name == "records.jsonl":
        with pytest.raises(JournalError):
            journal.note("x")
    journal.seal()
    assert before == ([victim.read_text()] if victim.is_file() else list(victim.iterdir()))
    assert "victim" not in (journal.path / "SHA256SUMS").read_text()


def test_nor_is_one_where_a_part_of_a_file_would_be(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "a")
    (tmp_path / "victim").write_text("theirs")
    (journal.path / f".manifest.json.{os.getpid()}.part").symlink_to(tmp_path / "victim")
    with pytest.raises(JournalError, match="symbolic link"):
        journal.write_manifest({})
    assert (tmp_path / "victim").read_text() == "theirs"


@as_root
def test_the_run_of_another_user_is_not_continued(tmp_path: Path) -> None:
    journal = whole_run(tmp_path)
    os.chown(journal.path / "fio" / "run.json.gz", 4711, 4711)
    with pytest.raises(NotResumable, match=r"belongs to another user .*: copy the run folder"):
        Past.read(journal.path)


def test_nor_one_that_others_may_write(tmp_path: Path) -> None:
    journal = whole_run(tmp_path)
    (journal.path / "records.jsonl").chmod(0o660)
    with pytest.raises(NotResumable, match="may be written by others"):
        Past.read(journal.path)


def test_a_fifo_does_not_make_us_wait(tmp_path: Path) -> None:
    journal = whole_run(tmp_path)
    (journal.path / "records.jsonl").unlink()
    os.mkfifo(journal.path / "records.jsonl")
    with pytest.raises(NotResumable, match="neither a file nor a folder"):
        Past.read(journal.path)
    with pytest.raises(OSError, match="is not a file"):
        list(read_records(journal.path))
    assert left_behind(journal.path.parent).arrays == ()
    with pytest.raises(NoSuchRun):
        find("last", journal.path.parent)


def test_what_others_say_is_ours_is_not_believed(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "a")
    journal.note("array_planned", uuid="1:2:3:4", device="/dev/md100", members=[], machine_id="m")
    assert [array.uuid for array in left_behind(tmp_path).arrays] == ["1:2:3:4"]
    (tmp_path / "link").symlink_to(journal.path)
    journal.path.chmod(0o777)
    assert left_behind(tmp_path).arrays == ()


@pytest.mark.parametrize(
    "raw",
    ["../secret", "fio/../../secret", "/etc/hostname", "fio/link.json.gz", "linked/secret", "fio", "", "fio/\0",
     "fio/\n", "x" * 5000, "fio/" + "x" * 5000, "fio/.hidden"],
)  # fmt: skip
def test_a_record_can_name_no_file_outside_of_its_folder(tmp_path: Path, raw: str) -> None:
    journal = whole_run(tmp_path)
    (journal.path.parent / "secret").write_text("secret")
    (journal.path / "fio" / "link.json.gz").symlink_to(journal.path.parent / "secret")
    (journal.path / "linked").symlink_to(journal.path.parent)
    (journal.path / "fio" / ".hidden").touch()
    with pytest.raises(Forgotten) as caught:
        Shelf(journal.path).require(raw)
    assert len(str(caught.value)) < 6000
    Shelf(journal.path).require("fio/run.json.gz").close()


@given(
    st.lists(
        st.binary(min_size=1, max_size=30).filter(lambda name: not set(name) & set(b"/\0") and name[:1] != b"."),
        max_size=6, unique=True,
    )
)  # fmt: skip
@settings(max_examples=15)
def test_sha256sum_checks_digests_of_files_with_odd_names(
    tmp_path_factory: pytest.TempPathFactory, names: list[bytes]
) -> None:
    journal = Journal.create(tmp_path_factory.mktemp("runs"), "a")
    for name in names:
        Path(os.fsdecode(os.fsencode(journal.path / "fio") + b"/" + name)).write_bytes(name)
    journal.seal()
    done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=journal.path, check=False)
    assert done.returncode == 0
    assert len(checksums.read(journal.path)) == 2 + len(names)


@pytest.mark.parametrize(
    "name", ["a\nb.json", "\\.json", "x" * 10_000 + "-before.json", "é\u202e\x1b[2J", "", "..", "-rf"]
)
def test_any_name_becomes_one_that_a_file_can_have(tmp_path: Path, name: str) -> None:
    journal = Journal.create(tmp_path, "a")
    first, second = (journal.keep(name, data, folder="health") for data in (b"1", b"2"))
    assert first != second
    for kept in (first, second):
        folder, _, plain = kept.partition("/")
        assert folder == "health"
        assert plain.isascii()
        assert plain.isprintable()
        assert len(plain) < 200
        assert not plain.startswith((".", "-"))
        assert (journal.path / kept).is_file()


def test_a_file_gets_all_of_its_content_or_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    safe_files.write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        safe_files.write_whole(path, b"newer")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
