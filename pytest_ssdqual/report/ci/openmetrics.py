"""OpenMetrics of a run, for node_exporter's textfile collector: verdicts, figures with their limits, health of drives.

The text is valid OpenMetrics 1.0 and valid in Prometheus' older format, which the collector reads
(github.com/prometheus/node_exporter, collector/textfile.go): gauges only, because names of counters and the type
``info`` differ, and no timestamps, because the collector skips a file that has one. Metric names are constants. Every
series has the machine as a label, as an exporter may have files of several.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import subject
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
#: Help of each metric.
HELP = {
    "run": "The last run.",
    "run_verdict": "Verdict of the run on the product: 1 for the one that applies.",
    "run_tests": "Number of tests of the run: those that were judged, those without a limit, and all of these.",
    "run_drives": "Number of drives of the run: those that were judged, and all.",
    "run_acceptance": "Is 1 if the protocol may decide about a product.",
    "run_claims": "Claims of the run.",
    "run_tests_in_error": "Tests that ended in an error or failed for another reason than a promise.",
    "run_cause": "Broken promises by their attributed cause.",
    "run_exit_status": "Exit status of pytest.",
    "run_started_timestamp": "When the run started.",
    "run_ended_timestamp": "When the run ended.",
    "verdict": "A promise and its outcome.",
    "measured": "Measured figure of a promise.",
    "measured_low": "Lower end of the confidence interval.",
    "measured_high": "Upper end of the confidence interval.",
    "limit": "Limit of a promise.",
    "margin": "Distance of the measured figure from the limit, relative to the limit; negative on the bad side.",
    "drive": "A drive of the run.",
    "drive_size": "Capacity of the drive.",
    "drive_worsened": "Is 1 if the drive's health worsened during the run by more than its use explains.",
    **{f"drive_{metric}": what for _, metric, _, _, what in HEALTH},
}
#: Maximum length of a label's value; a longer one ends in an ellipsis.
LABEL_CHARACTERS = 256
NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class MetricsText:
    """Metric families in the order of their first sample."""

    #: Labels of every sample: the machine, and the bay if there are several.
    where: Mapping[str, str]
    _families: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(
        self, name: str, value: float | None, labels: Mapping[str, str] = NONE, unit: str = "", divisor: float = 1
    ) -> None:
        """Add a sample, 1 or 0 for a truth value; unknown and unbounded ones, and more of equal labels, are dropped."""
        if value is None or not math.isfinite(value):
            return
        what = HELP[name]
        name = f"ssdqual_{name}_{unit}" if unit else f"ssdqual_{name}"
        base = f"# UNIT {name} {unit}\n" if unit else ""
        head = f"# TYPE {name} gauge\n{base}# HELP {name} {what}\n"
        given = ",".join(f'{key}="{escaped(text)}"' for key, text in {**self.where, **labels}.items())
        self._families.setdefault(head, {}).setdefault(
            f"{name}{{{given}}}", repr(+value if divisor == 1 else value / divisor)
        )

    def __str__(self) -> str:
        lines = (
            head + "".join(f"{labels} {value}\n" for labels, value in samples.items())
            for head, samples in self._families.items()
        )
        return f"{''.join(lines)}# EOF\n"


def text(folder: Path) -> str:
    """Return the metrics of a run folder; ``OSError`` without records."""
    run = RunView.read(folder)
    bay = {"bay": folder.name} if fleet.fleet_of(folder) else {}
    page = MetricsText({"machine": next(iter(run.machines), ""), **bay})
    _run(page, run)
    _promises(page, run)
    _drives(page, run)
    return str(page)


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


def _run(page: MetricsText, run: RunView) -> None:
    manifest, standing = run.manifest, run.verdict
    names = {each: run.document(each) for each in ("protocol", "spec")}
    page.add("run", 1, {"run": manifest.run_id, **names})
    for fitness in Fitness:
        page.add("run_verdict", int(standing.fitness is fitness), {"verdict": fitness.value})
    for name, number in standing.coverage.facts.items():
        what, _, which = name.partition("_")
        page.add(f"run_{what}", number, {"which": which})
    page.add("run_acceptance", int(standing.acceptance))
    outcomes = Counter(each.evidence.outcome for each in run.judged)
    for outcome in Finding:
        page.add("run_claims", outcomes[outcome], {"outcome": outcome.value})
    page.add("run_tests_in_error", standing.counts.errors)
    for group in run.causes:
        culprit = group.culprit.value if group.culprit else "none"
        page.add("run_cause", len(group.broken), {"culprit": culprit, "drives": " ".join(group.drives)})
    page.add("run_exit_status", manifest.exit_status)
    for name, time in (("started", manifest.started), ("ended", manifest.ended)):
        moment = subject.moment(time)
        page.add(f"run_{name}_timestamp", moment.timestamp() if moment else None, unit="seconds")


def _promises(page: MetricsText, run: RunView) -> None:
    """Add each promise once; of two tests with the same promise the worse verdict counts."""
    judged: set[tuple[str, ...]] = set()
    for each in sorted(run.promised, key=lambda each: SEVERITY.index(each.outcome)):
        labels = {"claim": each.claim, "array": " ".join(each.geometries), "workload": " ".join(each.workloads)}
        labels |= {"group": each.group} if each.group else {}
        if (promise := tuple(labels.values())) in judged:
            continue
        judged.add(promise)
        unit, divisor = BASE[each.unit]
        page.add("verdict", 1, {**labels, "outcome": each.outcome.value})
        page.add("measured", each.value, labels, unit, divisor)
        page.add("measured_low", each.low, labels, unit, divisor)
        page.add("measured_high", each.high, labels, unit, divisor)
        page.add("limit", each.limit, {**labels, "bound": each.direction.value}, unit, divisor)
        page.add("margin", each.margin_percent, labels, "ratio", 100)


def _drives(page: MetricsText, run: RunView) -> None:
    worse = {each.drive for each in run.changed}
    having = Counter(drive.name for drive in run.manifest.drives)
    for drive in run.manifest.drives:
        # Of equal labels only the first drive's samples would stay.
        own = {"serial": drive.name if having[drive.name] == 1 else drive.identity}
        page.add("drive", 1, {**own, "model": drive.model or "", "firmware": drive.firmware or ""})
        page.add("drive_size", drive.size_bytes, own, "bytes")
        page.add("drive_worsened", int(drive.identity in worse), own)
        for name, metric, unit, divisor, _ in HEALTH:
            page.add(f"drive_{metric}", getattr(run.health.get(drive.identity), name, None), own, unit, divisor)
