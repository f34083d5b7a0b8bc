"""Histories that hypothesis draws, lived through one after the other; the first that loses data is made shorter.

Only its generator is used: it draws the same histories in every run, tries no history twice, and its shrinker would
need hours where ``qual.integrity.shrink`` needs minutes.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.integrity.array_state import Abilities, ArrayLife
from pytest_ssdqual.qual.integrity.result import Survival
from pytest_ssdqual.qual.integrity.shrink import shorten
from pytest_ssdqual.qual.integrity.stamp import HISTORIES
from pytest_ssdqual.qual.integrity.steps import (
    BITMAPS,
    UNIT_BYTES,
    Add,
    Check,
    Cut,
    Fail,
    Grow,
    History,
    Read,
    ReAdd,
    Rebuild,
    Remove,
    Repair,
    Restart,
    Step,
    Trim,
    Write,
)
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry
from pytest_ssdqual.qual.spec.protocol import IntegrityRule
from pytest_ssdqual.rig.integrity.runner import Lived, live
from pytest_ssdqual.rig.integrity.target import Body

if TYPE_CHECKING:
    from random import Random

    from hypothesis.strategies import SearchStrategy

#: How often a kind of step is drawn, where it is possible.
WEIGHTS: dict[type[Step], int] = {
    ReAdd: 10, Remove: 6, Rebuild: 5, Fail: 4, Grow: 2, Check: 1, Repair: 1, Cut: 3, Restart: 2, Add: 3, Trim: 1,
    Read: 1, Write: 8,
}  # fmt: skip
#: Told what is done now.
Told = Callable[[str], None]
#: Told of each history that was lived through: its number and what became of it.
Kept = Callable[[int, Lived], None]


@dataclass(slots=True)
class Search:
    """Through the lives of one array."""

    body: Body
    geometry: Geometry
    drives: int
    rule: IntegrityRule
    #: User data of a stripe, of which a region is one and a unit more; and of a chunk.
    sizes: tuple[int, ...]
    region_bytes: int
    told: Told = lambda what: None
    kept: Kept = lambda number, lived: None
    clock: Callable[[], float] = time.monotonic
    _lives: list[Lived] = field(default_factory=list)
    _number: int = 0
    _began: float = 0.0
    _error: Exception | None = None
    _shortest: Lived | None = None
    _happened_again: bool | None = None

    def replay(self, history: History) -> Survival:
        """Live through one history, once. ``RigError`` or a child of it where the rig is at fault."""
        self._began = self.clock()
        self._live(history)
        return self._survival()

    def run(self) -> Survival:
        """Until data are lost, or time or histories are over; then make the history shorter that lost them."""
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
        def drawn(history: History) -> None:
            # What is raised in here would be done again by hypothesis, to see whether it is raised again.
            if self._error or self._is_over() or self._is_late():
                return
            try:
                self._live(history)
            except Exception as error:  # whatever it is, once
                self._error = error

        drawn()

    def _begin(self, bitmap: str, abilities: Abilities) -> ArrayLife:
        count = min(self.rule.regions // 2 * 2, HISTORIES)
        return ArrayLife.begin(self.geometry, bitmap, self.drives, count, self.region_bytes, abilities)

    def _live(self, history: History) -> Lived:
        self._number += 1
        number = self._number
        lived = live(self.body, history, number % HISTORIES, lambda step: self.told(f"history {number}: {step}"))
        self._lives.append(lived)
        self.kept(number, lived)
        return lived

    def _is_over(self) -> bool:
        return bool(self._lives and self._lives[-1].findings)

    def _is_late(self) -> bool:
        return self.clock() - self._began > self.rule.limit_s

    def _shorten(self, lived: Lived) -> None:
        began = self.clock()
        self._shortest = lived
        begin = self._begin(lived.history.bitmap, self.body.abilities(self.geometry.level))
        lives = list(self._lives)

        def fails(trial: History) -> bool:
            if self.clock() - began > self.rule.limit_s:
                return False
            again = self._live(trial)
            if again.findings:
                self._shortest, self._happened_again = again, True
            return bool(again.findings)

        shorten(lived.told, begin, fails)
        if self._happened_again is None and self.clock() - began <= self.rule.limit_s:
            self._happened_again = fails(lived.told)
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
            shortest=found.told if found else None,
            happened_again=self._happened_again,
            remarks=tuple(dict.fromkeys(remark for each in self._lives for remark in each.remarks)),
            cut_short=f"of {self.rule.histories:,} planned ones: integrity.limit was reached" if late else "",
        )


def histories(begin: Callable[[str], ArrayLife], steps: int, sizes: tuple[int, ...]) -> SearchStrategy[History]:
    """All lives of an array of so many steps, of which at least one is more than reading and writing."""
    from hypothesis import assume
    from hypothesis import strategies as st

    @st.composite
    def drawn(draw: Callable[[SearchStrategy[Random]], Random]) -> History:
        # What hypothesis draws choice by choice resembles what it has drawn before; in tens of histories that leaves
        # most of an array's lives untried.
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
        return History(first.geometry, bitmap, tuple(taken))

    return drawn()


def choices(life: ArrayLife, sizes: tuple[int, ...]) -> dict[type[Step], list[Step]]:
    """All that is possible now, by kind."""
    regions, drives = range(life.regions), range(1, life.drives + 1)
    every: dict[type[Step], list[Step]] = {
        Write: [Write(each, size, flushed) for flushed in (True, False) for size in sizes for each in regions],
        Trim: [Trim(each) for each in regions],
        Fail: [Fail(each) for each in drives],
        Remove: [Remove(each) for each in drives],
        ReAdd: [ReAdd(each) for each in drives],
        Add: [Add(each) for each in drives],
        Rebuild: [Rebuild()],
        Check: [Check()],
        Repair: [Repair()],
        Restart: [Restart()],
        Grow: [Grow(each) for each in drives],
        Cut: [Cut(), *(Cut(each, size) for size in (UNIT_BYTES, sizes[-1]) for each in regions)],
        Read: [Read()],
    }
    return {kind: [step for step in steps if not life.objection(step)] for kind, steps in every.items()}
