"""``--ssd-live``: the page of a run that goes on, and the same under xdist."""

from __future__ import annotations

import json
import math
import re
import socket
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from support.builders.sheet import lab_with_every_depth

from pytest_ssdqual.live.feed import Feed
from pytest_ssdqual.live.server import LiveServer
from pytest_ssdqual.plugin.options import settings
from pytest_ssdqual.plugin.watch import live_page
from pytest_ssdqual.plugin.watch.live_page import LivePageFeed, ending
from pytest_ssdqual.qual.progress_events import Begun, Idle, LoadBegun, Now, Planned, ProgressStep, RunProgress
from pytest_ssdqual.report.html.page import REPORT

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

SOME = ("-k", "iops or p99")


class Window:
    """An open page: reads the stream of a server that is about to start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._threads: list[threading.Thread] = []
        real = LiveServer.__init__

        def opened(server: LiveServer, feed: Feed, port: int = 0, word: str | None = None) -> None:
            real(server, feed, port, word)
            self._threads.append(threading.Thread(target=self._read, args=(server.url,)))
            self._threads[0].start()

        monkeypatch.setattr(LiveServer, "__init__", opened)

    def _read(self, url: str) -> None:
        with urllib.request.urlopen(f"{url}events", timeout=60) as stream:  # noqa: S310
            name = ""
            for line in stream:
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                name = rest if word == "event" else name
                if word == "data":
                    self.events.append((name, json.loads(rest)))

    def of(self, name: str) -> list[dict[str, Any]]:
        """What was heard until the stream ended."""
        for each in self._threads:
            each.join(60)
        return [facts for found, facts in self.events if found == name]


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Window:
    return Window(monkeypatch)


def require_whole(window: Window, inner: Inner, bay: str) -> None:
    """That somebody who watched from the first moment saw everything."""
    (run,) = window.of("run")[-1:]
    assert "protocol quick" in run["about"]
    loads = window.of("load")
    assert [each["phase"] for each in loads][:3] == ["fill", "precondition", "measure"]
    measured = loads[2]
    assert (measured["geometry"], measured["devices"]) == ("raid5x3", ["raid5x3"])
    assert measured["limit"] > 0
    figures = window.of("strip")
    assert figures
    assert all(each["iops"][0] > 0 for each in figures)
    assert {each["bay"] for each in window.of("strip")} == {bay}
    judged = [facts["sentence"] for name, facts in window.events if name in ("verdict", "failed")]
    assert judged == [each["sentence"] for each in inner.records("verdict")]
    tally = window.of("tally")[-1]
    assert sum(tally["verdicts"].values()) == len(judged)
    assert sum(tally["tests"].values()) == tally["total"] > 0
    assert any("purge" in each["text"] for each in window.of("log"))
    assert any(each["steady"] for each in window.of("bay"))


def test_a_run_is_watched_from_its_beginning_to_its_end(
    inner: Inner, promises: str, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_TAKES", "0.4")
    monkeypatch.setattr("pytest_ssdqual.plugin.watch.observers.PAGE_PERIOD_S", 0.02)
    result = inner.run("--ssd-devices=lab:3", promises, *SOME, "--ssd-live")
    result.stdout.fnmatch_lines(["live page: http://127.0.0.1:*/*/"])
    require_whole(window, inner, "")
    (ended,) = window.of("ended")
    assert ended["text"].startswith("The run has")
    folder = inner.folder()
    assert str(folder) in ended["text"]
    assert ended["good"] == (result.ret == 0)


def test_under_xdist_too(
    inner: Inner,
    promises: str,
    window: Window,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SIMULATED_TAKES", "0.4")
    monkeypatch.setattr("pytest_ssdqual.plugin.watch.observers.PAGE_PERIOD_S", 0.05)
    inner.run("--ssd-devices=lab:3", promises, *SOME, "--ssd-live", "-n1")
    require_whole(window, inner, "gw0")
    assert len(window.of("ended")) == 1
    # While it went on, not at the end.
    heard = [name for name, _ in window.events]
    assert heard.index("strip") < heard.index("verdict")
    # Past pytest's capturing, so it is the outer session's.
    assert re.search(r"^ssdqual: raid5x3: .*\(\d+% done\)$", capfd.readouterr().out, re.MULTILINE)
    folder = inner.folder()
    assert not list(folder.glob(".live*"))


MANY = """
    import pytest
    from pytest_ssdqual import Workload

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_array("raid5")
    @pytest.mark.ssd_workload(*(Workload("randread", "4k", depth) for depth in (1, 2, 4, 8, 16)))
    def test_iops(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)
"""


def test_what_goes_wrong_in_many_tests_is_one_line_with_a_count(
    inner: Inner, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_BROKEN", "raid5x3")
    inner.pytester.makepyfile(test_many=MANY)
    inner.run("--ssd-devices=lab:3", lab_with_every_depth(inner.pytester.path), "--ssd-live")
    assert list(inner.outcomes().values()) == ["error"] * 5
    told = [each["text"] for each in window.of("log") if "refused" in each["text"] or "more" in each["text"]]
    refused = "fio on lab was refused by /dev/md100"
    assert [re.sub(r"^test_many\S+: ", "", each) for each in told] == [
        refused,
        f"raid5x3 was not built: {refused}",
        "the same error in 3 more tests",
    ]


def test_quiet_still_tells_the_address(inner: Inner, promises: str) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, *SOME, "--ssd-live", "-q")
    result.stdout.fnmatch_lines(["*page: http://127.0.0.1:*/*/"])


def test_without_the_option_nothing_listens(inner: Inner, promises: str, window: Window) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, *SOME)
    assert "live page" not in result.stdout.str()
    assert window.of("run") == []


def test_a_collection_is_not_worth_a_page(inner: Inner, promises: str, window: Window) -> None:
    inner.run("--ssd-devices=lab:3", promises, "--collect-only", "--ssd-live")
    assert window.of("run") == []


@pytest.mark.parametrize("port", ["suites/raid5", "-1", "65536", "8080x", "", "١٢"])
def test_what_is_no_port_is_a_sentence(port: str) -> None:
    config = cast("Any", SimpleNamespace(getoption=lambda name: port))
    with pytest.raises(pytest.UsageError, match=f"^--ssd-live={port}: .* 65535"):
        settings.live_port(config)


@pytest.mark.parametrize(("given", "found"), [(None, None), ("0", 0), ("65535", 65535)])
def test_a_port_is_a_number(given: str | None, found: int | None) -> None:
    assert settings.live_port(cast("Any", SimpleNamespace(getoption=lambda name: given))) == found


def test_a_test_behind_the_option_is_not_taken_for_a_port(inner: Inner, promises: str) -> None:
    assert "write a port" in inner.refused("--ssd-devices=lab:3", promises, "--ssd-live", "test_promises.py")


def test_a_taken_port_is_refused_before_any_drive_is_touched(inner: Inner, promises: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = inner.refused("--ssd-devices=lab:3", promises, f"--ssd-live={port}")
    assert refused.startswith(f"--ssd-live={port}: port {port} of")
    assert not (inner.pytester.path / "ssdqual-runs").exists()


def test_the_ending_says_how_it_went_and_where_to_look(tmp_path: Path) -> None:
    assert ending({"passed": 3, "error": 1}, 1, None).endswith("3 passed, 1 error.")
    assert ending({"failed": 2}, 2, tmp_path).endswith(f" {tmp_path}.")
    (tmp_path / REPORT).write_text("")
    assert ending({}, 5, tmp_path).endswith(f" {tmp_path / REPORT}.")


def shown(**facts: object) -> tuple[LivePageFeed, Callable[[], list[tuple[str, dict[str, Any]]]]]:
    """What tells the page of a run, and what a page that is opened now is told."""
    feed = Feed()
    run: Any = SimpleNamespace(
        name="", bay=SimpleNamespace(drives=[SimpleNamespace(model="ACME", **facts)], machine="dut"), journal=None,
        spec=SimpleNamespace(name="acme", limit=lambda *about: None, published=lambda *about: None),
        protocol=SimpleNamespace(name="quick"), acceptance=False,
    )  # fmt: skip

    def told() -> list[tuple[str, dict[str, Any]]]:
        blocks = (feed.join().next(0) or b"").decode().split("\n\n")
        parts = [re.fullmatch(r"event: (\w+)\ndata: (.*)", block) for block in blocks if block]
        return [(part[1], json.loads(part[2])) for part in parts if part]

    return LivePageFeed(cast("Any", SimpleNamespace(feed=feed)), [run], None), told


def texts(told: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [facts["text"] for name, facts in told if name == "log"]


def test_the_same_trouble_of_many_tests_is_told_once() -> None:
    page, told = shown()
    for number in range(800):
        page.wrong(f"test_{number}", "only 58 I/Os in the window")
    assert texts(told()) == ["test_0: only 58 I/Os in the window"]
    page.wrong("test_other", "ssh is gone")
    page.wrong("test_last", "ssh is gone")
    page.end({"error": 802}, 1)
    assert texts(told()) == [
        "test_0: only 58 I/Os in the window", "the same error in 799 more tests", "test_other: ssh is gone",
        "the same error in 1 more test",
    ]  # fmt: skip


def test_tests_that_measure_nothing_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "TALLY_S", math.inf)
    page, told = shown()
    events = RunProgress([page.take])
    events.take(Begun("raid5x3: fill", 5), "", 0)
    events.take(Idle(), "", 1)
    (before,) = [facts for name, facts in told() if name == "bay"]
    client = page.server.feed.join()
    client.next(0)
    for second in range(5000):
        events.take(Idle(), "", second)
        page.counted({"passed": second}, 5000)
    assert client.next(0) == b""
    page.end({"passed": 5000}, 0)
    assert [facts for name, facts in told() if name == "bay"] == [before]
    assert [facts["tests"] for name, facts in told() if name == "tally"] == [{"passed": 4999}]


def test_steps_that_follow_each_other_are_one_line_of_the_log() -> None:
    page, told = shown()
    events = RunProgress([page.take])
    for second in range(30):
        events.take(Begun("raid5x3: precondition", 5), "", second)
    events.take(Begun("raid5x3: create", 5), "", 31)
    assert texts(told()) == ["raid5x3: precondition", "raid5x3: create"]


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_figures_that_are_none_end_nothing(monkeypatch: pytest.MonkeyPatch, odd: float) -> None:
    page, told = shown()
    events = RunProgress([page.take])
    for news in (Planned(odd), Begun("fill", odd), LoadBegun("fill", "raid5x3", "", ("raid5x3",)), Now(1, (odd,), 7)):
        events.take(news, "", 0)
    monkeypatch.setattr(page._spec(""), "limit", lambda *about: SimpleNamespace(bound=odd, source="acme.toml"))
    events.take(LoadBegun("measure", "raid5x3", "randread_4k_qd8", ("raid5x3",)), "", 0)
    assert [facts["limit"] for name, facts in told() if name == "load"] == [None, None]
    assert "strip" not in [name for name, _ in told()]
    events.take(Now(2, (5.0,), 7), "", 2)
    assert [facts["iops"] for name, facts in told() if name == "strip"] == [[5.0]]


def test_what_begins_beside_a_glance_does_not_get_lost() -> None:
    page, _ = shown()
    events = RunProgress([page.take])
    events.take(Planned(9e9), "", 0)
    ended = threading.Event()

    def glance() -> None:
        while not ended.is_set():
            events.take(Now(1, (5.0,), 7), "", 0)

    thread = threading.Thread(target=glance)
    thread.start()
    try:
        for number in range(2000):
            events.take(Begun(f"step {number}", 1), "", 0)
            assert events.bays[""].step == ProgressStep(f"step {number}", 1, 0)
    finally:
        ended.set()
        thread.join()


def test_hostile_words_are_made_printable() -> None:
    """The page takes them as text; that they are fit to be read is our business."""
    feed = Feed()
    drive = SimpleNamespace(model="\x1b]0;owned\x07")
    run: Any = SimpleNamespace(
        bay=SimpleNamespace(drives=[drive], machine="dut"), spec=SimpleNamespace(name="a\nb"), journal=None,
        name="", protocol=SimpleNamespace(name="quick"), acceptance=False,
    )  # fmt: skip
    shown = LivePageFeed(cast("Any", SimpleNamespace(feed=feed)), [run], None)
    shown.log("drive \x1b[2J says <b>\u202ehi</b>")
    sent = (feed.join().next(0) or b"").decode()
    assert "owned" in sent
    assert not {"\\u001b", "\\u202e", "\\n"} & set(re.findall(r"(?<!\\)\\(?:u\w{4}|n)", sent))
