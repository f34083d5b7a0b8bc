"""Which arrays a test is about: the mark ``array`` and ``--ssd-arrays``, as the geometries that these drives can form.

Nothing is reduced silently: what the drives cannot form is there too, with the numbers that say why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, Level

#: ``raid5``, ``raid5x4``, ``raid5x4-1failed``.
REQUEST = re.compile(r"(?P<level>[a-z]+?\d*)(?:x(?P<width>\d+))?(?:-(?P<missing>\d+)failed)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """One array that is asked for; without a width it is of all drives (``drive``: all of them side by side)."""

    level: Level
    width: int | None = None
    missing: int = 0

    def __str__(self) -> str:
        width = "" if self.width is None else f"x{self.width}"
        return f"{self.level}{width}{f'-{self.missing}failed' if self.missing else ''}"

    @classmethod
    def parse(cls, text: str) -> Request:
        """Read ``raid5``, ``raid5x4`` or ``raid5x4-1failed``; ValueError for anything else."""
        found = REQUEST.fullmatch(text)
        if not found or found["level"] not in list(Level):
            raise ValueError(f"{text!r} is not an array; write one of {', '.join(Level)}, or e.g. raid5x4")
        level, missing = Level(found["level"]), int(found["missing"] or 0)
        _require_tolerated(level, missing)
        width = int(found["width"]) if found["width"] else None
        return cls(level, None if width is None else Geometry(level, width, missing).width, missing)


@dataclass(frozen=True, slots=True)
class Widths:
    """All arrays of one level: of these widths, or of every one that the drives can form."""

    level: Level
    widths: tuple[int, ...] | None = None
    missing: int = 0

    def __post_init__(self) -> None:
        _require_tolerated(self.level, self.missing)
        for width in self.widths or ():
            Geometry(self.level, width, self.missing)

    def __str__(self) -> str:
        return f"{self.level}{f'-{self.missing}failed' if self.missing else ''}"


@dataclass(frozen=True, slots=True)
class Family:
    """All widths of one level that a sweep compares."""

    name: str
    geometries: tuple[Geometry, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Impossible:
    """What these drives cannot form, by the name that its tests have, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return self.name


def parse_list(text: str) -> tuple[Request, ...]:
    """``drive,raid5x4,raid0`` → requests, each once. ValueError if there is none, or one that makes no sense."""
    found = tuple(dict.fromkeys(Request.parse(part.strip()) for part in text.split(",") if part.strip()))
    if not found:
        raise ValueError("names no array; write e.g. drive,raid5x4,raid0")
    return found


def geometries(asked: Widths | Request, drives: int, *, rebuilding: bool = False) -> list[Geometry | Impossible]:
    """The arrays of one request, and in their place what cannot be built; narrowest first.

    ``rebuilding``: not those with members missing, but those whose members are being given back.
    """
    if isinstance(asked, Request):
        found = [_one(asked, drives)]
    else:
        found = [_fitting(each, drives) for each in _wanted(asked, drives)]
        found = found or [Impossible(str(asked), _too_few(asked, drives))]
        if asked.widths is None and FACTS[asked.level].step > 1 and found and isinstance(found[0], Geometry):
            found += _left_over(asked, drives)
    if not rebuilding:
        return found
    return [
        Geometry(each.level, each.width, each.missing, rebuilding=True) if isinstance(each, Geometry) else each
        for each in found
    ]


def family(asked: Widths | Request, drives: int) -> Family | Impossible:
    """All widths of one request; drives side by side are one only where widths are named."""
    name = str(asked)
    if isinstance(asked, Request):
        asked = Widths(asked.level, None, asked.missing)
    if asked.level is Level.DRIVE and asked.widths is None:
        return Impossible(name, "drives side by side are no array: there are no widths to compare")
    built = tuple(each for each in _wanted(asked, drives) if each.width <= drives)
    if len(built) > 1:
        return Family(name, built)
    facts = FACTS[asked.level]
    second = max(facts.minimum, asked.missing + 1) + facts.step
    return Impossible(name, f"needs two widths of {asked.level} ({second} drives), {drives} given")


def _wanted(asked: Widths, drives: int) -> list[Geometry]:
    """The widths named, or all that are possible of so many drives."""
    facts = FACTS[asked.level]
    if asked.widths is not None:
        return [Geometry(asked.level, width, asked.missing) for width in asked.widths]
    if asked.level is Level.DRIVE:
        return [Geometry(asked.level, drives)] if drives else []
    widths = range(facts.minimum, drives + 1, facts.step)
    return [Geometry(asked.level, width, asked.missing) for width in widths if facts.may_lose(width) >= asked.missing]


def _one(asked: Request, drives: int) -> Geometry | Impossible:
    facts, width = FACTS[asked.level], drives if asked.width is None else asked.width
    if width < facts.minimum:
        return Impossible(str(asked), f"{asked.level} needs at least {facts.minimum} drives, {drives} given")
    if not facts.allows(width):
        return Impossible(str(asked), f"{asked.level} needs {facts.describe_widths()}, {drives} given")
    if facts.may_lose(width) < asked.missing:
        return Impossible(str(asked), f"{asked.level} of {width} drives may not lose {asked.missing} of them")
    return _fitting(Geometry(asked.level, width, asked.missing), drives)


def _fitting(geometry: Geometry, drives: int) -> Geometry | Impossible:
    if geometry.width <= drives:
        return geometry
    return Impossible(str(geometry), f"needs {geometry.width} drives, {drives} given")


def _left_over(asked: Widths, drives: int) -> Sequence[Impossible]:
    facts = FACTS[asked.level]
    if facts.allows(drives):
        return ()
    reason = f"{asked.level} needs {facts.describe_widths()}, {drives} given"
    return (Impossible(f"{asked.level}x{drives}", reason),)


def _too_few(asked: Widths, drives: int) -> str:
    facts = FACTS[asked.level]
    least = next(width for width in range(facts.minimum, 10**6, facts.step) if facts.may_lose(width) >= asked.missing)
    lost = f" to lose {asked.missing} of them" if least > facts.minimum else ""
    return f"{asked.level} needs at least {least} drives{lost}, {drives} given"


def _require_tolerated(level: Level, missing: int) -> None:
    tolerates = FACTS[level].tolerates
    if missing < 0 or (tolerates is not None and missing > tolerates):
        raise ValueError(f"{level} may lose {tolerates} of its members, not {missing}")
