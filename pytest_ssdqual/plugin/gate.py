"""Gate against green runs without a verdict: another exit status of pytest instead of 0, with the reasons.

It is 5 if nothing was judged, or not every promise and everything that was planned, and 1 if a drive got worse.

Without drives all hardware tests are skipped, and pytest counts that as a success. Every pytest run of the environment
loads this module, so it imports the rest of the package only when there are hardware tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_ssdqual.plugin.options import values

NAME = "ssdqual-gate"
#: Attribute of the report of a test with the mark ``ssd_array``. Its value is plain, so xdist sends it to the
#: controller.
ATTRIBUTE = "ssdqual_hardware"
#: Number of reasons in a sentence; the most frequent come first.
MOST_REASONS = 3
OBSERVED = "it was measured, but the spec has no limit for it"
UNDECIDED = "it was inconclusive (ssd_inconclusive = skip)"
BOUNDED = "something above the drives is the bottleneck"
HEALTHY = "it judges the health of the drives only"
PERMIT = (
    "in the configuration, ssd_required_claims lists what must be judged, and ssd_require_verdicts = false permits a "
    "run without verdicts"
)


@dataclass(slots=True)
class HardwareTests:
    """Results of the hardware tests of one bay, by test id."""

    ran: set[str] = field(default_factory=set)
    #: Tests that passed or failed.
    judged: set[str] = field(default_factory=set)
    #: Tests without a verdict because of an error; they make the exit status 1 in any case.
    in_error: set[str] = field(default_factory=set)
    #: The reason of each test that was skipped.
    skipped: dict[str, str] = field(default_factory=dict)

    def take(self, report: pytest.TestReport) -> None:
        """Count one report; a test has one for each of its phases."""
        test, outcomes = report.nodeid, _outcomes(report)
        self.ran.add(test)
        if _is_healthy_only(report):
            # It is no verdict on what the drives do: alone it must not make a run green.
            self.skipped[test] = HEALTHY
        elif outcomes & {"pass", "fail"} or (report.when == "call" and report.outcome in ("passed", "failed")):
            self.judged.add(test)
        elif report.outcome == "failed":
            self.in_error.add(test)
        elif report.outcome == "skipped":
            stated = OBSERVED if outcomes else reason(report)
            if "bounded" in outcomes:
                stated = BOUNDED
            self.skipped[test] = UNDECIDED if "inconclusive" in outcomes else stated or "no reason was given"

    @property
    def nothing_judged(self) -> str:
        """Reasons why no test was judged, without a full stop; empty if a test was judged, or if there is none."""
        if not self.ran or self.judged or self.in_error:
            return ""
        several = f"all {len(self.ran):,} hardware tests were" if len(self.ran) > 1 else "the only hardware test was"
        return f"{several} skipped: {frequent(self.skipped.values()) or 'none of them was run'}"


class Gate:
    """Hooks of the process that returns the exit status: the only process, or xdist's controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_required = values.truth(config, "ssd_require_verdicts")
        #: By bay; a run with one bay, or without drives, has the empty name.
        self._bays: dict[str, HardwareTests] = {}
        #: By bay and sentence, whether it is a finding about the product; see ``close``.
        self._objections: dict[str, dict[str, bool]] = {}
        self._shown: list[str] = []
        #: Whether a test ran that is about no drive.
        self._has_others = False

    def tests(self, bay: str) -> HardwareTests:
        """Return the tests of a bay; from now on the run has that bay."""
        return self._bays.setdefault(bay, HardwareTests())

    def nothing_judged(self, bay: str) -> str:
        """Reasons why a bay has no verdict; empty if it has one, or if the run has no tests."""
        tests = self.tests(bay)
        if tests.ran or tests.in_error:
            return tests.nothing_judged
        if any(each.ran for each in self._bays.values()):
            return "no hardware test was selected for it"
        return "no hardware test was selected" if self._has_others else ""

    def close(self, bay: str, sentence: str, *, is_finding: bool = True) -> None:
        """Let a bay not be green for a reason that no test reports.

        ``is_finding``: it is about the product; else it is about missing verdicts, which a configuration may permit.
        """
        self._objections.setdefault(bay, {})[sentence] = is_finding

    def status(self, bay: str) -> int:
        """Return the exit status of a bay all of whose tests passed or were skipped."""
        found = self._objections.get(bay, {}).values()
        if any(found):
            return int(pytest.ExitCode.TESTS_FAILED)
        is_incomplete = bool(found) or (bay in self._bays and bool(self.nothing_judged(bay)))
        return int(pytest.ExitCode.NO_TESTS_COLLECTED if is_incomplete and self._is_required else pytest.ExitCode.OK)

    def to_record(self, bay: str) -> dict[str, Any]:
        """Return the counts of a bay for its manifest."""
        tests = self.tests(bay)
        return {
            "hardware_tests": len(tests.ran),
            "judged": len(tests.judged),
            "in_error": len(tests.in_error),
            "nothing_judged": self.nothing_judged(bay),
        }

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        is_hardware = getattr(report, ATTRIBUTE, False)
        self._has_others = self._has_others or not is_hardware
        if not is_hardware and not (self._bays and report.failed):
            return
        from pytest_ssdqual.plugin.fleet import xdist

        bay = xdist.bay_of(report)
        if is_hardware:
            self.tests(bay).take(report)
        elif bay:  # the run gave up this bay; its error has no hardware test
            self.tests(bay).in_error.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Set the exit status before pytest writes the JUnit file. One bay without a verdict closes the gate."""
        if self._bays and values.truth(self._config, "ssd_junit_properties"):
            self._add_properties()
        bays = dict.fromkeys((*self._bays, *self._objections))
        statuses = {self.status(bay) for bay in bays} - {int(pytest.ExitCode.OK)}
        if not statuses:
            return
        is_green = session.exitstatus == pytest.ExitCode.OK
        if is_green:
            session.exitstatus = min(statuses)
        for bay in bays:
            self._show(bay, is_green=is_green)
        if is_green:
            permit = f"; {PERMIT}" if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED else ""
            self._shown.append(f"ssdqual: exit status {int(session.exitstatus)} instead of 0{permit}")

    def _show(self, bay: str, *, is_green: bool) -> None:
        """Add JUnit errors, for CIs that ignore the exit status, and lines for the summary.

        A JUnit file with only skipped tests looks green. Of a run that is not green, objections are in its other files.
        """
        from pytest_ssdqual.report.ci import junit

        why = self.nothing_judged(bay) if bay in self._bays and self._is_required else ""
        objections = "; ".join(self._objections.get(bay, {})) if is_green else ""
        for name, sentence in (("nothing was judged", why), ("not green", objections)):
            if sentence:
                junit.add_error(self._config, f"ssdqual::{name}{bay and f'[{bay}]'}", sentence)
                self._shown.append(f"ssdqual: {f'{bay}: ' if bay else ''}{name}: {sentence}")

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._shown:
            from pytest_ssdqual.report.terminal import summary

            for line in self._shown:
                summary.write_line(terminalreporter, line, red=True)

    def _add_properties(self) -> None:
        from pytest_ssdqual.report.ci import junit

        for bay in self._bays:
            facts = {name: str(value) for name, value in self.to_record(bay).items() if value != ""}
            prefix = f"ssd.{bay}." if bay else "ssd."
            junit.add_suite_properties(self._config, [(f"{prefix}{name}", facts[name]) for name in facts])


def register(config: pytest.Config) -> None:
    """Register the gate, except for plans (``--collect-only``) and on xdist's workers."""
    is_plan = config.option.collectonly or config.option.setuponly
    if not hasattr(config, "workerinput") and not is_plan:
        config.pluginmanager.register(Gate(config), NAME)


def of(config: pytest.Config) -> Gate:
    """Return the gate of this run, or an empty one where none is registered."""
    found: Gate | None = config.pluginmanager.get_plugin(NAME)
    return found or Gate(config)


def frequent(reasons: Iterable[str]) -> str:
    """Return the most frequent reasons, each with its number if there are several; empty without any."""
    found = Counter(reasons).most_common()
    shown = [f"{why} ({count:,})" if len(found) > 1 else why for why, count in found[:MOST_REASONS]]
    more = [f"and {len(found) - MOST_REASONS:,} other reasons"] if len(found) > MOST_REASONS else []
    return "; ".join([*shown, *more])


def reason(report: pytest.TestReport) -> str:
    """Return the reason of a skipped test."""
    found = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
    return str(found).removeprefix("Skipped: ")


def _outcomes(report: pytest.TestReport) -> set[str]:
    """Return the outcomes of the evidence that a report carries; see ``report.evidence.evidence``."""
    return {str(record.get("outcome")) for record in _records(report)}


def _is_healthy_only(report: pytest.TestReport) -> bool:
    """Return True if all that a test says is that the drives are healthy."""
    records = _records(report)
    if not records:
        return False
    from pytest_ssdqual.report.evidence.health import OF_HEALTH

    return all(record.get("claim") in OF_HEALTH and record.get("outcome") == "pass" for record in records)


def _records(report: pytest.TestReport) -> list[Mapping[str, object]]:
    found: list[Mapping[str, object]] = getattr(report, "ssdqual", [])
    return found
