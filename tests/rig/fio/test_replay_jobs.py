"""What fio makes of a replay: time scale, end, latencies, and the only device that it may open."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fakes import real_fio

from pytest_ssdqual.qual.workload.trace import TraceIo, iolog, placed
from pytest_ssdqual.qual.workload.workload import Replay, Workload
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget, replay

SIZE = 1 << 20
#: 500 I/Os per second for two seconds, of which each fourth writes.
IOS = [TraceIo(2000 * n, 4096 * (n % 600), 4096, n % 4 == 0) for n in range(1001)]


def workload(scale: int) -> Workload:
    made = Replay("0" * 64, scale, len(IOS), IOS[-1].time_us / 1e6, 4096 * len(IOS), 4096 * 251)
    return Workload("randrw", "4k", 1, 75, threads=8, name="night", replay=made)


def job(
    folder: Path, targets: list[JobTarget], scale: int, seconds: float = 20, begin: int = 0, engine: str = "psync"
) -> Job:
    shares = []
    for number in range(8):
        path = folder / f"share{number}"
        path.write_text("".join(iolog(placed(IOS[number::8], SIZE - begin, begin))))
        shares.append(str(path))
    return replay(workload(scale), targets, shares, seconds, engine)


@pytest.mark.parametrize(("scale", "due_s"), [(100, 2.0), (200, 1.0)])
def test_replay_does_every_io_at_its_time(tmp_path: Path, scale: int, due_s: float) -> None:
    made = job(tmp_path, [real_fio.image(tmp_path, SIZE)], scale)
    result = real_fio.run(made, tmp_path).accepted(made.expectation)
    assert (result.read.ios, result.write.ios) == (750, 251)
    assert result.seconds > 0.95 * due_s  # how much longer depends on the load of this machine
    assert result.read.latency.total == 750


def test_replay_ends_at_its_limit(tmp_path: Path) -> None:
    made = job(tmp_path, [real_fio.image(tmp_path, SIZE)], 50, 1.0)
    result = real_fio.run(made, tmp_path).accepted(made.expectation)
    assert 0 < result.read.ios + result.write.ios < len(IOS)
    assert result.seconds < 3


def test_replay_is_inside_the_target_and_creates_no_file(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, SIZE)
    made = job(tmp_path, [target], 200, begin=SIZE // 2)
    real_fio.run(made, tmp_path).accepted(made.expectation)
    written = Path(target.path).read_bytes()
    assert len(written) == SIZE
    assert not any(written[: SIZE // 2])
    assert any(written[SIZE // 2 :])
    assert not (tmp_path / "target").exists()


def test_drives_side_by_side_replay_the_whole_trace_each(tmp_path: Path) -> None:
    targets = [real_fio.image(tmp_path, SIZE, name) for name in ("one", "two")]
    made = job(tmp_path, targets, 200)
    result = real_fio.run(made, tmp_path).accepted(made.expectation)
    assert [sum(each.ios for each in part) for part in result.parts] == [len(IOS)] * 2


def test_replay_without_drives_opens_none(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, SIZE)
    made = job(tmp_path, [target], 200, engine="null")
    Path(target.path).unlink()
    result = real_fio.run(made, tmp_path).accepted(made.expectation)
    assert result.read.ios + result.write.ios == len(IOS)
    assert not Path(target.path).exists()


def test_every_job_of_a_replay_names_its_device(tmp_path: Path) -> None:
    targets = [JobTarget(f"/dev/nvme{number}n1", SIZE) for number in range(2)]
    options = job(tmp_path, targets, 100).options
    for name in ("filename", "replay_redirect"):
        given = [option.partition("=")[2] for option in options if option.startswith(f"--{name}=")]
        assert given == ["/dev/nvme0n1"] * 8 + ["/dev/nvme1n1"] * 8
