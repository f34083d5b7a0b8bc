from __future__ import annotations

import numpy as np
import pytest
from drive_kinds import KINDS, LATE, REAL, SETTLED, Approach, Kind, Pareto, events

HOUR = 3600
EVERY = pytest.mark.parametrize("kind", list(KINDS.values()), ids=list(KINDS))


@EVERY
def test_in_the_long_run_a_drive_has_its_mean(kind: Kind) -> None:
    hours = 40 if kind.__name__ in LATE else 12
    last_hours = [kind(np.random.default_rng([4, run]), hours * HOUR)[-4 * HOUR :].mean() for run in range(40)]
    # Four standard errors of forty drives; a forgotten normalisation moves the mean by 2 % or more.
    allowed = 4 * np.std(last_hours) / np.sqrt(len(last_hours)) + 2e-4
    assert allowed < 0.015
    assert np.mean(last_hours) == pytest.approx(1, abs=allowed)


@pytest.mark.parametrize("name", [each for each in SETTLED if each != "drift"])
def test_settled_kinds_have_their_mean_from_the_first_minutes_on(name: str) -> None:
    firsts = [SETTLED[name](np.random.default_rng([2, run]), 600).mean() for run in range(300)]
    assert np.mean(firsts) == pytest.approx(1, abs=4 * np.std(firsts) / np.sqrt(len(firsts)) + 5e-4)


@EVERY
def test_a_drive_is_drawn_by_its_seed(kind: Kind) -> None:
    once, again, other = (kind(np.random.default_rng(seed), 600) for seed in (7, 7, 8))
    assert once.shape == (600,)
    assert once.min() > 0
    np.testing.assert_array_equal(once, again)
    assert not np.allclose(once, other)


@pytest.mark.parametrize("name", ["real", "rhythm"])
def test_real_drives_scatter_as_published_series_do(name: str) -> None:
    tens = [REAL[name](np.random.default_rng([3, run]), 2 * HOUR).reshape(-1, 10).mean(axis=1) for run in range(40)]
    scatters = [float(np.std(np.diff(each)) / np.sqrt(2)) for each in tens]
    assert 0.003 < np.median(scatters) < 0.008
    assert max(scatters) < 0.028
    assert min(each.min() for each in tens) > 0.94, "no report of ten seconds lies below that in 91 hours"


def test_an_approach_has_a_plateau_a_cliff_and_an_undershoot() -> None:
    written = np.linspace(0, 3, 3000)
    within = []
    for seed in range(200):
        rates = Approach.drawn(np.random.default_rng(seed)).rate(written)
        assert rates[0] > 2
        assert 0.65 < rates.min() < 0.9
        within.append(written[np.flatnonzero(np.abs(rates - 1) > 0.02)[-1]])
    assert min(within) > 0.3
    assert max(within) < 1.3


def test_slow_approaches_take_capacities() -> None:
    written = np.linspace(0, 8, 8000)
    rates = [Approach.drawn(np.random.default_rng(seed), slow=True).rate(written) for seed in range(100)]
    within = [written[np.flatnonzero(np.abs(each - 1) > 0.02)[-1]] for each in rates]
    assert np.median(within) > 1
    assert max(within) < 5


def test_plateau_ends_by_volume_and_not_by_time() -> None:
    approach = Approach(4.0, 0.5, 0.8, 0.3, 0.0, 0.1)
    rates = approach.by_time(6000, 1000.0)
    assert rates[0] == pytest.approx(4)
    # Half a capacity at four times the rate: 125 s.
    assert np.argmax(rates < 2) == pytest.approx(125, abs=5)
    assert rates[-1] == pytest.approx(1, abs=1e-3)
    assert np.cumsum(rates)[np.argmax(rates > 0.999) + 150] > 500


@pytest.mark.parametrize("shape", [1.5, 2.0, 2.5])
def test_the_mean_of_a_heavy_tail_counts_its_cut(shape: float) -> None:
    tail = Pareto(shape, 2.0, 300.0)
    drawn = tail.draw(np.random.default_rng(3), 1_000_000)
    assert 2 <= drawn.min() < drawn.max() <= 300
    # Without the cut the mean of the first were 9 % larger, of the last 0.07 %.
    assert tail.mean == pytest.approx(drawn.mean(), rel=4 * drawn.std() / drawn.mean() / 1000)


def test_events_take_their_share_of_the_time() -> None:
    busy = events(np.random.default_rng(1), 20_000, lambda n: np.full(n, 7.5), lambda n: np.full(n, 2.5), 10)
    assert busy.min() == 0
    assert busy.max() == pytest.approx(1)
    assert busy.mean() == pytest.approx(0.25, abs=1e-3)
