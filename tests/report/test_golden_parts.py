from __future__ import annotations

import re
from pathlib import Path

from support.documents import golden


def test_every_part_of_a_golden_file_has_its_test() -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    tests = set(re.findall(r"def (test_\w+)", sources))
    titles = {title for path in golden.FOLDER.iterdir() for title in golden.parts(path)}
    assert {title.partition("[")[0] for title in titles} <= tests
