"""The search finds what is wrong with an array, in few steps; and nothing where nothing is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.simulator.simulated_array import CHUNK, Bugs, SimulatedBody

from pytest_ssdqual.plugin.searches.integrity import IntegritySearch
from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity import steps as history
from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.reference_model import MismatchKind, Survival
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES, Cut, Grow, ReAdd, Restart, StepSequence, Trim, Write
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings, IntegrityRule
from pytest_ssdqual.qual.units import format_size
from pytest_ssdqual.rig.integrity.runner import IntegrityOutcome, run_steps
from pytest_ssdqual.rig.integrity.target import TargetLayout
from pytest_ssdqual.rig.machine.machine import RigError

RULE = IntegrityRule(histories=20, steps=30, limit_s=1e9, regions=6)
CAN = Abilities(trim=True, power_cut=True)


class SearchClock:
    """Every look at it takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def search(
    body: SimulatedBody, shape: str, rule: IntegrityRule = RULE, kept: list[IntegrityOutcome] | None = None
) -> IntegritySearch:
    geometry = Geometry.parse(shape)
    body.drives = geometry.width + 1
    seen = [] if kept is None else kept
    stripe = reference_model.stripe_bytes(geometry, ArraySettings(chunk=format_size(CHUNK)))
    sizes = tuple(sorted({UNIT_BYTES, 4 * UNIT_BYTES, CHUNK, stripe}))
    return IntegritySearch(
        body, geometry, body.drives, rule, sizes, stripe + UNIT_BYTES, kept=lambda number, lived: seen.append(lived),
        clock=SearchClock(),
    )  # fmt: skip


def searched(bugs: Bugs, shape: str = "raid1x2", can: Abilities = CAN, rule: IntegrityRule = RULE) -> Survival:
    return search(SimulatedBody(bugs, can=can), shape, rule).run()


@pytest.mark.parametrize("shape", ["raid0x2", "raid1x2", "raid1x3", "raid5x3", "raid6x4", "raid10x4"])
def test_an_honest_array_survives_everything(shape: str) -> None:
    found = searched(Bugs(), shape)
    assert found, found
    assert (found.histories, found.steps) == (20, 600)
    assert found.cut_short == ""
    assert found.compared > 20 * 1000


@pytest.mark.parametrize("shape", ["raid1x2", "raid5x3", "raid6x4", "raid10x4"])
@pytest.mark.parametrize(
    ("bugs", "needed", "most"),
    [
        (Bugs(lost_writes=4 * UNIT_BYTES), Write, 1),
        (Bugs(misplaced=True), Write, 1),
        (Bugs(stale_re_add=True), ReAdd, 5),
        (Bugs(half_rebuilt=True), history.Fail, 4),
        (Bugs(flush_ignored=True), Cut, 1),
        (Bugs(torn_atom=True), Cut, 2),
        (Bugs(long_trim=True), Trim, 1),
        (Bugs(forgetful_restart=True), Restart, 2),
    ],
    ids=lambda each: str(each) if isinstance(each, Bugs) else "",
)
def test_every_way_of_losing_data_is_found_and_made_short(
    bugs: Bugs, needed: type[history.Step], most: int, shape: str
) -> None:
    found = searched(bugs, shape)
    assert not found
    assert found.shortest is not None
    assert any(isinstance(step, needed) for step in found.shortest.steps)
    assert len(found.shortest.steps) <= most
    assert found.happened_again is True
    body = SimulatedBody(bugs, drives=found.geometry.width + 1)
    assert run_steps(body, history.parse(str(found.shortest)), 1).findings, "the script does not do it again"


@pytest.mark.parametrize("shape", ["raid1x2", "raid5x3"])
def test_data_lost_by_growing_are_found(shape: str) -> None:
    found = searched(Bugs(short_growth=True), shape, rule=replace(RULE, histories=40))
    assert found.shortest is not None
    assert isinstance(found.shortest.steps[-1], Grow)


def test_a_copy_that_is_stale_needs_no_history() -> None:
    found = searched(Bugs(one_copy_stale=True))
    assert found.shortest is not None
    assert found.shortest.steps == ()


def test_copies_that_disagree_are_found_behind_right_reads() -> None:
    class OneReader(SimulatedBody):
        """It reads from its first member alone."""

        def read(self, offset_bytes: int, size_bytes: int) -> bytes:
            return bytes(self.held[min(self.whole)][offset_bytes : offset_bytes + size_bytes])

    for script in (
        "array raid1x2 bitmap none\ncheck\n",
        "array raid1x2 bitmap none\nrepair\n",
        "array raid1x2 bitmap none\n",
    ):
        lived = run_steps(OneReader(Bugs(one_copy_stale=True)), history.parse(script), 1)
        assert [each.kind for each in lived.findings] == [MismatchKind.DISAGREE]


def test_a_difference_that_is_gone_at_once_is_not_ignored() -> None:
    found = searched(Bugs(two_answers=True))
    assert "second read" in repr(found)


def test_the_write_hole_is_called_by_its_name() -> None:
    found = searched(Bugs(write_hole=True), "raid5x3", Abilities(power_cut=True, write_hole=True))
    assert "write hole" in repr(found)
    assert len(found.remarks) == 1


def test_the_write_hole_is_not_entered_unasked() -> None:
    assert searched(Bugs(write_hole=True), "raid5x3", Abilities(power_cut=True))


def test_the_same_is_drawn_in_every_run() -> None:
    runs: list[list[StepSequence]] = []
    for _ in range(2):
        kept: list[IntegrityOutcome] = []
        search(SimulatedBody(), "raid5x3", kept=kept).run()
        runs.append([each.history for each in kept])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 20


def test_every_kind_of_step_is_drawn() -> None:
    kept: list[IntegrityOutcome] = []
    search(SimulatedBody(can=replace(CAN, write_hole=True)), "raid6x4", kept=kept).run()
    drawn = {type(step).__name__ for each in kept for step in each.history.steps}
    assert drawn == {each.__name__ for each in history.Step.__args__}
    assert {each.history.bitmap for each in kept} == {"none", "internal"}


def test_a_search_ends_when_its_time_is_over_and_says_so() -> None:
    found = searched(Bugs(), rule=replace(RULE, limit_s=5.0))
    assert found
    assert 1 <= found.histories < 20
    assert "integrity.limit" in found.cut_short


def test_making_it_shorter_ends_when_its_time_is_over() -> None:
    kept: list[IntegrityOutcome] = []
    search(SimulatedBody(Bugs(stale_re_add=True), can=CAN), "raid1x2", kept=kept).run()
    first = next(number for number, each in enumerate(kept, 1) if each.findings)
    few: list[IntegrityOutcome] = []
    # Every look at the clock takes a second, and there is one for each history.
    limited = replace(RULE, limit_s=first + 3.0)
    assert not search(SimulatedBody(Bugs(stale_re_add=True), can=CAN), "raid1x2", limited, few).run()
    assert first < len(few) < min(len(kept), 2 * first + 5)


def test_what_does_not_happen_again_has_its_whole_history() -> None:
    class Once(SimulatedBody):
        def read(self, offset_bytes: int, size_bytes: int) -> bytes:
            return b"" if self.built == 3 else super().read(offset_bytes, size_bytes)

        def differs(self, history: int, stretches: object) -> bool:
            return self.built == 3

    found = search(Once(can=CAN), "raid1x2").run()
    assert not found
    assert found.happened_again is False


def test_a_broken_rig_is_an_error_and_nothing_more_is_tried() -> None:
    body = SimulatedBody(Bugs(broken="settle"))
    with pytest.raises(RigError, match="settle failed"):
        search(body, "raid5x3").run()
    assert body.built == 1


def test_a_history_is_replayed_once() -> None:
    body = SimulatedBody(Bugs(misplaced=True), can=CAN)
    script = history.parse("array raid5x3 bitmap none\nfail 1\nwrite 0 16k\nread\nwrite 1 4k\n")
    found = search(body, "raid5x3").replay(script)
    assert not found
    assert body.built == 1
    assert found.shortest is not None
    assert found.shortest.steps == script.steps[:3]
    assert found.happened_again is None
    assert (found.findings[0].kind, found.findings[0].offset_bytes) == (MismatchKind.STALE, 0)


def test_a_script_that_is_not_possible_names_its_step() -> None:
    with pytest.raises(RigError, match=r"^step 2 .*'re-add 1'"):
        search(SimulatedBody(), "raid5x3").replay(history.parse("array raid5x3 bitmap none\nfail 1\nre-add 1\n"))


def test_an_array_without_room_is_an_error_with_a_remedy() -> None:
    class Small(SimulatedBody):
        def build(self, history: StepSequence) -> TargetLayout:
            return replace(super().build(history), size_bytes=10 * CHUNK)

    with pytest.raises(RigError, match=r"4 of 6 .*integrity\.member"):
        search(Small(), "raid5x3").run()
