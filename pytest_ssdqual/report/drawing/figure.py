"""A figure during drawing: matplotlib set up so that the result does not depend on machine or user, and its SVG.

Only matplotlib's object interface is used, never pyplot, whose state is global; settings apply inside ``drawing`` only.
The SVG becomes a part of a page: no prolog, colours by name, ids of its own, and texts for screen readers.

Colours are names in the picture and values in ``html/templates/palette.css``, for light and dark paper. The series
derive from Okabe and Ito's set for all kinds of colour vision (2008), of which orange, sky blue and yellow have too
little contrast on white (2.2, 2.3 and 1.3 to 1), blue and black on dark. These are shades of the same hues, moved until
each has at least 3 to 1 on its paper (WCAG 2.1, 1.4.11) and any two of them, limit, published figure and ink included,
differ by at least 17 in CIELAB, also for people who lack one kind of cone (Machado, Oliveira, Fernandes 2009). Series
also differ in dash and marker.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import tempfile
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.report.drawing.chart import printable
from pytest_ssdqual.report.drawing.scales import WIDTH_IN

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: What matplotlib draws with, and what becomes of it. Each stands for nothing else, so none can be missed.
INK, LIMIT, PUBLISHED, BAND = "#010101", "#0100a1", "#0100a2", "#0100a3"
SERIES = tuple(f"#0100f{index}" for index in range(1, 9))
#: Outcomes, in the hues that tables of pages have for them.
GOOD, OPEN, BAD = SERIES[2], SERIES[1], LIMIT
VARIABLES: Mapping[str, str] = {
    INK: "currentColor",
    LIMIT: "var(--limit)",
    PUBLISHED: "var(--published)",
    BAND: "var(--band)",
    **{colour: f"var(--s{index})" for index, colour in enumerate(SERIES, start=1)},
}
#: Besides the colour, for those who do not see it and for print.
DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.4)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1)),
    (0, (8, 2)),
    (0, (2, 2)),
    (0, (9, 1.5, 1.2, 1.5, 1.2, 1.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


_DECIMAL = re.compile(r"-?\d+\.\d+")
#: Names of the namespaces, and blanks between elements.
_DROPPED_TEXT = re.compile(r'\s+xmlns(?::\w+)?="[^"]*"|(?<=\s)xlink:(?=href=)|(?<=>)\s+(?=<)')
#: An id, behind ``url(#`` or as a whole attribute.
_LINK = re.compile(r"(?<=^#)[^)]+|(?<=url\(#)[^)]+")
#: Attributes that hold nothing but coordinates.
_PLACES = frozenset({"d", "x", "y", "transform", "points", "width", "height", "viewBox", "x1", "x2", "y1", "y2"})
#: The page's own font is used, and what is the same everywhere is written once, at the root.
_DROPPED = frozenset({"font-family", "stroke-linejoin", "stroke-linecap"})
_ROOT = {
    "class": "chart",
    "role": "img",
    "stroke-linejoin": "round",
    "font-family": "inherit",
}


def colour(index: int) -> str:
    """Return the colour of the n-th series for matplotlib; the ninth is that of the first."""
    return SERIES[index % len(SERIES)]


def inline(svg: str, key: str, title: str, desc: str, tooltips: Mapping[str, Sequence[str]]) -> str:
    """Return the drawing as an ``<svg>`` element for a page of many of them.

    ``tooltips`` has texts of points by the id of their group: a browser shows a ``<title>`` under the pointer without a
    script. Unused ids are dropped, the others begin with ``key``. Coordinates are rounded to a tenth of a point, less
    than a pixel.
    """
    from xml.etree import ElementTree

    root = ElementTree.fromstring(_DROPPED_TEXT.sub("", svg))  # noqa: S314 (matplotlib wrote it, a moment ago)
    _add_tooltips(root, tooltips)
    linked = (name for element in root.iter() for value in element.attrib.values() for name in _LINK.findall(value))
    names = {name: f"{key}-{index}" for index, name in enumerate(dict.fromkeys(linked))}
    for element in root.iter():
        rewritten = {name: _rewritten(name, value, names) for name, value in element.attrib.items()}
        element.attrib = {name: value for name, value in rewritten.items() if value}
    kept = _flat(root)
    box = root.get("viewBox", "")
    root.clear()
    root.attrib.update({"viewBox": box, **_ROOT, "aria-labelledby": f"{key}-t {key}-d"})
    for tag, words in (("title", title), ("desc", desc)):
        ElementTree.SubElement(root, tag, {"id": f"{key}-{tag[0]}"}).text = words
    root.extend(kept)
    return ElementTree.tostring(root, encoding="unicode")


def _add_tooltips(root: Element, tooltips: Mapping[str, Sequence[str]]) -> None:
    """Add a ``<title>`` for every point of the groups; none if a group was drawn only in part."""
    from xml.etree.ElementTree import SubElement

    for group in root.iter("g"):
        words = tooltips.get(group.get("id", ""))
        if not words:
            continue
        points = list(group.iter("use")) or [each for each in group.iter("path") if "clip-path" in each.attrib]
        if len(points) == len(words):
            for point, each in zip(points, words, strict=True):
                SubElement(point, "title").text = each


def _rewritten(name: str, value: str, names: Mapping[str, str]) -> str:
    """Return the value of an attribute with its links renamed; empty if it is not needed."""
    if name == "id":
        return names.get(value, "")
    value = _LINK.sub(lambda link: names[link[0]], value)
    if name == "style":
        return _style(value)
    return _rounded(value) if name in _PLACES else value


def _style(text: str) -> str:
    """Return declarations with colours by name, as one attribute, because other attributes do not know ``var()``."""
    kept = []
    for part in text.split(";"):
        name, _, value = part.strip().partition(": ")
        if name and name not in _DROPPED and (name, value) != ("stroke-opacity", "1"):
            kept.append(f"{name}:{VARIABLES.get(value.lower(), value)}")
    return ";".join(kept)


def _rounded(text: str) -> str:
    """Return coordinates with a digit; empty for a rotation by nothing."""

    def shorter(decimal: re.Match[str]) -> str:
        number = f"{float(decimal[0]):.1f}".removesuffix(".0")
        return "0" if number == "-0" else number

    shown = re.sub(r" ?([A-Za-z]) ", r"\1", " ".join(_DECIMAL.sub(shorter, text.replace("(-0 ", "(0 ")).split()))
    return "" if shown.startswith("rotate(0") else shown


def _flat(element: Element) -> list[Element]:
    """Return the children without empty groups, and with the definitions that are used.

    Style sheets among these are dropped, as they would apply to the whole page.
    """
    kept: list[Element] = []
    for child in element:
        child[:] = _flat(child)
        if child.tag == "defs":
            child[:] = [definition for definition in child if "id" in definition.attrib]
        if child.tag == "g" and not child.attrib:
            kept.extend(child)
        elif child.tag != "metadata" and (child.tag != "defs" or len(child)):
            kept.append(child)
    return kept


#: Points with words of their own, in all of a chart.
MOST_TOLD = 200
#: Room for the labels of a scale and its name.
LEFT_IN = 0.85
#: Of the text in a legend at its size, on average; DejaVu Sans is wider than the fonts that browsers choose.
CHARACTER_IN, HANDLE_IN, ROW_IN = 0.073, 0.48, 0.165
#: Of characters as wide as they are high: Chinese, Japanese, Korean ones, and the dots of a shortened serial number.
WIDE_IN = 0.118

#: Settings of matplotlib.
STYLE = Path(__file__).with_name("chart.mplstyle")


@contextmanager
def drawing() -> Iterator[None]:
    """Apply matplotlib's defaults and those of this package; a user's style files are ignored.

    Characters that the font lacks are no problem: the browser draws the text.
    """
    _import()
    from matplotlib import style

    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _import() -> None:
    """Load matplotlib with a cache folder: the usual one, or a temporary one if the home is not writable.

    It would choose one itself, but with a message on the terminal each time.
    """
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ or _is_writable_home():
        return
    with tempfile.TemporaryDirectory(prefix="ssdqual-matplotlib-") as folder:
        os.environ["MPLCONFIGDIR"] = folder
        try:
            # A slow computer builds the cache of fonts for more than 5 s, of which matplotlib would warn in each run.
            logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
            import matplotlib.font_manager  # noqa: F401 (it decides about its folders now)
        finally:
            del os.environ["MPLCONFIGDIR"]


def _is_writable_home() -> bool:
    try:
        home = Path.home()
    except RuntimeError:  # neither $HOME nor an entry in the password file
        return False
    return os.access(home, os.W_OK | os.X_OK)


@dataclass(slots=True)
class Plate:
    """A figure with its legend and the texts of its points."""

    figure: Figure
    height_in: float
    _legend: list[tuple[Artist, str]] = field(default_factory=list)
    _tooltips: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, height_in: float = 3.3) -> Plate:
        """Return a figure of this height; inside ``drawing`` only."""
        from matplotlib.figure import Figure

        return cls(Figure(figsize=(WIDTH_IN, height_in)), height_in)

    def axes(self, x_label: str, y_label: str, *, rows: int = 1, row: int = 0, right: bool = False) -> Axes:
        """Add axes of full width, in rows from the top; ``right`` leaves room for a second scale."""
        height, gap = 1 / rows, 0.35 / self.height_in if rows > 1 else 0.0
        bottom, top = 0.5 / self.height_in, 0.12 / self.height_in
        room = 1 - bottom - top - gap * (rows - 1)
        at = bottom + (rows - 1 - row) * (room * height + gap)
        axes = self.figure.add_axes(
            (LEFT_IN / WIDTH_IN, at, 1 - (LEFT_IN + (0.75 if right else 0.2)) / WIDTH_IN, room * height)
        )
        axes.set_xlabel(printable(x_label))
        axes.set_ylabel(printable(y_label))
        axes.grid(visible=True)
        return axes

    def second(self, axes: Axes, y_label: str) -> Axes:
        """Add a second scale at the right."""
        twin = axes.twinx()
        twin.spines["right"].set_visible(True)
        twin.set_ylabel(printable(y_label))
        return twin

    def entry(self, artist: Artist, words: str) -> None:
        """Add a line to the legend; each text once, an empty one never."""
        if words and printable(words) not in [each for _, each in self._legend]:
            self._legend.append((artist, printable(words)))

    def add_tooltips(self, artist: Artist, words: Sequence[str]) -> None:
        """Set the texts of an artist's points; none if there are too many."""
        if words and sum(map(len, self._tooltips.values())) + len(words) <= MOST_TOLD:
            name = f"tooltip-{len(self._tooltips)}"
            artist.set_gid(name)
            self._tooltips[name] = tuple(printable(each, 120) for each in words)

    def svg(self, key: str, title: str, desc: str) -> str:
        """Return the figure with its legend on top; see ``inline``."""
        # What is promised and what is published come last, wherever they were drawn first.
        self._legend.sort(key=lambda entry: entry[1].startswith(("promised", "published")))
        self._place_legend()
        file = io.StringIO()
        self.figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        return inline(file.getvalue(), key, printable(title, 200), printable(desc, 500), self._tooltips)

    def _place_legend(self) -> None:
        """Put the legend above the axes, in columns for its longest text, and enlarge the figure by its height."""
        if not self._legend:
            return
        columns = _columns([HANDLE_IN + _width_in(words) for _, words in self._legend])
        extra = ROW_IN * -(-len(self._legend) // columns) + 0.1
        share = self.height_in / (self.height_in + extra)
        self.figure.set_size_inches(WIDTH_IN, self.height_in + extra)
        boxes = [axes.get_position(original=True) for axes in self.figure.axes]
        for axes, box in zip(self.figure.axes, boxes, strict=True):  # twins move together
            axes.set_position((box.x0, box.y0 * share, box.width, box.height * share))
        self.figure.legend(
            [artist for artist, _ in self._legend], [words for _, words in self._legend], loc="upper left",
            bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False, borderaxespad=0.2, handlelength=2.4,
            labelspacing=0.35, columnspacing=1.2, handletextpad=0.5,
        )  # fmt: skip


def _width_in(words: str) -> float:
    wide = sum(each in "…—" or unicodedata.east_asian_width(each) in "WF" for each in words)
    return WIDE_IN * wide + CHARACTER_IN * (len(words) - wide)


def _columns(widths_in: Sequence[float]) -> int:
    """Return the maximum number of columns that fit; matplotlib fills them downwards."""
    for columns in range(len(widths_in), 1, -1):
        least, more = divmod(len(widths_in), columns)
        ends = [index * least + min(index, more) for index in range(columns + 1)]
        if sum(max(widths_in[begin:end]) for begin, end in pairwise(ends)) <= WIDTH_IN - 0.2:
            return columns
    return 1
