"""The page in a browser: open, watch, reload, finish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from headless import Page, browser

from pytest_ssdqual.live.feed import Feed, Topic
from pytest_ssdqual.live.server import Server

EVIL = "</script><img src=x onerror=\"document.title='owned'\"><b>bold</b>"
LOAD = {
    "phase": "measure", "geometry": "drivex2", "workload": "randread_4k_qd8", "devices": ["SSDQ0001", EVIL],
    "limit": 240.0, "limit_text": "limit 240 IOPS", "published": 300.0, "published_text": "published 300 IOPS",
}  # fmt: skip
TEXT = "document.body.innerText"
CARDS = "[...document.querySelectorAll('.card .big')].map((each) => each.textContent).join()"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(Feed())
    yield made
    made.close()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "profile") as found:
        yield found


def shown(page: Page) -> str:
    return str(page.value(TEXT))


def play(feed: Feed, at_ms: int = 1_000_000_000_000) -> None:
    """Some seconds of a run."""
    feed.publish(Topic.RUN, {"title": f"ACME 9 {EVIL}", "about": "2 × ACME"})
    feed.publish(
        Topic.BAY,
        {"what": "drivex2: randread_4k_qd8", "expected_s": 60, "began_ms": at_ms, "ends_ms": None, "steady": False,
         "told": f"range 31 % {EVIL}"},
    )  # fmt: skip
    feed.publish(Topic.STRIP, {"at_ms": at_ms, "load": LOAD})
    for second in range(30):
        now = {"iops": [300 + second, 150.5], "round": 2, "rounds": 5, "bytes_written": 0}
        feed.publish(Topic.STRIP, {"at_ms": at_ms + 1000 * second, **now})
    feed.publish(Topic.LOG, {"at_ms": at_ms, "text": f"drive {EVIL}"})
    for outcome in ("fail", "pass"):
        said = {"outcome": outcome, "sentence": f"steady IOPS: {outcome} {EVIL}", "test": f"test_iops[{EVIL}]"}
        feed.publish(Topic.VERDICT, {"at_ms": at_ms, **said})


def require_whole(page: Page) -> None:
    page.until(f"{CARDS} === '329,151'")
    text = shown(page)
    assert EVIL in text
    for word in ("drivex2: randread_4k_qd8", "round\n2 of at most 5", "not settled yet: range 31 %", "limit 240 IOPS",
                 "published 300 IOPS", "✗ fail: 1", "✓ pass: 1", "together\n480 IOPS"):  # fmt: skip
        assert word in text, text
    # What failed is on top although something passed later.
    assert page.value("document.querySelector('#verdicts li').className") == "fail"
    drawn = "document.querySelectorAll('.card path.trace').length"
    assert page.value(drawn) == 2
    assert page.value("document.querySelectorAll('img, b, main script').length") == 0


def test_a_run_is_watched_reloaded_and_seen_to_its_end(server: Server, page: Page) -> None:
    page.open(server.url)
    page.until("document.getElementById('state')?.dataset.state === 'running'")
    play(server.feed)
    require_whole(page)
    page.open(server.url)
    require_whole(page)
    # One that was let go comes back by itself, and has nothing twice.
    for client in list(server.feed._clients):
        client.put(None)
    page.until("document.getElementById('state').dataset.state === 'lost'")
    page.until("document.getElementById('state').dataset.state === 'running'")
    require_whole(page)
    server.feed.publish(Topic.STRIP, {"at_ms": 1_000_000_031_000, "iops": [77, 88], "round": 3, "rounds": 5,
                                      "bytes_written": 5_000_000})  # fmt: skip
    page.until(f"{CARDS} === '77,88'")
    server.feed.end({"text": f"The run has ended: 3 passed. {EVIL}", "good": True})
    server.close()
    page.until("document.getElementById('state').dataset.state === 'ended'")
    assert "The run has ended: 3 passed." in shown(page)
    assert page.value("document.querySelector('[aria-live=polite]').textContent").startswith("The run has ended")
    assert str(page.value("document.title")).startswith("ended – ACME 9")
    assert page.complaints == []


def test_a_run_that_was_killed_is_not_taken_for_one_that_goes_on(server: Server, page: Page) -> None:
    play(server.feed)
    page.open(server.url)
    require_whole(page)
    for client in list(server.feed._clients):
        client.put(None)
    server.close()
    page.until("document.getElementById('state').dataset.state === 'lost'")
    assert "329" in shown(page)
