"""A hundred bays on a few workers, without a process: whatever order workers end or die in."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.plugin.fleet.scheduler import INTERRUPTED, BayScheduler

TESTS = 5


@dataclass(eq=False)
class Worker:
    """What a worker's process does, one step at a time."""

    name: str
    bay: str | None = None
    tests: list[int] = field(default_factory=list)
    #: Of which xdist is not yet told.
    given_back: list[int] = field(default_factory=list)
    is_shut_down: bool = False
    #: xdist's workers take the next test before they run one.
    has_begun: bool = False

    def send_runtest_some(self, indices: object) -> None:
        assert not self.is_shut_down
        self.tests += list(indices)  # type: ignore[call-overload]

    def send_steal(self, indices: object) -> None:
        held = self.tests[: 2 if self.has_begun else 0]
        if not set(indices) & set(held):  # type: ignore[call-overload]
            self.given_back += [index for index in self.tests if index in indices]  # type: ignore[operator]
            self.tests = [index for index in self.tests if index not in indices]  # type: ignore[operator]

    def shutdown(self) -> None:
        self.is_shut_down = True


class ScheduledBays:
    """Bays, their tests and xdist's part of the work, as ``DSession`` does it."""

    def __init__(self, bays: int, workers: int, tests: dict[str, int] | None = None) -> None:
        self.bays = [f"dut{number}" for number in range(bays)]
        self.counts = {bay: (tests or {}).get(bay, TESTS) for bay in self.bays}
        self.totals: list[int] = []
        #: Bays of which nothing more is to come.
        self.finished: list[str] = []
        self.turns = BayScheduler(
            self.bays, self._lost, lambda node: self.start(), self.finished.append, self.totals.append
        )
        #: In the order in which they were run.
        self.ran: list[tuple[str, int]] = []
        self.errors: list[str] = []
        self.served: Counter[str] = Counter()
        self.alive: list[Worker] = []
        self.most = 0
        self.is_stopped = False
        for _ in range(workers):
            self.start()

    def start(self) -> None:
        worker = Worker(f"gw{sum(self.served.values())}")
        worker.bay = self.turns.take(worker)
        assert worker.bay not in self.finished
        self.served[worker.bay or ""] += 1
        self.alive.append(worker)
        self.most = max(self.most, sum(each.bay is not None for each in self.alive))

    def ready(self, worker: Worker) -> None:
        self.turns.add_node(worker)
        if worker.bay:
            self.turns.add_node_collection(worker, [f"{worker.bay}::{n}" for n in range(self.counts[worker.bay])])
            self.turns.schedule()

    def step(self, worker: Worker) -> None:
        """It gets ready, runs a test, or ends."""
        if worker not in self.turns.nodes:
            self.ready(worker)
        elif worker.given_back:
            self.turns.remove_pending_tests_from_node(worker, [worker.given_back.pop(0)])
        elif worker.tests:
            worker.has_begun = True
            index = worker.tests.pop(0)
            assert worker.bay not in self.finished
            self.ran.append((worker.bay or "", index))
            self.turns.mark_test_complete(worker, index)
        else:
            assert worker.is_shut_down, "nobody tells it that there is nothing more"
            self.turns.down(worker, None)
            if not self.is_stopped:
                self.turns.ended(worker)
            self.alive.remove(worker)
            assert self.turns.remove_node(worker) is None

    def stop(self) -> None:
        self.is_stopped = True
        self.turns.stop()

    def die(self, worker: Worker) -> None:
        """Wherever it is; xdist starts another one in its place."""
        self.turns.down(worker, "killed")
        try:
            during = self.turns.remove_node(worker)
        except KeyError:
            during = None
        if during:
            assert worker.bay not in self.finished
            self.errors.append(during)
        self.start()
        self.alive.remove(worker)

    def _lost(self, node: object, bay: str, tests: object, during: str) -> None:
        assert bay not in self.finished
        self.errors += list(tests) or ([] if during else [bay])  # type: ignore[call-overload]


def run(rack: ScheduledBays, draw: random.Random, dying: float = 0.0) -> None:
    while rack.alive:
        worker = draw.choice(rack.alive)
        if worker.bay and draw.random() < dying:
            rack.die(worker)
        else:
            rack.step(worker)
    assert len(set(rack.finished)) == len(rack.finished)
    assert rack.turns.tests_finished


@given(st.integers(1, 100), st.integers(1, 8), st.randoms(use_true_random=False))
def test_every_bay_runs_all_tests_in_the_order_of_its_plan(bays: int, workers: int, draw: random.Random) -> None:
    rack = ScheduledBays(bays, min(bays, workers), {f"dut{number}": number % 4 for number in range(bays)})
    run(rack, draw)
    for bay in rack.bays:
        assert [index for where, index in rack.ran if where == bay] == list(range(rack.counts[bay]))
        assert rack.served[bay] == 1
    assert rack.served.keys() == set(rack.bays)
    assert rack.most == min(bays, workers)
    assert rack.errors == []
    assert sorted(rack.finished) == sorted(rack.bays)
    assert rack.totals[-1] == sum(rack.counts.values())


@given(st.integers(1, 100), st.integers(1, 8), st.randoms(use_true_random=False))
def test_a_lost_bay_errors_its_own_tests_once(bays: int, workers: int, draw: random.Random) -> None:
    rack = ScheduledBays(bays, min(bays, workers))
    run(rack, draw, dying=0.1)
    told = Counter([*(f"{bay}::{index}" for bay, index in rack.ran), *rack.errors])
    assert max(told.values()) == 1
    for bay in rack.bays:
        # A worker that dies before it has told of its tests is one error of the bay itself.
        tests = {f"{bay}::{index}" for index in range(TESTS)} & told.keys()
        assert tests == {f"{bay}::{index}" for index in range(TESTS)} or (not tests and bay in told)


def test_bays_do_not_wait_for_each_other() -> None:
    rack = ScheduledBays(3, 2)
    first, second = rack.alive
    rack.ready(first)
    assert first.tests == list(range(TESTS))
    assert first.is_shut_down
    assert not rack.turns.tests_finished
    assert second.tests == []
    while first in rack.alive:
        rack.step(first)
    assert [each.bay for each in rack.alive] == ["dut1", "dut2"]


def test_a_worker_for_which_no_bay_is_left_is_sent_home() -> None:
    rack = ScheduledBays(1, 1)
    (only,) = rack.alive
    rack.ready(only)
    rack.die(only)
    (spare,) = rack.alive
    assert spare.bay is None
    assert rack.turns.tests_finished
    rack.ready(spare)
    assert spare.is_shut_down
    assert rack.errors == [f"dut0::{index}" for index in (1, 2, 3, 4, 0)]


def test_what_waits_is_counted_like_what_is_known() -> None:
    rack = ScheduledBays(4, 1)
    rack.ready(rack.alive[0])
    assert rack.totals == [4 * TESTS]


def test_an_interrupted_worker_ends_the_run_and_no_bay_is_lost() -> None:
    rack = ScheduledBays(3, 1)
    (worker,) = rack.alive
    rack.ready(worker)
    rack.turns.down(worker, None)
    rack.turns.down(worker, INTERRUPTED)
    assert rack.turns.remove_node(worker) == "dut0::0"
    assert rack.errors == []
    assert rack.turns.tests_finished
    assert rack.turns.take(Worker("gw1")) is None


@given(st.integers(1, 20), st.integers(1, 8), st.integers(0, 60), st.randoms(use_true_random=False))
def test_a_stopped_run_ends_after_the_tests_that_workers_have(
    bays: int, workers: int, steps: int, draw: random.Random
) -> None:
    rack = ScheduledBays(bays, min(bays, workers))
    for _ in range(steps):
        if rack.alive:
            rack.step(draw.choice(rack.alive))
    ran = Counter(bay for bay, _ in rack.ran)
    finished = list(rack.finished)
    rack.stop()
    while rack.alive:
        rack.stop()
        # Of workers that are not ready yet xdist schedules nothing any more: it sends them home.
        rack.alive = [each for each in rack.alive if each in rack.turns.nodes]
        if rack.alive:
            rack.step(draw.choice(rack.alive))
    for bay in rack.bays:
        done = [index for where, index in rack.ran if where == bay]
        assert done == list(range(len(done)))
        assert len(done) <= ran[bay] + 2
    assert rack.errors == []
    assert rack.finished == finished
    assert rack.turns.never_begun() == ()


def test_a_worker_that_gets_ready_after_that_is_given_nothing() -> None:
    """xdist forgets that it shuts down when another one dies meanwhile."""
    rack = ScheduledBays(1, 1)
    (worker,) = rack.alive
    rack.turns.stop()
    rack.ready(worker)
    assert worker.tests == []


def test_a_worker_that_has_died_is_not_in_the_way_of_stopping() -> None:
    rack = ScheduledBays(2, 2)
    first, second = rack.alive
    rack.ready(first)
    rack.ready(second)
    first.send_steal = broken  # type: ignore[method-assign]
    rack.turns.stop()
    assert first.tests == list(range(TESTS))
    assert second.tests == [0]


def broken(indices: object) -> None:
    raise BrokenPipeError


def test_a_worker_that_ends_after_its_collection_loses_its_own() -> None:
    rack = ScheduledBays(2, 2)
    first, second = rack.alive
    first.send_runtest_some = broken  # type: ignore[method-assign]
    rack.ready(first)
    rack.ready(second)
    rack.turns.down(first, None)
    rack.turns.ended(first)
    assert rack.errors == [f"{first.bay}::{number}" for number in range(TESTS)]
    assert second.tests == list(range(TESTS))


def test_no_test_is_run_twice() -> None:
    with pytest.raises(NotImplementedError):
        ScheduledBays(1, 1).turns.mark_test_pending("a test")
