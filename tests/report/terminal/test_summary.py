from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.builders.evidence import claimed
from support.builders.report_page import observed
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding, Part
from pytest_ssdqual.report.terminal.summary import MOST_ROWS, table
from pytest_ssdqual.report.view.tables import TextLine

READ, MIXED = Workload("randread", "4k", 8), Workload("randrw", "128k", 16, 70)


def text(lines: Sequence[TextLine]) -> str:
    return "\n".join(line.text for line in lines)


@pytest.fixture(scope="module")
def acceptance() -> list[Evidence]:
    """A small run with everything in it, in an order that no table would have."""
    found = []
    for workload, ns in ((MIXED, 1_890_000), (READ, 402_000)):
        for width in (8, 10, 3):
            array = f"raid5x{width}"
            slow = (workload, width) == (READ, 8)
            found.append(claimed(Claim.P99_LATENCY, array, workload, value=812_000 if slow else ns, bound=ns / 0.8))
            iops = 41_300 * width
            low, high = iops - 400, iops + 400
            bound = iops + 200 if (workload, width) == (MIXED, 3) else iops * 0.9
            found.append(claimed(Claim.STEADY_IOPS, array, workload, value=iops, low=low, high=high, bound=bound))
        sweep = "raid5x3 raid5x8 raid5x10"
        found.append(claimed(Claim.SCALING_SLOPE, sweep, workload, value=0.98, bound=0.9))
        found.append(claimed(Claim.SCALING_DEVIATION, sweep, workload, value=3.2, bound=10))
    return found


def test_golden(acceptance: list[Evidence]) -> None:
    """What is not kept has all its figures; what passed is one line."""
    golden.same("terminal_tables.txt", text(table(acceptance, 100)).splitlines())


def test_many_that_are_not_kept_are_a_grid() -> None:
    broken = [claimed(Claim.STEADY_IOPS, f"raid5x{width}", value=100 * width, bound=9_000) for width in range(3, 12)]
    lines = [line for line in table(broken, 120) if "raid5x" not in line.text]
    (row,) = [line for line in lines if line.text.startswith("  randread")]
    assert row.text.split()[1:] == [*(f"{100 * width}!" for width in range(3, 10)), "1.00k!", "1.10k!", "-96.7", "%"]
    assert row.markup == ("red",)


def test_colours(acceptance: list[Evidence]) -> None:
    looks = {line.text.split()[0]: line.markup for line in reversed(table(acceptance)) if line.text}
    assert looks["FAIL:"] == ("red", "bold")
    assert looks["INCONCLUSIVE:"] == ("yellow", "bold")
    assert looks["passed:"] == ("green",)


def test_nothing_judged_is_nothing_shown() -> None:
    assert table([], 80, 1) == []


def test_quiet_shows_what_did_not_pass_and_the_sum(acceptance: list[Evidence]) -> None:
    golden.same("terminal_tables.txt", text(table(acceptance, 80, -1)).splitlines())


def test_verbose_shows_every_claim_in_full(acceptance: list[Evidence]) -> None:
    golden.same("terminal_tables.txt", text(table(acceptance, 120, 1)).splitlines())


def test_claims_of_a_newer_version_come_last() -> None:
    newer = replace(claimed(), claim="a_new_claim")
    titles = [line.text.split("  ")[0] for line in table([newer, claimed()]) if line.markup == ("bold",)]
    assert titles == ["p99 latency", "a new claim"]


@pytest.mark.parametrize(
    ("iops", "shown"),
    [(812, "812"), (999.4, "999"), (999.6, "1.00k"), (9412, "9.41k"), (41_300, "41.3k"), (999_600, "1.00M")],
)
def test_iops_in_a_cell(iops: float, shown: str) -> None:
    both = [observed(claimed(Claim.STEADY_IOPS, f"raid5x{width}", value=iops, bound=1)) for width in (3, 4)]
    assert [row.text.split()[1:3] for row in table(both) if row.text.startswith("  randread")] == [[shown, shown]]


WORKLOADS = [Workload(rw, bs, depth) for rw in ("randread", "randwrite") for bs in ("4k", "128k") for depth in (1, 32)]


@example(
    data=[(Claim.STEADY_IOPS, "raid5x3 raid5x24", Workload("randwrite", "128k", 32), 909090909.0)],
    width=72,
    verbosity=1,
)
@given(
    data=st.lists(
        st.tuples(
            st.sampled_from(Claim),
            st.sampled_from(["raid5x3", "raid5x24", "raid6x4", "drivex1", "raid5x3 raid5x24", "raid10x4 raid10x24"]),
            st.sampled_from(WORKLOADS),
            st.floats(1, 1e9),
        ),
        max_size=12,
    ),
    width=st.integers(72, 200),
    verbosity=st.integers(-1, 1),
)
def test_no_line_is_too_long_and_no_failure_is_missing(
    data: list[tuple[Claim, str, Workload, float]], width: int, verbosity: int
) -> None:
    evidence = [
        claimed(claim, array, workload, value=value, low=value * 0.9, high=value * 1.1, bound=50_000)
        for claim, array, workload, value in data
    ]
    lines = table(evidence, width, verbosity)
    assert max((len(line.text) for line in lines), default=0) <= width
    not_passed = [each for each in evidence if each.outcome is not Finding.PASS]
    if verbosity > 0 or len(not_passed) <= MOST_ROWS:
        coloured = [line.text for line in lines if line.markup in (("red",), ("yellow",))]
        assert sum(" raid" in row or " drive" in row for row in coloured) >= len(not_passed)


def test_observations_are_in_grids_without_limit_and_margin() -> None:
    three = claimed(Claim.STEADY_IOPS, "raid5x3", value=900, bound=800)
    four, five = (observed(claimed(Claim.STEADY_IOPS, f"raid5x{n}", value=300 * n, bound=1)) for n in (4, 5))
    lines = [*table([three, five, four]), *table([observed(claimed())], 120, 1)]
    golden.same("terminal_tables.txt", text(lines).splitlines())


def test_widths_come_in_their_order() -> None:
    first = observed(claimed(Claim.STEADY_IOPS, "raid0x24", READ, value=9, bound=1))
    more = [observed(claimed(Claim.STEADY_IOPS, f"raid0x{n}", MIXED, value=9, bound=1)) for n in (8, 4)]
    assert table([first, *more])[0].text.split()[-3:] == ["x4", "x8", "x24"]


def test_degraded_arrays_have_grids_of_their_own() -> None:
    states = ("", "-1failed", "-2failed")
    arrays = [f"raid6x{n}{state}" for state in states for n in (4, 5)]
    found = [observed(claimed(Claim.STEADY_IOPS, array, value=9, bound=1)) for array in arrays]
    titles = [line.text.split("  ")[0] for line in table(found) if "·" in line.text]
    assert titles == [f"steady IOPS · raid6{state}" for state in states]


def test_a_reading_is_called_one() -> None:
    read = replace(claimed(low=805_000, high=818_000), is_reading=True)
    golden.same("terminal_tables.txt", text(table([read], 120)).splitlines())


def test_doubts_about_a_sweep_are_printed_once() -> None:
    remark = (
        "raid0x8 does 1.20 × of what raid0x4 does per effective drive: better than linear, so the baseline is doubtful"
    )
    both = [
        replace(claimed(claim, "raid0x4 raid0x8", value=1, bound=1), about=About.SWEEP, remarks=(remark,))
        for claim in (Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION)
    ]
    lines = [line for line in table(both, 80) if line.markup == ("yellow",)]
    assert " ".join(line.text.strip() for line in lines) == remark
    assert max(len(line.text) for line in lines) <= 80


def test_every_kind_of_table_is_there() -> None:
    side = replace(
        claimed(Claim.STEADY_IOPS, "drivex2", value=300, bound=240), worst="S2",
        members=tuple(Part(f"S{n}", {"value": 300}, Finding.PASS) for n in (1, 2)),
        published=Published(290, Unit.IOPS, "sheet"),
    )  # fmt: skip
    cell = replace(side, about=About.LOOP, group="snia-iops", workloads=("randwrite_4k_t4xqd32",))
    points = tuple(Part(f"randread_4k_qd{n}", {"outstanding": n, "iops": 300}) for n in (1, 2))
    curve = replace(claimed(Claim.QD_GAIN, value=1, bound=1), about=About.CURVE, group="depths", points=points)
    fresh = replace(claimed(Claim.FRESH_IOPS, value=9, bound=1), about=About.SATURATION)
    golden.same("terminal_tables.txt", text(table([side, cell, curve, fresh], 80)).splitlines())
