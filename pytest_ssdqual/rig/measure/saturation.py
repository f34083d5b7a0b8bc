"""Write saturation: one process that writes from the purged state until the protocol's volume or time is reached."""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_ssdqual.qual.measured.result_records import SaturationRecord
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.protocol_rules import SaturationRule
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup

#: User capacities before which no state counts as steady: a purged drive has flash that was never used.
GATE_CAPACITIES = 1.0
#: Limit of the documents of all targets together. With 450 bins each takes 33 kB of fio's output, all of which lies in
#: the memory of the machine until fio ends, and 20 kB in the controller's: 0.7 and 0.4 GB. Without it, 24 drives with a
#: sample every 10 s would take 7 and 4 GB in a day, and ``rig.fio.process`` refuses an output of more than 4 GB.
MOST_DOCUMENTS = 20_000


def saturate(setup: Setup, array: Array, workload: Workload) -> Saturation:
    """Run one fio process without a pause: an idle drive would collect its garbage (SNIA PTS, write saturation).

    ``InvalidMeasurement`` if the workload does not write, or its output is incomplete.
    """
    if not workload.writes:
        raise InvalidMeasurement(f"{workload} writes nothing, so it cannot saturate an array")
    protocol, rule = setup.protocol, setup.protocol.saturation
    setup.progress(f"{array.geometry}: saturate with {workload}", rule.limit_s)
    volume = int(rule.capacities * array.size_bytes)
    sample_s = sample_of(rule, len(array.members) if array.geometry.is_side_by_side else 1)
    every_s = max(1, int(sample_s))
    window = fixed_time.ProcessWindow(0.0, rule.limit_s, max(1, int(rule.limit_s / sample_s)), every_s, volume)
    run = fixed_time.run(setup, array, workload, "saturation", window)
    # One round per whole sample; the incomplete sample of a process that ended at its volume is cut.
    samples = max(1, int(run.window_s / sample_s))
    run = replace(run, window_s=min(run.window_s, samples * sample_s), rounds=samples)
    if not run.ios:
        raise InvalidMeasurement(f"{workload} wrote nothing to {array.geometry}")
    # Checks of a constant rate do not apply to a falling curve; those of the environment do.
    fixed_time.require_valid(checks.of_environment(run), f"{workload} on {array.geometry}", array)
    # A rehearsal says nothing about flash, and would have to write for hours before it was steady.
    gate = GATE_CAPACITIES if protocol.acceptance else 0.0
    result = Saturation(run, array.size_bytes, protocol.steady, gate)
    record = SaturationRecord(
        array.geometry, str(workload), workload, protocol.name, protocol.acceptance, array.size_bytes, protocol.steady,
        gate, run.record(),
    )  # fmt: skip
    setup.logbook.note("saturation", **shallow(record))
    return result


def sample_of(rule: SaturationRule, targets: int) -> float:
    """Return the seconds of a sample: the protocol's, or as many whole ones as the output may have documents."""
    return rule.sample_s * max(1, math.ceil(rule.limit_s / rule.sample_s * targets / MOST_DOCUMENTS))
