"""Accuracy of the lab: measured IOPS ÷ the IOPS by throttle and scaling law, per level and width.

    python bench/lab_accuracy.py [raid0x4 raid5x8 ...]

One VM, one array after the other, 4 KiB random reads, writes and 70 % reads at depth 8 per drive; ratios
of one run only.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from pytest_ssdqual import lab
from pytest_ssdqual.plugin.bay.bay import lab_target
from pytest_ssdqual.qual.raid.geometry import Geometry, expected_iops
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.drives.survey import survey
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine import ssh
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.measure.session import Setup

DEFAULT = (
    *("drivex1", "drivex8", "raid0x2", "raid0x4", "raid0x8", "raid1x2", "raid1x3", "raid10x4", "raid10x6", "raid10x8"),
    *("raid5x3", "raid5x4", "raid5x5", "raid5x6", "raid5x7", "raid5x8", "raid6x4", "raid6x5", "raid6x6", "raid6x8"),
    *("raid1x2-1failed", "raid10x4-1failed", "raid5x4-1failed", "raid5x8-1failed"),
    *("raid6x6-1failed", "raid6x6-2failed"),
)
#: Reads, writes and the mixes of the Intel S3500 RAID paper.
WORKLOADS = (
    Workload("randread", "4k", 8),
    Workload("randwrite", "4k", 8),
    Workload("randrw", "4k", 8, read_percent=70),
)
IOPS = 300


class NoLogbook:
    """A logbook that records nothing."""

    def note(self, kind: str, **facts: object) -> None:
        pass

    def keep(self, name: str, data: bytes) -> str:
        return name


def main(names: list[str]) -> None:
    geometries = [Geometry.parse(name) for name in names]
    with ExitStack() as stack:
        vm = stack.enter_context(lab.start(max(each.width for each in geometries), iops=IOPS))
        channel = ssh.connect(lab_target(vm.ssh))
        stack.callback(channel.close)
        knames = sorted(name for name in survey(channel).nodes if name.startswith("nvme"))
        topology = survey(channel, knames)
        held = HeldDrives(channel, [topology.drive(name) for name in knames])
        stack.callback(held.release)
        quick = protocol.load("quick")
        campaign = Campaign(Setup(channel, held, quick, NoLogbook(), "", lambda what, seconds: None))
        stack.callback(campaign.close)
        print("array            workload           measured  law   measured/law")
        for geometry in geometries:
            for workload in WORKLOADS:
                law = expected_iops(geometry, workload.read_fraction, IOPS, IOPS)
                try:
                    iops = campaign.measure(geometry, workload).iops
                except RigError as error:
                    print(f"{geometry!s:<16} {workload!s:<18} {error}", flush=True)
                    continue
                print(
                    f"{geometry!s:<16} {workload!s:<18} {iops:8.0f} {law:5.0f}  {100 * (iops / law - 1):+.1f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:] or list(DEFAULT))
