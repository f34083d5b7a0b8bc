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


NARROW, HOT = DriveLink("PCIe", 8.0, 2, 16.0, 4), DriveTemperature(too_warm=True)
BEFORE = (array(2, 1), array(4, 1))
UNCERTAIN = Measured((run([44_000, 40_000, 36_000, 30_000, 50_000], geometry="raid0x5"),))
#: Sweeps, and where they bend by what is said of them.
BENDS = [
    ((array(2, 1), array(4, 1), array(6, 0.99)), ""),
    # The drive that is new where it bends is named,
    ((*BEFORE, array(5, 0.8), array(6, 0.8)), "the bend begins at raid0x5, the first with drive S4"),
    ((*BEFORE, array(6, 0.8)), "the bend begins at raid0x6, the first with drives S4 and S5"),
    # which is known by its serial number and not by its place,
    (
        (array(2, 1, members=("A", "B")), array(3, 0.8, members=("X", "A", "B"))),
        "the bend begins at raid0x3, the first with drive X",
    ),
    # unless wider arrays have it without harm, or many are new.
    ((*BEFORE, array(5, 0.8), array(6, 1)), "the bend begins at raid0x5; the cause is unknown"),
    ((array(2, 1), array(6, 0.8)), "the bend begins at raid0x6; the cause is unknown"),
    # A busy host is named before any drive, where it bends and not elsewhere.
    ((*BEFORE, array(5, 0.8, cpu=busy(0.93))), "the bend begins at raid0x5: the host's CPU was 93% busy there"),
    (
        (*BEFORE, array(5, 0.8, cpu=busy(0.2, 0.99))),
        "the bend begins at raid0x5: one of the host's CPUs was 99% busy there, in the kernel",
    ),
    ((*BEFORE, array(5, 0.8, cpu=busy(0.79, 0.9))), "the bend begins at raid0x5, the first with drive S4"),
    (
        (array(2, 1, cpu=busy(0.99)), array(4, 1), array(5, 0.8, cpu=busy(0.3)), array(6, 0.8, cpu=busy(0.99))),
        "the bend begins at raid0x5, the first with drive S4",
    ),
    # What a drive told of itself is weightier than that it is new, if it was not there all along.
    (
        (*BEFORE, array(5, 0.8, drives=(drive("S1", HOT), drive("S4")))),
        "the bend begins at raid0x5: drive S1 was too warm there",
    ),
    (
        (*BEFORE, array(5, 0.8, drives=(drive("S4", link=NARROW),))),
        "the bend begins at raid0x5: drive S4 is connected by PCIe 8 GT/s x2, at most 16 GT/s x4",
    ),
    (
        (*BEFORE, array(5, 0.8, drives=(drive("S0", link=NARROW),))),
        "the bend begins at raid0x5, the first with drive S4",
    ),
    # 40,000 IOPS and no more, whatever the width.
    (
        (*BEFORE, array(5, 0.8), array(6, 4 / 6), array(8, 0.5)),
        "the bend begins at raid0x5, and wider arrays do no more: something that all drives share is the bottleneck",
    ),
    ((*BEFORE, UNCERTAIN), "the bend seems to begin at raid0x5, the first with drive S4"),
    # A width that is out of line is named also if it is the narrowest.
    ((array(2, 0.8), array(4, 1), array(6, 1)), "raid0x2 is out of line: it does 0.8 times"),
    ((array(2, 1.3), array(4, 1), array(6, 1)), "raid0x2 is out of line: it does 1.3 times"),
]


@pytest.mark.parametrize(("sweep", "sentence"), BENDS, ids=range(len(BENDS)))
def test_the_bend_of_a_sweep_is_told_with_its_cause(sweep: tuple[Measured, ...], sentence: str) -> None:
    told = scaling.describe_bend(sweep, of_scaling(Sweep(sweep)), 0.9)
    assert told.startswith(sentence)
    assert bool(told) is bool(sentence)
    assert "out of line" in told or told == sentence
