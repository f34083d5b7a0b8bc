from __future__ import annotations

from pathlib import Path

import pytest
from verdict_power import PowerPlan, PowerTask, kinds_of, simulate

OWN = """
import numpy as np
KINDS = {"sharp": lambda rng, mean, seconds: np.full(seconds, mean)}
"""


def test_kinds_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own_kinds.py").write_text(OWN, encoding="utf-8")
    plan = PowerPlan(("sharp",), (0.94, 0.96), ("fixed", "intel"), runs=3, seed=1, kinds_file=tmp_path / "own_kinds.py")
    bad, good = (simulate(plan, PowerTask("sharp", mean, range(3))) for mean in plan.means)
    assert [(cell.rule, cell.distance_percent) for cell in bad] == [("fixed", -1.052632), ("intel", -1.052632)]
    assert [set(cell.outcomes) for cell in bad + good] == [{"fail"}] * 2 + [{"pass"}] * 2
    assert [cell.minutes for cell in bad] == [(12.0,) * 3, (132.0,) * 3]


def test_a_module_without_kinds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no_kinds.py").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no_kinds\.py has no KINDS"):
        kinds_of(tmp_path / "no_kinds.py")


def test_every_chunk_of_runs_has_its_own_drives() -> None:
    plan = PowerPlan(("slowgc",), (0.95,), ("snia",), runs=20, seed=1)
    (first,), (second,), (again,) = (
        simulate(plan, PowerTask("slowgc", 0.95, runs)) for runs in (range(10), range(10, 20), range(10))
    )
    assert first == again
    assert first.outcomes != second.outcomes or first.minutes != second.minutes
