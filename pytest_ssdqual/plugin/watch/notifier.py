"""Notifies people who are elsewhere, by the hook ``pytest_ssdqual_notify`` and the receivers of ``--ssd-notify``.

Each delivery has a daemon thread: nothing that a receiver does, or does not do, can end or delay a measurement. What
could not be delivered is a line of the summary and a record of the run folder.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.watch.receivers import Receiver
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.notification import Notification, Occasion, redacted
from pytest_ssdqual.qual.progress_events import BayProgress, RunProgress
from pytest_ssdqual.qual.units import format_clock, format_duration
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.rig.machine.machine import utc_now

#: Seconds before the only other attempt; none once the run has ended.
RETRY_S = 5.0
#: Seconds for which the summary waits for receivers, all together; the run is complete then.
DRAIN_S = 15.0
#: Longest time between two checks for stalls.
CHECK_S = 30.0
#: A step without live statistics, such as a purge, may take this many times its planned time.
LATE = 2.0
#: A step whose time is unknown may take this many times the limit.
UNPLANNED = 4.0
SENTENCE_CHARACTERS = 600
#: Bays that notify of the same occasion before the end: a rack that has lost its network is one message, not forty.
MOST_BAYS = 10
THE_LAST = f"({MOST_BAYS} bays by now; of further ones only the end reports it)"
ENDINGS = {2: "The run was interrupted", 3: "The run ended by an internal error"}


class Delivery(threading.Thread):
    """Delivers a notification to one receiver, after the one before it."""

    def __init__(
        self, receiver: Receiver, event: Notification, before: Delivery | None, is_over: threading.Event
    ) -> None:
        super().__init__(name="ssdqual-notify", daemon=True)
        self.receiver = receiver
        self.event = event
        self._before = before
        self._is_over = is_over
        #: Reason why it is not delivered; empty if it is.
        self.why = "no answer in time"

    def run(self) -> None:
        if self._before:
            self._before.join()
        for pause_s in (RETRY_S, 0.0):
            try:
                self.receiver.send(self.event)
            except BaseException as error:  # a receiver, or pytest.fail in a hook of the site: never the run's problem
                self.why = redacted(f"{type(error).__name__}: {error}")
                self._is_over.wait(pause_s)
            else:
                self.why = ""
                break

    @property
    def complaint(self) -> str:
        """A sentence about a notification that is not delivered."""
        return safe_text.line(
            f"{self.receiver.name} was not notified of the {self.event.what}: {self.why}", SENTENCE_CHARACTERS
        )


class Notifier:
    """Decides on the controller what is worth a notification, and delivers it to every receiver."""

    def __init__(
        self,
        config: pytest.Config,
        receivers: Iterable[Receiver],
        runs: Sequence[Qualification],
        folder: Path | None,
        stall_s: float,
    ) -> None:
        """``stall_s``: seconds without a measurement after which a stall is reported; 0: never."""
        hook = config.hook.pytest_ssdqual_notify
        self._receivers = [*receivers, Receiver("pytest_ssdqual_notify", lambda event: hook(notification=event))]
        self._runs = {run.name: run for run in runs}
        self._folder = folder
        self._deliveries: list[Delivery] = []
        #: Verdicts by bay.
        self._verdicts = {name: Counter[str]() for name in self._runs}
        #: Bays that have notified, by occasion.
        self._notified: dict[Occasion, set[str]] = {occasion: set() for occasion in Occasion}
        self._stall_s = stall_s
        self._is_over = threading.Event()
        self._lock = threading.Lock()

    def watch(self, progress: RunProgress) -> None:
        """Begin to check for stalls."""
        if self._stall_s:
            threading.Thread(target=self._check, args=(progress,), name="ssdqual-stalls", daemon=True).start()

    def reported(self, bay: str, evidence: Iterable[Evidence], message: str) -> None:
        """Take the verdicts and the error of a report; a bay notifies of its first broken promise and first error."""
        for verdict in evidence:
            self._verdicts[bay][verdict.outcome.value] += 1
            if verdict.outcome is Finding.FAIL:
                self._notify(Occasion.FAILURE, verdict.sentence, bay, str(verdict.cause or ""))
        if message:
            self._verdicts[bay][Occasion.ERROR.value] += 1
            self._notify(Occasion.ERROR, message.strip().partition("\n")[0], bay)

    def ended(self, status: int) -> None:
        """Notify the end of the run, once, after everything was written."""
        self._is_over.set()
        counted = ", ".join(f"{count:,} {name}" for name, count in self._counts(self._runs).items() if count)
        begun = ENDINGS.get(status, "The run has ended")
        sentence = f"{begun}, exit status {status}: {counted or 'no verdicts'}{self._bad_bays()}"
        self._notify(Occasion.END, sentence, status=status)

    def note_failed(self, bay: str) -> None:
        """Record in a bay's run folder which of its notifications were not delivered; on the main thread, once."""
        if (journal := self._runs[bay].journal) is None:
            return
        for delivery in self._deliveries:
            if delivery.event.run_folder == str(journal.path) and delivery.why and not delivery.is_alive():
                with contextlib.suppress(JournalError):  # closing the run reports it
                    journal.note("not_notified", sentence=delivery.complaint)

    def complaints(self) -> list[str]:
        """Wait a little for the receivers; return a sentence for each notification that one did not get."""
        deadline_s = time.monotonic() + DRAIN_S
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends the wait
            for delivery in self._deliveries:
                delivery.join(max(0.0, deadline_s - time.monotonic()))
        return [delivery.complaint for delivery in self._deliveries if delivery.why]

    def _check(self, progress: RunProgress) -> None:
        #: Begin of the last stall of each bay.
        begun_s: dict[str, float] = {}
        while not self._is_over.wait(min(CHECK_S, self._stall_s / 4)):
            for bay in list(progress.bays.values()):
                sentence = stall(bay, self._stall_s, time.monotonic())
                if sentence and begun_s.get(bay.name) != bay.active_s:
                    begun_s[bay.name] = bay.active_s
                    self._notify(Occasion.STALL, sentence, bay.name)

    def _notify(self, what: Occasion, sentence: str, bay: str = "", cause: str = "", status: int | None = None) -> None:
        """Notify of an occasion: once a bay, except of stalls; at most ``MOST_BAYS`` bays notify of the same one."""
        runs = [self._runs[bay]] if bay in self._runs else list(self._runs.values())
        journal = runs[0].journal if len(runs) == 1 else None
        with self._lock:
            bays = self._notified[what]
            if bay in bays and what is not Occasion.STALL:
                return
            if bay not in bays:
                if len(bays) == MOST_BAYS:
                    return
                bays.add(bay)
                if len(bays) == MOST_BAYS < len(self._runs):
                    sentence = f"{sentence} {THE_LAST}"
            event = Notification(
                what,
                safe_text.line(sentence, SENTENCE_CHARACTERS),
                utc_now(),
                str(journal.path if journal else self._folder or ""),
                ", ".join(dict.fromkeys(run.bay.machine for run in runs)),
                runs[0].name if len(runs) == 1 else "",
                self._counts(run.name for run in runs),
                safe_text.line(cause, SENTENCE_CHARACTERS),
                status,
            )
            for receiver in self._receivers:
                earlier = [delivery for delivery in self._deliveries if delivery.receiver is receiver]
                self._deliveries.append(Delivery(receiver, event, earlier[-1] if earlier else None, self._is_over))
                self._deliveries[-1].start()

    def _counts(self, bays: Iterable[str]) -> dict[str, int]:
        """Return the numbers of verdicts and errors of these bays, by name."""
        counts = sum((self._verdicts[bay] for bay in bays), Counter[str]())
        return {name: counts[name] for name in (*(finding.value for finding in Finding), Occasion.ERROR.value)}

    def _bad_bays(self) -> str:
        """Return the end of a sentence that names the bays with failures or errors; empty in a run of one bay."""
        bad = [
            name
            for name, counts in self._verdicts.items()
            if counts[Finding.FAIL.value] or counts[Occasion.ERROR.value]
        ]
        if len(self._runs) < 2 or not bad:
            return ""
        return f"; failures or errors on {named(bad, MOST_BAYS)}"


def stall(bay: BayProgress, limit_s: float, now_s: float) -> str:
    """Return a sentence if the bay has made no progress for too long; empty otherwise.

    That is ``limit_s`` while fio runs with live statistics, and longer in a step without them.
    """
    if bay.step is None:
        return ""
    planned_s = bay.step.expected_s if math.isfinite(bay.step.expected_s) else 0.0
    planned = f" (planned: {format_clock(planned_s)})" if planned_s > 0 else ""
    what = "no I/O was measured"
    allowed_s = limit_s
    if bay.now is None:
        what = "no progress was reported"
        allowed_s = max(limit_s, LATE * planned_s) if planned_s > 0 else UNPLANNED * limit_s
    quiet_s = now_s - bay.active_s
    return f"{bay.step.what}{planned}: {what} for {format_duration(quiet_s)}" if quiet_s >= allowed_s else ""
