"""Refreshes conditioned drives: they write, bare and side by side, until each is as fast as it settled.

A drive that was idle has collected its garbage, or emptied its cache, and is faster for a while
(SNIA PTS, host idle recovery). While a narrow array was measured, the other drives were idle, so
before each array is assembled all drives write again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

#: Most windows of one drive.
MOST_WINDOWS = 6
#: Two windows that follow each other have settled if they differ by at most this share of
#: ``refresh_percent``: what still approaches its settled rate changes by more, until it has come near.
AGREEMENT = 0.5
#: fio's reports of a window.
REPORTS = 60


def refresh(setup: Setup, array: Array, conditioned: Conditioned, *, may_resettle: bool = True) -> Conditioned:
    """Write until each drive is as fast as it settled, and return the rates at which they have settled now.

    The second half of each window counts. A drive that differs writes for another window, and has
    settled anew, at another rate, if two windows agree; not unless ``may_resettle``.
    ``DrivesUndecided`` if that takes too long for some of the drives, ``InvalidMeasurement`` if for
    all. Other errors as ``fixed_time.run``; ``ValueError`` if the protocol has no visits.
    """
    rule = setup.protocol.visits
    if rule is None:
        raise ValueError(f"the protocol {setup.protocol.name} has no visits, so no drive is refreshed")
    if not rule.refresh_s:
        return conditioned
    rates = _Rates(dict(conditioned.rates), rule.refresh_percent / 100, may_resettle=may_resettle)
    raws: list[str] = []
    half_s, left = rule.refresh_s / 2, array
    window = ProcessWindow(half_s, half_s, 1, max(1, int(rule.refresh_s / REPORTS)))
    while len(raws) < MOST_WINDOWS:
        setup.progress(f"{array.geometry}: refresh with {conditioned.writes}", rule.refresh_s)
        work = partial(fixed_time.run, setup, left, conditioned.writes, "refresh", window)
        run = fixed_time.prepared(setup, left, work)
        rates.add({member.members[0]: member.iops for member in run.of_members()})
        raws.append(run.raw)
        if not rates.differing:
            break
        left = array.without({drive.name for drive in array.members} - set(rates.differing))
    setup.note(
        "refreshed",
        array.geometry,
        workload=str(conditioned.writes),
        rates=rates.latest,
        settled=rates.settled,
        differing=rates.differing,
        seconds=len(raws) * rule.refresh_s,
        raw=raws,
    )
    if rates.differing:
        each = "; ".join(f"{serial}: {why}" for serial, why in rates.differing.items())
        about = f"{array.geometry} is not as it settled after {MOST_WINDOWS} windows of {conditioned.writes}"
        raise fixed_time.of_some_drives(f"{about}: {each}", rates.differing, array)
    return replace(conditioned, rates=rates.settled)


@dataclass(slots=True)
class _Rates:
    """Rates of drives by serial number, in IOPS."""

    settled: dict[str, float]
    #: Share of a rate by which it may differ from the settled one.
    tolerance: float
    may_resettle: bool
    latest: dict[str, float] = field(default_factory=dict)
    #: Why drives have not settled.
    differing: dict[str, str] = field(default_factory=dict)

    def add(self, rates: Mapping[str, float]) -> None:
        """Take the rates of one window, of the drives that differed before."""
        for serial, rate in rates.items():
            before = self.latest.get(serial)
            self.latest[serial] = rate
            self.differing.pop(serial, None)
            if _is_near(rate, self.settled.get(serial), self.tolerance):
                continue
            if self.may_resettle and _is_near(rate, before, AGREEMENT * self.tolerance):
                self.settled[serial] = rate
                continue
            settled = self.settled.get(serial)
            at = "an unknown rate" if settled is None else f"{settled:.4g}"
            self.differing[serial] = f"{rate:.4g} IOPS, settled at {at}"


def _is_near(rate: float, other: float | None, tolerance: float) -> bool:
    return other is not None and rate > 0 and abs(rate - other) <= tolerance * other
