"""The fixture ``ssd_lot``: judges the lot that the drives side by side were drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_ssdqual.plugin.judging.sla import Sla
from pytest_ssdqual.qual.lots import lot
from pytest_ssdqual.qual.lots.lot import LotVerdict
from pytest_ssdqual.qual.lots.sampling_plan import Plan
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lot:
    """Judges each drive by the promises of the spec, and the lot by the spec's sampling plan."""

    plan: Plan
    sla: Sla

    def judge(self, what: str | Measured, run: Measured | None = None, /) -> LotVerdict:
        """Return the verdict on the lot, of which each drive must meet the promise; arguments as of ``ssd_sla.judge``.

        A drive that failed under the load does not conform. Without a limit in the spec, the figure is recorded and the
        test is skipped. Raises ``Inconclusive`` if the verdict depends on inconclusive drives, ``InvalidMeasurement``
        if a drive or, by this plan, the lot cannot be judged.
        """
        wanted, judged = self.sla.asked(what, run)
        if wanted.scope is not Scope.RUN:
            raise pytest.UsageError(f"{wanted} is not a claim about single drives; judge a lot by one that is")
        verdicts = self.sla.verdicts(wanted, judged)
        try:
            verdict = lot.judge(wanted, self.plan, verdicts, self.sla.left_out(judged))
        except CannotJudge as error:
            about = f"{wanted.label} of the lot of {judged.subject}"
            raise InvalidMeasurement(f"{about} cannot be judged: {error}") from error
        self.sla.publish(verdict, self.sla.builder.of_lot(judged, verdict), self.sla.ended(judged))
        return verdict


def without_plan(spec: Spec) -> str:
    """Return why no lot can be judged by the spec, and what to do; empty if one can."""
    if spec.lot is not None:
        return ""
    return (
        f"{spec.name} has no plan for lots: agree on one, write it into the table [lot] of a spec file, and name that "
        "with --ssd-spec=FILE; -k 'not lot' leaves these tests out"
    )


def objections(spec: Spec, drives: int) -> tuple[str, ...]:
    """Return the reasons why no lot can be judged with this number of drives; empty if one can."""
    if spec.lot is not None and drives < spec.lot.sample:
        return (f"the plan needs {spec.lot.sample} drives ({spec.lot}), {drives} given",)
    return ()
