"""Repeatability of a steady rate: what the interval of one run does not contain.

A confidence interval covers how a rate scatters on drives with the history that they have. Another
fill moves the rate itself. Measured on real drives: the public data of SSD-iq (Haas et al., VLDB 2025,
github.com/gabriel-haas/ssdiq-pub) have one enterprise NVMe drive of 1.92 TB twice under uniform
random 4-KiB writes, 120,555 IOPS after a sequential and 117,749 after a shuffled fill: 2.4 %.
Without any fill it is 8 % for uniform writes and more for skewed ones.
"""

from __future__ import annotations

from pytest_ssdqual.qual.spec.claims import Claim

#: Difference of the steady rates of one drive after another fill or history, per cent, from … to ….
REPEATABILITY_PERCENT = (2, 3)

#: Claims about steady rates.
STEADY_RATES = frozenset({Claim.STEADY_IOPS, Claim.READ_IOPS, Claim.WRITE_IOPS, Claim.THROUGHPUT, Claim.SETTLED_IOPS})


def sentence() -> str:
    """Return the sentence that stands once beside all intervals of steady rates."""
    low, high = REPEATABILITY_PERCENT
    moves = f"Another fill or history of the drives moves a steady rate by {low} to {high} %"
    return f"{moves}, which the interval of one run does not contain."
