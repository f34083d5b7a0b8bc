"""The page in a browser: what its script adds, and what a phone and a keyboard get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.builders import charted
from support.builders.report_page import WriteRun
from support.fakes import headless

from pytest_ssdqual.report.html.run_page import write
from pytest_ssdqual.report.run_folder.journal import SCHEMA

TOOLBARS = "[...document.querySelectorAll('.tools')]"


def page(write_run: WriteRun) -> str:
    """With two charts, one of them with the words of drives that have long names."""
    records = [charted.outlier("S" * 90), charted.depths()]
    head = {"schema": SCHEMA, "writer": "main"}
    folder = write_run(*({**head, "kind": each.kind, "time": each.time, **each.facts} for each in records))
    return write(folder).as_uri()


def test_charts_can_be_zoomed_and_moved_by_keyboard(write_run: WriteRun, tmp_path: Path) -> None:
    with headless.browser(tmp_path / "profile") as tab:
        tab.open(page(write_run))
        tab.until("document.readyState === 'complete'")
        stops = tab.value(f"{TOOLBARS}.map(bar => [...bar.children].filter(each => each.tabIndex === 0).length)")
        assert stops == [1] * len(stops)
        assert len(stops) == tab.value("document.querySelectorAll('svg.chart').length") >= 2
        names = tab.value(f"{TOOLBARS}.map(bar => bar.getAttribute('aria-label'))")
        assert all(each.startswith("Zoom: ") and len(each) > 20 for each in names)
        press = "new KeyboardEvent('keydown', {bubbles: true, key: %s, shiftKey: %s})"
        box = "document.querySelector('svg.chart').getAttribute('viewBox').split(' ').map(Number)"
        tab.value("document.querySelector('.tools button').focus()")
        whole = tab.value(box)
        tab.value("document.activeElement.click()")
        zoomed = tab.value(box)
        assert zoomed[2] < whole[2]
        tab.value(f"document.activeElement.dispatchEvent({press % (json.dumps('ArrowRight'), 'true')}) && 0")
        assert tab.value(box)[0] > zoomed[0]
        tab.value(f"document.activeElement.dispatchEvent({press % (json.dumps('ArrowLeft'), 'false')}) && 0")
        assert tab.value("document.activeElement.textContent") == "Reset"
        tab.value("dispatchEvent(new Event('beforeprint')) && 0")
        assert tab.value(box) == pytest.approx(whole, abs=0.01)
        assert tab.complaints == []


def test_on_a_phone_charts_are_legible_and_the_page_fits(write_run: WriteRun, tmp_path: Path) -> None:
    with headless.browser(tmp_path / "profile") as tab:
        tab.ask("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        tab.open(page(write_run))
        tab.until("document.readyState === 'complete'")
        assert tab.value("document.documentElement.scrollWidth") <= 390
        # A point of the drawing in pixels, times the least size of its words.
        least = "svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width * 8.5"
        assert min(tab.value(f"[...document.querySelectorAll('svg.chart')].map({least})")) >= 10
