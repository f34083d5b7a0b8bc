from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.progress_events import (
    KINDS,
    Begun,
    BytesWritten,
    Idle,
    LoadBegun,
    Looked,
    News,
    Now,
    Planned,
    Steadiness,
)
from pytest_ssdqual.qual.records import from_plain, plain

times = st.floats(0, 1e7)
counts = st.integers(0, 2**60)
texts = st.text(max_size=20)
ALL: st.SearchStrategy[News] = st.one_of(
    st.builds(Planned, times, st.lists(texts, max_size=3).map(tuple), st.lists(times, max_size=3).map(tuple)),
    st.builds(Begun, texts, times),
    st.builds(Looked, texts, times),
    st.builds(LoadBegun, texts, texts, texts, st.lists(texts, max_size=3).map(tuple), counts, counts, st.booleans()),
    st.builds(Now, times, st.lists(times, max_size=3).map(tuple), counts, counts, counts, st.booleans()),
    st.builds(BytesWritten, counts),
    st.builds(Steadiness, st.booleans(), texts, texts),
    st.just(Idle()),
)


@given(ALL)
def test_news_come_back_from_json_as_they_were(told: News) -> None:
    line = json.dumps(plain(told))
    assert from_plain(type(told), json.loads(line)) == told
    assert KINDS[type(told).__name__] is type(told)


def test_devices_are_added_up() -> None:
    assert Now(1.0, (300.0, 150.5), 0).together == 450.5
