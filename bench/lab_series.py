"""Records fio's output of a lab drive with a known long-run rate, as test data.

    python bench/lab_series.py steady|jittery MINUTES OUTPUT.json.gz

``steady`` is a drive at its limit of 300 I/Os a second. ``jittery`` is one that collects garbage: every 8 to 16 s
(evenly spread, independently of each other) its limit is 75 I/Os a second for 3 s, and 300 for the rest. Its long-run
rate is 300 - (300 - 75) · 3 / 12 = 243.75 I/Os a second.
"""

from __future__ import annotations

import gzip
import random
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_ssdqual import lab
from pytest_ssdqual.lab.vm import Vm
from pytest_ssdqual.plugin.bay.bay import lab_target
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.survey import survey
from pytest_ssdqual.rig.fio import acceptance, jobs, process
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine import ssh

FULL, SLOW, SLOW_S, EVERY_S = 300, 75, 3.0, (8.0, 16.0)
SEED = 20261121


def steady(vm: Vm, over: threading.Event) -> None:
    """Nothing is changed."""


def jittery(vm: Vm, over: threading.Event) -> None:
    """Throttle the drive until the run ends; the start times are planned, so that delays do not add up."""
    draw, at = random.Random(SEED), time.monotonic()  # noqa: S311
    serial = vm.drives[0].serial
    while not over.is_set():
        length_s = draw.uniform(*EVERY_S)
        over.wait(max(0.0, at + length_s - SLOW_S - time.monotonic()))
        vm.set_iops(serial, SLOW)
        over.wait(max(0.0, at + length_s - time.monotonic()))
        vm.set_iops(serial, FULL)
        at += length_s


KINDS: Mapping[str, Callable[[Vm, threading.Event], None]] = {"steady": steady, "jittery": jittery}


def main(kind: str, minutes: float, place: Path) -> None:
    with lab.start(1, iops=FULL) as vm:
        channel = ssh.connect(lab_target(vm.ssh))
        (kname,) = (name for name in survey(channel).nodes if name.startswith("nvme"))
        drive = survey(channel, [kname]).drive(kname)
        held = HeldDrives(channel, [drive])
        held.require([drive])
        seconds = 60 * minutes
        target = JobTarget(drive.path, drive.size_bytes)
        job = jobs.measurement(Workload("randread", "4k", 8), [target], 1, seconds, 1)
        over = threading.Event()
        weather = threading.Thread(target=KINDS[kind], args=(vm, over))
        weather.start()
        try:
            finished = process.run(channel, job, seconds)
        finally:
            over.set()
            weather.join()
            held.release()
            channel.close()
    done = finished.completed
    result = acceptance.accept(finished.pieces(), done.status, done.errors, job.expectation)
    place.write_bytes(gzip.compress(b"".join(finished.pieces()), 9, mtime=0))
    print(f"{result.read.ios / result.seconds:.2f} IOPS, {len(result.intervals)} reports, {place.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
