"""IOPS of the calibrated load over the best that fio reaches alone, on one block device, in one run. Reads only.

    python bench/load.py /dev/nvme0n1        # of this computer
    python bench/load.py lab                 # null_blk in the lab, at whatever speed its CPUs allow

The alternative is fio with every combination of engine and number of jobs. The ratio is that of the product's choice,
measured again in turn with the best combination, so that a drifting machine affects both alike; the goal is 0.97.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median

from pytest_ssdqual import lab
from pytest_ssdqual.plugin.bay.bay import lab_target
from pytest_ssdqual.qual.spec.protocol_rules import LoadRule
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.load import IO_URING, LIBAIO, Load, LoadTrial
from pytest_ssdqual.rig.machine import local, ssh
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.measure import load_calibration

#: Turns of the two loads that are compared.
TURNS = 5
NULL_BLK = ("modprobe", "null_blk", "nr_devices=1", "gb=4", "queue_mode=2", "irqmode=0", "completion_nsec=0")


@contextmanager
def machine_with(device: str) -> Iterator[tuple[Machine, str]]:
    """Yield the machine and the path of the device."""
    if device != "lab":
        yield local.connect(), device
        return
    with lab.start(1) as vm:
        channel = ssh.connect(lab_target(vm.ssh))
        channel.run(list(NULL_BLK), deadline_s=60)
        yield channel, "/dev/nullb0"
        channel.close()


def tried(machine: Machine, target: JobTarget, load: Load) -> LoadTrial | None:
    try:
        return load_calibration.try_load(machine, target, load)
    except RigError as error:
        print(f"{load.engine:9} {load.jobs:3} jobs: {error}")
        return None


def product(machine: Machine, target: JobTarget) -> Load:
    """Return the product's choice for this device."""
    best, why, _ = load_calibration.calibrated(LoadRule(), [[partial(load_calibration.try_load, machine, target)]])
    print(f"{best.engine}, {best.jobs} jobs: {why}")
    return Load(best.engine, best.jobs)


def main(device: str) -> None:
    with machine_with(device) as (machine, path):
        size = int(machine.run(["blockdev", "--getsize64", path]).text)
        target = JobTarget(path, size)
        best: tuple[float, Load] = (0.0, Load())
        for engine in (LIBAIO, IO_URING):
            for count in load_calibration.JOBS:
                if trial := tried(machine, target, Load(engine, count)):
                    print(f"{engine:9} {count:3} jobs: {trial.iops:12,.0f} IOPS, {trial.jobs_busy:.0%} of a CPU each")
                    best = max(best, (trial.iops, Load(engine, count)), key=lambda each: each[0])
        chosen = product(machine, target)
        print(f"the product chooses {chosen.engine}, {chosen.jobs} jobs; best alone: {best[1].engine}, {best[1].jobs}")
        ratios = []
        for _ in range(TURNS):
            ours, theirs = (load_calibration.try_load(machine, target, each).iops for each in (chosen, best[1]))
            ratios.append(ours / theirs)
        print(f"ratio: {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
