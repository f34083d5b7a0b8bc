"""Runs argv lists as root, with a deadline, on any machine.

``local`` and ``ssh`` differ only in how an argv is wrapped and in how a lost machine is detected; the rest is here. The
deadline is enforced twice: by coreutils' ``timeout`` on the machine under test, so that nothing continues there after
the controller gives up, and by the controller, in case the machine or the connection hangs.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.machine import capture
from pytest_ssdqual.rig.machine.line_process import LineProcess
from pytest_ssdqual.rig.machine.machine import (
    CommandFailed,
    Completed,
    DeadlineExceeded,
    MachineLost,
    MustFinish,
    Observer,
    RigError,
    utc_now,
)
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY, SILENCE_S, Keeper, TetheredProcess

#: Exit statuses after ``timeout`` ended the command (coreutils manual, "timeout invocation"): 124 after TERM; KILL also
#: ends ``timeout`` itself, which is reported as -9 locally, 137 through sudo and 255 through ssh. Commands may have
#: these statuses too, so they count only after the deadline.
TIMED_OUT = (124, 137, -9, 255)
#: Exit status of a command whose connection was cut.
CUT = 255
#: A command that may take longer than this runs under a keeper, so that a lost connection does not affect it.
TOO_LONG_S = 120.0
#: This program parses the messages of tools, so they must be in English.
ENGLISH = ("env", "LC_ALL=C")
#: A process outlives the connection as long as reconnecting is tried, plus this: until the loss is detected (20 s), the
#: next heartbeat has arrived (15 s), and a margin.
NOTICED_S = 60
#: Changes at every boot; random(4).
BOOT_ID = "/proc/sys/kernel/random/boot_id"
#: Seconds between TERM and KILL, and how much longer the controller waits for the channel than for the command.
KILL_AFTER_S = 5
CHANNEL_GRACE_S = 20
#: Longest time for an answer to ``true``, while another command does not end; and between two renewals, seconds.
ANSWER_S, RENEW_AGAIN_S = 30.0, 1.0


@dataclass(slots=True)
class Channel:
    """A ``Machine``: commands go through ``wrap``; ``lost`` distinguishes a lost machine from a failed command."""

    name: str
    #: Logical argv → the argv that the controller starts.
    wrap: Callable[[Sequence[str]], list[str]]
    #: Finished command → a sentence why the machine is lost, or None.
    lost: Callable[[Completed], str | None]
    #: Precedes every command that needs root there: empty, or ``sudo -n --``.
    become: tuple[str, ...] = ()
    observer: Observer | None = None
    on_close: Callable[[], None] | None = None
    #: Reconnects within so many seconds, or raises ``RigError``; None: there is no connection that could be lost.
    renew: Callable[[float], None] | None = None
    #: Seconds for which reconnecting is tried before the machine is given up; 0: not at all.
    patience_s: float = 0.0
    #: Directory of keepers on the machine under test.
    directory: str = DIRECTORY
    #: Number of reconnections.
    generation: int = 0
    token: str = field(default_factory=lambda: secrets.token_hex(6))
    _boot_id: str = ""
    _gone: str | None = None
    _closed: bool = False
    _tethers: list[TetheredProcess] = field(default_factory=list)
    _reviving: threading.RLock = field(default_factory=threading.RLock)

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float = 60.0,
        check: bool = True,
        stdin: bytes | None = None,
        repeatable: bool = False,
        must_finish: MustFinish | None = None,
    ) -> Completed:
        """See ``Machine.run``."""
        if must_finish:
            done = self._run_to_the_end(argv, deadline_s, must_finish)
        elif deadline_s > TOO_LONG_S and not repeatable and stdin is None and self.is_patient:
            done = self._run_kept(argv, deadline_s)
        else:
            done = self._run_directly(argv, deadline_s, stdin, repeatable)
        if check and done.status:
            raise CommandFailed(f"{_short(argv)} on {self.name} failed: {last_words(done)}", done)
        return done

    @property
    def is_patient(self) -> bool:
        """True if a lost connection is re-established."""
        return self.renew is not None and self.patience_s > 0

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT", announces: bool = False) -> TetheredProcess:
        """See ``Machine.tether``."""
        self._require_alive()
        keeper = Keeper(
            argv, first_signal, self._silence_s, survives=self.is_patient, announces=announces, directory=self.directory
        )
        return self._kept(keeper)

    @property
    def _silence_s(self) -> float:
        return self.patience_s + NOTICED_S if self.is_patient else SILENCE_S

    def unfinished(self) -> tuple[str, ...]:
        """Return a sentence for each command that must finish and still goes on."""
        unfinished = [process for process in self._tethers if process.is_unfinished]
        return tuple(process.work.goes_on(self.name, process.elapsed_s) for process in unfinished if process.work)

    def leave_unfinished(self) -> None:
        """See ``Machine.leave_unfinished``."""
        for process in list(self._tethers):
            if process.is_unfinished:
                with contextlib.suppress(RigError):  # StillRunning: it is raised where the command is awaited, too
                    process.cut()

    def line_process(self, argv: Sequence[str]) -> LineProcess:
        """Start a process that answers lines, without root. ``RigError`` if the machine is lost."""
        self._require_alive()
        return LineProcess(argv, self.wrap([*ENGLISH, *argv]), self.ended)

    def close(self) -> None:
        """Cut every tether that is still attached, then the connection; no command begins afterwards: ``RigError``."""
        for process in reversed(self._tethers):
            with contextlib.suppress(RigError):  # on a lost machine, the keeper ends the process by itself
                process.cut()
        self._closed = True
        with self._reviving:
            if self.on_close:
                self.on_close()
                self.on_close = None

    def ended(self, done: Completed) -> None:
        """See ``SupervisorLine.ended``."""
        if self.observer:
            self.observer(done)

    def revive(self, generation: int, done: Completed) -> None:
        """See ``SupervisorLine.revive``."""
        with self._reviving:
            self._require_alive()
            if generation != self.generation:
                return
            why = self.lost(done)
            if why is None:
                return
            if self.renew is None or not self.is_patient or self._closed:
                self._give_up(why)
            self._renew(self.renew, why)

    def restarted(self, deadline_s: float) -> None:
        """Connect to the machine again after a restart on purpose.

        Tethered processes have ended with the old boot. ``MachineLost`` if the machine does not come back.
        """
        with self._reviving:
            if self.renew is None:
                raise MachineLost(f"{self.name} cannot be reconnected: it is not behind a connection")
            self._gone, self._boot_id, self._tethers = None, "", []
            self.generation += 1
            try:
                self.renew(deadline_s)
            except RigError as error:
                self._give_up(f"it did not come back after a restart: {error}")
            self.learn_boot()

    def learn_boot(self) -> None:
        """Store the boot id, so that a machine that has rebooted is not taken for the same."""
        self._boot_id = self._run_directly(["cat", BOOT_ID], 60.0, None, repeatable=False).text.strip()

    def _renew(self, renew: Callable[[float], None], why: str) -> None:
        started, clock = utc_now(), time.monotonic()
        while True:
            left_s = max(0.0, self.patience_s - (time.monotonic() - clock))
            try:
                renew(left_s)
                boot = self._execute(["cat", BOOT_ID], self.wrap([*self.become, "cat", BOOT_ID]), 60.0, None)
            except RigError as error:
                self._give_up(f"{why}; tried again for {self.patience_s:g} s: {error}")
            except subprocess.TimeoutExpired as silence:
                self._give_up(f"{why}; it did not answer over a new connection within {silence.timeout:g} s")
            # A connection that is lost again at once says nothing about the boot.
            if self.lost(boot) is None:
                break
            if left_s <= 0:
                self._give_up(f"{why}; tried again for {self.patience_s:g} s, and each new connection was lost, too")
            time.sleep(RENEW_AGAIN_S)
        if boot.text.strip() != self._boot_id:
            self._give_up(f"{why}; it has rebooted since, or is another machine")
        self.generation += 1
        # Recorded although it is no command: it explains a gap between commands.
        if self.observer:
            errors = f"{why}\n".encode()
            self.observer(Completed(("reconnected",), 0, b"", errors, started, time.monotonic() - clock))

    def _run_directly(self, argv: Sequence[str], deadline_s: float, stdin: bytes | None, repeatable: bool) -> Completed:
        """Run over the connection, and again if that was lost meanwhile and the command is repeatable."""
        remote_argv = [*self.become, *ENGLISH, "timeout", "-k", str(KILL_AFTER_S), f"{deadline_s:g}", *argv]
        while True:
            with self._reviving:  # waits for a reconnection in progress
                self._require_alive()
                generation = self.generation
            limit_s = deadline_s + KILL_AFTER_S + CHANNEL_GRACE_S
            try:
                done = self._execute(argv, self.wrap(remote_argv), limit_s, stdin)
            except subprocess.TimeoutExpired:
                # A device that does not respond holds a command in the kernel, where no signal ends it (mdadm --stop
                # with a member that hangs). That is about this device; the guard rechecks the others before each use.
                if self._answers():
                    unknown = "" if repeatable else ", and the effect of the command is unknown"
                    raise DeadlineExceeded(
                        f"{_short(argv)} on {self.name} did not end within {limit_s:g} s, and cannot be ended, though "
                        f"the machine answers: a device may not respond{unknown}"
                    ) from None
                self._give_up(f"it did not answer to {_short(argv)} within {limit_s:g} s")
            if self.observer:
                self.observer(done)
            why = self.lost(done)
            if why is None and not (done.status == CUT and generation != self.generation):
                break
            if not repeatable or not self.is_patient:
                self._give_up(why or f"the connection was lost while {_short(argv)} ran, so its effect is unknown")
            self.revive(generation, done)
        if done.status in TIMED_OUT and done.elapsed_s >= deadline_s:
            raise DeadlineExceeded(f"{_short(argv)} on {self.name} did not end within {deadline_s:g} s and was ended")
        return done

    def _run_kept(self, argv: Sequence[str], deadline_s: float) -> Completed:
        """Run under a keeper, so that a lost connection does not affect it."""
        try:
            return self.tether(argv, first_signal="TERM").wait(deadline_s)
        except DeadlineExceeded:
            raise DeadlineExceeded(
                f"{_short(argv)} on {self.name} did not end within {deadline_s:g} s and was ended"
            ) from None

    def _run_to_the_end(self, argv: Sequence[str], deadline_s: float, work: MustFinish) -> Completed:
        """Run under a keeper that never ends it, also on localhost: if the run is killed, the command goes on."""
        self._require_alive()
        keeper = Keeper(argv, silence_s=self._silence_s, survives=True, directory=self.directory, work=work)
        return self._kept(keeper).wait(deadline_s)

    def _kept(self, keeper: Keeper) -> TetheredProcess:
        process = TetheredProcess(keeper, self, (*self.become, *ENGLISH))
        self._tethers = [tether for tether in self._tethers if tether.alive() or tether.is_unfinished]
        self._tethers.append(process)
        return process

    def _require_alive(self) -> None:
        if self._gone:
            raise MachineLost(self._gone)
        if self._closed:
            raise RigError(f"the run has closed its connection to {self.name}, so no further command was begun")

    def _give_up(self, why: str) -> NoReturn:
        self._gone = f"{self.name} is lost: {why}"
        raise MachineLost(self._gone)

    def _answers(self) -> bool:
        """Return whether the machine runs another command: then one that hangs says nothing about the connection."""
        argv = self.wrap([*self.become, "true"])
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ANSWER_S,
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _execute(self, argv: Sequence[str], local_argv: list[str], limit_s: float, stdin: bytes | None) -> Completed:
        """Run a local command to its end; ``subprocess.TimeoutExpired`` after ``limit_s``."""
        started, clock = utc_now(), time.monotonic()
        # In its own session: Ctrl-C at the terminal goes to pytest only, which then ends processes in order.
        try:
            process = subprocess.Popen(
                local_argv,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:  # the program does not exist, or the command line is too long
            raise RigError(f"{_short(argv)} cannot be started: {error.strerror}") from error
        try:
            out, err = capture.communicate(process, stdin, limit_s)
        except capture.TooMuch:
            _end(process)
            raise RigError(
                f"{_short(argv)} on {self.name} answered with more than {capture.MOST_BYTES >> 20} MiB and was ended"
            ) from None
        except BaseException:
            _end(process)
            raise
        return Completed(tuple(argv), process.returncode, out, err, started, time.monotonic() - clock)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command: ``timeout`` passes TERM on to it, and KILL later; ssh closes the connection."""
    with contextlib.suppress(subprocess.TimeoutExpired, PermissionError):  # sudo's processes cannot be signalled
        process.terminate()
        process.wait(KILL_AFTER_S + 1)
        return
    with contextlib.suppress(subprocess.TimeoutExpired, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(1)


def last_words(done: Completed) -> str:
    """Last line that a failed command printed, on either stream, or its exit status if it printed nothing."""
    output = done.errors.strip() or done.text.strip()
    return safe_text.line(output.splitlines()[-1].strip()) if output else f"exit status {done.status}"


def _short(argv: Sequence[str]) -> str:
    text = " ".join(argv[:6]).split("\n", 1)[0]
    return text if len(text) <= 80 else text[:79] + "…"
