from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.rig.fio.documents import Splitter, pieces
from pytest_ssdqual.rig.machine import InvalidMeasurement

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=4)
TALK = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=30).filter(
    lambda line: not line.startswith("{")
)


@given(st.lists(DOCUMENTS | TALK, max_size=8))
def test_documents_and_text_are_parted(expected: list[dict[str, object] | str]) -> None:
    lines = [piece if isinstance(piece, str) else json.dumps(piece, indent=2) for piece in expected]
    assert list(pieces("".join(line + "\n" for line in lines).encode())) == expected


@given(st.lists(DOCUMENTS | TALK, max_size=8), st.lists(st.integers(0, 40)))
def test_in_whatever_pieces_they_come(expected: list[dict[str, object] | str], sizes: list[int]) -> None:
    text = "".join(f"{piece if isinstance(piece, str) else json.dumps(piece, indent=2)}\n" for piece in expected)
    data, splitter, found = text.encode(), Splitter(), []
    for size in sizes:
        found += splitter.feed(data[:size])
        data = data[size:]
    found += splitter.feed(data)
    assert found == expected
    splitter.require_end()


def test_letters_of_several_bytes_may_be_cut_in_two() -> None:
    splitter = Splitter()
    data = "fio: Gerät fehlt\n".encode()
    assert [*splitter.feed(data[:8]), *splitter.feed(data[8:])] == ["fio: Gerät fehlt"]


def test_a_damaged_document_hides_no_words_behind_it() -> None:
    data = b'{\n "a": 1\n}\n{\n "b": \nfio: No space left on device\n'
    splitter = Splitter()
    assert list(splitter.feed(data)) == [{"a": 1}]
    assert splitter.rest == ("fio: No space left on device",)
    with pytest.raises(InvalidMeasurement, match="after 1 whole documents, at byte 21 of 50"):
        splitter.require_end()
    with pytest.raises(InvalidMeasurement):
        list(pieces(data))
