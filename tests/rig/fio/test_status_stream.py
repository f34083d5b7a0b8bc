from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.strict_json import DECODER
from pytest_ssdqual.rig.fio.status_stream import Piece, Splitter
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=4)
TALK = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=30).filter(
    lambda line: not line.startswith("{") and not line.endswith("{")
)


def pieces(data: bytes) -> Iterator[Piece]:
    """Pieces of a complete file."""
    splitter = Splitter()
    yield from splitter.feed(data)
    splitter.require_end()
    yield from splitter.rest


def shown(pieces: list[dict[str, object] | str]) -> list[dict[str, object] | str]:
    """Lines as they are printed: a few would be commands to a CI system (``safe_text``)."""
    return [safe_text.line(piece) if isinstance(piece, str) else piece for piece in pieces]


@given(st.lists(DOCUMENTS | TALK, max_size=8), st.lists(st.integers(0, 40)))
def test_documents_and_text_are_parted_in_whatever_pieces(
    expected: list[dict[str, object] | str], sizes: list[int]
) -> None:
    text = "".join(f"{piece if isinstance(piece, str) else json.dumps(piece, indent=2)}\n" for piece in expected)
    assert list(pieces(text.encode())) == shown(expected)
    data, splitter, found = text.encode(), Splitter(), list[Piece]()
    for size in sizes:
        found += splitter.feed(data[:size])
        data = data[size:]
    found += splitter.feed(data)
    assert found == shown(expected)
    splitter.require_end()


@pytest.mark.parametrize(
    "value",
    [
        r'"\ud800"', "NaN", "-Infinity", "1e999", "-0.0", "01", '"\t"', "9" * 40, "9" * 5000, "1.", "[1,]",
        '{"b": 1, "b": 2}', "[" * 300 + "]" * 300, '"\\u0000"', "\x0c1", "'a'", "0.1", "17112760320.000001",
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", ['{{\n "a": {}\n}}\n', '{{"a": {}}}\n'])
def test_what_is_no_json_to_python_is_none_whoever_reads_it(shape: str, value: str) -> None:
    text = shape.format(value)
    try:
        expected = repr(DECODER.decode(text))
    except ValueError:
        with pytest.raises(InvalidMeasurement, match="0 whole documents"):
            list(pieces(text.encode("utf-8", "surrogatepass")))
    else:
        (found,) = pieces(text.encode())
        assert repr(found) == expected


def test_documents_end_where_they_end_however_they_are_laid_out() -> None:
    data = b'{"a": 1}\n{"b": {}}\nword\n{\n "c": 3\n} and\n{"d":\n4}\n{\n "e": {\n}\n}\n'
    found = [{"a": 1}, {"b": {}}, "word", {"c": 3}, " and", {"d": 4}, {"e": {}}]
    assert list(pieces(data)) == found


def test_letters_of_several_bytes_may_be_cut_in_two() -> None:
    splitter = Splitter()
    data = "fio: Gerät fehlt\n".encode()
    assert [*splitter.feed(data[:8]), *splitter.feed(data[8:])] == ["fio: Gerät fehlt"]


def test_a_damaged_document_hides_no_words_behind_it() -> None:
    words = "fio: No space left on device"
    data = f'{{\n "a": 1\n}}\n{{\n "b": \n{words}\n'.encode()
    splitter = Splitter()
    assert list(splitter.feed(data)) == [{"a": 1}]
    assert splitter.rest == (words,)
    with pytest.raises(InvalidMeasurement, match="at byte 21"):
        splitter.require_end()
    with pytest.raises(InvalidMeasurement):
        list(pieces(data))


@given(st.integers(0, 60))
def test_a_document_may_begin_in_a_line_that_nobody_ended(at: int) -> None:
    """A worker that is ended leaves what it had written of its message."""
    data = b'one\nfio: verify ty{\n  "fio version" : "fio-3.33"\n}\ntwo\n'
    splitter = Splitter()
    pieces = [*splitter.feed(data[:at]), *splitter.feed(data[at:])]
    assert pieces == ["one", "fio: verify ty", {"fio version": "fio-3.33"}, "two"]
