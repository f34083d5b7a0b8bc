"""Acceptance of a fio process's output: every way of failing, by its cause.

Pure. fio's exit status is checked but never trusted alone; each error names the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from pytest_ssdqual.rig.drives.fencing import BUSY
from pytest_ssdqual.rig.fio import engine_limits
from pytest_ssdqual.rig.fio.intervals import IoDirection
from pytest_ssdqual.rig.fio.jobs import ExpectedResult
from pytest_ssdqual.rig.fio.output import MOST_DOCUMENTS, FioResult, Output, StatusReader, read
from pytest_ssdqual.rig.machine.machine import DriveRefused, InvalidMeasurement, RigError

#: Jobs of one target differ in speed, and the first that is done ends all: 95 to 100 % of the volume were written.
FAIR_SHARE = 0.9
#: fio's message and exit status after an interrupt.
OWN_SIGNAL, INTERRUPTED = re.compile(r"fio: terminating on signal 2"), 128
#: Errors of the kernel before an I/O reaches a drive; no evidence against it.
OF_HOST = "(?:Resource temporarily unavailable|Cannot allocate memory|Interrupted system call|Operation canceled)"
#: Errors of a device that is read-only, or that the user of fio may not open; no evidence against a drive either.
FORBIDDEN = "(?:Operation not permitted|Permission denied)"
#: The kernel's error if it does not support a request, and for a drive's status Invalid Opcode, Field or Namespace
#: (nvme_error_status, drivers/nvme/host/core.c): only the kernel's log tells which of the two it is.
UNSUPPORTED = "Operation not supported"
#: fio's message, error, meaning. The first match in this order is the cause, others are its consequences.
COMPLAINTS: tuple[tuple[re.Pattern[str], type[RigError], str], ...] = (
    (re.compile(r"fio: (\S+) appears mounted"), DriveRefused, "fio refused to write {0}: it is mounted"),
    (re.compile(rf"^(/\S+): {BUSY}$"), DriveRefused, "fio was not started: {0} is in use by something else"),
    (
        re.compile(r"^(/\S+) is not the drive that was checked: (.*)"),
        DriveRefused,
        "fio was not started: {0} is not the drive that was checked: {1}",
    ),
    (
        re.compile(r"you need to specify size=|file creation disallowed"),
        RigError,
        "fio did not find the device it was to use; has it gone away?",
    ),
    (re.compile(r"unrecognized option '([^']+)'|Bad option <([^>]+)>"), RigError, "this fio does not know {0}"),
    (re.compile(r"engine (\S+) not loadable"), RigError, "this fio lacks the I/O engine {0}"),
    (
        re.compile(r"io_u error on file (\S+): Invalid argument: (\w+) offset=(\d+), buflen=(\d+)"),
        InvalidMeasurement,
        "{0} refused a {1} of {3} bytes at byte {2}: are its logical sectors larger than such a size or offset?",
    ),
    (
        re.compile(rf"io_u error on file (\S+): (?!{OF_HOST}:|{FORBIDDEN}:|{UNSUPPORTED}:)(.+?): (\w+) offset=(\d+)"),
        InvalidMeasurement,
        "I/O error on {0}: {1} ({2} at byte {3})",
    ),
    # Memory, queues and the engine are the host's (axboe/fio#1432, axboe/liburing#1269). After the errors of drives:
    # when one of them fails, I/Os of the others are cancelled.
    (
        re.compile(rf"io_u error on file (\S+): ({OF_HOST}): (\w+) offset=(\d+)"),
        InvalidMeasurement,
        'the kernel did not take a {2} for {0}: {1}; is memory short, or does engine = "libaio" in [load] help?',
    ),
    (
        re.compile(rf"io_u error on file (\S+): ({UNSUPPORTED}): (\w+) offset=(\d+)"),
        InvalidMeasurement,
        'a {2} failed on {0}: {1}; look into the kernel log for its cause, or set engine = "libaio" in [load]',
    ),
    (
        re.compile(rf"io_u error on file (\S+): ({FORBIDDEN}): (\w+) offset=(\d+)"),
        InvalidMeasurement,
        "the kernel did not permit a {2} on {0}: {1}; `blockdev --getro {0}` prints 1 if it is read-only",
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


def accept(output: Output, status: int, stderr: str, expectation: ExpectedResult) -> FioResult:
    """``StatusReader.whole`` and ``check``, in the order that finds the cause before its consequences.

    ``RigError`` if nothing could be measured, ``InvalidMeasurement`` if the numbers must not be used.
    """
    return check(_ended(output, status, stderr).whole(), status, stderr, expectation)


def accept_totals(output: Output, status: int, stderr: str, expectation: ExpectedResult) -> FioResult:
    """``accept`` where only the counts of the whole process matter, whatever happened to the clock meanwhile."""
    return check(_ended(output, status, stderr, MOST_DOCUMENTS).totals(), status, stderr, expectation)


def _ended(output: Output, status: int, stderr: str, most: int | None = None) -> StatusReader:
    """Return the reader of the output unless fio itself reports a failure."""
    reader = read(output, most)
    _look_for_complaints([*stderr.splitlines(), *reader.messages()])
    _check_status(status, stderr, *reader.failure)
    return reader


def accept_ended(output: Output, status: int, stderr: str, expectation: ExpectedResult) -> FioResult:
    """``accept`` for a process that this program ended gently, at a time of its choice: any run time is right."""
    reader = read(output)
    _look_for_complaints(line for line in [*stderr.splitlines(), *reader.messages()] if not OWN_SIGNAL.fullmatch(line))
    if status != INTERRUPTED:
        _check_status(status, stderr, *reader.failure)
    result = reader.whole()
    others = tuple(line for line in result.messages if not OWN_SIGNAL.fullmatch(line))
    check(replace(result, messages=others), 0, "", replace(expectation, seconds=None))
    return result


def messages(output: Output, stderr: str) -> tuple[str, ...]:
    """All messages of fio, in its output and on standard error."""
    return (*stderr.splitlines(), *read(output).messages())


def check(result: FioResult, status: int, stderr: str, expectation: ExpectedResult) -> FioResult:
    """Return ``result``; raise ``RigError`` or ``InvalidMeasurement`` unless it is whole and as expected."""
    _look_for_complaints([*stderr.splitlines(), *result.messages])
    _check_status(status, stderr, result.error, result.engine)
    if not result.intervals:
        raise InvalidMeasurement(f"fio ran for no time at all{_last_line(stderr)}")
    _check_end(result, expectation)
    _check_direction("read", result.read, expectation.reads, expectation)
    _check_direction("write", result.write, expectation.writes, expectation)
    if expectation.written_bytes not in (None, result.write.bytes):
        raise InvalidMeasurement(f"fio wrote {result.write.bytes} bytes instead of {expectation.written_bytes}")
    if expectation.read_bytes not in (None, result.read.bytes):
        raise InvalidMeasurement(f"fio read {result.read.bytes} bytes instead of {expectation.read_bytes}")
    _check_parts(result, expectation)
    return result


def _check_end(result: FioResult, expectation: ExpectedResult) -> None:
    seconds, volume = expectation.seconds, expectation.volume_bytes
    # The run time counts from a job's start, the timer from a moment earlier; the status interval is 1 s.
    if seconds is None or result.seconds >= seconds - 0.1 - min(0.5, 0.001 * seconds):
        return
    if volume is None:
        raise InvalidMeasurement(f"fio ran for {result.seconds:.1f} s instead of {seconds:.1f} s")
    # The first job that has written its share ends all, and the fastest drive ends all drives.
    written = [sum(interval.write_bytes for interval in part) for part in result.of_targets]
    if max(written) * len(written) < FAIR_SHARE * volume:
        raise InvalidMeasurement(
            f"fio ended after {result.seconds:.1f} s and {result.write.bytes} bytes written, "
            f"neither {seconds:.1f} s nor {volume} bytes"
        )


def _check_direction(name: str, done: IoDirection, expected: bool, expectation: ExpectedResult) -> None:
    timed = done.latency.total
    if bool(timed) != expected:
        raise InvalidMeasurement(f"fio did {timed} {name}s, but {'some' if expected else 'none'} were asked for")
    # Issued and completed I/Os differ in every document but the last one of a run that ended by itself.
    if done.ios != timed:
        raise InvalidMeasurement(
            f"fio started {done.ios} {name}s and timed {timed}: a worker was lost, or its last document was"
        )
    smallest = expectation.block_bytes or expectation.smallest_bytes
    largest = expectation.block_bytes or expectation.largest_bytes
    if smallest and largest and not done.ios * smallest <= done.bytes <= done.ios * largest:
        sizes = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
        raise InvalidMeasurement(f"fio counted {done.bytes} bytes in {done.ios} {name}s of {sizes} bytes")


def _check_parts(result: FioResult, expectation: ExpectedResult) -> None:
    """Require that each drive side by side was reported, and did what was requested of all."""
    if len(result.parts) != len(expectation.paths):
        raise InvalidMeasurement(f"fio reported {len(result.parts)} drives apart, not {len(expectation.paths)}")
    for path, part in zip(expectation.paths, result.parts, strict=True):
        reads, writes = sum(interval.read_ios for interval in part), sum(interval.write_ios for interval in part)
        for name, count, expected in (("read", reads, expectation.reads), ("write", writes, expectation.writes)):
            if bool(count) != expected:
                raise InvalidMeasurement(f"fio did {count} {name}s on {path}")


def _check_status(status: int, stderr: str, errno: int, engine: str) -> None:
    """Raise if fio reports a failure: by a signal, by the errno of a job, or by its exit status alone."""
    last = _last_line(stderr)
    if status < 0:
        raise InvalidMeasurement(f"fio itself was killed by signal {-status}{last}")
    if errno:
        limits, _ = engine_limits.limits_in(stderr.splitlines())
        raise InvalidMeasurement(f"a job of fio failed: {engine_limits.in_words(abs(errno), engine, limits)}{last}")
    if status:
        raise InvalidMeasurement(f"fio exited with status {status}{last}")


def _look_for_complaints(lines: Iterable[str]) -> None:
    lines = list(lines)
    for pattern, error, sentence in COMPLAINTS:
        for line in lines:
            if match := pattern.search(line):
                raise error(sentence.format(*(group for group in match.groups() if group)))


def _last_line(stderr: str) -> str:
    _, lines = engine_limits.limits_in(stderr.splitlines())
    return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")
