from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import strategies
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import SHELLS, run_script
from support.simulator.simulated_surroundings import Surroundings, of_members, traffic

from pytest_ssdqual.qual.measured.environment import DriveLink, DrivePlacement, KernelLog, ProcessEnvironment, Traffic
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.intervals import IoDirection
from pytest_ssdqual.rig.fio.output import FioResult
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.observe import environment
from pytest_ssdqual.rig.observe.device_counters import Counted
from pytest_ssdqual.rig.observe.environment import SCRIPT, EnvironmentReading, between, parse, take_reading
from pytest_ssdqual.rig.observe.host_load import HostCounters, WorkerTime
from pytest_ssdqual.rig.observe.kernel_log import PICK

SMART_LOG = (Path(__file__).parents[2] / "data" / "nvme-cli" / "2.3" / "smart-log.json").read_text()
STAT = "   10    5  800   3    7    0   56    0    0    2    3    0    0    0    0    0    0\n"
#: A machine with an NVMe drive, one of two controllers, a SATA drive and an array (paths as Linux 6.1 has them).
TREE = {
    "proc/uptime": "1442.10 2770.07\n",
    "proc/stat": "cpu  90 0 584 2775 12 0 36 3 0 0\ncpu0 90 0 584 2775 12 0 36 3 0 0\nintr 5133 78 9\nctxt 193344\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms": "7\n",
    "sys/block/nvme0n1/stat": STAT,
    "sys/block/nvme0n1/diskseq": "9\n",
    "sys/block/nvme0n1/queue/iostats": "1\n",
    "sys/block/nvme0n1/device/device/current_link_speed": "8.0 GT/s PCIe\n",
    "sys/block/nvme0n1/device/device/current_link_width": "2\n",
    "sys/block/nvme0n1/device/device/max_link_speed": "8.0 GT/s PCIe\n",
    "sys/block/nvme0n1/device/device/max_link_width": "4\n",
    "sys/block/nvme0n1/device/hwmon3/temp1_max": "81850\n",
    "sys/block/nvme1n1/stat": "0 0 0 0 0 0 0 0 0 0 0\n",
    "sys/block/nvme1c0n1/stat": STAT,
    "sys/block/nvme1n1/device/nvme1/device/current_link_speed": "16.0 GT/s PCIe\n",
    "sys/block/nvme1n1/device/nvme1/device/current_link_width": "4\n",
    "sys/block/nvme1n1/device/nvme1/device/max_link_speed": "16.0 GT/s PCIe\n",
    "sys/block/nvme1n1/device/nvme1/device/max_link_width": "4\n",
    "sys/block/sda/stat": STAT,
    "sys/block/sda/device/hwmon/hwmon4/temp1_max": "70000\n",
    "sys/block/nvme0n1/queue/scheduler": "[none] mq-deadline\n",
    "sys/block/nvme0n1/queue/nr_requests": "1023\n",
    "sys/block/nvme0n1/queue/write_cache": "write through\n",
    "sys/block/nvme0n1/device/device/irq": "11\n",
    "sys/block/nvme0n1/device/device/numa_node": "1\n",
    "sys/block/nvme0n1/device/device/msi_irqs/45": "msix\n",
    "sys/block/nvme0n1/device/device/msi_irqs/46": "msix\n",
    "proc/irq/45/effective_affinity_list": "3\n",
    "proc/irq/46/effective_affinity_list": "0-1\n",
    "sys/block/sda/queue/scheduler": "mq-deadline [bfq]\n",
    "sys/block/sda/device/irq": "17\n",
    "proc/irq/17/effective_affinity_list": "2\n",
    "sys/block/md100/stat": STAT,
    "sys/block/md100/md/chunk_size": "65536\n",
    "sys/block/md100/md/bitmap/location": "none\n",
    "sys/block/md100/md/group_thread_cnt": "4\n",
    **{
        f"proc/{pid}/{file}": f"{pid} ({name}) S 2{' 0' * 9} 3 4{' 0' * 6} 77{' 0' * 9}\n"
        if file == "stat"
        else f"{name}\n"
        for pid, name in ((8, "md100_raid5"), (9, "kworker/u8:1-raid5wq"), (10, "kworker/1:0-events"), (11, "fio"))
        for file in ("comm", "stat")
    },
}
KNAMES = "nvme0n1", "nvme1n1", "sda"
SATA = {"json_format_version": [1, 0], "temperature": {"current": 38, "op_limit_max": 72}}
PROGRAMS = {
    "nvme": f"#!/bin/sh\ncase $* in *nvme1n1) exit 1;; esac\ncat <<E\n{SMART_LOG}\nE\n",
    "smartctl": f"#!/bin/sh\ncase $* in *sda) echo '{json.dumps(SATA)}';; esac\n",
    "dmesg": "#!/bin/sh\nfor a in md100 md10 md1000; do echo '[ 9.1] md: data-check of RAID array '$a; done\n",
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root directory, with its programs in ``bin``."""
    for name, content in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "bin").mkdir()
    for name, program in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(program)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def told(
    machine: Path, shell: str, when: str = "before", array: str = "md100", since: str = "new", limit_s: int = 20
) -> str:
    script = SCRIPT.replace("timeout 20 ", f"timeout {limit_s} ")
    for root in ("/proc/", "/sys/", "/dev/kmsg"):
        script = script.replace(root, f"{machine}{root}")
    drives = [part for kname in KNAMES for part in (kname, f"/dev/{kname}", "auto")]
    env = {**os.environ, "PATH": f"{machine / 'bin'}:{os.environ['PATH']}"}
    words = "environment", PICK, when, array, since, "", *drives
    return run_script(shell, script, *words, env=env).replace(str(machine), "")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_drive_that_does_not_answer_has_an_unknown_temperature(machine: Path, shell: str) -> None:
    """The others are still read: one that hangs must not cost them their measurements. This one would take 5 s."""
    (machine / "bin" / "nvme").write_text(f"#!/bin/sh\ncase $* in *nvme1n1) sleep 5;; esac\ncat <<E\n{SMART_LOG}\nE\n")
    drives = parse(told(machine, shell, limit_s=1), "md100", KNAMES).drives
    assert [each.warmth.temperature_c is None for each in drives] == [False, True, False]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_finds_everything_in_any_shell(machine: Path, shell: str, when: str) -> None:
    reading = parse(told(machine, shell, when, since="new" if when == "before" else "t9.0"), "md100", KNAMES)
    assert reading.uptime_s == 1442.10
    assert reading.clock_s is not None
    assert reading.host.cpus["cpu0"] == (90, 0, 584, 2775, 12, 0, 36, 3)
    assert list(reading.host.throttled_ms.values()) == [7]
    one, several, sata = reading.drives
    counted = Traffic(15, 7, 800 * 512, 56 * 512)
    assert [each.counted.traffic for each in reading.drives] == [counted] * 3
    assert reading.array.traffic == counted
    assert one.counted.appearance == 9
    assert [each.link for each in reading.drives] == [
        DriveLink("PCIe", 8, 2, 8, 4),
        DriveLink("PCIe", 16, 4, 16, 4),
        None,
    ]
    assert (one.warmth.temperature_c, one.warmth.too_warm_s, one.alarm_c) == (50, 0, 81.85)
    assert (several.warmth.temperature_c, several.alarm_c) == (None, None)
    assert (sata.warmth.temperature_c, sata.warmth.limit_c, sata.alarm_c) == (38, 72, 70)
    assert (reading.chunk_bytes, reading.bitmap, reading.md_workers) == (65536, False, 4)
    assert reading.host.md_thread_ticks == 7
    assert reading.host.workers == {("9", "77"): WorkerTime("raid5wq", 7)}
    places = [DrivePlacement("none", 1023, 1, "0-1,3", "write through"), DrivePlacement("", None, None, "2")]
    assert [one.placement, sata.placement and replace(sata.placement, scheduler="")] == (
        places if when == "before" else [None, None]
    )
    assert reading.kernel_log
    said = ["md: data-check of RAID array md100"] if when == "after" else []
    assert (reading.kernel_log.mark, [each.text for each in reading.kernel_log.log.lines]) == ("t9.1", said)


def test_counters_are_read_nearest_to_fio(machine: Path) -> None:
    before, after = (told(machine, "sh", when) for when in ("before", "after"))
    assert before.index("==warmth") < before.index("clock ")
    assert after.index("==warmth") > after.index("clock ")


def test_without_tools_or_array_less_is_known(machine: Path) -> None:
    for name in PROGRAMS:
        (machine / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
    shutil.rmtree(machine / "sys/devices")
    shutil.rmtree(machine / "sys/block/sda")
    reading = parse(told(machine, "sh", array="-"), "", KNAMES)
    assert [each.warmth.temperature_c for each in reading.drives] == [None] * 3
    assert (reading.host.throttled_ms, reading.kernel_log) == ({}, None)
    assert reading.drives[2].counted.traffic is None
    assert parse(told(machine, "sh"), "md100", KNAMES).kernel_log is None


# -- what two looks say together


def array_of(name: str) -> Array:
    geometry = Geometry.parse(name)
    return Array(geometry, "/dev/md100", tuple(map(drive, range(geometry.width))), "1:2", 1 << 30, "zeroed")


def result(intervals: tuple[Interval, ...], parts: tuple[tuple[Interval, ...], ...] = ()) -> FioResult:
    nothing = IoDirection(0, 0, strategies.EMPTY)
    return FioResult(10.0, intervals, nothing, nothing, 0, 0.2, (), parts)


def around(name: str, *trouble: str) -> ProcessEnvironment:
    """A process of ten seconds on an array or on drives, on a machine with such trouble."""
    array, world = array_of(name), Surroundings(trouble, {f"nvme{n}n1": f"S{n}" for n in range(4)})
    machine = ScriptedMachine().on("sh", "-c", SCRIPT, answer=lambda argv: world.text(argv))
    before = take_reading(machine, array)
    workload = Workload("randrw", "4k", 8, 70)
    alone = strategies.run([1000] * 10, workload=workload).intervals
    parts = (alone,) * len(array.members) if array.geometry.is_side_by_side else ()
    world.ran(array, parts or (alone,))
    return between(array, before, take_reading(machine, array, before), workload, result(alone, parts))


def test_a_quiet_process_on_drives_side_by_side() -> None:
    found = around("drivex2")
    assert [found.seconds, found.fio_s, found.jobs_busy] == pytest.approx([11.5, 10.0, 0.2])
    assert found.clock_jump_s == pytest.approx(0, abs=1e-6)
    assert found.array is None
    asked = Traffic(7000, 3000, 7000 * 4096, 3000 * 4096)
    assert [(each.name, each.device.counted, each.device.asked) for each in found.drives] == [
        ("S0", asked, asked), ("S1", asked, asked),
    ]  # fmt: skip
    assert found.cpu
    assert (found.cpu.count, found.cpu.throttled) == (2, None)
    assert found.cpu.busy == pytest.approx(0.2, abs=0.01)


def test_of_an_array_fio_knows_nothing_of_the_members() -> None:
    found = around("raid5x4")
    assert found.array
    assert found.array.device.counted == found.array.device.asked
    assert {each.device.asked for each in found.drives} == {None}
    workload = Workload("randrw", "4k", 8, 70)
    alone = strategies.run([1000] * 10, workload=workload).intervals
    assert [each.device.counted for each in found.drives] == of_members(Geometry.parse("raid5x4"), traffic(alone))
    assert (found.array.syncs, found.array.bitmap, found.array.chunk_bytes) == ((), False, 65536)


def test_what_was_wrong_is_in_it() -> None:
    found = around("raid5x4", "reads:S2", "resync", "clock:3600", "cpu", "lanes:S1", "throttled:S3", "hot:S0")
    assert found.array
    assert found.array.syncs
    assert "data-check of RAID" in found.array.syncs[0]
    assert found.clock_jump_s == pytest.approx(3600)
    assert found.cpu
    assert found.cpu.busiest_in_kernel == 1.0
    assert found.cpu.busy == pytest.approx(0.6, abs=0.01)
    assert [each.link.width for each in found.drives if each.link] == [4, 2, 4, 4]
    heats = [each.heat for each in found.drives]
    assert [(each.too_warm, each.too_warm_s, each.events) for each in heats] == [
        (True, 0, 0), (False, 0, 0), (False, 0, 0), (False, 40, 3),
    ]  # fmt: skip
    assert heats[0].temperature_c == 85
    reads = [each.device.counted.read_bytes for each in found.drives if each.device.counted]
    assert max(reads) == reads[2] > 1e9


def test_what_the_kernel_said_meanwhile_is_seen_with_its_time() -> None:
    assert around("drivex2").kernel == KernelLog((), 0, lost=False)
    assert around("drivex2", "speechless").kernel is None
    found = around("raid5x4", "timeout:S1", "resync").kernel
    assert found
    assert [(each.level, each.text.partition(":")[0]) for each in found.lines] == [(6, "md"), (4, "nvme nvme1")]
    assert around("raid5x4", "speechless").array.syncs is None  # type: ignore[union-attr]


# -- one thing at a time


def sight(**changed: object) -> EnvironmentReading:
    argv = ["sh", "-c", "", "environment", PICK, "before", "-", "new", "", "nvme0n1", "/dev/nvme0n1", "auto"]
    plain = parse(Surroundings().text(argv), "", ["nvme0n1"])
    return replace(plain, **changed)  # type: ignore[arg-type]


def counters(cpus: Mapping[str, tuple[int, ...]], throttled_ms: dict[str, int] | None = None) -> EnvironmentReading:
    return sight(host=HostCounters(cpus, throttled_ms or {}))


def of(before: EnvironmentReading, after: EnvironmentReading) -> ProcessEnvironment:
    uptime_s = before.uptime_s + 100
    workload = Workload("randread", "4k", 8)
    return between(array_of("drivex1"), before, replace(after, uptime_s=uptime_s), workload, result(()))


NONE = (0,) * 8


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"cpu": NONE, "cpu0": NONE},
            {"cpu": (10, 0, 20, 30, 20, 0, 10, 10), "cpu0": (10, 0, 20, 30, 20, 0, 10, 10)},
            {"busy": 0.5, "busiest": 0.5, "busiest_in_kernel": 0.5},
        ),
        (
            {"cpu": NONE, "cpu0": NONE, "cpu1": NONE},
            {"cpu": (100, 0, 40, 60, *NONE[4:]), "cpu0": (90, 0, 10, *NONE[3:]), "cpu1": (10, 0, 30, 60, *NONE[4:])},
            {"busiest": 1.0, "busiest_in_kernel": 0.4, "count": 2},
        ),
        (
            # On kernels without ticks idle and waiting are estimates.
            {"cpu": (0, 0, 0, 500, 50, 0, 0, 0), "cpu0": (0, 0, 0, 500, 50, 0, 0, 0), "cpu7": NONE},
            {"cpu": (30, 0, 0, 570, 48, 0, 0, 0), "cpu0": (30, 0, 0, 570, 48, 0, 0, 0), "cpu8": (9,) * 8},
            {"count": 1, "busy": 0.3},
        ),
    ],
    ids=["waiting is idle, stolen time is not", "busy with programs", "idle time went back, CPUs came and went"],
)
def test_use_of_cpus(
    before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]], expected: dict[str, float]
) -> None:
    found = of(counters(before), counters(after)).cpu
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)


def test_throttling_is_that_of_the_hottest_cpu() -> None:
    cpus = {"cpu": NONE, "cpu0": NONE}
    before = counters(cpus, {"a": 100, "b": 5000})
    assert of(before, before).cpu is None, "no time at all"
    found = of(before, counters(dict.fromkeys(cpus, (50,) * 8), {"a": 2100, "b": 5500, "c": 9})).cpu
    assert found
    assert found.throttled == pytest.approx(2 / 100)


def test_replugged_drive_is_not_counted_and_the_worse_link_is() -> None:
    before = sight()
    (drive,) = before.drives
    again = replace(drive, counted=replace(drive.counted, appearance=10))
    assert of(before, replace(before, drives=(again,))).drives[0].device.counted is None
    assert of(before, before).drives[0].device.counted == Traffic(0, 0, 0, 0)
    more = replace(drive, counted=replace(drive.counted, traffic=Traffic(9, 9, 9, 9)))
    assert of(replace(before, drives=(more,)), before).drives[0].device.counted is None
    narrow = replace(drive, link=DriveLink("PCIe", 16.0, 1, 16.0, 4))
    assert of(replace(before, drives=(narrow,)), before).drives[0].link == narrow.link


def test_machine_that_does_not_answer_is_an_error() -> None:
    machine = ScriptedMachine().on("sh", answer=completed(["sh"], "", 127, "sh: not found"))
    with pytest.raises(RigError, match="was cut short"):
        take_reading(machine, array_of("drivex1"))


def test_names_and_the_first_mark_reach_the_script_as_parameters() -> None:
    world = Surroundings()
    machine = ScriptedMachine().on("sh", answer=lambda argv: world.text(argv))
    odd = replace(drive(0), kname="cciss/c0d0", path="/dev/cciss/c0d0")
    take_reading(machine, replace(array_of("raid0x2"), members=(odd, drive(1))))
    of_drives = "cciss!c0d0", "/dev/cciss/c0d0", "auto", "nvme1n1", "/dev/nvme1n1", "auto"
    assert machine.asked[0] == (
        "sh", "-c", environment.SCRIPT, "environment", PICK, "before", "md100", "new", "", *of_drives,
    )  # fmt: skip
    before = take_reading(machine, array_of("drivex1"))
    take_reading(machine, array_of("drivex1"), before)
    assert [asked[7:9] for asked in machine.asked[1:]] == [("new", ""), ("k1", "nvme0n1 nvme0")]


#: As in the lab, with an array of two (kernel 6.1), and what hwmon and a throttled CPU would add.
TEXT = """\
clock 1442.10 1795286113.157059313 1442.14
/proc/stat:cpu  90 0 584 2775 12 0 36 3 0 0
/proc/stat:cpu0 22 0 313 1391 5 0 16 1 0 0
/proc/stat:cpu1 68 0 270 1384 7 0 20 2 0 0
/proc/stat:ctxt 193344
/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms:1250
/sys/block/nvme0n1/stat:      49       10     2096       92        5        1        8        0        0       12     92
/sys/block/nvme0n1/diskseq:9
/sys/block/nvme0n1/queue/iostats:1
/sys/block/nvme0n1/device/device/current_link_speed:8.0 GT/s PCIe
/sys/block/nvme0n1/device/device/current_link_width:4
/sys/block/nvme0n1/device/device/max_link_speed:16.0 GT/s PCIe
/sys/block/nvme0n1/device/device/max_link_width:4
/sys/block/nvme0n1/device/hwmon1/temp1_max:81850
/sys/block/nvme1n1/stat:49 0 2096 92 0 0 0 0 0 12 92 0 0 0 0 0 0
/sys/block/md100/stat:9415 0 75320 0 0 0 0 0 0 0 0
/sys/block/md100/queue/iostats:1
/sys/block/md100/md/chunk_size:65536
/sys/block/md100/md/bitmap/location:+8
==kernel k812 3 0
6 1421.565657 md: data-check of RAID array md100
==
==warmth nvme1n1
{
  "critical_warning":0,
  "temperature":323
}
==warmth nvme0n1
==
==end
"""


def test_what_an_array_or_a_log_lacks_is_not_made_up() -> None:
    whole = parse(TEXT, "md100", ["nvme0n1"])
    assert [whole.uptime_s, whole.resolution_s] == pytest.approx([1442.12, 0.03])
    assert (whole.bitmap, whole.kernel_log and whole.kernel_log.log.more) == (True, 3)
    assert whole.drives[0].counted == Counted(9, Traffic(59, 6, 2096 * 512, 8 * 512), (92, 0, 12, 92))
    alone = parse(TEXT, "", ["nvme0n1"])
    assert (alone.array, alone.chunk_bytes, alone.bitmap) == (Counted(), None, None)
    for bitmap in ("/bitmap/location:none", "/else:1"):
        assert parse(TEXT.replace("/bitmap/location:+8", bitmap), "md100", []).bitmap is False
    line = "6 1421.565657 md: data-check of RAID array md100\n"
    unheard = TEXT.replace(f"==kernel k812 3 0\n{line}", "")
    assert parse(unheard, "md100", []).kernel_log is None
    heard = parse(TEXT.replace(line, ""), "md100", []).kernel_log
    assert heard
    assert heard.log.lines == ()


@pytest.mark.parametrize(
    ("now", "clock_s", "coarse"),
    [("1795286113.%N", 1795286113.0, True), ("1795286113", 1795286113.0, True), ("", None, False), ("x", None, False)],
)
def test_a_clock_without_fractions(now: str, clock_s: float | None, coarse: bool) -> None:
    """busybox may be built without nanoseconds."""
    text = TEXT.replace("1795286113.157059313", now or "-")
    seen = parse(text, "md100", [])
    assert seen.clock_s == clock_s
    assert (seen.resolution_s > 1) is coarse


def test_old_kernels_count_the_paths_of_a_drive() -> None:
    """Here two paths; the worse link is the one that counts."""
    text = TEXT.replace("==kernel", "\n".join([
        "/sys/block/nvme2n1/stat:0 0 0 0 0 0 0 0 0 0 0",
        "/sys/block/nvme2c0n1/stat:10 0 80 0 1 0 8 0 0 0 0",
        "/sys/block/nvme2c1n1/stat:20 0 160 0 2 0 16 0 0 0 0",
        "/sys/block/nvme2c1n11/stat:900 0 900 0 900 0 900 0 0 0 0",
        *(f"/sys/block/nvme2n1/device/nvme{n}/device/{each}" for n, width in ((2, 4), (3, 1)) for each in (
            "current_link_speed:16.0 GT/s PCIe", f"current_link_width:{width}", "max_link_speed:16.0 GT/s PCIe",
            "max_link_width:4")),
        "==kernel",
    ]))  # fmt: skip
    (drive,) = parse(text, "", ["nvme2n1"]).drives
    assert drive.counted.traffic == Traffic(30, 3, 240 * 512, 24 * 512)
    assert drive.link == DriveLink("PCIe", 16.0, 1, 16.0, 4)


def test_a_sata_drive_s_link_is_what_smartctl_says() -> None:
    speed = '{"units_per_second": 60, "bits_per_unit": 100000000}'
    answer = f'{{"json_format_version": [1, 0], "interface_speed": {{"max": {speed}, "current": {speed}}}}}'
    (drive,) = parse(TEXT.replace("==warmth nvme0n1", f"==warmth sda\n{answer}"), "", ["sda"]).drives
    assert drive.link == DriveLink("SATA", 6.0, 1, 6.0, 1)


@pytest.mark.parametrize("value", ["Unknown", "0.0 GT/s PCIe", "Unknown speed"])
def test_a_link_speed_that_is_not_known(value: str) -> None:
    (drive,) = parse(TEXT.replace("8.0 GT/s PCIe", value), "", ["nvme0n1"]).drives
    assert drive.link is None


def test_a_drive_that_is_gone_or_does_not_count_is_not_known() -> None:
    silent, absent = parse(TEXT.replace("iostats:1", "iostats:0"), "", ["nvme0n1", "sdz"]).drives
    assert silent.counted == absent.counted == Counted()
    assert (absent.warmth.temperature_c, absent.link) == (None, None)


@pytest.mark.parametrize("text", ["", "==end\n", TEXT.removesuffix("==end\n"), TEXT.replace("clock 1442.10", "clock")])
def test_an_answer_that_is_cut_short_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"cut short|no clock"):
        parse(text, "md100", ["nvme0n1"])


def test_other_files_of_a_link_are_not_taken_for_missing_ones() -> None:
    text = TEXT.replace("device/current_link_speed", "device/secondary_link_speed")
    assert parse(text, "md100", ["nvme0n1", "nvme1n1"]).drives[0].link is None


def test_the_simulation_speaks_the_same_language() -> None:
    """So that what is tested with it is what the script prints."""
    argv = ["sh", "-c", "", "environment", "", "before", "md100", "new", "", "nvme0n1", "/dev/nvme0n1"]
    seen = parse(Surroundings().text(argv), "md100", ["nvme0n1"])
    assert (seen.chunk_bytes, seen.bitmap, seen.names) == (65536, False, ("md100", "nvme0n1", "nvme0"))
    assert seen.kernel_log
    assert seen.kernel_log.log == KernelLog((), 0, lost=False)
    assert seen.drives[0].counted.traffic == seen.array.traffic == Traffic(0, 0, 0, 0)
    assert seen.drives[0].link == DriveLink("PCIe", 16.0, 4, 16.0, 4)
    assert seen.drives[0].warmth.temperature_c == 50
    assert set(seen.host.cpus) == {"cpu", "cpu0", "cpu1"}
