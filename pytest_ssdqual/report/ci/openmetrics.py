"""A run as OpenMetrics text, for node_exporter's textfile collector: verdicts, figures with their limits, health.

The rule of the module: what it writes is OpenMetrics 1.0 and Prometheus' older text format alike, as the collector
reads the older one (github.com/prometheus/node_exporter, collector/textfile.go): gauges only, because the names of
counters and the type ``info`` differ, and no timestamps, because the collector skips a file that has one. No name is
made of anything that was read; and every series has the machine in it, as an exporter may have files of several.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.reader import JUDGED, RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.errors import troubles
from pytest_ssdqual.report.view.fitness import Fitness, count, stand
from pytest_ssdqual.report.view.promises import SEVERITY

#: Records that it is made of.
KINDS = (*JUDGED, "error", "failed", "health", "drive_worsened")
#: Prometheus' base units (prometheus.io/docs/practices/naming): the suffix, and ours in one of them.
BASE = {
    Unit.IOPS: ("iops", 1),
    Unit.NANOSECONDS: ("seconds", 10**9),
    Unit.BYTES_PER_SECOND: ("bytes_per_second", 1),
    Unit.RATIO: ("ratio", 1),
    Unit.PERCENT: ("ratio", 100),
    Unit.SECONDS: ("seconds", 1),
    Unit.COUNT: ("", 1),
}
#: Of a drive's health: its name in records, that of the metric, its unit, ours in one of them, and what it is.
HEALTH = (
    ("passed", "self_assessment", "", 1, "Whether the drive passes its own test."),
    ("temperature_c", "temperature", "celsius", 1, "Temperature of the drive."),
    ("percentage_used", "used", "ratio", 100, "Life used, by the drive's own estimate."),
    ("critical_warning", "critical_warning", "", 1, "Critical warning of the drive, as a number."),
    ("media_errors", "media_errors", "", 1, "Media errors of the drive so far."),
    ("power_on_hours", "power_on", "seconds", 1 / 3600, "Time for which the drive was in use."),
    ("data_written_bytes", "written", "bytes", 1, "What was written to the drive so far."),
)
#: Of a label's value: a name that is longer ends in an ellipsis.
LABEL_CHARACTERS = 256
#: What is no exit status of any system.
MOST_STATUS = 2**32


@dataclass(slots=True)
class MetricsText:
    """Metric families in the order in which they came up, each with its samples by their labels."""

    #: In every sample: the machine, and of several bays which one.
    where: Mapping[str, str]
    _families: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, name: str, unit: str, what: str, value: float | None, **labels: str) -> None:
        """One sample; nothing for what is unknown or unbounded, and of equal labels the first one stays."""
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
    """Of a run folder; ``OSError`` if there are no records."""
    story = RunReader.read(folder, *KINDS)
    bays = subject.tables(story.manifest.get("bays"))
    bay = {"bay": folder.name} if fleet.fleet_of(folder) else {}
    page = MetricsText({"machine": subject.text(bays[0], "machine") if bays else "", **bay})
    _run(page, story)
    for each in _promises(story):
        _promise(page, each)
    _drives(page, story, bays)
    return str(page)


def write(folder: Path, path: Path) -> None:
    """Write it to a file at once, so that nobody reads half of it; ``OSError`` if that cannot be.

    Others may read it, as far as the umask allows that: the collector is another user.
    """
    data = text(folder).encode()
    # The collector reads what ends in .prom.
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
    """The value of a label."""
    shown = safe_text.line(foreign, LABEL_CHARACTERS)
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def _run(page: MetricsText, story: RunReader) -> None:
    manifest = story.manifest
    counts = count(story.evidence(), troubles(story), story.unreadable())
    standing = stand(counts, manifest)
    names = {each: subject.text(subject.table(manifest.get(each)), "name") for each in ("protocol", "spec")}
    page.add("run", "", "The last run.", 1, run=subject.text(manifest, "run_id"), **names)
    for fitness in Fitness:
        what = "What the run says of the product: 1 for the one that holds."
        page.add("run_verdict", "", what, int(standing.fitness is fitness), verdict=fitness.value)
    page.add("run_acceptance", "", "Whether its protocol may decide about a product.", int(standing.acceptance))
    for name, number in (
        ("pass", counts.kept),
        ("fail", counts.broken),
        ("inconclusive", counts.undecided),
        ("observed", counts.observed),
    ):
        page.add("run_claims", "", "Claims of the run.", number, outcome=name)
    page.add("run_tests_in_error", "", "Tests that came to no verdict.", counts.troubled)
    status = manifest.get("exit_status")
    status = status if isinstance(status, int) and abs(status) < MOST_STATUS else None
    page.add("run_exit_status", "", "Exit status of pytest.", status)
    for name in ("started", "ended"):
        page.add(f"run_{name}_timestamp", "seconds", f"When the run {name}.", _seconds(subject.text(manifest, name)))


def _promises(story: RunReader) -> Iterable[Evidence]:
    """Each once: two tests may judge the same, and then the worse one is told."""
    judged = [each.evidence for each in story.evidence() if each.evidence.is_promised]
    told: dict[tuple[object, ...], Evidence] = {}
    for each in sorted(judged, key=lambda each: SEVERITY.index(each.outcome)):
        told.setdefault((each.claim, each.geometries, each.workloads, each.group), each)
    return told.values()


def _promise(page: MetricsText, each: Evidence) -> None:
    labels = {"claim": each.claim, "array": " ".join(each.geometries), "workload": " ".join(each.workloads)}
    if each.group:
        labels["group"] = each.group
    unit, parts = BASE[each.unit]
    page.add("verdict", "", "A promise, and what came of it.", 1, **labels, outcome=each.outcome.value)
    for name, what, number in (
        ("measured", "What was measured for a promise.", each.value),
        ("measured_low", "Lower end of its interval.", each.low),
        ("measured_high", "Upper end of its interval.", each.high),
    ):
        page.add(name, unit, what, number if number is None else number / parts, **labels)
    limit, margin = each.limit, each.margin_percent
    bound = None if limit is None else limit / parts
    page.add("limit", unit, "What was promised.", bound, **labels, bound=each.direction.value)
    what = "Between what was measured and its limit, over the limit; below zero if it is broken."
    page.add("margin", "ratio", what, None if margin is None else margin / 100, **labels)


def _drives(page: MetricsText, story: RunReader, bays: Iterable[Mapping[str, object]]) -> None:
    health = {str(record.facts.get("drive")): record.facts for record in story.of("health")}
    worse = {str(record.facts.get("drive")) for record in story.of("drive_worsened")}
    for drive in (drive for bay in bays for drive in subject.tables(bay.get("drives"))):
        identity = subject.text(drive, "identity")
        serial = subject.text(drive, "serial") or identity
        named = {name: subject.text(drive, name) for name in ("model", "firmware")}
        page.add("drive", "", "A drive of the run.", 1, serial=serial, **named)
        page.add("drive_size", "bytes", "Capacity of the drive.", _number(drive.get("size_bytes")), serial=serial)
        what = "Whether the drive got worse in the run than use explains."
        page.add("drive_worsened", "", what, int(identity in worse), serial=serial)
        for name, metric, unit, parts, what in HEALTH:
            value = _number(health.get(identity, {}).get(name))
            page.add(f"drive_{metric}", unit, what, value if value is None else value / parts, serial=serial)


def _number(value: object) -> float | None:
    """None of what is none, or past all floating-point numbers: a record may be anybody's."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


def _seconds(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (OSError, OverflowError, ValueError):  # of the year 1, in a time zone of its own
        return None
