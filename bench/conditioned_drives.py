"""Whether a drive that was conditioned bare is in the state of one that was conditioned through an array.

    python bench/conditioned_drives.py [--drives 5]

A simulated flash (``flash.py``) of each over-provisioning is filled twice and written randomly once, bare or as part
of an array: without the head of the drive, which keeps the data of the fill. Then an array is measured on the bare
one: after its superblock was written and discarded, after it idled while a narrower array ran, or both. The table has
the write amplification of each measured stretch relative to that of the array of its own, in per cent. Idle drives of
this model collect garbage in the background, until a share of their spare blocks is erased.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import flash
import numpy as np
from flash import Flash, Shape, Work

OVER_PROVISIONING = (0.07, 0.12, 0.2, 0.28)
#: Part of a member before the array's data: far more than md's 128 MiB of a drive of 800 GB.
HEAD = 0.005
#: User capacities of random writes while a state is confirmed, and of the measurement after that.
CONFIRMED, MEASURED = 0.05, 0.5
#: Pages of a superblock and a bitmap.
SUPERBLOCK = 8
#: Share of the spare blocks that an idle drive has erased at last.
IDLE = 0.5
GOAL_PERCENT = 2.0


@dataclass(slots=True)
class Member:
    """One drive, and its writes."""

    drive: Flash
    rng: np.random.Generator

    @classmethod
    def filled(cls, shape: Shape, seed: int) -> Member:
        found = cls(Flash(shape), np.random.default_rng(seed))
        for _ in range(2):
            found.drive.write(np.arange(shape.user_pages))
        return found

    def bare(self, capacities: float) -> Work:
        """Write randomly over the whole drive."""
        shape = self.drive.shape
        return flash.total(self.drive.write(flash.uniform(self.rng, shape, round(capacities * shape.user_pages))))

    def through_md(self, capacities: float) -> Work:
        """Write as a member of an array does: data and parity are uniformly random within the array's data."""
        pages = self.drive.shape.user_pages
        head = round(HEAD * pages)
        return flash.total(self.drive.write(self.rng.integers(head, pages, round(capacities * pages))))

    def superblock(self) -> None:
        self.drive.write(np.arange(SUPERBLOCK))
        self.drive.trim(np.arange(SUPERBLOCK))

    def idle(self) -> None:
        shape = self.drive.shape
        self.drive.idle(round(IDLE * shape.spare_pages / shape.pages_per_block))


def of_its_own(member: Member) -> None:
    member.through_md(1.0)


def assembled(member: Member) -> None:
    member.bare(1.0)
    member.superblock()


def after_wider(member: Member) -> None:
    """Bare, then in wider arrays, each assembled anew."""
    assembled(member)
    for _ in range(5):
        member.through_md(0.2)
        member.superblock()


def after_idle(member: Member) -> None:
    """Bare, then idle while a narrower array ran; the plan's order avoids it."""
    assembled(member)
    member.idle()


WAYS: Mapping[str, Callable[[Member], None]] = {
    "own array": of_its_own, "assembled": assembled, "after wider arrays": after_wider, "after idling": after_idle,
}  # fmt: skip


def amplification(way: Callable[[Member], None], shape: Shape, seed: int) -> tuple[float, float]:
    """Return the write amplification while the state is confirmed, and of the measurement after it."""
    member = Member.filled(shape, seed)
    way(member)
    return member.through_md(CONFIRMED).write_amplification, member.through_md(MEASURED).write_amplification


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drives", type=int, default=5, help="drives of each kind (default 5)")
    drives: int = parser.parse_args().drives
    print("| spare | way | confirmed, % | measured, % |\n|---|---|---|---|")
    worst = 0.0
    for spare in OVER_PROVISIONING:
        shape = Shape(over_provisioning=spare)
        found = {name: [amplification(way, shape, seed) for seed in range(drives)] for name, way in WAYS.items()}
        own = [statistics.fmean(each) for each in zip(*found["own array"], strict=True)]
        for name, each in found.items():
            shares = [
                100 * (statistics.fmean(values) / mean - 1)
                for values, mean in zip(zip(*each, strict=True), own, strict=True)
            ]
            print(f"| {spare:.0%} | {name} | {shares[0]:+.2f} | {shares[1]:+.2f} |")
            if name != "after idling":
                worst = max(worst, abs(shares[1]))
    print(f"\nThe largest difference of a measured stretch is {worst:.2f} %; the goal is {GOAL_PERCENT:g} %.")
    raise SystemExit(worst > GOAL_PERCENT)


if __name__ == "__main__":
    main()
