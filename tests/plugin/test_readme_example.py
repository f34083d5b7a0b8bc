"""README.md's example suite runs on simulated drives and prints the sentence that README.md shows."""

from __future__ import annotations

import re
from pathlib import Path

from support.builders.sheet import PRODUCT, promise
from support.fakes.inner_session import Inner

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SUITES = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
SENTENCES = re.findall(r"^    (p99 latency of .*)$", README, re.MULTILINE)


def test_readme_suite_judges_each_width(inner: Inner) -> None:
    (suite,), (sentence,) = SUITES, SENTENCES
    inner.pytester.makepyfile(test_example=suite)
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="p99_latency", at_most="40 ms"))
    result = inner.run("--ssd-devices=lab:8", "--ssd-spec=acme.toml", "test_example.py")
    result.assert_outcomes(failed=6)
    assert sentence in result.outlines
