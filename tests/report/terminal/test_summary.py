from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding, Part
from pytest_ssdqual.report.terminal.summary import table
from pytest_ssdqual.report.view.tables import TextLine

Claimed = Callable[..., Evidence]

READ, MIXED = Workload("randread", "4k", 8), Workload("randrw", "128k", 16, 70)


def text(lines: Sequence[TextLine]) -> str:
    return "\n".join(line.text for line in lines)


@pytest.fixture(scope="module")
def acceptance(claimed: Claimed) -> list[Evidence]:
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


GOLDEN = """\
FAIL: 1 of 16
p99 latency                measured  95 % interval     limit   margin
  raid5x8 randread_4k_qd8    812 µs     812…812 µs  ≤ 502 µs  -61.6 %

INCONCLUSIVE: 1 of 16
steady IOPS                   measured    95 % interval      limit  margin
  raid5x3 randrw70_128k_qd16   123,900  123,500…124,300  ≥ 124,100  -0.2 %

steady IOPS · raid5     x3      x8     x10   margin
  limit                     ≥ 297k  ≥ 372k
  randread_4k_qd8     124k    330k    413k  +11.1 %
  randrw70_128k_qd16     ?    330k    413k   -0.2 %

p99 latency · raid5        x3       x8      x10      limit   margin
  randread_4k_qd8      402 µs     FAIL   402 µs   ≤ 502 µs  -61.6 %
  randrw70_128k_qd16  1.89 ms  1.89 ms  1.89 ms  ≤ 2.36 ms  +20.0 %

raid5x3…x10            scaling    scaling
                         slope  deviation  margin
  limit               ≥ 0.90 ×   ≤ 10.0 %
  randread_4k_qd8       0.98 ×      3.2 %  +8.9 %
  randrw70_128k_qd16    0.98 ×      3.2 %  +8.9 %

every limit and interval: -v, or the run folder
16 promises: 14 pass, 1 fail, 1 inconclusive
least margin of what passed: +8.9 %, scaling slope
  of raid5x3…x10 randread_4k_qd8"""


def test_golden(acceptance: list[Evidence]) -> None:
    assert text(table(acceptance, 80)) == GOLDEN


def test_colours(acceptance: list[Evidence]) -> None:
    looks = {line.text.split()[0]: line.markup for line in reversed(table(acceptance)) if line.text}
    assert looks["FAIL:"] == ("red", "bold")
    assert looks["INCONCLUSIVE:"] == ("yellow", "bold")
    assert looks["16"] == ("red", "bold")
    marked = [line for line in table(acceptance) if "  ? " in line.text]
    assert [line.markup for line in marked] == [("yellow",)]
    assert [line.markup for line in table(acceptance) if line.text.startswith("  randrw70_128k_qd16  1.89")] == [()]


def test_all_green(claimed: Claimed) -> None:
    (line,) = [line for line in table([claimed(value=1000)]) if line.text.startswith("1 promise:")]
    assert line == TextLine("1 promise: 1 pass", ("green", "bold"))


def test_nothing_judged_is_nothing_shown() -> None:
    assert table([], 80, 1) == []


def test_quiet_shows_what_did_not_pass_and_the_sum(acceptance: list[Evidence]) -> None:
    shown = text(table(acceptance, 80, -1))
    assert "812 µs" in shown
    assert "·" not in shown
    assert "-v" not in shown
    assert "16 promises: 14 pass" in shown


def test_verbose_shows_every_claim_in_full(acceptance: list[Evidence]) -> None:
    lines = table(acceptance, 100, 1)
    assert "PASS: 14 of 16" in text(lines)
    rows = [" ".join(line.text.split()) for line in lines if line.text.startswith("  raid5x")]
    assert len(rows) == 16
    assert "raid5x10 randread_4k_qd8 413,000 412,600…413,400 ≥ 371,700 +11.1 %" in rows
    assert "·" not in text(lines)


def test_a_rehearsal_says_so(claimed: Claimed) -> None:
    quick = table([claimed(value=1000, acceptance=False), claimed(value=1000)])
    assert quick[-1] == TextLine("not for acceptance: protocol quick", ("yellow", "bold"))
    assert "acceptance" not in text(table([claimed(value=1000)]))


def test_single_drives_have_their_claims_side_by_side(claimed: Claimed) -> None:
    each = [
        claimed(Claim.P99_LATENCY, "drivex1", value=402_000),
        claimed(Claim.STEADY_IOPS, "drivex1", value=9412, bound=9000),
        claimed(Claim.LATENCY_SPREAD_OVER_TIME, "drivex1", value=1.2, bound=2),
    ]
    assert (
        text(table(each)[:4])
        == """\
drivex1             steady       p99  latency spread
                      IOPS   latency       over time  margin
  limit            ≥ 9.00k  ≤ 500 µs        ≤ 2.00 ×
  randread_4k_qd8    9.41k    402 µs          1.20 ×  +4.6 %"""
    )


def test_claims_made_twice_are_both_shown(claimed: Claimed) -> None:
    twice = [claimed(arrays=array, value=value) for array in ("raid5x3", "raid5x4") for value in (402_000, 300_000)]
    rows = [line.text for line in table(twice) if line.text.startswith("  randread")]
    assert [row.split()[1:5] for row in rows] == [["402", "µs", "402", "µs"], ["300", "µs", "300", "µs"]]


def test_a_grid_of_nothing_that_passed_is_left_out(claimed: Claimed) -> None:
    assert "·" not in text(table([claimed(arrays="raid5x3"), claimed(arrays="raid5x4")]))


def test_claims_of_a_newer_version_come_last(claimed: Claimed) -> None:
    newer = replace(claimed(), claim="a_new_claim")
    titles = [line.text.split("  ")[0] for line in table([newer, claimed()]) if line.markup == ("bold",)]
    assert titles == ["p99 latency", "a new claim"]


@pytest.mark.parametrize(
    ("iops", "shown"),
    [(812, "812"), (999.4, "999"), (999.6, "1.00k"), (9412, "9.41k"), (41_300, "41.3k"), (999_600, "1.00M")],
)
def test_iops_in_a_cell(claimed: Claimed, iops: float, shown: str) -> None:
    both = [claimed(Claim.STEADY_IOPS, f"raid5x{width}", value=iops, bound=1) for width in (3, 4)]
    assert [row.text.split()[1:3] for row in table(both) if row.text.startswith("  randread")] == [[shown, shown]]


WORKLOADS = [Workload(rw, bs, depth) for rw in ("randread", "randwrite") for bs in ("4k", "128k") for depth in (1, 32)]


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
    claimed: Claimed, data: list[tuple[Claim, str, Workload, float]], width: int, verbosity: int
) -> None:
    evidence = [claimed(*what, value=value, low=value * 0.9, high=value * 1.1, bound=50_000) for *what, value in data]
    lines = table(evidence, width, verbosity)
    assert max((len(line.text) for line in lines), default=0) <= width
    coloured = [line.text for line in lines if line.markup in (("red",), ("yellow",))]
    full = [row for row in coloured if row.startswith(("  raid", "  drive"))]
    not_passed = [each for each in evidence if each.outcome is not Finding.PASS]
    assert len(full) == len(not_passed)


def test_several_hundred_claims_stay_readable(claimed: Claimed) -> None:
    """At 80 columns all widths have room beside each other."""
    sizes, patterns = ("4k", "8k", "16k", "128k"), ("randread", "randwrite", "read", "write")
    workloads = [Workload(rw, bs, 8) for rw in patterns for bs in sizes]
    shapes = (
        (Claim.STEADY_IOPS, 123_456, 1),
        (Claim.P99_LATENCY, 1_420_000, 10**9),
        (Claim.LATENCY_SPREAD_OVER_TIME, 1.5, 9),
    )
    evidence = [
        claimed(claim, f"raid5x{width}", workload, value=value, bound=bound)
        for claim, value, bound in shapes
        for width in range(3, 9)
        for workload in workloads
    ]
    lines = table(evidence, 80)
    assert len(evidence) == 288
    # A title, the widths, the workloads and a blank for each claim; then the sum.
    assert len(lines) == 3 * (2 + 16 + 1) + 4


def observed(evidence: Evidence) -> Evidence:
    return replace(evidence, outcome=Finding.OBSERVED, limit=None, margin_percent=None, source="")


def test_what_is_only_observed_is_in_the_grids_without_limit_and_margin(claimed: Claimed) -> None:
    three = claimed(Claim.STEADY_IOPS, "raid5x3", value=900, bound=800)
    four, five = (observed(claimed(Claim.STEADY_IOPS, f"raid5x{n}", value=300 * n, bound=1)) for n in (4, 5))
    assert (
        text(table([three, five, four])[:4])
        == """\
steady IOPS · raid5   x3     x4     x5   margin
  limit            ≥ 800
  randread_4k_qd8    900  1.20k  1.50k  +12.5 %
"""
    )
    lines = [line.text for line in table([three, four, five])]
    assert "1 promise: 1 pass" in lines
    assert "2 figures measured without a promised limit" in lines


def test_nothing_but_observations_has_neither_margins_nor_claims(claimed: Claimed) -> None:
    shown = text(table([observed(claimed(Claim.STEADY_IOPS, f"raid5x{n}", value=300 * n, bound=1)) for n in (3, 4)]))
    assert "margin" not in shown
    assert "limit" not in shown.split("every limit")[0]
    assert "claim" not in shown
    assert "2 figures measured without a promised limit" in shown
    verbose = text(table([observed(claimed())], 80, 1))
    assert "OBSERVED: 1 of 1" in verbose
    assert [line.split() for line in verbose.splitlines() if line.startswith("  raid5x4")] == [
        ["raid5x4", "randread_4k_qd8", "812", "µs", "812…812", "µs"]
    ]


def test_what_two_suites_found_alike_is_shown_once_and_counted_twice(claimed: Claimed) -> None:
    both = [claimed(arrays=array, value=402_000) for array in ("raid5x3", "raid5x4") for _ in range(2)]
    lines = table(both)
    assert len([line for line in lines if line.text.startswith("  randread")]) == 1
    assert "4 promises: 4 pass" in text(lines)


def test_widths_come_in_their_order_whatever_was_measured_on_them(claimed: Claimed) -> None:
    first = claimed(Claim.STEADY_IOPS, "raid0x24", READ, value=9, bound=1)
    more = [claimed(Claim.STEADY_IOPS, f"raid0x{n}", MIXED, value=9, bound=1) for n in (8, 4)]
    assert table([first, *more])[1].text.split() == ["x4", "x8", "x24", "margin"]


def test_degraded_arrays_have_grids_of_their_own(claimed: Claimed) -> None:
    states = ("", "-1failed", "-2failed")
    found = [claimed(Claim.STEADY_IOPS, f"raid6x{n}{state}", value=9, bound=1) for state in states for n in (4, 5)]
    titles = [line.text.split("  ")[0] for line in table(found) if "·" in line.text]
    assert titles == [f"steady IOPS · raid6{state} · ≥ 1 IOPS" for state in states]


def test_the_head_says_of_which_confidence_the_intervals_are(claimed: Claimed) -> None:
    def head(*confidences: float) -> str:
        return table([replace(claimed(), confidence=each) for each in confidences], 120)[1].text

    assert "  95 % interval  " in head(0.95, 0.95)
    assert "  99.9 % interval  " in head(0.999)
    assert "%" not in head(0.95, 0.99)
    assert "  interval  " in head(0.95, 0.99)


def test_a_reading_is_called_one(claimed: Claimed) -> None:
    read = replace(claimed(low=805_000, high=818_000), is_reading=True)
    assert "  805…818 µs read  " in text(table([read], 120))
    assert "95 %" not in text(table([read], 120))


def test_what_speaks_against_the_evidence_of_a_sweep_is_told_once(claimed: Claimed) -> None:
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


def test_every_kind_of_table_is_there(claimed: Claimed) -> None:
    side = replace(
        claimed(Claim.STEADY_IOPS, "drivex2", value=300, bound=240), worst="S2",
        members=tuple(Part(f"S{n}", {"value": 300}, Finding.PASS) for n in (1, 2)),
        published=Published(290, Unit.IOPS, "sheet"),
    )  # fmt: skip
    cell = replace(side, about=About.LOOP, group="snia-iops", workloads=("randwrite_4k_t4xqd32",))
    points = tuple(Part(f"randread_4k_qd{n}", {"outstanding": n, "iops": 300}) for n in (1, 2))
    curve = replace(claimed(Claim.QD_GAIN, value=1, bound=1), about=About.CURVE, group="depths", points=points)
    fresh = replace(claimed(Claim.FRESH_IOPS, value=9, bound=1), about=About.SATURATION)
    titles = [line.text for line in table([side, cell, curve, fresh], 80) if line.markup == ("bold",)]
    for start in ("steady IOPS · drivex2", "steady IOPS · snia-iops", "depths · raid5x4", "from the purged", "raid5x4"):
        assert any(title.startswith(start) for title in titles), start
    assert any("ours/published" in title for title in titles)
    assert not [title for title in titles if title.startswith("steady IOPS · drivex2") and "t4xqd32" in title]


def test_claims_without_a_finding_are_one_sentence() -> None:
    """And those with one have their grid, in which the drive is marked."""
    sound: dict[str, Sequence[str]] = {"SSDQ0001": (), "SSDQ0002": ()}
    written, healthy = (
        health.counted(claim, "drivex2", "load", findings, sentence="", remarks=(), protocol="quick", acceptance=True)
        for claim, findings in (("read_back", sound | {"SSDQ0002": ("wrong",)}), ("drive_health", sound))
    )
    lines = text(table([written, healthy]))
    assert "without a finding: drive health\n" in f"{lines}\n"
    assert "drive health ·" not in lines
    assert "read back · drivex2" in lines
    assert "1!" in lines
