from __future__ import annotations

import re
from pathlib import Path

import pytest
from sheet import PRODUCT, load

from pytest_ssdqual.qual import document, protocol
from pytest_ssdqual.qual.document import DocumentError

MANUAL = Path(__file__).parents[2] / "docs" / "specs.md"


def test_the_files_of_the_manual_are_in_order(tmp_path: Path) -> None:
    files = re.findall(r"```toml\n(.*?)```", MANUAL.read_text(encoding="utf-8"), flags=re.DOTALL)
    whole = [text for text in files if text.startswith("[product]")]
    protocols = [text for text in files if text.startswith("acceptance")]
    parts = [PRODUCT + text for text in files if text.startswith(("[[figure]]", "[[promise]]"))]
    assert (len(whole), len(parts), len(protocols)) == (1, 2, 1)
    assert len(files) == 4
    assert [len(load(tmp_path, text).promises) for text in (*whole, *parts)] == [3, 0, 4]
    (tmp_path / "protocol.toml").write_text(protocols[0], encoding="utf-8")
    assert protocol.load(tmp_path / "protocol.toml").window_s == 300


def test_an_error_has_one_line_per_fault() -> None:
    error = DocumentError("a.toml", ["one", "two"])
    assert str(error) == "a.toml: one\na.toml: two"
    assert error.errors == ("one", "two")


@pytest.mark.parametrize("name", ["../specs/default", "./default", "default.toml"])
def test_what_looks_like_a_path_is_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError, match="cannot be read"):
        document.read(name, "specs", DocumentError)


def test_a_folder_is_no_document(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read: Is a directory"):
        document.read(tmp_path, "specs", DocumentError)
