"""What fio would have written: intervals, of one target or of drives side by side → the bytes of its output file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval

EPOCH_MS = 1_795_262_515_000


def documents(*parts: Sequence[Interval], ahead: int = 0) -> list[bytes]:
    """Cumulative, one at the end of each interval; ``parts`` have the same times, in whole milliseconds.

    With ``ahead`` as those of a process that still runs: about so many I/Os more are begun than are timed, and their
    bytes counted.
    """
    so_far: list[list[tuple[LatencyHistogram, int]]] = [[(LatencyHistogram(), 0)] * 2 for _ in parts]
    found = []
    for index, intervals in enumerate(zip(*parts, strict=True)):
        for number, each in enumerate(intervals):
            done = (each.read_latency, each.read_bytes), (each.write_latency, each.write_bytes)
            so_far[number] = [
                (latency + more, transferred + more_bytes)
                for (latency, transferred), (more, more_bytes) in zip(so_far[number], done, strict=True)
            ]
        end_ms = round(intervals[0].end_s * 1000)
        jobs = [
            _job("" if len(parts) == 1 else f"drive-{n}", each, end_ms, ahead and ahead + index % 7)
            for n, each in enumerate(so_far)
        ]
        status = {"fio version": "fio-3.33", "timestamp_ms": EPOCH_MS + end_ms, "jobs": jobs}
        found.append(_written(status))
    return found


def output(*parts: Sequence[Interval]) -> bytes:
    """The file that fio leaves: see ``documents``."""
    return b"".join(documents(*parts))


def packed(*parts: Sequence[Interval]) -> bytes:
    """The same as it is kept in a run folder; equal intervals give equal files."""
    return gzip.compress(output(*parts), mtime=0)


def _written(status: object) -> bytes:
    """Braces at the left margin, as fio puts them, and not indented: Python's json is ten times slower then."""
    return f"{{\n{json.dumps(status)[1:-1]}\n}}\n".encode()


def _job(name: str, done: Sequence[tuple[LatencyHistogram, int]], end_ms: int, ahead: int) -> dict[str, object]:
    reads, writes = (_direction(end_ms, latency, transferred, ahead) for latency, transferred in done)
    return {"jobname": name, "error": 0, "usr_cpu": 2.5, "sys_cpu": 10.0, "read": reads, "write": writes}


def _direction(end_ms: int, latency: LatencyHistogram, transferred: int, ahead: int) -> dict[str, object]:
    begun = ahead if latency else 0
    said: dict[str, object] = {"N": latency.total, "mean": latency.mean_ns if latency else 0.0}
    said["max"] = latency.max_ns if latency else 0
    if latency:
        said["bins"] = {str(value_ns): count for value_ns, count in latency.bins}
    size = transferred // latency.total if latency else 0
    return {
        "runtime": end_ms,
        "total_ios": latency.total + begun,
        "io_bytes": transferred + begun * size,
        "lat_ns": said,
    }


def ended(document: bytes) -> bytes:
    """A document when nothing is outstanding any more."""
    status = json.loads(document)
    for way in (job[name] for job in status["jobs"] for name in ("read", "write")):
        done = way["lat_ns"]["N"]
        if way["total_ios"] > done > 0:
            way["io_bytes"] = way["io_bytes"] // way["total_ios"] * done
            way["total_ios"] = done
    return _written(status)
