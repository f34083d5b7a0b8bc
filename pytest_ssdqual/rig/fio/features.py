"""Tests fio of the machine under test for the required features, whatever its version is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget, engine, fill, measurement
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, Machine, RigError
from pytest_ssdqual.rig.md.survival_pattern import PatternRegion, read_back, write_pattern

#: The options that only a search uses, all at once.
_EXPLORED = Workload(
    "randwrite", "4k", 1, zipf=120, region_percent=50, sync=True, fsync=1, compressible_percent=50, dedupe_percent=50
)

#: fio loads the engine of a job that it only parses (3.33: init.c, add_job). ``--enghelp`` is not asked, because it
#: crashes in 3.26 and 3.27, whose jobs work (fixed by fio 2459bd33).
ENGINE_NOT_LOADED = re.compile(r"engine (\S+) not loadable")
NO_ENGINE = "lacks the I/O engine"
#: Some distributions package engines separately, so even a new fio may lack one.
ENGINE_ADVICE = (
    "install the package fio-engine-libaio (Fedora, RHEL) or libaio1 and the distribution's own fio (Debian, Ubuntu)"
)
#: 3.19 is the oldest that knows all options.
NEWER_ADVICE = "install a newer package fio (3.19 suffices)"
UNKNOWN_OPTION = re.compile(r"unrecognized option '--([^'=]+)|Bad option <([^>=]+)")


class FioUnfit(RigError):
    """The machine has no fio, or it lacks a feature that every measurement needs."""


def probe(machine: Machine) -> None:
    """Try all options of this program's jobs without touching a drive; ``FioUnfit`` names what is missing."""
    try:
        version = machine.run(["fio", "--version"])
    except CommandFailed as error:
        raise FioUnfit(f"{machine.name} has no working fio; install the package fio") from error
    if objection := _objection_to(machine, [job.options for job in _specimens()]):
        sentence = f"{version.text.strip()} on {machine.name} {objection}"
        raise FioUnfit(f"{sentence}; {ENGINE_ADVICE if NO_ENGINE in objection else NEWER_ADVICE}")


def lacks_engine(machine: Machine, name: str) -> str:
    """Return why fio cannot load an I/O engine; empty if it can."""
    return _objection_to(machine, [["--name=engine", "--filename=/dev/null", "--size=4k", *engine(name)]])


def _objection_to(machine: Machine, jobs: Sequence[Sequence[str]]) -> str:
    """Return the reason why fio refuses a job; empty if it refuses none.

    All jobs are tried at once, which is one start of fio instead of eight. A global section also affects the jobs
    behind it, so only the refusal of a single job counts.
    """
    if not machine.run(["fio", "--parse-only", *itertools.chain.from_iterable(jobs)], check=False).status:
        return ""
    for options in jobs:
        parsed = machine.run(["fio", "--parse-only", *options], check=False)
        if parsed.status:
            return _objection(parsed)
    return ""


def _specimens() -> Iterator[Job]:
    """Jobs that together have every option. ``--parse-only`` opens no file, and the targets could not be damaged."""
    target, other = JobTarget("/dev/null", 1 << 30), JobTarget("/dev/zero", 1 << 30)
    yield measurement(Workload("randrw", "1k/50:4k/50", 1, 70, 50, "512", name="mix"), [target], 1, 1)
    yield measurement(Workload("write", "128k", 1), [target], 2, 1)
    yield measurement(Workload("randread+randwrite", "4k", 1), [target, other], 2, 1, volume_bytes=1 << 20)
    yield measurement(_EXPLORED, [target], 1, 1)
    yield measurement(Workload("write", "4k", 1, gap="4k"), [target], 1, 1)
    yield measurement(Workload("write", "4k", 1, burst_s=1, idle_s=1), [target], 1, 2, 3)
    yield measurement(Workload("randread", "4k", 1, rate_iops=1000), [target], 1, 1)
    yield fill([target], 1)
    pattern = PatternRegion(target, 0, 1 << 20, seed=0)
    yield from (write_pattern(pattern), read_back(pattern))


def _objection(parsed: Completed) -> str:
    if match := ENGINE_NOT_LOADED.search(parsed.errors):
        return f"{NO_ENGINE} {match[1]}"
    if match := UNKNOWN_OPTION.search(parsed.errors):
        return f"does not know the option {match[1] or match[2]}"
    lines = parsed.errors.strip().splitlines()
    return f"refuses options of this program ({lines[-1] if lines else f'status {parsed.status}'})"
