"""Whether what a fio process left behind may be believed: every way of failing, by its cause.

Pure. fio's exit status is looked at, and never enough: the sentences below are what a person needs to know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_ssdqual.rig.fio.jobfile import Expectation
from pytest_ssdqual.rig.fio.output import Direction, FioResult, parse, pieces
from pytest_ssdqual.rig.machine import DriveRefused, InvalidMeasurement, RigError

#: What fio says, what it means; the first that is found in this order is the cause, later ones its consequences.
COMPLAINTS: tuple[tuple[re.Pattern[str], type[RigError], str], ...] = (
    (re.compile(r"fio: (\S+) appears mounted"), DriveRefused, "fio refused to write {0}: it is mounted"),
    (
        re.compile(r"you need to specify size=|file creation disallowed"),
        RigError,
        "fio did not find the device it was to use; has it gone away?",
    ),
    (re.compile(r"unrecognized option '([^']+)'|Bad option <([^>]+)>"), RigError, "this fio does not know {0}"),
    (re.compile(r"engine (\S+) not loadable"), RigError, "this fio lacks the I/O engine {0}"),
    (
        re.compile(r"io_u error on file (\S+): (.+?): (\w+) offset=(\d+)"),
        InvalidMeasurement,
        "I/O error on {0}: {1} ({2} at byte {3})",
    ),
    (re.compile(r"got signal=(\d+)"), InvalidMeasurement, "a worker of fio was killed by signal {0}"),
    (re.compile(r"pid=(\d+) disappeared"), InvalidMeasurement, "a worker of fio (process {0}) disappeared"),
    (
        re.compile(r"hasn't exited in (\d+) seconds|stuck grabbing stat_sem"),
        InvalidMeasurement,
        "a worker of fio got stuck and was given up",
    ),
    (re.compile(r"terminating on signal (\d+)"), InvalidMeasurement, "fio was ended early by signal {0}"),
)


def accept(output: bytes, status: int, stderr: str, expectation: Expectation) -> FioResult:
    """``parse`` and ``check`` in the order that finds the cause before its consequences.

    Raises ``RigError`` (nothing could be measured) or ``InvalidMeasurement`` (the numbers must not be used).
    """
    _look_for_complaints([*stderr.splitlines(), *_text_lines(output)])
    _check_status(status, stderr)
    result = parse(output)
    check(result, status, stderr, expectation)
    return result


def check(result: FioResult, status: int, stderr: str, expectation: Expectation) -> None:
    """Raise ``RigError`` or ``InvalidMeasurement`` unless ``result`` is whole and is what was asked for."""
    _look_for_complaints([*stderr.splitlines(), *result.messages])
    _check_status(status, stderr)
    if result.error:
        raise InvalidMeasurement(f"a job of fio failed with errno {result.error}{_last_line(stderr)}")
    if not result.intervals:
        raise InvalidMeasurement(f"fio ran for no time at all{_last_line(stderr)}")
    if expectation.seconds is not None and result.seconds < _at_least_s(expectation.seconds):
        raise InvalidMeasurement(f"fio ran for {result.seconds:.1f} s instead of {expectation.seconds:.1f} s")
    _check_direction("read", result.read, expectation.reads, expectation.block_bytes)
    _check_direction("write", result.write, expectation.writes, expectation.block_bytes)
    if expectation.written_bytes not in (None, result.write.bytes):
        raise InvalidMeasurement(f"fio wrote {result.write.bytes} bytes instead of {expectation.written_bytes}")


def _at_least_s(seconds: float) -> float:
    """Run time counts from the start of a job, the timer from a moment earlier; within one status interval of 1 s."""
    return seconds - 0.1 - min(0.5, 0.001 * seconds)


def _check_direction(name: str, done: Direction, wanted: bool, block_bytes: int | None) -> None:
    counted = done.latency.total
    if bool(counted) != wanted:
        raise InvalidMeasurement(f"fio did {counted} {name}s, but {'some' if wanted else 'none'} were asked for")
    # Issued against completed: differs in every document but the last one of a run that ended by itself.
    if done.ios != counted:
        raise InvalidMeasurement(
            f"fio started {done.ios} {name}s and timed {counted}: a worker was lost, or its last document was"
        )
    if block_bytes is not None and done.bytes != done.ios * block_bytes:
        raise InvalidMeasurement(f"fio counted {done.bytes} bytes in {done.ios} {name}s of {block_bytes} bytes")


def _check_status(status: int, stderr: str) -> None:
    if status < 0:
        raise InvalidMeasurement(f"fio itself was killed by signal {-status}{_last_line(stderr)}")
    if status:
        raise InvalidMeasurement(f"fio exited with status {status}{_last_line(stderr)}")


def _look_for_complaints(lines: Iterable[str]) -> None:
    lines = list(lines)
    for pattern, error, sentence in COMPLAINTS:
        for line in lines:
            if found := pattern.search(line):
                raise error(sentence.format(*(group for group in found.groups() if group)))


def _text_lines(output: bytes) -> tuple[str, ...]:
    """What fio says, even where the documents are damaged; it never begins with the blanks or braces of JSON."""
    try:
        return tuple(piece for piece in pieces(output) if isinstance(piece, str))
    except InvalidMeasurement:
        text = output.decode("utf-8", "backslashreplace")
        return tuple(line for line in text.splitlines() if line[:1] not in ("", " ", "{", "}"))


def _last_line(stderr: str) -> str:
    lines = stderr.split("\n")
    return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")
