"""Golden files: the whole wording of one surface in one text file under ``tests/golden``, to be reviewed as text.

    SSDQUAL_WRITE_GOLDEN=1 pytest -n 0 -k golden tests

writes them anew, and without ``-k`` also those with a part for each test; ``git diff tests/golden`` shows what a change
says now. Other tests assert outcomes and fields.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable
from pathlib import Path

WRITE = "SSDQUAL_WRITE_GOLDEN"
FOLDER = Path(__file__).parents[2] / "golden"
BLOCKS = r"p|div|section|h\d|tr|table|ul|ol|li|dl|dt|dd|details|summary|nav|main|header|footer"
#: What differs from run to run, and what stands for it.
VOLATILE = (
    (r"Run time(\n|: `)[\d:]+", r"Run time\1CLOCK"),
    (r"\b\d{8}T\d{6}Z-[0-9a-f]{8}\b", "RUN"),
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z| UTC)?", "TIME"),
    (r"\bin \d+\.\d+s( \(\d+:\d+:\d+\))?", "in SECONDS"),
    (r"\b[0-9a-f]{64}\b|(?<=SHA-256 )[0-9a-f]{16}", "SHA256"),
    (
        r"(?m)^((?:command line|python|pytest|pytest-ssdqual|pytest-xdist|hypothesis|numpy|scipy|pydantic) \|).*",
        r"\1 …",
    ),
    (r"[^\s>]*/(pytest_ssdqual/\S+\.py):\d+", r"…/\1"),
    (r"(?m)^([=-])+ (generated xml file: .*|.* in SECONDS) [=-]+$", r"\1 \2 \1"),
    (r"\| [\d.]+ [kM]?B \|", "| SIZE |"),
    # Versions among them.
    (r"(?ms)^the same: .*?\n\n", "the same: …\n\n"),
    # Points of charts.
    (r"(?m)^[\w ]+ \| [\d.]+ (s|min|h) \| [^|\n]+ \|\n", ""),
    (r"\b[0-9a-f]{8}(:[0-9a-f]{8}){3}\b", "UUID"),
    (r'\btime="\d+\.\d+"', 'time="SECONDS"'),
    (r"(?m)^(platform|plugins:|rootdir:) .*", r"\1 …"),
    (r"\bpytest-ssdqual \d+\.\d+[\w.]*", "pytest-ssdqual VERSION"),
)


def steady(text: str, *places: Path) -> str:
    """The text without what differs from run to run; ``places`` are folders that no other run has."""
    for place in places:
        text = text.replace(str(place), "PLACE")
    for pattern, word in VOLATILE:
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip() + "\n"


def check(name: str, text: str) -> None:
    """Compare with the golden file of that name, or write it."""
    path = FOLDER / name
    if os.environ.get(WRITE):
        path.write_text(text)
    assert text == path.read_text(), f"review the wording, then: {WRITE}=1 pytest -k golden"


def same(name: str, lines: Iterable[str]) -> None:
    """Compare with the part of the golden file of that name that the running test has, or write that part."""
    test = os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].removesuffix(" (call)")
    path = FOLDER / name
    texts = parts(path)
    text = "".join(f"{line.rstrip()}\n" for line in lines)
    if os.environ.get(WRITE):
        texts[test] = text
        path.write_text("".join(f"== {title}\n{part}" for title, part in texts.items()))
    assert text == texts.get(test), f"review the wording, then write it anew with {WRITE}=1"


def parts(path: Path) -> dict[str, str]:
    """The parts of a golden file by the tests that they are of."""
    titled = re.split(r"(?m)^== (.*)\n", path.read_text() if path.exists() else "")
    return dict(zip(titled[1::2], titled[2::2], strict=True))


def page_text(page: str) -> str:
    """What a person reads of a page: no scripts, styles and drawings, a line for each block."""
    for element in ("script", "style", "svg", "head"):
        page = re.sub(rf"<{element}\b.*?</{element}>", "", page, flags=re.DOTALL)
    page = re.sub(r"\s+", " ", page)
    page = re.sub(rf"</?({BLOCKS})\b[^>]*>", "\n", page)
    page = re.sub(r"</t[dh]>", " | ", page)
    lines = (re.sub(r"\s+", " ", line).strip() for line in html.unescape(re.sub(r"<[^>]+>", "", page)).splitlines())
    return "\n".join(filter(None, lines))
