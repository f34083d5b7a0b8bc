"""What fio would have written: intervals, of one target or of drives side by side → the bytes of its output file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence

from pytest_ssdqual.qual.histogram import LatencyHistogram
from pytest_ssdqual.qual.measurement import Interval

EPOCH_MS = 1_795_262_515_000


def output(*parts: Sequence[Interval]) -> bytes:
    """Cumulative documents, one at the end of each interval; ``parts`` have the same times, in whole milliseconds."""
    documents = []
    for count in range(1, len(parts[0]) + 1):
        end_ms = round(parts[0][count - 1].end_s * 1000)
        jobs = [_job("" if len(parts) == 1 else f"drive-{n}", part[:count], end_ms) for n, part in enumerate(parts)]
        documents.append({"fio version": "fio-3.33", "timestamp_ms": EPOCH_MS + end_ms, "jobs": jobs})
    return "".join(json.dumps(each, indent=1) + "\n" for each in documents).encode()


def packed(*parts: Sequence[Interval]) -> bytes:
    """The same as it is kept in a run folder; equal intervals give equal files."""
    return gzip.compress(output(*parts), mtime=0)


def _job(name: str, intervals: Sequence[Interval], end_ms: int) -> dict[str, object]:
    reads = _direction(end_ms, (each.read_latency for each in intervals), sum(each.read_bytes for each in intervals))
    writes = _direction(end_ms, (each.write_latency for each in intervals), sum(each.write_bytes for each in intervals))
    return {"jobname": name, "error": 0, "usr_cpu": 2.5, "sys_cpu": 10.0, "read": reads, "write": writes}


def _direction(end_ms: int, latencies: Iterable[LatencyHistogram], transferred: int) -> dict[str, object]:
    latency = LatencyHistogram.merged(latencies)
    said: dict[str, object] = {"N": latency.total, "mean": latency.mean_ns if latency else 0.0}
    said["max"] = latency.max_ns if latency else 0
    if latency:
        said["bins"] = {str(value_ns): count for value_ns, count in latency.bins}
    return {"runtime": end_ms, "total_ios": latency.total, "io_bytes": transferred, "lat_ns": said}
