"""Cost of fio's status documents: the CPU time of an I/O with them, over that without.

    python bench/parse_overhead.py --pairs 40 --seconds 5

Both have equal jobs; the one has a measurement's options for reports (``rig.fio.jobs``), the other only a single
result at the end. CPU time is that of all of fio, since documents are written by another
process than the job's. Pairs in random order; the interval of the mean of the logarithms of their ratios is Student's.

One document a second costs less than a shared computer's noise. So 20 are asked for in a second, and their cost is
divided by as many as were written; a second rate shows whether the cost grows in proportion. What a document
costs does not depend on the I/Os between, so the share that it takes is larger of a slower job: hence the jobs at
100,000 I/Os a second, which real arrays reach per job. The null engine does nothing, psync reads a file in memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from pytest_ssdqual.qual.stats.estimate import student_t
from pytest_ssdqual.rig.fio import jobs, output

LEVEL = 0.95
FILE_BYTES = 64 << 20
#: Of ``jobfile.engine``, what changes fio's statistics; the rest changes its I/O.
TELLING = ("--group_reporting", "--lat_percentiles", "--clat_percentiles", "--percentile_list")
#: With fewer documents than this share of the requested ones, the computer is too slow for a result.
WRITTEN = 0.9
CASES: Mapping[str, tuple[str, ...]] = {
    "null": ("--ioengine=null", "--size=1t", "--iodepth=8"),
    "psync": ("--ioengine=psync",),
    "null at 100k IOPS": ("--ioengine=null", "--size=1t", "--iodepth=8", "--rate_iops=100000"),
    "psync at 100k IOPS": ("--ioengine=psync", "--rate_iops=100000"),
}


@dataclass(frozen=True, slots=True)
class ParseCost:
    """One run of fio."""

    cpu_s: float
    ios: int
    documents: int

    @property
    def ns_per_io(self) -> float:
        return 1e9 * self.cpu_s / self.ios


@dataclass(frozen=True, slots=True)
class Overhead:
    """CPU time of an I/O with documents over that without, minus 1; the ends of its interval."""

    value: float
    low: float
    high: float

    def per(self, documents: float) -> Overhead:
        """Shared out among so many documents a second."""
        return Overhead(self.value / documents, self.low / documents, self.high / documents)

    def __str__(self) -> str:
        return f"{100 * self.value:+.2f} % ({100 * self.low:+.2f}…{100 * self.high:+.2f})"


def telling(documents_per_s: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a measurement's options for fio's reports, of the process and of its job; 0 documents a second: none."""
    if not documents_per_s:
        return ("--output-format=json", "--eta=never"), ()
    reporting = jobs.reporting(1)
    if documents_per_s > 1:
        often = f"--status-interval={1000 // documents_per_s}ms"
        reporting = tuple(often if each.startswith("--status-interval=") else each for each in reporting)
    return reporting, tuple(each for each in jobs.engine() if each.startswith(TELLING))


def job(case: str, file: Path, seconds: float) -> tuple[str, ...]:
    """Return the I/O options, without those for reports."""
    place = () if "--size=1t" in CASES[case] else (f"--filename={file}", f"--size={FILE_BYTES}")
    return (
        *CASES[case], *place, "--rw=randread", "--bs=4k", "--norandommap=1", "--thread=0", "--time_based=1",
        f"--runtime={round(1000 * seconds)}ms",
    )  # fmt: skip


def run(case: str, folder: Path, seconds: float, documents_per_s: int) -> ParseCost:
    """Run one fio process; raise ``SystemExit`` if fio fails."""
    place = folder / "output.json"
    place.unlink(missing_ok=True)
    file = folder / "file"
    if not file.exists():
        file.write_bytes(bytes(FILE_BYTES))
    whole, section = telling(documents_per_s)
    argv = ["fio", f"--output={place}", *whole, "--name=job", *section, *job(case, file, seconds)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"fio ended with status {process.returncode}: {' '.join(argv)}")
    cpu_s = used.ru_utime + used.ru_stime
    if not documents_per_s:
        (only,) = json.loads(place.read_bytes())["jobs"]
        return ParseCost(cpu_s, only["read"]["total_ios"], 1)
    result = output.parse(place.read_bytes())
    return ParseCost(cpu_s, result.read.ios, len(result.intervals))


def overheads(
    case: str, rates: Sequence[int], pairs: int, seconds: float, place: str
) -> Iterator[tuple[int, float, Overhead]]:
    """Return requested and written documents a second, and their overhead; all runs are interleaved."""
    found: dict[int, list[tuple[ParseCost, ParseCost]]] = {rate: [] for rate in rates}
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for _ in range(pairs):
            for rate in random.sample(list(rates), len(rates)):
                cost = {each: run(case, Path(folder), seconds, each) for each in random.sample([0, rate], 2)}
                found[rate].append((cost[rate], cost[0]))
    for rate, each in found.items():
        written = fmean(told.documents / seconds for told, _ in each)
        yield rate, written, overhead([told.ns_per_io / bare.ns_per_io for told, bare in each])


def overhead(ratios: Sequence[float]) -> Overhead:
    """ValueError below two pairs."""
    if len(ratios) < 2:
        raise ValueError("an interval takes two pairs at least")
    logs = [math.log(each) for each in ratios]
    half = student_t(LEVEL, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Overhead(*(math.expm1(fmean(logs) + each) for each in (0.0, -half, half)))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10, help="of each case and rate")
    parser.add_argument("--seconds", type=float, default=3, help="of each run")
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 10, 20], help="documents a second")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--folder", default="/dev/shm", help="in memory: for the file, and for what fio writes")  # noqa: S108
    asked = parser.parse_args(argv)
    if asked.pairs < 2:
        parser.error("an interval takes two pairs at least")
    print("| job | documents a second | overhead, 95 % interval | of one document a second |\n|---|---|---|---|")
    for case in asked.cases:
        for rate, written, found in overheads(case, asked.rates, asked.pairs, asked.seconds, asked.folder):
            busy = "" if written >= WRITTEN * rate else f" instead of {rate}: the computer is too busy"
            print(f"| {case} | {written:.1f}{busy} | {found} | {found.per(written)} |", flush=True)


if __name__ == "__main__":
    main()
