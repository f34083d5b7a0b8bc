"""How fio puts a workload on drives: its engine, the jobs that share a queue depth, and their CPUs. Pure.

One job of libaio ends near 350,000 IOPS (212,000 at 61 % of a CPU: linux-raid, 2021-07), and drives of today do a
million. So the depth of a random workload is divided among several jobs; what is outstanding in all stays what the
workload says. Workloads with a number of threads of their own, and sequential ones, keep their jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.workload.workload import Workload

LIBAIO, IO_URING = "libaio", "io_uring"
#: Options of io_uring: buffers and file are registered once, not mapped and looked up for each I/O.
REGISTERED = ("--fixedbufs=1", "--registerfiles=1")


@frozen
class Load:
    """The load of one fio process on its targets."""

    engine: str = LIBAIO
    #: Most jobs into which the queue depth of one drive is divided.
    jobs: int = 1
    #: CPUs of each target's jobs, as the kernel writes lists (``0-7,16-23``); empty where any may be used.
    cpus: tuple[str, ...] = ()

    def parts(self, workload: Workload) -> int:
        """Return the number of jobs that take the place of one: a divisor of its queue depth.

        1 for workloads that several jobs would change: each job has hot blocks of its own (zipf: 20 % of the I/Os on
        the hottest block of one job are 5 % with four, fio 3.33), its own runs, repetitions and flushes.
        At a rate each job has one I/O outstanding: before it waits for the time of its next one, fio waits until all
        that it has begun are done (io_u.c, rate_ddir), so that a deeper job would begin late on a sound drive.
        """
        if workload.rate_iops:
            return workload.qd_per_drive
        is_of_one_job = workload.zipf or workload.fsync or workload.dedupe_percent or workload.random_percent < 100
        if not workload.is_random or workload.threads is not None or is_of_one_job:
            return 1
        depth = workload.qd_per_drive
        return max(each for each in range(1, min(self.jobs, depth) + 1) if depth % each == 0)

    def placement(self, number: int) -> tuple[str, ...]:
        """Return the options that place the jobs of a target."""
        cpus = self.cpus[number] if number < len(self.cpus) else ""
        return (f"--cpus_allowed={cpus}",) if cpus else ()


#: The load of drives that one job can saturate.
USUAL_LOAD = Load()


@frozen
class LoadTrial:
    """One step of a calibration: random reads of one drive."""

    engine: str
    jobs: int
    iops: float
    #: CPU time of a job, share of one CPU.
    jobs_busy: float


@frozen
class LoadRecord:
    """``load``: as it was chosen before the first measurement."""

    load: DriveLoad
    #: The load as a phrase.
    sentence: str


@frozen
class DriveLoad:
    """The load of all measurements of a run."""

    #: Of bare drives; arrays have ``array_engine``.
    engine: str = LIBAIO
    array_engine: str = LIBAIO
    jobs: int = 1
    #: CPUs of the NUMA node of each drive, by identity; empty on a machine with one node.
    cpus: Mapping[str, str] = field(default_factory=dict)
    #: The reason for engine and jobs.
    why: str = ""
    trials: tuple[LoadTrial, ...] = ()

    def of(self, members: Sequence[str], *, bare: bool) -> Load:
        """Return the load of drives side by side, or of one array, of these identities.

        The jobs of an array are placed only if all of its members are on one node.
        """
        found = tuple(self.cpus.get(each, "") for each in members)
        if bare:
            return Load(self.engine, self.jobs, found if any(found) else ())
        is_one = len(set(found)) == 1 and found[0]
        return Load(self.array_engine, self.jobs, found[:1] if is_one else ())

    def describe(self) -> str:
        """The load as a phrase: ``io_uring, 4 jobs a drive``."""
        jobs = f"{self.jobs} job{'' if self.jobs == 1 else 's'} a drive"
        engines = self.engine if self.engine == self.array_engine else f"{self.engine} ({self.array_engine} on arrays)"
        return f"{engines}, {jobs}{', on the CPUs of its NUMA node' if self.cpus else ''}"
