"""Sphinx's configuration of the documentation site; ``script/docs`` builds it.

The pages are Markdown as GitHub shows it, without directives: the navigation is the lists of links in docs/README.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "pytest-ssdqual"
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "README"  # the source folder is the repository, because pages link to README.md and CHANGELOG.md
include_patterns = ["*.md", "docs/*.md"]
exclude_patterns = [".*"]
myst_heading_anchors = 4
html_theme = "furo"  # sidebar, previous and next page, light and dark; without fonts and scripts of other sites
html_title = "pytest-ssdqual"
html_search_scorer = str(Path(__file__).with_name("search-scorer.js"))
html_copy_source = False
html_show_copyright = False
#: The guide, a section of it, and a link to a page in it.
GUIDE = Path(__file__).with_name("README.md")
SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
PAGE = re.compile(r"\]\(([\w./-]+)\.md[)#]")
#: Messages of wrong requests, as the tests have them: a search for a sentence finds its page.
MESSAGES = Path(__file__).parents[1] / "tests/golden/refusals.txt"
FIRST_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=README.html">'


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append a hidden table of contents for each section of the guide to the introduction."""
    if docname == root_doc:
        for number, (caption, text) in enumerate(SECTION.findall(GUIDE.read_text(encoding="utf-8"))):
            links = [f"docs/{page}".replace("docs/../", "") for page in PAGE.findall(text)]
            pages = [page for page in dict.fromkeys(links) if page != root_doc]
            lines = "\n".join(pages if number else ["docs/README", *pages])
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"
    if docname == "docs/using" and MESSAGES.exists():
        messages = MESSAGES.read_text(encoding="utf-8")
        source[0] += f"\n## Messages about wrong requests\n\n```text\n{messages}```\n"


def add_first_page(app: Sphinx, failure: Exception | None) -> None:
    """Lead from the root of the site to the introduction."""
    if failure is None:
        Path(app.outdir, "index.html").write_text(FIRST_PAGE)


def setup(app: Sphinx) -> None:
    """Register the two functions; show diagrams as their source, because drawing them needs a script."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_first_page)
