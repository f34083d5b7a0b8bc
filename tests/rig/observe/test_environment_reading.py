from __future__ import annotations

import pytest
from support.simulator.simulated_surroundings import Surroundings

from pytest_ssdqual.qual.measured.environment import DriveLink, KernelLog, Traffic
from pytest_ssdqual.rig.observe.device_counters import Counted
from pytest_ssdqual.rig.observe.environment import parse

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


def test_everything_is_found() -> None:
    seen = parse(TEXT, "md100", ["nvme0n1", "nvme1n1"])
    assert seen.uptime_s == pytest.approx(1442.12)
    assert seen.clock_s == pytest.approx(1795286113.157, abs=1e-3)
    assert seen.resolution_s == pytest.approx(0.03)
    assert seen.host.cpus["cpu1"] == (68, 0, 270, 1384, 7, 0, 20, 2)
    assert set(seen.host.cpus) == {"cpu", "cpu0", "cpu1"}
    assert list(seen.host.throttled_ms.values()) == [1250]
    first, second = seen.drives
    assert first.counted == Counted(9, Traffic(59, 6, 2096 * 512, 8 * 512), (92, 0, 12, 92))
    assert first.link == DriveLink("PCIe", 8.0, 4, 16.0, 4)
    assert (first.alarm_c, first.warmth.temperature_c) == (81.85, None)
    assert second.counted == Counted(0, Traffic(49, 0, 2096 * 512, 0), (92, 0, 12, 92))
    assert (second.link, second.alarm_c, second.warmth.temperature_c) == (None, None, 50)
    assert seen.array == Counted(0, Traffic(9415, 0, 75320 * 512, 0), (0, 0, 0, 0))
    assert (seen.chunk_bytes, seen.bitmap) == (65536, True)
    assert seen.kernel_log
    assert (seen.kernel_log.mark, seen.kernel_log.log.more, seen.names) == ("k812", 3, ())
    assert [each.time_s for each in seen.kernel_log.log.lines] == [1421.565657]


def test_what_an_array_or_a_log_lacks_is_not_made_up() -> None:
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
