"""One fio process on the machine under test: start, wait, fetch what it wrote, leave nothing behind."""

from __future__ import annotations

import contextlib
import gzip
import secrets
from dataclasses import dataclass
from types import TracebackType

from pytest_ssdqual.rig.fio.jobfile import Job
from pytest_ssdqual.rig.lease import DIRECTORY
from pytest_ssdqual.rig.machine import Completed, Machine, RigError, Tethered

#: fio's own start and end, on an emulated or busy machine.
OVERHEAD_S = 90.0
#: From the signal to its end: what is outstanding has to be done first.
END_S = 60.0
#: Pack the output, and remove it only when all of it is out.
FETCH = 'gzip -1 -c "$1" && rm -f "$1"'


@dataclass(frozen=True, slots=True)
class Finished:
    """A fio process that ended, and its output file; ``packed`` is gzip, as it came over the wire."""

    completed: Completed
    packed: bytes

    @property
    def output(self) -> bytes:
        return gzip.decompress(self.packed)


@dataclass(frozen=True, slots=True)
class Running:
    """A fio process under way, for a ``with`` block: if an error leaves it, fio is ended and nothing stays behind."""

    machine: Machine
    tether: Tethered
    path: str

    def is_alive(self) -> bool:
        return self.tether.alive()

    def wait(self, seconds: float) -> Finished:
        """Until it ends by itself, which should take about ``seconds``."""
        return self._finished(self.tether.wait(seconds * 1.25 + OVERHEAD_S))

    def end(self) -> Finished:
        """End it now, gently: what it did so far is in its output."""
        return self._finished(self.tether.cut(END_S))

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with contextlib.suppress(RigError):  # the error on its way says more
                self.tether.cut()
                self.machine.run(["rm", "-f", self.path], check=False)

    def _finished(self, completed: Completed) -> Finished:
        fetched = self.machine.run(["sh", "-c", FETCH, "fetch", self.path], check=False, deadline_s=300)
        return Finished(completed, fetched.stdout if fetched.status == 0 else gzip.compress(b""))


def start(machine: Machine, job: Job) -> Running:
    """Start ``job``; it is tethered: if we end, are interrupted or lose the machine, fio ends there by itself."""
    path = f"{DIRECTORY}/fio-{secrets.token_hex(6)}.json"
    return Running(machine, machine.tether(job.argv(path)), path)


def run(machine: Machine, job: Job, seconds: float) -> Finished:
    """Run ``job``, which should take about ``seconds``, and fetch its output.

    Whether the numbers are any good is ``verify.accept``'s to say; only a machine or process that fails altogether
    raises here.
    """
    with start(machine, job) as running:
        return running.wait(seconds)
