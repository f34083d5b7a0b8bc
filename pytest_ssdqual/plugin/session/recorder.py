"""Records the reports of a bay's tests in its run folder, and counts its verdicts at the end; on the controller.

The number of planned claims is counted after the first collection, and stays when the run is resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import pytest

from pytest_ssdqual.plugin import gate
from pytest_ssdqual.plugin.plan import needs
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, carried_by
from pytest_ssdqual.report.evidence.multiplicity import ClaimTally, properties, tally
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.report.run_folder.reader import (
    Record,
    RunReader,
    caches_at_the_end,
    still_running,
    worsened_drives,
)
from pytest_ssdqual.report.run_summary import time_budget, write_caches
from pytest_ssdqual.report.run_summary.time_budget import BudgetUse
from pytest_ssdqual.report.terminal import summary

#: Kind of the record.
KIND = "claims_planned"


def count(items: Iterable[pytest.Item]) -> int:
    """Return the number of planned claims: one for each test that judges, or one for each drive side by side.

    The count is an upper bound: some of the tests have no limit in the spec.
    """
    return sum(
        max((each.width if each.is_side_by_side else 1 for each in needs.of(item).geometries), default=0)
        for item in items
        if "ssd_sla" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("skip")
    )


def planned_in(records: Iterable[Record]) -> int | None:
    """Return the claims that a run planned when it began; None if it ended before that.

    The first record counts, so that resuming with other tests does not change the confidence of verdicts.
    """
    for record in records:
        found = record.facts.get("count") if record.kind == KIND else None
        if isinstance(found, int) and found > 0:
            return found
    return None


def plan(run: Qualification, items: Iterable[pytest.Item]) -> int:
    """Return the number of planned claims, at least one; record it unless the resumed run has."""
    before = planned_in(run.resumed.past.records) if run.resumed else None
    found = before or max(1, count(items))
    if run.journal and before is None:
        run.journal.note(KIND, count=found, control=run.protocol.verdict.family)
    return found


class Recorder:
    """Records the verdicts and reports of one bay."""

    def __init__(self, config: pytest.Config, run: BayRun) -> None:
        self._config = config
        self.run = run
        self._journal = run.qualification.journal
        #: Evidence with the ids of its tests.
        self.evidence: list[tuple[str, Evidence]] = []
        self.tally: ClaimTally | None = None
        #: Why the run folder is incomplete; empty if it is complete.
        self.incomplete = ""
        #: A report of the bay was a failure or an error.
        self.has_failed = False
        self.has_tests = False
        self.is_finished = False
        gate.of(config).tests(run.qualification.name)

    def take(self, report: pytest.TestReport) -> str:
        """Record the report of a test phase; return the error message, or nothing."""
        message = ""
        for each in carried_by(report):
            self.evidence.append((report.nodeid, each))
            record = {"test": report.nodeid, **plain(each)}
            resumed = self.run.qualification.resumed
            if changes := resumed.verdicts.news(record) if resumed else record:
                self._note(report, "verdict" if each.is_promised else "observation", changes)
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
        """Write a record to the run folder; if that fails, the report becomes an error and the session stops."""
        if self._journal is None:
            return
        try:
            self._journal.note(kind, **facts)
        except JournalError as error:
            session = self._config.pluginmanager.get_plugin("session")
            if session and not session.shouldstop:
                session.shouldstop = str(error)
            if report.outcome != "failed":
                # An error, not a failure: see ``outcome``.
                report.outcome, report.when, report.longrepr = "failed", "setup", str(error)
            # pytest has counted the report already, and xdist ignores the session's attributes.
            self.incomplete = self.incomplete or str(error)

    def add_properties(self) -> None:
        """Add the facts of the bay to JUnit's file."""
        run = self.run.qualification
        bay = run.bay
        facts = {**bay.facts, "drives": " ".join(drive.identity for drive in bay.drives)}
        facts |= {"machine": bay.machine, "spec": run.spec.key, "protocol": run.protocol.name}
        expected = str(run.expected.drives) if run.expected else "none"
        facts |= {"drives_found": str(len(bay.drives)), "drives_expected": expected}
        facts |= {"budget_s": f"{run.budget_s:g}"} if run.budget_s else {}
        self._add(facts.items())

    def _add(self, facts: Iterable[tuple[str, str]]) -> None:
        if self.run.qualification.settings.junit_properties:
            prefix = f"ssd.{self.run.qualification.name}." if self.run.qualification.name else "ssd."
            junit.add_suite_properties(self._config, [(f"{prefix}{name}", value) for name, value in facts])

    def count(self) -> None:
        """Count all verdicts, for the summary, the manifest and JUnit."""
        run = self.run.qualification
        # With xdist, the worker has counted, not this process.
        planned = None
        with suppress(OSError):  # the folder is gone: ``finish`` reports it
            if self._journal:
                story = RunReader.read(self._journal.path, KIND, *write_caches.KINDS, *time_budget.KINDS)
                planned = planned_in(story.records)
                self._add_used(BudgetUse.of(story.records), write_caches.states(story))
        of_all = replace(self.run.family, claims=planned or self.run.claims)
        self.tally = tally(self.evidence, of_all, run.protocol.verdict.confidence, run.protocol.name)
        self.run.note_judged(self.tally.to_record() if self.tally else None, gate.of(self._config).to_record(run.name))
        if self.tally:
            self._add(properties(self.tally))

    def _add_used(self, budget: BudgetUse | None, caches: str) -> None:
        self._add(budget.facts() if budget else ())
        self._add([("write_cache", caches)] if caches else ())

    def status(self, of_all: int) -> int:
        """Return the exit status of this bay, from that of the session."""
        if of_all not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            return of_all
        if self.has_failed:
            return int(pytest.ExitCode.TESTS_FAILED)
        is_green = self.has_tests and not gate.of(self._config).is_closed(self.run.qualification.name)
        return int(pytest.ExitCode.OK if is_green else pytest.ExitCode.NO_TESTS_COLLECTED)

    def finish(self, status: int) -> None:
        """Write the last record, the manifest and the page, and seal the folder; sets ``incomplete``."""
        self.is_finished = True
        try:
            self.run.finish(status)
        except JournalError as error:
            self.incomplete = str(error)

    def write_summary(self, reporter: pytest.TerminalReporter) -> None:
        """Print the table of verdicts, worsened drives, and the paths of page and run folder."""
        run = self.run
        folder = self._journal.path if self._journal else None
        summary.write_table(
            reporter,
            [each for _, each in self.evidence],
            self.tally,
            width=reporter._tw.fullwidth,
            verbosity=reporter.config.get_verbosity(),
            run_folder=folder,
            bay=run.qualification.name,
        )
        with suppress(OSError):
            wrong = worsened_drives, still_running, caches_at_the_end
            for sentence in (each for read in wrong for each in read(folder)) if folder else ():
                summary.write_line(reporter, sentence, red=True)
        if run.page:
            summary.write_line(reporter, f"{run.page}", yellow=bool(run.page.failed))
        for complaint in run.complaints:
            summary.write_line(reporter, complaint, yellow=True)
        if self.incomplete:
            summary.write_line(reporter, f"the run folder is not complete: {self.incomplete}", red=True)


def _kind(report: pytest.TestReport) -> str:
    """Return the kind of record of a test without a verdict; empty if a failed promise is the reason."""
    if report.when != "call":
        return "error"
    return "" if any(each.outcome is Finding.FAIL for each in carried_by(report)) else "failed"
