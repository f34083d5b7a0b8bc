"""Samples of files and loop devices by the script itself, in each of its two languages; and the parser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator.simulated_content import Contents, record

from pytest_ssdqual.rig.guard import label, sampling
from pytest_ssdqual.rig.guard.sampling import PAGE_BYTES, SPOTS, DeviceSample, SampledPage, parse, take
from pytest_ssdqual.rig.machine.machine import Completed, RigError

MIB = 1 << 20
SIZE = 16 * MIB


@pytest.fixture(params=["perl", "python3"])
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., dict[str, DeviceSample]]:
    """Takes samples on a machine that has just this."""
    only = tmp_path / "bin"
    only.mkdir()
    for tool in ("sh", request.param):
        found = sys.executable if tool == "python3" else shutil.which(tool)
        if found is None:
            pytest.skip(f"there is no {tool} here")
        # Not a link: a Python is where its library is.
        (only / tool).write_text(f'#!/bin/sh\nexec {Path(found).resolve()} "$@"\n')
        (only / tool).chmod(0o755)

    def run(argv: tuple[str, ...]) -> str:
        done = subprocess.run(argv, env={"PATH": str(only)}, capture_output=True, check=False, timeout=60)
        return done.stdout.decode()

    machine = ScriptedMachine().on("sh", "-c", sampling.SCRIPT, answer=lambda argv: completed(argv, run(argv)))

    def taken(*paths: Path, spots: int = 40) -> dict[str, DeviceSample]:
        sizes = {str(path): path.stat().st_size if path.exists() else MIB for path in paths}
        return take(machine, sizes, spots)

    return taken


def file(folder: Path, size: int = SIZE, **parts: bytes) -> Path:
    """A sparse file with data at ``at_<offset>``."""
    path = folder / f"file-{size}-{'-'.join(parts)}"
    with path.open("wb") as written:
        written.truncate(size)
        for name, data in parts.items():
            written.seek(int(name.removeprefix("at_")))
            written.write(data)
    with path.open("rb") as direct:
        os.fsync(direct.fileno())
    with suppress(OSError):
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        return path
    pytest.skip("this file system has no O_DIRECT")


@pytest.mark.parametrize("size", [512, PAGE_BYTES, MIB, MIB + 512, 2 * MIB + 512, SIZE])
def test_what_is_zero_is_blank(sample: Callable[..., dict[str, DeviceSample]], tmp_path: Path, size: int) -> None:
    path = file(tmp_path, size)
    (found,) = sample(path).values()
    assert found.read >= 1
    assert (found.pages, found.label, found.data_at, found.errors) == ((), b"", None, ())


def test_what_a_discard_may_return_is_blank(sample: Callable[..., dict[str, DeviceSample]], tmp_path: Path) -> None:
    path = file(tmp_path, at_0=b"\xff" * (4 * MIB))
    (found,) = sample(path).values()
    assert found.first_data is None


@pytest.mark.parametrize("at", [0, 1, 4095, 4096, MIB - 1, SIZE - MIB, SIZE - 1])
def test_one_byte_of_both_ends_is_found(
    sample: Callable[..., dict[str, DeviceSample]], tmp_path: Path, at: int
) -> None:
    path = file(tmp_path, SIZE, **{f"at_{at}": b"x"})
    (found,) = sample(path).values()
    wanted = at // PAGE_BYTES * PAGE_BYTES
    assert found.first_data == (wanted if found.pages or found.data_at == wanted else SIZE - MIB)


def test_data_in_between_are_found(sample: Callable[..., dict[str, DeviceSample]], tmp_path: Path) -> None:
    path = file(tmp_path, at_4194304=os.urandom(4 * MIB))
    (found,) = sample(path, spots=64).values()
    assert found.pages == ()
    assert found.data_at is not None
    assert 4 * MIB <= found.data_at < 8 * MIB


def test_a_label_is_read_and_what_is_behind_it(sample: Callable[..., dict[str, DeviceSample]], tmp_path: Path) -> None:
    page = label.page(label.of_drive("S1"))
    (found,) = sample(file(tmp_path, at_0=page)).values()
    assert label.is_owned(found, [label.of_drive("S1")])
    bitmap = bytes.fromhex(label.MD_BITMAP) + bytes(12) + b"\x02" * 100
    (found,) = sample(file(tmp_path, at_0=page, at_8192=bitmap, at_65536=b"theirs")).values()
    assert [each.offset_bytes for each in found.pages] == [0, 8192, 65536]
    assert found.pages[1].head == bitmap[:16].hex()
    assert not label.is_owned(found, [label.of_drive("S1")])


def test_behind_a_label_only_the_first_mib_is_read(
    sample: Callable[..., dict[str, DeviceSample]], tmp_path: Path
) -> None:
    """It is a labelled drive's own load, or else the label itself is foreign data."""
    full = os.urandom(8 * MIB)
    of_another = label.page(label.of_drive("S2"))
    (found,) = sample(file(tmp_path, at_0=of_another, at_4194304=full)).values()
    assert (found.read, found.data_at, found.first_data) == (1, None, 0)
    assert not label.is_owned(found, [label.of_drive("S1")])


def test_what_cannot_be_read_is_told(sample: Callable[..., dict[str, DeviceSample]], tmp_path: Path) -> None:
    good, gone = file(tmp_path), tmp_path / "gone"
    found = sample(good, gone)
    assert found[str(good)].errors == ()
    assert found[str(gone)].errors == ((0, "No such file or directory"),)


def test_without_perl_and_python_nothing_counts_as_sampled(tmp_path: Path) -> None:
    shell, only = shutil.which("sh"), tmp_path / "bin"
    only.mkdir()

    def run(argv: tuple[str, ...]) -> Completed:
        done = subprocess.run([str(shell), *argv[1:]], env={"PATH": str(only)}, capture_output=True, text=True)
        return completed(argv, done.stdout, done.returncode, done.stderr)

    machine = ScriptedMachine().on("sh", "-c", sampling.SCRIPT, answer=run)
    with pytest.raises(RigError, match="neither perl nor python3 is there"):
        take(machine, {"/dev/sda": SIZE})


def test_a_device_that_is_shorter_than_told_is_an_error(tmp_path: Path) -> None:
    path = file(tmp_path, MIB)

    def run(argv: tuple[str, ...]) -> str:
        return subprocess.run(argv, capture_output=True, check=False, timeout=60).stdout.decode()

    machine = ScriptedMachine().on("sh", "-c", sampling.SCRIPT, answer=run)
    (found,) = take(machine, {str(path): 4 * MIB}).values()
    assert found.errors
    assert found.errors[0][1] == "short read"


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A loop device with logical blocks of 4096 bytes."""
    image = file(tmp_path)
    done = subprocess.run(
        ["losetup", "--find", "--show", "--sector-size=4096", str(image)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("no loop devices here")
    yield done.stdout.strip()
    subprocess.run(["losetup", "--detach", done.stdout.strip()], check=True)


def test_a_label_is_written_to_drives_of_large_blocks(loop: str) -> None:
    page = label.page(label.of_drive("S1"))
    with Path(loop).open("r+b") as device:
        device.write(b"old" * MIB)
    subprocess.run(["sh", "-c", label.SCRIPT, "label", loop], input=page, check=True, capture_output=True, timeout=60)
    assert Path(loop).read_bytes()[: MIB + 3] == page.ljust(MIB, b"\0") + (b"old" * MIB)[MIB : MIB + 3]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "cut short"),
        (b"drive /dev/sda\0read 3\0", "cut short"),
        (b"drive /dev/sda\0read 3\0end", "cut short"),
        (b"end\0", "about nothing"),
        (b"drive /dev/sda\0end\0", "cut short"),
        (b"drive /dev/sda\0page 0 00 00\0end\0", "cut short"),
        (b"drive /dev/sda\0read 0\0end\0", "nothing of /dev/sda was read"),
        (b"drive /dev/sda\0read 3\0read 3\0end\0", "a record of /dev/sda is 'read 3'"),
        (b"drive /dev/sda\0read 3\0drive /dev/sda\0read 3\0end\0", "comes twice"),
        (b"drive /dev/sdb\0read 3\0end\0", "about /dev/sdb"),
        (b"drive /dev/sda\0data x\0read 3\0end\0", "no number"),
        (b"read 3\0end\0", "begins with 'read 3'"),
    ],
)
def test_half_an_answer_is_none(answer: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(answer, ["/dev/sda"])


def test_an_answer_that_makes_no_sense_stops_the_run() -> None:
    machine = ScriptedMachine().on("sh", "-c", sampling.SCRIPT, answer=completed(["sh"], "", 2, "sh: out of memory"))
    with pytest.raises(RigError, match=r"/dev/sda on scripted was not sampled: the answer was cut short; sh: out of"):
        take(machine, {"/dev/sda": SIZE})
    assert take(machine, {}) == {}


def test_devices_are_given_with_their_sizes() -> None:
    machine = ScriptedMachine(contents=Contents(data={"/dev/sdb": 12345}))
    found = take(machine, {"/dev/sda": SIZE, "/dev/sdb": MIB})
    assert machine.asked[0][4:] == (
        sampling.PERL, sampling.PYTHON, str(SPOTS), "/dev/sda", str(SIZE), "/dev/sdb", str(MIB)
    )  # fmt: skip
    assert found["/dev/sda"].first_data is None
    assert found["/dev/sdb"].first_data == 12345


@given(st.binary(max_size=200), st.lists(st.sampled_from([b"drive /dev/sda", b"read 1", b"end", b"page 0 00 00"])))
def test_any_bytes_are_an_answer_or_a_value_error(noise: bytes, records: list[bytes]) -> None:
    for answer in (noise, b"\0".join([*records, noise, b"end", b""])):
        with suppress(ValueError):
            assert set(parse(answer, ["/dev/sda"])) == {"/dev/sda"}


@given(st.integers(0, 1 << 60), st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_what_the_kernel_says_is_printable(at: int, why: str) -> None:
    answer = f"drive /dev/sda\0error {at} {why}\0read 0\0end\0".encode()
    (found,) = parse(answer, ["/dev/sda"]).values()
    assert found.errors[0][0] == at
    assert found.errors[0][1].isprintable()


def test_what_simulated_devices_say_is_understood() -> None:
    page = label.page("drive S1")
    said = record("/dev/sda", page=page, data_at=9) + b"end\0"
    (found,) = parse(said, ["/dev/sda"]).values()
    assert found == DeviceSample("/dev/sda", 194, (SampledPage(0, page[:16].hex(), "00" * 16),), page, 9)
