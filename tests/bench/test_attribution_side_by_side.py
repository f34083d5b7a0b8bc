"""The rates that docs/statistics.md states of causes, on a few seeds."""

from __future__ import annotations

import re

import attribution_side_by_side as bench
import pytest


def test_causes_are_right_and_few_drives_falsely_accused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["attribution_side_by_side.py", "--seeds=4"])
    bench.main()
    printed = capsys.readouterr().out
    right, judged = re.findall(r"right cause: ([\d.]+)% of (\d+)", printed)[0]
    (accused,) = re.findall(r"accused falsely: ([\d.]+)%", printed)
    assert int(judged) > 900
    assert float(right) >= 95
    assert float(accused) <= 1
    # A case without a broken promise or an objection judges nothing; only the drives that smartd polls may be one.
    silent = [case.name for case in bench.CASES if re.search(rf"^{re.escape(case.name)} .* of +0:", printed, re.M)]
    assert silent == ["smartd polls a drive"]
