from __future__ import annotations

import numpy as np
import pytest
from held_out_kinds import KINDS, Kind

EVERY = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
HOUR = 3600
#: Those that end.
TRANSIENT = ("two_scales", "power_law", "plateaus", "recovery", "late_step", "ringing", "onset", "thermal")


@EVERY
def test_in_the_long_run_a_drive_has_the_mean_it_was_drawn_with(kind: Kind) -> None:
    """A forgotten normalisation would move it by 2 % or more; a power law is on its way for days."""
    last = [kind(np.random.default_rng([1, run]), 9_000.0, 8 * HOUR)[-3 * HOUR :].mean() for run in range(40)]
    error = np.std(last) / np.sqrt(len(last))
    coming = 0.3 / np.sqrt(1 + 5 * HOUR / 120) * 9_000 if kind is KINDS["power_law"] else 0.0
    assert error < 0.005 * 9_000
    assert -4 * error - 1 < np.mean(last) - 9_000 < 4 * error + 1 + coming


@pytest.mark.parametrize("name", [each for each in KINDS if each not in TRANSIENT])
def test_what_goes_on_for_ever_has_its_mean_from_the_first_minutes(name: str) -> None:
    firsts = [KINDS[name](np.random.default_rng([2, run]), 1.0, 600).mean() for run in range(400)]
    assert np.mean(firsts) == pytest.approx(1, abs=4 * np.std(firsts) / np.sqrt(len(firsts)) + 1e-3)


@EVERY
def test_no_transient_is_larger_than_conditioning_leaves(kind: Kind) -> None:
    for run in range(20):
        first = kind(np.random.default_rng([3, run]), 1.0, HOUR)[:30].mean()
        assert 0.55 < first < 1.85


@EVERY
def test_a_drive_is_drawn_by_its_seed_and_scales_with_its_mean(kind: Kind) -> None:
    once, twice = (kind(np.random.default_rng(7), mean, 600) for mean in (1.0, 2.0))
    assert once.shape == (600,)
    assert once.min() >= 0
    np.testing.assert_allclose(twice, 2 * once)
    assert not np.allclose(once, kind(np.random.default_rng(8), 1.0, 600))


def test_they_are_none_of_those_that_rules_are_tuned_on() -> None:
    import drive_kinds

    assert len(KINDS) >= 14
    assert not set(KINDS) & {*drive_kinds.KINDS, *drive_kinds.WITHOUT_GATE}
