"""What a bay tells of itself while it works, as plain values: what is begun, how it does now, how steady it is. Pure.

These are for people who watch, never for a verdict: nothing that is judged is made of them. They travel between
processes as JSON, one object each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pytest_ssdqual.qual import strict_json


@dataclass(frozen=True, slots=True)
class Planned:
    """How long all that is wanted takes, as far as that can be foreseen."""

    seconds: float
    #: ``raid5x4``, each with all that is done on it, in the order in which they will be built.
    arrays: tuple[str, ...] = ()
    #: When each of them is begun, in seconds since the first one is.
    starts_s: tuple[float, ...] = ()

    @property
    def starts(self) -> dict[str, float]:
        """By array."""
        return dict(zip(self.arrays, self.starts_s, strict=False))


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that takes time: ``raid5x4: fill``."""

    what: str
    #: 0 if nobody knows.
    expected_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at a measurement under way has shown, and how much longer than planned it goes on."""

    told: str
    more_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadBegun:
    """A fio process that begins."""

    #: ``measure``, ``precondition``, ``fill``, …
    phase: str
    geometry: str
    workload: str
    #: What the figures are of: the array, or each of the drives side by side.
    devices: tuple[str, ...]
    #: That it begins with; see ``Now``.
    round: int = 0
    rounds: int = 0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """How the load does at this moment."""

    #: Since it began.
    seconds: float
    #: Of each device, since the last one of these.
    iops: tuple[float, ...]
    #: To all devices since the run began, what this load and all before it wrote.
    bytes_written: int
    #: Counted from 1, of at most so many, or of exactly so many; 0: there are no rounds.
    round: int = 0
    rounds: int = 0
    exact: bool = False

    @property
    def together(self) -> float:
        """IOPS of all devices."""
        return sum(self.iops)


@dataclass(frozen=True, slots=True)
class Steadiness:
    """What the detector of the steady state, or the last look, found."""

    reached: bool
    #: A sentence.
    told: str
    #: A few words for a line: ``not steady yet: range 34.0 % (20 % allowed)``; empty if there are none.
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is done until the next ``Begun``."""


def array_of(what: str) -> str:
    """The array of a step, or of a row of the plan, with all its members: of ``raid5x4-1failed: fill`` ``raid5x4``."""
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
    """The inverse; ``ValueError`` for anything else."""
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items() if name != "news"
    }
    kind = _KINDS.get(str(record.get("news")))
    if kind is None:
        raise ValueError("this is no news of a bay")
    try:
        return strict_json.conforming(kind(**given))  # type: ignore[arg-type]
    except TypeError as error:
        raise ValueError(f"this is no news of a bay: {error}") from None
