from __future__ import annotations

import html
import re
from dataclasses import replace

from support.builders import charted, strategies

from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    CpuUse,
    DeviceQueue,
    DeviceTraffic,
    DrivePlacement,
    SharedLink,
    SharedLinks,
    StripeCache,
    Traffic,
)
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.view import witnesses

SEEN = strategies.seen_drive("S1", Traffic(661, 1322, 86_638_592, 173_277_184), None)


def test_queue_and_placement_of_members() -> None:
    queue = DeviceQueue(66.1, 132.2, 3.25, 2e5, 4e5, 0.93)
    full = replace(SEEN, queue=queue, placement=DrivePlacement("none", 1023, 1, "0-3", "write back"))
    found = witnesses.members(strategies.seen([full, replace(SEEN, name="S2")]))
    assert found
    first, second = (dict(zip(found.columns, row, strict=True)) for row in found.rows)
    assert (first["Mean queue"], first["Busy"]) == ("3.2", "93%")
    assert first["Scheduler"] == "none, 1,023 requests, write back"
    assert (first["NUMA node"], first["Interrupts on CPU"]) == ("1", "0-3")
    assert (second["Busy"], second["Scheduler"]) == ("", "")


def test_a_column_of_which_nothing_is_known_is_left_out() -> None:
    found = witnesses.members(strategies.seen([SEEN]))
    assert found
    assert "Scheduler" not in found.columns


def test_md_and_the_host() -> None:
    array = ArrayEnvironment(DeviceTraffic(None, None), 65536, None, (), 0.62, StripeCache(256, 9, 243.2, 256), 8, 3.42)
    seen = strategies.seen([SEEN], array)
    assert seen.cpu
    uses = (CpuUse(0, 0.5, 0.3, 0.1), CpuUse(1, 0.9, 0.9, 0.7))
    seen = replace(seen, cpu=replace(seen.cpu, each=uses), cpu_pressure=0.07)
    table = pages.environment().get_template("facts.html").make_module().host(seen)  # type: ignore[attr-defined]
    rows = dict(re.findall('<tr><th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', html.unescape(str(table))))
    assert rows["md's thread"] == "62% of a CPU"
    assert rows["md's workers"] == "3.4 CPUs, 8 on each NUMA node"
    assert rows["md's stripe cache"].startswith("95% in use")
    assert rows["CPUs most in interrupts"].startswith("CPU 1: 70%")


def test_a_damaged_measurement_without_members_loads_no_shared_link() -> None:
    reads = Workload("randread", "128k", 32)
    link = SharedLink("PCIe switch 0000:3b:00.0", 8.0, 4, charted.SERIALS[:2])
    noted = charted.record("shared_links", plain(SharedLinks((link,))))
    loaded = charted.measured("drivex4", reads, 1000.0)
    damaged = charted.measured("drivex4", reads, 9000.0, members=[])
    (row,) = witnesses.shared_links(charted.story(noted, loaded, damaged)).rows
    assert (row[1], row[4]) == ("2", "65.5 MB/s")
    (row,) = witnesses.shared_links(charted.story(noted, damaged)).rows
    assert row[4:] == ("", "", "")
