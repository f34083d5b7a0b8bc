from __future__ import annotations

import pytest
from support.builders.evidence import claimed
from support.builders.report_page import Reader, WriteRun, judged, record

from pytest_ssdqual.report.html.run_page import write
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import failures
from pytest_ssdqual.report.view.failures import MOST_LINES, KernelDuring, KernelMessages

LINE = {"time_s": 1421.565657, "level": 3, "text": "nvme nvme0: I/O 12 QID 1 timeout"}
SHOWN = "[ 1421.565657] error: nvme nvme0: I/O 12 QID 1 timeout"


def around(raw: str, lines: int = 1, more: int = 0, *, lost: bool = False, **changed: object) -> dict[str, object]:
    log = {"lines": [{**LINE, **changed}] * lines, "more": more, "lost": lost}
    return record("environment", raw=raw, kernel=log)


def test_each_measurement_has_its_own(write_run: WriteRun) -> None:
    records = (
        around("fio/a", 2, more=7),
        around("fio/b", 0),
        around("fio/c", 0, lost=True),
        record("environment", raw="fio/d", kernel=None),
        record("environment", raw="fio/e", kernel=7),
        around("fio/other"),
    )
    known = failures.kernel_logs(RunReader.read(write_run(*records)))
    raw = ("fio/a", "fio/b", "fio/c", "fio/d", "fio/e", "explore/f.fio", "integrity/g.history")
    assert failures.kernel_during(known, raw) == KernelDuring(
        (KernelMessages("fio/a", (SHOWN, SHOWN), 7, lost=False), KernelMessages("fio/c", (), 0, lost=True)),
        silent=1,
        unread=1,
        unknown=1,
    )
    assert failures.kernel_during(known, ()) == KernelDuring((), 0, 0, 0)


def test_a_verdict_shows_so_many_lines_and_counts_the_others(write_run: WriteRun) -> None:
    known = failures.kernel_logs(
        RunReader.read(write_run(around("fio/a", 30), around("fio/b", 30, more=5), around("fio/c", 3)))
    )
    found = failures.kernel_during(known, ("fio/a", "fio/b", "fio/c")).messages
    assert [(len(each.lines), each.more) for each in found] == [(30, 0), (MOST_LINES - 30, 25), (0, 3)]


@pytest.mark.parametrize(
    "damaged",
    [7, "x", [], {}, {"lines": 3}, {"lines": [{}], "more": 0, "lost": False}, {"lines": [], "more": "9", "lost": False},
     {"lines": [{**LINE, "text": 7}], "more": 0, "lost": False}, {"lines": [None], "more": 0, "lost": False}],
)  # fmt: skip
def test_a_damaged_record_says_nothing(write_run: WriteRun, damaged: object) -> None:
    assert failures.kernel_logs(RunReader.read(write_run(record("environment", raw="fio/a", kernel=damaged)))) == {}


def page(write_run: WriteRun, **facts: object) -> str:
    broken = claimed()
    folder = write_run(record("environment", 0, raw=broken.raw[0], **facts), judged(broken))
    write(folder)
    return (folder / "report.html").read_text()


def test_the_page_shows_messages_and_escapes_them(write_run: WriteRun) -> None:
    hostile = "nvme0: </code><script>alert(1)</script>\x1b[2J" + "x" * 999
    text = page(write_run, kernel={"lines": [LINE, {**LINE, "text": hostile}], "more": 1, "lost": True})
    shown = Reader.of(text).text
    assert f"While {claimed().raw[0]} was measured: {SHOWN}" in shown
    assert "1 more message, of which" in shown
    assert "The kernel overwrote messages of that time" in shown
    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert "x" * 300 not in text


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {"kernel": {"lines": [], "more": 0, "lost": False}},
            "In 1 measurement: no message about the array",
        ),
        ({"kernel": None}, "In 1 measurement the log could not be read"),
        ({"kernel": 7}, "No kernel log is recorded for 1 measurement."),
    ],
    ids=["silent", "unread", "unknown"],
)
def test_the_page_tells_silence_from_not_knowing(write_run: WriteRun, facts: dict[str, object], said: str) -> None:
    assert said in Reader.of(page(write_run, **facts)).text
