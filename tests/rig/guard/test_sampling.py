"""Samples of files and loop devices by the script itself, in each of its two languages; and the parser."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator.simulated_content import Contents, record

from pytest_ssdqual.rig.guard import known_places, label, sampling
from pytest_ssdqual.rig.guard.sampling import LEAST, PAGE_BYTES, DeviceSample, SampledPage, parse, take
from pytest_ssdqual.rig.machine.machine import Completed, RigError

MIB = 1 << 20
SIZE = 16 * MIB
SECURITY = Path(__file__).parents[3] / "docs/security.md"


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

    def taken(*paths: Path, least: int = 40, spend_s: float = 0, seed: int | None = None) -> dict[str, DeviceSample]:
        sizes = {str(path): path.stat().st_size if path.exists() else MIB for path in paths}
        return take(machine, sizes, spend_s, least=least, seed=seed)

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


Sample = Callable[..., dict[str, DeviceSample]]


@pytest.mark.parametrize("size", [512, PAGE_BYTES, MIB, MIB + 512, 2 * MIB + 512, SIZE])
def test_what_is_zero_is_blank(sample: Sample, tmp_path: Path, size: int) -> None:
    (found,) = sample(file(tmp_path, size)).values()
    assert found.read >= 1
    assert (found.pages, found.label, found.data_at, found.errors) == ((), b"", None, ())


@pytest.mark.parametrize("pattern", [b"\xff", b"\xaa"])
def test_what_a_discard_or_one_pattern_leaves_is_blank(sample: Sample, tmp_path: Path, pattern: bytes) -> None:
    path = file(tmp_path, at_0=pattern * (4 * MIB), at_12582912=b"\xff" * MIB)
    (found,) = sample(path, spend_s=0.1).values()
    assert found.first_data is None


@pytest.mark.parametrize("at", [0, 1, 4095, 4096, MIB - 1, SIZE - MIB, SIZE - 1])
def test_one_byte_of_both_ends_is_found(sample: Sample, tmp_path: Path, at: int) -> None:
    (found,) = sample(file(tmp_path, SIZE, **{f"at_{at}": b"x"})).values()
    wanted = at // PAGE_BYTES * PAGE_BYTES
    assert found.first_data == (wanted if found.pages or found.data_at == wanted else SIZE - MIB)


def test_data_in_between_are_found(sample: Sample, tmp_path: Path) -> None:
    path = file(tmp_path, 64 * MIB, **{f"at_{40 * MIB}": os.urandom(4 * MIB)})
    (found,) = sample(path, least=64).values()
    assert found.pages == ()
    assert found.data_at is not None
    assert 40 * MIB <= found.data_at < 44 * MIB


TB = 10**12
QUARTER = TB // 4
NOISE = os.urandom(PAGE_BYTES)
#: What is left on a drive of 1 TB whose first MiB was zeroed, by byte.
LEFT = {
    "LUKS1, or LVM, from 2 MiB on": {2 * MIB: NOISE},
    "LUKS2's second header": {MIB + 4 * MIB: b"SKUL\xba\xbe"},
    "LUKS2 data": {16 * MIB: NOISE},
    "partition behind one of Microsoft": {17 * MIB: NOISE},
    "btrfs, second superblock": {64 * MIB + 64: b"_BHRfS_M"},
    "btrfs in a partition, third superblock": {MIB + (256 << 30) + 64: b"_BHRfS_M"},
    "XFS on the drive": {QUARTER // PAGE_BYTES * PAGE_BYTES: b"XFSB"},
    "XFS in a partition": {MIB + (QUARTER - MIB // 2) // PAGE_BYTES * PAGE_BYTES: b"XFSB"},
    "ext4 of 1 KiB behind 63 sectors": {63 * 512 + 8193 * 1024: b"superblock"},
    "ext4 of 4 KiB behind md": {129 * MIB + 5 * 128 * MIB: b"superblock"},
    "GPT at the end": {TB - 512: b"EFI PART"},
    "bitmap of one byte a page": {3 * MIB: b"".join(bytes([at]) * PAGE_BYTES for at in range(1, 200))},
}


@pytest.mark.parametrize("name", LEFT)
def test_what_survives_the_first_mib_is_found(sample: Sample, tmp_path: Path, name: str) -> None:
    path = file(tmp_path, TB, **{f"at_{at}": data for at, data in LEFT[name].items()})
    (found,) = sample(path, least=0).values()
    assert found.data_at is not None


@pytest.mark.parametrize("offset", [0, 63 * 512, MIB], ids=["drive", "DOS partition", "partition"])
@pytest.mark.parametrize("block", [1024, 4096])
def test_ext4_without_its_first_mib_is_found(sample: Sample, tmp_path: Path, offset: int, block: int) -> None:
    """``e2fsck -b 32768`` gives every file of it back."""
    if not shutil.which("mke2fs"):
        pytest.skip("there is no mke2fs")
    path = file(tmp_path, 1 << 34)
    options = ["-E", f"offset={offset},lazy_itable_init=1", "-b", str(block)]
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-F", *options, path, str(15 << 20)], check=True, timeout=60)
    with path.open("r+b") as written:
        written.write(bytes(offset + MIB))
        os.fsync(written.fileno())
    (found,) = sample(path, least=0).values()
    assert found.data_at is not None


def test_drawn_places_leave_no_large_gap(sample: Sample, tmp_path: Path) -> None:
    """20,000 places of 1 TB, as many as an NVMe drive answers in two seconds, are 66 MB apart at most."""
    path = file(tmp_path, TB, **{f"at_{300 * 10**9}": os.urandom(4 * MIB) * 17})
    (found,) = sample(path, least=20_000).values()
    assert found.data_at is not None


@functools.cache
def gaps(count: int) -> list[float]:
    """Distances between places, as shares of the device, which is a circle for drawn beginnings."""
    (bits, step) = map(int, re.findall(r"BITS, STEP = (\d+), (\d+)", sampling.PYTHON)[0])
    places = sorted(number * step % (1 << bits) for number in range(count))
    distances = zip(places, [*places[1:], places[0] + (1 << bits)], strict=True)
    return [(after - before) / (1 << bits) for before, after in distances]


MISSED = re.findall(r"^\| ([\d,]+) \| ([\d.]+) TB \| (.*) \| ([\d.]+) GB \|$", SECURITY.read_text(), re.MULTILINE)
assert len(MISSED) >= 9


@pytest.mark.parametrize(("count", "terabytes", "shares", "largest"), MISSED)
def test_documented_probability_of_a_miss(count: str, terabytes: str, shares: str, largest: str) -> None:
    """A stretch between two places is missed by as many beginnings as the gap is longer than the stretch."""
    size, drawn = float(terabytes) * 10**12, gaps(int(count.replace(",", "")))
    lengths = [size_mib * MIB / size for size_mib in (64, 1024, 4096, 10240, 32768, 102400)]
    missed = [sum(max(0.0, gap - length) for gap in drawn) for length in lengths]
    assert [float(each.removesuffix("%")) for each in shares.split(" | ")] == [
        pytest.approx(100 * each, abs=0.06) for each in missed
    ]
    assert float(largest) == pytest.approx(max(drawn) * size / 10**9, rel=0.01)


def test_places_are_drawn_anew_and_alike_by_both_programs(tmp_path: Path) -> None:
    """Every second page is data, so that the first of them depends on the seed alone."""
    path = file(tmp_path, SIZE, **{f"at_{12 * MIB}": (NOISE + bytes(PAGE_BYTES)) * 256})
    programs = ["perl", "-e", sampling.PERL], [sys.executable, "-I", "-S", "-c", sampling.PYTHON]
    seeds, found = [1, 1 << 51, 123456789 << 20], set()
    for seed in seeds:
        words = ["0", "200", str(seed), str(path), str(SIZE), "-"]
        one, other = (subprocess.check_output([*program, *words], timeout=60) for program in programs)
        assert one == other
        found.add(parse(one, [str(path)])[str(path)].data_at)
    assert len(found) == len(seeds)
    machine = ScriptedMachine(contents=Contents())
    take(machine, {"/dev/sda": SIZE})
    take(machine, {"/dev/sda": SIZE})
    assert machine.asked[0][8] != machine.asked[1][8]


@given(st.integers(512, 1 << 48))
def test_known_places_are_whole_pages_between_the_ends(size: int) -> None:
    stretches = known_places.stretches(size)
    ends = [MIB, *(begin + length for begin, length in stretches)]
    assert all(end < begin for end, (begin, _) in zip(ends[1:], stretches[1:], strict=False))
    assert all(begin >= MIB and begin % PAGE_BYTES == length % PAGE_BYTES == 0 < length for begin, length in stretches)
    assert ends[-1] <= max(MIB, size - MIB)


def test_behind_a_label_only_the_first_mib_is_read(sample: Sample, tmp_path: Path) -> None:
    """The rest is a labelled drive's own load, or else the label itself is foreign data."""
    page, ours = label.page(label.of_drive("S1")), [label.of_drive("S1")]
    (found,) = sample(file(tmp_path, at_0=page)).values()
    assert label.is_owned(found, ours)
    bitmap = bytes.fromhex(label.MD_BITMAP) + bytes(12) + b"\x02" * 100
    (found,) = sample(file(tmp_path, at_0=page, at_8192=bitmap, at_65536=b"theirs")).values()
    assert [each.offset_bytes for each in found.pages] == [0, 8192, 65536]
    assert found.pages[1].head == bitmap[:16].hex()
    assert not label.is_owned(found, ours)
    of_another = label.page(label.of_drive("S2"))
    (found,) = sample(file(tmp_path, at_0=of_another, at_4194304=os.urandom(8 * MIB))).values()
    assert (found.read, found.data_at, found.first_data) == (1, None, 0)
    assert not label.is_owned(found, ours)


def test_many_devices_are_sampled_in_several_commands(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh carries a command as one argument of at most 128 KiB."""
    monkeypatch.setattr(sampling, "LONGEST_CHARACTERS", 100)
    blank, used, gone = file(tmp_path), file(tmp_path, at_0=b"content"), tmp_path / "gone"
    samples = sample(blank, used, gone)
    assert [bool(samples[str(path)].pages) for path in (blank, used, gone)] == [False, True, False]
    assert samples[str(blank)].errors == ()
    assert [at for at, _ in samples[str(gone)].errors] == [0]


def test_answer_that_makes_no_sense_stops_the_run(tmp_path: Path) -> None:
    """Such as that of a machine that has neither perl nor python3."""
    shell, only = shutil.which("sh"), tmp_path / "bin"
    only.mkdir()

    def run(argv: tuple[str, ...]) -> Completed:
        done = subprocess.run([str(shell), *argv[1:]], env={"PATH": str(only)}, capture_output=True, text=True)
        return completed(argv, done.stdout, done.returncode, done.stderr)

    machine = ScriptedMachine().on("sh", "-c", sampling.SCRIPT, answer=run)
    with pytest.raises(RigError, match="perl nor python3"):
        take(machine, {"/dev/sda": SIZE})
    machine.on("sh", "-c", sampling.SCRIPT, answer=completed(["sh"], "", 2, "sh: out of memory"))
    with pytest.raises(RigError, match="out of memory"):
        take(machine, {"/dev/sda": SIZE})
    assert take(machine, {}) == {}


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


@pytest.mark.parametrize(("chosen", "words"), [({}, ("50", str(LEAST))), ({"spend_s": 2.0, "least": 7}, ("200", "7"))])
def test_devices_are_given_with_their_sizes(chosen: dict[str, Any], words: tuple[str, str]) -> None:
    machine = ScriptedMachine(contents=Contents(data={"/dev/sdb": 12345}))
    found = take(machine, {"/dev/sda": SIZE, "/dev/sdb": MIB}, **chosen)
    assert machine.asked[0][4:] == (
        sampling.PERL, sampling.PYTHON, *words, machine.asked[0][8], "/dev/sda", str(SIZE),
        ",".join(f"{begin}:{length}" for begin, length in known_places.stretches(SIZE)), "/dev/sdb", str(MIB), "-",
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
    page = label.page("drive S1")
    (found,) = parse(record("/dev/sda", page=page, data_at=9) + b"end\0", ["/dev/sda"]).values()
    assert found == DeviceSample("/dev/sda", 194, (SampledPage(0, page[:16].hex(), "00" * 16),), page, 9)
