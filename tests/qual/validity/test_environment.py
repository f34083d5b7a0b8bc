from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.builders.strategies import run, seen, seen_drive

from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    Cpu,
    DeviceTraffic,
    DriveLink,
    DriveTemperature,
    KernelLine,
    KernelLog,
    ProcessEnvironment,
)
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.validity.check import Check
from pytest_ssdqual.qual.validity.environment import of_array, of_drives, of_host

CPU = Cpu(count=32, busy=0.2, busiest=0.4, busiest_in_kernel=0.3, throttled=0.0)


def host(**changed: Any) -> dict[str, Check]:  # noqa: ANN401 (fields of any type)
    return {check.name: check for check in of_host(replace(run([1000] * 5), seen=replace(seen(), **changed)))}


def drive(**changed: Any) -> dict[str, Check]:  # noqa: ANN401
    around = replace(seen_drive("BTWL1", None, None), **changed)
    return {check.name: check for check in of_drives(replace(run([1000] * 5), seen=seen([around])))}


def test_promised_heat_is_no_objection() -> None:
    hot = replace(seen_drive("BTWL1", None, None), heat=DriveTemperature(85.0, 70.0, True, 40, 3))
    warm_run = replace(run([1000] * 5), seen=seen([hot]))
    assert [bool(check.objections) for check in of_drives(warm_run)] == [True, True, False]
    promised = list(of_drives(replace(warm_run, is_heat_promised=True)))
    assert [check.objections for check in promised] == [(), (), ()]
    assert [check.figure for check in promised][:2] == [85, 40]


def syncs(log: tuple[str, ...] | None, geometry: str = "raid5x4") -> list[Check]:
    around = ArrayEnvironment(DeviceTraffic(None, None), 65536, False, log)
    return list(of_array(replace(run([1000] * 5, geometry=geometry), seen=seen((), around))))


def test_a_quiet_host_and_cool_drives_hold() -> None:
    assert [check.holds for check in host(cpu=CPU).values()] == [True] * 7
    assert [check.holds for check in drive().values()] == [True] * 3


def test_nothing_is_known_when_nobody_looked() -> None:
    nobody: Run = replace(run([1000] * 5, geometry="raid5x4"), seen=None)
    checks = [*of_host(nobody), *of_drives(nobody), *of_array(nobody)]
    assert checks
    assert {check.holds for check in checks} == {None}
    assert [check.objections for check in checks] == [()] * len(checks)


@pytest.mark.parametrize(("busy", "holds"), [(0.95, True), (0.951, False)])
def test_all_cpus_busy(busy: float, holds: bool) -> None:
    check = host(cpu=replace(CPU, busy=busy))["cpu_busy_percent"]
    assert check.holds is holds
    assert check.figure == pytest.approx(100 * busy)
    assert list(check.objections) == [] if holds else ["the host's CPU was 95% busy, so it may have set the pace"]


def test_one_cpu_that_never_rests_in_the_kernel() -> None:
    """Of 32, 3 % of the whole: interrupts of all drives on one CPU."""
    check = host(cpu=replace(CPU, busiest=0.995, busiest_in_kernel=0.995))["cpu_busiest_percent"]
    (sentence,) = check.objections
    assert "or raise array.group_threads" in sentence
    assert host(cpu=replace(CPU, busiest=0.98, busiest_in_kernel=0.98))["cpu_busiest_percent"].holds is True


def test_a_program_that_keeps_a_cpu_busy_is_none_of_ours() -> None:
    assert host(cpu=replace(CPU, busiest=1.0))["cpu_busiest_percent"].holds is True


def test_of_a_single_cpu_the_whole_says_it_all() -> None:
    alone = host(cpu=Cpu(count=1, busy=0.94, busiest=0.995, busiest_in_kernel=0.995, throttled=None))
    assert alone["cpu_busiest_percent"].holds is True
    assert alone["cpu_throttled_percent"].holds is None


def test_jobs_of_fio_without_cpu_left() -> None:
    (said,) = host(jobs_busy=0.97)["fio_cpu_percent"].objections
    assert "97% busy" in said
    assert "load.jobs" in said
    assert host(jobs_busy=0.94)["fio_cpu_percent"].holds is True
    assert host(jobs_busy=None)["fio_cpu_percent"].holds is None


@pytest.mark.parametrize(("share", "holds"), [(0.009, True), (0.02, False), (None, None)])
def test_a_cpu_that_is_too_hot(share: float | None, holds: bool | None) -> None:
    assert host(cpu=replace(CPU, throttled=share))["cpu_throttled_percent"].holds is holds


@pytest.mark.parametrize(
    ("jump_s", "seconds", "holds"),
    [(0.45, 11.0, True), (-0.45, 11.0, True), (0.6, 11.0, False), (-3600.0, 11.0, False), (3.9, 3600.0, True),
     (4.2, 3600.0, False), (None, 11.0, None)],
)  # fmt: skip
def test_a_clock_that_is_set(jump_s: float | None, seconds: float, holds: bool | None) -> None:
    """Half a second and a tenth of a per cent; a clock that is slewed by NTP runs on."""
    assert host(clock_jump_s=jump_s, seconds=seconds)["clock_jump_s"].holds is holds


def test_which_way_the_clock_was_set() -> None:
    (sentence,) = host(clock_jump_s=3600.0)["clock_jump_s"].objections
    assert "forward by 60" in sentence
    (sentence,) = host(clock_jump_s=-90.0)["clock_jump_s"].objections
    assert "back by 90" in sentence


def test_a_clock_known_to_a_second_is_not_said_to_jump_by_one() -> None:
    assert host(clock_jump_s=1.4, clock_resolution_s=2.0)["clock_jump_s"].holds is True
    assert host(clock_jump_s=2.6, clock_resolution_s=2.0)["clock_jump_s"].holds is False


def test_a_clock_of_fio_that_runs_fast() -> None:
    """fio may count cycles of the CPU, by a rate that it measured."""
    check = host(seconds=600.0, fio_s=606.0)["fio_clock_ahead_s"]
    (sentence,) = check.objections
    assert "fio counted 606.0" in sentence
    assert host(seconds=605.0, fio_s=600.0)["fio_clock_ahead_s"].holds is True


@pytest.mark.parametrize(
    "heat",
    [
        DriveTemperature(70.0, 70.0, None, 0, 0),
        DriveTemperature(84.0, 70.0, False, None, None),
        DriveTemperature(41.0, None, True, 0, 0),
    ],
)
def test_a_drive_at_its_own_threshold_or_that_says_so(heat: DriveTemperature) -> None:
    check = drive(heat=heat)["temperature_c"]
    assert check.holds is False
    assert check.objections[0].startswith(f"drive BTWL1 was too warm: {heat.temperature_c:g} °C")
    assert check.figure == heat.temperature_c


def test_its_threshold_is_told() -> None:
    (sentence,) = drive(heat=DriveTemperature(84.0, 70.0, True, 0, 0))["temperature_c"].objections
    assert "drive BTWL1 was" in sentence


@pytest.mark.parametrize(
    ("heat", "said"),
    [
        (DriveTemperature(55.0, 70.0, False, 60, 0), "drive BTWL1 counted 60 s of being too warm or throttled (55 °C)"),
        (DriveTemperature(55.0, 70.0, False, 0, 1), "drive BTWL1 throttled itself once, or passed its limit (55 °C)"),
        (
            DriveTemperature(None, None, None, None, 3),
            "drive BTWL1 throttled itself 3 times, or passed its limit (an unknown ",
        ),
    ],
)
def test_a_drive_that_throttled_itself_in_between(heat: DriveTemperature, said: str) -> None:
    check = drive(heat=heat)["too_warm_s"]
    assert check.holds is False
    assert check.objections[0].startswith(said)


def test_what_a_drive_does_not_tell_is_not_known_and_not_fine() -> None:
    silent = drive(heat=DriveTemperature(), link=None)
    assert {check.holds for check in silent.values()} == {None}
    # A temperature without anything to hold it against, and nothing of the time in between.
    partly = drive(heat=DriveTemperature(temperature_c=38.0))
    assert (partly["temperature_c"].holds, partly["temperature_c"].figure) == (None, 38.0)
    assert partly["too_warm_s"].holds is None


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (DriveLink("PCIe", 16.0, 2, 16.0, 4), "PCIe 16 GT/s x2, at most 16 GT/s x4"),
        (DriveLink("PCIe", 8.0, 4, 16.0, 4), "PCIe 8 GT/s x4, at most 16 GT/s x4"),
        (DriveLink("SATA", 3.0, 1, 6.0, 1), "SATA 3 Gb/s, at most 6 Gb/s"),
    ],
)
def test_a_link_below_what_the_drive_can_do(link: DriveLink, said: str) -> None:
    check = drive(link=link)["link_percent"]
    assert check.objections == (f"drive BTWL1 is connected by less than it can do: {said}",)
    assert check.figure == 50


def test_md_working_on_the_array_meanwhile() -> None:
    (check,) = syncs(("[ 1442.565657] md: data-check of RAID array md100",))
    (sentence,) = check.objections
    assert "1442.565657] md: data-check" in sentence
    assert [each.holds for each in syncs(())] == [True]
    assert [each.holds for each in syncs(None)] == [None]


def test_a_rebuild_is_meant_and_bare_drives_have_no_md() -> None:
    log = ("md: recovery of RAID array md100",)
    assert syncs(log, "raid5x4-1rebuilding") == syncs(log, "drivex2") == []
    assert [each.holds for each in syncs(log, "raid5x4-1failed")] == [False]


def test_what_was_seen_of_one_drive_says_nothing_of_another() -> None:
    warm = replace(seen_drive("B", None, None), heat=DriveTemperature(80.0, 70.0, True, 60, 1))
    around: ProcessEnvironment = seen([seen_drive("A", None, None), warm])
    objecting = {check.drive for check in of_drives(replace(run([1000] * 5), seen=around)) if check.objections}
    assert objecting == {"B"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INFO: task fio:12 blocked for more than 122 seconds.", "a task on the machine hung meanwhile"),
        ("DMAR: [DMA Write] Request device [01:00.0] fault addr 0", "the IOMMU reported a fault meanwhile"),
        ("nvme 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1]", "the IOMMU reported a fault meanwhile"),
        ("{7}[Hardware Error]: event severity: corrected", "firmware reported a hardware error meanwhile"),
    ],
)
def test_a_fault_of_the_host_makes_a_measurement_suspect(text: str, said: str) -> None:
    check = host(kernel=KernelLog((KernelLine(12.5, 3, text), KernelLine(13.5, 3, text)), 0, lost=False))["host_faults"]
    assert check.objections == (f"{said} (kernel log: [   12.500000] error: {text})",)
    assert (check.figure, check.holds) == (1, False)


def test_messages_about_drives_are_no_faults_of_the_host() -> None:
    log = KernelLog((KernelLine(1.0, 3, "critical medium error, dev sda, sector 8"),), 0, lost=False)
    assert host(kernel=log)["host_faults"].holds
    assert host(kernel=None)["host_faults"].holds is None
