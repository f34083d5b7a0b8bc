"""Tom's Hardware, six DC S3500 in a RAID 0 on Intel RST under Linux: "mixing block sizes and R/W ratios".

fio with two jobs of depth 32 on the array, 8 transfer sizes × 7 mixes, a minute each.
"""

from __future__ import annotations

from pytest_ssdqual.qual.workload.workload_set import mixes, random

#: Named are 512 B, 4 KiB, 32 KiB and 128 KiB, eight sizes "from 512 B to 1 MB"; the only common ladder that has all of
#: them is the SNIA test specification's. (Doubling from 512 B ends at 64 KiB.)
BLOCK_SIZES = ("512", "4k", "8k", "16k", "32k", "64k", "128k", "1m")
#: Seven from 100/0 to 0/100, of which 65/35, 35/65 and 5/95 are named: again the specification's.
READ_PERCENTS = (100, 95, 65, 50, 35, 5, 0)
#: "2 threads × QD 32 = 64 outstanding", whatever the number of drives.
THREADS, DEPTH = 2, 32

#: All 56 points.
MATRIX = tuple(random(reads, bs, DEPTH, threads=THREADS) for bs in BLOCK_SIZES for reads in READ_PERCENTS)

#: One curve of the article each: a size over all mixes (B-02, B-04, B-06, B-07).
MIX_SERIES = tuple(mixes(random(0, bs, DEPTH, threads=THREADS), READ_PERCENTS) for bs in BLOCK_SIZES)

#: Those that fall with the share of reads (B-02, B-04), and those at the bandwidth limit, where balanced mixes have the
#: most (B-07).
SMALL_MIX_SERIES = tuple(each for each in MIX_SERIES if each.workloads[0].block_bytes < 32 << 10)
LARGE_MIX_SERIES = tuple(each for each in MIX_SERIES if each.workloads[0].block_bytes >= 32 << 10)

#: At the bandwidth limit, "about 1600 MB/s" from 32 KiB on (B-05), where doubling the size halves the IOPS (B-09).
LARGE = tuple(each for each in MATRIX if each.block_bytes >= 32 << 10)

#: Half a kilobyte is an eighth of a page, so a write of it is a read, a change and a write (B-10).
SUB_PAGE = random(0, "512", DEPTH, threads=THREADS)
