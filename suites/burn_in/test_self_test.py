"""The drives pass their own short self-tests, before they are filled and after their data were compared."""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("drive")
@pytest.mark.parametrize("ssd_self_test", ["first", "last"], indirect=True)
def test_drives_pass_their_self_tests(ssd_self_test):
    assert ssd_self_test
