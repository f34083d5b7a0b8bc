"""Results of this session and of earlier ones of the same run: the newest in memory, the rest in a file.

A measurement of 24 drives side by side is 15 MB of histograms (81 intervals of each, 500 buckets), and a run of days
has hundreds of them. What is pushed out of memory is written to a file without a name in the run folder; it comes back
equal, in a fraction of the time that reading fio's whole output again would take. A failure is stored as its sentence:
with its traceback it would hold everything that was in memory when it happened. Results of earlier sessions are read
from the run folder when a step asks for them.
"""

from __future__ import annotations

import pickle
import tempfile
import traceback
import weakref
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

from pytest_ssdqual.rig.machine.machine import DriveSilent, MachineLost, RigError, Unforeseen, UnforeseenAgain
from pytest_ssdqual.rig.resume.checkpoint import EarlierResults, ResultKey

T = TypeVar("T")

#: Number of times that a step is tried whose drives do not answer: each costs the time of a survey, half a minute.
SILENCES = 3
#: Tests that ask for one measurement follow each other, and a relation asks for a second one.
NEWEST = 4


@dataclass(slots=True, weakref_slot=True)
class ResultCache:
    """Values and failures by key; it never forgets one."""

    #: Folder of the file; None: the folder of temporary files.
    folder: Path | None = None
    newest: int = NEWEST
    #: Results of earlier sessions.
    earlier: EarlierResults = field(default_factory=EarlierResults)
    #: In the order in which they were last asked for.
    _held: dict[object, object] = field(default_factory=dict)
    #: Begin and length of those that were written.
    _places: dict[object, tuple[int, int]] = field(default_factory=dict)
    _failures: dict[object, RigError] = field(default_factory=dict)
    #: Number of times that work has failed that is tried again.
    _failed: Counter[object] = field(default_factory=Counter)
    #: Type and place of each unexpected error.
    _unforeseen: set[tuple[str, str]] = field(default_factory=set)
    #: Set when an unexpected error occurred again.
    _given_up: UnforeseenAgain | None = None
    _file: IO[bytes] | None = None

    def __contains__(self, key: object) -> bool:
        return key in self._held or key in self._places or key in self._failures

    def __getitem__(self, key: object) -> object:
        """The value; the failure is raised if it is one, and ``KeyError`` if there is neither."""
        if key in self._failures:
            raise _bare(self._failures[key])
        value = self._held.pop(key) if key in self._held else self._read(*self._places[key])
        self.put(key, value)
        return value

    def knows(self, key: object, earlier: ResultKey) -> bool:
        """Return True if this session has the result or the failure of ``key``, or an earlier session the result."""
        return key in self or self.earlier.has(earlier)

    def result(self, key: object, earlier: ResultKey, work: Callable[[], T], is_this: Callable[[object], bool]) -> T:
        """Return the result of this session, or of an earlier one if ``is_this`` accepts it, or else of ``work``.

        Two workloads may have one name, also in one session: ``key`` has all of the workload. Earlier sessions recorded
        the name only. Raises the failure of ``work``, and the same failure again each time.
        """
        if key not in self:

            def recalled() -> T:
                found = self.earlier.recall(earlier)
                return found if is_this(found) else work()  # type: ignore[return-value]

            self.put(key, self.unless_failed(key, recalled))
        return self[key]  # type: ignore[return-value]

    def put(self, key: object, value: object) -> None:
        """Keep the result of ``key``; what was measured does not change."""
        self._held[key] = value
        for old in list(self._held)[: max(0, len(self._held) - self.newest)]:
            if old in self._places or self._write(old):
                del self._held[old]

    def fail(self, key: object, error: Exception) -> RigError:
        """Store the failure of ``key``, to be raised whenever ``key`` is requested; return the error to raise now.

        That is ``error`` itself if it is a ``RigError``, else an ``Unforeseen`` or ``UnforeseenAgain``.
        """
        rig_error = error if isinstance(error, RigError) else self._wrapped(error)
        self._failures[key] = _bare(rig_error)
        return rig_error

    def failure(self, key: object) -> RigError | None:
        """A new exception each time: one that was raised holds whatever it was raised through."""
        error = self._given_up or self._failures.get(key)
        return _bare(error) if error else None

    def unless_failed(self, key: object, work: Callable[[], T], tries: int = 1) -> T:
        """The outcome of ``work``; the last of ``tries`` failures is kept under ``key`` and raised again from then on.

        Not that of a lost machine: it ends the run. A drive that does not answer may do so later, so ``work`` is tried
        ``SILENCES`` times.
        """
        if failure := self.failure(key):
            raise failure
        try:
            return work()
        except MachineLost:
            raise
        except RigError as error:
            self._failed[key] += 1
            if self._failed[key] >= (SILENCES if isinstance(error, DriveSilent) else tries):
                self.fail(key, error)
            raise
        except Exception as error:
            rig_error = self.fail(key, error)
            if rig_error is error:
                raise
            raise rig_error from error

    def _wrapped(self, error: Exception) -> RigError:
        """Wrap an unexpected error. If the same one occurs again, it would occur for everything that is left."""
        kind, place = type(error).__name__, _place(error)
        what = f"{kind}: {error} ({place})"
        if (kind, place) in self._unforeseen:
            self._given_up = UnforeseenAgain(
                f"the same unforeseen error came again, so nothing more is built or measured: {what}"
            )
            return _bare(self._given_up)
        self._unforeseen.add((kind, place))
        return Unforeseen(f"unforeseen error: {what}")

    def _write(self, key: object) -> bool:
        """False if it cannot be written: a full disk costs memory and not a measurement."""
        data = zlib.compress(pickle.dumps(self._held[key]), 1)
        try:
            file = self._open()
            begin = file.seek(0, 2)
            if file.write(data) != len(data):
                return False
        except OSError:
            return False
        self._places[key] = begin, len(data)
        return True

    def _read(self, begin: int, length: int) -> object:
        file = self._open()
        file.seek(begin)
        return pickle.loads(zlib.decompress(file.read(length)))  # noqa: S301 (no other user can reach that file)

    def _open(self) -> IO[bytes]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115 (as long as this is)
            weakref.finalize(self, self._file.close)
        return self._file


def _place(error: Exception) -> str:
    """Return file and line of the innermost frame in this package."""
    frames = traceback.extract_tb(error.__traceback__)
    others = [each for each in frames if each.filename != __file__]
    own = [each for each in others if "pytest_ssdqual" in Path(each.filename).parts] or others
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "unknown place"


def _bare(error: RigError) -> RigError:
    """The same without traceback, cause and context; its class may want other arguments than it was left with."""
    again = type(error).__new__(type(error))
    again.args = error.args
    again.__dict__.update(error.__dict__)
    return again
