"""script/docs: the site is built without a warning, and it asks no other site for anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: What a browser fetches without a click, from a place with a host.
FETCHED = re.compile(r"""(?:<script[^>]*\ssrc=|<link[^>]*\shref=|<img[^>]*\ssrc=|url\(|@import )["']?(?:https?:)?//""")


def built(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """The last line of script/docs, with this Python; without colours, which Sphinx also uses where CI is true."""
    (line,) = re.findall(r"^exec \.venv/bin/python (.*) \. ", (ROOT / "script/docs").read_text(), re.MULTILINE)
    argv = [sys.executable, *line.split(), str(source), str(site)]
    env = os.environ | {"NO_COLOR": "1"}
    return subprocess.run(argv, cwd=source, env=env, capture_output=True, text=True, check=False)


def test_site_is_whole_and_works_offline(tmp_path: Path) -> None:
    done = built(ROOT, tmp_path / "site")
    assert (done.returncode, done.stderr) == (0, "")
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert pages >= {f"docs/{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} | {"index.html", "README.html"}
    first = (tmp_path / "site/README.html").read_text()
    assert all(f'<span class="caption-text">{part}</span>' in first for part in ("First steps", "In a lab"))
    assert "copybutton.js" in first
    assert 'rel="next"' in first
    texts = [path for path in (tmp_path / "site").rglob("*") if path.suffix in (".html", ".css")]
    assert [path.name for path in texts if FETCHED.search(path.read_text())] == []


def test_dead_heading_and_forgotten_page_end_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("conf.py", "search-scorer.js"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    (tmp_path / "README.md").write_text("# What it is\n")
    (tmp_path / "docs/README.md").write_text("# Guide\n\n## Part\n\n- [A](a.md#nothing)\n")
    (tmp_path / "docs/a.md").write_text("# A\n")
    (tmp_path / "docs/b.md").write_text("# B\n")
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    wrong = set(re.findall(r"([\w./]+\.md)(?::\d+)?: WARNING: .*\[([\w.]+)\]$", done.stderr, re.MULTILINE))
    assert {(Path(name).name, kind) for name, kind in wrong} == {
        ("README.md", "myst.xref_missing"),
        ("b.md", "toc.not_included"),
    }
