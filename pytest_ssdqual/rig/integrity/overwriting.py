"""Overwrites a region repeatedly, so that the power can be cut during a write."""

from __future__ import annotations

import time

from pytest_ssdqual.qual.integrity.reference_model import PASSES
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.fio import jobs, stamped_io
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.machine import run_files
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, Machine

#: How long the first passes may take, and between two looks at them.
PASSES_S, PAUSE_S = 120.0, 0.05
#: Of the time of a batch, until it is left alone.
SHARE = 0.6


def begin(machine: Machine, target: JobTarget, history: int, over: Stretch) -> int:
    """Begin, and return in the middle of a batch of passes: the last generation that is known to be flushed.

    It goes on until the machine ends. ``InvalidMeasurement`` if it does not get going.
    """
    note = run_files.path(machine, "passes")
    argv = stamped_io.overwrite(target, history, over, PASSES, note)
    running = machine.tether(fencing.bound(argv, jobs.checks([target]), alone=True), first_signal="TERM")
    started, none = time.monotonic(), over.generation - 1
    while (seen := _flushed(machine, note, none)) == none:
        if not running.alive() or time.monotonic() - started > PASSES_S:
            done = running.cut()
            raise InvalidMeasurement(f"{target.path} could not be overwritten: {done.errors.strip()}")
        time.sleep(PAUSE_S)
    time.sleep(SHARE * (time.monotonic() - started))
    return _flushed(machine, note, seen)


def _flushed(machine: Machine, note: str, before: int) -> int:
    said = machine.run(["cat", note], check=False).text.strip()
    return int(said) if said.isdecimal() else before
