"""Intel white paper 329903-001US (December 2013): DC S3500 workload characterization in RAID configurations.

480 GB drives in RAID 1 of 2, 4, 6 and 8 (striped mirrors: RAID 10 here, of which two drives are one mirror), 800 GB
drives in RAID 5 of 3 to 8, behind one controller; IOMeter with one worker per drive, depths 1, 2, 4 and 8 per drive.
"""

from __future__ import annotations

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID, depths, random

#: "Queue depth per drive" (A-P5).
DEPTHS = (1, 2, 4, 8)
#: Shares of reads (A-P10).
READ_PERCENTS = (0, 70, 90, 100)

#: What the paper's figures show: 4 KiB, all mixes, all depths (A-04 to A-20, A-24 to A-31).
PUBLISHED = INTEL_RAID

#: One curve of the figures each: a mix at all depths (A-09, A-18, A-27).
WRITES, *READS = (depths(random(reads, "4k", 1), DEPTHS) for reads in READ_PERCENTS)

#: "Beyond queue depth 8 average latency rises sharply", of one drive (A-37); the depths beyond are chosen here. Reads
#: only: of writes, whose IOPS do not depend on the depth (A-09), each doubling of the depth doubles the latency.
SINGLE_DRIVE = depths(random(100, "4k", 1), (1, 2, 4, 8, 16, 32))

#: "4 KB to 128 KB" was measured (A-P10, A-08); the paper has no list, so these are the powers of two between.
BLOCK_SIZES = ("8k", "16k", "32k", "64k", "128k")
SIZES = tuple(random(reads, bs, depth) for bs in BLOCK_SIZES for reads in READ_PERCENTS for depth in DEPTHS)


def _sequential(reads: int, bs: str, depth: int) -> Workload:
    if reads in (0, 100):
        return Workload("read" if reads else "write", bs, depth)
    return Workload("rw", bs, depth, read_percent=reads)


#: The paper's sequential class (A-P7, A-P10). "100 % read 128K" at its best depth gave 2,300 and 2,400 MB/s (A-23,
#: A-32); the text does not say whether that was sequential. Taken as sequential, as throughput usually is.
SEQUENTIAL = tuple(_sequential(reads, "128k", depth) for reads in (0, 100) for depth in DEPTHS)

#: The other sizes and mixes of that class, which has no figure in the paper: the sizes and mixes of the random class.
SEQUENTIAL_SIZES = tuple(
    each
    for bs in ("4k", *BLOCK_SIZES)
    for reads in READ_PERCENTS
    for each in (_sequential(reads, bs, depth) for depth in DEPTHS)
    if each not in SEQUENTIAL
)


def _application(name: str, bs: str, random_percent: int, read_percent: int) -> Workload:
    return Workload("randrw", bs, 8, read_percent=read_percent, random_percent=random_percent, name=name)


_THREE_SIZES = "4k/34:8k/33:16k/33"
#: Table 1, "typical mixed workloads" (A-W1 to A-W8). Its columns are scrambled in the available text: the rows from
#: decision support on are the likeliest reading, and of the last one the share of reads may be "70 to 95"; 95 is taken.
#: Where a row names several sizes they get equal shares, and the depth is the paper's deepest: neither is in the table.
APPLICATIONS = (
    _application("appweb", _THREE_SIZES, 75, 95),
    _application("appmail", "4k", 95, 70),
    _application("appoltp", "4k/50:8k/50", 95, 70),
    _application("appdecision", "16k", 95, 95),
    _application("appvideo", "16k", 95, 95),
    _application("appsearch", _THREE_SIZES, 95, 95),
    _application("appcache", "16k", 95, 95),
    _application("appcdn", "16k", 95, 95),
)
