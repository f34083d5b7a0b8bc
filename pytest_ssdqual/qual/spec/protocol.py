"""Protocol: how drives are conditioned, and for how long they are measured.

`Protocol` and the rules of `protocol_rules` are what the program uses, in seconds and bytes. They are also the types of
a protocol file and its tables: pydantic validates the file, by the key that a field's ``alias`` gives, into them.
Protocols made by code are not validated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, TypeAdapter

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.law import Striping
from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.protocol_rules import (
    AS_FOUND,
    LEAST_CELL_S,
    ArraySettings,
    ExploreRule,
    Fill,
    IntegrityRule,
    LoadRule,
    LoopRule,
    MeasureRule,
    MemberRule,
    PreconditionRule,
    RebuildRule,
    SaturationRule,
    SteadyRule,
    VerdictRule,
    VisitRule,
    WriteCacheRule,
)
from pytest_ssdqual.qual.spec.toml import TABLE

FOLDER = "protocols"
#: Default of ``ExploreRule.measurement_s`` in a protocol of fixed length, at most.
LONGEST_PROBE_S = 60.0
#: Attempts of a measurement of bare drives for prediction: one more than needed, in case the rig fails.
MEMBER_ATTEMPTS = 2
#: Table ``measure`` of a protocol with the table ``visits``, of bare drives and of loops: only its ramp may be given.
BESIDE_VISITS: dict[str, object] = {"ramp": "5 s", "window": "1 s", "repeats": 1, "attempts": MEMBER_ATTEMPTS}


@frozen
class Protocol:
    """One way of conditioning and measuring."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    #: Of the file, without its suffix.
    name: str
    #: True if its verdicts may be used to accept or reject a product.
    acceptance: bool
    #: Before anything is measured.
    fill: Annotated[Fill, TABLE]
    precondition: Annotated[PreconditionRule, TABLE]
    measure: Annotated[MeasureRule, TABLE]
    #: Purge of members before an array is built: ``format`` (NVMe Format if it affects only the drive itself, else
    #: discard) or ``discard`` (of the whole range).
    purge: Literal["format", "discard"] = "format"
    #: Write caches of the drives; what is switched is restored when the run ends.
    write_cache: WriteCacheRule = AS_FOUND
    steady: Annotated[SteadyRule, TABLE] = field(default_factory=SteadyRule)
    array: Annotated[ArraySettings, TABLE] = field(default_factory=ArraySettings)
    load: Annotated[LoadRule, TABLE] = field(default_factory=LoadRule)
    members: Annotated[MemberRule, TABLE] = field(default_factory=MemberRule)
    loop: Annotated[LoopRule, TABLE] = field(default_factory=LoopRule)
    saturation: Annotated[SaturationRule, TABLE] = field(default_factory=SaturationRule)
    rebuild: Annotated[RebuildRule, TABLE] = field(default_factory=RebuildRule)
    integrity: Annotated[IntegrityRule, TABLE] = field(default_factory=IntegrityRule)
    explore: Annotated[ExploreRule, TABLE] = field(default_factory=ExploreRule)
    verdict: Annotated[VerdictRule, TABLE] = field(default_factory=VerdictRule)
    #: All points of a run as one experiment; None if every measurement takes the same time, ``measure.window_s``.
    visits: Annotated[VisitRule, TABLE] | None = None

    @property
    def conditions_drives(self) -> bool:
        """True if the bare drives are conditioned, and arrays are assembled of them."""
        return self.precondition.of == "drives"

    @property
    def round_s(self) -> float:
        """Length of one round of the steady-state window."""
        return self.measure.window_s / self.steady.window

    @property
    def striping(self) -> Striping:
        """What limits of arrays depend on: md's settings, and how fast it may rebuild a member."""
        return replace(self.array.striping, rebuild_bytes_per_s=self.rebuild.most_bytes_per_s)

    @property
    def of_members(self) -> Protocol:
        """The protocol by which bare drives are measured before arrays: once, for a fixed time."""
        attempts = max(self.measure.attempts, MEMBER_ATTEMPTS)
        return replace(self, visits=None, measure=MeasureRule(self.members.ramp_s, self.members.window_s, 1, attempts))

    def window_of(self, *, tail: bool) -> float:
        """Counted time of a measurement in seconds; ``tail`` if a percentile of its tail is judged."""
        tail_window_s = self.measure.tail_window_s
        return tail_window_s if tail and tail_window_s is not None else self.measure.window_s

    def validated(self) -> Self:
        """Return the protocol of a file, in which a cell is the window of ``visits``; ``ValueError`` for its faults."""
        faults = [*self._faults_of_rounds(), *(self._faults_of_visits(self.visits) if self.visits else self._faults())]
        if faults:
            raise ValueError("; ".join(faults))
        return replace(self, measure=replace(self.measure, window_s=self.visits.cell_s)) if self.visits else self

    def _faults_of_rounds(self) -> Iterator[str]:
        windows_s = {"members.window": self.members.window_s}
        if self.visits is None:
            windows_s |= {
                "measure.window": self.measure.window_s,
                "explore.measurement": self.explore.measurement_s or 0,
            }
        for name, window_s in windows_s.items():
            # fio reports once a second; a shorter round would be a fraction of one report.
            if window_s and window_s / self.steady.window < 1:
                yield (
                    f"{name} ({window_s:g} s) is cut into {self.steady.window} rounds (steady.window); each must last "
                    "at least 1 s"
                )

    def _faults(self) -> Iterator[str]:
        if self.conditions_drives:
            yield (
                'precondition.of = "drives" needs the table visits, whose "refresh" comes before each array: drives '
                "that were idle are faster for a while"
            )
        probe_s = self.explore.measurement_s or min(self.measure.window_s, LONGEST_PROBE_S)
        yield from self._faults_of_budget(self.measure.ramp_s + probe_s)

    def _faults_of_visits(self, visits: VisitRule) -> Iterator[str]:
        if self.acceptance and visits.cell_s < LEAST_CELL_S:
            yield (
                f"visits.cell ({visits.cell_s:g} s) is {LEAST_CELL_S:g} s at least for acceptance, as its first "
                "seconds are compared with the rest"
            )
        if not self.conditions_drives and len(visits.cells) > 1:
            yield (
                "visits.cells has several visits, each of which would fill its array anew; set "
                'precondition.of = "drives"'
            )
        yield from self._faults_of_budget(visits.ramp_s + (self.explore.measurement_s or visits.cell_s))

    def _faults_of_budget(self, measurement_s: float) -> Iterator[str]:
        if self.explore.budget_s < measurement_s:
            yield (
                f"explore.budget ({self.explore.budget_s:g} s) is less than one measurement takes ({measurement_s:g} s)"
            )


FILE = TypeAdapter(Annotated[Protocol, TABLE])


def load(path_or_name: str | Path) -> Protocol:
    """Read a protocol: the path of a TOML file, or the name of a shipped one. ``DocumentError`` with every error."""
    name, content = toml.read(path_or_name, FOLDER)
    errors = ["name: unknown key"] if "name" in content else []
    if "visits" in content:
        errors += _without_fixed_length(content)
    content["name"] = name.removesuffix(".toml")
    return toml.checked(FILE.validate_python, name, content, errors)


def _without_fixed_length(content: dict[str, object]) -> list[str]:
    """Complete the table ``measure`` beside ``visits``; return an error for each key that it must not have."""
    given = content.get("measure", {})
    if not isinstance(given, dict):
        return []
    wrong = [key for key in ("window", "tail_window", "repeats", "attempts") if key in given]
    content["measure"] = BESIDE_VISITS | {key: value for key, value in given.items() if key not in wrong}
    return [
        f"measure.{key}: is of measurements of a fixed length; the table visits has cells instead, leave it out"
        for key in wrong
    ]


def shipped() -> tuple[str, ...]:
    """Names of the protocols that come with the package."""
    return toml.shipped(FOLDER)
