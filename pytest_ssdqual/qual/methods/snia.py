"""SNIA Solid State Storage Performance Test Specification 2.0.2 (enterprise): rounds until what is tracked is steady.

A loop begins with its own purge and fill (workload independent preconditioning); cells of a minute and at most 25
rounds are the protocol ``snia``'s. The specification's recommended outstanding I/O is taken: 4 threads of depth 32.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.qual.workload.rounds import Rounds, Stimulus, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import random

#: Enterprise; client would be 2 and 16.
THREADS, DEPTH = 4, 32
#: From outside in: mixes, and for each all sizes, largest first. "Order and nesting are normative."
READ_PERCENTS = (100, 95, 65, 50, 35, 5, 0)
BLOCK_SIZES = ("1m", "128k", "64k", "32k", "16k", "8k", "4k", "512")
#: Threads, and for each all depths: from the most outstanding I/Os to one.
DEMANDS = (32, 16, 8, 6, 4, 2, 1)
#: Idle times and length of a burst of host idle recovery, seconds.
IDLE_TIMES_S, BURST_S = (5, 10, 15, 25, 50), 5


def _cell(read_percent: int, bs: str) -> Workload:
    return random(read_percent, bs, DEPTH, threads=THREADS)


#: Three at once since 2.0; 1.1 tracked the first alone.
IOPS = Rounds(
    "snia-iops",
    tuple(_cell(reads, bs) for reads in READ_PERCENTS for bs in BLOCK_SIZES),
    tuple(Tracked(_cell(reads, bs), "steady_iops") for reads, bs in ((0, "4k"), (65, "64k"), (100, "1m"))),
    fill_bs="128k",
)


def _throughput(bs: str) -> Rounds:
    read, write = (Workload(rw, bs, DEPTH, threads=THREADS) for rw in ("read", "write"))
    # Existing implementations track the writes; the specification says "the throughput of that size".
    return Rounds(f"snia-throughput-{bs}", (read, write), (Tracked(write, "throughput"),), fill_bs=bs)


#: A purge and a fill of its own for each size.
THROUGHPUT = (_throughput("128k"), _throughput("1m"))


def _alone(read_percent: int, bs: str) -> Workload:
    return random(read_percent, bs, 1, threads=1)


#: One I/O at a time.
LATENCY = Rounds(
    "snia-latency",
    tuple(_alone(reads, bs) for reads in (100, 65, 0) for bs in ("8k", "4k", "512")),
    (Tracked(_alone(0, "4k"), "mean_latency"),),
    fill_bs="128k",
)

#: Write saturation: from the purged state, no fill.
SATURATING = _cell(0, "4k")

#: Optional workloads of write saturation (2.0): OLTP, and the composite of sizes and skewed addresses, which is the
#: enterprise workload of JESD219: of the first 5 % of the range, of the next 15 %, and of the rest.
#: The sequential options are left out: fio cannot end a sequential mix at a volume.
OLTP = _cell(65, "8k")
COMPOSITE = Workload(
    "randrw",
    "512/4:1k/1:1536/1:2k/1:2560/1:3k/1:3584/1:4k/67:8k/10:16k/7:32k/3:64k/3",
    DEPTH,
    read_percent=40,
    threads=THREADS,
    name="composite",
    zones="50/5:30/15:20/80",
)
SATURATIONS = (SATURATING, OLTP, COMPOSITE)


def _demand_variation(name: str, mix: Workload) -> Rounds:
    grid = tuple(replace(mix, threads=threads, qd_per_drive=depth) for threads in DEMANDS for depth in DEMANDS)
    # Five minutes of writes at the most outstanding I/Os, because the cells that follow write less and less.
    before = replace(SATURATING, threads=DEMANDS[0], qd_per_drive=DEMANDS[0])
    return Rounds(name, grid, (Tracked(grid[0], "steady_iops"),), fill_bs="128k", pre_write=before, pre_write_cells=5)


#: Demand variation of DIRTH at its default mix, and of the composite block workload (CBW).
DEMAND_VARIATIONS = (_demand_variation("snia-dirth", OLTP), _demand_variation("snia-cbw", COMPOSITE))


def _stream(name: str) -> Workload:
    return Workload("write", "1m", DEPTH, threads=1, name=name)


#: Cross stimulus recovery (XSR): eight hours of large sequential writes, six of small random ones, and the large ones
#: again, from the purged state and without a fill, in minutes.
CROSS_STIMULUS = Rounds(
    "snia-xsr",
    (),
    (),
    fill_bs="128k",
    fill_passes=0,
    after=(
        Stimulus(_stream("before"), 480, 480),
        Stimulus(Workload("randwrite", "8k", DEPTH, threads=1), 360, 360),
        Stimulus(_stream("after"), 480, 480),
    ),
)


def _idle(idle_s: int) -> tuple[Stimulus, Stimulus]:
    paused = replace(SATURATING, burst_s=BURST_S, idle_s=idle_s)
    # 360 cycles in minutes; 15 processes of 24 cycles.
    cells = 360 * (BURST_S + idle_s) // 60
    return Stimulus(paused, cells, 15), Stimulus(replace(SATURATING, name=f"after{idle_s}s"), 30, 30)


#: Host idle recovery (HIR): 4 KiB writes in rounds of half an hour until their last minute is steady. Then for each
#: idle time 360 times five seconds of writes and the idle time, and half an hour of writes without pauses.
HOST_IDLE = Rounds(
    "snia-hir",
    (SATURATING,),
    (Tracked(SATURATING, "steady_iops"),),
    fill_bs="128k",
    fill_passes=0,
    pre_write=SATURATING,
    pre_write_cells=29,
    after=tuple(each for idle_s in IDLE_TIMES_S for each in _idle(idle_s)),
)
