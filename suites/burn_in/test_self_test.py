"""The drives pass their own self-tests: short ones before the fill, extended ones after their data were compared."""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("drive")
@pytest.mark.parametrize("ssd_self_test", ["first", "extended"], indirect=True)
def test_drives_pass_their_self_tests(ssd_self_test):
    assert ssd_self_test
