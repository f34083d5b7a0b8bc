from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.fakes.scripted import CommandsOnly, completed

from pytest_ssdqual.qual.spec.protocol_rules import RebuildRule
from pytest_ssdqual.rig.machine.machine import Completed, MachineLost, RigError
from pytest_ssdqual.rig.md import resync

MD = "/sys/block/md100/md/"
SYSTEM = {"sync_speed_min": "1000 (system)", "sync_speed_max": "200000 (system)"}


@dataclass
class Sysfs(CommandsOnly):
    """A machine that is only the md directory of one array."""

    files: dict[str, str] = field(default_factory=lambda: {**SYSTEM, "sync_completed": "none"})
    written: list[tuple[str, str]] = field(default_factory=list)
    name: str = "sysfs"
    lost: bool = False

    def run(self, argv: Sequence[str], *, stdin: bytes | None = None, **how: Any) -> Completed:  # noqa: ANN401
        if self.lost:
            raise MachineLost("sysfs is lost")
        names = [each.removeprefix(MD) for each in argv[1:] if each.startswith(MD)]
        if argv[0] == "tee" and stdin is not None:
            self.write(names[0], stdin.decode())
            return completed(argv)
        if argv[0] == "grep":
            return completed(argv, "".join(f"{MD}{each}:{self.files.get(each, '')}\n" for each in names))
        return completed(argv, "".join(f"{self.files[each]}\n" for each in names))

    def write(self, name: str, value: str) -> None:
        self.written.append((name, value))
        if name in SYSTEM:
            self.files[name] = SYSTEM[name] if value == "system" else f"{value} (local)"
        if (name, value) == ("sync_action", "check"):
            self.files |= {"sync_action": "idle", "last_sync_action": "check", "mismatch_cnt": "128"}


def test_speeds_of_the_protocol_are_undone_at_the_end() -> None:
    sysfs = Sysfs()
    with resync.speeds(sysfs, "md100", RebuildRule(min_bytes_per_s=2_048_000, max_bytes_per_s=10_240_000)) as said:
        assert said == {"sync_speed_min": "2000 (local)", "sync_speed_max": "10000 (local)"}
    assert sysfs.files.items() >= SYSTEM.items()
    assert sysfs.written[-2:] == [("sync_speed_min", "system"), ("sync_speed_max", "system")]


def test_the_most_is_always_set_and_the_least_is_the_hosts() -> None:
    sysfs = Sysfs()
    sysfs.files["sync_speed_max"] = "20000 (system)"
    with resync.speeds(sysfs, "md100", RebuildRule()) as said:
        assert said == {**SYSTEM, "sync_speed_max": "200000 (local)"}
    with resync.speeds(sysfs, "md100", RebuildRule(max_bytes_per_s=1024)) as said:
        assert said["sync_speed_min"] == "1000 (system)"
    assert {name for name, _ in sysfs.written} == {"sync_speed_max"}
    with resync.speeds(sysfs, "md100", RebuildRule(min_bytes_per_s=409_600_000)) as said:
        assert said == {"sync_speed_min": "400000 (local)", "sync_speed_max": "400000 (local)"}


def test_what_somebody_had_set_is_set_again() -> None:
    sysfs = Sysfs()
    sysfs.write("sync_speed_max", "50000")
    with resync.speeds(sysfs, "md100", RebuildRule(max_bytes_per_s=1024)):
        assert sysfs.files["sync_speed_max"] == "1 (local)"
    assert sysfs.files["sync_speed_max"] == "50000 (local)"


@pytest.mark.parametrize("lost", [False, True])
def test_speeds_are_restored_after_an_error(lost: bool) -> None:
    sysfs = Sysfs()

    def work() -> None:
        with resync.speeds(sysfs, "md100", RebuildRule(max_bytes_per_s=1024)):
            sysfs.lost = lost
            raise RigError("fio ended")

    with pytest.raises(RigError, match="fio"):
        work()
    assert lost or sysfs.files.items() >= SYSTEM.items()


def test_a_limit_is_read() -> None:
    assert resync.limit_bytes_per_s("200000 (system)") == 204_800_000
    with pytest.raises(RigError, match="reports 'fast'"):
        resync.limit_bytes_per_s("fast")


@pytest.mark.parametrize(("said", "percent"), [("25 / 200", 12.5), ("none", None), ("0 / 0", None), ("delayed", None)])
def test_how_far_md_is(said: str, percent: float | None) -> None:
    assert resync.done_percent(Sysfs({"sync_completed": said}), "md100") == percent


def test_what_an_array_uses_of_a_member() -> None:
    assert resync.component_bytes(Sysfs({"component_size": "261120"}), "md100") == 261_120 * 1024


def test_a_check_counts_what_disagrees() -> None:
    sysfs = Sysfs()
    assert resync.compare(sysfs, "md100", 1 << 20) == 128
    assert sysfs.written == [("sync_action", "check")]


def test_a_check_that_was_none_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sysfs: Any = Sysfs({"sync_action": "idle", "last_sync_action": "recover", "mismatch_cnt": "0"})
    sysfs.write = lambda name, value: None
    with pytest.raises(RigError, match="action is recover"):
        resync.compare(sysfs, "md100", 1 << 20)
