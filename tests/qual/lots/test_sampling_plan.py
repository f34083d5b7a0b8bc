from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.lots import sampling_plan
from pytest_ssdqual.qual.lots.sampling_plan import (
    ByAttributes,
    ByVariables,
    acceptability,
    as_variables,
    for_limiting_quality,
    indexed_by_aql,
    through_two_points,
    variables_through_two_points,
)

fractions = st.floats(0.001, 0.6)


@st.composite
def by_attributes(draw: st.DrawFn) -> ByAttributes:
    sample = draw(st.integers(2, 120))
    lot = draw(st.none() | st.integers(sample, 600))
    return ByAttributes(sample, draw(st.integers(0, min(10, sample - 1))), "a contract", lot)


by_variables = st.builds(ByVariables, st.integers(3, 120), st.floats(0.3, 3), st.just("a contract"))


# ---- The operating characteristic -----------------------------------------------------------------------------------


@given(by_attributes() | by_variables, fractions, fractions)
def test_a_worse_lot_is_never_accepted_more_often(plan: ByAttributes | ByVariables, one: float, other: float) -> None:
    better, worse = sorted((one, other))
    assert 0 <= plan.acceptance(worse) <= plan.acceptance(better) + 1e-12 <= 1 + 1e-12


@given(by_attributes() | by_variables, st.floats(0.01, 0.99))
def test_the_quality_is_where_the_curve_has_that_value(plan: ByAttributes | ByVariables, acceptance: float) -> None:
    assert math.isclose(plan.acceptance(plan.quality(acceptance)), acceptance, abs_tol=1e-6)


@given(by_attributes(), st.data())
def test_a_lot_of_known_size_against_counting_it_out(plan: ByAttributes, data: st.DataObject) -> None:
    from scipy.stats import hypergeom

    lot = plan.lot or plan.sample + 10
    plan = replace(plan, lot=lot)
    bad = data.draw(st.integers(0, lot))
    assert math.isclose(plan.acceptance_of_lot(bad), hypergeom.cdf(plan.accept, lot, bad, plan.sample), abs_tol=1e-9)
    limiting = round(plan.limiting_quality() * lot)
    assert plan.acceptance_of_lot(limiting) <= 0.1 < plan.acceptance_of_lot(limiting - 1)


@given(st.integers(3, 60), st.floats(-12, 60), st.floats(0.01, 0.99))
def test_the_quality_beyond_the_bracket_is_its_end(sample: int, k: float, acceptance: float) -> None:
    """The k of even drives far inside their limit is that of no plan: Q = 8 and more."""
    plan = ByVariables(sample, k, "a contract")
    quality = plan.quality(acceptance)
    assert 0 < quality < 1
    if quality <= 1e-9:
        assert plan.acceptance(quality) <= acceptance
    if quality >= 1 - 1e-9:
        assert plan.acceptance(quality) >= acceptance


def test_a_lot_without_end_is_a_process() -> None:
    plan = ByAttributes(50, 1, "a contract", lot=10**7)
    for percent in (1, 5, 10):
        assert math.isclose(plan.acceptance_of_lot(percent * 10**5), plan.acceptance(percent / 100), rel_tol=1e-4)
    assert math.isclose(plan.limiting_quality(), plan.quality(0.1), rel_tol=1e-4)
    # Of a small lot the sample is a large part, and finds more.
    assert replace(plan, lot=100).limiting_quality() < plan.quality(0.1)


def test_who_inspects_everything_misses_nothing() -> None:
    plan = indexed_by_aql(8, "II", 1.0)
    assert (plan.sample, plan.accept) == (8, 0)
    assert plan.limiting_quality() == 1 / 8


def test_plans_do_what_their_curves_say() -> None:
    """Ten thousand lots drawn: normally distributed margins, 3 % of them below zero."""
    import numpy as np

    random = np.random.default_rng(1)
    margins = random.normal(1.880793608, 1, (10_000, 24))
    by_variables = as_variables(indexed_by_aql(500, "II", 1.0))
    accepted = np.mean(margins.mean(axis=1) / margins.std(axis=1, ddof=1) >= by_variables.k)
    assert abs(accepted - by_variables.acceptance(0.03)) < 0.015  # three standard errors
    by_attributes = ByAttributes(24, 1, "a contract", lot=200)
    lots = random.hypergeometric(6, 194, 24, 10_000)
    assert abs(np.mean(lots <= 1) - by_attributes.acceptance_of_lot(6)) < 0.015
    accepted = np.mean((margins < 0).sum(axis=1) <= 1)
    assert abs(accepted - by_attributes.acceptance(0.03)) < 0.015


# ---- Published plans ------------------------------------------------------------------------------------------------


def test_code_letter_h_at_one_per_cent() -> None:
    """ISO 2859-1:1999, table 10-H: AQL 1.0 is accepted in 95 % of all cases at 0.715 % and in 10 % at 7.56 %."""
    plan = indexed_by_aql(500, "II", 1.0)
    assert str(plan) == "ISO 2859-1 level II, AQL 1 %, code letter H; n = 50, Ac 1"
    assert round(100 * plan.quality(0.95), 3) == 0.715
    assert round(100 * plan.quality(0.10), 2) == 7.56


def test_what_the_aql_does_not_protect_from() -> None:
    plan = indexed_by_aql(90, "II", 1.0)
    assert (plan.sample, plan.accept) == (13, 0)
    assert (plan.acceptance(0.05), plan.acceptance(0.10)) == pytest.approx((0.51, 0.25), abs=0.005)


def test_plans_without_a_failure() -> None:
    """n = ln(1 - C)/ln R: 95/90, 95/95, 90/90, 95/80."""
    asked = [(10, 0.05), (5, 0.05), (10, 0.10), (20, 0.05)]
    assert [for_limiting_quality(ltpd, risk=risk).sample for ltpd, risk in asked] == [29, 59, 22, 14]


@pytest.mark.parametrize(("ltpd", "samples"), [(10, [8, 9, 15, 21, 25, 28]), (20, [6, 7, 10, 12, 13, 14])])
def test_plans_without_a_failure_for_small_lots(ltpd: float, samples: list[int]) -> None:
    lots = (8, 12, 24, 48, 100, 500)
    assert [for_limiting_quality(ltpd, lot, risk=0.05).sample for lot in lots] == samples
    for lot, sample in zip(lots, samples, strict=True):  # one drive fewer would not do
        bad = math.ceil(lot * ltpd / 100)
        assert ByAttributes(sample - 1, 0, "", lot).acceptance_of_lot(bad) > 0.05


@given(st.integers(2, 60), st.floats(0.5, 60), st.integers(0, 6), st.sampled_from([0.05, 0.1, 0.5]))
def test_the_smallest_sample_against_trying_all(lot: int, ltpd: float, accept: int, risk: float) -> None:
    bad = math.ceil(lot * ltpd / 100 * (1 - 1e-9))
    plans = [ByAttributes(sample, accept, "", lot) for sample in range(accept + 1, lot + 1)]
    smallest = next((each for each in plans if each.acceptance_of_lot(bad) <= risk), None)
    if smallest is not None:
        assert for_limiting_quality(ltpd, lot, accept, risk).sample == smallest.sample
        return
    with pytest.raises(ValueError, match="no sample distinguishes"):
        for_limiting_quality(ltpd, lot, accept, risk)


def test_a_plan_of_a_large_lot_takes_few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear search tried each of 2,501 samples; all of them took seconds."""
    trials = []
    acceptance = sampling_plan._without_replacement

    def counted(lot: int, bad: int, sample: int, accept: int) -> float:
        trials.append(sample)
        return acceptance(lot, bad, sample, accept)

    monkeypatch.setattr(sampling_plan, "_without_replacement", counted)
    sampling_plan._smallest.cache_clear()
    assert [for_limiting_quality(1, 5000, accept=20).sample for _ in range(2)] == [2501, 2501]
    assert len(trials) <= math.log2(5000) + 1


def test_plans_through_two_points() -> None:
    plan = through_two_points(1, 10)
    assert (plan.sample, plan.accept) == (52, 2)
    by_variables = variables_through_two_points(0.01, 0.10, "a contract")
    assert (by_variables.sample, round(by_variables.k, 2)) == (21, 1.76)


@pytest.mark.parametrize(
    ("sample", "aql", "risk", "k"), [(10, 0.01, 0.10, 1.72), (4, 0.015, 0.10, 1.34), (10, 0.025, 0.10, 1.41)]
)
def test_the_constants_of_plans_by_variables(sample: int, aql: float, risk: float, k: float) -> None:
    """ANSI/ASQ Z1.9, table B-1, whose producer's risk is about 10 % for small samples."""
    assert abs(acceptability(sample, aql, 1 - risk) - k) < 0.03


@pytest.mark.parametrize(("sample", "k"), [(4, 4.16), (6, 3.01), (8, 2.58), (12, 2.21), (24, 1.85)])
def test_the_tolerance_bound_is_the_same_question(sample: int, k: float) -> None:
    """One-sided tolerance factors for 90 % of the population at 95 % confidence."""
    assert abs(acceptability(sample, 0.10, 0.05) - k) < 0.006
    assert math.isclose(ByVariables(sample, acceptability(sample, 0.10, 0.05), "").quality(0.05), 0.10, rel_tol=1e-6)


# ---- By variables instead of by attributes --------------------------------------------------------------------------


@pytest.mark.parametrize("lot", [20, 100, 500, 1200])
@pytest.mark.parametrize("aql", [1.0, 2.5, 6.5, 10.0])
def test_the_plan_by_variables_accepts_as_that_by_attributes(lot: int, aql: float) -> None:
    plan = indexed_by_aql(lot, "II", aql)
    matched = as_variables(plan)
    assert matched.sample <= plan.sample or matched.sample == 3
    assert (matched.lot, matched.aql_percent) == (lot, aql)
    assert math.isclose(matched.acceptance(plan.quality(0.95)), 0.95, abs_tol=1e-6)
    assert matched.acceptance(plan.quality(0.10)) <= 0.10 + 1e-9
    if matched.sample > 3:  # and with one drive fewer it would not
        fewer = ByVariables(matched.sample - 1, acceptability(matched.sample - 1, plan.quality(0.95)), "")
        assert fewer.acceptance(plan.quality(0.10)) > 0.10


def test_half_the_drives_by_variables() -> None:
    plan = as_variables(indexed_by_aql(500, "II", 1.0))
    assert str(plan) == (
        "by the s-method of ISO 3951, as n = 50, Ac 1 of ISO 2859-1 level II, AQL 1 %, code letter H; n = 24, k = 1.895"
    )


# ---- What is no plan ------------------------------------------------------------------------------------------------


def test_plans_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="of 13 drives"):
        ByAttributes(13, 13, "")
    with pytest.raises(ValueError, match="13 drives needs"):
        ByAttributes(13, 0, "", lot=12)
    with pytest.raises(ValueError, match="least 3 drives,"):
        ByVariables(2, 1.0, "")
    with pytest.raises(ValueError, match="is not known"):
        ByAttributes(13, 0, "").acceptance_of_lot(1)
    with pytest.raises(ValueError, match="20 with 2"):
        for_limiting_quality(10, 20, accept=3)
    with pytest.raises(ValueError, match="plan distinguishes 5"):
        through_two_points(5, 4)
    with pytest.raises(ValueError, match="variables distinguishes 5"):
        variables_through_two_points(0.05, 0.04, "", lot=9)


@given(st.integers(2, 10**6), st.sampled_from(list(sampling_plan.LEVELS)), st.sampled_from(sampling_plan.AQLS))
def test_every_lot_has_a_plan(lot: int, level: str, aql: float) -> None:
    plan = indexed_by_aql(lot, level, aql)
    assert plan.sample <= lot
    if lot <= 1000:
        assert plan.accept / lot <= plan.limiting_quality() <= 1
