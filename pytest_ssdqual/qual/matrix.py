"""Published sets of workloads, by the paper they are from."""

from __future__ import annotations

from pytest_ssdqual.qual.workload import Workload

#: Intel white paper 329903-001US (December 2013), S3500 drives in RAID 1 and RAID 5: 4 KiB random at 100 % write,
#: 70 % read, 90 % read and 100 % read, each at queue depths 1, 2, 4 and 8 per drive (seeds A-P5, A-P10).
INTEL_RAID = tuple(
    mix.at(depth)
    for mix in (
        Workload("randwrite", "4k", 1),
        Workload("randrw", "4k", 1, read_percent=70),
        Workload("randrw", "4k", 1, read_percent=90),
        Workload("randread", "4k", 1),
    )
    for depth in (1, 2, 4, 8)
)
