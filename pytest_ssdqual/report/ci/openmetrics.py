"""OpenMetrics of a run, for node_exporter's textfile collector: verdicts, figures with their limits, health of drives.

The text is valid OpenMetrics 1.0 and valid in Prometheus' older format, which the collector reads
(github.com/prometheus/node_exporter, collector/textfile.go): gauges only, because names of counters and the type
``info`` differ, and no timestamps, because the collector skips a file that has one. Metric names are constants. Every
series has the machine as a label, as an exporter may have files of several.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.reader import WORSENED, RunReader
from pytest_ssdqual.report.run_folder.records import HealthRecord, WorsenedDrive
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.run_summary.run_view import KINDS, RunView
from pytest_ssdqual.report.view.tables import SEVERITY

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
#: Health of a drive: name in records, name of the metric, unit, divisor to it, help.
HEALTH = (
    ("passed", "self_assessment", "", 1, "Is 1 if the drive passes its health self-assessment."),
    ("temperature_c", "temperature", "celsius", 1, "Temperature of the drive."),
    ("percentage_used", "used", "ratio", 100, "Endurance used, as the drive estimates it."),
    ("critical_warning", "critical_warning", "", 1, "Critical warning bits of the drive."),
    ("media_errors", "media_errors", "", 1, "Media errors of the drive over its life."),
    ("power_on_hours", "power_on", "seconds", 1 / 3600, "Power-on time of the drive."),
    ("data_written_bytes", "written", "bytes", 1, "Bytes written to the drive over its life."),
)
#: Maximum length of a label's value; a longer one ends in an ellipsis.
LABEL_CHARACTERS = 256


@dataclass(slots=True)
class MetricsText:
    """Metric families in the order of their first sample."""

    #: Labels of every sample: the machine, and the bay if there are several.
    where: Mapping[str, str]
    _families: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, name: str, unit: str, what: str, value: float | None, **labels: str) -> None:
        """Add a sample; unknown and unbounded values are dropped, and of equal labels the first one stays."""
        if value is None or not math.isfinite(value):
            return
        name = f"ssdqual_{name}_{unit}" if unit else f"ssdqual_{name}"
        base = f"# UNIT {name} {unit}\n" if unit else ""
        head = f"# TYPE {name} gauge\n{base}# HELP {name} {what}\n"
        given = ",".join(f'{key}="{escaped(text)}"' for key, text in {**self.where, **labels}.items())
        self._families.setdefault(head, {}).setdefault(f"{name}{{{given}}}", repr(value))

    def __str__(self) -> str:
        lines = (
            head + "".join(f"{labels} {value}\n" for labels, value in samples.items())
            for head, samples in self._families.items()
        )
        return f"{''.join(lines)}# EOF\n"


def text(folder: Path) -> str:
    """Return the metrics of a run folder; ``OSError`` without records."""
    story = RunReader.read(folder, *KINDS, "health")
    run = RunView.of(story)
    bay = {"bay": folder.name} if fleet.fleet_of(folder) else {}
    page = MetricsText({"machine": next(iter(run.machines), ""), **bay})
    _run(page, run)
    for each in _promises(run):
        _promise(page, each)
    _drives(page, story)
    return str(page)


def write(folder: Path, path: Path) -> None:
    """Write the metrics to a file atomically; ``OSError`` if that fails.

    The mode depends on the umask only: the collector is another user.
    """
    data = text(folder).encode()
    # The collector reads files that end in .prom; the partial file does not.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def escaped(foreign: str) -> str:
    """Return the value of a label."""
    shown = safe_text.line(foreign, LABEL_CHARACTERS)
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def _run(page: MetricsText, run: RunView) -> None:
    manifest, standing, counts = run.manifest, run.verdict, run.verdict.counts
    names = {each: run.document(each) for each in ("protocol", "spec")}
    page.add("run", "", "The last run.", 1, run=manifest.run_id, **names)
    for fitness in Fitness:
        what = "Verdict of the run on the product: 1 for the one that applies."
        page.add("run_verdict", "", what, int(standing.fitness is fitness), verdict=fitness.value)
    for name, number in standing.coverage.facts.items():
        what, _, which = name.partition("_")
        page.add(
            f"run_{what}", "", f"Number of {what} of the run: those that were judged, and all.", number, which=which
        )
    page.add("run_acceptance", "", "Is 1 if the protocol may decide about a product.", int(standing.acceptance))
    for name, number in (
        ("pass", counts.passed),
        ("fail", counts.failed),
        ("inconclusive", counts.inconclusive),
        ("bounded", counts.bounded),
        ("observed", counts.observed),
    ):
        page.add("run_claims", "", "Claims of the run.", number, outcome=name)
    page.add(
        "run_tests_in_error",
        "",
        "Tests that ended in an error or failed for another reason than a promise.",
        counts.errors,
    )
    for group in run.causes:
        culprit = group.culprit.value if group.culprit else "none"
        what = "Broken promises by their attributed cause."
        page.add("run_cause", "", what, len(group.broken), culprit=culprit, drives=" ".join(group.drives))
    page.add("run_exit_status", "", "Exit status of pytest.", manifest.exit_status)
    for name, time in (("started", manifest.started), ("ended", manifest.ended)):
        page.add(f"run_{name}_timestamp", "seconds", f"When the run {name}.", _seconds(time or ""))


def _promises(run: RunView) -> Iterable[Evidence]:
    """Return each promise once; of two tests with the same promise the worse verdict counts."""
    judged = [each.evidence for each in run.judged if each.evidence.is_promised]
    latest: dict[tuple[object, ...], Evidence] = {}
    for each in sorted(judged, key=lambda each: SEVERITY.index(each.outcome)):
        latest.setdefault((each.identity, each.group), each)
    return latest.values()


def _promise(page: MetricsText, each: Evidence) -> None:
    labels = {"claim": each.claim, "array": " ".join(each.geometries), "workload": " ".join(each.workloads)}
    if each.group:
        labels["group"] = each.group
    unit, parts = BASE[each.unit]
    page.add("verdict", "", "A promise and its outcome.", 1, **labels, outcome=each.outcome.value)
    for name, what, number in _figures(each):
        page.add(name, unit, what, number if number is None else number / parts, **labels)
    limit, margin = each.limit, each.margin_percent
    bound = None if limit is None else limit / parts
    page.add("limit", unit, "Limit of a promise.", bound, **labels, bound=each.direction.value)
    what = "Distance of the measured figure from the limit, relative to the limit; negative on the bad side."
    page.add("margin", "ratio", what, None if margin is None else margin / 100, **labels)


def _figures(each: Evidence) -> Iterable[tuple[str, str, float | None]]:
    """Yield name, description and value of a figure and its interval."""
    yield "measured", "Measured figure of a promise.", each.value
    yield "measured_low", "Lower end of the confidence interval.", each.low
    yield "measured_high", "Upper end of the confidence interval.", each.high


def _drives(page: MetricsText, story: RunReader) -> None:
    health = {reading.drive: reading for reading in story.contents(HealthRecord, "health")}
    worse = {worsened.drive for worsened in story.contents(WorsenedDrive, WORSENED)}
    having = Counter(drive.name for drive in story.manifest.drives)
    for drive in story.manifest.drives:
        identity = drive.identity
        # Of equal labels only the first drive's samples would stay.
        serial = drive.name if having[drive.name] == 1 else identity
        page.add(
            "drive", "", "A drive of the run.", 1, serial=serial, model=drive.model or "", firmware=drive.firmware or ""
        )
        page.add("drive_size", "bytes", "Capacity of the drive.", drive.size_bytes, serial=serial)
        what = "Is 1 if the drive's health worsened during the run by more than its use explains."
        page.add("drive_worsened", "", what, int(identity in worse), serial=serial)
        for name, metric, unit, parts, what in HEALTH:
            value = getattr(health.get(identity), name, None)
            page.add(f"drive_{metric}", unit, what, value if value is None else value / parts, serial=serial)


def _seconds(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (OSError, OverflowError, ValueError):  # of the year 1, in a time zone of its own
        return None
