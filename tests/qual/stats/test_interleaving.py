from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol_rules import InterleaveRule
from pytest_ssdqual.qual.stats import batch_means, group_sequential, interleaving, spread
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, student_t
from pytest_ssdqual.qual.stats.group_sequential import Question
from pytest_ssdqual.qual.stats.interleaving import Cell
from pytest_ssdqual.qual.stats.throughput import iops, throughput
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

PROTOCOL = protocol.load("interleaved")
assert PROTOCOL.interleave
RULE = PROTOCOL.interleave
READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
SURE = ConfidenceLevel(0.95)


def run(rates: list[int], workload: Workload = WRITES) -> Run:
    return replace(strategies.run(rates, workload=workload, rounds=1), window_s=float(len(rates)), ramp_s=0.0)


def cells(*rates: int, before: list[float] | None = None) -> list[Cell]:
    """Cells of a minute, each at one rate, which fio reported once."""
    shares: list[float | None] = [None] * len(rates) if before is None else [*before]
    runs = (replace(run([rate]), window_s=60.0, spell_length_s=10.0) for rate in rates)
    return [Cell(each, 0.0, share) for each, share in zip(runs, shares, strict=True)]


def test_looks_grow_to_the_limit() -> None:
    assert interleaving.looks(InterleaveRule(first=6, growth=1.2, rounds=14)) == (6, 7, 8, 10, 12, 14)
    assert interleaving.looks(InterleaveRule(first=5, growth=1.05, rounds=8)) == (5, 6, 7, 8)
    assert interleaving.looks(InterleaveRule(first=9, growth=2.0, rounds=9)) == (9,)


def test_all_looks_together_hold_at_the_confidence() -> None:
    rule = InterleaveRule(first=6, rounds=30)
    times = tuple(map(float, interleaving.looks(rule)))
    found = interleaving.level(rule, 0.95)
    assert found == group_sequential.nominal_level(times, 0.95) > 0.95
    # What only the later looks decide shares the error among fewer.
    assert 0.95 < interleaving.level(rule, 0.95, 20 * rule.cell_s) < found
    assert interleaving.level(rule, 0.95, 1e6) == 0.95


def test_scatter_is_pooled_over_workloads_and_relative() -> None:
    # 90, 100, 110 and ten times that: variances of 1 %² with two degrees of freedom each.
    assert interleaving.pooled([cells(90, 100, 110), cells(900, 1000, 1100)])[0] == pytest.approx(0.1)
    assert interleaving.pooled([cells(90, 100, 110), cells(50, 50, 50)])[0] == pytest.approx(0.1 / math.sqrt(2))
    assert interleaving.pooled([cells(100), []]) == (0, 0)


def normal(rng: random.Random, scatter: float, count: int = 8, mean: int = 10_000) -> list[Cell]:
    return cells(*(round(mean * rng.gauss(1, scatter)) for _ in range(count)))


def test_scatter_is_worth_the_more_the_more_alike_workloads_vary() -> None:
    rng = random.Random(4)  # noqa: S311
    alike = [normal(rng, 0.03, mean=mean) for mean in (1000, 5000, 20_000) * 4]
    unlike = [normal(rng, scatter) for scatter in (0.001, 0.01, 0.1) * 4]
    _, most = interleaving.pooled(alike)
    assert 15 < most <= interleaving.SHARED * 11 * 7
    assert interleaving.pooled(unlike)[1] < 2
    # One workload has no others, and cells that are all alike are no evidence of another scatter.
    assert interleaving.pooled(alike[:1])[1] == 0
    assert interleaving.pooled([cells(500, 500, 500)] * 3) == (0, interleaving.SHARED * 4)


def test_the_interval_has_the_moderated_variance() -> None:
    """Smyth 2004, equation 4, and as many degrees of freedom as both variances together."""
    rng = random.Random(5)  # noqa: S311
    all_of_them = [normal(rng, 0.03) for _ in range(6)]
    one = cells(*[9000, 11_000] * 4)
    found = interleaving.among(one, [one, *all_of_them], PROTOCOL, 3600.0)
    assert found.interleaved is not None
    prior, degrees = found.interleaved.scatter, found.interleaved.scatter_degrees
    own, whole = 1000 * math.sqrt(8 / 7), 7 + degrees
    scatter = math.sqrt((7 * own**2 + degrees * (1e4 * prior) ** 2) / whole)
    assert own > 1e4 * prior > 0
    half = student_t(interleaving.level(RULE, 0.95), int(whole)) * scatter / math.sqrt(8)
    figure = iops(found, SURE)
    assert figure.value == pytest.approx(1e4)
    assert figure.high - figure.value == pytest.approx(half)
    # So does every other rate of the same cells.
    bytes_per_s = throughput(found, SURE)
    assert bytes_per_s.high / bytes_per_s.value == pytest.approx(figure.high / figure.value)


def test_cells_that_happen_to_be_alike_do_not_hide_what_all_workloads_show() -> None:
    rng = random.Random(7)  # noqa: S311
    calm = cells(*[9999, 10_001] * 4)
    found = interleaving.among(calm, [calm, *(normal(rng, 0.03) for _ in range(11))], PROTOCOL, 3600.0)
    assert found.interleaved is not None
    figure = iops(found, SURE)
    pooled = 1e4 * found.interleaved.scatter / math.sqrt(8)
    whole = int(7 + found.interleaved.scatter_degrees)
    assert figure.high - figure.value == pytest.approx(student_t(interleaving.level(RULE, 0.95), whole) * pooled)


def test_a_share_has_the_larger_scatter() -> None:
    """How much shares of slow I/Os vary, rates do not show."""
    one = cells(*[9900, 10_100] * 4)
    found = interleaving.among(one, [one, *([cells(*[8000, 12_000] * 4)] * 5)], PROTOCOL, 3600.0)
    basis = batch_means.Basis.of(found, SURE)
    rough, smooth = [10.0, 190.0] * 4, [100.0] * 8
    assert basis.bounds(rough, [1e4] * 8).error == pytest.approx(0.009 * math.sqrt(1 / 7))
    assert basis.bounds(smooth, [1e4] * 8).error == pytest.approx(basis.interleaved.scatter * 0.01 / math.sqrt(8))  # type: ignore[union-attr]


def test_moderated_intervals_hold_and_are_narrower_than_with_the_own_degrees_of_freedom() -> None:
    """Of 720 intervals at 99.2 %, more than 15 that miss are less likely than one in a thousand (binomial)."""
    rng = random.Random(6)  # noqa: S311
    missed, narrower = 0, []
    for _ in range(60):
        scatters = [0.04 * rng.lognormvariate(0, 0.3) for _ in range(12)]
        of_all = [normal(rng, each, count=6) for each in scatters]
        for one in of_all:
            found = interleaving.among(one, of_all, PROTOCOL, 3600.0)
            assert found.interleaved is not None
            figure = iops(found, SURE)
            own = batch_means.Basis.of(
                replace(found, interleaved=replace(found.interleaved, scatter_degrees=0.0)), SURE
            )
            wider = own.bounds([each.run.iops for each in one], [1.0] * 6, are_rates=True)
            missed += not figure.low <= 10_000 <= figure.high
            narrower.append((figure.high - figure.low) / (wider.high - wider.low))
    assert missed <= 15
    assert fmean(narrower) < 0.9


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
def test_an_interval_is_never_narrowed(residuals: list[float]) -> None:
    assert 1 <= batch_means.widening(residuals) <= math.sqrt(19) + 1e-9


def test_neighbours_that_resemble_each_other_widen_an_interval() -> None:
    assert batch_means.widening([1, -1] * 4) == 1
    assert batch_means.widening([0.0] * 4) == 1
    # r = 3/4 of (1, 1, 1, 1) without its mean.
    assert batch_means.widening([1, 1, 1, 1]) == pytest.approx(math.sqrt(7))


def test_first_seconds_that_differ_are_seen() -> None:
    rng = random.Random(1)  # noqa: S311

    def heads(factor: float) -> list[Cell]:
        def rate(second: int) -> int:
            return round((factor if second < 10 else 1.0) * 1000 * rng.uniform(0.98, 1.02))

        return [interleaving.cell(run([rate(each) for each in range(60)]), None) for _ in range(8)]

    assert "times as fast as the rest, in 8 cells" in interleaving.head_effect(heads(1.3))
    assert interleaving.head_effect(heads(0.7))
    assert not interleaving.head_effect(heads(1.0))
    # Sure, but of no consequence: half a per cent of the cell.
    assert not interleaving.head_effect(heads(1.03))
    assert not interleaving.head_effect(heads(1.3)[:1])
    # Without a rest there is nothing to compare.
    assert interleaving.cell(run([1000] * 10), None).head is None


def test_cells_after_writes_that_are_slower_are_seen() -> None:
    rng = random.Random(2)  # noqa: S311

    def after(effect: float) -> list[list[Cell]]:
        found = []
        for level in (1000, 3000, 9000):
            shares = [rng.choice((0.0, 0.3, 1.0)) for _ in range(8)]
            rates = [round(level * (1 - effect * share) * rng.uniform(0.99, 1.01)) for share in shares]
            found.append(cells(*rates, before=shares))
        return found

    assert "% slower" in interleaving.carried_over(after(0.1))
    assert "% faster" in interleaving.carried_over(after(-0.1))
    assert not interleaving.carried_over(after(0.0))
    assert not interleaving.carried_over([cells(1000, 1000), []])
    # Without different neighbours nothing can be said.
    assert not interleaving.carried_over([cells(*[1000, 900] * 4, before=[1.0] * 8)])


def test_chance_alone_hardly_ever_looks_like_dependence() -> None:
    """At 99.9 % sure, more than 4 of 400 are less likely than one in a thousand (binomial)."""
    rng = random.Random(3)  # noqa: S311
    found = 0
    for _ in range(400):
        shares = [rng.choice((0.0, 0.3, 1.0)) for _ in range(8)]
        rates = [round(10_000 * rng.gauss(1, 0.05)) for _ in shares]
        found += bool(interleaving.carried_over([cells(*rates, before=shares)]))
    assert found <= 4


def test_a_measurement_without_a_pause_has_to_agree() -> None:
    among = interleaving.among(cells(*[990, 1010] * 4), [cells(*[990, 1010] * 4)], PROTOCOL, 3600.0)

    def without_a_pause(rate: int) -> str:
        alone = strategies.run([rate - 1, rate + 1] * 30, workload=WRITES, rounds=6)
        return interleaving.disagreement(Measured((alone,)), among, SURE)

    assert not without_a_pause(1000)
    # Surely different, but by less than 3 %.
    assert not without_a_pause(980)
    assert "in rounds and" in without_a_pause(700)
    assert "in rounds and" in without_a_pause(1500)
    # A series that has no interval cannot confirm anything.
    unsettled = strategies.run([1000] * 60, workload=WRITES, rounds=1)
    assert "cannot be compared" in interleaving.disagreement(Measured((unsettled,)), among, SURE)


def test_spells_are_those_of_measurements_without_a_pause() -> None:
    """A cell of a minute would have spells of two seconds, and their usual maxima are lower."""
    found = interleaving.cell(run([1000] * 60), None).run
    assert (found.spell_s, len(found.spells)) == (10, 6)
    among = interleaving.among([Cell(found, None, None)] * 40, [], PROTOCOL, 3600.0)
    assert spread.SpellMaxima.of(among, SURE).seconds == 10
    extremes = batch_means.Basis.of_extremes(among, SURE).level
    assert extremes < batch_means.Basis.of(among, SURE).level
    assert among.observed_s == 2400


def test_a_plateau_is_excluded_by_the_time_since_the_first_round() -> None:
    """Twice the limit is surely above it, and believed after the 35 minutes of a plateau only."""
    one = cells(*[1999, 2001] * 3)
    limit = Limit(Direction.AT_LEAST, 1000.0, Unit.IOPS, "test")

    def is_done(span_s: float, loaded_s: float) -> bool:
        found = interleaving.among(one, [one], PROTOCOL, span_s, loaded_s)
        question = Question({Claim.STEADY_IOPS: limit})
        return bool(group_sequential.decide(found, question, PROTOCOL.sequential, PROTOCOL.verdict))

    assert [is_done(1000, 0), is_done(1000, 600), is_done(1000, 1200), is_done(2200, 0)] == [False, False, True, True]


def test_slowest_ios_are_observed_in_all_cells_together() -> None:
    def sentence(count: int) -> str:
        one = cells(*[999, 1001] * (count // 2))
        found = interleaving.among(one, [one], PROTOCOL, 9000.0)
        question = Question(precision_percent=5.0, is_observed=True)
        return group_sequential.decide(found, question, PROTOCOL.sequential, PROTOCOL.verdict).sentence

    assert "slowest I/Os are observed" in sentence(28)
    assert "slowest I/Os are observed" not in sentence(30)


def test_only_protocols_with_turns_have_cells() -> None:
    with pytest.raises(ValueError, match="do not take turns"):
        interleaving.among(cells(1000), [], protocol.load("sequential"), 60.0)
