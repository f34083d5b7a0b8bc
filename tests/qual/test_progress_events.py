from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual import progress_events, strict_json
from pytest_ssdqual.qual.progress_events import Begun, Idle, LoadBegun, Looked, News, Now, Planned, Steadiness

times = st.floats(0, 1e7)
counts = st.integers(0, 2**60)
texts = st.text(max_size=20)
ALL: st.SearchStrategy[News] = st.one_of(
    st.builds(Planned, times, st.lists(texts, max_size=3).map(tuple), st.lists(times, max_size=3).map(tuple)),
    st.builds(Begun, texts, times),
    st.builds(Looked, texts, times),
    st.builds(LoadBegun, texts, texts, texts, st.lists(texts, max_size=3).map(tuple), counts, counts, st.booleans()),
    st.builds(Now, times, st.lists(times, max_size=3).map(tuple), counts, counts, counts, st.booleans()),
    st.builds(Steadiness, st.booleans(), texts, texts),
    st.just(Idle()),
)


@given(ALL)
def test_news_come_back_from_json_as_they_were(told: News) -> None:
    line = json.dumps(progress_events.to_record(told))
    assert progress_events.from_record(strict_json.table(strict_json.read_json(line))) == told


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"news": "gossip"},
        {"news": "begun"},
        {"news": "begun", "what": 7},
        {"news": "begun", "what": "fill", "expected_s": "long"},
        {"news": "begun", "what": "fill", "markup": "<b>"},
        {"news": "now", "seconds": 1, "iops": [1, "2"], "bytes_written": 0},
        {"news": ["begun"], "what": "fill"},
    ],
)
def test_anything_else_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"this is no|not a progress event"):
        progress_events.from_record(record)


def test_devices_are_added_up() -> None:
    assert Now(1.0, (300.0, 150.5), 0).together == 450.5
