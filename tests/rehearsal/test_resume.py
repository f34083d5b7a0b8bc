"""A run that ended too early is continued in its own folder: nothing is measured twice, and conditioning is kept."""

from __future__ import annotations

import signal

import pytest
from rehearsed import Folder, Server, Start, await_that, drives

pytestmark = pytest.mark.lab

#: Two workloads on one array, whose promise is kept on the busiest of computers: writes first.
TWO = ("-k", "even_over_time and (randwrite_4k_qd8 or randread_4k_qd8)")
#: Conditioning, the writes, the reads.
READING = 3


def measured(folder: Folder) -> list[object]:
    return sorted(each.facts["workload"] for each in folder.records("measured"))  # type: ignore[type-var]


def require_whole(folder: Folder) -> None:
    """As a run that nothing came between."""
    assert measured(folder) == ["randread_4k_qd8", "randwrite_4k_qd8"]
    assert [each.facts["outcome"] for each in folder.records("verdict")] == ["pass", "pass"]
    assert len({each.facts["test"] for each in folder.records("verdict")}) == 2
    assert folder.is_sealed()


def require_kept(folder: Folder) -> None:
    """Nothing was purged, filled or conditioned a second time."""
    for kind in ("purging", "filled", "conditioned", "conditioning_kept"):
        assert len(folder.records(kind)) == 1, kind
    (confirmed,) = folder.records("conditioning_confirmed")
    assert confirmed.facts["confirmed"] is True
    # The array that was put together again is the same one, down to where its data begin.
    first, again = folder.records("array_created")
    assert again.facts["kept_of"] == first.facts["uuid"]
    for name in ("geometry", "members", "size_bytes", "data_offset_bytes"):
        assert again.facts[name] == first.facts[name]


def test_a_killed_run_is_continued(server: Server, start: Start) -> None:
    running = start(drives(3), *TWO)
    running.await_record("measuring", READING)
    server.await_fio()
    running.signal(signal.SIGKILL)
    killed = running.finish()
    assert killed.status == -signal.SIGKILL
    await_that(lambda: not [line for line in server.left() if line.startswith(("held", "fio", "still"))], "its lease")
    assert server.arrays() == ["md100"]
    assert not killed.folder.is_sealed()
    assert measured(killed.folder) == ["randwrite_4k_qd8"]

    run = start(drives(3), *TWO, "--ssd-resume=last").finish()
    assert run.status == 0, run.output
    assert run.folder.path == killed.folder.path
    assert f"resuming {run.folder.path.name}: 1 measurement recalled" in run.output
    assert len(run.cases()) == 2
    require_whole(run.folder)
    require_kept(run.folder)
    assert [(each["exit_status"], bool(each["ended"])) for each in run.folder.manifest()["sessions"]] == [
        (None, False),
        (0, True),
    ]
    assert [line for line in server.left() if "/run/pytest-ssdqual/fio-" not in line] == []


def test_conditioning_is_kept_after_ctrl_c(server: Server, start: Start) -> None:
    """Even in the middle of writes: they were ours, and were counted when they had ended."""
    running = start(drives(3), *TWO)
    running.await_record("measuring", READING - 1)
    server.await_fio()
    running.signal(signal.SIGINT)
    interrupted = running.finish()
    assert interrupted.status == 2, interrupted.output
    assert server.left() == []
    assert measured(interrupted.folder) == []

    run = start(drives(3), *TWO, f"--ssd-resume={interrupted.folder.path.name}").finish()
    assert run.status == 0, run.output
    require_whole(run.folder)
    require_kept(run.folder)
    assert server.left() == []


def test_what_was_killed_while_it_wrote_is_conditioned_again(server: Server, start: Start) -> None:
    """Nobody can tell its own last writes from those of others."""
    running = start(drives(3), *TWO)
    running.await_record("measuring", READING - 1)
    server.await_fio()
    running.signal(signal.SIGKILL)
    running.finish()
    await_that(lambda: not [line for line in server.left() if line.startswith(("held", "fio", "still"))], "its lease")

    run = start(drives(3), *TWO, "--ssd-resume=last").finish()
    assert run.status == 0, run.output
    require_whole(run.folder)
    assert len(run.folder.records("purging")) == 2
    assert not run.folder.records("conditioning_kept")
