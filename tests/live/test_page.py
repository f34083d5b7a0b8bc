"""The page in a browser: open, watch, reload, finish; and what it makes of odd and long runs."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from support.fakes.headless import Page, browser

from pytest_ssdqual.live import feed as feeds
from pytest_ssdqual.live import server as servers
from pytest_ssdqual.live.feed import Feed, Topic
from pytest_ssdqual.live.server import LiveServer

pytestmark = pytest.mark.slow

#: Only ends what hangs.
BROWSER_S = 900.0

EVIL = "</script><img src=x onerror=\"document.title='owned'\"><b>bold</b>"
LOAD = {
    "phase": "measure", "geometry": "drivex2", "workload": "randread_4k_qd8", "devices": ["SSDQ0001", EVIL],
    "limit": 240.0, "limit_text": "limit 240 IOPS", "published": 300.0, "published_text": "published 300 IOPS",
    "round": 1, "rounds": 5, "exact": True,
}  # fmt: skip
ROUND = {"round": 2, "rounds": 5, "exact": True}
CARDS = "[...document.querySelectorAll('.card .big')].map((each) => each.textContent).join()"
STATE = "document.getElementById('state')?.dataset.state"
SPOKEN = "document.getElementById('spoken').textContent"


@pytest.fixture
def server() -> Iterator[LiveServer]:
    made = LiveServer(Feed())
    yield made
    made.close()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser") / "profile", BROWSER_S) as found:
        yield found


@pytest.fixture
def page(tab: Page) -> Page:
    """The tab as it was when the browser started."""
    tab.open("about:blank")
    tab.ask("Emulation.clearDeviceMetricsOverride")
    tab.complaints.clear()
    return tab


def shown(page: Page) -> str:
    return str(page.value("document.body.innerText"))


def now_ms() -> int:
    """An hour ahead: figures are not stale before a slow computer has drawn them."""
    return round(1000 * time.time()) + 3_600_000


def step(feed: Feed, **more: object) -> None:
    """News of what is done."""
    facts = {
        "what": "drivex2: randread_4k_qd8", "expected_s": 6000, "began_ms": now_ms() - 3_630_000, "ends_ms": None,
        "steady": False, "brief": "not steady yet: range 31.0 % (20 % allowed)", "sentence": f"range 31 % {EVIL}",
    }  # fmt: skip
    feed.publish(Topic.BAY, {**facts, **more})


def figures(feed: Feed, *iops: float, at_ms: int | None = None) -> None:
    at_ms = now_ms() if at_ms is None else at_ms
    feed.publish(Topic.STRIP, {"at_ms": at_ms, "iops": list(iops), "bytes_written": 5_000_000, **ROUND})


def verdict(feed: Feed, outcome: str, what: str = EVIL) -> None:
    topic = Topic.FAILED if outcome == "fail" else Topic.VERDICT
    said = {"outcome": outcome, "sentence": f"steady IOPS: {outcome} {what}", "test": f"test_iops[{EVIL}]"}
    feed.publish(topic, {"at_ms": now_ms(), **said})


def play(feed: Feed) -> None:
    """Some seconds of a run, until now."""
    feed.publish(Topic.RUN, {"title": f"ACME 9 {EVIL}", "about": "2 × ACME"})
    step(feed)
    feed.publish(Topic.LOAD, {"at_ms": now_ms() - 30_000, **LOAD})
    for second in range(30):
        figures(feed, 300 + second, 150.5, at_ms=now_ms() - 29_000 + 1000 * second)
    feed.publish(Topic.LOG, {"at_ms": now_ms(), "text": f"drive {EVIL}"})
    for outcome in ("fail", "pass"):
        verdict(feed, outcome)
    feed.publish(Topic.TALLY, {"tests": {"passed": 1200}, "total": 1514, "verdicts": {"fail": 1, "pass": 1}})


def require_whole(page: Page, *, figures: str = "329,151") -> None:
    page.until(f"{CARDS} === '{figures}'")
    text = shown(page)
    assert EVIL in text
    for word in ("drivex2: randread_4k_qd8 – ", "of 1:40:00", "round\n2 of 5",
                 "steadiness\nnot steady yet: range 31.0 % (20 % allowed)", "… range 31 %", "limit 240 IOPS",
                 "published 300 IOPS", "✗ fail: 1", "✓ pass: 1", "written\n5 MB",
                 "Tests: 1,200 passed of 1,514"):  # fmt: skip
        assert word in text, text
    # What failed is on top although something passed later.
    assert page.value("document.querySelector('.verdicts li').className") == "fail"
    drawn = "document.querySelectorAll('.card path.trace').length"
    assert page.value(drawn) == 2
    markup = "document.querySelectorAll('img, b, main script').length"
    assert page.value(markup) == 0


def let_go(server: LiveServer) -> None:
    """As of clients that do not read."""
    for client in list(server.feed._clients):
        client.put(None)


def test_a_run_is_watched_reloaded_and_seen_to_its_end(server: LiveServer, page: Page) -> None:
    page.open(server.url)
    page.until(f"{STATE} === 'running'")
    play(server.feed)
    require_whole(page)
    page.open(server.url)
    require_whole(page)
    # One that was let go comes back by itself, and has nothing twice.
    let_go(server)
    page.until(f"{STATE} === 'lost'")
    page.until(f"{STATE} === 'running'")
    require_whole(page)
    assert page.value("document.querySelectorAll('.verdicts li').length") == 2
    figures(server.feed, 77, 88)
    page.until(f"{CARDS} === '77,88'")
    server.feed.end({"text": f"The run has ended: 3 passed. {EVIL}", "good": True})
    server.close()
    page.until(f"{STATE} === 'ended'")
    assert "ended: 3 passed." in shown(page)
    assert "ended" in page.value(SPOKEN)
    assert str(page.value("document.title")).startswith("ended – ACME")
    assert page.value("document.querySelectorAll('.card').length") == 2
    assert re.search("now$", shown(page), re.MULTILINE) is None
    # It is still drawn to the width of its window.
    box = "document.querySelectorAll('.card svg')[1].getAttribute('viewBox')"
    before = page.value(box)
    page.ask("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    page.until(f"{box} !== '{before}'")
    assert page.complaints == []


def test_a_run_that_was_killed_is_not_taken_for_one_that_goes_on(server: LiveServer, page: Page) -> None:
    play(server.feed)
    page.open(server.url)
    require_whole(page)
    let_go(server)
    server.close()
    page.until(f"{STATE} === 'lost'")
    page.until("document.body.innerText.includes('IOPS when last heard')")
    assert "329" in shown(page)


def test_a_connection_that_froze_is_noticed(server: LiveServer, page: Page) -> None:
    """Of a tunnel, or of a computer that slept, nobody says that it is over."""
    play(server.feed)
    page.open(server.url)
    require_whole(page)
    page.value("window.real = Date.now; Date.now = () => window.real() + 60000; 0")
    wait_until(lambda: server.feed.count == 2)  # the other end of the old one is noticed by the next write
    page.until(f"{STATE} === 'running'")
    require_whole(page)


def test_who_is_refused_tries_again(server: LiveServer, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MOST_CLIENTS", 0)
    page.open(server.url)
    page.until(f"{STATE} === 'lost'")
    monkeypatch.setattr(servers, "MOST_CLIENTS", 1)
    page.until(f"{STATE} === 'running'")


def test_hours_of_a_load_and_1000_verdicts_are_loaded_again(server: LiveServer, page: Page) -> None:
    step(server.feed)
    server.feed.publish(Topic.LOAD, {"at_ms": now_ms() - 9_000_000, **LOAD})
    verdict(server.feed, "fail", "the first")
    for number in range(2 * feeds.MOST_POINTS):
        figures(server.feed, number, number, at_ms=now_ms() - 1000 * (2 * feeds.MOST_POINTS - number))
        verdict(server.feed, "pass", str(number))
    page.open(server.url)
    page.until(f"{CARDS} === '3,599,3,599'")
    page.until("document.querySelectorAll('#verdicts li').length === 1000")
    assert "fail the first" in page.value("document.querySelector('.verdicts li').innerText")
    assert page.value("document.querySelectorAll('.card path.trace').length") == 2
    assert page.complaints == []


@pytest.mark.parametrize(("loads", "turns"), [(20, 20), (21, 0)])
def test_many_marks_are_no_fence(server: LiveServer, page: Page, loads: int, turns: int) -> None:
    step(server.feed)
    for number in range(loads):
        server.feed.publish(Topic.LOAD, {"at_ms": now_ms() - 500 * (loads - number), **LOAD})
        figures(server.feed, 300, 300, at_ms=now_ms() - 500 * (loads - number) + 100)
    page.open(server.url)
    page.until(f"{CARDS} === '300,300'")
    assert page.value("document.querySelectorAll('.card:first-child .turn').length") == turns


def test_another_step_does_not_have_the_figures_of_the_last_one(server: LiveServer, page: Page) -> None:
    play(server.feed)
    page.open(server.url)
    require_whole(page)
    step(server.feed, what="drivex2: purge")
    page.until(f"{CARDS} === '–,–'")
    text = shown(page)
    assert "drivex2: purge" in text
    assert "round" not in text


def test_odd_figures_are_said_plainly(server: LiveServer, page: Page) -> None:
    page.open(server.url)
    step(server.feed, expected_s=5, ends_ms=1_000_000_000_000, steady=None, brief="", sentence="")
    server.feed.publish(
        Topic.LOAD,
        {
            "at_ms": now_ms(),
            **LOAD,
            "limit": None,
            "limit_text": "",
            "published": None,
            "published_text": "",
            "rounds": 0,
        },
    )
    server.feed.publish(Topic.STRIP, {"at_ms": now_ms(), "iops": [0, 5_430_000], "bytes_written": 0, "rounds": 0})
    page.until(f"{CARDS} === '0,5.43M'")
    text = shown(page)
    for word in (
        "(planned: 0:05)",
        "left in all\nlonger than planned",
        "steadiness\nnot judged yet",
        "have neither a limit nor",
    ):
        assert word in text, text
    for word in ("round", "NaN", "undefined", "null", "Infinity"):
        assert word not in text, text
    # What is long ago is not now; nor is what nobody told.
    for old in ({"at_ms": now_ms() - 4_000_000, "iops": [7, 7]}, {"at_ms": now_ms(), "iops": []}):
        server.feed.publish(Topic.STRIP, {**old, "bytes_written": 0, "rounds": 0})
        page.until(f"{CARDS} === '–,–'")
        figures(server.feed, 7, 7)
        page.until(f"{CARDS} === '7,7'")


def test_who_listens_is_told_what_matters_and_no_more(server: LiveServer, page: Page) -> None:
    page.open(server.url)
    page.until(f"{STATE} === 'running'")
    watch = """window.said = []; new MutationObserver(() => said.push(spoken.textContent)).observe(
      spoken = document.getElementById('spoken'), {childList: true}); 0"""
    page.value(f"let spoken; {watch}")
    threading.Event().wait(1.5)  # what came before the page was there is not read out
    step(server.feed)
    for number in range(100):
        server.feed.publish(Topic.LOAD, {"at_ms": now_ms(), **LOAD})
        figures(server.feed, number, 1)
        verdict(server.feed, "fail" if number == 50 else "pass", "one")
    page.until(f"{SPOKEN}.includes('steady IOPS: fail one')")
    said = page.value("said.join('; ')")
    for word in ("more verdict", "now drivex2: randread_4k_qd8"):
        page.until(f"said.join('; ').includes('{word}')")
    assert page.value("said.length") <= 3, said
    # What came since waits until it is time to speak again.
    page.value("window.at = Date.now(); Date.now = () => window.at; 0")
    before = page.value("said.length")
    verdict(server.feed, "pass", "two")
    for figure in (101, 99):
        figures(server.feed, figure, 1)
        page.until(f"{CARDS} === '{figure},1'")
    assert page.value("said.length") == before
    page.value("window.at += 20000; 0")
    page.until(f"{SPOKEN} === 'one more verdict'")
    # Figures are read by who asks for them.
    names = "[...document.querySelectorAll('svg')].map((each) => each.getAttribute('aria-label'))"
    page.until(f"{names}[0] === 'SSDQ0001: 99 IOPS now, scale to 400'")
    assert page.value(f"{names}[1]").endswith("0 to 101")
    assert page.value("document.querySelectorAll('[aria-live]').length") == 1


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        threading.Event().wait(0.1)
    raise AssertionError("waited in vain")
