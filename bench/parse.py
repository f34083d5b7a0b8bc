"""Cost of reading fio's output: the product's reader, fio's own scripts, fio-plot and pandas on the same I/Os.

    python bench/parse.py                         # half a minute: 6 minutes of 8 jobs, 500,000 lines
    python bench/parse.py --hours 24 --jobs 8 --lines 20000000 --folder=/big/disk --limit=20000

Every reader is a process of its own. The table has its CPU time (user and system, with the start of Python), its peak
memory, and the distance of its percentiles from those that the files were made with (parse_runs.py). Nothing is
extrapolated: a reader that exceeds --memory or --limit has no numbers. --tools-python runs third-party readers; a
sentence replaces one that is not installed.

24 hours of 8 jobs are 20 GB of files, and fio-plot needs 9 GiB of memory for 20 million lines.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import parse_runs
import parse_ways
from parse_runs import Made

#: Where Debian's package has fio's scripts; others have them on the path.
SCRIPTS = Path("/usr/share/doc/fio")
INSTALL = "python -m venv TOOLS && TOOLS/bin/pip install pandas fio-plot, then --tools-python=TOOLS/bin/python"
#: The kernel counts the memory of whoever starts a process as the process' own until it is another program, so a small
#: Python (9 MiB) is between; a child that was forked begins its count anew.
LAUNCHER = """
import json, os, resource, sys
note, memory, *argv = sys.argv[1:]
pid = os.fork()
if not pid:
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    os.execvp(argv[0], argv)
_, status, used = os.wait4(pid, 0)
with open(note, "w") as file:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)], file)
"""
#: The goal (docs/decisions.md D60).
TIMES_FIO, TIMES_BYTES = 10, 3


@dataclass(frozen=True, slots=True)
class Way:
    """A command that reads a kind of file; ``columns`` are those of the table that fio's scripts print, not JSON."""

    name: str
    files: str
    argv: tuple[str, ...]
    columns: tuple[str, ...] = ()
    unit_ns: float = 1.0
    #: A sentence, if it cannot be run.
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """Cost of one process; ``found_ns`` are its percentiles, ``trouble`` is the reason if there are none."""

    way: Way
    cpu_s: float = 0.0
    peak_mib: float = 0.0
    found_ns: tuple[float, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    memory_gib: float
    seconds: float


class Tools:
    """Third-party readers: their availability and their commands."""

    def __init__(self, python: str, scripts: Path, work: Path) -> None:
        self.python, self._scripts, self._work = python, scripts, work

    def script(self, name: str, needs: Sequence[str]) -> tuple[str, str]:
        """The path of one of fio's scripts, unpacked; and what is missing."""
        for place in (self._scripts / name, self._scripts / f"{name}.gz", Path(shutil.which(name) or "/nowhere")):
            if place.is_file():
                data = place.read_bytes()
                path = self._work / name
                path.write_bytes(gzip.decompress(data) if place.suffix == ".gz" else data)
                return str(path), self.lacks(name, needs)
        return "", f"{name} is not here: install Debian's package fio, or name its folder with --fio-scripts"

    def lacks(self, what: str, modules: Sequence[str]) -> str:
        """A sentence if the Python that is to run ``what`` has not all of ``modules``."""
        for module in modules:
            found = subprocess.run([self.python, "-c", f"import {module}"], check=False, capture_output=True)
            if found.returncode:
                return f"{what} needs {module}, which {self.python} does not have: {INSTALL}"
        return ""


def of_histograms(made: Made, tools: Tools) -> list[Way]:
    """Ways of reading documents and histogram logs; ours comes first."""
    weighted, no_weighted = tools.script("fiologparser_hist.py", ("numpy", "pandas"))
    percentiles, no_percentiles = tools.script("fio-histo-log-pctiles.py", ())
    hist = ("median", "99%", "99.9%")
    python, logs = tools.python, made.logs
    return [
        *_common(made, "histogram logs"),
        Way(
            "fiologparser_hist.py", "histogram logs", (python, weighted, "--percentiles=99:99.9", *logs),
            hist, missing=no_weighted,
        ),
        Way(
            "fiologparser_hist.py --noweight", "histogram logs",
            (python, weighted, "--noweight", "--percentiles=99:99.9", *logs), hist, missing=no_weighted,
        ),
        Way(
            "fio-histo-log-pctiles.py", "histogram logs",
            (python, percentiles, "--percentiles", "50", "99", "99.9", "--", *logs),
            ("median", "99.0", "99.9"), 1000.0, missing=no_percentiles,
        ),
        _other("pandas.read_csv", "histogram logs", "pandas-histograms", made, tools, "pandas"),
    ]  # fmt: skip


def of_every_io(made: Made, tools: Tools) -> list[Way]:
    """Ways of reading the documents and the log of every I/O; ours comes first."""
    return [
        *_common(made, "log of every I/O"),
        _other("pandas.read_csv", "log of every I/O", "pandas-ios", made, tools, "pandas"),
        _other("fio-plot", "log of every I/O", "fio-plot-ios", made, tools, "fio_plot"),
    ]


def _common(made: Made, logs: str) -> list[Way]:
    return [
        Way("ours", "documents", _python("ours", [made.documents])),
        Way("bytes only", "documents", _python("bytes", [made.documents])),
        Way("bytes only", logs, _python("bytes", made.logs)),
        Way("Python, doing nothing", "", _python("nothing", [])),
    ]


def _other(name: str, files: str, way: str, made: Made, tools: Tools, module: str) -> Way:
    return Way(name, files, _python(way, made.logs, tools.python), missing=tools.lacks(name, (module,)))


def _python(way: str, paths: Sequence[str], python: str = sys.executable) -> tuple[str, ...]:
    return (python, parse_ways.__file__, way, *paths)


def reading(way: Way, limits: Limits) -> Reading:
    """Run it once."""
    if way.missing:
        return Reading(way, trouble=way.missing)
    with tempfile.TemporaryDirectory() as folder:
        note, said, errors = (Path(folder) / name for name in ("note", "said", "errors"))
        memory = str(int(limits.memory_gib * (1 << 30)))
        with said.open("wb") as out, errors.open("wb") as err:
            argv = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(note), memory, *way.argv]
            process = subprocess.Popen(argv, stdout=out, stderr=err, start_new_session=True)
            try:
                process.wait(limits.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Reading(way, trouble=f"it was not done after {limits.seconds:g} s")
        cpu_s, peak_mib, status = json.loads(note.read_text())
        if status:
            last = errors.read_text(errors="replace").strip().split("\n")[-1]
            return Reading(way, trouble=f"it ended with status {status} within {limits.memory_gib:g} GiB: {last}")
        try:
            return Reading(way, cpu_s, peak_mib, _found(way, said.read_text()))
        except ValueError as error:
            return Reading(way, trouble=str(error))


def _found(way: Way, text: str) -> tuple[float, ...]:
    return tuple(parse_ways.of_table(text, way.columns, way.unit_ns) if way.columns else json.loads(text))


def table(made: Made, readings: Sequence[Reading]) -> Iterator[str]:
    """Lines of Markdown; ``readings`` begin with ours."""
    yield f"{made.jobs} jobs × {made.seconds} s, {made.ios:,} I/Os, {made.job_hours:.4g} job-hours"
    yield ""
    yield "| way | reads | CPU s | per job-hour | × ours | × its bytes | peak MiB | p50 off | p99 off | p99.9 off |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for each in readings:
        way = each.way
        if each.trouble:
            yield f"| {way.name} | {way.files} | – | – | – | – | – | – | – | – |"
            continue
        times = [_times(each, readings[0]), _times(each, _bytes(readings, way.files))]
        off = [f"{100 * (found / true - 1):+.2f} %" for found, true in zip(each.found_ns, made.truth_ns, strict=False)]
        cells = [f"{each.cpu_s:.2f}", f"{each.cpu_s / made.job_hours:.3g}", *times, f"{each.peak_mib:.0f}"]
        yield f"| {way.name} | {way.files} | {' | '.join(cells)} | {' | '.join(off or ['–'] * 3)} |"
    yield from (f"\n{each.way.name}: {each.trouble}" for each in readings if each.trouble)


def goals(readings: Sequence[Reading]) -> Iterator[str]:
    """Return sentences on the goal, compared with those of fio's scripts that could run."""
    own, stored = readings[0], _bytes(readings, "documents")
    for each in readings:
        if each.way.columns and each.cpu_s and own.cpu_s:
            times = each.cpu_s / own.cpu_s
            yield f"{'met' if times >= TIMES_FIO else 'MISSED'}: {TIMES_FIO} × {each.way.name}: {times:.1f} ×"
    if own.cpu_s and stored and stored.cpu_s:
        times = own.cpu_s / stored.cpu_s
        yield f"{'met' if times <= TIMES_BYTES else 'MISSED'}: within {TIMES_BYTES} × of its bytes: {times:.0f} ×"


def _bytes(readings: Sequence[Reading], files: str) -> Reading | None:
    return next((each for each in readings if each.way.name == "bytes only" and each.way.files == files), None)


def _times(each: Reading, other: Reading | None) -> str:
    return f"{each.cpu_s / other.cpu_s:.2f}" if other and other.cpu_s else "–"


def _made(folder: Path, asked: argparse.Namespace) -> tuple[Made, Made]:
    hist, every = folder / f"{asked.hours:g}h-{asked.jobs}-jobs", folder / f"{asked.lines}-lines"
    for each in (hist, every):
        each.mkdir(parents=True, exist_ok=True)
    return (
        parse_runs.read(hist) or parse_runs.histograms(hist, asked.hours, asked.jobs),
        parse_runs.read(every) or parse_runs.every_io(every, asked.lines),
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=0.1, help="of documents and histogram logs")
    parser.add_argument("--jobs", type=int, default=8, help="of these")
    parser.add_argument("--lines", type=int, default=500_000, help="of the log of every I/O, of one job")
    parser.add_argument("--folder", type=Path, help="store the files here, and use existing ones")
    parser.add_argument("--tools-python", default=sys.executable, help="a Python that has pandas and fio-plot")
    parser.add_argument("--fio-scripts", type=Path, default=SCRIPTS, help="folder of fio's scripts")
    parser.add_argument("--memory", type=float, default=8, help="GiB that a process may have")
    parser.add_argument("--limit", type=float, default=600, help="seconds that a process may take")
    asked = parser.parse_args(argv)
    limits = Limits(asked.memory, asked.limit)
    with tempfile.TemporaryDirectory() as work:
        tools = Tools(asked.tools_python, asked.fio_scripts, Path(work))
        hist, every = _made(asked.folder or Path(work), asked)
        for made, ways in ((hist, of_histograms(hist, tools)), (every, of_every_io(every, tools))):
            readings = [reading(way, limits) for way in ways]
            print(*table(made, readings), "", *goals(readings), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
