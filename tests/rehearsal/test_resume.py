"""A run that ended too early is continued in its own folder: nothing is measured twice, and conditioning is kept."""

from __future__ import annotations

import signal

import pytest
from support.lab.rehearsed import LENIENTLY, Folder, Server, Start, drives

pytestmark = pytest.mark.lab

#: Workloads on one array, whose promise is kept on the busiest of computers, in the order in which they are measured.
FIRST, SECOND = "randwrite_4k_qd8", "randrw70_4k_qd8"
TWO = ("-k", f"steady_state and ({FIRST} or {SECOND})", *LENIENTLY)


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


@pytest.mark.every_release
def test_a_run_that_was_cancelled_while_it_measured_is_continued(server: Server, start: Start) -> None:
    """By SIGTERM, as CI cancels a job. One that was killed is continued in suites/faults/test_controller.py."""
    running = start(drives(3), *TWO)
    running.await_record("measured")
    running.await_record("measuring", workload=SECOND, fio="run")
    # In the middle of writes: they were ours, and are counted when they have ended.
    server.await_fio()
    running.signal(signal.SIGTERM)
    cancelled = running.finish()
    assert cancelled.status == 2, cancelled.output
    assert server.left() == []
    assert measured(cancelled.folder) == [FIRST]
    assert cancelled.folder.is_sealed()

    run = start(drives(3), *TWO, "--ssd-resume=last").finish()
    assert run.status == 0, run.output
    assert run.folder.path == cancelled.folder.path
    assert f"resuming {run.folder.path.name}: 1 " in run.output
    assert len(run.cases()) == 2
    require_whole(run.folder, SECOND, FIRST)
    require_kept(run.folder, 2)
    assert [(each["exit_status"], bool(each["ended"])) for each in run.folder.manifest()["sessions"]] == [
        (2, True),
        (0, True),
    ]
    assert server.left() == []
