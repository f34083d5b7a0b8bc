"""The rates that docs/statistics.md states of causes, on a few seeds."""

from __future__ import annotations

from collections.abc import Mapping

import attribution_side_by_side as bench
import pytest


def test_causes_are_right_and_few_drives_falsely_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    tallies: dict[str, bench.Tally] = {}

    def report(counted: Mapping[str, bench.Tally], rates_of: object) -> None:
        tallies.update(counted)

    monkeypatch.setattr(bench, "report", report)
    monkeypatch.setattr("sys.argv", ["attribution_side_by_side.py", "--seeds=4"])
    bench.main()
    judged = sum(each.judged for each in tallies.values())
    assert judged > 900
    assert sum(each.right for each in tallies.values()) >= 0.95 * judged
    assert sum(each.accused for each in tallies.values()) <= 0.01 * judged
    # A case without a broken promise or an objection judges nothing; only the drives that smartd polls may be one.
    assert [name for name, each in tallies.items() if not each.judged] == ["smartd polls a drive"]
