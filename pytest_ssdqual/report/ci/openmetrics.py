"""OpenMetrics of a run, for node_exporter's textfile collector: verdicts, figures with their limits, health of drives.

The text is valid OpenMetrics 1.0 and valid in Prometheus' older format, which the collector reads
(github.com/prometheus/node_exporter, collector/textfile.go): gauges only, because names of counters and the type
``info`` differ, and no timestamps, because the collector skips a file that has one. Metric names are constants. Every
series has the machine as a label, as an exporter may have files of several.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.tables import SEVERITY
from pytest_ssdqual.rig.drives.topology import Drive

if TYPE_CHECKING:
    from jinja2 import Environment

#: Suffix of Prometheus' base unit (prometheus.io/docs/practices/naming), and the divisor to it.
BASE = {
    Unit.IOPS: ("iops", 1),
    Unit.NANOSECONDS: ("seconds", 10**9),
    Unit.BYTES_PER_SECOND: ("bytes_per_second", 1),
    Unit.RATIO: ("ratio", 1),
    Unit.PERCENT: ("ratio", 100),
    Unit.SECONDS: ("seconds", 1),
    Unit.COUNT: ("", 1),
    Unit.CELSIUS: ("celsius", 1),
}
#: Maximum length of a label's value; a longer one ends in an ellipsis.
LABEL_CHARACTERS = 256


@cache
def _environment() -> Environment:
    """Return the environment of the template, whose texts are constants beside what ``_sample`` escapes."""
    from markupsafe import Markup

    made = pages.environment_of(Markup)
    made.filters["timestamp"] = _timestamp
    return made


def text(folder: Path) -> str:
    """Return the metrics of a run folder; ``OSError`` without records."""
    run = RunView.read(folder)
    outcomes = Counter(each.outcome for each in run.judged)
    where = {"machine": next(iter(run.machines), "")}
    if fleet.fleet_of(folder):
        where["bay"] = folder.name
    return (
        _environment()
        .get_template("metrics.prom")
        .render(
            run=run,
            sample=partial(_sample, where, set()),
            fitnesses=Fitness,
            claims={outcome: outcomes[outcome] for outcome in Finding},
            bases=BASE,
            promises=list(_promises(run)),
            drives=list(_drives(run)),
        )
    )


def write(folder: Path, path: Path) -> None:
    """Write the metrics to a file atomically; ``OSError`` if that fails.

    The mode depends on the umask only: the collector is another user. It reads files that end in .prom; the partial
    file does not.
    """
    safe_files.write_whole(path, text(folder).encode(), for_others=True)


def escaped(foreign: str) -> str:
    """Return the value of a label."""
    shown = safe_text.line(foreign, LABEL_CHARACTERS)
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def _sample(
    where: Mapping[str, str], printed: set[str], name: str, value: float | None, divisor: float = 1, **labels: str
) -> str:
    """Return a line, 1 or 0 for a truth value; empty if the value is unknown or unbounded, or the labels are printed.

    ``where`` are labels of every sample: the machine, and the bay if there are several.
    """
    given = ",".join(f'{key}="{escaped(text)}"' for key, text in {**where, **labels}.items())
    series = f"{name}{{{given}}}"
    if value is None or not math.isfinite(value) or series in printed:
        return ""
    printed.add(series)
    return f"{series} {+value if divisor == 1 else value / divisor!r}\n"


def _timestamp(time: str | None) -> float | None:
    moment = subject.moment(time)
    return moment.timestamp() if moment else None


def _promises(run: RunView) -> Iterator[tuple[Evidence, Mapping[str, str]]]:
    """Yield each promise once, with its labels; of two tests with the same promise the worse verdict counts."""
    judged = set[tuple[str, ...]]()
    for each in sorted(run.promised, key=lambda each: SEVERITY.index(each.outcome)):
        labels = {"claim": each.claim, "array": " ".join(each.geometries), "workload": " ".join(each.workloads)}
        labels |= {"group": each.group} if each.group else {}
        if (promise := tuple(labels.values())) not in judged:
            judged.add(promise)
            yield each, labels


def _drives(run: RunView) -> Iterator[tuple[Drive, Mapping[str, str]]]:
    """Yield each drive with its label; drives of equal serial numbers have their identities."""
    having = Counter(drive.name for drive in run.manifest.drives)
    for drive in run.manifest.drives:
        yield drive, {"serial": drive.name if having[drive.name] == 1 else drive.identity}
