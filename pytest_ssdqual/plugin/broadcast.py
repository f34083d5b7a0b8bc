"""What the live page is told: news of the bays and verdicts, as the messages that its script knows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.live.feed import Feed, Topic
from pytest_ssdqual.live.server import PortTaken, Server
from pytest_ssdqual.plugin import options
from pytest_ssdqual.qual import printable
from pytest_ssdqual.qual.claim import Claim
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.news import Begun, Load, Looked, News, Now
from pytest_ssdqual.qual.units import format_value
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.report import page
from pytest_ssdqual.report.bay_line import Bay

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.qualification import Qualification
    from pytest_ssdqual.qual.spec import Spec
    from pytest_ssdqual.report.evidence import Evidence

#: Of one text.
LONGEST = 2000
#: Of these no verdict speaks: their figures stand beside no limit.
UNJUDGED = ("precondition", "confirm", "fill")


def opened(config: pytest.Config) -> Server | None:
    """The server, if it was asked for; before any drive is touched. ``pytest.UsageError`` if the port is taken."""
    port = options.live_port(config)
    if port is None or config.option.collectonly:
        return None
    try:
        server = Server(Feed(), port)
    except PortTaken as error:
        raise pytest.UsageError(
            f"--ssd-live={port}: {error}; name another one, or none and a free one is taken"
        ) from None
    config.add_cleanup(server.close)
    return server


class Broadcast:
    """On the controller; may be called from any thread."""

    def __init__(self, server: Server, run: Qualification) -> None:
        self.server = server
        self._feed = server.feed
        self._run = run
        self._bays: dict[str, Bay] = {}
        self._is_over = False
        models = ", ".join(sorted({drive.model or "unknown drives" for drive in run.bay.drives}))
        rehearsal = "" if run.acceptance else ", a rehearsal that decides nothing"
        about = f"{len(run.bay.drives)} × {models} on {run.bay.machine}; judged by {run.spec.name}; "
        self._publish(
            Topic.RUN,
            title=run.spec.name,
            about=f"{about}protocol {run.protocol.name}{rehearsal}; run folder {run.journal and run.journal.path}",
        )

    def take(self, news: News, name: str, at_s: float) -> None:
        """News of a bay, which happened at ``at_s`` by the monotonic clock."""
        at_ms = round(1000 * (time.time() - time.monotonic() + at_s))
        bay = self._bays[name] = self._bays.get(name, Bay(name)).after(news, at_s)
        match news:
            case Load():
                self._publish(Topic.STRIP, name, at_ms=at_ms, load=_load(news, self._run.spec))
            case Now():
                now = {"round": news.round, "rounds": news.rounds, "bytes_written": news.bytes_written}
                self._publish(Topic.STRIP, name, at_ms=at_ms, iops=[round(each, 1) for each in news.iops], **now)
                return
            case Begun(what, _):
                self.log(what, at_ms)
            case Looked(told, _):
                self.log(told, at_ms)
        if bay.has_worked:
            self._tell_bay(bay, at_s, at_ms)

    def judged(self, test: str, evidence: Evidence) -> None:
        at_ms = round(1000 * time.time())
        self._publish(
            Topic.VERDICT, at_ms=at_ms, outcome=evidence.outcome.value, sentence=evidence.sentence, test=test
        )  # fmt: skip

    def log(self, text: str, at_ms: int | None = None) -> None:
        self._publish(Topic.LOG, at_ms=round(1000 * time.time()) if at_ms is None else at_ms, text=text)

    def end(self, outcomes: Mapping[str, int], status: int) -> None:
        """The last word; said once."""
        if self._is_over:
            return
        self._is_over = True
        folder = self._run.journal.path if self._run.journal else None
        self._feed.end({"text": printable.line(ending(outcomes, status, folder), LONGEST), "good": status in (0, 5)})

    def _tell_bay(self, bay: Bay, at_s: float, at_ms: int) -> None:
        step, left_s, found = bay.step, bay.left_s(at_s), bay.steadiness
        self._publish(
            Topic.BAY,
            bay.name,
            what=step.what if step else "",
            expected_s=step.expected_s if step else 0,
            began_ms=at_ms - round(1000 * (at_s - step.began_s)) if step else at_ms,
            ends_ms=None if left_s is None else at_ms + round(1000 * left_s),
            steady=found.reached if found else None,
            told=found.told if found else "",
        )

    def _publish(self, topic: Topic, bay: str = "", **facts: object) -> None:
        self._feed.publish(topic, _printable(facts), printable.line(bay, 80))


def ending(outcomes: Mapping[str, int], status: int, folder: Path | None) -> str:
    """``The run has ended: 12 passed, 1 failed. The report is …``"""
    names = [name for name in ("passed", "failed", "error", "skipped") if outcomes.get(name)]
    counted = ", ".join(f"{outcomes[name]} {name}" for name in names)
    early = {2: "was interrupted", 3: "ended by an internal error", 4: "was refused"}.get(status, "has ended")
    where = ""
    if folder:
        report = folder / page.NAME
        where = f" The report is {report}." if report.is_file() else f" The evidence is in {folder}."
    return f"The run {early}: {counted or 'no tests'}.{where}"


def _load(load: Load, spec: Spec) -> dict[str, object]:
    """The load, with what is promised and published of it; per drive where drives are side by side."""
    shown: dict[str, object] = {
        "phase": load.phase, "geometry": load.geometry, "workload": load.workload,
        "devices": [printable.line(each, 80) for each in load.devices],
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
    return _printable(shown)


def _printable(facts: Mapping[str, object]) -> dict[str, object]:
    return {name: printable.line(value, LONGEST) if isinstance(value, str) else value for name, value in facts.items()}
