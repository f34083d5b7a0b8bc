"""Sphinx's configuration of the documentation site; ``script/docs`` builds it.

The pages are Markdown as GitHub shows it, without directives: the navigation is the lists of links in docs/README.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "pytest-ssdqual"
extensions = ["myst_parser"]
root_doc = "docs/README"  # the source folder is the repository, because pages link to README.md and CHANGELOG.md
include_patterns = ["*.md", "docs/*.md"]
exclude_patterns = [".*"]
myst_heading_anchors = 4
html_theme = "alabaster"  # a part of Sphinx, without fonts and scripts of other sites
html_theme_options = {
    "description": "Are these drives fit to buy, ship or put in production?",
    "body_max_width": "100%",
    "fixed_sidebar": True,
    "font_family": "sans-serif",
    "head_font_family": "sans-serif",
    "page_width": "1240px",
    "sidebar_width": "270px",
}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_copy_source = False
html_show_copyright = False
#: A section of docs/README.md, and a link to a page in it.
SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
PAGE = re.compile(r"\]\(([\w./-]+)\.md[)#]")
FIRST_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/README.html">'


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append a hidden table of contents for each section of the guide."""
    if docname != root_doc:
        return
    for caption, text in SECTION.findall(source[0]):
        pages = "\n".join(dict.fromkeys(PAGE.findall(text)))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def add_first_page(app: Sphinx, failure: Exception | None) -> None:
    """Lead from the root of the site to the guide."""
    if failure is None:
        Path(app.outdir, "index.html").write_text(FIRST_PAGE)


def setup(app: Sphinx) -> None:
    """Register the two functions; show diagrams as their source, because drawing them needs a script."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_first_page)
