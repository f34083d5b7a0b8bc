"""On the controller: what the reports of a bay's tests carry goes into its run folder, and is counted at the end.

How many claims a run makes: counted when its tests are collected, and kept for as long as the run is continued.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin import gate
from pytest_ssdqual.plugin.plan import needs
from pytest_ssdqual.plugin.session.state import Qualification
from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, carried_by
from pytest_ssdqual.report.evidence.multiplicity import ClaimTally, properties, tally
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.report.run_folder.reader import Record, read_records, still_running, worsened_drives
from pytest_ssdqual.report.terminal import summary

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification


#: Kind of the record.
KIND = "claims_planned"


def count(items: Iterable[pytest.Item]) -> int:
    """One for each test that asks for verdicts, one for each drive where drives side by side are judged one by one.

    Rather too many than too few: of some of them it turns out only later that nothing is promised.
    """
    return sum(
        max((each.width if each.is_side_by_side else 1 for each in needs.of(item).geometries), default=0)
        for item in items
        if "ssd_sla" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("skip")
    )


def planned_in(records: Iterable[Record]) -> int | None:
    """What a run counted when it began; None if it did not get there.

    The first record counts: who resumes a run, with whatever tests, does not change how sure its failures have to be.
    """
    for record in records:
        found = record.facts.get("count") if record.kind == KIND else None
        if isinstance(found, int) and found > 0:
            return found
    return None


def plan(run: Qualification, items: Iterable[pytest.Item]) -> int:
    """How many claims the run is planned to make, at least one; noted unless it resumes one that did so."""
    before = planned_in(run.resumed.past.records) if run.resumed else None
    found = before or max(1, count(items))
    if run.journal and before is None:
        run.journal.note(KIND, count=found, control=run.protocol.verdict.family)
    return found


class Recorder:
    """Of one bay."""

    def __init__(self, config: pytest.Config, run: Qualification) -> None:
        self._config = config
        self.run = run
        #: With the ids of their tests.
        self.evidence: list[tuple[str, Evidence]] = []
        self.tally: ClaimTally | None = None
        #: Why the run folder is not whole; empty if it is.
        self.incomplete = ""
        #: Something was not as it should be.
        self.has_failed = False
        self.has_tests = False
        self.is_finished = False
        gate.of(config).tests(run.name)

    def take(self, report: pytest.TestReport) -> str:
        """Part of a test has ended: what went wrong if there is no verdict, or nothing."""
        message = ""
        for each in carried_by(report):
            self.evidence.append((report.nodeid, each))
            record = {"test": report.nodeid, **each.to_record()}
            resumed = self.run.resumed
            if news := resumed.verdicts.news(record) if resumed else record:
                self._note(report, "verdict" if each.is_promised else "observation", news)
            self._config.hook.pytest_ssdqual_record(record=record)
        if report.outcome == "failed" and (kind := _kind(report)):
            crash = getattr(report.longrepr, "reprcrash", None)
            message = getattr(crash, "message", report.longreprtext)
            self._note(report, kind, {"test": report.nodeid, "message": message})
        elif report.outcome == "skipped" and not carried_by(report):
            self._note(report, "skipped", {"test": report.nodeid, "reason": gate.reason(report)})
        self.has_tests = True
        self.has_failed |= report.outcome == "failed"
        return message

    def _note(self, report: pytest.TestReport, kind: str, facts: dict[str, object]) -> None:
        """Into the run folder; what cannot be kept there must not be green, and nothing more is tried."""
        if self.run.journal is None:
            return
        try:
            self.run.journal.note(kind, **facts)
        except JournalError as error:
            session = self._config.pluginmanager.get_plugin("session")
            if session and not session.shouldstop:
                session.shouldstop = str(error)
            if report.outcome != "failed":
                # An error, not a failure: see ``outcome``.
                report.outcome, report.when, report.longrepr = "failed", "setup", str(error)
            # pytest has counted the report already, and xdist looks at nothing that is noted in the session.
            self.incomplete = self.incomplete or str(error)

    def add_properties(self) -> None:
        """What was tested, into JUnit's file."""
        run, bay = self.run, self.run.bay
        facts = {**bay.facts, "drives": " ".join(drive.identity for drive in bay.drives)}
        facts |= {"machine": bay.machine, "spec": run.spec.key, "protocol": run.protocol.name}
        expected = str(run.expected.drives) if run.expected else "none"
        facts |= {"drives_found": str(len(bay.drives)), "drives_expected": expected}
        self._add(facts.items())

    def _add(self, facts: Iterable[tuple[str, str]]) -> None:
        if self.run.settings.junit_properties:
            prefix = f"ssd.{self.run.name}." if self.run.name else "ssd."
            junit.add_suite_properties(self._config, [(f"{prefix}{name}", value) for name, value in facts])

    def count(self) -> None:
        """All verdicts together: for the summary, the manifest and JUnit."""
        run = self.run
        # Where xdist collects, this process has not counted.
        planned = None
        with suppress(OSError):  # a folder that is gone: ``finish`` says so
            planned = planned_in(read_records(run.journal.path)) if run.journal else None
        of_all = replace(run.family, claims=planned or run.claims)
        self.tally = tally(self.evidence, of_all, run.protocol.verdict.confidence, run.protocol.name)
        if run.manifest:
            judged = gate.of(self._config).to_record(run.name)
            of_claims = self.tally.to_record() if self.tally else run.manifest.family
            run.manifest = replace(run.manifest, family=of_claims, judged=judged)
        if self.tally:
            self._add(properties(self.tally))

    def status(self, of_all: int) -> int:
        """The exit status of this bay alone, by that of the session."""
        if of_all not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            return of_all
        if self.has_failed:
            return int(pytest.ExitCode.TESTS_FAILED)
        is_green = self.has_tests and not gate.of(self._config).is_closed(self.run.name)
        return int(pytest.ExitCode.OK if is_green else pytest.ExitCode.NO_TESTS_COLLECTED)

    def finish(self, status: int) -> None:
        """The last line, the manifest, the page and the seal; see ``incomplete``."""
        self.is_finished = True
        try:
            self.run.finish(status)
        except JournalError as error:
            self.incomplete = str(error)

    def tell(self, reporter: pytest.TerminalReporter) -> None:
        """The table of its verdicts, what became of its drives, and where to read on."""
        run = self.run
        folder = run.journal.path if run.journal else None
        summary.write_table(
            reporter,
            [each for _, each in self.evidence],
            self.tally,
            width=reporter._tw.fullwidth,
            verbosity=reporter.config.get_verbosity(),
            run_folder=folder,
            bay=run.name,
        )
        with suppress(OSError):
            for sentence in (*worsened_drives(folder), *still_running(folder)) if folder else ():
                summary.tell(reporter, sentence, red=True)
        if run.page:
            summary.tell(reporter, f"{run.page}", yellow=bool(run.page.failed))
        for complaint in run.complaints:
            summary.tell(reporter, complaint, yellow=True)
        if self.incomplete:
            summary.tell(reporter, f"the run folder is not complete: {self.incomplete}", red=True)


def _kind(report: pytest.TestReport) -> str:
    """Of the record of a test that ended without a verdict; none where a broken promise is the reason."""
    if report.when != "call":
        return "error"
    return "" if any(each.outcome is Finding.FAIL for each in carried_by(report)) else "failed"
