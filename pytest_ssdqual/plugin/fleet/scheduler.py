"""Which bay is whose turn: the scheduler that pytest-xdist is given in runs with drives.

A worker serves one bay, from its first test to its last, in the order in which it planned them; then its process ends,
and a new one takes the next bay. More load on one machine would falsify every figure, and a worker that has served one
bay knows things that are not true of another. No test is run twice: what a worker that died had not run yet is lost.

The rule of the module: xdist itself is not imported; what of it is needed is in the protocols.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

#: What xdist says of a worker that was interrupted, which ends the run.
INTERRUPTED = "keyboard-interrupt"
#: The exit status of such a worker.
INTERRUPTED_STATUS = 2


class WorkerNode(Protocol):
    """xdist's controller of a worker."""

    def send_runtest_some(self, indices: Sequence[int]) -> None: ...
    def send_steal(self, indices: Sequence[int]) -> None: ...
    def shutdown(self) -> None: ...


@dataclass(slots=True)
class Turn:
    """A bay and the worker that serves it."""

    bay: str
    #: Ids of its tests, in the order of its plan; None: it has not told yet.
    tests: Sequence[str] | None = None
    #: Indices of those that have not ended.
    pending: deque[int] = field(default_factory=deque)
    #: There is nothing more to be given out of it.
    is_sent: bool = False
    has_died: bool = False
    #: What it has not run was told.
    is_over: bool = False


class Turns:
    """Bays are given out in their order, each once.

    ``lost`` is told of a bay whose worker died, or ended before its time: the bay, which tests it will not run, and
    during which one it died (which xdist itself reports; empty: during none). ``next_worker`` starts a process in the
    place of one that has served its bay; after that ``served`` is told of the bay, of which nothing more will come.
    ``counted`` is told how many tests there are in all, as far as is known.
    """

    def __init__(
        self,
        bays: Sequence[str],
        lost: Callable[[WorkerNode, str, Sequence[str], str], None],
        next_worker: Callable[[WorkerNode], object],
        served: Callable[[str], None],
        counted: Callable[[int], None],
    ) -> None:
        self._waiting = deque(bays)
        self._lost, self._next_worker, self._served, self._counted = lost, next_worker, served, counted
        #: Of workers that are starting or running.
        self._turns: dict[WorkerNode, Turn | None] = {}
        #: Those that xdist has told us of.
        self._ready: list[WorkerNode] = []
        self._tests = 0
        self._is_stopped = False

    def take(self, node: WorkerNode) -> str | None:
        """The bay of a worker that is about to start; None: there is none left, and it will be sent home."""
        bay = self._waiting.popleft() if self._waiting else None
        self._turns[node] = None if bay is None else Turn(bay)
        return bay

    def down(self, node: WorkerNode, error: object) -> None:
        """A worker has ended; ``error`` says how, if not in order. Asked before ``remove_node``."""
        turn = self._turns.get(node)
        if turn is None or not error or turn.is_over:
            return
        turn.is_sent = turn.has_died = turn.is_over = True
        if error == INTERRUPTED:
            self._waiting.clear()
            return
        rest = list(turn.pending)
        if turn.tests is None:
            self._lost(node, turn.bay, (), "")
        elif rest:
            self._lost(node, turn.bay, [turn.tests[index] for index in rest[1:]], turn.tests[rest[0]])

    def ended(self, node: WorkerNode) -> None:
        """A worker has ended in order, although nobody stopped it: what it has not run is lost. As ``down``."""
        turn = self._turns.get(node)
        if turn is None or turn.is_over:
            return
        rest = [turn.tests[index] for index in turn.pending] if turn.tests is not None else []
        turn.is_sent = turn.is_over = True
        turn.pending.clear()
        if turn.tests is None or rest:
            self._lost(node, turn.bay, rest, "")

    def stop(self) -> None:
        """Nothing is begun any more, except the test that a worker has got already behind the one that it runs."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._waiting.clear()
        for node, turn in self._turns.items():
            # One at a time: of several a worker gives back none if it has begun one of them.
            for index in list(turn.pending)[1:] if turn else ():
                with suppress(OSError):  # it has died, as xdist will tell
                    node.send_steal([index])

    def never_begun(self) -> tuple[str, ...]:
        """Bays for which there was no worker."""
        return tuple(self._waiting)

    # What xdist asks of a scheduler.

    @property
    def nodes(self) -> list[WorkerNode]:
        return list(self._ready)

    @property
    def collection_is_completed(self) -> bool:
        """Bays need not wait for each other: their tests differ."""
        return True

    @property
    def has_pending(self) -> bool:
        """Asked only to tell the first schedule from later ones."""
        return any(turn.is_sent for turn in self._turns.values() if turn)

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to be given out: what has been is run to its end."""
        return not self._waiting and all(turn.is_sent for turn in self._turns.values() if turn)

    def add_node(self, node: WorkerNode) -> None:
        self._ready.append(node)
        if self._turns.get(node) is None:
            node.shutdown()

    def add_node_collection(self, node: WorkerNode, collection: Sequence[str]) -> None:
        if turn := self._turns.get(node):
            turn.tests, turn.pending = tuple(collection), deque(range(len(collection)))
            self._tests += len(collection)
            # Those that wait will have about as many.
            self._counted(self._tests + len(self._waiting) * len(collection))

    def schedule(self) -> None:
        """All tests of a bay at once, and that there are no more: the last of them is not held back for a next one."""
        for node, turn in self._turns.items():
            if turn and turn.tests is not None and not turn.is_sent and not self._is_stopped:
                turn.is_sent = True
                if turn.pending:
                    node.send_runtest_some(list(turn.pending))
                node.shutdown()

    def mark_test_complete(self, node: WorkerNode, item_index: int, duration: float = 0) -> None:
        if turn := self._turns.get(node):
            turn.pending.remove(item_index)

    def mark_test_pending(self, item: str) -> None:
        raise NotImplementedError("no test is run twice")

    def remove_pending_tests_from_node(self, node: WorkerNode, indices: Sequence[int]) -> None:
        """What a worker gives back when all are stopped; no other gets it."""
        if turn := self._turns.get(node):
            for index in indices:
                turn.pending.remove(index)

    def remove_node(self, node: WorkerNode) -> str | None:
        """The test during which it died, or None. In the place of one that has served its bay another one starts.

        ``KeyError`` if it was never ready, as xdist expects it.
        """
        turn = self._turns.pop(node, None)
        if node not in self._ready:
            raise KeyError(node)
        self._ready.remove(node)
        if turn is None:
            return None
        if turn.tests and turn.pending:
            return turn.tests[turn.pending[0]]
        if not turn.has_died and self._waiting:
            self._next_worker(node)
        if turn.is_over and not turn.has_died:  # otherwise xdist has something to tell yet
            self._served(turn.bay)
        return None
