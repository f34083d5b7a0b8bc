"""One promise of a spec: its claim, the arrays and workloads that it is about, and its limit.

`Promise` is also the type of a table ``[[promise]]``: pydantic validates the table into it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import (
    LEAST_FACTOR,
    NEAR_ONE,
    OF_RARE_EVENTS,
    RATIO_IN_PER_CENT,
    TIMES_PER_HOUR,
    Accountable,
    Claim,
    Direction,
    Scope,
    require_factor,
    require_meant,
)
from pytest_ssdqual.qual.spec.datasheet import QUANTITIES, workload_id
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.toml import Name, Percent, parsed, read_bound
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

_LIMITS = (
    "at_least",
    "at_most",
    "min_percent_of_spec",
    "max_percent_of_spec",
    "min_percent_of_baseline",
    "max_percent_of_baseline",
)
#: Claims with a limit in per cent of the sheet: of a rebuild it is what md and the members allow.
_OF_SPEC = {*QUANTITIES, Claim.REBUILD_RATE, Claim.REBUILD_TIME}
#: What is not literal in a glob.
_WILDCARDS = re.compile(r"\[[^\]]+\]|[*?]")
#: All that an id consists of.
_OF_IDS = re.compile(r"[a-z0-9_+]*")
#: The part of a glob that names streams: ``_s4_qd8``, ``_s*_qd8``.
_STREAMS = re.compile(r"s[\d*?\[][^_]*_qd")


@frozen
class Relation:
    """A limit in per cent of the same quantity of another workload on the same array, or of the baseline."""

    #: None for the baseline, an earlier run.
    reference: Workload | None
    direction: Direction
    percent: float
    #: File, and the place in it.
    source: str

    def __str__(self) -> str:
        return f"{self.direction.replace('_', ' ')} {self.percent:g} % of {self.reference or 'the baseline'}"


def _percent_key(claim: Claim, of: str = "spec") -> str:
    return f"{'min' if claim.direction is Direction.AT_LEAST else 'max'}_percent_of_{of}"


def _objection(claim: Claim, key: str, given: object) -> str:
    """Return why a promise of the claim cannot have this value of the key; empty if it can."""
    if key == "state" and claim.scope is Scope.REBUILD and given != "rebuilding":
        return f"{claim} is about arrays that are rebuilding, not {given}"
    if key == "subject" and claim.is_of_system and given is Accountable.DRIVE:
        return f"{claim} is about the system of md and the host, not about drives"
    if key == "times_per_hour" and claim not in OF_RARE_EVENTS:
        return f"{claim} is not about rare events: leave times_per_hour out"
    if key.endswith("_of_spec") and claim not in _OF_SPEC:
        return f"no figure can be published for {claim}, so nothing is promised in per cent of it"
    own = _percent_key(claim, key.rpartition("_")[2])
    return f"{claim} is judged by {claim.direction}: write {own}" if key in _LIMITS and key != own else ""


def _not_a_fraction(percent: float) -> float:
    """Refuse a lower limit of one per cent or less: 0.95 was meant as 95 %, and everything would keep it."""
    if percent <= 1:
        raise ValueError(
            f"{percent:g} % or more is kept by everything: write {100 * percent:g} for {100 * percent:g} %"
        )
    return percent


_LeastPercent = Annotated[Percent, AfterValidator(_not_a_fraction)]
#: No drive does more than twice what its maker publishes: 950 was meant as 95.0.
_LeastOfSpec = Annotated[float, Field(gt=0, le=200), AfterValidator(_not_a_fraction)]

_Classes = Annotated[
    Annotated[list[Annotated[DriveClass, Field(strict=False)]], Field(min_length=1)] | None,
    BeforeValidator(
        lambda given: given if isinstance(given, list) else [given],
        json_schema_input_type=DriveClass | Annotated[list[DriveClass], Field(min_length=1)],
    ),
]


def _matches_ids(glob: str) -> str:
    """Refuse a glob that matches no workload's id: its promise would be dead, and a wider one would decide."""
    if not _OF_IDS.fullmatch(_WILDCARDS.sub("", glob)):
        raise ValueError(f"{glob!r} matches no workload: ids have lower case letters, digits, _ and + only")
    if not _WILDCARDS.search(glob) and workload_id(glob) != glob:
        raise ValueError(f"{glob!r} matches no workload; write {workload_id(glob)!r}")
    return glob


def _covers(glob: str, workload: Workload) -> bool:
    """Return whether a promise with this glob is about the workload.

    A glob that does not end with ``*`` is about a queue depth. Several jobs of that depth have more I/Os outstanding,
    so it has to name them: ``*_qd8`` is not about ``randread_4k_s4_qd8``, nor ``*qd8`` about ``randread_4k_t8xqd8``.
    """
    if not fnmatchcase(str(workload), glob):
        return False
    names_threads = (workload.threads or 1) == 1 or "xqd" in glob
    names_streams = workload.streams_per_drive == 1 or _STREAMS.search(glob) is not None
    return glob.endswith("*") or (names_threads and names_streams)


def _no_key(given: object) -> str:
    """Refuse a key that has the name of ``Promise.source``, which ``spec.load`` sets."""
    raise ValueError("unknown key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One ``[[promise]]``: arrays, workloads, and exactly one limit."""

    __pydantic_config__ = ConfigDict(
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        json_schema_extra={
            "oneOf": [{"required": [key]} for key in _LIMITS],
            "dependentSchemas": {"relative_to": {"anyOf": [{"required": [key]} for key in _LIMITS[:2]]}},
        },
    )

    # Order matters: a bound is read in the unit of the claim, or in per cent, which must be validated first.
    claim: Annotated[Claim, Field(strict=False)]
    """What is promised"""
    level: Annotated[RaidLevel | None, Field(strict=False)] = None
    """Of this level only"""
    width: Annotated[int | None, Field(ge=1)] = None
    """Of arrays with this number of members only"""
    state: Literal["healthy", "degraded", "rebuilding"] | None = None
    """Of arrays in this state only; healthy if left out, of a rebuild's claims rebuilding"""
    workload: Annotated[
        Annotated[Name, AfterValidator(_matches_ids)] | None, Field(examples=["randwrite_*", "*_qd8"])
    ] = None
    """Glob on the workload's id"""
    drive_classes: Annotated[_Classes, Field(alias="class", examples=["nvme_gen4", ["sata", "sas"]])] = None
    """Of drives of this class only, or a list of classes"""
    subject: Annotated[
        Accountable | None,
        Field(
            strict=False,
            description="What a failure blames: drive (only if the drives are the bottleneck) or system; if left out "
            "as in the table product",
        ),
    ] = None
    relative_to: Annotated[Annotated[Workload, parsed(Workload.parse)] | None, Field(examples=["randread_4k_qd8"])] = (
        None
    )
    """Id of another workload: at_least or at_most is in per cent of its quantity on the same array"""
    at_least: Annotated[float | None, Field(examples=["11,500 IOPS", 0.9, "40 %"])] = None
    """Lower limit in the unit of the claim"""
    at_most: Annotated[float | None, Field(examples=["1.4 ms", 7, "10 %", "2 h"])] = None
    """Upper limit in the unit of the claim"""
    min_percent_of_spec: _LeastOfSpec | None = None
    """Lower limit in per cent of what the figures give for the array"""
    max_percent_of_spec: Percent | None = None
    """Upper limit in per cent of the published figure"""
    min_percent_of_baseline: _LeastPercent | None = None
    """Lower limit in per cent of what the run of --ssd-baseline measured"""
    max_percent_of_baseline: Percent | None = None
    """Upper limit in per cent of what the run of --ssd-baseline measured"""
    times_per_hour: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description=f"How often the limit may be exceeded; {TIMES_PER_HOUR:g} if left out. Only of "
            f"{', '.join(sorted(OF_RARE_EVENTS))}",
        ),
    ] = None
    #: File, and the place in it.
    source: Annotated[SkipJsonSchema[str], BeforeValidator(_no_key)] = ""

    @field_validator("claim")
    @classmethod
    def _of_drives(cls, given: Claim) -> Claim:
        if given.scope is Scope.LOT:
            raise ValueError(f"{given} is decided by the plan in the table lot, not by a promise")
        return given

    @field_validator("state", "subject", "times_per_hour", *_LIMITS[2:])
    @classmethod
    def _suits_the_claim(cls, given: object, info: ValidationInfo) -> object:
        claim = info.data.get("claim")
        if claim and given is not None and (objection := _objection(claim, str(info.field_name), given)):
            raise ValueError(objection)
        return given

    @field_validator("relative_to", mode="before")
    @classmethod
    def _another_workload(cls, given: object, info: ValidationInfo) -> object:
        claim = info.data.get("claim")
        if isinstance(given, str) and claim and claim.scope is not Scope.RUN:
            raise ValueError(f"{claim} is not about one workload, so it cannot be relative to another")
        return given

    @field_validator("at_least", "at_most", mode="before", json_schema_input_type=float | str)
    @classmethod
    def _in_the_unit_of_the_claim(cls, given: object, info: ValidationInfo) -> object:
        claim = info.data.get("claim")
        if claim is None or "relative_to" not in info.data:
            return 1.0  # that field has its own error
        if info.field_name != claim.direction:
            raise ValueError(f"{claim} is judged by {claim.direction}")
        unit = claim.unit if info.data["relative_to"] is None else Unit.PERCENT
        bound = read_bound(given, unit)
        if claim.direction is Direction.AT_LEAST:
            require_meant(given, bound, unit)
        elif claim.unit is unit is Unit.PERCENT and bound >= 100:
            raise ValueError(f'"{given}" or less is kept by everything: a share of the whole is at most 100 %')
        if unit is Unit.PERCENT and claim.direction is Direction.AT_LEAST:
            return _not_a_fraction(bound)
        if unit is Unit.RATIO and claim in NEAR_ONE and bound >= RATIO_IN_PER_CENT:
            raise ValueError(f"{claim} is a ratio, not a percentage: write {bound / 100:g} for {bound:g} %")
        if claim is Claim.FRESH_TO_STEADY and bound < LEAST_FACTOR:
            words = f"write {1 / bound:.3g} for a drive that settles at {100 * bound:g} % of its fresh IOPS"
            raise ValueError(f"{claim} is {claim.label}: {words}")
        return require_factor(given, bound) if claim is Claim.FRESH_TO_STEADY else bound

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        given = [key for key in _LIMITS if getattr(self, key) is not None]
        possible = [self.claim.direction.value] + [_percent_key(self.claim)] * (self.claim in _OF_SPEC)
        possible.append(_percent_key(self.claim, "baseline"))
        if len(given) != 1:
            raise ValueError(f"{self.claim} needs exactly one limit: {' or '.join(possible)}")
        if self.relative_to is not None and given[0] not in possible[:1]:
            raise ValueError(f"relative_to goes with {possible[0]}, in per cent, not with {given[0]}")
        return self

    @model_validator(mode="after")
    def _of_arrays_that_exist(self) -> Self:
        if self.level is None:
            return self
        facts = FACTS[self.level]
        if self.width is not None and not facts.allows(self.width):
            raise ValueError(f"{self.level} needs {facts.describe_widths()}, not {self.width}")
        if self.state not in (None, "healthy") and not facts.may_lose(self.width or facts.minimum):
            raise ValueError(f"{self.level} has nothing left to measure when a member is missing")
        return self

    def matches(
        self, claim: Claim, geometry: Geometry, workload: Workload, drive_class: DriveClass | None = None
    ) -> bool:
        """Return whether this promise covers claim, array, workload and class of drives.

        A workload is never relative to itself. Drives without a class have only promises for any class.
        """
        return (
            claim is self.claim
            and (self.drive_classes is None or drive_class in self.drive_classes)
            and self.level in (None, geometry.level)
            and self.width in (None, geometry.width)
            # A rebuild claim applies to the rebuilding state, whatever the array's id.
            and (claim.scope is Scope.REBUILD or (self.state or "healthy") == geometry.state)
            and (self.workload is None or _covers(self.workload, workload))
            and self.relative_to != workload
        )

    def leaves_out_jobs(self, workload: Workload) -> bool:
        """Return whether the workload's id matches, but has several jobs that the glob does not name."""
        glob = self.workload
        return glob is not None and fnmatchcase(str(workload), glob) and not _covers(glob, workload)

    def covers(self, other: Promise) -> bool:
        """Return whether this promise decides wherever the other one would; False where that is not certain.

        One in per cent of a figure gives way where none is published, and one relative to a workload is not about that.
        """
        if self.claim is not other.claim or self.percent_of_spec is not None or self.relative_to is not None:
            return False
        states = {self.state or "healthy", other.state or "healthy"}
        classes = self.drive_classes is None or (
            other.drive_classes is not None and set(other.drive_classes) <= set(self.drive_classes)
        )
        return (
            classes
            and self.level in (None, other.level)
            and self.width in (None, other.width)
            and (self.claim.scope is Scope.REBUILD or len(states) == 1)
            and self.workload in (None, "*", other.workload)
        )

    @property
    def about(self) -> str:
        """What it is about, in the words of the file: ``steady_iops of raid5 randread_*``."""
        width = f" of {self.width} drives" if self.width else ""
        of = " ".join(str(each) for each in (self.state, self.level, self.workload) if each)
        return f"{self.claim}{f' of {of}' if of else ''}{width}"

    @property
    def place(self) -> str:
        """Where it is written, and the class that it is for: ``default.toml promise[3], for SATA drives``."""
        if not self.drive_classes:
            return self.source
        return f"{self.source}, for {' and '.join(each.label for each in self.drive_classes)} drives"

    @property
    def bound(self) -> float | None:
        """In the claim's unit; with ``relative_to`` in per cent of the other workload's quantity."""
        return self.at_least if self.at_most is None else self.at_most

    @property
    def percent_of_spec(self) -> float | None:
        return self.max_percent_of_spec if self.min_percent_of_spec is None else self.min_percent_of_spec

    @property
    def relation(self) -> Relation | None:
        """The limit in per cent of another workload or of the baseline; None for one in numbers or of the sheet."""
        least, most = self.min_percent_of_baseline, self.max_percent_of_baseline
        percent = most if least is None else least
        if self.relative_to is not None:
            percent = self.bound
        return None if percent is None else Relation(self.relative_to, self.claim.direction, percent, self.place)
