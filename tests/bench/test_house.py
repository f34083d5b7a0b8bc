"""The figures of ``bench/house.py`` on a tree that is small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import house
import pytest


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    package = tmp_path / "pytest_ssdqual"
    for name, text in {
        "__init__.py": '"""Package."""\n',
        "qual/__init__.py": '"""Room."""\n',
        "qual/a.py": '"""What is told."""\n\n\nclass Twice:\n    pass\n\n\ndef short() -> None:\n    pass\n',
        "qual/b.py": "class Twice:\n    pass\n\n\nclass Once:\n    pass\n",
        "report/charts/c.py": "X = 1\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    (tmp_path / "README.md").write_text("Somebody said so.\n")
    return tmp_path


def test_counts_of_a_small_tree(tree: Path) -> None:
    assert [path.name for path in house.modules(tree)] == ["a.py", "b.py", "c.py"]
    assert house.largest_folder(tree) == ("pytest_ssdqual/qual", 2)
    assert house.repeated_classes(tree) == ["Twice"]
    assert house.function_lengths(tree) == [2]
    assert house.dialect(tree) == 3


def test_a_recorded_way_is_counted_in_the_tree_that_is_given(tree: Path, tmp_path: Path) -> None:
    trace = tmp_path / "way.json"
    trace.write_text(
        json.dumps(["/elsewhere/pytest_ssdqual/qual/b.py", "/elsewhere/pytest_ssdqual/report/charts/c.py"])
    )
    assert house.way(tree, trace) == (2, 7)
    assert "| modules that one measurement runs through | 2 |" in house.table([tree], [trace])
