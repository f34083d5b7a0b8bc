"""Starts a run: the controller checks and opens everything, xdist's workers join."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.plugin.bay import sheets
from pytest_ssdqual.plugin.bay.bay import Bay
from pytest_ssdqual.plugin.fleet import bays
from pytest_ssdqual.plugin.fleet.bays import FleetRun
from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.inventory import BayRequest
from pytest_ssdqual.plugin.options.settings import read
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.plugin.session import resume
from pytest_ssdqual.plugin.session.bay_start import BayStart
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.resume import ResumedRun
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.plugin.session.stop import end_in_order, leave_ending_to_controller
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.report.compare.baseline import Baseline
from pytest_ssdqual.report.resume.resume import Past
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.rig.machine.machine import RigError


def begin(config: pytest.Config) -> tuple[Sequence[BayRun], FleetRun | None]:
    """Begin the run on the controller; all checks come before collection and before anything is touched.

    Returns the run of each bay, and the fleet if there are several. Raises ``pytest.UsageError`` with one sentence per
    error.
    """
    settings = read(config)
    if len(settings.bays) > 1 or (bays.goes_on(settings) and not config.option.collectonly):
        fleet = bays.begin(config, settings)
        return fleet.runs, fleet
    start = BayStart.of(config, settings)
    with ExitStack() as opened, usage_error(RigError):
        opened.callback(start.stack.close)
        if config.option.collectonly:
            run = start.planned()
        else:
            ending = ExitStack()  # closed after the run folder is sealed
            config.add_cleanup(ending.close)
            end_in_order(ending)
            start.open(partial(Journal.create, settings.run_root, secrets.token_hex(4)))
            run = start.clear()
            start.note_begun()
        opened.pop_all()
    return [run], None


def join(config: pytest.Config, worker_data: Mapping[str, Any]) -> BayRun:
    """Join the run on an xdist worker; the controller has checked everything."""
    bay = from_plain(Bay, worker_data["bay"])
    # Use the controller's bay: an inventory may have changed meanwhile.
    settings = read(config, (BayRequest(worker_data["name"], Devices()),))
    settings = replace(settings, run_root=Path(worker_data["run_root"]), protocol=worker_data["protocol"])
    ending = ExitStack()
    config.add_cleanup(ending.close)
    leave_ending_to_controller(ending)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "worker")
    protocol = protocols.load(settings.protocol)
    spec, sources = sheets.assigned(worker_data["specs"], bay, is_lab=worker_data["is_lab"], is_of_several=True)
    journal = resumed = None
    baseline = Baseline.read(Path(worker_data["baseline"])) if worker_data["baseline"] else None
    if worker_data["journal"]:
        folder = Path(worker_data["journal"])
        resume.claim(config, folder, worker)
        journal = Journal.open(folder, worker)
        resumed = ResumedRun.of(Past.read(folder)) if worker_data["resumed"] else None
    if journal and resumed:
        resumed.note_in(journal)
    found = Qualification(
        settings, protocol, spec.on(protocol.striping), bay, journal, resumed, baseline, worker_data["name"], sources
    )
    return BayRun(found, ExitStack(), glance_s=worker_data["glance_s"])
