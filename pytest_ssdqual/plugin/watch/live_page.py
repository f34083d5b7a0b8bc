"""Publishes progress events and verdicts to the live page, as the messages of its script."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_ssdqual.live.feed import Feed, Topic
from pytest_ssdqual.live.server import LiveServer, PortTaken
from pytest_ssdqual.plugin.options import settings
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.progress_events import BayProgress, Begun, Idle, LoadBegun, Looked, News, Now
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.units import format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.html.page import REPORT

#: Characters of one text.
LONGEST = 2000
#: Seconds between two tallies.
TALLY_S = 1.0
#: Phases without a verdict: the page shows no limit for them.
UNJUDGED = ("precondition", "refresh", "fill")


def opened(config: pytest.Config) -> LiveServer | None:
    """Return the server of ``--ssd-live``, before any drive is touched; raise ``pytest.UsageError`` for a used port."""
    port = settings.live_port(config)
    if port is None or config.option.collectonly:
        return None
    try:
        server = LiveServer(Feed(), port)
    except PortTaken as error:
        raise pytest.UsageError(f"--ssd-live={port}: {error}; name another port, or none for any free one") from None
    config.add_cleanup(server.close)
    return server


class LivePageFeed:
    """Feeds the live page on the controller; any thread may call it."""

    def __init__(self, server: LiveServer, runs: Sequence[Qualification], folder: Path | None) -> None:
        """``folder`` is the run folder."""
        self.server = server
        self._feed = server.feed
        self._folder = folder
        self._specs = {run.name: run.spec for run in runs}
        self._is_over = False
        self._lock = threading.RLock()
        self._tally = LiveTally()
        #: The latest error of a test, and how many further tests had it that were not logged.
        self._error = ""
        self._repetitions = 0
        self._publish(Topic.RUN, title=runs[0].spec.name, about=_about(runs, folder))

    def take(self, event: News, before: BayProgress, bay: BayProgress, at_s: float) -> None:
        """Publish a progress event of a bay, which happened at ``at_s`` by the monotonic clock."""
        at_ms = round(1000 * (time.time() - time.monotonic() + at_s))
        name = bay.name
        with self._lock:
            self._publish_tally()
            match event:
                case Idle() if before.step is None:
                    return  # hundreds of tests that measure nothing publish nothing
                case LoadBegun():
                    self._publish(Topic.LOAD, name, at_ms=at_ms, **_load(event, self._spec(name)), **_round(event))
                case Now():
                    self._log_repetitions()
                    iops = [round(each, 1) for each in event.iops if math.isfinite(each)]
                    if len(iops) == len(event.iops):
                        written = bay.bytes_written
                        self._publish(Topic.STRIP, name, at_ms=at_ms, iops=iops, bytes_written=written, **_round(event))
                    return
                case Begun(what, _) if before.step is None or before.step.what != what:
                    self.log(what, at_ms)
                case Looked(sentence):
                    self.log(sentence, at_ms)
            if bay.has_worked:
                self._publish_bay(bay, at_s, at_ms)

    def judged(self, test: str, evidence: Evidence) -> None:
        outcome = evidence.outcome
        with self._lock:
            self._tally.verdicts[outcome.value] += 1
            topic = Topic.FAILED if outcome is Finding.FAIL else Topic.VERDICT
            at_ms = round(1000 * time.time())
            self._publish(topic, at_ms=at_ms, outcome=outcome.value, sentence=evidence.sentence, test=test)
            self._publish_tally()

    def counted(self, outcomes: Mapping[str, int], total: int) -> None:
        """Publish the outcomes of the tests that have ended, of ``total``."""
        with self._lock:
            self._tally.tests, self._tally.total = dict(outcomes), total
            self._publish_tally()

    def wrong(self, test: str, message: str) -> None:
        """Log the error of a test; equal errors of tests in a row appear once, then their number."""
        with self._lock:
            if message == self._error:
                self._repetitions += 1
            else:
                self.log(f"{test}: {message}")
                self._error = message

    def log(self, text: str, at_ms: int | None = None) -> None:
        with self._lock:
            self._log_repetitions()
            self._publish(Topic.LOG, at_ms=round(1000 * time.time()) if at_ms is None else at_ms, text=text)

    def end(self, outcomes: Mapping[str, int], status: int) -> None:
        """Publish the end of the run, once."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            self._log_repetitions()
            self._publish_tally(now=True)
            text = safe_text.line(ending(outcomes, status, self._folder), LONGEST)
            self._feed.end({"text": text, "good": status in (0, 5)})

    def _spec(self, name: str) -> Spec:
        """Return the spec of a bay; the only bay has the name of its worker."""
        return self._specs.get(name) or next(iter(self._specs.values()))

    def _publish_bay(self, bay: BayProgress, at_s: float, at_ms: int) -> None:
        step, left_s, found = bay.step, bay.left_s(at_s), bay.steadiness
        self._publish(
            Topic.BAY,
            bay.name,
            what=step.what if step else "",
            expected_s=step.expected_s if step and math.isfinite(step.expected_s) else 0,
            began_ms=at_ms - round(1000 * (at_s - step.began_s)) if step else at_ms,
            ends_ms=None if left_s is None else at_ms + round(1000 * left_s),
            steady=found.reached if found else None,
            bytes_written=bay.bytes_written,
            brief=found.brief if found else "",
            sentence=found.sentence if found else "",
        )

    def _publish_tally(self, *, now: bool = False) -> None:
        """Publish the tally at most once a second: thousands of tests of one measurement may end within seconds."""
        if self._tally.is_due(now=now):
            self._publish(Topic.TALLY, "", **self._tally.facts())

    def _log_repetitions(self) -> None:
        again, self._repetitions = self._repetitions, 0
        if again:
            text = f"the same error in {again:,} more test{'s' if again > 1 else ''}"
            self._publish(Topic.LOG, at_ms=round(1000 * time.time()), text=text)

    def _publish(self, topic: Topic, bay: str = "", **facts: object) -> None:
        self._feed.publish(topic, _printable(facts), safe_text.line(bay, 80))


def _about(runs: Sequence[Qualification], folder: Path | None) -> str:
    """Return the subtitle of the page: drives, spec, protocol and run folder."""
    first = runs[0]
    drives = [drive for run in runs for drive in run.bay.drives]
    models = ", ".join(sorted({drive.model or "unknown drives" for drive in drives}))
    where = first.bay.machine if len(runs) == 1 else f"{len(runs)} bays"
    specs = ", ".join(dict.fromkeys(run.spec.name for run in runs))
    rehearsal = "" if first.acceptance else ", not for acceptance"
    judged = f"judged by {specs}; protocol {first.protocol.name}{rehearsal}"
    return f"{len(drives)} × {models} on {where}; {judged}; run folder {folder}"


@dataclass(slots=True)
class LiveTally:
    """Numbers of tests and verdicts by outcome."""

    tests: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    _published: dict[str, object] = field(default_factory=dict)
    _published_s: float = -math.inf

    def facts(self) -> dict[str, object]:
        return {"tests": dict(self.tests), "total": self.total, "verdicts": dict(self.verdicts)}

    def is_due(self, *, now: bool) -> bool:
        """Return True if the tally must be published again, and mark it as published."""
        facts, clock_s = self.facts(), time.monotonic()
        if facts == self._published or not (now or clock_s - self._published_s >= TALLY_S):
            return False
        self._published, self._published_s = facts, clock_s
        return True


def ending(outcomes: Mapping[str, int], status: int, folder: Path | None) -> str:
    """``The run has ended: 12 passed, 1 failed. The report is …``"""
    names = [name for name in ("passed", "failed", "error", "skipped") if outcomes.get(name)]
    counted = ", ".join(f"{outcomes[name]} {name}" for name in names)
    early = {2: "was interrupted", 3: "ended by an internal error", 4: "was refused"}.get(status, "has ended")
    where = ""
    if folder:
        report = folder / REPORT
        where = f" The report is {report}." if report.is_file() else f" The evidence is in {folder}."
    return f"The run {early}: {counted or 'no tests'}.{where}"


def _load(load: LoadBegun, spec: Spec) -> dict[str, object]:
    """Return the message about a load, with its limit and its published value; per drive if drives are side by side."""
    shown: dict[str, object] = {
        "phase": load.phase, "geometry": load.geometry, "workload": load.workload,
        "devices": [safe_text.line(each, 80) for each in load.devices],
        "limit": None, "limit_text": "", "published": None, "published_text": "",
    }  # fmt: skip
    if load.phase in UNJUDGED or not load.workload:
        return shown
    try:
        geometry, workload = Geometry.parse(load.geometry), Workload.parse(load.workload)
    except ValueError:
        return shown
    claim = Claim.STEADY_IOPS
    if limit := spec.limit(claim, geometry, workload):
        shown |= {"limit": limit.bound, "limit_text": f"limit {format_value(limit.bound, claim.unit)} ({limit.source})"}
    if published := spec.published(claim, geometry, workload):
        shown |= {"published": published.value, "published_text": f"published {published} ({published.source})"}
    return shown


def _round(event: LoadBegun | Now) -> dict[str, object]:
    return {"round": event.round, "rounds": event.rounds, "exact": event.exact}


def _printable(facts: Mapping[str, object]) -> dict[str, object]:
    return {name: _shown(value) for name, value in facts.items()}


def _shown(value: object) -> object:
    """Return a value for JSON, which has no infinity; the page must never end the run."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return safe_text.line(value, LONGEST) if isinstance(value, str) else value
