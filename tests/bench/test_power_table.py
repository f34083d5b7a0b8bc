from __future__ import annotations

import csv
from pathlib import Path

import pytest
from power_goals import GOALS, report
from power_table import Cell, Share, markdown, write_csv

from pytest_ssdqual.qual.verdict.verdict import Outcome

DISTANCES = (-10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0)


def cell(
    distance: float, passes: int = 0, fails: int = 0, of: int = 100, minutes: float = 10, kind: str = "flat"
) -> Cell:
    outcomes = (Outcome.PASS,) * passes + (Outcome.FAIL,) * fails
    outcomes += (Outcome.INCONCLUSIVE,) * (of - passes - fails)
    return Cell(kind, distance, "ours", outcomes, (minutes,) * of)


def ideal() -> list[Cell]:
    return [cell(each, passes=100 * (each > 0), fails=100 * (each < 0)) for each in DISTANCES]


def test_a_pass_is_false_up_to_the_limit_and_a_fail_from_it_on() -> None:
    assert cell(-2, passes=3).false_accept == Share(3, 100)
    assert cell(0, passes=3, fails=1).false_accept == Share(3, 100)
    assert cell(0, passes=3, fails=1).false_reject == Share(1, 100)
    assert cell(2, passes=3).false_accept is None
    assert cell(-2, fails=3).false_reject is None


def test_none_in_a_hundred_is_not_none_for_sure() -> None:
    assert 0 < Share(0, 100).error_percent < 2
    assert Share(50, 100).error_percent == pytest.approx(5.0, rel=0.01)


def test_the_worst_kind_stands_in_brackets() -> None:
    text = markdown([cell(-2, passes=1), cell(-2, passes=5, kind="slowgc", minutes=30)])
    assert "| -2 % | 3.0 (5.0) |  | 97.0 (99.0) | 20 / 30 |" in text


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    write_csv(tmp_path / "power.csv", [cell(-2, passes=5, fails=90)])
    (row,) = csv.DictReader((tmp_path / "power.csv").read_text(encoding="utf-8").splitlines())
    assert (row["kind"], row["distance_percent"], row["rule"], row["runs"]) == ("flat", "-2", "ours", "100")
    assert [float(row[f"{each}_percent"]) for each in ("pass", "fail", "inconclusive")] == [5, 90, 5]
    assert float(row["mean_minutes"]) == 10


def test_an_ideal_rule_meets_every_goal() -> None:
    lines = report(ideal(), "ours").splitlines()
    assert len(lines) == len(GOALS)
    assert all(line.startswith("met ") for line in lines)


@pytest.mark.parametrize(
    ("wrong", "goal"),
    [
        (cell(0, passes=6), "false accepts at the limit"),
        (cell(-5, passes=3, fails=97), "false accepts 2 % and more below"),
        (cell(2, passes=98, fails=2), "false rejects 2 % and more above"),
        (cell(10, passes=100, minutes=13), "mean time on flat at ±10 %"),
        (cell(-5, fails=100, minutes=26), "mean time on flat at ±5 %"),
        (cell(2, passes=100, minutes=56), "mean time on flat at ±2 %"),
        (cell(-2, fails=79), "inconclusive on flat"),
    ],
)
def test_what_is_missed_is_told(wrong: Cell, goal: str) -> None:
    cells = [wrong if each.distance_percent == wrong.distance_percent else each for each in ideal()]
    missed = [line for line in report(cells, "ours").splitlines() if line.startswith("NOT MET")]
    assert any(goal in line for line in missed)
    assert len(missed) <= 2


def test_what_was_not_simulated_is_not_met() -> None:
    assert all(line.startswith("not measured") for line in report(ideal(), "fixed").splitlines())
