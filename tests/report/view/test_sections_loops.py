from __future__ import annotations

from dataclasses import replace

from support.builders.evidence import claimed
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding, Part
from pytest_ssdqual.report.view.sections import loops

REMARK = "steady IOPS of randwrite_4k_t4xqd32: steady at 300 IOPS over 5 rounds: range 2.0 %, rounds 3 to 7 of 7"


def cell(read_percent: int, bs: str, value: float, outcome: Finding = Finding.OBSERVED) -> Evidence:
    rw = {0: "randwrite", 100: "randread"}.get(read_percent, "randrw")
    workload = Workload(rw, bs, 32, read_percent=read_percent if rw == "randrw" else None, threads=4)
    found = claimed(Claim.STEADY_IOPS, "drivex2", workload, value=value, bound=1)
    if outcome is Finding.OBSERVED:
        found = replace(found, limit=None, margin_percent=None)
    return replace(found, about=About.LOOP, group="snia-iops", outcome=outcome, remarks=(REMARK,))


def drawn(*evidence: Evidence, width: int = 100) -> list[str]:
    return [line.text for line in loops(evidence, width)]


def test_sizes_down_and_mixes_across_whatever_the_order() -> None:
    cells = [cell(reads, bs, 1000 + reads) for bs in ("512", "4k", "1m") for reads in (0, 65, 100)]
    golden.same("tables.txt", drawn(*cells))


def test_failures_are_marked_and_others_are_the_worst_drive() -> None:
    bad = cell(0, "4k", 100, Finding.FAIL)
    lines = list(loops([replace(bad, members=(Part("S1"), Part("S2")))], 100))
    assert lines[0].text == "steady IOPS · snia-iops · drivex2, worst of 2 · ≥ 1 IOPS"
    assert (lines[2].text.split()[:2], lines[2].markup) == (["4k", "100!"], ("red",))


def test_cells_that_were_not_judged_are_empty() -> None:
    lines = drawn(cell(0, "4k", 100), cell(100, "8k", 200))
    golden.same("tables.txt", lines)


def test_sequential_and_unaligned_cells_are_told_apart() -> None:
    point = cell(0, "4k", 100)
    others = [replace(point, workloads=(name,)) for name in ("write_4k_t4xqd32", "randwrite_4k_off512_t4xqd32")]
    golden.same("tables.txt", drawn(point, *others))


def test_profiles_come_by_their_names() -> None:
    golden.same("tables.txt", drawn(replace(cell(0, "4k", 100), workloads=("webserver_qd8",))))


def test_two_arrays_and_two_claims_have_tables_of_their_own() -> None:
    point = cell(0, "4k", 100)
    # What is remarked is there once for each array.
    tables = drawn(point, replace(point, claim="mean_latency"), replace(point, geometries=("raid5x4",)))
    golden.same("tables.txt", tables)


def test_one_mix_at_several_loads_is_by_depth_and_threads() -> None:
    point = cell(65, "8k", 0)
    names = [
        (threads, depth, f"composite_zoned50x5_50x95_t{threads}xqd{depth}")
        for threads in (32, 4, 1)
        for depth in (16, 2)
    ]
    cells = [replace(point, value=threads * depth, workloads=(name,)) for threads, depth, name in names]
    plain = [
        replace(each, workloads=(each.workloads[0].replace("composite_zoned50x5_50x95", "randrw65_8k"),))
        for each in cells
    ]
    for loads in (cells, plain):
        assert drawn(*loads)[1:4] == [
            "  depth/threads  TC1  TC4  TC32",
            "  QD2              2    8    64",
            "  QD16            16   64   512",
        ]
