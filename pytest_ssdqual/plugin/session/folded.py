"""Folds pytest's own sections of failures and errors on the terminal: one test of each cause, with its sentence.

One slow drive breaks most promises of a suite, and a drive that failed costs all tests of its arrays. JUnit and the run
folder have each test, and so has the terminal with ``-v`` or ``--tb=long``.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import pytest

from pytest_ssdqual.plugin.fleet.xdist import bay_of
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, carried_by

#: pytest's categories of reports, and values of ``--tb`` that ask for no more: the default, and that of this project's
#: own configuration, which holds for its suites in a clone.
CATEGORIES = "failed", "error"
SHORT_STYLES = "auto", "short"
#: With these no cause was found, so that two promises need not have failed for the same reason.
NO_CAUSE = Culprit.UNKNOWN, Culprit.UNEXPLAINED
#: The words between an array and the reason why it was not measured.
NOT_MEASURED = " was not measured: "


class FoldedFailures:
    """Hook around the summary: pytest counts and prints the last line afterwards, with all reports."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        stats = terminalreporter.stats
        kept = {name: stats[name] for name in CATEGORIES if name in stats}
        if _is_default(terminalreporter.config):
            stats.update({name: list(_examples(reports)) for name, reports in kept.items()})
        try:
            yield
        finally:
            stats.update(kept)


def _is_default(config: pytest.Config) -> bool:
    return config.get_verbosity() <= 0 and config.option.tbstyle in SHORT_STYLES


def _examples(reports: Sequence[pytest.TestReport]) -> Iterator[pytest.TestReport]:
    """Yield the first report of each cause, with the number of the others."""
    groups: dict[Hashable, list[pytest.TestReport]] = {}
    for report in reports:
        groups.setdefault((bay_of(report), _cause(report)), []).append(report)
    for first, *others in groups.values():
        yield _brief(first, len(others))


def _failed(report: pytest.TestReport) -> Evidence | None:
    """Return the last failed promise of a report; None without one."""
    return next((each for each in reversed(carried_by(report)) if each.outcome is Finding.FAIL), None)


def _cause(report: pytest.TestReport) -> Hashable:
    """Return what the reports of one cause have in common; those of other plugins and tests are alone."""
    failed = _failed(report)
    if failed and failed.cause and failed.cause.culprit not in NO_CAUSE:
        return failed.cause.culprit, failed.cause.drives
    message = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", ""))
    if failed or not message or not _is_sentence(_entries(report)):
        return id(report)
    return message.partition(NOT_MEASURED)[2] or message


def _entries(report: pytest.TestReport) -> list[Any]:
    """Return the entries of a report's traceback; empty if another plugin made its text."""
    return list(getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", []))


def _is_sentence(entries: Sequence[Any]) -> bool:
    """Return whether a text begins with a sentence of this program instead of a traceback."""
    return bool(entries) and entries[0].style == "value"


def _brief(report: pytest.TestReport, others: int) -> pytest.TestReport:
    """Return a copy with the sentence of a failed promise only, and the number of other tests with the same cause.

    A report of neither stays as it is, with the exceptions before its own.
    """
    text: Any = report.longrepr
    entries = _entries(report)
    is_verdict = _failed(report) is not None and _is_sentence(entries)
    if not (is_verdict or others) or not entries or not hasattr(text, "chain"):
        return report
    if is_verdict:
        entries = entries[:1]  # the rest shows ``assert verdict``, and the evidence that the run folder has
    if others:
        more = f"{others:,} more {'test' if others == 1 else 'tests'} for the same reason: -v shows each"
        entries[-1] = replace(entries[-1], lines=[*entries[-1].lines, more])
    shown = copy(report)
    traceback = replace(text.reprtraceback, reprentries=entries)
    earlier = [] if is_verdict else text.chain[:-1]
    shown.longrepr = type(text)([*earlier, (traceback, text.reprcrash, None)])
    return shown
