from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from false_differences import CLAIMS, Setting, SimulatedDrive, edges, family, run, table

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of


def test_buckets_are_those_of_fio() -> None:
    lows, names = edges()
    assert [bucket_of(int(each)).low_ns for each in names] == lows.astype(int).tolist()
    assert (np.diff(lows) > 0).all()


def test_rounds_depend_on_each_other_as_they_are_told_to() -> None:
    drive = SimulatedDrive(5000, 1e6, 0.1, 0.01, 5, level=0.05, tail=0.0)
    setting = Setting(rounds=1000, depends=0.6)
    rates, rounds = run(np.random.default_rng(3), drive, setting, 1.0)
    logs = np.log(rates)
    assert np.corrcoef(logs[:-1], logs[1:])[0, 1] == pytest.approx(0.6, abs=0.1)
    assert np.std(logs) == pytest.approx(0.05, rel=0.15)
    assert [each.total for each in rounds] == rates


def test_a_slower_run_is_slower_by_so_much() -> None:
    drive = SimulatedDrive(20_000, 1e6, 0.1, 0.01, 5, level=0.0, tail=0.0)
    (fast, quick), (slow, late) = (run(np.random.default_rng(2), drive, Setting(), each) for each in (1.0, 1.25))
    assert sum(fast) / sum(slow) == pytest.approx(1.25, rel=1e-3)
    means = [LatencyHistogram.merged(each).mean_ns for each in (late, quick)]
    assert means[0] / means[1] == pytest.approx(1.25, rel=0.01)


@pytest.mark.parametrize("claim", CLAIMS)
def test_same_drives_do_not_differ_and_half_the_speed_does(claim: str) -> None:
    assert family(1, claim, Setting(), 20, 0)[0] == 0
    # Five rounds whose tail varies by up to 40 % are little evidence of a p99.
    assert family(1, claim, replace(Setting(), slower=2.0), 20, 0)[0] >= 10


def test_tables_tell_false_and_found_differences() -> None:
    same, slower = Setting(), Setting(slower=1.1)
    text = table({("p90_latency", same): [(0, 2, 10), (1, 1, 10)], ("p90_latency", slower): [(5, 6, 10)]})
    assert "| 5 rounds |  |  |  | 50.0 (15.0) |  |" in text
    assert "| 10 %, 5 rounds |  |  |  | 50 |  |" in text
