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


#: A fill of 100 s, then two measurements that are expected to take 1,000 s each.
PLAN = Planned(
    2100.0,
    ("raid5x3", "raid5x3: reads", "raid5x3: writes"),
    (0.0, 100.0, 1100.0),
    prior_s=2000.0,
    lengths_s=(1000.0, 1000.0),
    measured=("raid5x3: reads", "raid5x3: writes"),
)


def test_a_measurement_counts_with_its_expected_duration_not_with_its_looks() -> None:
    begun = BayProgress().after(PLAN, 0).after(Begun("raid5x3: fill", 100), 0)
    reads = begun.after(Begun("raid5x3: reads", 450), 100)
    assert begun.left_s(0) == reads.left_s(100) + 100 == 2100  # type: ignore[operator]
    looked = reads.after(Looked("look 1 of 41", 45), 550)
    assert looked.left_s(600) == 1500, "the look was expected"
    late = looked.after(Looked("look 20 of 41", 1000), 1050)
    assert late.left_s(1100) == 1000 + 495, "the next look is later than expected"


def test_what_measurements_took_corrects_what_is_left() -> None:
    begun = BayProgress().after(PLAN, 0).after(Begun("raid5x3: fill", 100), 0).after(Begun("raid5x3: reads", 450), 100)
    slow, quick = (begun.after(Begun("raid5x3: writes", 450), at_s) for at_s in (3100, 600))
    # Half a plan of prior weight: 3,100 s instead of 1,100 s are a pace of 5,100 over 3,100.
    assert slow.left_s(3100) == pytest.approx(1000 * 5100 / 3100)
    assert quick.left_s(600) == pytest.approx(1000 * 2600 / 3100)
