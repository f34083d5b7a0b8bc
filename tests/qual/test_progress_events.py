from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.progress_events import (
    KINDS,
    BayProgress,
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
    st.builds(Looked, texts),
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


#: Two arrays that are visited twice, the second time in reversed order: 1,000 s each time.
PLAN = Planned(4000.0, ("raid5x3", "raid5x4", "raid5x3"), (0.0, 1000.0, 3000.0))


def test_an_array_that_is_visited_again_corrects_what_is_left() -> None:
    narrow = BayProgress().after(PLAN, 0).after(Begun("raid5x3: create", 1000), 0)
    wide = narrow.after(Begun("raid5x4: create", 2000), 1000)
    assert narrow.left_s(0) == 4000
    assert wide.left_s(1000) == 3000
    again, late = (wide.after(Begun("raid5x3: create", 1000), at_s) for at_s in (3000, 6060))
    assert again.left_s(3000) == 1000
    assert late.left_s(6060) == pytest.approx(2000), "twice as slow as planned, with a minute as planned"


def test_steps_of_the_same_visit_do_not_count_as_another() -> None:
    visited = BayProgress().after(PLAN, 0).after(Begun("raid5x3: create", 100), 0)
    refreshed = visited.after(Begun("drivex4: refresh", 100), 100).after(Begun("raid5x3: visit 1", 800), 200)
    assert refreshed.left_s(200) == 3800


def test_a_look_changes_no_time() -> None:
    begun = BayProgress().after(PLAN, 0).after(Begun("raid5x3: create", 1000), 0)
    assert begun.after(Looked("visit 2: decided"), 500) == begun
