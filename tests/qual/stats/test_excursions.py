from __future__ import annotations

import itertools

import numpy as np
import pytest

from pytest_ssdqual.qual.measured.run import Look
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import excursions
from pytest_ssdqual.qual.stats.shared_evidence import Excursion, SharedEvidence

RULE, CONFIDENCE, STEP_S = SequentialRule(), 0.95, 7.0
HOURS = int(3 * 3600 / STEP_S)


def noise(seed: int, variation: float = 0.02) -> np.ndarray:
    return np.random.default_rng(seed).normal(1_000.0, 1_000.0 * variation, HOURS)


def pausing(seed: int, every_s: float = 1_200.0, pause_s: float = 60.0, phase_s: float = 0.0) -> np.ndarray:
    """Stand still for ``pause_s`` in every ``every_s``."""
    at_s = (np.arange(HOURS) * STEP_S + phase_s) % every_s
    return np.where(at_s < pause_s, 0.0, noise(seed))


def found(series: np.ndarray) -> SharedEvidence:
    return SharedEvidence(0.0, excursions.of_series(series.tolist(), STEP_S, RULE, CONFIDENCE))


@pytest.mark.parametrize("seed", range(3))
def test_a_drive_without_rhythms_has_shown_that_it_has_none(seed: int) -> None:
    shared = found(noise(seed))
    assert shared.has_excursions
    assert shared.excursion(RULE.first_s) < 0.005


def test_what_a_pause_costs_is_known_to_windows_that_are_shorter_than_its_period() -> None:
    shared = found(pausing(1))
    # One window of seven minutes lacks it altogether; on average they lose 5 %.
    assert 0.03 < shared.excursion(RULE.first_s) < 0.06
    assert shared.excursion(3_600.0) < shared.excursion(RULE.first_s) / 3


def test_pauses_of_drives_add_up_in_their_array() -> None:
    drives = [pausing(seed, phase_s=300.0 * seed).tolist() for seed in range(3)]
    of_array = SharedEvidence(0.0, excursions.of_drives(drives, STEP_S, RULE, CONFIDENCE))
    of_one = SharedEvidence(0.0, excursions.of_drives(drives[:1], STEP_S, RULE, CONFIDENCE))
    shortest = 0.5 * RULE.first_s
    assert of_array.excursion(shortest) > 1.5 * of_one.excursion(shortest)


def test_a_short_series_has_shown_nothing() -> None:
    assert excursions.of_series(noise(1)[: int(3_000 / STEP_S)].tolist(), STEP_S, RULE, CONFIDENCE) == ()
    assert excursions.of_series([0.0] * HOURS, STEP_S, RULE, CONFIDENCE) == ()
    assert excursions.of_drives([], STEP_S, RULE, CONFIDENCE) == ()


@pytest.mark.parametrize("cycles", [3.2, 3.5, 3.8])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.6])
def test_the_part_of_a_cycle_that_a_series_has_too_much_is_allowed_for(cycles: float, phase: float) -> None:
    """The mean of a series that ends within a cycle is off, so windows miss the true mean by more than its mean."""
    at = (np.arange(HOURS) * STEP_S / (HOURS * STEP_S / cycles) + phase) % 1
    series = noise(1, 0.01) * np.where(at < 0.4, 0.9, 1.0)
    true, shared, length = 1_000.0 * 0.96, found(series), int(RULE.first_s / STEP_S)
    windows = [series[begin : begin + length] for begin in range(0, HOURS - length, length // 8)]
    missed = max(abs(each.mean() - true) - 4 * each.std() / length**0.5 for each in windows) / true
    assert shared.excursion(RULE.first_s) >= missed


def test_beyond_the_lengths_that_were_seen_the_lost_work_is_constant() -> None:
    shared = SharedEvidence(0.0, (Excursion(100.0, 0.10), Excursion(200.0, 0.02), Excursion(400.0, 0.04)))
    assert [shared.excursion(each) for each in (50.0, 100.0, 150.0, 300.0, 800.0)] == [0.2, 0.1, 0.1, 0.04, 0.02]
    lost = [each * shared.excursion(each) for each in (400.0, 500.0, 1_000.0)]
    assert all(one == pytest.approx(other) for one, other in itertools.pairwise(lost))
    with pytest.raises(ValueError, match="no series"):
        SharedEvidence().excursion(100.0)


def test_the_record_of_a_look_has_what_was_known_and_one_of_an_earlier_version_knows_nothing() -> None:
    shared = SharedEvidence(3_600.0, (Excursion(300.0, 0.01),))
    look = Look(number=1, of=41, level=0.995, warmup_s=0.0, shared=shared)
    record = plain(look)
    assert from_plain(Look, record) == look
    del record["shared"]
    assert from_plain(Look, record).shared == SharedEvidence()
