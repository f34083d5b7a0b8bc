"""Compare chunk, stripe cache and group threads of md on the same drives, one at a time.

All arrays are built of the same conditioned drives, the widest RAID 5. What the best settings gain over those of the
protocol is no verdict on the drives, which are judged with the protocol's settings.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: Those of the protocol, then chunks, pages of the stripe cache and threads; mdadm's and md's own are c512k and s256.
SETTINGS = ("", "c16k", "c512k", "s256", "s16384", "s32768", "t1", "t2", "t4")

pytestmark = [
    pytest.mark.ssd_workload(Workload("randwrite", "4k", 8), Workload("randrw", "4k", 8, read_percent=70)),
]


@pytest.mark.ssd_array("raid5", most=1)
@pytest.mark.ssd_promise("steady_iops")
def test_steady_iops_with_the_settings_of_the_protocol(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_array("raid5", most=1, settings=SETTINGS)
@pytest.mark.ssd_promise("settings_gain")
def test_no_settings_are_better_than_those_of_the_protocol(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
