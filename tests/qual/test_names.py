from __future__ import annotations

from pytest_ssdqual.qual.names import named


def test_named_counts_the_names_beyond_the_most() -> None:
    assert named(["a", "b"], 2) == "a, b"
    assert named(["a", "b", "c"], 1, "; ") == "a and 2 more"
    assert named([], 2) == ""
