"""An array keeps all acknowledged data, whatever happens to it and to its members.

The test draws histories of an array: regions are written, overwritten and trimmed; members fail, are removed, added
again or replaced, and rebuilt; md checks and repairs copies and parity; the array is stopped and assembled again, and
grows; the power is cut, if that is possible. A reference model records acknowledged and flushed writes. All data must
match the model, and all copies must agree (docs/integrity.md). The first history that fails is shortened.
"""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("raid0")
def test_a_raid0_keeps_what_it_acknowledged(ssd_integrity):
    assert ssd_integrity


@pytest.mark.ssd_array("raid1", widths=range(2, 5))
def test_a_mirror_keeps_what_it_acknowledged(ssd_integrity):
    assert ssd_integrity


@pytest.mark.ssd_array("raid10")
def test_a_raid10_keeps_what_it_acknowledged(ssd_integrity):
    assert ssd_integrity


@pytest.mark.ssd_array("raid5")
def test_a_raid5_keeps_what_it_acknowledged(ssd_integrity):
    assert ssd_integrity


@pytest.mark.ssd_array("raid6")
def test_a_raid6_keeps_what_it_acknowledged(ssd_integrity):
    assert ssd_integrity
