from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.view.tables import Section, Table, sentences

SVG = '<svg viewBox="0 0 1 1" class="chart"><path d="M0 0"/></svg>'


@given(st.text(max_size=30))
def test_no_text_is_markup(text: str) -> None:
    hostile = f"<script>{text}</script>"
    page = pages.sheet(
        hostile, [hostile], [Section(hostile, sentences(hostile), table=Table((hostile,), ((hostile,),)))]
    )
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 8
    assert all(each.isprintable() for line in page.split("\n") for each in line)


def test_a_drawing_is_let_through_and_loads_nothing() -> None:
    page = pages.sheet("t", [], [Section("s", svg=SVG)])
    assert SVG in page
    assert "default-src &#39;none&#39;" in page


def test_a_drawing_alone_has_its_colours_with_it() -> None:
    root = ET.fromstring(pages.svg_file(SVG))  # noqa: S314 (our own)
    assert root.tag.endswith("}svg")
    assert "--s1:" in (root[0].text or "")
    assert (root.get("width"), root.get("height")) == ("1", "1")
    with pytest.raises(ValueError, match="no drawing"):
        pages.svg_file("<p>")
