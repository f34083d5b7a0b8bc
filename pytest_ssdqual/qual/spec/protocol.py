"""Protocol: how drives are conditioned, and for how long they are measured.

`Protocol` and the rules of `protocol_rules` are what the program uses, in seconds and bytes. A rule is also the type of
its table in a protocol file: pydantic validates the table, by the key that a field's ``alias`` gives, into the rule
itself. Rules made by code are not validated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.protocol_rules import (
    AS_FOUND,
    LEAST_CELL_S,
    ArraySettings,
    ExploreRule,
    IntegrityRule,
    LoadRule,
    LoopRule,
    MemberRule,
    RebuildRule,
    SaturationRule,
    SteadyRule,
    VerdictRule,
    VisitRule,
    WriteCacheRule,
)
from pytest_ssdqual.qual.spec.toml import TABLE, BlockSize, Seconds, Strict

#: Default of ``ExploreRule.measurement_s`` in a protocol of fixed length, at most.
LONGEST_PROBE_S = 60.0


#: Attempts of a measurement of bare drives for prediction: one more than needed, in case the rig
#: fails.
MEMBER_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Fill:
    """Sequential passes over the whole user area after a purge; no pass for writes from the fresh state."""

    passes: int
    bs: str

    @classmethod
    def of(cls, protocol: Protocol) -> Fill:
        return cls(protocol.fill_passes, protocol.fill_bs)


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way of conditioning and measuring. Times are seconds; a pass is the whole user area."""

    name: str
    #: True if its verdicts may be used to accept or reject a product.
    acceptance: bool
    #: Sequential write passes over the whole user area before anything is measured.
    fill_passes: int
    fill_bs: str
    #: Preconditioning: writes before the first workload of a class (random, sequential), in steps of this length…
    precondition_s: float
    #: …until steady, and never longer than this in all.
    precondition_limit_s: float
    #: Ramp: head of every measurement that is not counted.
    ramp_s: float
    #: Counted time, cut into ``steady.window`` rounds of equal length. In a protocol with visits, that
    #: of a cell.
    window_s: float
    #: Measurements of each workload; the repeats are judged together.
    repeats: int
    #: Attempts of one measurement until its window is steady.
    attempts: int
    #: Counted time if a percentile of ``claims.OF_TAIL`` is judged; None for ``window_s``.
    tail_window_s: float | None = None
    #: Purge of members before an array is built: ``format`` (NVMe Format if it affects only the drive itself, else
    #: discard) or ``discard`` (of the whole range).
    purge: str = "format"
    #: Write caches of the drives; what is switched is restored when the run ends.
    write_cache: WriteCacheRule = AS_FOUND
    #: User capacities to write before the array may be found steady (STEC: past the raw capacity).
    precondition_capacities: float = 0.0
    #: User capacities after which conditioning is given up; 0 if only the time limit counts.
    precondition_limit_capacities: float = 0.0
    #: Steady means that the last half capacity differs from the half before by at most so many per
    #: cent; 0 for the rule ``steady`` over rounds.
    drift_percent: float = 0.0
    #: True if the bare drives are filled and conditioned, side by side and once for each class of workloads, and arrays
    #: are assembled of them; False if each array is filled and conditioned through md.
    conditions_drives: bool = False
    steady: SteadyRule = field(default_factory=SteadyRule)
    array: ArraySettings = field(default_factory=ArraySettings)
    load: LoadRule = field(default_factory=LoadRule)
    members: MemberRule = field(default_factory=MemberRule)
    loop: LoopRule = field(default_factory=LoopRule)
    saturation: SaturationRule = field(default_factory=SaturationRule)
    rebuild: RebuildRule = field(default_factory=RebuildRule)
    integrity: IntegrityRule = field(default_factory=IntegrityRule)
    explore: ExploreRule = field(default_factory=ExploreRule)
    verdict: VerdictRule = field(default_factory=VerdictRule)
    #: None if every measurement takes the same time, ``window_s``.
    visits: VisitRule | None = None

    @property
    def round_s(self) -> float:
        """Length of one round of the steady-state window."""
        return self.window_s / self.steady.window

    @property
    def of_members(self) -> Protocol:
        """The protocol by which bare drives are measured before arrays: once, for a fixed time."""
        rule = self.members
        return replace(
            self,
            visits=None,
            window_s=rule.window_s,
            tail_window_s=None,
            ramp_s=rule.ramp_s,
            repeats=1,
            attempts=max(self.attempts, MEMBER_ATTEMPTS),
        )

    def window_of(self, *, tail: bool) -> float:
        """Counted time of a measurement in seconds; ``tail`` if a percentile of its tail is judged."""
        return self.tail_window_s if tail and self.tail_window_s is not None else self.window_s


class FillTable(Strict):
    passes: Annotated[int, Field(ge=0, le=100)]
    bs: BlockSize


class PreconditionTable(Strict):
    step: Annotated[Seconds, Field(gt=0)]
    limit: Annotated[Seconds, Field(gt=0)]
    capacities: Annotated[float, Field(ge=0, le=100)] = 0.0
    limit_capacities: Annotated[float, Field(ge=0, le=100)] = 0.0
    drift_percent: Annotated[float, Field(ge=0, le=50)] = 0.0
    of: Literal["drives", "arrays"] = "arrays"

    @model_validator(mode="after")
    def _one_step_at_least(self) -> Self:
        if self.limit < self.step:
            raise ValueError(f"the limit ({self.limit:g} s) is shorter than one step ({self.step:g} s)")
        if self.drift_percent and self.capacities < 1:
            raise ValueError("drift_percent compares two halves of a capacity, so capacities is 1 at least")
        if 0 < self.limit_capacities < self.capacities:
            raise ValueError(
                f"limit_capacities ({self.limit_capacities:g}) is less than capacities ({self.capacities:g})"
            )
        return self


class MeasureTable(Strict):
    ramp: Annotated[Seconds, Field(ge=0)]
    window: Annotated[Seconds, Field(gt=0)]
    tail_window: Annotated[Seconds, Field(gt=0)] | None = None
    repeats: Annotated[int, Field(ge=1, le=1000)]
    attempts: Annotated[int, Field(ge=1, le=1000)]

    @model_validator(mode="after")
    def _longer_for_tails(self) -> Self:
        if self.tail_window is not None and self.tail_window < self.window:
            raise ValueError(f"tail_window ({self.tail_window:g} s) is shorter than window ({self.window:g} s)")
        return self


class RampTable(Strict):
    """Table ``measure`` of a protocol with the table ``visits``: of the bare drives and of loops."""

    ramp: Annotated[Seconds, Field(ge=0)] = 5.0
    window: None = None
    tail_window: None = None
    repeats: None = None
    attempts: None = None

    @field_validator("window", "tail_window", "repeats", "attempts", mode="before")
    @classmethod
    def _left_out(cls, given: object) -> None:
        raise ValueError("is of measurements of a fixed length; the table visits has cells instead, leave it out")


class CommonDocument(Strict):
    """The tables that every protocol has."""

    acceptance: bool
    purge: Literal["format", "discard"] = "format"
    write_cache: WriteCacheRule = AS_FOUND
    fill: FillTable
    precondition: PreconditionTable
    verdict: Annotated[VerdictRule, TABLE] = VerdictRule()
    steady: Annotated[SteadyRule, TABLE] = SteadyRule()
    array: Annotated[ArraySettings, TABLE] = ArraySettings()
    load: Annotated[LoadRule, TABLE] = LoadRule()
    members: Annotated[MemberRule, TABLE] = MemberRule()
    loop: Annotated[LoopRule, TABLE] = LoopRule()
    saturation: Annotated[SaturationRule, TABLE, AfterValidator(SaturationRule.validated)] = SaturationRule()
    rebuild: Annotated[RebuildRule, TABLE, AfterValidator(RebuildRule.validated)] = RebuildRule()
    integrity: Annotated[IntegrityRule, TABLE] = IntegrityRule()
    explore: Annotated[ExploreRule, TABLE] = ExploreRule()

    def _require_budget(self, measurement_s: float) -> None:
        if self.explore.budget_s < measurement_s:
            raise ValueError(
                f"explore.budget ({self.explore.budget_s:g} s) is less than one measurement takes ({measurement_s:g} s)"
            )

    @model_validator(mode="after")
    def _members_in_rounds(self) -> Self:
        if self.members.window_s:
            self._require_rounds("members.window", self.members.window_s)
        return self

    def _require_rounds(self, what: str, window_s: float) -> None:
        # fio reports once a second; a shorter round would be a fraction of one report.
        if window_s / self.steady.window < 1:
            raise ValueError(
                f"{what} ({window_s:g} s) is cut into {self.steady.window} rounds "
                "(steady.window); each must last at least 1 s"
            )


class ProtocolDocument(CommonDocument):
    """A protocol in which every measurement takes the same time."""

    measure: MeasureTable

    @model_validator(mode="after")
    def _rounds_of_a_second(self) -> Self:
        self._require_rounds("measure.window", self.measure.window)
        if self.explore.measurement_s is not None:
            self._require_rounds("explore.measurement", self.explore.measurement_s)
        window_s = self.explore.measurement_s or min(self.measure.window, LONGEST_PROBE_S)
        self._require_budget(self.measure.ramp + window_s)
        return self

    @model_validator(mode="after")
    def _of_arrays(self) -> Self:
        if self.precondition.of == "drives":
            raise ValueError(
                'precondition.of = "drives" needs the table visits, whose "refresh" comes before each array: '
                "drives that were idle are faster for a while"
            )
        return self


class VisitsDocument(CommonDocument):
    """A protocol that judges all points of a run as one experiment, in visits."""

    measure: RampTable = RampTable()
    visits: Annotated[VisitRule, TABLE, AfterValidator(VisitRule.validated)]

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        cell_s = self.visits.cell_s
        if self.acceptance and cell_s < LEAST_CELL_S:
            raise ValueError(
                f"visits.cell ({cell_s:g} s) is {LEAST_CELL_S:g} s at least for acceptance, as its first "
                "seconds are compared with the rest"
            )
        if self.precondition.of != "drives" and len(self.visits.cells) > 1:
            raise ValueError(
                "visits.cells has several visits, each of which would fill its array anew; set "
                'precondition.of = "drives"'
            )
        self._require_budget(self.visits.ramp_s + (self.explore.measurement_s or cell_s))
        return self


FOLDER = "protocols"


class ProtocolError(toml.DocumentError):
    """A protocol that cannot be used; see ``DocumentError``."""


def load(path_or_name: str | Path) -> Protocol:
    """Read a protocol: the path of a TOML file, or the name of a shipped one. ``ProtocolError`` with every error."""
    name, content = toml.read(path_or_name, FOLDER, ProtocolError)
    if "visits" in content:
        document = toml.checked(VisitsDocument, name, content, ProtocolError)
        rule = document.visits
        times_of_cells = (document.measure.ramp, rule.cell_s, 1, MEMBER_ATTEMPTS)
        return replace(_protocol(name, document, times_of_cells), visits=rule)
    fixed = toml.checked(ProtocolDocument, name, content, ProtocolError)
    times = fixed.measure
    found = _protocol(name, fixed, (times.ramp, times.window, times.repeats, times.attempts))
    return replace(found, tail_window_s=times.tail_window)


def _protocol(name: str, read: CommonDocument, measure: tuple[float, float, int, int]) -> Protocol:
    ramp_s, window_s, repeats, attempts = measure
    return Protocol(
        name=name.removesuffix(".toml"),
        acceptance=read.acceptance,
        fill_passes=read.fill.passes,
        fill_bs=read.fill.bs,
        precondition_s=read.precondition.step,
        precondition_limit_s=read.precondition.limit,
        precondition_capacities=read.precondition.capacities,
        precondition_limit_capacities=read.precondition.limit_capacities,
        drift_percent=read.precondition.drift_percent,
        conditions_drives=read.precondition.of == "drives",
        ramp_s=ramp_s,
        window_s=window_s,
        repeats=repeats,
        attempts=attempts,
        purge=read.purge,
        write_cache=read.write_cache,
        steady=read.steady,
        array=read.array,
        load=read.load,
        members=read.members,
        loop=read.loop,
        saturation=read.saturation,
        rebuild=read.rebuild,
        integrity=read.integrity,
        explore=read.explore,
        verdict=read.verdict,
    )


def shipped() -> tuple[str, ...]:
    """Names of the protocols that come with the package."""
    return toml.shipped(FOLDER)
