"""The calibration of fio's load on real drives with the real fio and kernel; the drives stay as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.lab.bare_drives import Book, bench
from support.lab.rehearsed import Lab

from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.rig.fio.load import IO_URING, LIBAIO
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.measure import load_calibration
from pytest_ssdqual.rig.measure.session import LoadChoice, Setup

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]


def test_emulated_drives_are_at_ease_with_one_job_of_io_uring(lab: Lab) -> None:
    with bench(lab) as here:
        here.soil(here.drives[0])
        lab.vm.set_iops(here.drives[0].serial or "", 300)
        held, book = HeldDrives(here.machine, here.drives), Book()
        rules = replace(protocol.load("acceptance"), name="brief")
        setup = Setup(here.machine, held, rules, book, "lab", lambda what, seconds: None, load=LoadChoice(None))
        try:
            load_calibration.require(setup)
        finally:
            held.release()
        found = setup.load.drives
        assert (found.engine, found.array_engine, found.jobs) == (IO_URING, LIBAIO, 1)
        # One model, one trial; the drive does 300 IOPS.
        (trial,) = found.trials
        assert 200 < trial.iops < 400
        assert here.is_soiled(here.drives[0]) == [True] * 3
