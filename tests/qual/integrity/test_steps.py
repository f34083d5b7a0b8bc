from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.qual.integrity import steps as history
from pytest_ssdqual.qual.integrity.steps import (
    BITMAPS,
    UNIT_BYTES,
    Add,
    CheckArray,
    Cut,
    Fail,
    Grow,
    HistoryError,
    Read,
    ReAdd,
    RebuildMember,
    Remove,
    Repair,
    Restart,
    Step,
    StepSequence,
    Trim,
    Write,
)
from pytest_ssdqual.qual.raid.geometry import Geometry

numbers = st.integers(0, 9999)
blocks = st.integers(1, 1024).map(lambda count: count * UNIT_BYTES)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Write, numbers, blocks, st.booleans()),
    st.builds(Cut, numbers, blocks),
    *(st.builds(kind, numbers) for kind in (Trim, Fail, Remove, ReAdd, Add, Grow)),
    st.sampled_from([RebuildMember(), CheckArray(), Repair(), Restart(), Cut(), Read()]),
)
shapes = st.sampled_from([*map(Geometry.parse, ("raid0x2", "raid1x3", "raid5x3", "raid6x4", "raid10x4"))])
histories = st.builds(StepSequence, shapes, st.sampled_from(BITMAPS), st.lists(steps).map(tuple))


@given(histories)
def test_a_script_is_read_back(written: StepSequence) -> None:
    assert history.parse(str(written)) == written


@given(histories)
def test_a_script_has_one_step_a_line(written: StepSequence) -> None:
    assert len(str(written).splitlines()) == 1 + len(written.steps)


def test_a_script_reads_like_what_is_done() -> None:
    done = (Write(3, 65536, flushed=False), Fail(2), Cut(5), ReAdd(2), RebuildMember(), Cut())
    written = StepSequence(Geometry.parse("raid5x3"), "internal", done)
    assert str(written) == (
        "array raid5x3 bitmap internal\nwrite 3 64k unflushed\nfail 2\ncut 5 4k\nre-add 2\nrebuild\ncut\n"
    )
    assert written.in_words == "write 3 64k unflushed, fail 2, cut 5 4k, re-add 2, rebuild, cut"


def test_comments_and_blank_lines_are_left_out() -> None:
    read = history.parse("# found on Monday\n\narray raid1x2 bitmap none  # a mirror\n  write 0 4k\n")
    assert read == StepSequence(Geometry.parse("raid1x2"), "none", (Write(0, 4096),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: a history begins with e.g. array raid5x3 bitmap none"),
        ("write 0 4k", "line 1: a history begins with e.g. array raid5x3 bitmap none, not 'write 0 4k'"),
        ("array raid7x3 bitmap none", "line 1: 'raid7x3' is not an array"),
        ("array raid5x3-1failed bitmap none", "line 1: raid5x3-1failed is no array that could be built"),
        ("array drivex2 bitmap none", "line 1: drivex2 is no array that could be built"),
        ("array raid5x3 bitmap lots", "line 1: a bitmap is none or internal, not 'lots'"),
        ("array raid5x3 bitmap none\n\nwrite 0 4k\nwriet 1 4k", "line 4: 'wriet 1 4k' is no step"),
        ("array raid5x3 bitmap none\nwrite 0 4kb", "line 2: '4kb' is 1000 or 1024 bytes"),
        ("array raid5x3 bitmap none\nwrite 0 512", "line 2: transfers are multiples of 4k, not 512"),
        ("array raid5x3 bitmap none\nfail two", "line 2: 'two' is not the number of a drive or region"),
        ("array raid5x3 bitmap none\nfail -1", "line 2: '-1' is not the number"),
        ("array raid5x3 bitmap none\nfail 99999", "line 2: '99999' is not the number"),
        ("array raid5x3 bitmap none\nwrite 0 4k flushed", "line 2: 'write 0 4k flushed' is no step"),
        ("array raid5x3 bitmap none\nrebuild 2", "line 2: 'rebuild 2' is no step"),
        ("array raid5x3 bitmap none\narray raid5x3 bitmap none", "line 2: 'array raid5x3 bitmap none' is no step"),
    ],
)
def test_what_makes_no_sense_names_its_line(text: str, said: str) -> None:
    with pytest.raises(HistoryError) as caught:
        history.parse(text)
    assert said in str(caught.value)


@settings(max_examples=30)
@given(st.text())
def test_any_text_is_a_history_or_an_error(text: str) -> None:
    said = ""
    try:
        history.parse(text)
    except HistoryError as error:
        said = str(error)
    assert not said or said.startswith("line ")
