"""One fio process on the machine under test: start, wait, fetch what it wrote, leave nothing behind."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType

from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.machine import run_files, scripts
from pytest_ssdqual.rig.machine.machine import Completed, Machine, RigError, Tethered

#: fio's own start and end, on an emulated or busy machine.
OVERHEAD_S = 90.0
#: From the signal to its end: what is outstanding has to be done first.
END_S = 60.0
FETCH_S = 300.0
#: Pack the output. It is removed only when it is here, so that this can be said again over another connection.
FETCH = 'gzip -1 -c "$1"'
#: The last part of a file that was read before, and what was written since it was read.
FETCH_REST, READ_NEW = map(scripts.text, ("fetch_rest.sh", "fetch_new.sh"))
#: No output of fio is larger: a status of 24 drives every 5 s for five hours has 2 GB. Zeroes pack a thousandfold, so
#: a file that is nothing of fio's must not keep us busy for ever.
UNPACKED_BYTES = 4 << 30
#: Of an output that is unpacked, never more is held.
PIECE_BYTES = 1 << 20


def unpacked(packed: bytes) -> Iterator[bytes]:
    """What gzip packed, in one part or several, piece by piece.

    ``RigError`` if it is damaged or larger than anything of fio's.
    """
    size_bytes = 0
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            while piece := file.read(PIECE_BYTES):
                size_bytes += len(piece)
                if size_bytes > UNPACKED_BYTES:
                    most = f"{UNPACKED_BYTES >> 30} GiB"
                    raise RigError(f"the output of fio has more than {most}, which no output of fio has")
                yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise RigError(f"the output of fio arrived damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    """A fio process that ended, and its output file; ``packed`` is gzip, as it came over the wire."""

    completed: Completed
    #: All of it, in as many parts (members of gzip) as it was read in.
    packed: bytes
    #: Only what had not been read while it ran; None if nothing had.
    packed_rest: bytes | None = None

    def pieces(self) -> Iterator[bytes]:
        """The output, see ``unpacked``."""
        return unpacked(self.packed)

    def rest(self) -> Iterator[bytes]:
        """The output that had not been read while it ran."""
        return unpacked(self.packed if self.packed_rest is None else self.packed_rest)


@dataclass(slots=True)
class RunningProcess:
    """A fio process under way, for a ``with`` block: if an error leaves it, fio is ended and nothing stays behind."""

    machine: Machine
    tether: Tethered
    path: str
    #: What was read so far, as it came; BytesIO gives it away without a copy.
    _packed: io.BytesIO = field(default_factory=io.BytesIO)
    _read_bytes: int = 0

    def is_alive(self) -> bool:
        return self.tether.alive()

    def rest(self, seconds: float) -> bool:
        """Wait so long, or until it ends; whether it still runs."""
        return self.tether.rest(seconds)

    def read_new(self) -> Iterator[bytes]:
        """What was written since this was last asked; fio writes every status document in one go, while it runs.

        Even so the last one may be cut off. To be used up before it is asked again. Raises as ``Machine.run``.
        """
        argv = ["sh", "-c", READ_NEW, "fetch", self.path, str(self._read_bytes)]
        packed = self.machine.run(argv, deadline_s=FETCH_S, repeatable=True).stdout
        self._packed.write(packed)
        for piece in unpacked(packed):
            self._read_bytes += len(piece)
            yield piece

    def wait(self, seconds: float) -> FinishedProcess:
        """Until it ends by itself, which should take about ``seconds``."""
        return self._finished(self.tether.wait(seconds * 1.25 + OVERHEAD_S))

    def end(self) -> FinishedProcess:
        """End it now, gently: what it did so far is in its output."""
        return self._finished(self.tether.cut(END_S))

    def __enter__(self) -> RunningProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with contextlib.suppress(RigError):  # the error on its way says more
                self.tether.cut()
                self.machine.run(["rm", "-f", self.path], check=False)

    def _finished(self, completed: Completed) -> FinishedProcess:
        was_read = self._packed.tell() > 0
        script = [FETCH_REST, "fetch", self.path, str(self._read_bytes)] if was_read else [FETCH, "fetch", self.path]
        fetched = self.machine.run(["sh", "-c", *script], check=False, deadline_s=FETCH_S, repeatable=True)
        self.machine.run(["rm", "-f", self.path], check=False, repeatable=True)
        packed = fetched.stdout if fetched.status == 0 else gzip.compress(b"")
        if not was_read:
            return FinishedProcess(completed, packed)
        self._packed.write(packed)
        return FinishedProcess(completed, self._packed.getvalue(), packed)


def start(machine: Machine, job: Job) -> RunningProcess:
    """Start ``job``; it is tethered: if we end, are interrupted or lose the machine, fio ends there by itself."""
    path = run_files.path(machine, "fio")
    return RunningProcess(machine, machine.tether(job.argv(path)), path)


def run(machine: Machine, job: Job, seconds: float) -> FinishedProcess:
    """Run ``job``, which should take about ``seconds``, and fetch its output.

    Whether the numbers are any good is ``verify.accept``'s to say; only a machine or process that fails altogether
    raises here.
    """
    with start(machine, job) as running:
        return running.wait(seconds)
