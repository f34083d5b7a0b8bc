"""The replay of recorded series, on made-up ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import real_series
from conditioned_series import until_settled
from drive_kinds import Series
from real_series import ALONE, ARRAYS, Recorded, replay, starts

from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.verdict.verdict import Outcome

SETTINGS = protocol.load("acceptance")
#: 10,000 IOPS of 4 KiB: a capacity takes 1,000 s at the settled rate.
IOPS, CAPACITY = 10_000, 40_960_000_000
STEP_S = 10


def rates(hours: float, *, plateau: float = 300) -> Series:
    """A plateau of so many seconds, an undershoot, and then settled with noise of 0.5 %."""
    rng = np.random.default_rng(1)
    seconds = np.arange(0, hours * 3600, STEP_S)
    settled = 1 + 0.005 * rng.standard_normal(seconds.size)
    undershoot = np.where(seconds < plateau + 400, 0.8, 1.0)
    return np.asarray(settled * np.where(seconds < plateau, 3.0, undershoot))


def written(folder: Path, name: str, values: Series, about: str = "settles") -> Path:
    path = folder / f"{name}.txt"
    facts = f"step_s {STEP_S} | mean_iops {IOPS} (of values from 200 on = 1000) | capacity_bytes {CAPACITY}"
    head = f"# drive Z; {about}\n# {facts} | values\n"
    path.write_text(head + " ".join(f"{1000 * each:.0f}" for each in values), encoding="utf-8")
    return path


def read(path: Path) -> Recorded:
    found = Recorded.read(path)
    assert found
    return found


def test_a_file_has_its_rates_and_says_whether_it_settles(tmp_path: Path) -> None:
    one = read(written(tmp_path, "z-uniform", rates(4)))
    assert (one.settles, one.is_skewed, one.settled_from, one.capacity_bytes) == (True, False, 200, CAPACITY)
    assert one.rates[0] == pytest.approx(3, rel=0.05)
    hot = read(written(tmp_path, "z-hot95", rates(4), "is not settled within the series"))
    assert not hot.settles
    assert hot.is_skewed
    (tmp_path / "maxima.txt").write_text("# slowest writes\nZ 1 2 3\nY 1 2 3\n", encoding="utf-8")
    assert Recorded.read(tmp_path / "maxima.txt") is None


def test_conditioning_ends_when_two_halves_are_as_fast(tmp_path: Path) -> None:
    one = read(written(tmp_path, "z-uniform", rates(4)))
    end = one.conditioned(SETTINGS)
    assert end.settled
    assert 1 <= end.capacities < 3
    assert one.before(end.seconds) == pytest.approx(1, abs=0.01)


def test_skewed_writes_need_more_volume(tmp_path: Path) -> None:
    of_skew = read(written(tmp_path, "z-zipf08", rates(4))).conditioned(SETTINGS)
    uniform = read(written(tmp_path, "z-uniform", rates(4))).conditioned(SETTINGS)
    assert of_skew.capacities >= 3 > uniform.capacities


def test_drives_that_fall_for_ever_are_given_up() -> None:
    falling = np.exp(-np.arange(3000) / 800) * 4096 * IOPS
    end = until_settled([falling], STEP_S, CAPACITY, SETTINGS)
    assert not end.settled
    assert end.capacities >= SETTINGS.precondition.limit_capacities


@pytest.mark.parametrize("margin", [-0.05, 0.05])
@pytest.mark.parametrize("points", [ARRAYS, ALONE], ids=["arrays", "alone"])
def test_verdicts_about_a_settled_series_are_right(tmp_path: Path, margin: float, points: object) -> None:
    one = read(written(tmp_path, "z-uniform", rates(4)))
    found = replay(one, one.conditioned(SETTINGS).seconds, SETTINGS, ARRAYS if points is ARRAYS else ALONE, margin, 1)
    assert found.wrong == found.undecided == 0
    assert found.outcomes[0] is (Outcome.PASS if margin > 0 else Outcome.FAIL)
    assert found.minutes > 4


def test_a_verdict_on_a_plateau_is_counted_as_wrong(tmp_path: Path) -> None:
    """Four hours at three times what comes later: believed after two visits."""
    one = read(written(tmp_path, "z-unfilled", rates(6, plateau=4 * 3600)))
    assert replay(one, 0.0, SETTINGS, ARRAYS, -0.05, 1).wrong == len(ARRAYS)


def test_a_series_that_does_not_settle_ends(tmp_path: Path) -> None:
    one = read(written(tmp_path, "z-hot95", rates(1)))
    found = replay(one, 1800.0, SETTINGS, ARRAYS, 0.05, 1)
    assert found.undecided == len(ARRAYS)
    assert found.minutes < 60
    assert len(starts(one, one.conditioned(SETTINGS), 6)) == 1


def test_the_table_has_all_series(tmp_path: Path) -> None:
    written(tmp_path, "z-uniform", rates(3))
    text = "\n".join(real_series.lines(tmp_path, 1, SETTINGS))
    assert "z-uniform" in text
    assert "0 wrong (0.00%)" in text
