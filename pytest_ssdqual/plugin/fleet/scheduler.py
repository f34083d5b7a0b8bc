"""Scheduler for pytest-xdist in runs with drives: assigns bays to workers.

A worker serves one bay, from its first test to its last, in the order of its plan; then its process ends, and a new
process takes the next bay. A second worker on a machine would falsify the measurements, and a worker keeps state of its
bay. No test runs twice: the remaining tests of a worker that died are lost. The module imports xdist only for types.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: xdist's error of an interrupted worker, which ends the run.
INTERRUPTED = "keyboard-interrupt"
#: The exit status of such a worker.
INTERRUPTED_STATUS = 2


@dataclass(slots=True)
class BayAssignment:
    """A bay and the worker that serves it."""

    bay: str
    #: Ids of its tests, in the order of its plan; None: not collected yet.
    tests: Sequence[str] | None = None
    #: Indices of tests that have not ended.
    pending: deque[int] = field(default_factory=deque)
    #: The worker has got all its tests.
    is_sent: bool = False
    has_died: bool = False
    #: Its lost tests have been reported.
    is_over: bool = False


class BayScheduler:
    """Assigns the bays in their order, each once.

    ``lost(node, bay, unrun, running)`` is called when a worker dies or exits early; ``running`` is the test it died in
        (which xdist itself reports), or "". ``next_worker`` replaces the process of a worker that has served its bay;
        then ``served`` is called with the bay. ``counted`` is called with the total number of tests, as far as it is
        known.
    """

    def __init__(
        self,
        bays: Sequence[str],
        lost: Callable[[WorkerController, str, Sequence[str], str], None],
        next_worker: Callable[[WorkerController], object],
        served: Callable[[str], None],
        counted: Callable[[int], None],
    ) -> None:
        self._waiting = deque(bays)
        self._lost, self._next_worker, self._served, self._counted = lost, next_worker, served, counted
        #: By worker that is starting or running; None: no bay is left for it.
        self._assignments: dict[WorkerController, BayAssignment | None] = {}
        #: Workers that xdist has added.
        self._ready: list[WorkerController] = []
        self._tests = 0
        self._is_stopped = False

    def take(self, node: WorkerController) -> str | None:
        """Assign a bay to a worker that is about to start; None: no bay is left, and the worker ends."""
        bay = self._waiting.popleft() if self._waiting else None
        self._assignments[node] = None if bay is None else BayAssignment(bay)
        return bay

    def down(self, node: WorkerController, error: object) -> None:
        """Handle the end of a worker with ``error``; called before ``remove_node``."""
        assignment = self._assignments.get(node)
        if assignment is None or not error or assignment.is_over:
            return
        assignment.is_sent = assignment.has_died = assignment.is_over = True
        if error == INTERRUPTED:
            self._waiting.clear()
            return
        rest = list(assignment.pending)
        if assignment.tests is None:
            self._lost(node, assignment.bay, (), "")
        elif rest:
            self._lost(node, assignment.bay, [assignment.tests[index] for index in rest[1:]], assignment.tests[rest[0]])

    def ended(self, node: WorkerController) -> None:
        """Handle the end of a worker without an error before its last test: the rest is lost. Called as ``down``."""
        assignment = self._assignments.get(node)
        if assignment is None or assignment.is_over:
            return
        rest = [assignment.tests[index] for index in assignment.pending] if assignment.tests is not None else []
        assignment.is_sent = assignment.is_over = True
        assignment.pending.clear()
        if assignment.tests is None or rest:
            self._lost(node, assignment.bay, rest, "")

    def stop(self) -> None:
        """Begin no more tests, except the next one of each worker, which it has prepared already."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._waiting.clear()
        for node, assignment in self._assignments.items():
            # One at a time: a worker returns none of several tests if it has begun one of them.
            for index in list(assignment.pending)[1:] if assignment else ():
                with suppress(OSError):  # the worker died; xdist reports that
                    node.send_steal([index])

    def never_begun(self) -> tuple[str, ...]:
        """Return the bays that no worker took."""
        return tuple(self._waiting)

    # xdist's interface of a scheduler.

    @property
    def nodes(self) -> list[WorkerController]:
        return list(self._ready)

    @property
    def collection_is_completed(self) -> bool:
        """True, because bays need not wait for each other's collection: their tests differ."""
        return True

    @property
    def has_pending(self) -> bool:
        """True after the first schedule; xdist uses it only for that."""
        return any(assignment.is_sent for assignment in self._assignments.values() if assignment)

    @property
    def tests_finished(self) -> bool:
        """True if all tests have been sent; workers run those to the end."""
        return not self._waiting and all(assignment.is_sent for assignment in self._assignments.values() if assignment)

    def add_node(self, node: WorkerController) -> None:
        self._ready.append(node)
        if self._assignments.get(node) is None:
            node.shutdown()

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        if assignment := self._assignments.get(node):
            assignment.tests, assignment.pending = tuple(collection), deque(range(len(collection)))
            self._tests += len(collection)
            # Assume that the waiting bays have as many.
            self._counted(self._tests + len(self._waiting) * len(collection))

    def schedule(self) -> None:
        """Send all tests of a bay at once, and the shutdown, so that the worker does not hold back the last test."""
        for node, assignment in self._assignments.items():
            if assignment and assignment.tests is not None and not assignment.is_sent and not self._is_stopped:
                assignment.is_sent = True
                if assignment.pending:
                    with suppress(OSError):  # the worker ended after its collection; xdist reports that
                        node.send_runtest_some(list(assignment.pending))
                node.shutdown()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        if assignment := self._assignments.get(node):
            assignment.pending.remove(item_index)

    def mark_test_pending(self, item: str) -> None:
        raise NotImplementedError("no test runs twice")

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Forget the tests that a worker returns after ``stop``."""
        if assignment := self._assignments.get(node):
            for index in indices:
                assignment.pending.remove(index)

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test in which the worker died, or None; replace a worker that has served its bay.

        Raises ``KeyError`` if the worker was never ready, as xdist expects.
        """
        assignment = self._assignments.pop(node, None)
        if node not in self._ready:
            raise KeyError(node)
        self._ready.remove(node)
        if assignment is None:
            return None
        if assignment.tests and assignment.pending:
            return assignment.tests[assignment.pending[0]]
        if not assignment.has_died and self._waiting:
            self._next_worker(node)
        if assignment.is_over and not assignment.has_died:  # otherwise xdist has reports to make
            self._served(assignment.bay)
        return None
