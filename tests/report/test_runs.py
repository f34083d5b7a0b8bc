from __future__ import annotations

from pathlib import Path

import pytest
from kept_runs import Kept, Measured

from pytest_ssdqual.report.runs import NoSuchRun, find


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("20260301T120000Z-aaaa", "20260301T120000Z-aaaabbbb", "20260302T120000Z-cccc"):
        Kept([Measured(1)]).keep(tmp_path / name)
    (tmp_path / "20260303T120000Z-dddd").mkdir()
    return tmp_path


def test_a_name_its_beginning_last_or_a_path(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert find("20260302", root).name == "20260302T120000Z-cccc"
    assert find("20260301T120000Z-aaaa", root).name == "20260301T120000Z-aaaa"
    assert find("last", root).name == "20260302T120000Z-cccc"
    elsewhere = Kept([Measured(1)]).keep(tmp_path_factory.mktemp("x") / "run")
    assert find(str(elsewhere), root) == elsewhere


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("20260301", "may be any of 2 runs"),
        ("20260303", "neither a run folder nor the beginning"),
        ("", "is the name of no run folder"),
        ("a\0b", "is the name of no run folder"),
    ],
)
def test_what_names_none_or_several_says_so(root: Path, name: str, sentence: str) -> None:
    with pytest.raises(NoSuchRun, match=sentence):
        find(name, root)


def test_where_there_is_nothing_there_is_no_last_one(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRun, match="there is no run in"):
        find("last", tmp_path / "missing")
