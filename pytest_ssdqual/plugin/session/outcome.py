"""Shapes pytest's reports: a failed rig is an error of one sentence, a failed promise a failure of one sentence.

JUnit and pytest tell the two by the phase of a report. Other plugins keep accounts by phase, too (rerunfailures fails
with an INTERNALERROR if the report of a setup claims to be that of the call). So a verdict of a fixture is raised in
the call, and only the outermost hook changes the phase of an error of the call.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import pytest

from pytest_ssdqual.plugin import gate
from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.plugin.session.attachments import Attachments
from pytest_ssdqual.plugin.stash import EVIDENCE, RUN, SENT, keep_evidence
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.ci.junit import properties, section
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.report.evidence.evidence import ATTRIBUTE, Evidence, Finding, attach
from pytest_ssdqual.rig.drives.failed import DriveFailed
from pytest_ssdqual.rig.machine.machine import SENTENCE_CHARACTERS, InvalidMeasurement, RigError, Unforeseen

#: On an item: the verdict that its setup raised, for the call.
VERDICT: pytest.StashKey[BaseException] = pytest.StashKey()
#: On an item: the attributes of the last report that ``shape`` gave its final form.
SHAPED: pytest.StashKey[dict[str, object]] = pytest.StashKey()
#: On an item: its test has begun.
HAS_RUN: pytest.StashKey[bool] = pytest.StashKey()
AGAIN = "the test has run in this session: nothing is measured or counted twice; remove the plugin that repeats tests"
#: Attribute of a report of an error, in any phase. Plain, so that xdist carries it.
IS_ERROR = "ssdqual_error"
#: Attribute of a report of a failed promise that the test's mark ``xfail`` expects.
IS_EXPECTED = "ssdqual_expected"


@dataclass(eq=False)
class OutermostHooks:
    """Hooks around those of all other plugins. They are registered after the collection, because the last one wraps
    the others, and conftest files of folders are plugins, too.
    """

    attachments: Attachments | None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            return (yield)
        except BaseException as error:
            if not _is_verdict(item, error):
                raise
            item.stash[VERDICT] = error
            return None

    # What follows raises inside of all wrappers, in which plugins prepare themselves for the phase.
    @pytest.hookimpl(tryfirst=True, specname="pytest_runtest_setup")
    def pytest_runtest_setup_once(self, item: pytest.Item) -> None:
        """Raise ``pytest.UsageError`` if a plugin repeats a hardware test."""
        if marks.needs_drives(item) and item.stash.get(HAS_RUN, False):
            raise pytest.UsageError(AGAIN)
        item.stash[HAS_RUN] = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        if VERDICT in item.stash:
            error = item.stash[VERDICT]
            del item.stash[VERDICT]
            raise error

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        _restore(item, report)
        if getattr(report, IS_ERROR, False) and report.when == "call":
            # pytest calls it an error only outside of the call phase; JUnit then writes <error>.
            report.when = "setup"
        if self.attachments:
            self.attachments.attach(item, report)
        return report


def _is_verdict(item: pytest.Item, error: BaseException) -> bool:
    """Return True if what a setup raised is a verdict on the drives, which is reported by the call."""
    if not isinstance(error, (Exception, pytest.fail.Exception)) or getattr(error, "ends_run", False):
        return False
    run = item.config.stash[RUN]
    if isinstance(error, DriveFailed):
        return any(run.is_unreported(drive.serial, item.nodeid) for drive in error.drives)
    if _newly_failed(item):
        return True
    is_assertion = isinstance(error, (AssertionError, pytest.fail.Exception))
    return is_assertion and any(each.outcome == Finding.FAIL for each in item.stash.get(EVIDENCE, ()))


def _restore(item: pytest.Item, report: pytest.TestReport) -> None:
    """Undo what hooks of other plugins made of the shaped report of a hardware test.

    None may turn a failure or an error into anything else. What they made fail (a test that took too long, say) is no
    verdict, so it is an error.
    """
    shaped = item.stash.get(SHAPED, None)
    if shaped is None or not marks.needs_drives(item):
        return
    del item.stash[SHAPED]
    if shaped["outcome"] == "failed" != report.outcome:
        report.__dict__.update(shaped)
        if "wasxfail" not in shaped:
            report.__dict__.pop("wasxfail", None)
    elif report.outcome == "failed" != shaped["outcome"]:
        setattr(report, IS_ERROR, True)
    for name in (gate.ATTRIBUTE, ATTRIBUTE):
        if name in shaped:
            setattr(report, name, shaped[name])


def is_concerned(item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
    """Return True if a report is about drives: other tests of the session keep pytest's own reports.

    Fixtures of the session end after its last test, whichever that is.
    """
    uses_drives = any(name.startswith("ssd_") for name in marks.fixtures(item))
    is_rig = call.excinfo is not None and isinstance(call.excinfo.value, RigError)
    return marks.needs_drives(item) or uses_drives or is_rig


def shape(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, *, junit: bool) -> None:
    """Give the report of a hardware test its final form, but for its phase; ``junit``: with properties."""
    _shape(item, call, report, junit=junit)
    item.stash[SHAPED] = dict(report.__dict__)


def _shape(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, *, junit: bool) -> None:
    evidence = item.stash.setdefault(EVIDENCE, [])
    new = evidence[item.stash.get(SENT, 0) :]
    caught = call.excinfo
    _require_error(report, caught)
    if not _is_final(report, caught) and (lost := _newly_failed(item)):
        report.__dict__.pop("wasxfail", None)
        caught, report.outcome = _caught(lost), "failed"
    died = caught.value if caught and isinstance(caught.value, DriveFailed) else None
    is_verdict = died is not None and report.when == "call" and _is_first(item, died)
    if died and is_verdict:
        keep_evidence(item, health.of_failures(died.about, died.drives))
        new.append(evidence[-1])
    elif hidden := _hidden(item, caught, report, new):
        report.__dict__.pop("wasxfail", None)
        caught, report.outcome = _caught(hidden), "failed"
        report.longrepr = caught.getrepr(style="value")
    if new and not _continues(report):
        # Each once: the subtests of a test have reports of their own before that of the test.
        item.stash[SENT] = len(evidence)
        attach(report, new)
        if junit:
            # On the item, not on this report: JUnit takes them from the report of the teardown.
            item.user_properties += properties(new, first=len(evidence) - len(new) + 1)
    if report.outcome == "skipped" and hasattr(report, "wasxfail"):
        setattr(report, IS_EXPECTED, True)
    if caught is None or report.outcome != "failed":
        return
    _make_printable(report)
    if is_verdict:
        _as_verdict(caught, report, evidence, call.excinfo)
    else:
        _explain(item, caught, report, [each.sentence for each in new if each.outcome == "fail"])


def _explain(
    item: pytest.Item, caught: pytest.ExceptionInfo[BaseException], report: pytest.TestReport, failed: Sequence[str]
) -> None:
    """Let the report of an exception say whether a promise failed, in its sentence, or the measurement did."""
    if isinstance(caught.value, (RigError, pytest.UsageError)):  # wrong usage is no failure of a drive
        _as_error(item, caught, report)
    elif not isinstance(caught.value, (AssertionError, pytest.fail.Exception)):
        # An exception of the test or of this program is an error with its whole traceback, not a failure of a drive.
        setattr(report, IS_ERROR, True)
    elif failed:
        _say(report, failed[-1])
        _begin(report, failed[-1])
        evidence: list[Evidence] = item.stash.get(EVIDENCE, [])
        _add_section(report, evidence)
    elif _is_of_plugin(item, caught):
        setattr(report, IS_ERROR, True)


def _is_of_plugin(item: pytest.Item, caught: pytest.ExceptionInfo[BaseException]) -> bool:
    """Return True if an installed plugin ended the test (``pytest.fail``), as pytest-timeout does."""
    if not isinstance(caught.value, pytest.fail.Exception):
        return False
    modules = (str(entry.frame.f_globals.get("__name__")) for entry in caught.traceback)
    raised_in = [name for name in modules if not name.startswith("_pytest.")][-1:]
    registered = item.config.pluginmanager.list_name_plugin()
    plugins = {getattr(plugin, "__name__", "") for _, plugin in registered}
    return any(name in plugins and not name.endswith("conftest") for name in raised_in)


def _require_error(report: pytest.TestReport, caught: pytest.ExceptionInfo[BaseException] | None) -> None:
    """Let an error be one whatever a hook or the mark ``xfail`` made of it, which expects a failed promise only."""
    if caught and isinstance(caught.value, (RigError, pytest.UsageError)) and report.outcome != "failed":
        report.__dict__.pop("wasxfail", None)
        report.outcome, report.longrepr = "failed", caught.getrepr(style="value")


def _hidden(
    item: pytest.Item,
    caught: pytest.ExceptionInfo[BaseException] | None,
    report: pytest.TestReport,
    new: Sequence[Evidence],
) -> AssertionError | InvalidMeasurement | None:
    """Return the failed promise that a report would hide, or else the inconclusive one; None if there is none.

    Tests lack an ``assert``, are skipped by a later claim without a limit, or catch the exception. A skip may be for an
    inconclusive promise (``ssd_inconclusive``). The mark ``xfail`` expects failures, and nothing else; a hook that only
    writes ``wasxfail`` into the report has no mark.
    """
    if report.outcome == "failed" or _continues(report):
        return None
    sentences = {each.outcome: each.sentence for each in new}
    if Finding.FAIL in sentences:
        is_marked = item.get_closest_marker("xfail") or (caught and isinstance(caught.value, pytest.xfail.Exception))
        is_expected = is_marked and hasattr(report, "wasxfail")
        return None if is_expected else AssertionError(sentences[Finding.FAIL])
    if Finding.INCONCLUSIVE in sentences and report.outcome == "passed":
        return InvalidMeasurement(sentences[Finding.INCONCLUSIVE])
    return None


def _continues(report: pytest.TestReport) -> bool:
    """Return True after a setup that passed: the report of the call carries its evidence, and asserts it."""
    return report.when == "setup" and report.outcome == "passed"


def require_judged(item: pytest.Item) -> None:
    """Raise ``pytest.UsageError`` if a test passed without judging the claims that it declares.

    Of the claims that its class or module declares for several tests, a test needs to judge one. So does a test of a
    lot, whose evidence is about the plan.
    """
    names = marks.fixtures(item)
    judged = {each.claim for each in item.stash.get(EVIDENCE, ())}
    own = marks.own_claims(item)
    if not own and "ssd_sla" not in names:
        return
    if judged and (not own or "ssd_lot" in names):
        return
    if left := sorted((own or marks.promised(item)) - judged):
        raise pytest.UsageError(f"the test passed without judging {', '.join(left)}, which its mark ssd_promise names")


def _newly_failed(item: pytest.Item) -> DriveFailed | None:
    """Return the failure of drives side by side that no test has reported, if the test is about them; else None.

    The others were measured without them. A lot's plan counts them itself.
    """
    geometry = needs.subject(item).geometry
    run = item.config.stash.get(RUN, None)
    if run is None or geometry is None or not geometry.is_side_by_side:
        return None
    if "ssd_lot" in marks.fixtures(item):
        return None
    members = run.failures.among(run.qualification.bay.drives[: geometry.width])
    new = [each for each in members if run.is_unreported(each.serial, item.nodeid)]
    return DriveFailed(new[0].under, new) if new else None


def _caught(error: Exception) -> pytest.ExceptionInfo[BaseException]:
    """Return the error as if it had been raised here: pytest requires a traceback."""
    try:
        raise error
    except type(error):
        return pytest.ExceptionInfo.from_current()


def _is_final(report: pytest.TestReport, caught: pytest.ExceptionInfo[BaseException] | None) -> bool:
    """Return True if the failure of a drive must not replace this report."""
    if report.when == "teardown" or caught is None:
        return report.when != "call"
    error = caught.value
    if isinstance(error, pytest.skip.Exception):
        return report.when == "setup"
    is_of_test = isinstance(error, (Exception, pytest.fail.Exception))
    return isinstance(error, DriveFailed) or not is_of_test or getattr(error, "ends_run", False)


def _is_first(item: pytest.Item, error: DriveFailed) -> bool:
    """Note in which test drives failed; return whether this test is the one to report one of them."""
    run = item.config.stash[RUN]
    new = [each.serial for each in error.drives if run.is_unreported(each.serial, item.nodeid)]
    run.failed_in |= dict.fromkeys(new, item.nodeid)
    run.reported.update(new)
    return bool(new)


def _as_verdict(
    caught: pytest.ExceptionInfo[BaseException],
    report: pytest.TestReport,
    evidence: Sequence[Evidence],
    raised: pytest.ExceptionInfo[BaseException] | None,
) -> None:
    """Report the failure of drives as the verdict of the test, with what else it ``raised`` about the other drives."""
    report.longrepr = caught.getrepr(style="value")
    others = [each.sentence for each in evidence[:-1] if each.outcome == "fail"]
    if raised and raised.value is not caught.value and isinstance(raised.value, RigError):
        others.append(str(raised.value))
    _say(report, "; ".join((evidence[-1].sentence, *others)))
    _add_section(report, evidence)


def _add_section(report: pytest.TestReport, evidence: Sequence[Evidence]) -> None:
    """Let the text of a failure end with the evidence, unless another plugin made the text."""
    add_section = getattr(report.longrepr, "addsection", None)
    if add_section is not None:
        add_section("evidence", section(evidence))


def _as_error(item: pytest.Item, caught: pytest.ExceptionInfo[BaseException], report: pytest.TestReport) -> None:
    if isinstance(caught.value, RigError) and caught.value.ends_run:
        run = item.config.stash[RUN]
        if report.when == "teardown" and (item.session.shouldstop or run.lost):
            report.outcome, report.longrepr = "passed", None  # the call has reported the error
            return
        # Nothing else can be measured or recorded: skip the rest; JUnit is still written.
        if run.qualification.name:  # the other bays continue
            run.lost = run.lost or str(caught.value)
        else:
            item.session.shouldstop = str(caught.value)
    setattr(report, IS_ERROR, True)
    is_new = isinstance(caught.value, Unforeseen) and caught.value.__cause__  # keep the traceback: it may be a bug
    if item.config.get_verbosity() < 2 and not is_new:
        report.longrepr = caught.getrepr(style="value")
    _say(report, _pointing(item, caught.value) if isinstance(caught.value, DriveFailed) else str(caught.value))


def _pointing(item: pytest.Item, error: DriveFailed) -> str:
    """Return the sentence of a test that lost a drive which had failed in another one."""
    seen = item.config.stash[RUN].failed_in
    places = dict.fromkeys(health.failed_in(each.serial, seen[each.serial]) for each in error.drives)
    return f"{error.about} was not measured: {'; '.join(places)}"


def _make_printable(report: pytest.TestReport) -> None:
    """Escape the text of an exception, which may quote a drive, a tool or a file. Its first line begins with E."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = safe_text.lines(crash.message, SENTENCE_CHARACTERS)
    for entry in getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", []):
        is_native = entry.style == "native"  # Python's own traceback, source lines included
        first = next(
            (at for at, line in enumerate(entry.lines) if is_native or line.startswith("E ")), len(entry.lines)
        )
        entry.lines[first:] = [safe_text.lines(line, SENTENCE_CHARACTERS) for line in entry.lines[first:]]


def _say(report: pytest.TestReport, sentence: str) -> None:
    """Let the short summary and JUnit's message begin with the sentence itself."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = safe_text.lines(sentence, SENTENCE_CHARACTERS)


def _begin(report: pytest.TestReport, sentence: str) -> None:
    """Let the text of a failure begin with the sentence, too: GitLab shows that and not the message.

    As an entry of the traceback, which is what xdist carries; not if the traceback is Python's own (--tb=native).
    """
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    if entries and hasattr(entries[0], "reprfileloc"):
        nothing = {"reprfuncargs": None, "reprlocals": None, "reprfileloc": None}
        line = safe_text.lines(sentence, SENTENCE_CHARACTERS)
        entries.insert(0, replace(entries[0], lines=[line], style="value", **nothing))
