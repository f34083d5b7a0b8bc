"""An Intel 910 (four devices of 100 GB, md RAID 0) on Linux: a queue depth sweep (habr.com, article 156147).

fio, ``direct=1 ioengine=libaio bs=4k``, one job on the array: depths are those of the whole array.
"""

from __future__ import annotations

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import depths, random

#: 1, 2, 4, … 1024 outstanding in all (E-R1 to E-R11, E-W1 to E-W11).
DEPTHS = tuple(2**power for power in range(11))
READS = depths(random(100, "4k", 1, threads=1), DEPTHS)
WRITES = depths(random(0, "4k", 1, threads=1), DEPTHS)

#: Where the author finds the useful depth, "16 to 32": what is beyond costs latency and brings little (E-02).
USEFUL_DEPTHS = (4, 8, 16, 32, 64)
USEFUL = tuple(depths(random(reads, "4k", 1, threads=1), USEFUL_DEPTHS) for reads in (100, 0))

#: E-01: the gain of reads stops at 128, "four devices of 32 each". In a RAID 0 random addresses fill the four queues
#: unevenly; of the devices side by side each has its own. Depths per device.
PER_DEVICE = depths(random(100, "4k", 1), (1, 2, 4, 8, 16, 32, 64, 128))

#: Intel's own figure for random writes, "at about depth 6": the next depth of the table (E-07).
PROMISED_WRITES = random(0, "4k", 8, threads=1)

#: Reads and writes as two jobs of their own, each of this depth: nothing fixes the mix (E-M1 to E-M7).
STREAM_DEPTHS = DEPTHS[:7]
STREAMS = depths(Workload("randread+randwrite", "4k", 1, threads=1), STREAM_DEPTHS)

#: E-04: two streams per device; 1,680 MB/s at 1.2 ms are 7.7 outstanding, one per stream. Whether a transfer reaches
#: one device depends on the chunks: those of 256 KiB or more do not split it (protocol ``intel910``).
SEQUENTIAL_READ = Workload("read", "256k", 1, streams_per_drive=2)
#: E-05: one stream per device.
SEQUENTIAL_WRITE = Workload("write", "256k", 1)

#: "100 % of the volume, small blocks, many streams, several hours": the worst case, and how far a drive falls in it
#: (E-06). Eight jobs, together as many outstanding as E-W8, its best.
SATURATING = random(0, "4k", 16, threads=8)

#: E-03: up to 8 outstanding the writes are faster than the reads.
LOW_LOAD = WRITES.workloads[:4]

#: All depths once.
MATRIX = tuple(workload for series in (READS, WRITES, STREAMS) for workload in series.workloads)
