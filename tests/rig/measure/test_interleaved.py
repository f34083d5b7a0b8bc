from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from support.builders import strategies

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol import InterleaveRule
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import ClockSet, InvalidMeasurement, RigError
from pytest_ssdqual.rig.measure import fixed_time, interleaved
from pytest_ssdqual.rig.measure.interleaved import InterleavedRounds

ARRAY = SimpleNamespace(geometry=Geometry.parse("raid5x3"))
MIXES = tuple(Workload("randrw", "4k", depth, read_percent=70) for depth in (1, 4, 8))
RULE = InterleaveRule(cell_s=60.0, ramp_s=0.0, first=5, growth=1.5, rounds=12, span_s=0.0)


@dataclass
class Bench:
    """fio and everything above it: what was run in which order, and what was recorded."""

    rates: Callable[[Workload, int], list[int] | Exception] = lambda workload, number: [1000] * 60
    ran: list[Workload] = field(default_factory=list)
    notes: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    clock_s: float = 0.0

    def note(self, kind: str, **facts: object) -> None:
        self.notes.append((kind, facts))

    def run(self, setup: object, array: object, workload: Workload, kind: str, window: object) -> Run:
        assert kind == "run"  # what the journal knows as repeatable
        self.ran.append(workload)
        self.clock_s += 60
        found = self.rates(workload, self.ran.count(workload))
        if isinstance(found, Exception):
            raise found
        run = strategies.run(found, geometry="raid5x3", workload=workload, rounds=1)
        return replace(run, window_s=60.0)

    def recorded(self) -> list[str]:
        return [str(facts["workload"]) for kind, facts in self.notes if kind == "measured"]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()
    monkeypatch.setattr(fixed_time, "run", bench.run)
    monkeypatch.setattr(interleaved, "time", SimpleNamespace(monotonic=lambda: bench.clock_s))
    return bench


def after(count: int) -> Callable[[Measured], Decision]:
    return lambda measured: Decision(done=len(measured.runs) >= count, sentence=f"{len(measured.runs)} cells")


def rounds(bench: Bench, enough: Callable[[Measured], Decision] | None = None, **more: object) -> InterleavedRounds:
    settings = replace(protocol.load("interleaved"), interleave=more.pop("rule", RULE))
    setup = SimpleNamespace(
        protocol=settings, logbook=bench, live=None, looked=None, progress=lambda what, seconds: None,
    )  # fmt: skip
    found = InterleavedRounds(setup, ARRAY, settings.interleave, enough or after(5), **more)  # type: ignore[arg-type]
    found.order = random.Random(5)  # noqa: S311
    return found


def test_each_round_has_each_workload_once_in_an_order_of_its_own(bench: Bench) -> None:
    endings = rounds(bench).measure(MIXES)
    drawn = [tuple(bench.ran[index : index + 3]) for index in range(0, len(bench.ran), 3)]
    assert len(drawn) == 5
    assert all(sorted(map(str, each)) == sorted(map(str, MIXES)) for each in drawn)
    assert len(set(drawn)) > 1
    for workload in MIXES:
        found = endings[workload]
        assert isinstance(found, Measured)
        assert found.interleaved is not None
        assert (len(found.runs), found.interleaved.workloads, found.interleaved.span_s) == (5, 3, 900.0)
    assert sorted(bench.recorded()) == sorted(map(str, MIXES))


def test_what_is_decided_leaves_and_is_recorded_at_once(bench: Bench) -> None:
    last = MIXES[2]

    def enough(measured: Measured) -> Decision:
        return Decision(done=measured.workload != last or len(measured.runs) >= 8)

    rounds(bench, enough).measure(MIXES)
    assert [bench.ran.count(each) for each in MIXES] == [5, 5, 8]
    assert bench.recorded()[-1] == str(last)


def test_what_stays_undecided_is_recorded_after_the_last_round(bench: Bench) -> None:
    endings = rounds(bench, after(1000)).measure(MIXES)
    assert [bench.ran.count(each) for each in MIXES] == [12] * 3
    assert all(isinstance(each, Measured) and each.is_last for each in endings.values())


def test_no_look_before_the_span(bench: Bench) -> None:
    rounds(bench, after(1), rule=replace(RULE, span_s=1500.0)).measure(MIXES)
    # Rounds of 180 s; looks are after 5, 8 and 12 of them.
    assert [bench.ran.count(each) for each in MIXES] == [12] * 3


def test_a_cell_is_tried_again(bench: Bench) -> None:
    odd = MIXES[1]

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        if workload == odd and number == 2:
            return ClockSet("the clock was set")
        return [0] * 60 if workload == odd and number == 4 else [1000] * 60

    bench.rates = rates
    endings = rounds(bench).measure(MIXES)
    assert isinstance(endings[odd], Measured)
    assert [bench.ran.count(each) for each in MIXES] == [5, 7, 5]


def test_a_workload_without_valid_cells_leaves_alone(bench: Bench) -> None:
    odd = MIXES[1]
    bench.rates = lambda workload, number: [0] * 60 if workload == odd else [1000] * 60
    endings = rounds(bench).measure(MIXES)
    assert isinstance(endings[odd], InvalidMeasurement)
    assert str(odd) in str(endings[odd])
    assert bench.ran.count(odd) == 2
    assert sorted(bench.recorded()) == sorted(str(each) for each in MIXES if each != odd)


def test_a_broken_drive_ends_all(bench: Bench) -> None:
    failed = RigError("S1 failed")

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        return failed if number == 3 else [1000] * 60

    bench.rates = rates
    with pytest.raises(RigError, match="S1 failed"):
        rounds(bench).measure(MIXES)
    assert not bench.recorded()


def test_first_seconds_that_differ_need_a_measurement_without_a_pause(bench: Bench) -> None:
    odd = MIXES[0]
    rng = random.Random(4)  # noqa: S311

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        first = 2000 if workload == odd else 1000
        return [round(each * rng.uniform(0.99, 1.01)) for each in [first] * 10 + [1000] * 50]

    bench.rates = rates
    endings = rounds(bench).measure(MIXES)
    assert [endings[each] is None for each in MIXES] == [True, False, False]
    assert str(odd) not in bench.recorded()
    (told,) = {str(facts["dependence"]) for kind, facts in bench.notes if kind == "looked_at_rounds"} - {""}
    assert "first 10 s" in told


def test_a_control_that_disagrees_ends_the_rounds_of_all(bench: Bench) -> None:
    control = Measured((strategies.run([1500, 1502] * 30, geometry="raid5x3", workload=MIXES[0], rounds=6),))
    endings = rounds(bench, control=control).measure(MIXES)
    assert all(each is None for each in endings.values())
    assert not bench.recorded()


def test_a_control_that_agrees_is_not_recorded_again(bench: Bench) -> None:
    control = Measured((strategies.run([999, 1001] * 30, geometry="raid5x3", workload=MIXES[0], rounds=6),))
    endings = rounds(bench, control=control).measure(MIXES)
    assert all(isinstance(each, Measured) for each in endings.values())
    assert sorted(bench.recorded()) == sorted(map(str, MIXES[1:]))
