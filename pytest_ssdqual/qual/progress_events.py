"""Progress events of a bay: planned time, step begun, load begun, live rates, steadiness; plain values.

For people who watch, never for a verdict: nothing that is judged depends on them. They travel between processes as
JSON, one object each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pytest_ssdqual.qual import strict_json


@dataclass(frozen=True, slots=True)
class Planned:
    """Expected duration of the plan."""

    seconds: float
    #: Ids of the arrays in the order in which they will be built: ``raid5x4``.
    arrays: tuple[str, ...] = ()
    #: Begin of each, in seconds since the first.
    starts_s: tuple[float, ...] = ()

    @property
    def starts(self) -> dict[str, float]:
        """Begin of each array, by its id."""
        return dict(zip(self.arrays, self.starts_s, strict=False))


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that takes time has begun: ``raid5x4: fill``."""

    what: str
    #: Expected duration; 0 if unknown.
    expected_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Looked:
    """Result of an interim analysis, and the time by which it extends the measurement beyond the plan."""

    told: str
    more_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadBegun:
    """A fio process has begun."""

    #: ``measure``, ``precondition``, ``fill``, …
    phase: str
    geometry: str
    workload: str
    #: Devices of the figures: the array, or each of the drives side by side.
    devices: tuple[str, ...]
    #: Round at the beginning; see ``Now``.
    round: int = 0
    rounds: int = 0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """Live statistics of the load."""

    #: Seconds since the load began.
    seconds: float
    #: IOPS of each device since the previous event.
    iops: tuple[float, ...]
    #: Bytes written to all devices since the run began, by this load and all before it.
    bytes_written: int
    #: Round, counted from 1, and their number (at most, or exactly); 0 without rounds.
    round: int = 0
    rounds: int = 0
    exact: bool = False

    @property
    def together(self) -> float:
        """IOPS of all devices."""
        return sum(self.iops)


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Result of the steady-state rule, or of the last look."""

    reached: bool
    #: A sentence.
    told: str
    #: Short form for a line: ``not steady yet: range 34.0 % (20 % allowed)``; "" if there is none.
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is done until the next ``Begun``."""


def array_of(what: str) -> str:
    """Id of the array of a step or a plan row, with all its members: ``raid5x4`` for ``raid5x4-1failed: fill``."""
    return re.split("[ :-]", what, maxsplit=1)[0]


News = Planned | Begun | Looked | LoadBegun | Now | Steadiness | Idle
_KINDS: dict[str, type[News]] = {
    "planned": Planned,
    "begun": Begun,
    "looked": Looked,
    "load": LoadBegun,
    "now": Now,
    "steadiness": Steadiness,
    "idle": Idle,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_record(news: News) -> dict[str, object]:
    """Plain JSON data; ``from_record`` reads it back."""
    return {"news": _NAMES[type(news)], **asdict(news)}


def from_record(record: Mapping[str, object]) -> News:
    """Inverse of ``to_record``; ``ValueError`` for anything else."""
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items() if name != "news"
    }
    kind = _KINDS.get(str(record.get("news")))
    if kind is None:
        raise ValueError("not a progress event")
    try:
        return strict_json.conforming(kind(**given))  # type: ignore[arg-type]
    except TypeError as error:
        raise ValueError(f"not a progress event: {error}") from None
