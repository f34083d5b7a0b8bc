"""The live page of a real run in a real browser: opened, seen to move, loaded again in the middle, seen to its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakes.headless import Page, browser
from support.lab.rehearsed import BRIEF, Running, Start, await_that, drives

# What the drives do and how steady they are is not judged here.
# Not unhurried all the same: both halves of the rehearsals are to take equally long.
pytestmark = pytest.mark.lab

#: These only end what hangs, on a machine that has other work too.
RUN_S, BROWSER_S = 600.0, 900.0
STATE = "document.getElementById('state')?.dataset.state"
CARDS = "[...document.querySelectorAll('.card h3')].map((each) => each.textContent).join()"
TRACES = "document.querySelectorAll('.card path.trace').length"
SENTENCES = "[...document.querySelectorAll('.verdicts li')].map((each) => each.childNodes[1].textContent)"
#: What gauges have shown and how long strips were, as often as that changes.
WATCH = """window.seen = {gauges: new Set(), strips: new Set()};
setInterval(() => {
  const all = (name) => [...document.querySelectorAll(`.card ${name}`)];
  for (const each of all('.big')) if (each.textContent !== '–') seen.gauges.add(each.textContent);
  for (const each of all('.trace')) seen.strips.add(each.getAttribute('d'));
}, 100); 0"""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "profile", BROWSER_S) as found:
        yield found


@pytest.fixture
def lenient(tmp_path: Path) -> Path:
    """As short as others, and steady however uneven a busy computer makes it."""
    path = tmp_path / "lenient.toml"
    path.write_text(re.sub(r"(range|slope)_percent = \d+", r"\1_percent = 1000", BRIEF.read_text()))
    return path


def address(running: Running) -> str:
    found: list[str] = []

    def told() -> bool:
        assert running.process.poll() is None, running.output
        found[:] = re.findall(r"^live page: (http://\S+/)\n", running.output, re.MULTILINE)
        return bool(found)

    await_that(told, "the page's address")
    return found[0]


@pytest.mark.nightly
def test_the_page_works_through_a_whole_run(page: Page, start: Start, lenient: Path) -> None:
    start.suite, start.protocol = "suites/drive", lenient
    running = start(drives(3), "-k", "steady_state and (randread_4k_qd8 or randwrite_4k_qd8)", "--ssd-live")
    page.open(address(running))
    page.until(f"{CARDS} === 'SSDQ0001,SSDQ0002,SSDQ0003'", RUN_S)
    page.value(WATCH)
    page.until("seen.gauges.size > 2 && seen.strips.size > 2", RUN_S)
    first = page.value("document.querySelector('#log li:last-child').textContent")

    page.ask("Page.reload")
    page.until(f"typeof seen === 'undefined' && {STATE} === 'running'", RUN_S)
    page.until(f"{CARDS} === 'SSDQ0001,SSDQ0002,SSDQ0003' && {TRACES} === 3", RUN_S)
    assert page.value("document.querySelector('#log li:last-child').textContent") == first
    page.until("document.body.innerText.includes('IOPS now')", RUN_S)

    page.until("document.querySelector('.verdicts li') !== null", RUN_S)
    page.until(f"['ended', 'failed'].includes({STATE})", RUN_S)
    run = running.finish()
    text = page.value("document.getElementById('state').textContent")
    assert "has ended: 2 " in text, text
    assert str(run.folder.path) in text
    assert page.value(f"{SENTENCES}.sort()") == sorted(str(each.facts["sentence"]) for each in run.records("verdict"))
    assert page.value(STATE) == ("ended" if run.status == 0 else "failed")
    # The last word was heard, and nothing is asked for at an address that is gone.
    assert page.complaints == []
