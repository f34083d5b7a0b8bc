from __future__ import annotations

from dataclasses import replace

from support.builders.evidence import claimed

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.promises import MOST_ROWS, observed, promised


def many(arrays: str, number: int, value: float = 812_000) -> list[Judged]:
    depths = range(1, number + 1)
    return [
        Judged.of(f"{arrays} {qd}", claimed(arrays=arrays, workload=Workload("randread", "4k", qd), value=value))
        for qd in depths
    ]


def test_each_promise_has_a_row_and_the_worst_come_first() -> None:
    undecided = replace(claimed(), outcome=Finding.INCONCLUSIVE)
    judged = [*many("raid5x4", 2, value=1000), Judged.of("u", undecided), *many("raid6x5", 1)]
    grid = promised(judged, MOST_ROWS)
    assert grid.caption == "Promises: 4"
    assert [row[-1] for row in grid.rows] == [Finding.FAIL, Finding.INCONCLUSIVE, Finding.PASS, Finding.PASS]
    assert grid.rows[0] == (
        "p99 latency", "raid6x5", "randread_4k_qd1", "812 µs", "95 % CI 812…812 µs", "≤ 500 µs", "-62.4 %",
        Finding.FAIL,
    )  # fmt: skip


def test_thousands_are_a_row_for_each_claim_and_level() -> None:
    kept = many("raid5x4", MOST_ROWS, value=1000)
    broken = many("raid5x3", 2)
    other = many("raid6x5", 1, value=499_000)
    grid = promised([*other, *kept, *broken], MOST_ROWS)
    assert [row[:3] for row in grid.rows] == [
        ("p99 latency", "raid5", str(MOST_ROWS + 2)),
        ("p99 latency", "raid6", "1"),
    ]
    assert [row[-2:] for row in grid.rows] == [("-62.4 %", Finding.FAIL), ("+0.2 %", Finding.PASS)]


def test_figures_without_a_promise_are_a_table_of_their_own() -> None:
    figure = replace(claimed(), outcome=Finding.OBSERVED, limit=None, margin_percent=None)
    judged = [Judged.of("a", figure), *many("raid6x5", 1)]
    assert [row[:4] for row in observed(judged).rows] == [("p99 latency", "raid5x4", "randread_4k_qd8", "812 µs")]
    assert len(promised(judged, MOST_ROWS).rows) == 1
    several = [Judged.of("a", replace(figure, value=float(1000 * n))) for n in range(1, MOST_ROWS + 2)]
    grid = observed(several)
    assert len(grid.rows) == MOST_ROWS
    assert "records.jsonl" in grid.note
