"""Measures one workload on each of several drives alone, while the others are idle.

Compared with all drives side by side, this shows whether they share a path that limits them.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.qual.measured.result_records import AloneRecord
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import DrivesAlone
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup

ONE = Geometry(RaidLevel.DRIVE, 1)


def measure(setup: Setup, array: Array, workload: Workload) -> DrivesAlone:
    """Run the workload on one member of ``array`` after another; ``array`` is drives side by side.

    Raises as ``fixed_time.run``. The workload has to read only: the drives stay as they are.
    """
    if workload.writes or not array.geometry.is_side_by_side:
        raise ValueError(f"{workload} on {array.geometry} does not leave the drives as they are")
    protocol, found = setup.protocol, []
    window = ProcessWindow(protocol.measure.ramp_s, protocol.measure.window_s, protocol.steady.window)
    for drive in array.members:
        setup.progress(f"{drive.serial} alone: {workload}", window.ramp_s + window.window_s)
        one = replace(array, geometry=ONE, path=drive.path, members=(drive,), size_bytes=drive.size_bytes)
        found.append(Measured((fixed_time.run(setup, one, workload, "alone", window).condensed(),)))
    drives = tuple(each.summary() for each in found)
    setup.logbook.note("alone", **shallow(AloneRecord(array.geometry, str(workload), workload, drives)))
    return DrivesAlone(tuple(found))
