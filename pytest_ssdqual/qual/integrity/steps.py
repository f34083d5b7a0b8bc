"""Steps of an integrity test and their script language: what is done to an array and its members, one step a line.

    array raid5x3 bitmap internal
    write 3 64k
    fail 2
    cut 5 4k

Drives are numbered from 1 in the order given to the run, regions from 0 in the order of their offsets. The parser is
strict: an unknown word is an error that names the line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.units import format_size, parse_size

BITMAPS = ("none", "internal")
#: Transfers are multiples of this.
UNIT_BYTES = 4096


class HistoryError(ValueError):
    """An invalid script; the message names the line."""


@frozen
class NumberedStep:
    """A step about one drive or region; its line is a word and the number."""

    number: int
    word: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.word} {self.number}"


@frozen
class BareStep:
    """A step about the whole array; its line is one word."""

    word: ClassVar[str]

    def __str__(self) -> str:
        return self.word


@frozen
class Write:
    """Overwrite a region in transfers of one size, all acknowledged; then flush, unless ``unflushed``."""

    region: int
    block_bytes: int
    flushed: bool = True

    def __str__(self) -> str:
        return f"write {self.region} {format_size(self.block_bytes)}{'' if self.flushed else ' unflushed'}"


class Trim(NumberedStep):
    """Discard a region; its content is undefined until it is written again."""

    word = "trim"


class Fail(NumberedStep):
    """Let md fail a member, as it does when a drive returns errors."""

    word = "fail"


class Remove(NumberedStep):
    """Take a failed member out of the array."""

    word = "remove"


class ReAdd(NumberedStep):
    """Re-add a removed member: md writes only what changed meanwhile, by the bitmap."""

    word = "re-add"


class Add(NumberedStep):
    """Add a drive as new: a spare, which is rebuilt at once if a member is missing."""

    word = "add"


class RebuildMember(BareStep):
    """Wait for the end of the rebuild."""

    word = "rebuild"


class CheckArray(BareStep):
    """Let md compare all copies, or all data with their parity."""

    word = "check"


class Repair(BareStep):
    """Let md compare, and make copies and parity consistent."""

    word = "repair"


class Restart(BareStep):
    """Stop the array and assemble it again."""

    word = "restart"


class Grow(NumberedStep):
    """Make the array one member wider, by this drive."""

    word = "grow"


@frozen
class Cut:
    """Cut the power and boot again: while idle, or while a region is overwritten repeatedly."""

    region: int | None = None
    block_bytes: int = UNIT_BYTES

    def __str__(self) -> str:
        return "cut" if self.region is None else f"cut {self.region} {format_size(self.block_bytes)}"


class Read(BareStep):
    """Read and verify all regions."""

    word = "read"


Step = Write | Trim | Fail | Remove | ReAdd | Add | RebuildMember | CheckArray | Repair | Restart | Grow | Cut | Read


@frozen
class StepSequence:
    """One history: the array and its steps in order."""

    geometry: Geometry
    bitmap: str
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if self.geometry.level is RaidLevel.DRIVE or self.geometry.missing:
            raise ValueError(f"{self.geometry} is no array that could be built: write e.g. raid5x3")
        if self.bitmap not in BITMAPS:
            raise ValueError(f"a bitmap is {' or '.join(BITMAPS)}, not {self.bitmap!r}")

    def __str__(self) -> str:
        """The script; ``parse`` reads it back."""
        return "".join(f"{line}\n" for line in (f"array {self.geometry} bitmap {self.bitmap}", *self.steps))

    @property
    def in_words(self) -> str:
        """The steps on one line, for a sentence."""
        return ", ".join(map(str, self.steps)) or "nothing but the first write"


def parse(text: str) -> StepSequence:
    """Parse a script; ``#`` begins a comment. ``HistoryError`` with the number of the invalid line."""
    geometry, bitmap, steps = None, "", []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if geometry is None:
                geometry, bitmap = _head(words)
            else:
                steps.append(_step(words))
        except ValueError as error:
            raise HistoryError(f"line {number}: {error}") from error
    if geometry is None:
        raise HistoryError("line 1: a history begins with e.g. array raid5x3 bitmap none")
    return StepSequence(geometry, bitmap, tuple(steps))


def _head(words: list[str]) -> tuple[Geometry, str]:
    match words:
        case ["array", shape, "bitmap", bitmap]:
            geometry = Geometry.parse(shape)
            StepSequence(geometry, bitmap, ())
            return geometry, bitmap
    raise ValueError(f"a history begins with e.g. array raid5x3 bitmap none, not {' '.join(words)!r}")


def _step(words: list[str]) -> Step:
    match words:
        case ["write", region, size]:
            return Write(_number(region), _block(size))
        case ["write", region, size, "unflushed"]:
            return Write(_number(region), _block(size), flushed=False)
        case ["cut", region, size]:
            return Cut(_number(region), _block(size))
        case [name, number] if name in NUMBERED:
            return NUMBERED[name](_number(number))
        case [name] if name in BARE:
            return BARE[name]
    raise ValueError(f"{' '.join(words)!r} is no step; there are {', '.join(FORMS)}")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise ValueError(f"{text!r} is not the number of a drive or region")
    return int(text)


def _block(text: str) -> int:
    size = parse_size(text)
    if size % UNIT_BYTES:
        raise ValueError(f"transfers are multiples of {format_size(UNIT_BYTES)}, not {text}")
    return size


NUMBERED: dict[str, Callable[[int], Step]] = {each.word: each for each in (Trim, Fail, Remove, ReAdd, Add, Grow)}
BARE: dict[str, Step] = {
    str(each): each for each in (RebuildMember(), CheckArray(), Repair(), Restart(), Cut(), Read())
}
#: Forms of the steps, for error messages.
FORMS = ("write REGION SIZE [unflushed]", "trim REGION", *(f"{name} DRIVE" for name in NUMBERED if name != "trim"))
FORMS = (*FORMS, "cut [REGION SIZE]", *(name for name in BARE if name != "cut"))
