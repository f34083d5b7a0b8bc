"""``ssd_lot``: whether the lot is accepted that drives side by side were drawn from, as a test asks for it."""

from __future__ import annotations

import pytest

from pytest_ssdqual.plugin.judging.evidence_builder import FigurePlace
from pytest_ssdqual.plugin.judging.sla import Sla
from pytest_ssdqual.qual.lots import lot
from pytest_ssdqual.qual.lots.lot import LotVerdict
from pytest_ssdqual.qual.lots.sampling_plan import Plan
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement


class Lot:
    """Judges each drive by the promises of the spec, and by its plan the lot."""

    def __init__(self, plan: Plan, sla: Sla) -> None:
        self._plan = plan
        self._sla = sla

    def judge(self, what: str | Measured, run: Measured | None = None, /) -> LotVerdict:
        """The verdict on the lot, each of whose drives is to keep what is promised; arguments as of ``ssd_sla.judge``.

        Where the spec promises nothing of the kind, the figure is noted and the test skipped. Raises ``Inconclusive``
        when drives that are not decided decide, ``InvalidMeasurement`` when one cannot be judged, or the lot by this
        plan.
        """
        wanted, judged = self._sla.asked(what, run)
        if wanted.scope is not Scope.RUN or not isinstance(judged, Measured):
            raise pytest.UsageError(f"{wanted} is not about a single drive, so it makes none of a lot good or bad")
        verdicts = self._sla.verdicts(wanted, judged)
        try:
            told = lot.judge(wanted, self._plan, verdicts)
        except CannotJudge as error:
            subject = FigurePlace.of(judged).subject
            raise InvalidMeasurement(f"{wanted.label} of the lot of {subject} cannot be judged: {error}") from error
        self._sla.tell(told, self._sla.account.of_lot(judged, told))
        return told


def objections(spec: Spec, drives: int) -> tuple[str, ...]:
    """Why no lot can be judged with so many drives, before anything is measured; empty if one can."""
    if spec.lot is None:
        return (f"{spec.name} says nothing of lots: agree on a plan and write it into the table [lot] of the spec",)
    if drives < spec.lot.sample:
        return (f"the plan needs {spec.lot.sample} drives ({spec.lot}), {drives} given",)
    return ()
