"""A lease on drives that is held, taken by another run, or lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_ssdqual.rig.guard.lease import LeaseLost, Terms
from pytest_ssdqual.rig.machine.machine import LeaseTaken, Machine


@dataclass
class Leases:
    """Instead of ``rig.guard.lease.Lease``: which identities are taken, and whether the lease lasts."""

    #: Takings and releases, and what else a test notes.
    events: list[str] = field(default_factory=list)
    taken: frozenset[str] = frozenset()
    lost: bool = False

    def __call__(self, machine: Machine, identities: Iterable[str], terms: Terms | None = None) -> Leases:
        identities = list(identities)
        if self.taken & set(identities):
            raise LeaseTaken("another run holds drives")
        self.events.append(f"take {','.join(identities)}")
        return self

    def require(self) -> None:
        if self.lost:
            raise LeaseLost("the lease was lost")

    def release(self) -> None:
        self.events.append("release")

    def __enter__(self) -> Leases:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
