from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.builders.sheet import PRODUCT, loaded

from pytest_ssdqual.qual.spec import protocol, toml
from pytest_ssdqual.qual.spec.protocol_rules import VisitRule
from pytest_ssdqual.qual.spec.toml import DocumentError

MANUAL = Path(__file__).parents[3] / "docs" / "specs.md"


def test_the_files_of_the_manual_are_in_order(tmp_path: Path) -> None:
    files = re.findall(r"```toml\n(.*?)```", MANUAL.read_text(encoding="utf-8"), flags=re.DOTALL)
    whole = [text for text in files if text.startswith("[product]")]
    protocols = [text for text in files if text.startswith("acceptance")]
    parts = [PRODUCT + text for text in files if text.startswith(("[[figure]]", "[[promise]]", "[health]", "[lot]"))]
    visits = [text for text in files if text.startswith("[visits]")]
    assert (len(whole), len(parts), len(protocols), len(visits)) == (1, 5, 1, 1)
    assert [len(loaded(text).promises) for text in (*whole, *parts)] == [3, 0, 0, 4, 0, 0]
    assert loaded(parts[-1]).lot is not None
    (tmp_path / "protocol.toml").write_text(protocols[0], encoding="utf-8")
    assert protocol.load(tmp_path / "protocol.toml").measure.window_s == 300
    in_visits = re.sub(r"\[measure\].*?(?=\[steady\])", visits[0] + "\n", protocols[0], flags=re.DOTALL)
    in_visits = in_visits.replace('of = "arrays"', 'of = "drives"')
    (tmp_path / "visits.toml").write_text(in_visits, encoding="utf-8")
    # The manual shows what is taken where nothing is given.
    assert protocol.load(tmp_path / "visits.toml").visits == VisitRule()


def test_an_error_has_one_line_per_fault() -> None:
    error = DocumentError("a.toml", ["one", "two"])
    assert str(error) == "a.toml: one\na.toml: two"
    assert error.errors == ("one", "two")


@pytest.mark.parametrize("name", ["../specs/default", "./default", "default.toml"])
def test_what_looks_like_a_path_is_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError, match="cannot be read"):
        toml.read(name, "specs")


def test_a_folder_is_no_document(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read:"):
        toml.read(tmp_path, "specs")
