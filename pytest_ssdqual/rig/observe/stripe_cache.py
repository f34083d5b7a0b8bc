"""Samples how many stripes of RAID 5 or 6 are in use while fio runs.

md counts no mean, so the file is read again and again, by a shell's builtins (``scripts/block_stats.sh`` does the same
for live statistics): no process is started, and a reading costs some microseconds of one CPU. If anything fails there
are no samples, and the measurement goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.environment import StripeCache
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.observe.live_stats import LineServer
from pytest_ssdqual.rig.observe.witness import asked

SCRIPT = scripts.text("stripe_cache.sh")
#: Seconds between two samples, and until an answer is given up.
PERIOD_S, ANSWER_S = 2.0, 5.0
#: Levels that have the cache.
LEVELS = ("raid4", "raid5", "raid6")


@dataclass(slots=True)
class Samples:
    """Samples of one fio process; ``result`` is None until there is one."""

    _size: int = 0
    _active: list[int] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Add an answer: size and number in use; anything else is ignored."""
        words = line.split()
        size, active = (decimal(words[0]), decimal(words[1])) if len(words) == 2 else (None, None)
        if size and active is not None:
            self._size = size
            self._active.append(active)

    @property
    def result(self) -> StripeCache | None:
        if not self._active:
            return None
        mean = sum(self._active) / len(self._active)
        return StripeCache(self._size, len(self._active), round(mean, 1), max(self._active))


@contextmanager
def sampled(machine: Machine, array: Array) -> Iterator[Samples]:
    """Sample the stripe cache of ``array`` until the block ends; no samples of other levels, or without an answer."""
    samples = Samples()
    if array.geometry.is_side_by_side or array.geometry.level.value not in LEVELS:
        yield samples
        return

    def sample(server: LineServer, ended: threading.Event) -> None:
        while not ended.wait(PERIOD_S) and (lines := server.ask("", 1, ANSWER_S)) is not None:
            samples.add(lines[0])

    with asked(machine, ["sh", "-c", SCRIPT, "stripe_cache", array.kname], sample, ANSWER_S):
        yield samples
