"""Readers of fio's files, each for a process of its own: prints percentiles as JSON, in nanoseconds.

    python bench/parse_ways.py ours|bytes|nothing|pandas-histograms|pandas-ios|fio-plot-ios FILE…

Imports are inside functions: the Python with pandas need not have this project, and each process must have only its own
modules in memory. ``of_table`` reads the output of fio's scripts.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

QUANTILES = (0.5, 0.99, 0.999)
PIECE_BYTES = 1 << 20
#: As fiologparser_hist.py has it.
ROWS = 10_000


def nothing(paths: Sequence[str]) -> list[float]:
    """Return nothing; measures the start of Python."""
    return []


def all_bytes(paths: Sequence[str]) -> list[float]:
    """Read the bytes only."""
    for path in paths:
        with Path(path).open("rb", buffering=0) as file:
            while file.read(PIECE_BYTES):
                pass
    return []


def ours(paths: Sequence[str]) -> list[float]:
    """As a fill of hours is read: of every interval that is kept, and of all together."""
    from itertools import chain

    from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
    from pytest_ssdqual.rig.fio.output import MOST_DOCUMENTS, StatusReader

    (path,) = paths
    reader = StatusReader(MOST_DOCUMENTS)
    with Path(path).open("rb", buffering=0) as file:
        while data := file.read(PIECE_BYTES):
            reader.feed(data)
    intervals = reader.whole().intervals
    for each in intervals:
        _ = [each.latency.quantile(q) for q in QUANTILES]
    whole = LatencyHistogram.merged(chain.from_iterable(each.latencies for each in intervals))
    return [whole.quantile(q).value_ns for q in QUANTILES]


def pandas_histograms(paths: Sequence[str]) -> list[float]:
    """Of the sum of all rows, by the middles of fio's buckets."""
    import numpy as np
    import pandas as pd

    total = np.zeros(29 * 64, np.int64)
    for path in paths:
        for rows in pd.read_csv(path, header=None, dtype=np.int64, skipinitialspace=True, chunksize=ROWS):
            total += rows.to_numpy()[:, 3:].sum(axis=0)
    index = np.arange(len(total))
    shift = np.maximum(0, (index >> 6) - 1)
    middles = np.where(index < 128, index, (64 << shift) + ((index & 63) << shift) + (1 << shift) // 2)
    places = np.searchsorted(total.cumsum(), np.array(QUANTILES) * total.sum())
    return [float(middles[place]) for place in places]


def pandas_ios(paths: Sequence[str]) -> list[float]:
    """Read all columns with pandas, with their types."""
    import numpy as np
    import pandas as pd

    (path,) = paths
    names = ["time_ms", "latency_ns", "direction", "block", "offset"]
    table = pd.read_csv(path, header=None, names=names, dtype=np.int64, skipinitialspace=True)
    return [float(each) for each in table["latency_ns"].quantile(QUANTILES)]


def fio_plot_ios(paths: Sequence[str]) -> list[float]:
    """Read with fio-plot's reader, which makes a dictionary of texts for each line; percentiles computed here."""
    from fio_plot.fiolib.dataimport import readLogData

    (path,) = paths
    latencies = sorted(int(line["value"]) for line in readLogData({}, {"filename": path}))
    return [latencies[round(q * (len(latencies) - 1))] for q in QUANTILES]


def of_table(text: str, columns: Sequence[str], unit_ns: float) -> list[float]:
    """Return the median of each column of the table of seconds that fio's scripts print.

    A mean or median of percentiles is no percentile, but of I/Os that are alike in every second close to it.
    """
    lines = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    at = next((number for number, cells in enumerate(lines) if set(columns) <= set(cells)), None)
    if at is None:
        raise ValueError(f"it printed no table with {', '.join(columns)}")
    places = [lines[at].index(name) for name in columns]
    rows = [cells for cells in lines[at + 1 :] if len(cells) > max(places) and all(cells[place] for place in places)]
    if not rows:
        raise ValueError("its table is empty")
    return [statistics.median(float(cells[place]) * unit_ns for cells in rows) for place in places]


WAYS: Mapping[str, Callable[[Sequence[str]], list[float]]] = {
    "nothing": nothing,
    "bytes": all_bytes,
    "ours": ours,
    "pandas-histograms": pandas_histograms,
    "pandas-ios": pandas_ios,
    "fio-plot-ios": fio_plot_ios,
}


if __name__ == "__main__":
    print(json.dumps(WAYS[sys.argv[1]](sys.argv[2:])))
