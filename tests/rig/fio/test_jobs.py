from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.captured import VERSIONS, captured
from support.fakes import real_fio
from support.fakes.bound_commands import bound_to, unbound

from pytest_ssdqual.qual.explore.dimensions import Space
from pytest_ssdqual.qual.measured.interval import Spell
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.fio import acceptance, output
from pytest_ssdqual.rig.fio.jobs import OF_THE_COMMAND, Job, JobTarget, aligned_share, fill, measurement, split, text
from pytest_ssdqual.rig.fio.load import DriveLoad, Load

LOOP = JobTarget("/dev/loop0", 16 * 1024 * 1024 + 12_800)
OTHER = replace(LOOP, path="/dev/loop1")
MD = JobTarget("/dev/md/ssdqual", 2_400_000_000_000)
DRIVES = [JobTarget(f"/dev/sd{letter}", 480_103_981_056) for letter in "bcd"]
MIB = 1 << 20
FILESERVER = Workload("randrw", "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10", 4, 80, name="fileserver")


def value(job: Job, name: str) -> str:
    (found,) = [option.partition("=")[2] for option in job.options if option.startswith(f"--{name}=")]
    return found


def has(job: Job, name: str) -> bool:
    return any(option.startswith(f"--{name}=") for option in job.options)


@pytest.mark.parametrize(
    ("workload", "options", "absent"),
    [
        (
            Workload("randread", "4k", 8),
            {"numjobs": "6", "iodepth": "8", "filename": MD.path, "runtime": "120000ms"},
            ("rwmixread",),
        ),
        (Workload("randread", "4k", 32, threads=4), {"numjobs": "4", "iodepth": "32"}, ()),
    ],
    ids=str,
)
def test_job_of_an_array_of_six_members(workload: Workload, options: dict[str, str], absent: tuple[str, ...]) -> None:
    """The depth is per drive, and random addresses are independent and everywhere."""
    job = measurement(workload, [MD], 6, 120)
    assert {name: value(job, name) for name in options} == options
    assert not any(has(job, name) for name in absent)
    expected = job.expectation
    assert (expected.seconds, expected.reads, expected.writes) == (120, workload.reads, workload.writes)


def test_each_burst_is_a_job_that_begins_at_its_time() -> None:
    job = measurement(BURSTS, DRIVES[:2], 2, 95, 4000)
    names = [each for each in job.options if each.startswith("--name=drive-")]
    assert names == [f"--name=drive-{drive}-{burst}" for drive in (0, 1) for burst in (0, 1, 2)]
    delays = [each for each in job.options if each.startswith("--startdelay=")]
    assert delays == ["--startdelay=0s", "--startdelay=30s", "--startdelay=60s"] * 2
    assert job.options.count("--new_group=1") == 2
    assert job.options.count("--runtime=5000ms") == 6
    assert job.expectation.seconds == 5


BEHIND = JobTarget("/dev/md100", 64 * MIB, 2 * MIB)


@pytest.mark.parametrize("rw", ["read", "randwrite", "write", "randread+randwrite", "read+write"])
def test_nothing_before_the_beginning_is_touched(rw: str) -> None:
    job = measurement(Workload(rw, "128k", 8, offset="4k" if rw == "randwrite" else "0"), [BEHIND], 3, 120)
    offsets = [int(option.partition("=")[2]) for option in job.options if option.startswith("--offset=")]
    sizes = [int(option.partition("=")[2]) for option in job.options if option.startswith("--size=")]
    assert len(offsets) == len(sizes) == len(rw.split("+"))
    assert min(offsets) == 2 * MIB + (4096 if rw == "randwrite" else 0)
    streams = 1 if rw.startswith("rand") else 3
    assert max(offset + streams * size for offset, size in zip(offsets, sizes, strict=True)) <= 66 * MIB


def test_a_fill_begins_behind_what_is_spared() -> None:
    job = fill([BEHIND, replace(BEHIND, path="/dev/md101")], 2, "1m", jobs=3)
    offsets = [int(option.partition("=")[2]) for option in job.options if option.startswith("--offset=")]
    assert min(offsets) == 2 * MIB
    assert len(offsets) == 6
    assert job.expectation.written_bytes == 2 * 2 * 64 * MIB


def sections(job: Job) -> dict[str, list[str]]:
    """The options of each job section by its name, and what precedes the first under ""."""
    found: dict[str, list[str]] = {"": []}
    for option in job.options:
        name, _, text = option.partition("=")
        if name == "--name":
            found[text] = []
        else:
            found[list(found)[-1]].append(option)
    return found


def test_reads_beside_writes_are_jobs_of_their_own() -> None:
    workload = Workload("randread", "4k", 1, beside="trimwrite_128k_qd16")
    job = measurement(workload, DRIVES[:2], 2, 120)
    found = sections(job)
    assert list(found)[2:] == ["drive-0-reads", "drive-0-writes", "drive-1-reads", "drive-1-writes"]
    for number in range(2):
        reads, writes = found[f"drive-{number}-reads"], found[f"drive-{number}-writes"]
        assert {"--rw=randread", "--bs=4096", "--iodepth=1", "--numjobs=1", "--time_based=1"} <= set(reads)
        assert {"--rw=trimwrite", "--bs=131072", "--iodepth=16", "--numjobs=1", "--time_based=1"} <= set(writes)
    expected = job.expectation
    assert (expected.reads, expected.writes, expected.block_bytes) == (True, True, None)
    assert (expected.smallest_bytes, expected.largest_bytes) == (4096, 131072)


def test_a_smaller_neighbour_is_expected_too() -> None:
    expected = measurement(Workload("read", "128k", 1, beside="randwrite_4k_fsync1_qd1"), [MD], 6, 120).expectation
    assert (expected.smallest_bytes, expected.largest_bytes) == (4096, 131072)


def test_volume_is_shared_out_among_the_jobs() -> None:
    job = measurement(Workload("randwrite", "4k", 8), [MD], 6, 120, volume_bytes=10**12)
    assert int(value(job, "io_size")) * 6 - 10**12 in range(6 * 4096)
    assert (value(job, "exitall"), value(job, "runtime"), has(job, "time_based")) == ("1", "120000ms", False)
    assert job.expectation.volume_bytes == 10**12
    found = sections(measurement(Workload("write", "4k", 8), DRIVES, 3, 120, volume_bytes=12288 * 100))
    assert all("--io_size=409600" in found[f"drive-{number}"] for number in range(3))
    # Reads of a mix do not use up the volume.
    mix = measurement(Workload("randrw", "4k", 8, 75), [MD], 1, 120, volume_bytes=4096 * 1000)
    assert value(mix, "io_size") == str(4096 * 4000)


def test_readers_go_on_until_the_writers_are_done() -> None:
    found = sections(measurement(Workload("randread+randwrite", "4k", 8), [MD], 1, 120, volume_bytes=4096 * 1000))
    assert "--time_based=1" in found["reads"]
    assert f"--io_size={4096 * 1000}" in found["writes"]
    assert "--time_based=1" not in found["writes"]


@pytest.mark.parametrize(
    ("workload", "volume", "cause"),
    [
        (Workload("randread", "4k", 1), 1 << 30, "writes nothing"),
        (Workload("write", "4k", 1), 0, "above 0"),
        (Workload("rw", "4k", 1, 50), 1 << 30, "two directions cannot end at a volume"),
        (Workload("trimwrite", "128k", 1), 1 << 30, "two directions cannot end at a volume"),
    ],
)
def test_a_volume_that_fio_cannot_end_at_is_refused(workload: Workload, volume: int, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        measurement(workload, [MD], 1, 10, volume_bytes=volume)


READS, BURSTS = Workload("read", "4k", 1), Workload("randwrite", "4k", 32, threads=4, burst_s=5, idle_s=25)


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda: measurement(READS, [DRIVES[0], DRIVES[0]], 2, 10), "twice: /dev/sdb, /dev/sdb"),
        (lambda: fill([], 1), "something to read"),
        (lambda: measurement(Workload("read", "1m", 1), [replace(MD, size_bytes=4 * MIB)], 6, 10), "too small for 6"),
        (lambda: measurement(READS, [MD], 6, 0.5), r"for 0\.5 s"),
        (lambda: fill([MD], 0), "at least 1"),
        (lambda: JobTarget("/dev/sda", 1000), "number of sectors"),
        (lambda: replace(BEHIND, begin_bytes=-4096), "byte -4096"),
        (lambda: replace(BEHIND, begin_bytes=512), "not on a page"),
        (lambda: measurement(BURSTS, DRIVES, 3, 720), "last report"),
        (lambda: measurement(BURSTS, DRIVES, 3, 29, 4000), "in 29 s"),
    ],
)
def test_what_fio_cannot_do_is_refused(make: Callable[[], object], cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        make()


@pytest.mark.parametrize(
    "path",
    [
        "sda",
        "--exec_prerun=reboot",
        "-",
        "",
        "/dev/sda:/dev/sdb",
        r"/dev/sda\:x",
        "/dev/sda\n",
        "/dev/sda\nexec_prerun=x",
        "/dev/%d",
        "/dev/$jobname",
        "/dev/sd a",
        "/dev/sda ",
        "/dev/ſda",
    ],
)
def test_paths_fio_could_misread_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="given to fio"):
        JobTarget(path, 1 << 20)
    with pytest.raises(ValueError, match="given to fio"):
        fill([MD], 1).argv(path)


@pytest.mark.parametrize("path", ["/dev/sda", "/dev/disk/by-id/nvme-ACME_X1_S3-7.2_1", "/dev/md/ssdqual-raid5x4"])
def test_device_names_are_accepted(path: str) -> None:
    assert f"--filename={path}" in measurement(Workload("read", "4k", 1), [JobTarget(path, 1 << 30)], 2, 5).options


def test_job_is_bound_to_checked_devices_and_has_them_alone() -> None:
    checked = [Checked(f"/dev/sd{letter}", 480, f"S{letter}") for letter in "bcd"]
    targets = [replace(target, checked=each) for target, each in zip(DRIVES, checked, strict=True)]
    workload = Workload("randwrite", "4k", 8)
    for job in (measurement(workload, targets, 3, 10), fill(targets, 1)):
        argv = job.argv("/run/out.json")
        assert bound_to(argv) == ("alone", ("/dev/sdb", "/dev/sdc", "/dev/sdd"))
        assert unbound(argv) == ("fio", "--output=/run/out.json", *job.options)
    assert bound_to(measurement(workload, DRIVES, 3, 10).argv("/run/out.json")) == ("", ())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "job"),
    [
        ("randread", measurement(Workload("randread", "4k", 4), [LOOP], 2, 3)),
        ("randwrite", measurement(Workload("randwrite", "4k", 4), [LOOP], 2, 3)),
        ("randrw70", measurement(Workload("randrw", "4k", 4, 70), [LOOP], 2, 3)),
        ("write", measurement(Workload("write", "128k", 4), [LOOP], 2, 2.5)),
        ("fill", fill([LOOP], 2, jobs=2, status_interval_s=1)),
        ("side-by-side", measurement(Workload("randwrite", "4k", 4), [LOOP, OTHER], 2, 2.2)),
        ("side-by-side-fill", fill([LOOP, OTHER], 1, jobs=2, status_interval_s=1)),
        ("streams", measurement(Workload("randread+randwrite", "4k", 2, threads=1), [LOOP], 2, 2.2)),
        ("side-by-side-streams", measurement(Workload("read+write", "256k", 2), [LOOP, OTHER], 2, 2.2)),
        ("profile", measurement(FILESERVER, [LOOP], 2, 2.2)),
        ("volume", measurement(Workload("randwrite", "64k", 4), [LOOP], 2, 600, volume_bytes=1000 * MIB)),
    ],
)
def test_the_captured_data_was_made_with_these_options(version: str, case: str, job: Job) -> None:
    """Whoever changes an option must look at what fio then writes, and capture it anew."""
    assert captured(version, case).options == job.options
    assert captured(version, case).expectation == job.expectation


def accepted(job: Job, folder: Path) -> tuple[output.FioResult, bytes]:
    """What real fio did, and its whole output."""
    done = real_fio.run(job, folder)
    result = acceptance.accept(done.pieces(), done.completed.status, done.completed.errors, job.expectation)
    return result, b"".join(done.pieces())


def test_fill_by_real_fio_leaves_no_sector_unwritten(tmp_path: Path) -> None:
    targets = [real_fio.image(tmp_path, 3 * MIB + 4096 + 512, name) for name in ("one", "two")]
    result, _ = accepted(fill(targets, 2, "64k", jobs=3), tmp_path)
    data = b"".join(Path(target.path).read_bytes() for target in targets)
    sectors = [data[at : at + 512] for at in range(0, len(data), 512)]
    assert bytes(512) not in sectors
    assert len(set(sectors)) == len(sectors)
    assert result.write.bytes == 2 * 2 * targets[0].size_bytes


def test_real_fio_ends_at_the_volume_long_before_the_time(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, 8 * MIB)
    job = measurement(Workload("randwrite", "4k", 2), [target], 1, 30, volume_bytes=20 * MIB)
    result, _ = accepted(job, tmp_path)
    assert result.write.bytes == 20 * MIB
    assert result.seconds < 30


def test_real_fio_reports_all_bursts_and_the_time_of_one(tmp_path: Path) -> None:
    targets = [real_fio.image(tmp_path, 8 * MIB, name) for name in ("one", "two")]
    workload = Workload("randwrite", "4k", 2, threads=2, burst_s=1, idle_s=1)
    result, written = accepted(measurement(workload, targets, 2, 5, 60), tmp_path)
    assert result.seconds == pytest.approx(1, abs=0.5)
    document = json.loads(written[written.index(b"{") :])
    # Of two threads in each of two bursts.
    assert [each["job_runtime"] / 1000 for each in document["jobs"]] == pytest.approx([4, 4], abs=1)
    busy = output.of_bursts(result, 2.0)
    assert busy.seconds == 2
    (whole,), parts = busy.intervals, busy.parts
    assert (whole.start_s, whole.seconds, len(parts)) == (0, 2, 2)
    assert whole.write_ios == result.write.ios == sum(part.write_ios for (part,) in parts)
    assert whole.write_latency.total == result.write.latency.total
    spell = Spell.of_interval(whole)
    assert (spell.slowest_low, spell.fastest_high) == (0, result.write.bytes), "single seconds are not known"


def test_real_fio_ends_at_the_time_if_the_volume_is_too_much(tmp_path: Path) -> None:
    targets = [real_fio.image(tmp_path, 8 * MIB, name) for name in ("one", "two")]
    result, _ = accepted(measurement(Workload("write", "4k", 1), targets, 2, 1, volume_bytes=10**15), tmp_path)
    assert result.seconds == pytest.approx(1, abs=0.5)
    assert len(result.parts) == 2


BLOCKS = st.sampled_from([512, 4096, 131072, 1 << 20, 3 << 16])


@given(sectors=st.integers(1, 10**7), jobs=st.integers(1, 24), block=BLOCKS)
def test_a_split_covers_every_byte_once(sectors: int, jobs: int, block: int) -> None:
    size = sectors * 512
    parts = list(split(size, jobs, block))
    end = 0
    for part in parts:
        assert part.offset_bytes == end
        assert part.size_bytes > 0
        assert part.size_bytes % part.block_bytes == 0
        assert part.block_bytes % 512 == 0
        assert part.block_bytes <= block
        end += part.size_bytes
    assert end == size
    assert len(parts) <= jobs + 1


def test_a_split_is_even() -> None:
    sizes = [part.size_bytes for part in split(480_103_981_056, 8, 131072)]
    assert max(sizes[:8]) - min(sizes[:8]) < 9 * 1024 * 1024


@given(sectors=st.integers(1, 10**7), jobs=st.integers(1, 24), block=BLOCKS)
def test_share_is_whole_blocks_and_fits_once_a_job(sectors: int, jobs: int, block: int) -> None:
    share = aligned_share(sectors * 512, jobs, block)
    assert share % block == 0
    assert share * jobs <= sectors * 512
    assert share or sectors * 512 < jobs * block


SPACES = [Space.of(Workload("randread", "4k", 1)), Space.of(Workload("read", "128k", 1))]

explored = st.sampled_from(SPACES).flatmap(
    lambda space: st.tuples(*(st.sampled_from(each.values) for each in space.dimensions)).map(space.at)
)


def read_back(written: str) -> list[str]:
    """The options that a job file has."""
    lines = [line for line in written.splitlines() if line and not line.startswith("#")]
    return [f"--name={line[1:-1]}" if line.startswith("[") else f"--{line}" for line in lines]


@given(explored, st.integers(1, 2), st.lists(st.text(), max_size=3))
def test_the_file_has_the_options_of_the_job_and_no_others(
    workload: Workload, drives: int, comments: list[str]
) -> None:
    job = measurement(workload, DRIVES[:drives], drives, 60)
    ours = [each for each in job.options if each.removeprefix("--").partition("=")[0] not in OF_THE_COMMAND]
    assert read_back(text(job, comments)) == ours


def test_a_comment_cannot_become_an_option() -> None:
    job = measurement(Workload("randread", "4k", 1), DRIVES[:1], 1, 60)
    said = text(job, ["serial S1\nexec_prerun=reboot", "\r[global]\x85exec_prerun=x\u2028exec_prerun=y"])
    assert read_back(said) == read_back(text(job))
    assert "# serial S1\\x0aexec_prerun=reboot" in said


@pytest.mark.parametrize(
    "option", ["--bs=4k\nexec_prerun=x", "--filename=/dev/$X", "--name=a]b", "--bs=", "--bs=4k ;x"]
)
def test_a_value_that_a_job_file_reads_otherwise_is_refused(option: str) -> None:
    job = measurement(Workload("randread", "4k", 1), DRIVES[:1], 1, 60)
    with pytest.raises(ValueError, match="a job file"):
        text(replace(job, options=(*job.options, option)))


@pytest.mark.parametrize(
    "workload",
    [
        Workload(
            "randrw", "64k", 16, 30, offset="512", zipf=120, region_percent=10, sync=True, fsync=1,
            compressible_percent=90, dedupe_percent=50,
        ),
        Workload("write", "128k", 4, gap="64k"),
        Workload("randread+randwrite", "4k", 4, sync=True),
    ],
    ids=str,
)  # fmt: skip
def test_real_fio_takes_the_file_as_it_takes_the_command(tmp_path: Path, workload: Workload) -> None:
    """Its own way of spelling out what it understood: the same job from the file as from the command line."""
    if not shutil.which("fio"):
        pytest.skip("fio is not installed")
    targets = [real_fio.image(tmp_path, 64 << 20, name) for name in ("one", "two")]
    job = measurement(workload, targets, 2, 1)
    file = tmp_path / "found.fio"
    file.write_text(text(job, ["made by a test"]))

    def understood(*argv: str | Path) -> set[str]:
        done = subprocess.run(["fio", "--showcmd", *argv], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        words = [word for word in done.stdout.split() if word.startswith("--")]
        return {word for word in words if word.removeprefix("--").partition("=")[0] not in OF_THE_COMMAND}

    assert subprocess.run(["fio", "--parse-only", file], capture_output=True, check=False).returncode == 0
    assert understood(file) == set(read_back(text(job))) - {"--name=global"}


def test_real_fio_does_by_the_file_what_it_does_by_the_command(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, 16 << 20)
    job = measurement(Workload("randwrite", "16k", 2, offset="512", sync=True, region_percent=50), [target], 1, 1)
    by_command = real_fio.transfers(job, tmp_path)
    file, log = tmp_path / "found.fio", tmp_path / "by-hand.log"
    file.write_text(text(Job((*job.options, f"--write_iolog={log}"), job.expectation)))
    done = subprocess.run(["fio", file], capture_output=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in log.read_text().splitlines()]
    sizes = {(int(each[-2]) % 16384, int(each[-1])) for each in lines if each[-3:-2] == ["write"]}
    assert sizes == {(each.offset % 16384, each.size) for each in by_command} == {(512, 16384)}


# -- the load of fio on drives: the depth of a workload stays what it is, however many jobs share it


FAST = Load("io_uring", 8, ("0-7", "0-7", "8-15"))


def values(job: Job, name: str) -> list[str]:
    return [option.partition("=")[2] for option in job.options if option.startswith(f"--{name}=")]


@given(st.integers(1, 1024), st.integers(1, 64))
def test_all_jobs_together_have_the_depth_of_the_workload(depth: int, most: int) -> None:
    job = measurement(Workload("randread", "4k", depth), DRIVES[:1], 1, 10, load=Load(jobs=most))
    (jobs,), (each,) = values(job, "numjobs"), values(job, "iodepth")
    assert int(jobs) * int(each) == depth
    assert int(jobs) <= most
    assert all(depth % more for more in range(int(jobs) + 1, min(most, depth) + 1))


def test_sequential_streams_and_threads_are_not_divided() -> None:
    for workload in (Workload("read", "128k", 32), Workload("randread", "4k", 32, threads=4)):
        job = measurement(workload, DRIVES[:1], 1, 10, load=FAST)
        assert values(job, "iodepth") == ["32"]
        assert values(job, "numjobs") == [str(workload.threads or 1)]


@pytest.mark.parametrize("changes", [{"zipf": 120}, {"fsync": 1}, {"dedupe_percent": 50}, {"random_percent": 50}])
def test_a_workload_that_several_jobs_would_change_keeps_one(changes: dict[str, int]) -> None:
    workload = replace(Workload("randwrite", "4k", 32), **changes)  # type: ignore[arg-type]
    assert FAST.parts(Workload("randwrite", "4k", 32)) == 8
    assert FAST.parts(workload) == 1


def test_each_drive_has_the_engine_and_the_cpus_of_its_node() -> None:
    job = measurement(Workload("randwrite", "4k", 16), DRIVES, 1, 10, load=FAST)
    assert values(job, "ioengine") == ["io_uring"]
    assert values(job, "fixedbufs") == values(job, "registerfiles") == ["1"]
    assert values(job, "cpus_allowed") == ["0-7", "0-7", "8-15"]
    assert values(job, "numjobs") == ["8"] * 3


def test_a_volume_is_divided_among_all_jobs() -> None:
    volume = 3 * 8 * (1 << 20)
    job = measurement(Workload("randwrite", "4k", 16), DRIVES, 1, 10, volume_bytes=volume, load=FAST)
    assert values(job, "io_size") == [str(1 << 20)] * 3


def test_jobs_of_an_array_on_one_node_are_placed() -> None:
    chosen = DriveLoad("io_uring", "libaio", 4, {"a": "0-7", "b": "0-7", "c": "8-15"})
    assert chosen.of(["a", "c"], bare=True) == Load("io_uring", 4, ("0-7", "8-15"))
    assert chosen.of(["a", "b"], bare=False) == Load("libaio", 4, ("0-7",))
    assert chosen.of(["a", "c"], bare=False) == Load("libaio", 4)
    assert DriveLoad().of(["a"], bare=True) == Load()
