"""Two controllers and one set of drives: the second is told who has them, or waits; the first notices nothing."""

from __future__ import annotations

import signal

import pytest
from support.lab.rehearsed import Server, Start, drives

# Not unhurried, although no figures are judged: both halves of the rehearsals are to take equally long.
pytestmark = pytest.mark.lab


def test_the_second_is_told_who_has_the_drives_and_has_them_when_it_waits(server: Server, start: Start) -> None:
    only = "-k", "steady_state and randread_4k_qd8 and raid5x3"
    first = start(drives(3))
    first.await_record("array_created")
    name = first.folder().path.name

    # From another place, whose journals know nothing of the array that stands: not the guard speaks, but the lease. At
    # the same time, because the first run must not end before the third one waits for it.
    running = start(drives(4), *only, root=start.place / "elsewhere")
    second = start(drives(3), *only).finish()
    assert second.status == 4, second.output
    (told,) = (line for line in second.output.splitlines() if "another run holds drives" in line)
    assert f", run {name} for " in told
    assert ", by its plan for about " in told or told.count(" longer than it had planned") == 1
    assert told.endswith("; --ssd-wait=DURATION waits for them")
    elsewhere = running.finish()
    assert elsewhere.status == 4
    who = told.split(": held by ")[1].split(" for ")[0]
    assert (
        f"/dev/nvme0n1 (SSDQ0001), /dev/nvme1n1 (SSDQ0002), /dev/nvme2n1 (SSDQ0003): held by {who}" in elsewhere.output
    )

    third = start(drives(3), *only, "--ssd-wait=20 min", root=start.place / "patient")
    third.await_output("; waiting for ")
    first.signal(signal.SIGTERM)
    assert first.finish().status == 2
    third.await_record("array_created")
    third.signal(signal.SIGTERM)
    waited = third.finish()
    assert waited.status == 2, waited.output
    assert len(waited.folder.records("array_created")) == 1
    assert server.left() == []
