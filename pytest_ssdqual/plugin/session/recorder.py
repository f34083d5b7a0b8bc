"""Records the reports of a bay's tests in its run folder, and counts its verdicts at the end; on the controller.

The number of planned claims and the planned tests are recorded after each collection that adds some: the verdicts of a
resumed run are corrected for all of them, and a run that has not judged all of them is not green.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from pytest_ssdqual.plugin import gate
from pytest_ssdqual.plugin.fleet import xdist
from pytest_ssdqual.plugin.plan import applicability, marks, needs
from pytest_ssdqual.plugin.session import artefacts
from pytest_ssdqual.plugin.session.artefacts import Artefact
from pytest_ssdqual.plugin.session.outcome import IS_EXPECTED
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.plugin.watch.terminal import columns
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.records import plain, shallow
from pytest_ssdqual.qual.spec.claims import Claim, Scope
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.evidence import multiplicity
from pytest_ssdqual.report.evidence.evidence import EXPECTED, Evidence, Finding
from pytest_ssdqual.report.evidence.multiplicity import FamilyRecord
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.report.run_folder.manifest import JudgedTests, PlannedClaims, PlannedTests, WorsenedDrive
from pytest_ssdqual.report.run_folder.reader import CLAIMS, PLANNED, STOPPED, WORSENED, Judged, RunReader
from pytest_ssdqual.report.run_summary import write_caches
from pytest_ssdqual.report.run_summary.coverage import GROUPS, INAPPLICABLE
from pytest_ssdqual.report.run_summary.errors import PASSED, unresolved
from pytest_ssdqual.report.run_summary.fitness import Fitness, PageVerdict
from pytest_ssdqual.report.run_summary.run_view import KINDS, OF_TESTS, RunView
from pytest_ssdqual.report.run_summary.time_budget import BudgetUse
from pytest_ssdqual.report.terminal import summary
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep
from pytest_ssdqual.rig.machine.machine import utc_now

#: Kind of the records of failed measurements that were attributed.
ATTRIBUTED = "measurement_failed"


def count(items: Iterable[pytest.Item]) -> int:
    """Return the number of planned claims: those of each test that judges, of each drive side by side.

    The count is an upper bound: some of the tests have no limit in the spec.
    """
    return sum(
        max(map(_judged_at_once, needs.of(item)), default=0) * _each(item)
        for item in items
        if "ssd_sla" in marks.fixtures(item) and not item.get_closest_marker("skip")
    )


def _judged_at_once(step: CampaignStep) -> int:
    return step.geometry.width if step.geometry.is_side_by_side else 1


def _each(item: pytest.Item) -> int:
    """Return the number of verdicts of a test on one array or drive."""
    scopes = [claim.scope for claim in marks.own_claims(item)]
    series = needs.subject(item).series
    workloads = len(series.workloads) if series else 1
    return sum(1 if scope is Scope.CURVE else workloads for scope in scopes) or 1


def planned_in(story: RunReader) -> int | None:
    """Return the most claims that a session of a run planned; None if it ended before that.

    Fewer tests in a later session do not make its verdicts less strict.
    """
    return max((planned.count for planned in story.contents(PlannedClaims, CLAIMS)), default=None)


def plan(run: Qualification, items: Iterable[pytest.Item]) -> int:
    """Return the number of planned claims, at least one; record it unless the resumed run had planned as many."""
    before = planned_in(run.resumed.past.story) if run.resumed else None
    found = max(before or 1, count(items))
    if run.journal and found != before:
        run.journal.note(CLAIMS, **shallow(PlannedClaims(found, run.protocol.verdict.family)))
    return found


def tests_in(story: RunReader) -> dict[str, None]:
    """Return the ids of the planned hardware tests of all sessions, in their order."""
    return {test: None for planned in story.contents(PlannedTests, PLANNED) for test in planned.tests}


def plan_tests(run: Qualification, items: Iterable[pytest.Item], collected: Iterable[pytest.Item]) -> None:
    """Record the hardware tests that will run, with their claims, unless an earlier session has.

    Of those that were ``collected`` and will not run, only those that apply to these drives are recorded.
    """
    before = tests_in(run.resumed.past.story) if run.resumed else {}
    new = [item for item in items if marks.needs_drives(item) and item.nodeid not in before]
    kept = {item.nodeid for item in items}
    left_out = [
        item.nodeid
        for item in collected
        if item.nodeid not in kept and item.nodeid not in before and applicability.applies(item, run.bay.drives)
    ]
    if run.journal and (new or left_out):
        claims = tuple(map(_claims, new))
        promised = (each for each in sorted(set(chain(*claims))) if _is_promised(each, run.spec))
        planned = PlannedTests(tuple(item.nodeid for item in new), claims, tuple(left_out), tuple(promised))
        run.journal.note(PLANNED, **shallow(planned))


def _claims(item: pytest.Item) -> tuple[str, ...]:
    """Return what a test declares to judge: claims, or the name of its kind of test."""
    claims = marks.own_claims(item) or marks.promised(item)
    fixtures = marks.fixtures(item)
    return tuple(sorted(claims) or [name for name, fixture in GROUPS.items() if fixture in fixtures])


def _is_promised(claim: str, spec: Spec) -> bool:
    """Return whether the spec has a promise about the claim, for any array and workload."""
    return claim in GROUPS or any(sheet.promises_of(Claim(claim)) for sheet in spec.different)


class Recorder:
    """Records the verdicts and reports of one bay."""

    def __init__(self, config: pytest.Config, run: BayRun) -> None:
        self._config = config
        self.run = run
        self._journal = run.qualification.journal
        #: Evidence with the ids of its tests.
        self.evidence: list[tuple[str, Evidence]] = []
        #: What it is about.
        self._subjects: set[tuple[object, ...]] = set()
        #: Ids of tests of which a phase or a subtest failed, and of those with a failed promise that none expects.
        self._failed: dict[str, None] = {}
        self._broken: dict[str, None] = {}
        self.tally: FamilyRecord | None = None
        #: Verdict of the run over all sessions; None before its end, and without a run folder.
        self.view: RunView | None = None
        #: Why the run folder is incomplete; empty if it is complete.
        self.incomplete = ""
        self._artefacts: list[Artefact] = []
        self.has_tests = False
        self.is_finished = False
        self._gate = gate.of(config)
        self._tests = self._gate.tests(run.qualification.name)

    def take(self, report: pytest.TestReport, evidence: Sequence[Evidence]) -> str:
        """Record the report of a test phase, and the evidence that it carries; return the error message, or nothing."""
        message = ""
        for each in evidence:
            self.evidence.append((report.nodeid, each))
            is_expected = each.outcome is Finding.FAIL and getattr(report, IS_EXPECTED, False)
            record = {"test": report.nodeid, **plain(each), **({EXPECTED: True} if is_expected else {})}
            judged = Judged.of(report.nodeid, each, is_expected=is_expected)
            self._subjects.add(judged.subject)
            if each.outcome is Finding.FAIL and not is_expected:
                self._broken[report.nodeid] = None
            resumed = self.run.qualification.resumed
            earlier = resumed.verdicts.superseded(judged) if resumed else ""
            if earlier is not None:
                supersedes = {"supersedes": earlier} if earlier else {}
                self._note(report, "verdict" if each.is_promised else "observation", {**record, **supersedes})
            self._config.hook.pytest_ssdqual_record(record=record)
        if report.outcome == "failed":
            self._failed[report.nodeid] = None
        if report.outcome == "failed" and (kind := _kind(report, evidence)):
            crash = getattr(report.longrepr, "reprcrash", None)
            message = getattr(crash, "message", report.longreprtext)
            of_session = {"of_session": True} if getattr(report, xdist.OF_SESSION, False) else {}
            self._note(report, kind, {"test": report.nodeid, "message": message, **of_session})
        elif self._has_passed(report) and not evidence:
            self._note(report, PASSED, {"test": report.nodeid})
        elif report.outcome == "skipped" and not evidence:
            applies = {INAPPLICABLE: True} if getattr(report, applicability.ATTRIBUTE, False) else {}
            self._note(report, "skipped", {"test": report.nodeid, "reason": gate.reason(report), **applies})
        self.has_tests = True
        return message

    @property
    def has_failed(self) -> bool:
        """True if a report of the bay was a failure or an error."""
        return bool(self._failed)

    def _has_passed(self, report: pytest.TestReport) -> bool:
        """Return whether a test passed as a whole.

        The report of a subtest has the id of its test, and a context. The report of the test is ``passed`` although a
        subtest failed (pytest 9.2 changes it only when the terminal asks for its status).
        """
        is_of_test = report.when == "call" and getattr(report, "context", None) is None
        return is_of_test and report.outcome == "passed" and report.nodeid not in self._failed

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
        unchecked = sorted(source.value for source in run.settings.unchecked)
        facts |= {"unchecked": ",".join(unchecked)} if unchecked else {}
        self._add(facts.items())

    def _add(self, facts: Iterable[tuple[str, str]]) -> None:
        if self.run.qualification.settings.junit_properties:
            prefix = f"ssd.{self.run.qualification.name}." if self.run.qualification.name else "ssd."
            junit.add_suite_properties(self._config, [(f"{prefix}{name}", value) for name, value in facts])

    def count(self, status: int) -> None:
        """Count all verdicts, for the summary, the manifest and JUnit; ``status``: that of the session so far."""
        run = self.run.qualification
        self._close_gate_for_hidden(status)
        # With xdist, the worker has counted, not this process.
        planned, not_run, story = None, tuple[str, ...](), None
        with suppress(OSError):  # the folder is gone: ``finish`` reports it
            if self._journal:
                story = RunReader.read(self._journal.path, *KINDS, *write_caches.KINDS, ATTRIBUTED)
                planned, not_run = planned_in(story), self._not_run(story)
                changed = tuple(story.contents(WorsenedDrive, WORSENED))
                self._close_gate(not_run, [each for each in changed if each.defects])
                self._close_gate_for_degraded(story)
                findings = "; ".join(sentence for each in changed for sentence in each.sentences)
                self._add([("health_findings", findings)] if changed else ())
                self._close_gate_for_earlier(story)
                budget, caches = BudgetUse.of(story.records), write_caches.states(story)
                self._add(budget.facts() if budget else ())
                self._add([("write_cache", caches)] if caches else ())
        of_all = replace(self.run.family, claims=planned or self.run.claims)
        self.tally = multiplicity.tally(self.evidence, of_all, run.protocol.verdict.confidence)
        if manifest := self.run.manifest:
            judged = JudgedTests(**self._gate.to_record(run.name), not_run=len(not_run))
            self.run.manifest = replace(manifest, family=self.tally or manifest.family, judged=judged)
        if story and self.run.manifest:
            self.view = RunView.of(replace(story, manifest=self.run.manifest.closed(utc_now(), status)))
            self._close_gate_unless_fit(self.view.verdict)
            self._add(self.view.verdict.properties)
        if self.tally:
            self._add(multiplicity.properties(self.tally))

    def _not_run(self, story: RunReader) -> tuple[str, ...]:
        """Return the planned tests of all sessions that have no result in any."""
        done = {record.test for record in story.of(*OF_TESTS)}
        done |= self._tests.ran
        return tuple(each for each in tests_in(story) if each not in done)

    def _close(self, sentence: str, *, is_finding: bool = True) -> None:
        """Let the bay not be green; see ``Gate.close``."""
        self._gate.close(self.run.qualification.name, sentence, is_finding=is_finding)

    def _close_gate(self, not_run: Sequence[str], defective: Sequence[WorsenedDrive]) -> None:
        """Let the run not end with status 0 for what none of its tests reports."""
        if not_run:
            self._close(f"the run planned tests that it never ran: {named(not_run, 1)}", is_finding=False)
        for each in defective:
            findings = "; ".join(each.findings)
            self._close(f"{each.name} failed or has a new defect, which no test reported: {findings}")

    def _close_gate_for_degraded(self, story: RunReader) -> None:
        """Let a run not end with status 0 if an array had lost a member when it was stopped, and no test says so.

        md drops a member at any time; after an array's last reading nothing else looks at it.
        """
        if any(record.facts.get("failed") for record in story.of(ATTRIBUTED)):
            return
        for record in story.of(*STOPPED):
            objections = record.fact("objections", tuple[str, ...], ())
            if degraded := next((each for each in objections if each.startswith("degraded")), ""):
                self._close(f"an array was {degraded} when it was stopped, which no test reported")

    def _close_gate_for_hidden(self, status: int) -> None:
        """Let a run not end with status 0 if its records and pytest disagree on which tests failed.

        Hooks and plugins may change a report after this plugin, swallow it, or count it as nothing.
        """
        hidden = [test for test in self._broken if test not in self._failed]
        if status == pytest.ExitCode.OK:
            hidden = list(self._broken | self._failed)
        if hidden:
            self._close(f"tests failed by the records of this run, and a hook or plugin hides that: {named(hidden, 3)}")

    def _close_gate_for_earlier(self, story: RunReader) -> None:
        """Let a resumed run not end with status 0 for what earlier sessions found, unless this one judged it again."""
        here = self._tests
        left = unresolved(
            story,
            tests=here.judged | here.in_error,
            subjects=self._subjects,
            inconclusive=self.run.qualification.settings.inconclusive != "skip",
        )
        for tests, how in ((left.failed, "failed"), (left.undecided, "ended without a verdict")):
            if tests:
                which = named(tests, 1)
                sentence = f"tests {how} in an earlier session, and this one did not judge that again: {which}"
                self._close(sentence, is_finding=tests is left.failed)
        if story.unreadable:
            self._close(f"{story.unreadable:,} records of the run cannot be read, and one may be of a failure")

    def _close_gate_unless_fit(self, verdict: PageVerdict) -> None:
        """Let a run that is undecided, or came to no verdict, not end with status 0."""
        found, bay = self._gate, self.run.qualification.name
        if verdict.fitness not in (Fitness.UNDECIDED, Fitness.NO_VERDICT):
            return
        for promise in verdict.coverage.missing if not found.nothing_judged(bay) else ():
            self._close(str(promise), is_finding=False)
        if found.status(bay) == pytest.ExitCode.OK:
            # Hardware tests without promises leave no gap.
            sentences = verdict.gaps or (verdict.sentence,)
            self._close("; ".join(each.removesuffix(".") for each in sentences), is_finding=False)

    def status(self, of_all: int) -> int:
        """Return the exit status of this bay, from that of the session."""
        if of_all not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            return of_all
        if required := self.required_status:
            return required
        none = pytest.ExitCode.OK if self.has_tests else pytest.ExitCode.NO_TESTS_COLLECTED
        return int(none)

    @property
    def required_status(self) -> int:
        """The exit status that this bay requires, whatever others set instead; 0 if none."""
        if self.has_failed:
            return int(pytest.ExitCode.TESTS_FAILED)
        return self._gate.status(self.run.qualification.name)

    def finish(self, status: int) -> None:
        """Write the last record, the manifest and the page, close what the run opened, and seal the folder.

        Each step runs even if another one fails. Sets ``incomplete`` if evidence could not be written.
        """
        self.is_finished = True
        run, journal = self.run, self._journal
        if journal is None or run.manifest is None:
            run.stack.close()
            return
        ended = run.manifest.closed(utc_now(), status)
        try:
            with ExitStack() as last:
                last.callback(journal.seal)
                last.callback(self._write_artefacts, journal.path)
                last.callback(run.stack.close)
                last.callback(journal.write_manifest, ended.to_record())
                last.callback(journal.note, "run_ended", exit_status=status)
        except JournalError as error:
            self.incomplete = str(error)

    def _write_artefacts(self, folder: Path) -> None:
        qualification = self.run.qualification
        self._artefacts = artefacts.write_all(folder, qualification.settings, alone=not qualification.name)

    def write_summary(self, reporter: pytest.TerminalReporter) -> None:
        """Print the verdict, the table, what the run left behind, and the paths."""
        run = self.run
        folder = self._journal.path if self._journal else None
        summary.write_table(
            reporter,
            [each for _, each in self.evidence],
            multiplicity.lines(self.tally, run.qualification.protocol.name) if self.tally else (),
            width=columns(reporter),
            verbosity=self._config.get_verbosity(),
            run_folder=folder,
            bay=run.qualification.name,
            run=self.view,
        )
        with suppress(OSError):
            for sentence in RunReader.read(folder).wrongs() if folder else ():
                summary.write_line(reporter, sentence, red=True)
        artefacts.tell(reporter, self._artefacts)
        if self.incomplete:
            summary.write_line(reporter, f"the run folder is not complete: {self.incomplete}", red=True)


def _kind(report: pytest.TestReport, evidence: Sequence[Evidence]) -> str:
    """Return the kind of record of a test without a verdict; empty if a failed promise is the reason."""
    if report.when != "call":
        return "error"
    return "" if any(each.outcome is Finding.FAIL for each in evidence) else "failed"
