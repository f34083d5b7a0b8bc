from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders.captured import VERSIONS, captured

from pytest_ssdqual.rig.fio import process
from pytest_ssdqual.rig.fio.acceptance import FAIR_SHARE, accept, accept_ended, check
from pytest_ssdqual.rig.fio.jobs import ExpectedResult
from pytest_ssdqual.rig.fio.output import StatusReader, parse
from pytest_ssdqual.rig.machine.machine import DriveRefused, InvalidMeasurement, RigError

GOOD = ["randread", "randwrite", "randrw70", "write", "fill", "stalled", "streams", "profile", "volume"]
GOOD += ["side-by-side", "side-by-side-fill", "side-by-side-streams", "pattern-written", "pattern-intact"]
#: They end when they are done, so a cut one may have few documents.
SHORT = {"fill", "side-by-side-fill", "volume", "pattern-written", "pattern-intact"}
READ_3S = ExpectedResult(reads=True, writes=False, seconds=3.0, block_bytes=4096)

on_every_version = pytest.mark.parametrize("version", VERSIONS)


@pytest.mark.parametrize(
    ("stderr", "sentence"),
    [
        ("/dev/sdb: Device or resource busy\n", "fio was not started: /dev/sdb is in use by something else"),
        (
            "/dev/sdb is not the drive that was checked: its serial is not S1\n",
            "fio was not started: /dev/sdb is not the drive that was checked: its serial is not S1",
        ),
    ],
)
def test_a_drive_that_was_not_to_be_had_is_refused(stderr: str, sentence: str) -> None:
    with pytest.raises(DriveRefused, match=f"^{re.escape(sentence)}$"):
        accept(b"", 76, stderr, READ_3S)


@on_every_version
@pytest.mark.parametrize("case", GOOD)
def test_a_whole_run_is_accepted(version: str, case: str) -> None:
    run = captured(version, case)
    found = accept(run.output, run.status, run.stderr, run.expectation)
    assert found.intervals
    assert accept(process.unpacked(gzip.compress(run.output)), run.status, run.stderr, run.expectation) == found


def test_a_packed_output_is_never_unpacked_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    run, pieces = captured("3.42", "randread"), list[int]()
    feed = StatusReader.feed

    def fed(self: StatusReader, data: bytes) -> None:
        pieces.append(len(data))
        feed(self, data)

    monkeypatch.setattr(process, "PIECE_BYTES", 5000)
    monkeypatch.setattr(StatusReader, "feed", fed)
    accept(process.unpacked(gzip.compress(run.output)), run.status, run.stderr, run.expectation)
    assert max(pieces) == 5000
    assert sum(pieces) == len(run.output)


@on_every_version
@pytest.mark.parametrize(
    ("case", "kind", "cause"),
    [
        ("worker-killed", InvalidMeasurement, "a worker of fio was killed by signal 9"),
        ("workers-killed", InvalidMeasurement, "a worker of fio was killed by signal 9"),
        ("fio-killed", InvalidMeasurement, "fio itself was killed by signal 9"),
        ("interrupted", InvalidMeasurement, "fio was ended early by signal 2"),
        ("mounted", DriveRefused, "fio refused to write /dev/loop0: it is mounted"),
        ("no-target", RigError, "fio did not find the device"),
        ("no-target-fill", RigError, "fio did not find the device"),
        ("media-error", InvalidMeasurement, r"I/O error on /dev/loop1: No space left on device \(write at byte \d+\)"),
        ("side-by-side-error", InvalidMeasurement, r"I/O error on /dev/loop1: No space left on device \(write at byte"),
        (
            "larger-sectors",
            InvalidMeasurement,
            r"/dev/loop0 refused a read of 512 bytes at byte \d+: are its logical sectors larger",
        ),
        ("output-full", InvalidMeasurement, "cut off after 4 whole documents"),
        ("output-full-at-start", InvalidMeasurement, "fio wrote no result"),
    ],
)
def test_every_way_of_failing_is_named_by_its_cause(version: str, case: str, kind: type[RigError], cause: str) -> None:
    run = captured(version, case)
    with pytest.raises(kind, match=cause):
        accept(run.output, run.status, run.stderr, run.expectation)


@on_every_version
@pytest.mark.parametrize(
    ("case", "cause"),
    [
        ("worker-killed", "started [0-9]+ reads and timed"),
        ("workers-killed", r"fio ran for no time|fio ran for \d"),
        ("fio-killed", r"fio ran for 0\.9 s instead of 3\.0 s"),
        ("interrupted", r"fio ran for 1\.\d s instead of 4\.0 s"),
        ("mounted", "fio ran for no time at all"),
        ("no-target-fill", "fio ran for no time at all"),
        ("no-target", r"a job of fio failed: Invalid argument \(errno 22\)"),
        ("media-error", r"a job of fio failed: No space left on device \(errno 28\)"),
        ("side-by-side-error", r"a job of fio failed: No space left on device \(errno 28\)"),
    ],
)
def test_the_numbers_alone_give_every_failure_away(version: str, case: str, cause: str) -> None:
    """As if status and messages had been lost: fio often exits with 0 and says nothing."""
    run = captured(version, case)
    result = replace(parse(run.output), messages=())
    with pytest.raises(InvalidMeasurement, match=cause):
        check(result, 0, "", run.expectation)


def failed(errno: int, engine: str) -> bytes:
    """The output of a fio whose only job could not be started: the document has the number, and no text."""
    document = json.loads(captured("3.33", "no-target-fill").output.partition(b"{\n")[2].join((b"{", b"")))
    for job in document["jobs"]:
        job["error"], job["job options"]["ioengine"] = errno, engine
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("errno", "engine", "limits", "words"),
    [
        (
            1,
            "io_uring",
            "kernel.io_uring_disabled=2",
            "Operation not permitted: io_uring is forbidden here, kernel.",
        ),
        (1, "io_uring", "kernel.io_uring_disabled=0", "seccomp profile (kernel.io_uring_disabled=0)"),
        (38, "io_uring", "", "Function not implemented: io_uring is forbidden here"),
        (11, "libaio", "fs.aio-nr=65530\nfs.aio-max-nr=65536", "fs.aio-max-nr=65536 are in use 65530"),
        (12, "io_uring", "memlock=64", "Cannot allocate memory: the kernel has too little memory"),
        (12, "io_uring", "memlock=64", "64 KiB may be locked"),
        (1, "libaio", "kernel.io_uring_disabled=2", "Operation not permitted (errno 1)"),
        (5, "libaio", "", "Input/output error (errno 5)"),
    ],
)
@pytest.mark.parametrize("status", [0, 1, 2])
def test_errno_is_explained_by_the_limit(errno: int, engine: str, limits: str, words: str, status: int) -> None:
    with pytest.raises(InvalidMeasurement, match=re.escape(words)):
        accept(failed(errno, engine), status, f"{limits}\n", READ_3S)


@on_every_version
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), case=st.sampled_from(GOOD))
def test_a_file_cut_anywhere_is_never_accepted(version: str, case: str, data: st.DataObject) -> None:
    run = captured(version, case)
    whole = len(run.output.rstrip())
    cut = data.draw(st.integers(0, whole - 1))
    with pytest.raises(RigError):
        accept(run.output[:cut], 0, "", run.expectation)


@on_every_version
@pytest.mark.parametrize("case", [case for case in GOOD if case not in SHORT])
def test_a_file_cut_between_documents_is_never_accepted(version: str, case: str) -> None:
    run = captured(version, case)
    cuts = [found.end() for found in re.finditer(rb"^\}\n", run.output, re.MULTILINE)]
    assert len(cuts) > 2
    for cut in cuts[:-1]:
        with pytest.raises(InvalidMeasurement):
            accept(run.output[:cut], 0, "", run.expectation)


@on_every_version
@pytest.mark.parametrize(
    ("expectation", "cause"),
    [
        (replace(READ_3S, seconds=3.5), r"fio ran for 3\.0 s instead of 3\.5 s"),
        (replace(READ_3S, reads=False), "reads, but none were asked for"),
        (replace(READ_3S, writes=True), "fio did 0 writes, but some were asked for"),
        (replace(READ_3S, block_bytes=8192), "bytes in [0-9]+ reads of 8192 bytes"),
        (replace(READ_3S, written_bytes=1 << 30), "fio wrote 0 bytes instead of 1073741824"),
        (replace(READ_3S, read_bytes=1 << 40), "fio read [0-9]+ bytes instead of 1099511627776"),
    ],
)
def test_something_else_than_was_asked_for(version: str, expectation: ExpectedResult, cause: str) -> None:
    run = captured(version, "randread")
    accept(run.output, 0, "", READ_3S)
    with pytest.raises(InvalidMeasurement, match=cause):
        accept(run.output, 0, "", expectation)


@on_every_version
def test_sizes_of_a_mix_are_within_its_range(version: str) -> None:
    run = captured(version, "profile")
    accept(run.output, 0, "", run.expectation)
    mean = sum(i.read_bytes for i in parse(run.output).intervals) // parse(run.output).read.ios
    for smallest, largest in ((512, mean), (mean + 1, 65536)):
        with pytest.raises(InvalidMeasurement, match=f"of {smallest} to {largest}"):
            accept(run.output, 0, "", replace(run.expectation, smallest_bytes=smallest, largest_bytes=largest))


@on_every_version
def test_a_volume_that_was_not_reached_is_no_reason_to_end(version: str) -> None:
    run = captured(version, "volume")
    accept(run.output, 0, "", run.expectation)
    with pytest.raises(InvalidMeasurement, match="nor 2000000000 bytes"):
        accept(run.output, 0, "", replace(run.expectation, volume_bytes=2 * 10**9))
    with pytest.raises(InvalidMeasurement, match=r"instead of 600\.0"):
        accept(run.output, 0, "", replace(run.expectation, volume_bytes=None))


@on_every_version
def test_the_fastest_drive_sets_the_end(version: str) -> None:
    run = captured(version, "side-by-side")
    parts = parse(run.output).parts
    fastest = max(sum(each.write_bytes for each in part) for part in parts)
    assert fastest * 2 > sum(each.write_bytes for part in parts for each in part)
    accept(run.output, 0, "", replace(run.expectation, seconds=60, volume_bytes=int(fastest * 2 / FAIR_SHARE)))
    with pytest.raises(InvalidMeasurement, match=r"neither 60\.0"):
        accept(run.output, 0, "", replace(run.expectation, seconds=60, volume_bytes=int(fastest * 2.1 / FAIR_SHARE)))


@on_every_version
def test_every_drive_has_to_do_its_part(version: str) -> None:
    run = captured(version, "side-by-side")
    result = parse(run.output)
    check(result, 0, "", run.expectation)
    idle = replace(result, parts=(result.parts[0], ()))
    with pytest.raises(InvalidMeasurement, match="writes on /dev/loop1"):
        check(idle, 0, "", run.expectation)
    with pytest.raises(InvalidMeasurement, match="0 drives apart"):
        check(replace(result, parts=()), 0, "", run.expectation)
    with pytest.raises(InvalidMeasurement, match="2 drives apart"):
        check(result, 0, "", replace(run.expectation, paths=("/dev/a", "/dev/b", "/dev/c")))


@pytest.mark.parametrize(
    ("status", "stderr", "kind", "cause"),
    [
        (0, "fio: pid=12, got signal=11", InvalidMeasurement, "killed by signal 11"),
        (0, "fio: pid=12 disappeared 5", InvalidMeasurement, r"\(process 12\) disappeared"),
        (
            0,
            "fio: job 'm' (state=5) hasn't exited in 300 seconds, it appears to be stuck.",
            InvalidMeasurement,
            "stuck",
        ),
        (0, "fio: stuck grabbing stat_sem", InvalidMeasurement, "got stuck"),
        (1, "fio: unrecognized option '--x=1'", RigError, "does not know --x=1"),
        (1, "fio: engine libaio not loadable", RigError, "lacks the I/O engine libaio"),
        (-9, "", InvalidMeasurement, "fio itself was killed by signal 9"),
        *(
            (1, f"fio: io_u error on file /dev/sdb: {words}: write offset=4096, buflen=4096", InvalidMeasurement, cause)
            for words, cause in (
                ("Resource temporarily unavailable", "^the kernel did not take a write for /dev/sdb"),
                ("Cannot allocate memory", "^the kernel did not take a write for /dev/sdb"),
                ("Input/output error", "^I/O error on /dev/sdb: Input/output error"),
                ("Operation not supported", "^a write failed on /dev/sdb"),
                ("Permission denied", "^the kernel did not permit a write on /dev/sdb"),
                ("Operation not permitted", "^the kernel did not permit a write on /dev/sdb"),
                ("Remote I/O error", "^I/O error on /dev/sdb: Remote I/O error"),
            )
        ),
        (3, "one\ntwo\n\n", InvalidMeasurement, "fio exited with status 3: two$"),
    ],
)
def test_signs_beside_good_numbers(status: int, stderr: str, kind: type[RigError], cause: str) -> None:
    run = captured(VERSIONS[0], "randread")
    with pytest.raises(kind, match=cause):
        accept(run.output, status, stderr, run.expectation)


def test_a_failing_drive_counts_before_what_was_cancelled_for_it() -> None:
    run = captured(VERSIONS[0], "randread")
    lines = (
        f"fio: io_u error on file {drive}: {words}: read offset=4096, buflen=4096"
        for drive, words in (("/dev/sdb", "Operation canceled"), ("/dev/sdc", "Input/output error"))
    )
    with pytest.raises(InvalidMeasurement, match="error on /dev/sdc"):
        accept(run.output, 1, "\n".join(lines), run.expectation)


def test_a_harmless_warning_is_no_failure() -> None:
    run = captured(VERSIONS[0], "randread")
    accept(run.output, 0, "note: both iodepth >= 1 and synchronous I/O engine are selected\n", run.expectation)


@on_every_version
def test_one_that_we_ended_is_as_long_as_it_is(version: str) -> None:
    run = captured(version, "interrupted")
    found = accept_ended(run.output, run.status, run.stderr, run.expectation)
    assert 1 < found.seconds < 2
    assert found.read.ios


@on_every_version
@pytest.mark.parametrize(
    ("case", "cause"),
    [
        ("worker-killed", "a worker of fio was killed by signal 9"),
        ("fio-killed", "fio itself was killed by signal 9"),
        ("media-error", "I/O error on"),
    ],
)
def test_that_we_ended_it_excuses_nothing_else(version: str, case: str, cause: str) -> None:
    run = captured(version, case)
    with pytest.raises(InvalidMeasurement, match=cause):
        accept_ended(run.output, run.status, run.stderr, run.expectation)


@on_every_version
def test_another_signal_than_ours_is_none_of_ours(version: str) -> None:
    run = captured(version, "interrupted")
    output = run.output.replace(b"terminating on signal 2", b"terminating on signal 15")
    with pytest.raises(InvalidMeasurement, match="by signal 15"):
        accept_ended(output, run.status, run.stderr, run.expectation)
