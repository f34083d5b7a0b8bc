from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.live import feed as feeds
from pytest_ssdqual.live.feed import Client, Feed, Message, Topic, encoded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=5,
)


def decoded(data: Message) -> Iterator[tuple[str, dict[str, object]]]:
    """As a browser takes the stream apart."""
    for block in data.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines())
        if "data" in lines:
            yield lines["event"], json.loads(lines["data"])


def heard(client: Client) -> list[tuple[str, dict[str, object]]]:
    found = []
    while message := client.next(0):
        found += list(decoded(message))
    return found


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_any_text_is_one_event_and_comes_out_as_it_went_in(facts: dict[str, object]) -> None:
    message = encoded(Topic.LOG, facts)
    assert list(decoded(message)) == [("log", facts)]
    assert message.count(b"\n") == 3
    assert message.isascii()


def test_a_later_client_is_given_what_it_needs() -> None:
    feed = Feed()
    feed.publish(Topic.RUN, {"title": "old"})
    feed.publish(Topic.RUN, {"title": "new"})
    for what in ("one", "two"):
        feed.publish(Topic.BAY, {"what": what}, "gw0")
    feed.publish(Topic.STRIP, {"iops": [1]}, "gw0")
    feed.publish(Topic.STRIP, {"iops": [2]}, "gw0")
    feed.publish(Topic.VERDICT, {"outcome": "pass"})
    client = feed.join()
    feed.publish(Topic.LOG, {"text": "later"})
    assert heard(client) == [
        ("run", {"bay": "", "title": "new"}),
        ("bay", {"bay": "gw0", "what": "two"}),
        ("strip", {"bay": "gw0", "iops": [1]}),
        ("strip", {"bay": "gw0", "iops": [2]}),
        ("verdict", {"bay": "", "outcome": "pass"}),
        ("log", {"bay": "", "text": "later"}),
    ]


def test_the_backlog_of_days_is_bounded() -> None:
    feed = Feed()
    for number in range(feeds.MOST_POINTS + 500):
        feed.publish(Topic.STRIP, {"n": number}, "")
        feed.publish(Topic.LOG, {"n": number})
    found = heard(feed.join())
    assert len(found) == feeds.MOST_POINTS + feeds.MOST_LOGGED
    assert found[0][1]["n"] == 500


def test_figures_never_come_without_their_load() -> None:
    """A fill lasts hours: whoever opens the page then must know what its figures are of."""
    feed = Feed()
    feed.publish(Topic.LOAD, {"n": "old"}, "gw0")
    feed.publish(Topic.STRIP, {"n": 0}, "gw0")
    feed.publish(Topic.LOAD, {"n": "new"}, "gw0")
    for number in range(2 * feeds.MOST_POINTS):
        feed.publish(Topic.STRIP, {"n": number}, "gw0")
    found = heard(feed.join())
    assert [name for name, _ in found].count("load") == 1
    assert found[0] == ("load", {"bay": "gw0", "n": "new"})
    assert len(found) == feeds.MOST_POINTS + 1


def test_a_broken_promise_outlasts_thousands_that_were_kept() -> None:
    feed = Feed()
    feed.publish(Topic.FAILED, {"n": "bad"})
    for number in range(feeds.MOST_VERDICTS + 5):
        feed.publish(Topic.VERDICT, {"n": number})
        feed.publish(Topic.TALLY, {"n": number})
    found = heard(feed.join())
    assert found[0] == ("failed", {"bay": "", "n": "bad"})
    assert len(found) == feeds.MOST_VERDICTS + 2
    assert found[-1] == ("tally", {"bay": "", "n": feeds.MOST_VERDICTS + 4})


def test_the_time_is_not_kept() -> None:
    feed = Feed()
    client = feed.join()
    feed.publish(Topic.ALIVE, {"at_ms": 1})
    assert heard(client) == [("alive", {"bay": "", "at_ms": 1})]
    assert heard(feed.join()) == []


def test_only_a_client_that_does_not_read_is_let_go() -> None:
    feed = Feed()
    slow, quick = feed.join(), feed.join()
    for number in range(2 * feeds.MOST_BEHIND):
        feed.publish(Topic.LOG, {"n": number})
        assert quick.next(0)
    assert feed.count == 1
    assert slow.next(0) is None


def test_after_the_end_there_is_only_the_end() -> None:
    feed = Feed()
    before = feed.join()
    feed.publish(Topic.LOG, {"text": "x"})
    feed.end({"text": "over"})
    assert heard(before)[-1] == ("ended", {"bay": "", "text": "over"})
    assert before.next(0) is None
    after = feed.join()
    assert [name for name, _ in heard(after)] == ["log", "ended"]
    assert after.next(0) is None


def test_a_client_waits_for_what_comes() -> None:
    feed = Feed()
    client = feed.join()
    threading.Timer(0.01, feed.publish, (Topic.LOG, {"text": "x"})).start()
    assert client.next(20)
    assert client.next(0) == b""


def test_who_leaves_is_sent_nothing() -> None:
    feed = Feed()
    client = feed.join()
    feed.leave(client)
    feed.leave(client)
    feed.publish(Topic.LOG, {"text": "x"})
    assert client.next(0) == b""


def test_what_is_no_json_is_not_sent() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Feed().publish(Topic.LOG, {"iops": float("nan")})
