from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes import real_fio

from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.jobs import JobEnd, JobTarget, measurement, streams

pytestmark = pytest.mark.slow

KIB, MIB = 1 << 10, 1 << 20
FILESERVER = Workload("randrw", "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10", 4, 80, name="fileserver")
#: No multiple of any transfer size.
ODD_BYTES = 4 * MIB + 5 * 512


def one(workload: Workload, size_bytes: int = 1 << 40, jobs: int = 1) -> dict[str, str]:
    """The options of the only stream."""
    ((_, options),) = streams(workload, JobTarget("/dev/sdx", size_bytes), jobs, JobEnd(10))
    return dict(option.removeprefix("--").split("=") for option in options)


RARE = {
    "offset", "size", "blockalign", "percentage_random", "random_distribution", "sync", "fsync",
    "buffer_compress_percentage", "dedupe_percentage",
}  # fmt: skip


@pytest.mark.parametrize(
    ("workload", "size_bytes", "jobs", "rare", "more"),
    [
        (Workload("randread", "4k", 8), 1 << 40, 1, {}, {"norandommap": "1"}),
        (Workload("randwrite", "4k", 8), 1 << 40, 1, {}, {}),
        (FILESERVER, 1 << 40, 1, {"blockalign": "4096"}, {}),
        (Workload("randread", "8k/60:64k/40", 4, name="mix"), 1 << 40, 1, {}, {}),
        (Workload("randread", "4k", 8, offset="512"), 10 * 4096, 1, {"offset": "512", "size": str(9 * 4096)}, {}),
        (
            Workload("randread", "16k", 8, random_percent=70),
            ODD_BYTES,
            1,
            {"percentage_random": "70", "offset": "0", "size": str(4 * MIB)},
            {},
        ),
        (
            Workload(
                "randwrite", "4k", 8, zipf=120, region_percent=10, sync=True, fsync=4, compressible_percent=50,
                dedupe_percent=25,
            ),
            1000 * 4096,
            1,
            {
                "random_distribution": "zipf:1.2", "offset": "0", "size": str(100 * 4096), "sync": "1", "fsync": "4",
                "buffer_compress_percentage": "50", "dedupe_percentage": "25",
            },
            {},
        ),
        (
            Workload("write", "64k", 8, gap="64k"),
            100 * MIB,
            4,
            {"size": str(25 * MIB)},
            {"rw": f"write:{64 * KIB}", "offset_increment": str(25 * MIB)},
        ),
    ],
    ids=lambda each: str(each) if isinstance(each, Workload) else "",
)  # fmt: skip
def test_options_of_a_stream(
    workload: Workload, size_bytes: int, jobs: int, rare: dict[str, str], more: dict[str, str]
) -> None:
    """Random addresses are everywhere unless something keeps them off, in a range of whole blocks."""
    options = one(workload, size_bytes, jobs)
    assert {name: options[name] for name in sorted(RARE) if name in options} == dict(sorted(rare.items()))
    assert more.items() <= options.items()


def test_what_lies_behind_a_part_of_a_target_is_kept_off() -> None:
    ((_, options),) = streams(
        Workload("randwrite", "4k", 8), JobTarget("/dev/md100", ODD_BYTES, is_part=True), 2, JobEnd(5.0)
    )
    assert {"--offset=0", f"--size={ODD_BYTES // 4096 * 4096}"} <= set(options)


@pytest.mark.parametrize(
    ("workload", "size_bytes", "cause"),
    [
        (Workload("randread", "64k", 1), 32 * KIB, r"\(32768 bytes\) .* 65536 bytes"),
        (Workload("randread", "64k", 1, offset="512"), 64 * KIB, r"\(65536 bytes\) .* 65536"),
        (Workload("randread", "4k/50:64k/50", 1, name="mix"), 32 * KIB, r"\(32768 bytes\) .* 65536"),
        (Workload("read", "64k", 1, offset="512"), 4 * 64 * KIB, "4 streams of 65536"),
        (Workload("read+write", "64k", 1), 7 * 64 * KIB, "8 streams of 65536"),
        (Workload("read", "4k/50:64k/50", 1, name="mix"), 4 * 60 * KIB, "4 streams of 65536"),
        (Workload("read", "1m", 1, gap="4k"), 4 * MIB, "4 streams of 1048576 .* gaps of 4096"),
        (Workload("randread", "64k", 1, region_percent=1), 4 * MIB, r"1 % .* \(4194304 bytes\)"),
        (Workload("randread", "1000", 1), 1 << 40, "whole sectors"),
        (Workload("randread", "4k", 1, offset="100"), 1 << 40, "whole sectors"),
        (Workload("read", "4k", 1, gap="100"), 4 * MIB, "whole sectors"),
        (Workload("randread", "4k/50:6k/50", 1, name="mix"), 1 << 40, "6144 is none"),
    ],
)
def test_what_fio_cannot_do_is_refused_with_the_numbers(workload: Workload, size_bytes: int, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        streams(workload, JobTarget("/dev/sdx", size_bytes), 4, JobEnd(10))


@given(
    rw=st.sampled_from(["write", "read+write"]),
    block=st.sampled_from(["512", "4k", "128k", "1m"]),
    sectors=st.integers(1, 10**6),
    jobs=st.integers(1, 24),
    offset=st.sampled_from(["0", "512"]),
)
def test_sequential_jobs_never_meet_nor_leave_the_target(
    rw: str, block: str, sectors: int, jobs: int, offset: str
) -> None:
    workload = Workload(rw, block, 1, offset="0" if block == "512" else offset)
    size_bytes = sectors * 512
    try:
        found = streams(workload, JobTarget("/dev/sdx", size_bytes), jobs, JobEnd(10))
    except ValueError:
        assert size_bytes - workload.offset_bytes < jobs * len(rw.split("+")) * workload.largest_bytes
        return
    ranges = []
    for _, options in found:
        told = dict(option.removeprefix("--").split("=") for option in options)
        share, start = int(told["size"]), int(told.get("offset", 0))
        assert int(told["offset_increment"]) == share
        assert share % workload.smallest_bytes == 0
        ranges += [(start + number * share, start + (number + 1) * share) for number in range(jobs)]
    assert ranges[0][0] == workload.offset_bytes
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))
    assert ranges[-1][1] <= size_bytes


# -- what fio makes of it


@pytest.mark.parametrize(
    "workload",
    [
        Workload("randrw", "4k", 4, 50, offset="512"),
        Workload("randrw", "8k", 4, 50, offset="2k"),
        Workload("randrw", "512", 4, 50),
        Workload("write", "64k", 4, offset="512"),
        Workload("randrw", "16k", 4, 50, random_percent=50, offset="512"),
    ],
    ids=str,
)
def test_every_transfer_is_a_block_within_the_target(tmp_path: Path, workload: Workload) -> None:
    target = real_fio.image(tmp_path, ODD_BYTES)
    done = real_fio.transfers(measurement(workload, [target], 1, 20, volume_bytes=8 * MIB), tmp_path)
    assert {each.way for each in done} == {"read", "write"} if workload.reads else {"write"}
    assert {each.size for each in done} == {workload.smallest_bytes}
    assert {(each.offset - workload.offset_bytes) % workload.smallest_bytes for each in done} == {0}
    assert max(each.end for each in done) <= ODD_BYTES
    # Nearly everything of the range was used: of 4 MiB the last MiB may be lost to rounded shares.
    assert min(each.offset for each in done) < 0.1 * MIB
    assert max(each.end for each in done) > 2.9 * MIB


def test_real_fio_reads_and_writes_its_share_over_and_over(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, ODD_BYTES)
    done = real_fio.transfers(measurement(Workload("rw", "256k", 1, 50), [target], 1, 1), tmp_path)
    for way in ("read", "write"):
        own = [each for each in done if each.way == way]
        assert {each.offset for each in own} == {256 * KIB * number for number in range(16)}
        jumps = {(before.end, after.offset) for before, after in pairwise(own) if after.offset != before.end}
        assert jumps == {(4 * MIB, 0)}


def test_random_percent_is_the_share_that_does_not_follow(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, ODD_BYTES)
    workload = Workload("randrw", "4k", 4, 50, random_percent=70)
    done = real_fio.transfers(measurement(workload, [target], 1, 20, volume_bytes=8 * MIB), tmp_path)
    for way in ("read", "write"):
        own = [each for each in done if each.way == way]
        followers = sum(after.offset == before.end for before, after in pairwise(own))
        assert followers / len(own) == pytest.approx(0.3, abs=0.06)


def test_mix_has_the_same_sizes_among_reads_and_writes(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, ODD_BYTES)
    done = real_fio.transfers(measurement(FILESERVER, [target], 1, 20, volume_bytes=20 * MIB), tmp_path)
    for way in ("read", "write"):
        sizes = Counter(each.size for each in done if each.way == way)
        for size, percent in FILESERVER.sizes:
            assert 100 * sizes[size] / sizes.total() == pytest.approx(percent, abs=6)
    assert {each.offset % 4096 for each in done} == {0}
    assert max(each.end for each in done) <= ODD_BYTES


def test_jobs_of_a_stream_write_their_own_shares(tmp_path: Path) -> None:
    """Three shares of 1 MiB from byte 512, each written over and over: all of them, and nothing else."""
    target = real_fio.image(tmp_path, 3 * MIB + 512 * KIB)
    real_fio.run(measurement(Workload("write", "64k", 1, offset="512"), [target], 3, 1), tmp_path)
    data = Path(target.path).read_bytes()
    written = [at for at in range(0, len(data), 512) if data[at : at + 512] != bytes(512)]
    assert written == list(range(512, 3 * MIB + 512, 512))


@pytest.mark.parametrize(
    "workload",
    [
        Workload("randwrite", "4k", 8, threads=1),
        Workload("randwrite", "16k", 8, random_percent=50, threads=1),
        Workload("randread", FILESERVER.bs, 4, name="mix", threads=1),
        Workload("write", "128k", 4, threads=1),
    ],
    ids=str,
)
def test_real_fio_keeps_off_what_lies_behind_a_part(tmp_path: Path, workload: Workload) -> None:
    target = replace(real_fio.image(tmp_path, 4 * MIB), size_bytes=3 * MIB, is_part=True)
    done = real_fio.transfers(measurement(workload, [target], 1, 1), tmp_path)
    ends = [each.end for each in done]
    assert 2 * MIB < max(ends) <= 3 * MIB


def test_readers_beside_writers_flush_nothing() -> None:
    found = streams(
        Workload("randread+randwrite", "4k", 1, sync=True, fsync=1), JobTarget("/dev/sdx", 1 << 30), 1, JobEnd(10)
    )
    (_, readers), (_, writers) = found
    assert {"--sync=1", "--fsync=1"} <= set(writers)
    assert not {"--sync=1", "--fsync=1"} & set(readers)


@pytest.mark.parametrize(
    "workload",
    [
        Workload("write", "4k", 2, gap="2560", offset="512"),
        Workload("write", "64k", 2, gap="256k", region_percent=50),
        Workload("randwrite", "4k", 2, zipf=120, region_percent=30),
        Workload("randwrite", "16k", 2, region_percent=10, offset="512", sync=True),
    ],
    ids=str,
)
def test_real_fio_keeps_within_the_region_and_the_jobs_own_range(tmp_path: Path, workload: Workload) -> None:
    """Also where gaps lead past the end of a job's range: what lies behind may be another's, or a reserved pattern.

    The target is small, so that a second of a busy computer is enough to reach its end.
    """
    target = real_fio.image(tmp_path, 4 * MIB + 5 * 512)
    job = measurement(workload, [target], 1, 1)
    done = real_fio.transfers(job, tmp_path)
    end = target.size_bytes * workload.region_percent // 100
    assert len(done) > 100
    assert max(each.end for each in done) <= end
    assert workload.offset_bytes <= min(each.offset for each in done) <= workload.offset_bytes + 64 * KIB
    assert max(each.end for each in done) > 0.8 * end
    if workload.gap_bytes:
        steps = Counter(after.offset - before.offset for before, after in pairwise(done))
        ((step, _),) = steps.most_common(1)
        assert step == workload.smallest_bytes + workload.gap_bytes
        assert all(each < 0 for each in steps if each != step)


def test_real_fio_stays_in_its_share_behind_odd_gaps(tmp_path: Path) -> None:
    """Three shares of 1 MiB: the last transfer of each would begin in it and end 60 KiB behind it."""
    target = real_fio.image(tmp_path, 3 * MIB + 512 * KIB)
    real_fio.run(measurement(Workload("write", "64k", 1, gap="4k"), [target], 3, 1), tmp_path)
    data = Path(target.path).read_bytes()
    assert not any(data[3 * MIB :])
    assert all(any(data[at : at + 64 * KIB]) for at in range(0, 3 * MIB - 68 * KIB, 68 * KIB))


def test_zipf_has_favourites(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, 16 * MIB)
    shares = []
    for workload in (Workload("randread", "4k", 4, zipf=120), Workload("randread", "4k", 4)):
        folder = tmp_path / str(workload)
        folder.mkdir()
        # Of 4,096 blocks. Otherwise a second has 400,000, whose log takes 8 s to read.
        done = real_fio.transfers(measurement(workload, [target], 1, 1), folder, ["--rate_iops=20000"])
        assert len(done) > 2_000
        shares.append(Counter(each.offset for each in done).most_common(1)[0][1] / len(done))
    skewed, even = shares
    assert skewed > 0.1 > 10 * even


def test_zones_have_their_share_of_the_transfers(tmp_path: Path) -> None:
    """The enterprise workload of JESD219, with jobs that share the zones."""
    target = real_fio.image(tmp_path, 64 * MIB)
    workload = replace(snia.COMPOSITE, rw="randread", read_percent=None, threads=2, qd_per_drive=2)
    done = real_fio.transfers(measurement(workload, [target], 1, 1), tmp_path, ["--rate_iops=5000"])
    ends = [sum(each.offset < share * target.size_bytes for each in done) / len(done) for share in (0.05, 0.2)]
    assert len(done) > 400
    assert ends == pytest.approx([0.5, 0.8], abs=0.12)


def test_written_data_compress_and_repeat_as_asked(tmp_path: Path) -> None:
    def written(name: str, **more: int) -> bytes:
        target = real_fio.image(tmp_path, 4 * MIB, name)
        real_fio.run(measurement(Workload("write", "64k", 1, **more), [target], 1, 1), tmp_path)  # type: ignore[arg-type]
        return Path(target.path).read_bytes()

    def packed(data: bytes) -> float:
        return len(zlib.compress(data, 1)) / len(data)

    assert packed(written("random")) > 0.99
    assert packed(written("half", compressible_percent=50)) == pytest.approx(0.5, abs=0.1)
    data = written("same", dedupe_percent=50)
    blocks = Counter(data[at : at + 4096] for at in range(0, len(data), 4096))
    assert packed(data) > 0.4
    assert max(blocks.values()) > 1
    plain = written("plain")
    assert len({plain[at : at + 4096] for at in range(0, len(plain), 4096)}) == len(plain) // 4096


# -- at a rate


def test_a_rate_is_divided_among_jobs_of_one_io() -> None:
    job = measurement(Workload("randread", "4k", 64, rate_iops=40_000), [JobTarget("/dev/sda", 1 << 30)], 1, 10)
    assert {"--numjobs=64", "--iodepth=1", "--rate_iops=625", "--rate_process=poisson"} <= set(job.options)
    mixed = Workload("randrw", "4k", 8, read_percent=70, rate_iops=2000, threads=2)
    job = measurement(mixed, [JobTarget("/dev/md0", 1 << 30)], 4, 10)
    assert {"--numjobs=16", "--iodepth=1", "--rate_iops=88,38"} <= set(job.options)


def test_a_rate_in_per_cent_needs_a_sheet() -> None:
    with pytest.raises(ValueError, match="ssd_workload"):
        measurement(Workload("randread", "4k", 8, rate_percent=70), [JobTarget("/dev/sda", 1 << 30)], 1, 10)


def test_real_fio_keeps_the_rate_at_random_times(tmp_path: Path) -> None:
    workload = Workload("randread", "4k", 8, rate_iops=2000)
    job = measurement(workload, [real_fio.image(tmp_path, 16 * MIB)], 1, 3)
    result = real_fio.run(job, tmp_path).accepted(job.expectation)
    assert result.read.ios == pytest.approx(6000, rel=0.1)
