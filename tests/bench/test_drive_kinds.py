from __future__ import annotations

import numpy as np
import pytest
from drive_kinds import KINDS, WITHOUT_GATE, Kind, Pareto, events

EVERY = pytest.mark.parametrize("kind", [*KINDS.values(), *WITHOUT_GATE.values()], ids=[*KINDS, *WITHOUT_GATE])
HOUR = 3600


@EVERY
def test_in_the_long_run_a_drive_has_the_mean_it_was_drawn_with(kind: Kind) -> None:
    last_hours = [kind(np.random.default_rng([4, run]), 0.9, 4 * HOUR)[-HOUR:].mean() for run in range(60)]
    # Four standard errors of sixty drives; the least that a forgotten normalisation moves the mean by is 2 %.
    allowed = 4 * np.std(last_hours) / np.sqrt(len(last_hours))
    assert allowed < 0.01
    assert np.mean(last_hours) == pytest.approx(0.9, abs=allowed)


@pytest.mark.parametrize("shape", [1.5, 2.0, 2.5])
def test_the_mean_of_a_heavy_tail_counts_its_cut(shape: float) -> None:
    tail = Pareto(shape, 2.0, 300.0)
    drawn = tail.draw(np.random.default_rng(3), 1_000_000)
    assert 2 <= drawn.min() < drawn.max() <= 300
    # Without the cut the mean of the first were 9 % larger, of the last 0.07 %.
    assert tail.mean == pytest.approx(drawn.mean(), rel=4 * drawn.std() / drawn.mean() / 1000)


@EVERY
def test_a_drive_is_drawn_by_its_seed_and_scales_with_its_mean(kind: Kind) -> None:
    once, twice = (kind(np.random.default_rng(7), mean, 600) for mean in (1.0, 2.0))
    assert len(once) == 600
    assert once.min() > 0
    np.testing.assert_allclose(twice, 2 * once)
    assert not np.allclose(once, kind(np.random.default_rng(8), 1.0, 600))


@pytest.mark.parametrize(("name", "above"), [("residual", True), ("hump", True), ("undershoot", False)])
def test_transients_come_from_the_right_side(name: str, above: bool) -> None:
    firsts = [KINDS[name](np.random.default_rng([5, run]), 1.0, HOUR)[:240].mean() for run in range(20)]
    assert all(bool(first > 1.05) is above for first in firsts)


def test_the_cliff_of_a_fresh_drive_lies_before_the_gate() -> None:
    gated, ungated = (
        [kind(np.random.default_rng([6, run]), 1.0, HOUR)[:600].mean() for run in range(20)]
        for kind in (KINDS["fresh"], WITHOUT_GATE["ungated"])
    )
    assert max(gated) < 1.2
    assert min(ungated) > 2


def test_events_take_their_share_of_the_time() -> None:
    busy = events(np.random.default_rng(1), 20_000, lambda n: np.full(n, 7.5), lambda n: np.full(n, 2.5), 10)
    assert busy.min() == 0
    assert busy.max() == pytest.approx(1)
    assert busy.mean() == pytest.approx(0.25, abs=1e-3)
