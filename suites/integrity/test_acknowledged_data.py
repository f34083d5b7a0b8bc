"""An array keeps what it has acknowledged, whatever happens to it and to its members.

Histories are drawn of what happens to an array in its life: regions are written, overwritten and trimmed; members fail,
are removed, given back or replaced, and rebuilt; copies and parity are checked and repaired; the array is stopped and
assembled again, and grows; the power is cut, where somebody can. Beside it a ledger keeps what was acknowledged and
flushed. Whatever is read must be what the ledger says, and all copies must agree (docs/integrity.md). The first history
after which that is not so is made as short as it can be.
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
