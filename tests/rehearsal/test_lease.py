"""Two controllers and one set of drives: the second is told who has them, or waits; the first notices nothing.

Ctrl-C ends the first, while its array is filled: it takes all down in order, and its drives need no consent.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support.lab.rehearsed import BRIEF, Server, Start, drives

# Not unhurried, although no figures are judged: both halves of the rehearsals are to take equally long.
pytestmark = pytest.mark.lab

PLAN = ("-k", "steady_state and randread_4k_qd8 and raid5x3", "-o", "ssd_measure_unpromised=true")


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A protocol that fills an array for longer than this rehearsal takes."""
    protocol = tmp_path / "endless.toml"
    protocol.write_text(BRIEF.read_text().replace("passes = 1", "passes = 100"))
    return protocol


def test_second_run_is_told_who_has_the_drives_or_waits(server: Server, start: Start, endless: Path) -> None:
    start.protocol = endless
    first = start(drives(3), *PLAN)
    first.await_record("array_created")
    server.await_fio()
    folder = first.folder()
    start.protocol = BRIEF

    # From another place, whose journals know nothing of the array that stands: not the guard speaks, but the lease. At
    # the same time, because the first run must not end before the third one waits for it.
    running = start(drives(4), *PLAN, root=start.place / "elsewhere")
    second = start(drives(3), *PLAN).finish()
    assert second.status == 4, second.output
    (told,) = (line for line in second.output.splitlines() if "another run holds drives" in line)
    assert f", run {folder.path.name} for " in told
    assert "by its plan" in told or told.count(" longer than it") == 1
    assert "; --ssd-wait=DURATION waits" in told
    elsewhere = running.finish()
    assert elsewhere.status == 4
    who = told.split(": held by ")[1].split(" for ")[0]
    assert f"(SSDQ0003): held by {who}" in elsewhere.output

    third = start(drives(3), *PLAN, "--ssd-wait=20 min", root=start.place / "patient")
    third.await_output("; waiting for ")
    first.signal(signal.SIGINT)
    interrupted = first.finish()
    assert (interrupted.status, interrupted.cases()) == (2, {})
    third.await_record("array_created")
    third.signal(signal.SIGTERM)
    waited = third.finish()
    assert waited.status == 2, waited.output
    assert len(waited.folder.records("array_created")) == 1
    assert server.left() == []

    assert len(folder.records("array_stopped")) == 1
    assert not folder.records("filled")
    assert not folder.records("measured")
    assert folder.manifest()["exit_status"] == 2
    assert folder.is_sealed()
