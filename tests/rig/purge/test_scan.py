"""Scans of real files by both programs, and the promise about discards by made-up tools."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.integrity.erasure import DiscardPromise
from pytest_ssdqual.qual.integrity.stamp import Stamp, filled
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.integrity.erase import PROMISE, promise, stretches, whole
from pytest_ssdqual.rig.machine.machine import DeadlineExceeded, RigError
from pytest_ssdqual.rig.purge.scan import PERL, PLACES, PYTHON, sample, scan

MIB = 1 << 20
STAMP = Stamp(3, 77, 0)


@pytest.fixture(params=["perl", "python3"])
def machine(request: pytest.FixtureRequest) -> ScriptedMachine:
    start = [request.param, "-e", PERL] if request.param == "perl" else [request.param, "-I", "-S", "-c", PYTHON]

    def run(argv: tuple[str, ...]) -> str:
        done = subprocess.run([*start, *argv[6:]], capture_output=True, text=True, check=False)
        return done.stdout

    return ScriptedMachine().on("sh", "-c", answer=lambda argv: completed(argv, run(tuple(argv))))


@pytest.fixture
def device() -> Iterator[Path]:
    """A file on a file system that has O_DIRECT, which /tmp may lack."""
    path = Path.cwd() / f"scan-{os.getpid()}.img"
    parts = [
        bytes(2 * MIB), b"\xff" * MIB, filled(STAMP.at(3 * MIB), MIB), os.urandom(MIB),
        bytes(MIB - 4096) + filled(STAMP.at(99), 4096), filled(Stamp(3, 78, 0), MIB),
    ]  # fmt: skip
    path.write_bytes(b"".join(parts))
    yield path
    path.unlink()


def test_old_data_and_uniform_bytes_are_found(machine: ScriptedMachine, device: Path) -> None:
    ranges = [
        (0, 2 * MIB),
        (2 * MIB, MIB),
        (3 * MIB, MIB),
        (4 * MIB, MIB),
        (5 * MIB, MIB),
        (6 * MIB, MIB),
        (0, 7 * MIB),
    ]
    found = scan(machine, str(device), STAMP, ranges)
    assert [(each.begin_bytes, each.size_bytes) for each in found] == ranges
    assert [each.fill for each in found] == [0, 0xFF, None, None, None, None, None]
    assert [each.old_at for each in found] == [None, None, 3 * MIB, None, 6 * MIB - 4096, None, 3 * MIB]
    assert len({each.checksum for each in found}) == len(found)
    assert scan(machine, str(device), STAMP, ranges) == found


def test_pages_of_far_offsets_have_checksums_of_their_own(machine: ScriptedMachine, device: Path) -> None:
    """The offset in a stamp has 64 bits, and the bytes of a page are summed."""
    for at, offset_bytes in enumerate((1 << 32, 1 << 33, 7 << 40, 1 << 20)):
        with device.open("r+b") as file:
            file.seek(at * 4096)
            file.write(filled(STAMP.at(offset_bytes), 4096))
    found = scan(machine, str(device), STAMP, [(at * 4096, 4096) for at in range(4)])
    assert len({each.checksum for each in found}) == 4


def test_what_cannot_be_read_is_short_or_missing(machine: ScriptedMachine, device: Path) -> None:
    (found,) = scan(machine, str(device), STAMP, [(6 * MIB, 2 * MIB)])
    assert found.size_bytes == MIB
    assert scan(machine, "/dev/none", STAMP, [(0, MIB)]) == ()


def test_samples_are_even_and_alike(machine: ScriptedMachine) -> None:
    assert sample(machine, drive(0)) == ()
    words = [int(word) for word in machine.asked[-1][8:]]
    assert (len(words), words[0], set(words[1::2])) == (2 * PLACES, 0, {4096})
    assert words[-2] == drive(0).size_bytes - 4096


def test_only_a_drive_that_is_too_slow_has_no_samples() -> None:
    slow = ScriptedMachine().on("sh", answer=DeadlineExceeded("sh did not end within 60 s"))
    assert sample(slow, drive(0)) == ()
    with pytest.raises(LeaseLost):
        sample(ScriptedMachine().on("sh", answer=LeaseLost("the lease ended")), drive(0))


@pytest.mark.parametrize("size_bytes", [256 * MIB, 480_103_981_056, 7_681_501_126_656])
def test_ranges_are_aligned_and_apart(size_bytes: int) -> None:
    parts = stretches(JobTarget("/dev/sdb", size_bytes - MIB, MIB), 1)
    ends = [part.offset_bytes + part.size_bytes for part in parts]
    assert all(end <= after.offset_bytes for end, after in zip(ends, parts[1:], strict=False))
    assert parts[0].offset_bytes >= MIB
    assert ends[-1] <= size_bytes
    assert all(part.offset_bytes % (part.size_bytes // 3) == 0 for part in parts)


NVME = '#!/bin/sh\nprintf %s "$ANSWER"\n'
HDPARM = '#!/bin/sh\nprintf "%s\\n" "$ATA"\n'


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("name", "env", "page", "word"),
    [
        ("nvme0n1", {"ANSWER": '{"nsze":1,"dlfeat":9,"nlbaf":3}'}, None, "zeroes"),
        ("nvme0n1", {"ANSWER": '{\n  "dlfeat" : 2\n}'}, None, "ones"),
        ("nvme0n1", {"ANSWER": '{"dlfeat":8}'}, None, "nothing"),
        ("nvme0n1", {"ANSWER": ""}, None, "nothing"),
        ("sda", {"ATA": "  *  Deterministic read ZEROs after TRIM"}, None, "zeroes"),
        ("sda", {"ATA": "  *  Deterministic read data after TRIM"}, None, "stable"),
        ("sda", {"ATA": ""}, None, "nothing"),
        ("sda", {"ATA": ""}, b"\0\xb2\0\4\0\xe4\2\0", "zeroes"),
        ("sda", {"ATA": ""}, b"\0\xb2\0\4\0\xe0\2\0", "nothing"),
    ],
)
def test_promise_of_each_kind_of_drive(
    tmp_path: Path, shell: str, name: str, env: Mapping[str, str], page: bytes | None, word: str
) -> None:
    for program, text in (("nvme", NVME), ("hdparm", HDPARM)):
        (tmp_path / program).write_text(text)
        (tmp_path / program).chmod(0o755)
    if page:
        (tmp_path / "class" / "block" / name / "device").mkdir(parents=True)
        (tmp_path / "class" / "block" / name / "device" / "vpd_pgb2").write_bytes(page)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "sys": str(tmp_path)}
    assert run_script(shell, PROMISE, "promise", name, f"/dev/{name}", env={**path, **env}) == f"{word}\n"


def test_a_drive_that_cannot_be_asked_promises_nothing() -> None:
    assert promise(ScriptedMachine().on("sh", answer=""), drive(0)) is DiscardPromise.NOTHING
    assert promise(ScriptedMachine().on("sh", answer="zeroes\n"), drive(0)) is DiscardPromise.ZEROES


@pytest.mark.parametrize("answer", ["", "4096 - 0 0\n", "1048576 - 0 0\n1048576 - 0 0\n"])
def test_a_range_that_cannot_be_read_is_an_error(answer: str) -> None:
    with pytest.raises(RigError, match="to the end"):
        whole(ScriptedMachine().on("sh", answer=answer), "/dev/sdb", STAMP, [(0, MIB), (MIB, 2 * MIB)])
