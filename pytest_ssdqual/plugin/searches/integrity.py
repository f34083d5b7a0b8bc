"""The fixture ``ssd_integrity``: runs histories of array steps, and shortens the first one that loses data.

hypothesis only generates: it draws the same histories in every run and repeats none. Its shrinker would need hours
where ``qual.integrity.array_state.shorten`` needs minutes. Every history is stored in the run folder.
"""

from __future__ import annotations

import contextlib
import shlex
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.plan import applicability
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.stash import RUN
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity.array_state import Abilities, ArrayLife, shorten
from pytest_ssdqual.qual.integrity.reference_model import Survival
from pytest_ssdqual.qual.integrity.stamp import HISTORIES
from pytest_ssdqual.qual.integrity.steps import (
    BITMAPS,
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
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry
from pytest_ssdqual.qual.spec.protocol_rules import IntegrityRule
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.integrity import of_survival
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.integrity.md_target import MdTarget
from pytest_ssdqual.rig.integrity.power_cut import PowerSwitch
from pytest_ssdqual.rig.integrity.runner import IntegrityOutcome, run_steps
from pytest_ssdqual.rig.integrity.target import IntegrityTarget
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.measure.session import Setup

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: Weights of the kinds of steps in draws.
WEIGHTS: dict[type[Step], int] = {
    ReAdd: 10, Remove: 6, RebuildMember: 5, Fail: 4, Grow: 2, CheckArray: 1, Repair: 1, Cut: 3, Restart: 2, Add: 3,
    Trim: 1, Read: 1, Write: 8,
}  # fmt: skip
#: Receives the description of the current step.
ReportStep = Callable[[str], None]
#: Receives the number and the result of each history.
RecordResult = Callable[[int, IntegrityOutcome], None]
#: Of the run folder.
FOLDER = "integrity"
#: Options that a reproduce command leaves out.
NOT_REPEATED = ("--ssd-replay", "--ssd-resume", "--ssd-spec-schema", "--ssd-notify")


@dataclass(slots=True)
class IntegritySearch:
    """Integrity test of one array: runs histories until one loses data, or until a limit."""

    body: IntegrityTarget
    geometry: Geometry
    drives: int
    rule: IntegrityRule
    #: Sizes of writes in bytes.
    sizes: tuple[int, ...]
    region_bytes: int
    report_step: ReportStep = lambda what: None
    kept: RecordResult = lambda number, lived: None
    clock: Callable[[], float] = time.monotonic
    _lives: list[IntegrityOutcome] = field(default_factory=list)
    _number: int = 0
    _began: float = 0.0
    _error: Exception | None = None
    _shortest: IntegrityOutcome | None = None
    _happened_again: bool | None = None

    def replay(self, history: StepSequence) -> Survival:
        """Run one history, once. Raises ``RigError`` or a subclass for an error of the rig."""
        self._began = self.clock()
        self._live(history)
        return self._survival()

    def run(self) -> Survival:
        """Run histories until data are lost or a limit is reached; then shorten the history that lost data."""
        self._began = self.clock()
        self._draw(self.body.abilities(self.geometry.level))
        if self._error:
            raise self._error
        if self._is_over():
            self._shorten(self._lives[-1])
        return self._survival()

    def _draw(self, abilities: Abilities) -> None:
        from hypothesis import HealthCheck, Phase, given, seed, settings

        @seed(zlib.crc32(str(self.geometry).encode()))
        @settings(
            max_examples=self.rule.histories,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(history=histories(lambda bitmap: self._begin(bitmap, abilities), self.rule.steps, self.sizes))
        def drawn(history: StepSequence) -> None:
            # hypothesis would run a history again that raises.
            if self._error or self._is_over() or self._is_late():
                return
            try:
                self._live(history)
            except Exception as error:  # raised after the draw
                self._error = error

        drawn()

    def _begin(self, bitmap: str, abilities: Abilities) -> ArrayLife:
        count = min(self.rule.regions // 2 * 2, HISTORIES)
        return ArrayLife.begin(self.geometry, bitmap, self.drives, count, self.region_bytes, abilities)

    def _live(self, history: StepSequence) -> IntegrityOutcome:
        self._number += 1
        number = self._number
        lived = run_steps(
            self.body, history, number % HISTORIES, lambda step: self.report_step(f"history {number}: {step}")
        )
        self._lives.append(lived)
        self.kept(number, lived)
        return lived

    def _is_over(self) -> bool:
        return bool(self._lives and self._lives[-1].findings)

    def _is_late(self) -> bool:
        return self.clock() - self._began > self.rule.limit_s

    def _shorten(self, lived: IntegrityOutcome) -> None:
        began = self.clock()
        self._shortest = lived
        begin = self._begin(lived.history.bitmap, self.body.abilities(self.geometry.level))
        lives = list(self._lives)

        def fails(trial: StepSequence) -> bool:
            if self.clock() - began > self.rule.limit_s:
                return False
            again = self._live(trial)
            if again.findings:
                self._shortest, self._happened_again = again, True
            return bool(again.findings)

        shorten(lived.executed_steps, begin, fails)
        if self._happened_again is None and self.clock() - began <= self.rule.limit_s:
            self._happened_again = fails(lived.executed_steps)
        self._lives = lives

    def _survival(self) -> Survival:
        found = self._shortest or next((each for each in self._lives if each.findings), None)
        late = self._is_late() and not found and len(self._lives) < self.rule.histories
        return Survival(
            geometry=self.geometry,
            histories=len(self._lives),
            steps=sum(each.done for each in self._lives),
            compared=sum(each.compared for each in self._lives),
            atom_bytes=self._lives[0].atom_bytes,
            seconds=self.clock() - self._began,
            findings=tuple(found.findings) if found else (),
            shortest=found.executed_steps if found else None,
            happened_again=self._happened_again,
            remarks=tuple(dict.fromkeys(remark for each in self._lives for remark in each.remarks)),
            cut_short=f"of {self.rule.histories:,} planned ones: integrity.limit was reached" if late else "",
        )


def histories(begin: Callable[[str], ArrayLife], steps: int, sizes: tuple[int, ...]) -> SearchStrategy[StepSequence]:
    """Return the strategy of histories with this number of steps, at least one of which is not a read or a write."""
    from hypothesis import assume
    from hypothesis import strategies as st

    @st.composite
    def drawn(draw: Callable[[SearchStrategy[Random]], Random]) -> StepSequence:
        # hypothesis' own choices resemble its earlier ones, which would leave most kinds of histories untried within
        # tens of draws.
        chance = draw(st.randoms(use_true_random=True))
        first = begin(BITMAPS[0])
        redundant = FACTS[first.level].may_lose(first.geometry.width) > 0
        bitmap = chance.choice(BITMAPS) if redundant else BITMAPS[0]
        life, taken = begin(bitmap), list[Step]()
        for _ in range(steps):
            kinds = choices(life, sizes)
            possible = [kind for kind in WEIGHTS if kinds[kind]]
            (kind,) = chance.choices(possible, [WEIGHTS[each] for each in possible])
            taken.append(chance.choice(kinds[kind]))
            life = life.after(taken[-1])
        assume(any(not isinstance(each, Write | Read) for each in taken))
        return StepSequence(first.geometry, bitmap, tuple(taken))

    return drawn()


def choices(life: ArrayLife, sizes: tuple[int, ...]) -> dict[type[Step], list[Step]]:
    """Return all steps that are possible now, by kind."""
    regions, drives = range(life.regions), range(1, life.drives + 1)
    every: dict[type[Step], list[Step]] = {
        Write: [Write(each, size, flushed) for flushed in (True, False) for size in sizes for each in regions],
        Trim: [Trim(each) for each in regions],
        Fail: [Fail(each) for each in drives],
        Remove: [Remove(each) for each in drives],
        ReAdd: [ReAdd(each) for each in drives],
        Add: [Add(each) for each in drives],
        RebuildMember: [RebuildMember()],
        CheckArray: [CheckArray()],
        Repair: [Repair()],
        Restart: [Restart()],
        Grow: [Grow(each) for each in drives],
        Cut: [Cut(), *(Cut(each, size) for size in (UNIT_BYTES, sizes[-1]) for each in regions)],
        Read: [Read()],
    }
    return {kind: [step for step in steps if not life.objection(step)] for kind, steps in every.items()}


def survive(request: pytest.FixtureRequest, campaign: Campaign, geometry: Geometry) -> tuple[Survival, Evidence]:
    """Run the integrity test of an array, or the history of ``--ssd-replay``.

    Raises ``RigError`` or a subclass for an error of the rig. Skips the test if the history is for another array.
    """
    run = request.config.stash[RUN].qualification
    asked = run.settings.replay
    if asked and asked.geometry != geometry:
        applicability.skip(f"the history of --ssd-replay is for {asked.geometry}")
    book = HistoryRecorder(request.config.stash[RUN].journal, geometry)

    def lived() -> Survival:
        body = body_of(campaign.setup, _switch(request.config, run))
        try:
            search = _search(campaign.setup, body, geometry, book)
            found = search.replay(asked) if asked else search.run()
        except BaseException:
            with contextlib.suppress(RigError):  # the first error has more information
                body.close()
            raise
        body.close()
        return found

    found = campaign.apart(geometry, lived)
    found, raw = book.concluded(found, _options(request.config.invocation_params.args), request.node.nodeid)
    return found, of_survival(found, raw)


def body_of(setup: Setup, switch: PowerSwitch | None) -> MdTarget:
    """Return the target of histories."""
    return MdTarget(setup, switch)


def _search(setup: Setup, body: IntegrityTarget, geometry: Geometry, book: HistoryRecorder) -> IntegritySearch:
    settings = setup.protocol.array.of(geometry)
    each = reference_model.region_bytes(geometry, settings)
    stripe = reference_model.stripe_bytes(geometry, settings)
    wanted = (UNIT_BYTES, 4 * UNIT_BYTES, stripe // max(1, geometry.data_drives), stripe)
    return IntegritySearch(
        body,
        geometry,
        len(setup.held.drives),
        setup.protocol.integrity,
        tuple(sorted({size for size in wanted if size <= each})),
        each,
        report_step=lambda what: setup.progress(f"{geometry}: {what}", 0),
        kept=book.keep,
    )


def _switch(config: pytest.Config, run: Qualification) -> PowerSwitch | None:
    """Return the power switch: the lab's, the site's hook, or None."""
    if run.bay.switch:
        return run.bay.switch
    if not config.hook.pytest_ssdqual_power_cut.get_hookimpls():
        return None
    machine = run.bay.machine

    def cut() -> None:
        if not config.hook.pytest_ssdqual_power_cut(machine=machine):
            raise RigError(f"no hook pytest_ssdqual_power_cut has cut the power of {machine}")

    return cut


def _options(given: Sequence[object]) -> list[str]:
    """Return the plugin's options of the command line; those of the configuration file apply again anyway."""
    words, found = list(map(str, given)), []
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, _, value = word.partition("=")
        if name.startswith("--ssd-") and name not in NOT_REPEATED:
            found.append(word if value else f"{word}={after}")
    return found


@frozen
class HistoryRecorder:
    """Records every history, and the shortest one that fails, in the run folder."""

    journal: Journal
    geometry: Geometry

    def keep(self, number: int, lived: IntegrityOutcome) -> None:
        """Record a history and its result."""
        name = self.journal.keep(f"{self.geometry}-{number:03}.history", str(lived.history).encode(), FOLDER)
        self.journal.note(
            "history", geometry=str(self.geometry), number=number, script=name, steps_done=lived.done,
            compared=lived.compared, findings=len(lived.findings), remarks=lived.remarks,
        )  # fmt: skip

    def concluded(self, found: Survival, options: Sequence[str], test: str) -> tuple[Survival, tuple[str, ...]]:
        """Record the result; return it with its reproduce command, and the names of its files."""
        raw: tuple[str, ...] = ()
        if found.shortest:
            raw = (self.journal.keep(f"{self.geometry}.history", str(found.shortest).encode(), FOLDER),)
            argv = ["pytest", *options, f"--ssd-replay={self.journal.path / raw[0]}", test]
            found = replace(found, replay=shlex.join(argv))
        self.journal.note(
            "integrity",
            geometry=str(self.geometry),
            histories=found.histories,
            steps=found.steps,
            compared=found.compared,
            seconds=found.seconds,
            sentence=repr(found),
            shortest=list(raw),
            happened_again=found.happened_again,
            findings=[
                {
                    "kind": each.kind.value,
                    "offset_bytes": each.offset_bytes,
                    "found": each.found,
                    "expected": each.expected,
                }
                for each in found.findings[:100]
            ],
            remarks=list(found.remarks),
        )
        return found, raw
