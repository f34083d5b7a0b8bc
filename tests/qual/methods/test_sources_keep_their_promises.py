"""What each source publishes, put in as if it had been measured: the promises that judge it agree with its author."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from support.documents.published_sets import WORKLOADS

from pytest_ssdqual.qual.methods import intel_910, intel_s3500
from pytest_ssdqual.qual.raid import scaling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import Claim, Direction
from pytest_ssdqual.qual.stats import curves
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import WorkloadSet

S480, S800, S3700, I910 = "intel-dc-s3500-480gb", "intel-dc-s3500-800gb", "intel-dc-s3700-800gb", "intel-910-400gb"
STEC = "stec-unnamed-sata-ssd"
OF_SOURCES = (S480, S800, "intel-dc-s3500-raid0", S3700, I910, "intel-910-promised", "intel-320", STEC)
KNOWN = {str(each): each for each in WORKLOADS}


def workload(text: str) -> Workload:
    return KNOWN[text] if text in KNOWN else Workload.parse(text)


def exact(value: float, unit: Unit = Unit.IOPS) -> Estimate:
    return Estimate(value, value, value, 10, unit)


def keeps(direction: Direction, value: float, bound: float) -> bool:
    return value >= bound if direction is Direction.AT_LEAST else value <= bound


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A quantity that a sheet of a source has for one array and workload."""

    sheet: str
    claim: Claim
    array: Geometry
    workload: str
    value: float

    def __str__(self) -> str:
        return f"{self.sheet}-{self.claim}-{self.array}-{self.workload}"


def published() -> Iterator[PublishedFigure]:
    for name in OF_SOURCES:
        for figure in spec.load(name).figures:
            for array, text in ((array, text) for array in figure.arrays for text in figure.workloads):
                for claim, value in figure.quantities.items():
                    yield PublishedFigure(name, claim, array, text, value)


@pytest.mark.parametrize("figure", list(published()), ids=str)
def test_a_figure_keeps_its_own_sheets_promise_and_a_worse_not(figure: PublishedFigure) -> None:
    limit = spec.load(figure.sheet).limit(figure.claim, figure.array, workload(figure.workload))
    assert limit
    worse = 0.8 if limit.direction is Direction.AT_LEAST else 1.25
    assert keeps(limit.direction, figure.value, limit.bound)
    assert not keeps(limit.direction, figure.value * worse, limit.bound)


def ratio(claim: Claim, sheet: str, array: str, load: str) -> float:
    """Return the bound of a promise; in a relation 1 for 100 %."""
    place = claim, Geometry.parse(array), workload(load)
    found = spec.load(sheet)
    if relation := found.relation(*place):
        return relation.percent / 100
    limit = found.limit(*place)
    assert limit
    return limit.bound


def iops_of(reads: int, depth: int) -> float:
    """IOPS of the article on the 910, by its table."""
    rw = "randread" if reads else "randwrite"
    found = spec.load(I910).published(Claim.STEADY_IOPS, Geometry.parse("raid0x4"), workload(f"{rw}_4k_t1xqd{depth}"))
    assert found
    return found.value


def little(iops: float, outstanding: int = 64) -> float:
    """Mean latency in ns."""
    return 1e9 * outstanding / iops


def growth_of(level: str, iops: Mapping[int, float], reads: float) -> scaling.Scaling:
    return scaling.fit({Geometry.parse(f"{level}x{width}"): exact(value) for width, value in iops.items()}, reads)


MIRRORS, PARITY = {2: 1.0, 4: 2.0, 6: 3.0, 8: 4.0}, {3: 1.0, 6: 1.58, 8: 1.97}
WEB, MAIL, FILES = {4: 1.0, 8: 2.0, 24: 4.1}, {4: 4e4, 8: 8e4, 24: 2e5}, {4: 5e4, 24: 3.25e5}
#: What an array of no use would have done: half of the drives are added for nothing.
HALF = {4: 1.0, 8: 1.2, 24: 1.5}
S, D = Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION
GROWTH = [
    ("A-05 to A-07", S480, "raid10", "randwrite_4k_qd8", MIRRORS, {2: 1.0, 4: 1.5, 6: 1.8, 8: 2.0}),
    ("A-17", S480, "raid10", "randread_4k_qd8", MIRRORS, {2: 1.0, 4: 1.5, 6: 1.8, 8: 2.0}),
    ("A-24, A-25", S800, "raid5", "randwrite_4k_qd1", PARITY, {3: 1.0, 6: 1.1, 8: 1.2}),
    ("D-01, D-02", S3700, "raid0", "webserver_qd32", WEB, HALF),
    ("D-06, D-08", S3700, "raid0", "exchange_qd32", MAIL, HALF),
    ("D-10, D-11", S3700, "raid0", "fileserver_qd32", FILES, HALF),
]


@pytest.mark.parametrize(
    ("sheet", "level", "load", "iops", "worse"), [row[1:] for row in GROWTH], ids=[row[0] for row in GROWTH]
)
def test_growth_of_the_sources_keeps_its_promises(
    sheet: str, level: str, load: str, iops: Mapping[int, float], worse: Mapping[int, float]
) -> None:
    reads = workload(load).read_fraction
    slope, deviation = (ratio(claim, sheet, f"{level}x{max(iops)}", load) for claim in (S, D))
    found, bad = growth_of(level, iops, reads), growth_of(level, worse, reads)
    assert found.slope.value >= slope
    assert found.deviation.value <= deviation
    assert bad.slope.value < slope
    assert bad.deviation.value > deviation


#: Statement, sheet, claim, array, workload, what the source has, and something that it excludes.
STATEMENTS: Sequence[tuple[str, str, Claim, str, str, float, float]] = [
    ("A-04", S480, Claim.TIMES_ONE_DRIVE, "raid10x2", "randwrite_4k_qd8", 1.0, 0.8),
    ("A-05", S480, Claim.TIMES_ONE_DRIVE, "raid10x4", "randwrite_4k_qd8", 2.0, 1.5),
    ("A-06", S480, Claim.TIMES_ONE_DRIVE, "raid10x6", "randwrite_4k_qd8", 3.0, 2.5),
    ("A-07", S480, Claim.TIMES_ONE_DRIVE, "raid10x8", "randwrite_4k_qd8", 4.0, 3.5),
    ("A-09", S480, Claim.QD_DEPENDENCE, "raid10x8", "randwrite_4k_qd1", 50_000 / 45_700, 1.5),
    ("A-12", S480, Claim.LATENCY_GROWTH_BETWEEN_WIDTHS, "raid10x8", "randwrite_4k_qd1", 1.0, 4.0),
    ("A-20, reads", S480, Claim.MEAN_LATENCY, "raid10x8", "randread_4k_qd8", little(2e5) / little(1.5e5), 1.1),
    ("A-20, 90 %", S480, Claim.MEAN_LATENCY, "raid10x8", "randrw90_4k_qd8", little(1.5e5) / little(1.1e5), 1.1),
    # 8 outstanding with 1.97 times the IOPS of 3.
    ("A-26", S800, Claim.LATENCY_GROWTH_BETWEEN_WIDTHS, "raid5x8", "randwrite_4k_qd1", (8 / 1.97) / 3, 8 / 3),
    ("A-35", S480, Claim.WRITE_SPREAD_BETWEEN_MEMBERS, "raid10x8", "randwrite_4k_qd8", 1.0, 1.5),
    ("A-37", S480, Claim.QD_LATENCY_KNEE, "drivex1", "randread_4k_qd1", 8, 4),
    ("D-05", S3700, Claim.QD_DEPENDENCE, "raid0x4", "exchange_qd1", 1.0, 2.0),
    ("D-11", S3700, Claim.QD_GAIN, "raid0x4", "fileserver_qd1", 2.0, 1.5),
    ("E-02", I910, Claim.QD_GAIN, "raid0x4", "randwrite_4k_t1xqd1", iops_of(0, 1024) / iops_of(0, 1), 0.5),
    *(
        (f"E-03, depth {depth}", I910, Claim.THROUGHPUT, "raid0x4", f"randwrite_4k_t1xqd{depth}",
         iops_of(0, depth) / iops_of(100, depth), 0.9)
        for depth in (1, 2, 4, 8)
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sheet", "claim", "array", "load", "stated", "excluded"),
    [row[1:] for row in STATEMENTS],
    ids=[row[0] for row in STATEMENTS],
)
def test_a_statement_keeps_its_promise_and_its_opposite_does_not(
    sheet: str, claim: Claim, array: str, load: str, stated: float, excluded: float
) -> None:
    bound = ratio(claim, sheet, array, load)
    assert keeps(claim.direction, stated, bound)
    assert not keeps(claim.direction, excluded, bound)


@pytest.mark.parametrize("curve", [intel_910.READS, intel_910.WRITES], ids=["E-01", "E-02"])
def test_the_knee_of_the_articles_table_is_its_authors(curve: WorkloadSet) -> None:
    series = curve.workloads
    table = {each: exact(iops_of(int(each.read_fraction), each.qd_per_drive)) for each in series}
    found = curves.knee(table, width=4).estimate.value
    assert found >= ratio(Claim.QD_KNEE, I910, "raid0x4", str(series[0]))


def test_what_the_authors_call_bad_is_bad() -> None:
    """STEC's drive that falls (C-02), and Intel's promises, which the article's card does not reach (E-04, E-05)."""
    fallen = 2_700 / 170
    assert fallen > ratio(Claim.FRESH_TO_STEADY, STEC, "drivex3", "randwrite_8k_qd8")
    for load, measured in (("read_256k_s2_qd1", 1.68e9), ("write_256k_qd1", 1.228e9)):
        assert measured < ratio(Claim.THROUGHPUT, "intel-910-promised", "raid0x4", load)
    # E-07: its writes are more than Intel promises.
    assert iops_of(0, 8) > ratio(Claim.STEADY_IOPS, "intel-910-promised", "raid0x4", "randwrite_4k_t1xqd8")


def test_all_published_loads_of_the_paper_are_judged_by_growth() -> None:
    sheet = spec.load(S480)
    assert all(sheet.limit(S, Geometry.parse("raid10x8"), each) for each in intel_s3500.PUBLISHED)
