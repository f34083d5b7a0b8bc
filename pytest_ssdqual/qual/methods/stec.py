"""STEC, "Benchmarking Enterprise SSDs": never fresh, never short, never only one mix.

Three SATA drives side by side, SQLIO: ``-kW -s600 -frandom -o8 -b8``, two threads per drive on a file of 30 GB. The
command line says 8 KiB, the text and a caption 4 KiB un-aligned: 8 KiB is taken. 8 outstanding are per thread there;
text and figures speak of queue depth 8, which is used here.
"""

from __future__ import annotations

from pytest_ssdqual.qual.workload.rounds import Rounds, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import depths, mixes, random, unaligned

#: C-04: the bathtub.
READ_PERCENTS = (100, 80, 60, 40, 20, 0)
#: C-01, C-02: written from the fresh state until it settles, several drives side by side.
SATURATING = random(0, "8k", 8)
#: C-04: all mixes at the depth and size of the command line.
MIXES = mixes(SATURATING, READ_PERCENTS)

#: C-05: 4 KiB at its own boundaries, and across them. The offsets are chosen here; the source only says "un-aligned".
OFFSETS = ("512", "2k")
#: Reads, too: across a page they touch two, but change nothing.
ALIGNMENTS = tuple(unaligned(random(reads, "4k", 8), offset) for reads in (0, 100) for offset in OFFSETS)

#: C-06: "several sizes", QD 32, all mixes; the sizes are chosen here.
BLOCK_SIZES = ("4k", "8k", "16k", "32k", "64k")
SIZE_MIXES = tuple(mixes(random(0, bs, 32), READ_PERCENTS) for bs in BLOCK_SIZES)

#: C-07: "several depths" × mixes, 8 KiB un-aligned; the depths are chosen here.
DEPTHS = (1, 2, 4, 8, 16, 32)
DEPTH_SERIES = tuple(depths(random(reads, "8k", 1, offset="512"), DEPTHS) for reads in READ_PERCENTS)

#: The demonstration had two windows of SQLIO side by side, one that read and one that wrote, each of the same depth:
#: nothing fixes their mix.
TWO_WINDOWS = Workload("randread+randwrite", "8k", 8)

#: C-10: a new and a working drive, in five patterns. The paper names no sizes for sequential I/O and no mix; 128 KiB
#: and the even mix are chosen here. Writes go from new to working in one saturation each.
PURE_WRITES = (SATURATING, Workload("write", "128k", 8))
#: The mix of a new drive reads blocks that were never written, without flash, until it has written them itself. So its
#: fresh IOPS are too high, and only those of pure writes are compared with the settled ones by a limit.
SATURATIONS = (*PURE_WRITES, random(50, "8k", 8))
#: Reads of a new drive need data: of blocks that were never written a drive returns zeros without reading flash (C-09).
#: So "new" is a purged drive that was written once, in order.
READS = (random(100, "8k", 8), Workload("read", "128k", 8))
NEW_READS = Rounds("stec-new", READS, tuple(Tracked(each, "steady_iops") for each in READS), "128k", fill_passes=1)
