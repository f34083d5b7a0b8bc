"""Generates fio's files of runs of any length: status documents, histogram logs and logs of every I/O.

    python bench/parse_runs.py histograms FOLDER --hours 1 --jobs 8
    python bench/parse_runs.py every-io FOLDER --lines 1000000

The files are generated, so that the percentiles are known: latencies of a job come from a mixture of three log-normal
distributions (hits, a busy drive, stalls), and every job is a little slower than the one before. The seed is fixed:
equal sizes give equal files. Their shape is fio's own: documents are those of a captured file of
fio 3.33 (tests/data/fio/3.33/side-by-side.json) with other counters in them, a group for each job, as of drives side by
side; logs are as fio 3.33 writes them for ``write_hist_log`` with ``log_hist_msec=1000`` and for ``write_lat_log``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

TEMPLATE = Path(__file__).parent.parent / "tests" / "data" / "fio" / "3.33" / "side-by-side.json"
SEED = 20261122
EPOCH_MS = 1_795_262_515_000
BLOCK = 4096
#: Of each job, in a second.
IOPS = 100_000
#: Share, median in nanoseconds, and standard deviation of the logarithm.
MIXTURE = ((0.97, 90_000.0, 0.25), (0.028, 400_000.0, 0.35), (0.002, 3_000_000.0, 0.5))
#: By how much a job is slower than the one before.
SLOWER = 1.05
QUANTILES = (0.5, 0.99, 0.999)
#: fio's stat.h: 29 groups of 64 buckets.
BUCKETS = 29 * 64

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Made:
    """A run as its files; the truth is of all I/Os of all jobs, in nanoseconds for each of ``QUANTILES``."""

    folder: str
    documents: str
    logs: tuple[str, ...]
    jobs: int
    seconds: int
    ios: int
    truth_ns: tuple[float, ...]

    @property
    def job_hours(self) -> float:
        return self.jobs * self.seconds / 3600

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.documents, *self.logs)


def histograms(folder: Path, hours: float, jobs: int) -> Made:
    """Documents and histogram logs of a second each; the truth is that of the distributions, by their formula."""
    seconds = max(2, round(3600 * hours))
    shares = [np.diff([_below(edge, job) for edge in edges()[:-1]] + [1.0]) for job in range(jobs)]
    draws = [np.random.default_rng([SEED, job]) for job in range(jobs)]
    logs = tuple(str(folder / f"latency_clat_hist.{job + 1}.log") for job in range(jobs))
    total = 0
    with ExitStack() as stack:
        files = [stack.enter_context(Path(log).open("w", encoding="ascii")) for log in logs]

        def every_second() -> Iterator[list[Counts]]:
            nonlocal total
            for second in range(1, seconds + 1):
                counts = [draw.poisson(IOPS * share) for draw, share in zip(draws, shares, strict=True)]
                for file, each in zip(files, counts, strict=True):
                    file.write(f"{1000 * second}, 0, {BLOCK}, {str(each.tolist())[1:-1]}\n")
                total += sum(int(each.sum()) for each in counts)
                yield counts

        documents = folder / "status.json"
        write_documents(stack.enter_context(documents.open("w", encoding="ascii")), every_second())
    truth = tuple(quantile_ns(q, jobs) for q in QUANTILES)
    return _noted(Made(str(folder), str(documents), logs, jobs, seconds, total, truth))


def every_io(folder: Path, lines: int) -> Made:
    """Documents and the log of every I/O of one job; the truth is exact, counted from the I/Os themselves."""
    draw = np.random.default_rng([SEED, 0, lines])
    drawn: list[NDArray[np.int64]] = []
    documents, log = folder / "status.json", folder / "latency_lat.1.log"

    def every_second() -> Iterator[list[Counts]]:
        for second, begin in enumerate(range(0, lines, IOPS)):
            latencies = _draw(draw, min(IOPS, lines - begin))
            times_ms = 1000 * second + np.arange(len(latencies)) * 1000 // IOPS
            pairs = zip(times_ms.tolist(), latencies.tolist(), strict=True)
            logged.write("".join(f"{time_ms}, {latency_ns}, 0, {BLOCK}, 0\n" for time_ms, latency_ns in pairs))
            drawn.append(latencies)
            found = np.searchsorted(edges(), latencies, side="right") - 1
            yield [np.bincount(np.minimum(found, BUCKETS - 1), minlength=BUCKETS)]

    with documents.open("w", encoding="ascii") as file, log.open("w", encoding="ascii") as logged:
        write_documents(file, every_second())
    every = np.concatenate(drawn)
    ranks = [math.ceil(q * lines) - 1 for q in QUANTILES]
    every.partition(ranks)
    truth = tuple(float(every[rank]) for rank in ranks)
    return _noted(Made(str(folder), str(documents), (str(log),), 1, len(drawn), lines, truth))


def read(folder: Path) -> Made | None:
    """Return an existing complete run; None if there is none."""
    try:
        noted = json.loads((folder / "made.json").read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in noted.items()}
    return Made(**fields)


def edges() -> NDArray[np.int64]:
    """Return the lower edges of fio's buckets and the upper edge of the last one (stat.c, ``plat_idx_to_val``)."""
    index = np.arange(BUCKETS + 1)
    shift = np.maximum(0, (index >> 6) - 1)
    return np.where(index < 128, index, (64 << shift) + ((index & 63) << shift))


def printed_ns() -> NDArray[np.int64]:
    """Return fio's names of buckets: their middle, below 128 ns their value."""
    begins = edges()
    return np.asarray(begins[:-1] + np.diff(begins) // 2)


def quantile_ns(q: float, jobs: int) -> float:
    """Of all jobs together, which do equally many I/Os; by bisection."""
    low, high = 1.0, 1e11
    while high - low > 0.5:
        middle = (low + high) / 2
        below = sum(_below(middle, job) for job in range(jobs)) / jobs
        low, high = (middle, high) if below < q else (low, middle)
    return high


def write_documents(file: TextIO, seconds: Iterator[Sequence[Counts]]) -> None:
    """One document a second, as fio writes them: the counts of each job since its start."""
    so_far: list[Counts] = []
    names = printed_ns()
    head, job_text, tail = _template()
    text = ""
    for number, counts in enumerate(seconds, 1):
        so_far = [before + now for before, now in zip(so_far, counts, strict=True)] if so_far else list(counts)
        jobs = ",\n".join(job_text % _filled(job, names, each, number) for job, each in enumerate(so_far))
        text = f"{head % {'at_ms': EPOCH_MS + 1000 * number}}{jobs}{tail}\n"
        file.write(text)
    # fio writes another document at the end, without changes.
    file.write(text)


def _filled(job: int, names: NDArray[np.int64], counts: Counts, seconds: int) -> dict[str, object]:
    (used,) = counts.nonzero()
    values, ios = names[used], counts[used]
    bins = ",\n".join(map('            "%d" : %d'.__mod__, zip(values.tolist(), ios.tolist(), strict=True)))
    total = int(ios.sum())
    return {
        "name": f"drive-{job}", "ios": total, "bytes": BLOCK * total, "runtime": 1000 * seconds,
        "mean": float(values @ ios) / total, "max": int(values[-1]), "bins": f"{{\n{bins}\n          }}",
    }  # fmt: skip


def _template() -> tuple[str, str, str]:
    """Of a captured document: what comes before its jobs, one job, and what comes behind them; to be filled with %."""
    document, _ = json.JSONDecoder().raw_decode(TEMPLATE.read_text(encoding="utf-8"))
    job: dict[str, Any] = document["jobs"][0]
    job["read"], job["write"] = job["write"], job["read"]
    job["jobname"] = "@(name)s"
    job["read"] |= {"total_ios": "@(ios)d", "io_bytes": "@(bytes)d", "runtime": "@(runtime)d"}
    job["read"]["lat_ns"] |= {"N": "@(ios)d", "mean": "@(mean)f", "max": "@(max)d", "bins": "@(bins)s"}
    document |= {"timestamp_ms": "@(at_ms)d", "jobs": ["@jobs"]}
    head, tail = _indented(document).split('    "@jobs"')
    return head, "    " + _indented(job).replace("\n", "\n    "), tail


def _indented(record: dict[str, Any]) -> str:
    text = json.dumps(record, indent=2, separators=(",", " : ")).replace("%", "%%")
    for name in ("ios", "bytes", "runtime", "mean", "max", "bins", "at_ms"):
        # These are no strings; the job's name is one.
        for sign in "dfs":
            text = text.replace(f'"@({name}){sign}"', f"%({name}){sign}")
    return text.replace("@(name)s", "%(name)s")


def _below(latency_ns: float, job: int) -> float:
    """The share of a job's I/Os that are faster."""
    if latency_ns <= 0:
        return 0.0
    return sum(
        share * 0.5 * math.erfc(-math.log(latency_ns / (median_ns * SLOWER**job)) / (sigma * math.sqrt(2)))
        for share, median_ns, sigma in MIXTURE
    )


def _draw(draw: np.random.Generator, ios: int) -> NDArray[np.int64]:
    """Latencies of the first job, in whole nanoseconds as fio counts them."""
    which = draw.choice(len(MIXTURE), size=ios, p=[share for share, _, _ in MIXTURE])
    medians, sigmas = np.array([part[1] for part in MIXTURE]), np.array([part[2] for part in MIXTURE])
    return np.asarray(medians[which] * np.exp(sigmas[which] * draw.standard_normal(ios))).astype(np.int64)


def _noted(made: Made) -> Made:
    """Written last, so a folder with it is complete."""
    (Path(made.folder) / "made.json").write_text(json.dumps(asdict(made)), encoding="ascii")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["histograms", "every-io"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=float, default=0.1)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--lines", type=int, default=1_000_000)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.kind == "histograms":
        print(histograms(asked.folder, asked.hours, asked.jobs))
    else:
        print(every_io(asked.folder, asked.lines))


if __name__ == "__main__":
    main()
