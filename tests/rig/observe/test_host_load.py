from __future__ import annotations

import pytest

from pytest_ssdqual.rig.observe import host_load
from pytest_ssdqual.rig.observe.host_load import HostCounters

STAT = "S 2 0 0 0 -1 69238880 0 0 0 0 {user} {system} 0 0 20 0 1 0 {start} 0 0 18446744073709551615 0 0 0 0 0 0 0"


def stat(pid: int, name: str, user: int, system: int, start: int = 77) -> str:
    rest = STAT.format(user=user, system=system, start=start)
    return f"/proc/{pid}/stat:{pid} ({name}) {rest}"


def read(*lines: str) -> HostCounters:
    return host_load.parse(lines, {})


def test_cpu_time_of_the_workers_that_worked_for_raid5_last() -> None:
    before = read(stat(20, "kworker/u8:0-raid5wq", 5, 100), stat(21, "kworker/u8:1-events_unbound", 0, 50))
    after = read(
        stat(20, "kworker/u8:0+raid5wq", 5, 900),  # 8 s
        stat(21, "kworker/u8:1-raid5wq", 0, 250),  # 2 s
        stat(22, "kworker/u8:2-raid5wq", 0, 100),  # 1 s, and new
        stat(23, "kworker/u8:3-writeback", 0, 900),
        stat(24, "kworker/0:1-raid5wq", 0, 900),  # no worker of unbound work
        stat(25, "md100_raid5", 3, 4),
    )
    assert host_load.md_workers_busy(before, after, 10.0) == pytest.approx(1.1)
    assert after.md_thread_ticks == 7


def test_workers_are_known_by_number_start_and_name() -> None:
    before = read(stat(20, "kworker/u8:0-raid5wq", 0, 5_000, start=1))
    after = read(stat(20, "kworker/u8:0-raid5wq", 0, 100, start=2))  # another one
    assert host_load.md_workers_busy(before, after, 10.0) == pytest.approx(0.1)
    for unnamed in (read(stat(20, "kworker/u8:0", 0, 5_000)), read()):
        assert host_load.md_workers_busy(unnamed, unnamed, 10.0) is None
