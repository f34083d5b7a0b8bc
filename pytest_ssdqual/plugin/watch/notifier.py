"""Notifies people who are elsewhere, by the hook ``pytest_ssdqual_notify`` and the receivers of ``--ssd-notify``.

Each receiver has a daemon thread with a queue: nothing that a receiver does, or does not do, can end or delay a
measurement. What could not be delivered is a line of the summary and a record of the run folder.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.options import notify_target
from pytest_ssdqual.plugin.options.notify_target import Target
from pytest_ssdqual.plugin.watch.delivery import deliver
from pytest_ssdqual.plugin.watch.stalls import StallDetector
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.notification import Notification, Occasion, redacted
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.rig.machine.machine import utc_now

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.qualification import Qualification
    from pytest_ssdqual.qual.progress_events import BayProgress, News

#: Seconds before the only other attempt.
RETRY_S = 5.0
#: Seconds for which the summary waits for receivers, all together; the run is complete then.
DRAIN_S = 15.0
#: Longest time between two checks for stalls.
CHECK_S = 30.0
SENTENCE_CHARACTERS = 600
#: Bays that notify of the same occasion before the end: a rack that has lost its network is one message, not forty.
MOST_BAYS = 10
THE_LAST = f"({MOST_BAYS} bays by now; of further ones only the end reports it)"
ENDINGS = {2: "The run was interrupted", 3: "The run ended by an internal error"}


@dataclass(slots=True)
class Outbox:
    """Delivers notifications to one receiver, in their order, in a daemon thread."""

    name: str
    send: Callable[[Notification], object]
    #: Sentences about notifications that were not delivered, with the run folder of each.
    failed: list[tuple[str, str]] = field(default_factory=list)
    _queue: queue.SimpleQueue[Notification | None] = field(default_factory=queue.SimpleQueue)
    _is_closing: threading.Event = field(default_factory=threading.Event)
    _waiting: list[Notification] = field(default_factory=list)
    _thread: threading.Thread | None = None

    def put(self, event: Notification) -> None:
        self._waiting.append(event)
        self._queue.put(event)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="ssdqual-notify", daemon=True)
            self._thread.start()

    def close(self, deadline_s: float) -> None:
        """Wait for what is queued until ``deadline_s`` of the monotonic clock; then give it up, and say so."""
        if self._thread is None:
            return
        self._queue.put(None)
        self._is_closing.set()
        self._thread.join(max(0.0, deadline_s - time.monotonic()))
        if self._thread.is_alive():
            self.failed += [(self._complaint(each, "no answer in time"), each.run_folder) for each in self._waiting]

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            if why := self._attempts(event):
                self.failed.append((self._complaint(event, why), event.run_folder))
            self._waiting.remove(event)

    def _attempts(self, event: Notification) -> str:
        """Return why both attempts failed; empty after success."""
        why = ""
        for is_last in (False, True):
            try:
                self.send(event)
            except Exception as error:  # a receiver, or a hook of the site: never the run's problem
                why = redacted(f"{type(error).__name__}: {error}")
            else:
                return ""
            if not is_last:
                self._is_closing.wait(RETRY_S)
        return why

    def _complaint(self, event: Notification, why: str) -> str:
        return safe_text.line(f"{self.name} was not notified of the {event.what}: {why}", SENTENCE_CHARACTERS)


class Notifier:
    """Decides on the controller what is worth a notification, and puts it into every outbox."""

    def __init__(
        self,
        config: pytest.Config,
        targets: Iterable[Target],
        runs: Sequence[Qualification],
        folder: Path | None,
        stall_s: float,
    ) -> None:
        """``stall_s``: seconds without a measurement after which a stall is reported; 0: never."""
        self._hook = config.hook.pytest_ssdqual_notify
        self._runs = {run.name: run for run in runs}
        self._folder = folder
        self._outboxes = [Outbox(str(each), partial(deliver, each)) for each in targets]
        self._outboxes.append(Outbox("pytest_ssdqual_notify", lambda event: self._hook(notification=event)))
        #: Verdicts by bay.
        self._verdicts = {name: Counter[str]() for name in self._runs}
        #: Bays that have notified, by occasion.
        self._seen: dict[Occasion, set[str]] = {each: set() for each in Occasion}
        self._stall_s, self._stalls = stall_s, StallDetector(stall_s)
        self._is_over = threading.Event()
        self._lock = threading.Lock()

    def watch(self) -> None:
        """Begin to check for stalls."""
        if self._stall_s and self._is_heard():
            threading.Thread(target=self._check, name="ssdqual-stalls", daemon=True).start()

    def take(self, event: News, before: BayProgress, bay: BayProgress, at_s: float) -> None:
        """Observe a progress event."""
        with self._lock:
            self._stalls.take(event, bay, at_s)

    def reported(self, bay: str, evidence: Iterable[Evidence], message: str) -> None:
        """Take the verdicts and the error of a report; a bay notifies of its first broken promise and first error."""
        for each in evidence:
            self._verdicts[bay][each.outcome.value] += 1
            if each.outcome is Finding.FAIL:
                self._notify_once(Occasion.FAILURE, each.sentence, bay, str(each.cause or ""))
        if message:
            self._verdicts[bay][Occasion.ERROR.value] += 1
            self._notify_once(Occasion.ERROR, message.strip().partition("\n")[0], bay, "")

    def ended(self, status: int) -> None:
        """Notify the end of the run, once, after everything was written."""
        self._is_over.set()
        counted = ", ".join(f"{count:,} {name}" for name, count in self._counts(self._runs).items() if count)
        begun = ENDINGS.get(status, "The run has ended")
        sentence = f"{begun}, exit status {status}: {counted or 'no verdicts'}{self._bad_bays()}"
        self._notify_once(Occasion.END, sentence, "", "", status)

    def note_failed(self, bay: str) -> None:
        """Record in a bay's run folder which of its notifications were not delivered; on the main thread, once."""
        if (journal := self._runs[bay].journal) is None:
            return
        failed = [each for box in self._outboxes for each in box.failed]
        for sentence in [sentence for sentence, folder in failed if folder == str(journal.path)]:
            with contextlib.suppress(JournalError):  # closing the run reports it
                journal.note("not_notified", sentence=sentence)

    def complaints(self) -> list[str]:
        """Wait a little for the receivers; return a sentence for each notification that one did not get."""
        deadline_s = time.monotonic() + DRAIN_S
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends the wait
            for box in self._outboxes:
                box.close(deadline_s)
        return [sentence for box in self._outboxes for sentence, _ in box.failed]

    def _is_heard(self) -> bool:
        """Return whether there is any receiver; conftest files may add a hook until collection."""
        return len(self._outboxes) > 1 or bool(self._hook.get_hookimpls())

    def _check(self) -> None:
        while not self._is_over.wait(min(CHECK_S, self._stall_s / 4)):
            with self._lock:
                found = list(self._stalls.stalled(time.monotonic()))
            for name, sentence in found:
                self._notify_of_bay(Occasion.STALL, sentence, name, "")

    def _notify_once(self, what: Occasion, sentence: str, bay: str, cause: str, status: int | None = None) -> None:
        if bay not in self._seen[what]:
            self._notify_of_bay(what, sentence, bay, cause, status)

    def _notify_of_bay(self, what: Occasion, sentence: str, bay: str, cause: str, status: int | None = None) -> None:
        """Notify, unless so many other bays have done it of the same occasion."""
        known = self._seen[what]
        if bay not in known and len(known) >= MOST_BAYS:
            return
        is_last = bay not in known and len(known) == MOST_BAYS - 1 and len(self._runs) > MOST_BAYS
        known.add(bay)
        self._notify(what, f"{sentence} {THE_LAST}" if is_last else sentence, bay, cause, status)

    def _bad_bays(self) -> str:
        """Return the end of a sentence that names the bays with failures or errors; empty in a run of one bay."""
        bad = [
            name for name, found in self._verdicts.items() if found[Finding.FAIL.value] or found[Occasion.ERROR.value]
        ]
        if len(self._runs) < 2 or not bad:
            return ""
        return f"; failures or errors on {named(bad, MOST_BAYS)}"

    def _notify(self, what: Occasion, sentence: str, bay: str, cause: str, status: int | None = None) -> None:
        runs = [run for name, run in self._runs.items() if name == bay] or list(self._runs.values())
        journal = runs[0].journal if len(runs) == 1 else None
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
        for box in self._outboxes if self._hook.get_hookimpls() else self._outboxes[:-1]:
            box.put(event)

    def _counts(self, bays: Iterable[str]) -> dict[str, int]:
        found = sum((self._verdicts[bay] for bay in bays), Counter[str]())
        return {name: found[name] for name in (*(each.value for each in Finding), Occasion.ERROR.value)}


def targets_of(config: pytest.Config) -> tuple[Target, ...]:
    """Return the receivers of ``--ssd-notify`` and the ini value, before any drive is touched.

    Raises ``pytest.UsageError`` for a wrong one.
    """
    given = [*config.getoption("ssd_notify"), *config.getini("ssd_notify")]
    try:
        return notify_target.parse(given, config.getini("ssd_smtp"), os.environ)
    except ValueError as error:
        raise pytest.UsageError(f"--ssd-notify: {error}") from None
