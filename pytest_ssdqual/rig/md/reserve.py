"""The reserved end of an array: no workload writes there, and its pattern must survive every test."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_ssdqual.rig.fio import acceptance, process
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.md import survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

MIB = 1 << 20
#: Share of an array that is given to the pattern, and the most of it.
SHARE, MOST_BYTES = 0.01, 1 << 30
#: Below this rate a pattern is not waited for.
SLOWEST_BYTES_PER_S = 1_000_000
#: Fewest stripes that md keeps in its cache (raid5.c, raid5_set_cache_size: more than 16).
FEWEST_STRIPES = "17"


@dataclass(frozen=True, slots=True)
class PatternRegion:
    """Where the pattern is, and which one; all of it follows from the array."""

    target: JobTarget
    offset_bytes: int
    size_bytes: int
    seed: int

    @classmethod
    def of(cls, array: Array) -> PatternRegion:
        """Of an array with a reserved end."""
        return cls(
            JobTarget(array.path, array.size_bytes, checked=array.checked),
            array.size_bytes - array.reserved_bytes,
            array.reserved_bytes // survival_pattern.BLOCK_BYTES * survival_pattern.BLOCK_BYTES,
            # Another array on the same drives has another pattern, so that what is left of the former is not taken
            # for this one.
            int(array.uuid.replace(":", ""), 16) % survival_pattern.SEEDS,
        )


def reserved_bytes(size_bytes: int) -> int:
    """How much is reserved of an array: 1 %, 1 MiB to 1 GiB, and what does not fill the last MiB."""
    wanted = min(max(int(size_bytes * SHARE), MIB), MOST_BYTES)
    return size_bytes - (size_bytes - wanted) // MIB * MIB


def write(setup: Setup, array: Array) -> Array:
    """Write the pattern; the array with its end reserved. ``RigError`` or a child of it if it was not all written."""
    reserved = replace(array, reserved_bytes=reserved_bytes(array.size_bytes))
    region = PatternRegion.of(reserved)
    setup.held.require_lease()
    job = survival_pattern.write_pattern(region.target, region.offset_bytes, region.size_bytes, region.seed)
    raw, finished = _run(setup, array, "write-pattern", job, region)
    acceptance.accept(finished.pieces(), finished.completed.status, finished.completed.errors, job.expectation)
    setup.logbook.note(
        "pattern_written",
        geometry=str(array.geometry),
        offset_bytes=region.offset_bytes,
        size_bytes=region.size_bytes,
        seed=region.seed,
        raw=raw,
    )
    return reserved


def look(setup: Setup, array: Array) -> str:
    """Read the pattern back from the drives: a sentence about what is not as it was written, or nothing.

    ``RigError`` or a child of it if it cannot be read at all.
    """
    region = PatternRegion.of(array)
    if array.geometry.has_parity:
        empty_stripe_cache(setup.machine, array.kname)
    job = survival_pattern.read_back(region.target, region.offset_bytes, region.size_bytes, region.seed)
    raw, finished = _run(setup, array, "read-back", job, region)
    damage = survival_pattern.damage(finished, job.expectation)
    setup.logbook.note("pattern_read", geometry=str(array.geometry), damage=damage, raw=raw)
    return damage


def _run(setup: Setup, array: Array, kind: str, job: Job, region: PatternRegion) -> tuple[str, FinishedProcess]:
    setup.progress(f"{array.geometry}: {kind.replace('-', ' ')}", 0)
    finished = process.run(setup.machine, job, region.size_bytes / SLOWEST_BYTES_PER_S)
    return setup.logbook.keep(f"{array.geometry}-{kind}.json.gz", finished.packed), finished


def empty_stripe_cache(machine: Machine, kname: str) -> None:
    """A degraded array reads through md's stripe cache, where the pattern may still be as it was written."""
    size = f"/sys/block/{kname}/md/stripe_cache_size"
    was = machine.run(["cat", size], repeatable=True).text.strip()
    for value in (FEWEST_STRIPES, was):
        machine.run(["tee", size], stdin=value.encode(), repeatable=True)
