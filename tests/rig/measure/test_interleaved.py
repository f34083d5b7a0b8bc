from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import strategies

from pytest_ssdqual.qual.measured.environment import DriveTemperature, ProcessEnvironment
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol_rules import InterleaveRule
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DriveFailed
from pytest_ssdqual.rig.machine.machine import ClockSet, InvalidMeasurement, MachineLost, RigError
from pytest_ssdqual.rig.measure import fixed_time, interleaved
from pytest_ssdqual.rig.measure.interleaved import Ended, Ending, InterleavedRounds

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
    #: Of a cell.
    seen: Callable[[Workload, int], ProcessEnvironment | None] = lambda workload, number: None
    #: Number of the connection.
    generation: int = 1

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
        return replace(run, window_s=60.0, seen=self.seen(workload, self.ran.count(workload)))

    def barred(self) -> list[tuple[str, str]]:
        return [(str(facts["workload"]), str(facts["why"])) for kind, facts in self.notes if kind == "takes_no_turns"]

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


def measured(
    bench: Bench, enough: Callable[[Measured], Decision] | None = None, **more: object
) -> dict[Workload, Ending]:
    """The endings of three workloads."""
    endings: dict[Workload, Ending] = {}

    def ended(workload: Workload, ending: Ending) -> None:
        assert workload not in endings
        endings[workload] = ending

    rounds(bench, ended, enough, **more).measure(MIXES)
    return endings


def rounds(
    bench: Bench,
    ended: Ended,
    enough: Callable[[Measured], Decision] | None = None,
    **more: Any,  # noqa: ANN401
) -> InterleavedRounds:
    settings = replace(protocol.load("interleaved"), interleave=more.pop("rule", RULE))
    setup = SimpleNamespace(
        protocol=settings, logbook=bench, live=None, machine=bench, looked=None, progress=lambda what, seconds: None,
    )  # fmt: skip
    found = InterleavedRounds(setup, ARRAY, settings.interleave, enough or after(5), ended, **more)  # type: ignore[arg-type]
    found.order = random.Random(5)  # noqa: S311
    return found


def test_each_round_has_each_workload_once_in_an_order_of_its_own(bench: Bench) -> None:
    endings = measured(bench)
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

    measured(bench, enough)
    assert [bench.ran.count(each) for each in MIXES] == [5, 5, 8]
    assert bench.recorded()[-1] == str(last)


def test_what_stays_undecided_is_recorded_after_the_last_round(bench: Bench) -> None:
    endings = measured(bench, after(1000))
    assert [bench.ran.count(each) for each in MIXES] == [12] * 3
    assert all(isinstance(each, Measured) and each.is_last for each in endings.values())


def test_no_look_before_the_span(bench: Bench) -> None:
    measured(bench, after(1), rule=replace(RULE, span_s=1500.0))
    # Rounds of 180 s; looks are after 5, 8 and 12 of them.
    assert [bench.ran.count(each) for each in MIXES] == [12] * 3


def test_a_cell_that_the_rig_disturbed_is_left_out_and_made_up_for(bench: Bench) -> None:
    odd = MIXES[1]

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        return ClockSet("the clock was set") if workload == odd and number == 2 else [1000] * 60

    bench.rates = rates
    endings = measured(bench)
    assert [bench.ran.count(each) for each in MIXES] == [5, 8, 5]  # there are looks after 5, 8 and 12 rounds
    found = endings[odd]
    assert isinstance(found, Measured)
    assert len(found.runs) == 7
    (left_out,) = (facts for kind, facts in bench.notes if kind == "cell_left_out")
    assert (left_out["workload"], left_out["round"], left_out["objections"]) == (str(odd), 2, ["the clock was set"])


def test_a_workload_that_is_disturbed_all_the_time_ends_alone(bench: Bench) -> None:
    odd = MIXES[1]
    bench.rates = lambda workload, number: ClockSet("the clock was set") if workload == odd else [1000] * 60
    endings = measured(bench)
    assert isinstance(endings[odd], InvalidMeasurement)
    assert "the clock was set (4 cells were disturbed)" in str(endings[odd])
    assert sorted(bench.recorded()) == sorted(str(each) for each in MIXES if each != odd)


def test_a_cell_with_a_stall_makes_no_room_for_one_without(bench: Bench) -> None:
    """It is the drive's own doing: the workload is measured without a pause, and the cell is on record."""
    odd = MIXES[1]

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        return [1000] * 50 + [0] * 10 if workload == odd and number == 3 else [1000] * 60

    bench.rates = rates
    endings = measured(bench)
    assert endings[odd] is None
    assert bench.ran.count(odd) == 3
    ((workload, why),) = bench.barred()
    assert (workload, why.startswith("round 3: ")) == (str(odd), True)


def test_a_cell_in_which_a_drive_throttled_makes_no_room_for_a_cool_one(bench: Bench) -> None:
    odd, busy = MIXES[1], MIXES[2]

    def seen(workload: Workload, number: int) -> ProcessEnvironment:
        cool = strategies.seen_drive("S0", None, None)
        hot = replace(cool, heat=DriveTemperature(75.0, 70.0, too_warm=True, too_warm_s=9, events=1))
        busy_now = workload == busy and number == 2
        return strategies.seen([hot if workload == odd and number == 3 else cool], cpu_busy=0.99 if busy_now else 0.3)

    bench.seen = seen
    endings = measured(bench)
    assert (endings[odd], bench.ran.count(odd)) == (None, 3)
    # A busy host is not the drives' doing: that cell is left out, and the workload has its result later.
    assert isinstance(endings[busy], Measured)
    assert bench.ran.count(busy) == 8


@pytest.mark.parametrize("error", [RigError("fio did not end"), ValueError("math domain error")])
def test_an_error_of_one_workload_is_its_own(bench: Bench, error: Exception) -> None:
    odd = MIXES[1]
    bench.rates = lambda workload, number: error if workload == odd else [1000] * 60
    endings = measured(bench)
    assert endings[odd] is error
    assert sorted(bench.recorded()) == sorted(str(each) for each in MIXES if each != odd)


def failed_drive() -> DriveFailed:
    return DriveFailed("raid5x3", [FailedDrive("S1", ("it dropped out",), ())])


@pytest.mark.parametrize("error", [failed_drive(), MachineLost("no answer")])
def test_a_failed_drive_or_a_lost_machine_ends_all(bench: Bench, error: Exception) -> None:
    decided: list[Workload] = []

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        return error if number == 7 else [1000] * 60

    def enough(measured: Measured) -> Decision:
        return Decision(done=measured.workload == MIXES[0])

    bench.rates = rates
    with pytest.raises(type(error)):
        rounds(bench, lambda workload, ending: decided.append(workload), enough).measure(MIXES)
    # What was decided before has its result.
    assert decided == [MIXES[0]]
    assert bench.recorded() == [str(MIXES[0])]


@pytest.mark.parametrize("is_other", [False, True])
def test_after_a_pause_all_begins_anew(bench: Bench, *, is_other: bool) -> None:
    """Drives recover in a pause: an hour of it is no hour of load, and cells before and after are of two states."""

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        if workload == MIXES[1] and number == 4:
            bench.generation += is_other
            bench.clock_s += 0 if is_other else 3600
        return [1000] * 60

    bench.rates = rates
    spans = []

    def enough(measured: Measured) -> Decision:
        assert measured.interleaved
        spans.append(measured.interleaved.span_s)
        return Decision(done=len(measured.runs) >= 5)

    endings = measured(bench, enough)
    # The pause is in round 4, and looks are after 5, 8 and 12: cells before it do not count.
    for workload in MIXES:
        found = endings[workload]
        assert isinstance(found, Measured)
        assert (bench.ran.count(workload), len(found.runs)) in ((8, 5), (12, 8), (12, 9))
    assert max(spans) <= 9 * 180


def test_few_rounds_after_a_late_pause_are_no_result(bench: Bench) -> None:
    """They may be a plateau, as before the first look of a run without a pause."""

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        bench.generation += (workload, number) == (MIXES[1], 6)
        return [1000] * 60

    bench.rates = rates
    endings = measured(bench, after(1000), rule=replace(RULE, span_s=1500.0))
    assert endings == dict.fromkeys(MIXES)
    assert not bench.recorded()
    assert len(bench.barred()) == 3


def test_a_cell_that_the_control_lacks_is_awaited(bench: Bench) -> None:
    control = Measured((strategies.run([999, 1001] * 30, geometry="raid5x3", workload=MIXES[0], rounds=6),))

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        return ClockSet("the clock was set") if (workload, number) == (MIXES[0], 3) else [1000] * 60

    bench.rates = rates
    endings = measured(bench, control=control)
    assert all(isinstance(each, Measured) for each in endings.values())
    assert [bench.ran.count(each) for each in MIXES] == [8] * 3
    assert not bench.barred()


def test_first_seconds_that_differ_need_a_measurement_without_a_pause(bench: Bench) -> None:
    odd = MIXES[0]
    rng = random.Random(4)  # noqa: S311

    def rates(workload: Workload, number: int) -> list[int] | Exception:
        first = 2000 if workload == odd else 1000
        return [round(each * rng.uniform(0.99, 1.01)) for each in [first] * 10 + [1000] * 50]

    bench.rates = rates
    endings = measured(bench)
    assert [endings[each] is None for each in MIXES] == [True, False, False]
    assert str(odd) not in bench.recorded()
    ((workload, why),) = bench.barred()
    assert workload == str(odd)
    assert "first 10 s" in why


def test_a_control_that_disagrees_ends_the_rounds_of_all(bench: Bench) -> None:
    control = Measured((strategies.run([1500, 1502] * 30, geometry="raid5x3", workload=MIXES[0], rounds=6),))
    endings = measured(bench, control=control)
    assert all(each is None for each in endings.values())
    assert not bench.recorded()


@pytest.mark.parametrize("number", [1, 3])
def test_a_control_without_cells_ends_the_rounds_of_all(bench: Bench, number: int) -> None:
    control = Measured((strategies.run([999, 1001] * 30, geometry="raid5x3", workload=MIXES[0], rounds=6),))
    bench.rates = lambda workload, at: [0] * 60 if (workload, at) == (MIXES[0], number) else [1000] * 60
    endings = measured(bench, control=control)
    assert endings == dict.fromkeys(MIXES)
    assert bench.barred()[0][0] == str(MIXES[0])
    assert len(bench.barred()) == 3
    assert not bench.recorded()


def test_a_control_that_agrees_is_not_recorded_again(bench: Bench) -> None:
    control = Measured((strategies.run([999, 1001] * 30, geometry="raid5x3", workload=MIXES[0], rounds=6),))
    endings = measured(bench, control=control)
    assert all(isinstance(each, Measured) for each in endings.values())
    assert sorted(bench.recorded()) == sorted(map(str, MIXES[1:]))
