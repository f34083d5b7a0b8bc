from __future__ import annotations

from xml.etree import ElementTree

from support.builders import charted

from pytest_ssdqual.report.drawing.figure import inline

SVG = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="504pt" viewBox="0 0 504.123 144" xmlns="http://www.w3.org/2000/svg">
 <metadata><x>matplotlib</x></metadata>
 <defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
 <g id="figure_1"><g id="told-0">
  <defs><path id="m1" d="M 0 0.04 &#10;L 3.456 -0.01 &#10;z&#10;" style="stroke: #0100f1"/></defs>
  <g clip-path="url(#p1)">
   <use xlink:href="#m1" x="72.98" y="115.2" style="fill: #010101; stroke-opacity: 1"/>
   <use xlink:href="#m1" x="80" y="115.2"/>
  </g>
 </g></g>
 <g id="told-1"><path d="M 0 0 L 1 1" clip-path="url(#p1)" style="fill: url(#p1)"/></g>
 <text style="font-size: 9px; font-family: 'DejaVu Sans'; fill: #0100A1" transform="rotate(-0 1.2 3.4)">5 &lt; 6</text>
 <defs><clipPath id="p1"><rect x="1.23" y="2" width="3" height="4"/></clipPath></defs>
</svg>"""


TOLD = {"told-0": ["one", "two"], "told-1": ["x", "y"]}
MADE = charted.parsed(inline(SVG, "k-1", "A < B", 'said "so"', TOLD))


def test_only_what_is_referred_to_has_an_id_and_it_is_ours() -> None:
    ids = [each.get("id") for each in MADE.iter() if each.get("id")]
    assert sorted(map(str, ids)) == ["k-1-0", "k-1-1", "k-1-d", "k-1-t"]
    assert [each.get("href") for each in MADE.iter("use")] == ["#k-1-1", "#k-1-1"]
    assert MADE.findall(".//*[@clip-path='url(#k-1-0)']")
    assert MADE.findall(".//path[@style='fill:url(#k-1-0)']")


def test_no_prolog_style_sheet_metadata_or_address_is_left() -> None:
    text = ElementTree.tostring(MADE, encoding="unicode")
    assert text.startswith("<svg viewBox=")
    for each in (
        "<?xml",
        "DOCTYPE",
        "http",
        "xlink",
        "metadata",
        "<style",
        "font-family: ",
        "504pt",
        "#0100",
        "rotate",
    ):
        assert each not in text


def test_colours_become_names_and_places_are_rounded() -> None:
    (path,) = MADE.findall(".//path[@id]")
    assert (path.get("d"), path.get("style")) == ("M0 0L3.5 0 z", "stroke:var(--s1)")
    assert [each.get("x") for each in MADE.iter("use")] == ["73", "80"]
    assert MADE.findall(".//use[@style='fill:currentColor']")
    (text,) = MADE.iter("text")
    assert text.get("style") == "font-size:9px;fill:var(--limit)"


def test_it_is_read_out() -> None:
    assert (MADE.get("role"), MADE.get("aria-labelledby")) == ("img", "k-1-t k-1-d")
    assert [(each.tag, each.text) for each in MADE[:2]] == [("title", "A < B"), ("desc", 'said "so"')]


def test_points_have_words_unless_some_of_them_were_not_drawn() -> None:
    assert [each.findtext("title") for each in MADE.iter("use")] == ["one", "two"]
    assert [each.text for each in MADE.iter("title")] == ["A < B", "one", "two"]
