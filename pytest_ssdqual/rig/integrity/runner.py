"""Runs the steps of an integrity test on an ``IntegrityTarget``, and compares every read with the reference model."""

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
from pytest_ssdqual.rig.integrity.target import IntegrityTarget, TargetLayout
from pytest_ssdqual.rig.machine.machine import RigError

StepObserver = Callable[[str], None]


@dataclass(slots=True)
class IntegrityOutcome:
    """Outcome of a step sequence on a target."""

    history: StepSequence
    #: Number of executed steps; the last of them is the one that found a mismatch, if any did.
    done: int = 0
    findings: list[Mismatch] = field(default_factory=list)
    #: Observations that are reported and are not a failure.
    remarks: list[str] = field(default_factory=list)
    #: Number of compared atomic units, and bytes of one.
    compared: int = 0
    atom_bytes: int = 0

    @property
    def executed_steps(self) -> StepSequence:
        """The step sequence as far as it was executed."""
        return StepSequence(self.history.geometry, self.history.bitmap, self.history.steps[: self.done])


class ImpossibleStep(RigError):
    """The sequence contains a step that is not possible on this target."""


def run_steps(
    target: IntegrityTarget, history: StepSequence, number: int, observer: StepObserver = lambda step: None
) -> IntegrityOutcome:
    """Build the array, execute every step, and read everything at the end; stop at the first mismatch.

    ``number`` distinguishes its data from those of other sequences. ``ImpossibleStep`` if a step is not possible in the
    current state; ``RigError`` or a child of it where the rig is at fault.
    """
    return _RunState.begin(target, history, number).through(observer)


@dataclass(slots=True)
class _RunState:
    target: IntegrityTarget
    number: int
    layout: TargetLayout
    state: ArrayLife
    model: ReferenceModel
    outcome: IntegrityOutcome

    @classmethod
    def begin(cls, target: IntegrityTarget, history: StepSequence, number: int) -> _RunState:
        layout = target.build(history)
        regions = _spread(history, layout)
        state = ArrayLife.begin(
            history.geometry,
            history.bitmap,
            layout.drives,
            len(regions),
            layout.region_bytes,
            target.abilities(history.geometry.level),
        )
        model = ReferenceModel(number, layout.atom_bytes, layout.stripe_bytes)
        run = cls(target, number, layout, state, model, IntegrityOutcome(history, atom_bytes=layout.atom_bytes))
        run._write_first(regions)
        return run

    def through(self, observer: StepObserver) -> IntegrityOutcome:
        steps = self.outcome.history.steps
        for count, step in enumerate(steps, 1):
            if reason := self.state.objection(step):
                raise ImpossibleStep(f"step {count} of the history, {str(step)!r}, is not possible: {reason}")
            observer(str(step))
            self.outcome.done = count
            self.outcome.findings += self._do(step)
            if self.outcome.findings:
                return self.outcome
        observer("read everything")
        self.outcome.findings += self._at_the_end()
        return self.outcome

    def _do(self, step: Step) -> Iterator[Mismatch]:
        """Execute a step, yield the mismatches that it reveals, and advance the state."""
        match step:
            case Write(region, block_bytes, flushed):
                self._write([self.model.regions[region]], block_bytes, flushed=flushed)
            case Trim(region):
                target_region = self.model.regions[region]
                self.target.trim(target_region.offset_bytes, target_region.size_bytes)
                self.model.trimmed(target_region)
            case Fail(drive):
                self.target.fail(drive)
            case Remove(drive):
                self.target.remove(drive)
            case ReAdd(drive):
                self.target.re_add(drive)
            case Add(drive):
                self.target.add(drive)
            case Restart():
                self.target.restart(sorted(self.state.members))
        before, self.state = self.state, self.state.after(step)
        match step:
            case RebuildMember():
                self.target.settle(self._missing)
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
        """Number of members whose place is empty."""
        return self.state.geometry.width - len(self.state.whole) - len(self.state.filling)

    def _write_first(self, regions: Sequence[Region]) -> None:
        """Give regions without known content their first write."""
        self.model.add(regions)
        self._write(regions, UNIT_BYTES, flushed=True)

    def _write(self, regions: Sequence[Region], block_bytes: int, *, flushed: bool) -> None:
        generation = self.model.begin(block_bytes)
        stretches = [
            Stretch(region.offset_bytes, region.written(block_bytes), generation, block_bytes) for region in regions
        ]
        self.target.write(self.number, stretches, flush=flushed)
        for region in regions:
            self.model.wrote(region, generation, flushed=flushed)

    def _read(self) -> Iterator[Mismatch]:
        """Read all regions: fio those whose content is certain, the runner the others, and what differs for fio."""
        certain: dict[int, list[Stretch]] = {}
        for region in self.model.regions:
            parts = self.model.certain(region)
            if sum(size for _, size, _ in parts) == region.size_bytes:
                certain[region.number] = [Stretch(*part, self.model.block_bytes(part[2])) for part in parts]
            self.outcome.compared += region.size_bytes // self.layout.atom_bytes
        stretches = [part for parts in certain.values() for part in parts]
        differs = bool(stretches) and self.target.differs(self.number, stretches)
        is_confirmed = False
        for region in self.model.regions:
            if differs or region.number not in certain:
                data = self.target.read(region.offset_bytes, region.size_bytes)
                mismatches = list(self.model.judge(region, data))
                is_confirmed = is_confirmed or bool(mismatches)
                yield from mismatches
        if differs and not is_confirmed:
            self.outcome.remarks.append(
                "fio read data that differed, and a second read returned the right data: the array gave two answers"
            )
            yield Mismatch(MismatchKind.UNREADABLE, None, "fio found a difference that a second read did not")

    def _compare(self, *, repair: bool) -> Iterator[Mismatch]:
        self.target.settle(self._missing)
        sectors = self.target.compare(repair=repair)
        if not sectors:
            self.model.repaired()
            return
        disagreement = f"{sectors} sectors do not agree"
        if self.model.has_holes:
            self.outcome.remarks.append(
                f"{disagreement} after md was forced to start with members missing and parity in doubt: the write hole"
            )
        elif self.model.has_trimmed and not self.layout.stripe_bytes:
            self.outcome.remarks.append(f"{disagreement}; some were discarded, and copies of those may differ")
        else:
            yield Mismatch(MismatchKind.DISAGREE, None, disagreement, "0 sectors")
        if repair:
            self.model.repaired()

    def _grow(self, drive: int) -> Iterator[Mismatch]:
        size_bytes = self.target.grow(drive)
        if self.state.geometry.has_parity:
            # The stripe has become larger.
            self.model.stripe_bytes += self.model.stripe_bytes // (self.state.geometry.data_drives - 1)
            try:
                self._write_first(reference_model.behind(self.model.regions, size_bytes))
            except ValueError as error:
                raise RigError(f"{self.state.geometry}: {error}") from error
        self.target.settle(self._missing)
        self.model.repaired()  # a reshape computes the parity of every new stripe
        yield from self._read()

    def _cut(self, step: Cut, before: ArrayLife) -> Iterator[Mismatch]:
        region = None if step.region is None else self.model.regions[step.region]
        overwritten = None
        if region:
            generation = self.model.begin(step.block_bytes, PASSES)
            overwritten = Stretch(region.offset_bytes, region.written(step.block_bytes), generation, step.block_bytes)
        after = self.target.cut(sorted(before.members), self._missing, self.number, overwritten)
        torn = Torn(overwritten.generation, after.acknowledged, overwritten.block_bytes) if overwritten else None
        self.model.cut(region, torn)
        if after.dirty:
            self.model.started_dirty()
            self.outcome.remarks.append("md had to be forced to start: members were missing and parity was in doubt")
        yield from self._read()

    def _at_the_end(self) -> Iterator[Mismatch]:
        """Read everything once more, and compare all copies if no member is missing."""
        self.target.settle(self._missing)
        self.state = self.state.after(RebuildMember()) if self.state.filling else self.state
        mismatches = list(self._read())
        yield from mismatches
        redundant = FACTS[self.state.level].may_lose(self.state.geometry.width) > 0
        if not mismatches and redundant and not self.state.lacking:
            yield from self._compare(repair=False)


def _spread(history: StepSequence, layout: TargetLayout) -> tuple[Region, ...]:
    usable_bytes = layout.size_bytes - layout.begin_bytes
    count = min(layout.regions, usable_bytes // (2 * layout.region_bytes) * 2) // 2 * 2
    if count < layout.regions // 2 * 2:
        raise RigError(
            f"{history.geometry} has room for {count} of {layout.regions} regions: use more of each member "
            "(integrity.member), or fewer regions (integrity.regions)"
        )
    return reference_model.spread(layout.size_bytes, layout.region_bytes, layout.regions, layout.begin_bytes)
