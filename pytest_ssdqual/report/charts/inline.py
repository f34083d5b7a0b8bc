"""matplotlib's SVG file made a piece of a page: no prolog, no colours, no ids but its own, and words to be read out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ssdqual.report.charts.palette import VARIABLES

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DECIMAL = re.compile(r"-?\d+\.\d+")
_LINK = re.compile(r"url\(#([^)]+)\)")
#: Attributes that hold nothing but coordinates.
_PLACES = frozenset({"d", "x", "y", "transform", "points", "width", "height", "viewBox", "x1", "x2", "y1", "y2"})
#: The page's own font is used, and what is the same everywhere is said once, at the root.
_DROPPED = frozenset({"font-family", "stroke-linejoin", "stroke-linecap"})
_ROOT = {
    "class": "chart",
    "role": "img",
    "stroke-linejoin": "round",
    "font-family": "inherit",
}


def inline(svg: str, key: str, title: str, desc: str, told: Mapping[str, Sequence[str]]) -> str:
    """The drawing as an ``<svg>`` element for a page of many of them.

    ``told`` says what points are, by the id of the group that they were drawn in: a browser shows a ``<title>`` when
    the pointer is over its element, without a script. Ids that nothing refers to are dropped, the others begin with
    ``key``. Coordinates are rounded to a tenth of a point, less than a pixel.
    """
    from xml.etree import ElementTree

    root = ElementTree.fromstring(svg)  # noqa: S314 (matplotlib wrote it, a moment ago)
    _without_namespaces(root)
    _tell(root, told)
    names = {name: f"{key}-{index}" for index, name in enumerate(dict.fromkeys(_referenced(root)))}
    for element in root.iter():
        _rewrite(element, names)
    kept = _flat(root)
    box = root.get("viewBox", "")
    root.clear()
    root.attrib.update({"viewBox": box, **_ROOT, "aria-labelledby": f"{key}-t {key}-d"})
    for tag, words in (("title", title), ("desc", desc)):
        ElementTree.SubElement(root, tag, {"id": f"{key}-{tag[0]}"}).text = words
    root.extend(kept)
    return ElementTree.tostring(root, encoding="unicode")


def _without_namespaces(root: Element) -> None:
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in [name for name in element.attrib if "}" in name]:
            element.attrib[name.rpartition("}")[2]] = element.attrib.pop(name)
        element.tail = None
        if element.tag not in ("text", "tspan"):
            element.text = None


def _tell(root: Element, told: Mapping[str, Sequence[str]]) -> None:
    """A ``<title>`` for every point of the groups; none for a group of which not all points were drawn."""
    from xml.etree.ElementTree import SubElement

    for group in root.iter("g"):
        words = told.get(group.get("id", ""))
        if not words:
            continue
        points = list(group.iter("use")) or [each for each in group.iter("path") if "clip-path" in each.attrib]
        if len(points) == len(words):
            for point, each in zip(points, words, strict=True):
                SubElement(point, "title").text = each


def _referenced(root: Element) -> Iterable[str]:
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "href" and value.startswith("#"):
                yield value[1:]
            yield from _LINK.findall(value)


def _rewrite(element: Element, names: Mapping[str, str]) -> None:
    attributes: dict[str, str] = {}
    for name, value in element.attrib.items():
        if name == "id":
            if value in names:
                attributes[name] = names[value]
        elif name == "href":
            attributes[name] = f"#{names[value[1:]]}"
        elif name == "style":
            attributes.update(_style(_linked(value, names)))
        elif name in _PLACES:
            shown = _rounded(value)
            if not shown.startswith("rotate(0"):
                attributes[name] = shown
        else:
            attributes[name] = _linked(value, names)
    element.attrib.clear()
    element.attrib.update(attributes)


def _linked(value: str, names: Mapping[str, str]) -> str:
    return _LINK.sub(lambda found: f"url(#{names[found[1]]})", value)


def _style(text: str) -> dict[str, str]:
    """Declarations, their colours by name; as one attribute, because attributes do not know ``var()``."""
    kept = []
    for part in text.split(";"):
        name, _, value = part.strip().partition(": ")
        if name and name not in _DROPPED and (name, value) != ("stroke-opacity", "1"):
            kept.append(f"{name}:{VARIABLES.get(value.lower(), value)}")
    return {"style": ";".join(kept)} if kept else {}


def _rounded(text: str) -> str:
    def shorter(found: re.Match[str]) -> str:
        number = f"{float(found[0]):.1f}".removesuffix(".0")
        return "0" if number == "-0" else number

    return re.sub(r" ?([A-Za-z]) ", r"\1", " ".join(_DECIMAL.sub(shorter, text.replace("(-0 ", "(0 ")).split()))


def _flat(element: Element) -> list[Element]:
    """The children, without groups that say nothing, and with the definitions that are used."""
    found: list[Element] = []
    for child in element:
        below = _flat(child) if len(child) else []
        if child.tag == "g" and not child.attrib:
            found.extend(below)
        elif child.tag == "defs":
            found.extend(_defined(child, below))
        elif child.tag != "metadata":
            child[:] = below
            found.append(child)
    return found


def _defined(defs: Element, below: list[Element]) -> list[Element]:
    """Style sheets would hold for the whole page; what nothing refers to is not needed."""
    kept = [each for each in below if "id" in each.attrib]
    if not kept:
        return []
    defs[:] = kept
    return [defs]
