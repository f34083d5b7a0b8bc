"""Runs the steps of an integrity test on a ``Body``, and compares every read with the reference model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity.array_state import ArrayLife
from pytest_ssdqual.qual.integrity.reference_model import PASSES, Mismatch, MismatchKind, ReferenceModel, Region, Torn
from pytest_ssdqual.qual.integrity.steps import (
    UNIT_BYTES,
    Add,
    CheckArray,
    Cut,
    Fail,
    Grow,
    Read,
    ReAdd,
    RebuildMember,
    Remove,
    Repair,
    Restart,
    Step,
    StepSequence,
    Trim,
    Write,
)
from pytest_ssdqual.qual.raid.geometry import FACTS
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.integrity.target import Body, Ground
from pytest_ssdqual.rig.machine.machine import RigError


@dataclass(slots=True)
class Lived:
    """What became of a history."""

    history: StepSequence
    #: Steps that were done; the last of them if something was found.
    done: int = 0
    findings: list[Mismatch] = field(default_factory=list)
    #: What is worth telling and is nobody's failure.
    remarks: list[str] = field(default_factory=list)
    #: Atomic units that were compared, and bytes of one.
    compared: int = 0
    atom_bytes: int = 0

    @property
    def told(self) -> StepSequence:
        """As far as it went."""
        return StepSequence(self.history.geometry, self.history.bitmap, self.history.steps[: self.done])


class ImpossibleStep(RigError):
    """A history wants what cannot be done here."""


Told = Callable[[str], None]


def live(body: Body, history: StepSequence, number: int, told: Told = lambda step: None) -> Lived:
    """Build the array, do every step, and read everything at the end; ends early where something is found.

    ``number`` tells its data from those of other histories. ``ImpossibleStep`` if a step is not possible where it
    stands; ``RigError`` or a child of it where the rig is at fault.
    """
    return _Living.begin(body, history, number).through(told)


@dataclass(slots=True)
class _Living:
    body: Body
    number: int
    ground: Ground
    life: ArrayLife
    ledger: ReferenceModel
    lived: Lived
    #: md was forced to start, so that copies or parity may disagree until they are repaired.
    dirty: bool = False

    @classmethod
    def begin(cls, body: Body, history: StepSequence, number: int) -> _Living:
        ground = body.build(history)
        found = _spread(history, ground)
        life = ArrayLife.begin(
            history.geometry,
            history.bitmap,
            ground.drives,
            len(found),
            ground.region_bytes,
            body.abilities(history.geometry.level),
        )
        ledger = ReferenceModel(number, ground.atom_bytes, ground.stripe_bytes)
        living = cls(body, number, ground, life, ledger, Lived(history, atom_bytes=ground.atom_bytes))
        living._found(found)
        return living

    def through(self, told: Told) -> Lived:
        steps = self.lived.history.steps
        for count, step in enumerate(steps, 1):
            if why := self.life.objection(step):
                raise ImpossibleStep(f"step {count} of the history, {str(step)!r}, is not possible: {why}")
            told(str(step))
            self.lived.done = count
            self.lived.findings += self._do(step)
            if self.lived.findings:
                return self.lived
        told("read everything")
        self.lived.findings += self._at_the_end()
        return self.lived

    def _do(self, step: Step) -> Iterator[Mismatch]:
        """Carry it out; what is found wrong in its course. The state follows."""
        match step:
            case Write(region, block_bytes, flushed):
                self._write([self.ledger.regions[region]], block_bytes, flushed=flushed)
            case Trim(region):
                place = self.ledger.regions[region]
                self.body.trim(place.offset_bytes, place.size_bytes)
                self.ledger.trimmed(place)
            case Fail(drive):
                self.body.fail(drive)
            case Remove(drive):
                self.body.remove(drive)
            case ReAdd(drive):
                self.body.re_add(drive)
            case Add(drive):
                self.body.add(drive)
            case Restart():
                self.body.restart(sorted(self.life.members), self._missing)
        before, self.life = self.life, self.life.after(step)
        match step:
            case RebuildMember():
                self.body.settle(self._missing)
                yield from self._read()
            case CheckArray() | Repair():
                yield from self._compare(repair=isinstance(step, Repair))
            case Grow(drive):
                yield from self._grow(drive)
            case Cut():
                yield from self._cut(step, before)
            case Read():
                yield from self._read()

    @property
    def _missing(self) -> int:
        """Members that are in nobody's place."""
        return self.life.geometry.width - len(self.life.whole) - len(self.life.filling)

    def _found(self, found: Sequence[Region]) -> None:
        """Regions that hold nothing known get their first write."""
        self.ledger.add(found)
        self._write(found, UNIT_BYTES, flushed=True)

    def _write(self, places: Sequence[Region], block_bytes: int, *, flushed: bool) -> None:
        generation = self.ledger.begin(block_bytes)
        stretches = [Stretch(each.offset_bytes, each.written(block_bytes), generation, block_bytes) for each in places]
        self.body.write(self.number, stretches, flush=flushed)
        for each in places:
            self.ledger.wrote(each, generation, flushed=flushed)

    def _read(self) -> Iterator[Mismatch]:
        """By fio what can only be one thing, and again by ourselves what it finds wrong; the rest by ourselves."""
        sure: dict[int, list[Stretch]] = {}
        for region in self.ledger.regions:
            parts = self.ledger.certain(region)
            if sum(size for _, size, _ in parts) == region.size_bytes:
                sure[region.number] = [Stretch(*each, self.ledger.block_bytes(each[2])) for each in parts]
            self.lived.compared += region.size_bytes // self.ground.atom_bytes
        known = [each for parts in sure.values() for each in parts]
        doubt = bool(known) and self.body.differs(self.number, known)
        found = False
        for region in self.ledger.regions:
            if doubt or region.number not in sure:
                data = self.body.read(region.offset_bytes, region.size_bytes)
                wrong = list(self.ledger.judge(region, data))
                found = found or bool(wrong)
                yield from wrong
        if doubt and not found:
            self.lived.remarks.append(
                "fio read something that differed, and when it was read again it was right: the array gave two answers"
            )
            yield Mismatch(MismatchKind.UNREADABLE, None, "fio found a difference that was gone when it was read again")

    def _compare(self, *, repair: bool) -> Iterator[Mismatch]:
        self.body.settle(self._missing)
        sectors = self.body.compare(repair=repair)
        if not sectors:
            self.dirty = False
            return
        said = f"{sectors} sectors do not agree"
        if self.dirty:
            self.lived.remarks.append(
                f"{said} after md was forced to start with members missing and parity in doubt: the write hole"
            )
        elif self.ledger.has_trimmed and not self.ground.stripe_bytes:
            self.lived.remarks.append(f"{said}; some were discarded, and copies of those may differ")
        else:
            yield Mismatch(MismatchKind.DISAGREE, None, said, "0 sectors")
        self.dirty = self.dirty and not repair

    def _grow(self, drive: int) -> Iterator[Mismatch]:
        size_bytes = self.body.grow(drive)
        if self.life.geometry.has_parity:
            # What a stripe is has changed.
            self.ledger.stripe_bytes += self.ledger.stripe_bytes // (self.life.geometry.data_drives - 1)
            try:
                self._found(reference_model.behind(self.ledger.regions, size_bytes))
            except ValueError as error:
                raise RigError(f"{self.life.geometry}: {error}") from error
        self.body.settle(self._missing)
        yield from self._read()

    def _cut(self, step: Cut, before: ArrayLife) -> Iterator[Mismatch]:
        place = None if step.region is None else self.ledger.regions[step.region]
        over = None
        if place:
            generation = self.ledger.begin(step.block_bytes, PASSES)
            over = Stretch(place.offset_bytes, place.written(step.block_bytes), generation, step.block_bytes)
        after = self.body.cut(sorted(before.members), self._missing, self.number, over)
        torn = Torn(over.generation, after.acknowledged, over.block_bytes) if over else None
        self.ledger.cut(place, torn)
        if after.dirty:
            self.dirty = True
            self.ledger.started_dirty()
            self.lived.remarks.append("md had to be forced to start: members were missing and parity was in doubt")
        yield from self._read()

    def _at_the_end(self) -> Iterator[Mismatch]:
        """Everything once more, and all copies if there are no members missing."""
        self.body.settle(self._missing)
        self.life = self.life.after(RebuildMember()) if self.life.filling else self.life
        found = list(self._read())
        yield from found
        redundant = FACTS[self.life.level].may_lose(self.life.geometry.width) > 0
        if not found and redundant and not self.life.lacking:
            yield from self._compare(repair=False)


def _spread(history: StepSequence, ground: Ground) -> tuple[Region, ...]:
    room = ground.size_bytes - ground.begin_bytes
    count = min(ground.regions, room // (2 * ground.region_bytes) * 2) // 2 * 2
    if count < ground.regions // 2 * 2:
        raise RigError(
            f"{history.geometry} has room for {count} of {ground.regions} regions: use more of each member "
            "(integrity.member), or fewer regions (integrity.regions)"
        )
    return reference_model.spread(ground.size_bytes, ground.region_bytes, ground.regions, ground.begin_bytes)
