"""Tom's Hardware, 24 DC S3700 (800 GB) in RAID 0 arrays of 4, 8 and 24: "server profile testing".

IOMeter's old server profiles: a transfer size distribution and a share of reads each, all random.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import depths, random

#: Drives of the article's arrays.
WIDTHS = (4, 8, 24)
#: "Intensity" was swept; its values are not in the text. These are chosen here, per drive.
DEPTHS = (1, 2, 4, 8, 16, 32)

#: D-P1: ten sizes (the text says eight), mean 15.66 KiB, reads only.
WEB_SERVER = Workload("randread", "512/22:1k/15:2k/8:4k/23:8k/15:16k/2:32k/6:64k/7:128k/1:512k/1", 1, name="webserver")
#: D-P2.
DATABASE = Workload("randrw", "8k", 1, read_percent=67, name="database")
#: D-P3.
EXCHANGE = Workload("randrw", "32k", 1, read_percent=62, name="exchange")
#: D-P4: mean 11.08 KiB.
FILE_SERVER = Workload(
    "randrw", "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10", 1, read_percent=80, name="fileserver"
)

#: The four profiles, and what they are compared with: 4 KiB random reads and writes (D-04).
INTENSITIES = tuple(
    depths(each, DEPTHS)
    for each in (random(0, "4k", 1), random(100, "4k", 1), WEB_SERVER, DATABASE, EXCHANGE, FILE_SERVER)
)
#: "40,000 IOPS at every queue depth", of four drives (D-05).
EXCHANGE_INTENSITY = INTENSITIES[-2]
#: All points of these curves.
MATRIX = tuple(workload for series in INTENSITIES for workload in series.workloads)

#: The two mixes of sizes at IOMeter's default alignment, on sectors of 512 B, at the deepest queue: most of their
#: transfers then straddle two pages. All others are aligned on 4 KiB; the article does not state its alignment.
ON_SECTORS = tuple(replace(each.at(DEPTHS[-1]), align="512") for each in (WEB_SERVER, FILE_SERVER))
