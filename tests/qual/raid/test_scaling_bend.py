from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.strategies import run

from pytest_ssdqual.qual.measured.environment import (
    Cpu,
    DeviceTraffic,
    DriveEnvironment,
    DriveLink,
    DriveTemperature,
    ProcessEnvironment,
)
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid import scaling
from pytest_ssdqual.qual.verdict.estimators import of_scaling


def array(
    width: int,
    share: float,
    *,
    cpu: Cpu | None = None,
    drives: tuple[DriveEnvironment, ...] = (),
    members: tuple[str, ...] = (),
) -> Measured:
    """RAID 0 of drives of 10,000 IOPS, steady to half a per cent, that does a share of what it could."""
    rates = [round(10_000 * width * share * factor) for factor in (0.995, 1.0, 1.005, 1.0, 1.0)]
    seen = ProcessEnvironment(
        seconds=5.0, fio_s=5.0, clock_jump_s=0.0, clock_resolution_s=0.001, cpu=cpu, jobs_busy=None, drives=drives,
        array=None,
    )  # fmt: skip
    found = replace(run(rates, geometry=f"raid0x{width}"), seen=seen)
    return Measured((replace(found, members=members) if members else found,))


def busy(all_of_them: float, in_kernel: float = 0.1) -> Cpu:
    return Cpu(count=8, busy=all_of_them, busiest=1.0, busiest_in_kernel=in_kernel, throttled=None)


def drive(name: str, heat: DriveTemperature = DriveTemperature(), link: DriveLink | None = None) -> DriveEnvironment:  # noqa: B008
    return DriveEnvironment(name, DeviceTraffic(None, None), heat, link)


def told(*sweep: Measured, least: float = 0.9) -> str:
    return scaling.describe_bend(sweep, of_scaling(Sweep(sweep)), least)


def test_a_straight_line_does_not_bend() -> None:
    assert told(array(2, 1), array(4, 1), array(6, 0.99)) == ""


def test_the_drive_that_is_new_where_it_bends_is_named() -> None:
    sweep = (array(2, 1), array(4, 1), array(5, 0.8), array(6, 0.8))
    assert told(*sweep) == "the bend begins at raid0x5, the first with drive S4"
    several = (array(2, 1), array(4, 1), array(6, 0.8))
    assert told(*several) == "the bend begins at raid0x6, the first with drives S4 and S5"


def test_a_drive_is_known_by_its_serial_number_and_not_by_its_place() -> None:
    sweep = (array(2, 1, members=("A", "B")), array(3, 0.8, members=("X", "A", "B")))
    assert told(*sweep) == "the bend begins at raid0x3, the first with drive X"


def test_a_drive_that_wider_arrays_have_without_harm_is_not_suspected() -> None:
    sweep = (array(2, 1), array(4, 1), array(5, 0.8), array(6, 1))
    assert told(*sweep) == "the bend begins at raid0x5; the cause is unknown"


def test_of_many_new_drives_none_is_suspected() -> None:
    assert told(array(2, 1), array(6, 0.8)).endswith("; the cause is unknown")


@pytest.mark.parametrize(
    ("cpu", "said"),
    [
        (busy(0.93), ": the host's CPU was 93 % busy there"),
        (busy(0.2, 0.99), ": one of the host's CPUs was 99 % busy there, in the kernel"),
        (busy(0.79, 0.9), ", the first with drive S4"),
    ],
)
def test_a_busy_host_is_named_before_any_drive(cpu: Cpu, said: str) -> None:
    assert told(array(2, 1), array(4, 1), array(5, 0.8, cpu=cpu)).replace("%", " %").replace("  ", " ") == (
        f"the bend begins at raid0x5{said}"
    )


def test_the_host_is_asked_where_it_bends_and_not_elsewhere() -> None:
    sweep = (array(2, 1, cpu=busy(0.99)), array(4, 1), array(5, 0.8, cpu=busy(0.3)), array(6, 0.8, cpu=busy(0.99)))
    assert told(*sweep) == "the bend begins at raid0x5, the first with drive S4"


def test_what_a_drive_told_of_itself_is_weightier_than_that_it_is_new() -> None:
    hot = (array(2, 1), array(4, 1), array(5, 0.8, drives=(drive("S1", DriveTemperature(too_warm=True)), drive("S4"))))
    assert told(*hot) == "the bend begins at raid0x5: drive S1 was too warm there"
    narrow = DriveLink("PCIe", 8.0, 2, 16.0, 4)
    badly = (array(2, 1), array(4, 1), array(5, 0.8, drives=(drive("S4", link=narrow),)))
    assert told(*badly).endswith(": drive S4 is connected by PCIe 8 GT/s x2, at most 16 GT/s x4")
    # Which does not explain a bend where it was there all along.
    before = (array(2, 1), array(4, 1), array(5, 0.8, drives=(drive("S0", link=narrow),)))
    assert told(*before) == "the bend begins at raid0x5, the first with drive S4"


def test_where_nothing_grows_any_more_something_shared_is_full() -> None:
    # 40,000 IOPS and no more, whatever the width.
    sweep = (array(2, 1), array(4, 1), array(5, 0.8), array(6, 4 / 6), array(8, 0.5))
    assert told(*sweep) == (
        "the bend begins at raid0x5, and wider arrays do no more: something that all drives share is the bottleneck"
    )


def test_what_is_not_sure_only_seems_to_bend() -> None:
    wide = replace(run([44_000, 40_000, 36_000, 30_000, 50_000], geometry="raid0x5"))
    assert told(array(2, 1), array(4, 1), Measured((wide,))) == (
        "the bend seems to begin at raid0x5, the first with drive S4"
    )


def test_a_width_that_is_out_of_line_is_named_also_if_it_is_the_narrowest() -> None:
    assert told(array(2, 0.8), array(4, 1), array(6, 1)).startswith("raid0x2 is out of line: it does 0.8 times")
    assert told(array(2, 1.3), array(4, 1), array(6, 1)).startswith("raid0x2 is out of line: it does 1.3 times")
