"""A run that ended too early is continued in its own folder: nothing is measured twice, and conditioning is kept."""

from __future__ import annotations

import signal

import pytest
from rehearsed import Folder, Server, Start, await_that, drives

pytestmark = pytest.mark.lab

#: Workloads on one array, whose promise is kept on the busiest of computers; writes come first.
TWO = ("-k", "even_over_time and (randwrite_4k_qd8 or randread_4k_qd8)")
#: fio's processes by number: conditioning, the writes.
WRITING = 2


def measured(folder: Folder) -> list[object]:
    return sorted(each.facts["workload"] for each in folder.records("measured"))  # type: ignore[type-var]


def require_whole(folder: Folder, *workloads: str) -> None:
    """As a run that nothing came between."""
    assert measured(folder) == list(workloads)
    assert [each.facts["outcome"] for each in folder.records("verdict")] == ["pass"] * len(workloads)
    assert len({each.facts["test"] for each in folder.records("verdict")}) == len(workloads)
    assert folder.is_sealed()


def require_kept(folder: Folder, sessions: int) -> None:
    """Nothing was purged, filled or conditioned a second time."""
    for kind in ("purging", "filled", "conditioned"):
        assert len(folder.records(kind)) == 1, kind
    assert len(folder.records("conditioning_kept")) == sessions - 1
    assert [each.facts["confirmed"] for each in folder.records("conditioning_confirmed")] == [True] * (sessions - 1)
    # The array that was put together again is the same one, down to where its data begin.
    first, *again = folder.records("array_created")
    assert [each.facts["kept_of"] for each in again] == [each.facts["uuid"] for each in (first, *again[:-1])]
    for each in again:
        for name in ("geometry", "members", "size_bytes", "data_offset_bytes"):
            assert each.facts[name] == first.facts[name]


def test_a_run_that_was_interrupted_and_then_killed_is_continued(server: Server, start: Start) -> None:
    # Ctrl-C in the middle of writes: they were ours, and were counted when they had ended.
    running = start(drives(3), *TWO)
    running.await_record("measuring", WRITING)
    server.await_fio()
    running.signal(signal.SIGINT)
    interrupted = running.finish()
    assert interrupted.status == 2, interrupted.output
    assert server.left() == []
    assert measured(interrupted.folder) == []

    running = start(drives(3), *TWO, "--ssd-resume=last")
    running.await_record("measured")
    server.await_fio()
    running.signal(signal.SIGKILL)
    killed = running.finish()
    assert killed.status == -signal.SIGKILL
    await_that(lambda: not [line for line in server.left() if line.startswith(("held", "fio", "still"))], "its lease")
    assert server.arrays() == ["md100"]
    assert not killed.folder.is_sealed()
    assert measured(killed.folder) == ["randwrite_4k_qd8"]

    run = start(drives(3), *TWO, f"--ssd-resume={killed.folder.path.name}").finish()
    assert run.status == 0, run.output
    assert run.folder.path == killed.folder.path == interrupted.folder.path
    assert f"resuming {run.folder.path.name}: 1 measurement recalled" in run.output
    assert len(run.cases()) == 2
    require_whole(run.folder, "randread_4k_qd8", "randwrite_4k_qd8")
    require_kept(run.folder, 3)
    assert [(each["exit_status"], bool(each["ended"])) for each in run.folder.manifest()["sessions"]] == [
        (2, True),
        (None, False),
        (0, True),
    ]
    assert [line for line in server.left() if "/run/pytest-ssdqual/fio-" not in line] == []
