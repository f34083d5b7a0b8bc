"""pytest-html and Allure get what was judged; neither is needed, and neither changes what came of a test."""

from __future__ import annotations

import base64
import html
import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import allure  # noqa: F401 (pytester forgets what is first imported inside)
import matplotlib.figure  # noqa: F401
import pytest
import pytest_html.extras  # noqa: F401
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.plugin.session import attachments
from pytest_ssdqual.report.ci import junit

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

DRIVES = "--ssd-devices=lab:3"
HTML, ALLURE = "--html=out/report.html", "--alluredir=allure-results"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0002=0.6")


def rows(inner: Inner, name: str = "out/report.html") -> dict[str, dict[str, Any]]:
    """What pytest-html's page has of each test."""
    text = (inner.pytester.path / name).read_text()
    (blob,) = re.findall(r'data-jsonblob="([^"]*)"', text)
    tests = json.loads(html.unescape(blob))["tests"]
    return {test.split("::", 1)[1]: each[-1] for test, each in tests.items()}


def results(inner: Inner) -> dict[str, dict[str, Any]]:
    """Allure's result of each test."""
    found = (json.loads(path.read_text()) for path in (inner.pytester.path / "allure-results").glob("*-result.json"))
    return {each["name"]: each for each in found}


def attached(inner: Inner, result: dict[str, Any]) -> dict[str, str]:
    folder = inner.pytester.path / "allure-results"
    return {each["name"]: (folder / each["source"]).read_text() for each in result["attachments"]}


READ, WRITE = "test_iops[raid5x3-randread_4k_qd8]", "test_iops[raid5x3-randwrite_4k_qd8]"
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> str:
    """The option for a page, which is not drawn."""
    monkeypatch.setattr("pytest_ssdqual.report.html.run_page.write", lambda folder: folder / "report.html")
    return "--ssd-page=yes"


@WORKERS
def test_a_row_of_pytest_html_has_sentence_figures_and_chart(
    inner: Inner, promises: str, slow: None, page: str, workers: tuple[str, ...]
) -> None:
    inner.run(DRIVES, promises, HTML, page, "--self-contained-html", "-k", "iops", *workers).assert_outcomes(failed=2)
    (verdict,) = [each for each in inner.records("verdict") if str(each["test"]).endswith(READ)]
    row = rows(inner)[READ]
    assert row["resultsTableRow"][attachments.COLUMN].endswith(f">{verdict['sentence']}</td>")
    table, chart, link = row["extras"]
    assert table["content"].startswith(f"<p><strong>{verdict['sentence']}</strong></p><table>")
    assert "≥ 950 IOPS" in table["content"]
    drawing = base64.b64decode(chart["content"].removeprefix("data:image/svg+xml;base64,"))
    assert ET.fromstring(drawing).tag.endswith("svg")  # noqa: S314 (our own)
    folder = inner.folder()
    assert re.fullmatch(rf"\.\./ssdqual-runs/{folder.name}/report\.html#why-[\w-]+", link["content"])


OTHERS = """
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        if report.when == "call":
            mine = {"name": "Mine", "format_type": "text", "content": "mine", "mime_type": "", "extension": ""}
            report.extras = [mine]
        return report
"""


def test_only_a_broken_promise_has_a_chart(inner: Inner, promises: str) -> None:
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="1 IOPS"))
    inner.pytester.makepyfile(test_other="def test_other(): pass")
    inner.run(DRIVES, promises, "test_promises.py", "test_other.py", HTML, "-k", "other or (iops and randwrite)")
    (table,) = rows(inner)[WRITE]["extras"]
    assert "PASS by" in table["content"]
    assert rows(inner)["test_other"]["extras"] == []
    assert rows(inner)["test_other"]["resultsTableRow"][attachments.COLUMN].endswith("></td>")


@WORKERS
def test_allure_gets_description_figures_and_files(
    inner: Inner, promises: str, slow: None, workers: tuple[str, ...]
) -> None:
    inner.run(DRIVES, promises, ALLURE, "-k", "iops", *workers).assert_outcomes(failed=2)
    (verdict,) = [each for each in inner.records("verdict") if str(each["test"]).endswith(READ)]
    result = results(inner)[READ]
    assert result["status"] == "failed"
    assert result["descriptionHtml"].startswith(f"<p><strong>{verdict['sentence']}</strong></p><table>")
    labels = {each["name"]: each["value"] for each in result["labels"]}
    assert (labels["feature"], labels["severity"]) == ("steady IOPS", "critical")
    assert (labels["tag"], labels["suite"]) == ("not for acceptance", "test_promises")
    told = {each["name"]: each["value"] for each in result["parameters"] if each.get("excluded")}
    assert told.keys() == {"ssd.measured", "ssd.interval", "ssd.limit", "ssd.outcome"}
    assert (told["ssd.limit"], told["ssd.outcome"]) == ("≥ 950 IOPS", "fail")
    given = {each["name"]: each["value"] for each in result["parameters"] if not each.get("excluded")}
    assert given == {"ssd_geometry": "raid5x3", "ssd_workload": "randread_4k_qd8"}
    evidence, chart, raw = attached(inner, result).values()
    (record,) = json.loads(evidence)
    assert record.items() <= verdict.items()
    assert ET.fromstring(chart).tag.endswith("svg")  # noqa: S314 (our own)
    assert raw.split("\n") == verdict["raw"]


def test_of_a_figure_without_a_promise_it_is_said_too(inner: Inner, promises: str) -> None:
    (inner.pytester.path / "acme.toml").write_text(PRODUCT)
    inner.run(DRIVES, promises, ALLURE, "-k", "iops", "-o", "ssd_measure_unpromised=true")
    found = results(inner)[READ]
    assert found["status"] == "skipped"
    assert {each["name"]: each["value"] for each in found["labels"]}["severity"] == "minor"
    assert "steady IOPS" in found["descriptionHtml"]


def test_other_figures_are_the_same_test_to_allure_s_history(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for slow in ("SSDQ0002=0.6", "SSDQ0002=0.5"):
        monkeypatch.setenv("SIMULATED_SLOW", slow)
        inner.run(DRIVES, promises, ALLURE, "--clean-alluredir", "-k", "iops")
        found.append(results(inner)[READ])
    assert found[0]["historyId"] == found[1]["historyId"]
    assert found[0]["parameters"] != found[1]["parameters"]


def broken(*args: object) -> object:
    raise ZeroDivisionError("a <bug>\x1b[2J")


@pytest.mark.parametrize("piece", ["tables", "explained"])
def test_nothing_that_goes_wrong_changes_what_came_of_a_test(
    inner: Inner, promises: str, slow: None, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    monkeypatch.setattr(junit if hasattr(junit, piece) else attachments, piece, broken)
    result = inner.run(DRIVES, promises, HTML, ALLURE, "-k", "iops")
    result.assert_outcomes(failed=2)
    assert set(inner.outcomes().values()) == {"failure"}
    (line,) = [line for line in result.outlines if "could not be attached" in line]
    assert r"ZeroDivisionError: a <bug>\x1b[2J" in line
    assert rows(inner).keys() == {READ, WRITE} <= results(inner).keys() | {READ}


def test_only_so_many_are_drawn_beside_what_others_attach(
    inner: Inner, promises: str, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MOST_EXPLAINED", 1)
    inner.pytester.makeconftest(OTHERS)
    inner.run(DRIVES, promises, HTML, "-k", "iops")
    assert {row["extras"][0]["name"] for row in rows(inner).values()} == {"Mine"}
    assert sorted(len(row["extras"]) for row in rows(inner).values()) == [2, 3]


@pytest.mark.parametrize("without", [(), ("-p", "no:html", "-p", "no:allure_pytest")], ids=["not asked", "absent"])
def test_where_nobody_asks_nothing_is_done(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...]
) -> None:
    monkeypatch.setattr(attachments, "Attachments", broken)
    inner.run(DRIVES, promises, "-k", "iops", *without).assert_outcomes(failed=1, errors=1)
