"""Shrinking of a failing step sequence: parts are left out while it still fails. Every trial costs drive time.

Delta debugging (A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28/2, 2002)
that also drops the steps which the state of the array then makes impossible; afterwards the remaining steps are
simplified. Hypothesis' own shrinker needs hundreds of trials, of a second and more each; this needs tens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pytest_ssdqual.qual.integrity.array_state import ArrayLife, possible
from pytest_ssdqual.qual.integrity.steps import BITMAPS, UNIT_BYTES, Cut, Step, StepSequence, Trim, Write

#: Runs a step sequence; true if it still fails.
Fails = Callable[[StepSequence], bool]


def shorten(history: StepSequence, begin: ArrayLife, fails: Fails) -> StepSequence:
    """Return the shortest sequence found that fails like this one; the sequence itself if there is none.

    ``fails`` is called once for each trial; it ends the search by returning False for everything.
    """
    asked: dict[StepSequence, bool] = {history: True}

    def again(trial: StepSequence) -> bool:
        if trial not in asked:
            asked[trial] = fails(trial)
        return asked[trial]

    best = history
    while True:
        found = next((trial for trial in _simpler(best, begin) if again(trial)), None)
        if found is None:
            return best
        best = found


def _simpler(history: StepSequence, begin: ArrayLife) -> Iterator[StepSequence]:
    """Yield trials, the greatest gain first; each is at least one step shorter, or simpler in one step."""
    steps, begin = history.steps, replace(begin, bitmap=history.bitmap != BITMAPS[0])
    size = max(1, len(steps) // 2)
    while steps and size:
        # From the end, where steps are most often irrelevant to the finding.
        for start in range(max(0, len(steps) - size), -1, -size):
            yield possible(replace(history, steps=steps[:start] + steps[start + size :]), begin)
            if start and start < size:
                yield possible(replace(history, steps=steps[start:]), begin)
        size //= 2
    without = replace(history, bitmap=BITMAPS[0])
    if begin.bitmap and possible(without, replace(begin, bitmap=False)) == without:
        yield without
    for index, step in enumerate(steps):
        for plain in _plainer(step):
            trial = replace(history, steps=(*steps[:index], plain, *steps[index + 1 :]))
            if possible(trial, begin) == trial:
                yield trial


def _plainer(step: Step) -> Iterator[Step]:
    """Simpler forms of a step, or the same on the first region."""
    match step:
        case Write(region, block_bytes, flushed):
            if not flushed:
                yield Write(region, block_bytes)
            if block_bytes != UNIT_BYTES:
                yield Write(region, UNIT_BYTES, flushed)
            if region:
                yield Write(0, block_bytes, flushed)
        case Trim(region) if region:
            yield Trim(0)
        case Cut(int(region), block_bytes):
            yield Cut()
            if block_bytes != UNIT_BYTES:
                yield Cut(region, UNIT_BYTES)
            if region:
                yield Cut(0, block_bytes)
