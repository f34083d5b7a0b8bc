"""Whether the fio of a machine can do what we ask of it: its features are tried, its version is only recorded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget, fill, measurement
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, Machine, RigError
from pytest_ssdqual.rig.md.survival_pattern import read_back, write_pattern

#: What only a search asks for, all at once.
_EXPLORED = Workload(
    "randwrite", "4k", 1, zipf=120, region_percent=50, sync=True, fsync=1, compressible_percent=50, dedupe_percent=50
)

UNKNOWN_OPTION = re.compile(r"unrecognized option '--([^'=]+)|Bad option <([^>=]+)")


class FioUnfit(RigError):
    """There is no fio on the machine, or it lacks something every measurement needs."""


@dataclass(frozen=True, slots=True)
class FioFacts:
    """What is recorded about a machine's fio; ``version`` as it says it, e.g. ``fio-3.33``."""

    version: str


def probe(machine: Machine) -> FioFacts:
    """Try everything our jobs use without touching a drive; ``FioUnfit`` names what is missing and the package."""
    try:
        version = machine.run(["fio", "--version"])
    except CommandFailed as error:
        raise FioUnfit(f"{machine.name} has no working fio; install the package fio") from error
    # Some distributions have engines in packages of their own, so a new fio may still lack it.
    if machine.run(["fio", "--enghelp=libaio"], check=False).status:
        raise FioUnfit(
            f"fio on {machine.name} lacks the I/O engine libaio; install the package fio-engine-libaio "
            "(Fedora, RHEL) or libaio1 and the distribution's own fio (Debian, Ubuntu)"
        )
    if objection := _objection_to(machine, [job.options for job in _specimens()]):
        said = f"{version.text.strip()} on {machine.name} {objection}"
        raise FioUnfit(f"{said}; install a newer package fio (3.33 will do)")
    return FioFacts(version.text.strip())


def _objection_to(machine: Machine, jobs: Sequence[Sequence[str]]) -> str:
    """Why a job is refused; empty if none is.

    All at once, which is one start of fio instead of eight. What global sections do to the jobs behind them is not for
    us to find out, so only a refusal of one job counts.
    """
    if not machine.run(["fio", "--parse-only", *itertools.chain.from_iterable(jobs)], check=False).status:
        return ""
    for options in jobs:
        parsed = machine.run(["fio", "--parse-only", *options], check=False)
        if parsed.status:
            return _objection(parsed)
    return ""


def _specimens() -> Iterator[Job]:
    """Jobs that have every option between them. ``--parse-only`` opens no file; nobody could hurt its targets."""
    target, other = JobTarget("/dev/null", 1 << 30), JobTarget("/dev/zero", 1 << 30)
    yield measurement(Workload("randrw", "1k/50:4k/50", 1, 70, 50, "512", name="mix"), [target], 1, 1)
    yield measurement(Workload("write", "128k", 1), [target], 2, 1)
    yield measurement(Workload("randread+randwrite", "4k", 1), [target, other], 2, 1, volume_bytes=1 << 20)
    yield measurement(_EXPLORED, [target], 1, 1)
    yield measurement(Workload("write", "4k", 1, gap="4k"), [target], 1, 1)
    yield fill(target, 1)
    yield write_pattern(target, 0, 1 << 20, seed=0)
    yield read_back(target, 0, 1 << 20, seed=0)


def _objection(parsed: Completed) -> str:
    if found := UNKNOWN_OPTION.search(parsed.errors):
        return f"does not know the option {found[1] or found[2]}"
    lines = parsed.errors.strip().splitlines()
    return f"refuses our options ({lines[-1] if lines else f'status {parsed.status}'})"
