"""An array with members missing reaches the IOPS that follow from the data sheet of one drive.

The law: X = 1 / max over the members that are left of (r c/R + (1-r)(k_r/R + k_w/W)) IOPS, with the host's read
fraction r, one drive's published read and write IOPS R and W, and the I/Os of a member for one host I/O: c reads
for a read, k_r reads and k_w writes for a write (Linux drivers/md/raid5.c, handle_stripe_dirtying and
handle_stripe_fill). Of N drives with k missing:

* RAID 5 and 6: md computes missing data from all other members, N R/(k + 1) reads. Writes whose other data are missing
  must be read-modify-writes, those whose old data or parity are missing cannot be; RAID 5 of four writes 0.86 as much
  as with all members.
* RAID 10: the mirror of the missing member gets twice the reads of the others and is the bottleneck, N R/2; writes
  N W/2 as before.
* RAID 1: the remaining copies serve (N - k) R reads; writes as before.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 8))


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid1", widths=range(2, 5), failed=1, most=2)
def test_a_mirror_lives_up_to_the_data_sheet_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid10", failed=1, most=2)
def test_a_raid10_lives_up_to_the_data_sheet_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid5", failed=1, most=2)
def test_a_raid5_lives_up_to_the_data_sheet_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid6", failed=1, most=2)
def test_a_raid6_lives_up_to_the_data_sheet_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid6", failed=2, most=2)
def test_a_raid6_lives_up_to_the_data_sheet_with_two_drives_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
