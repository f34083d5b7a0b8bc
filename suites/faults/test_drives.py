"""A drive that fails during a measurement is a failure that names it; a fault of fio or of the clock is an error.

The run continues if it can. A drive that fails has a run of its own, because no session of that run uses it again; the
other faults strike one run that the next test resumes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.lab.fault_journey import Journey

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

#: The member with the fault.
MEMBER = "SSDQ0002"
#: What every member that md took out of the array has in common.
TAKEN_OUT = "md took it out of the array after failed requests; kernel: … (under the load of raid5x3)"


#: What becomes of a run that is resumed after a drive has failed in it.
UNUSED = "continues, and does not use the drive"


def failed(words: str) -> str:
    """The failure of the member, with the words for what it did."""
    return f"`<failure>` drive {MEMBER} failed: {words}; {TAKEN_OUT}"


@pytest.mark.nightly
def test_a_corrupted_copy(journey: Journey) -> None:
    """A performance measurement does not compare the data that it reads; the suite for data survival does."""
    from support.lab.fault_journey import ORDERLY, STOPPED, tell
    from support.lab.fault_table import DOCUMENT, Observed, committed

    with journey.quick_drives():
        running = journey.of_mirror()
        running.await_record("pattern_written")
        journey.corrupt_mirror("SSDQ0001", running.folder())
        run = running.finish()
    ((name, results),) = run.results().items()
    assert name == "test_a_mirror_survives_the_loss_of_one_drive[raid1x2-1rebuilding-randrw70_4k_qd1]"
    seen = journey.observe("corrupted", run, *map(tell, results))
    assert run.status == 1, run.output
    again = journey.of_mirror("--ssd-resume=last").finish()
    assert again.results() == run.results()
    assert not again.records("array_created")
    journey.ledger.resumed["corrupted"] = "recalls the measurement, and the test fails again"
    (said,) = seen.said
    assert said.startswith("`<failure>` "), said
    assert seen == Observed((said,), "continues", STOPPED, **ORDERLY)
    # Compared here, too, so that this test fails again when it runs again.
    row = journey.ledger.row("corrupted")
    assert row in committed(DOCUMENT.read_text(encoding="utf-8")), "\n".join(row)


@pytest.mark.every_release
def test_a_pulled_member(journey: Journey) -> None:
    from support.lab.fault_journey import KEPT, ORDERLY, WRITES, told
    from support.lab.fault_table import Observed

    vm, running = journey.server.lab.vm, journey.begin_apart()
    journey.until(running, WRITES)
    vm.pull(MEMBER)
    try:
        run = running.finish()
    finally:
        vm.plug(MEMBER)
    seen = journey.observe("pulled", run, *told(run, WRITES))
    assert seen == Observed((failed("it dropped out"),), "continues", KEPT, **ORDERLY)
    journey.resume_apart("pulled", run, MEMBER)
    assert journey.ledger.resumed["pulled"] == UNUSED


@pytest.mark.nightly
def test_io_errors(journey: Journey) -> None:
    from support.lab.fault_journey import KEPT, ORDERLY, WRITES, told
    from support.lab.fault_table import Observed

    vm, running = journey.server.lab.vm, journey.begin_apart()
    journey.until(running, WRITES)
    vm.fail(MEMBER)
    try:
        run = running.finish()
    finally:
        vm.mend(MEMBER)
    seen = journey.observe("io_errors", run, *told(run, WRITES))
    assert seen == Observed((failed("it returned media errors"),), "continues", KEPT, **ORDERLY)
    journey.resume_apart("io_errors", run, MEMBER)
    assert journey.ledger.resumed["io_errors"] == UNUSED


@pytest.mark.nightly
def test_a_drive_that_turns_read_only(journey: Journey) -> None:
    from support.lab.fault_journey import KEPT, ORDERLY, WRITES, told, worsened
    from support.lab.fault_table import Observed

    vm, running = journey.server.lab.vm, journey.begin_apart()
    journey.until(running, WRITES)
    vm.turn_read_only(MEMBER)
    try:
        run = running.finish()
    finally:
        vm.mend(MEMBER)
    seen = journey.observe("read_only", run, *told(run, WRITES), *worsened(run))
    worse = "its own SMART health assessment is FAILED; critical warning: media is read-only"
    said = (failed(f"{worse}; it returned media errors"), f"in red: {worse}")
    assert seen == Observed(said, "continues", KEPT, **ORDERLY)
    journey.resume_apart("read_only", run, MEMBER)
    assert journey.ledger.resumed["read_only"] == UNUSED


@pytest.mark.nightly
def test_a_drive_that_answers_nothing(journey: Journey) -> None:
    from support.lab import guest_faults
    from support.lab.fault_journey import KEPT, ORDERLY, WRITES, told
    from support.lab.fault_table import Observed

    running = journey.begin_apart()
    journey.until(running, WRITES)
    deaf = guest_faults.deafen(journey.server, MEMBER)
    try:
        run = running.finish()
    finally:
        guest_faults.hear_again(journey.server, *deaf)
    seen = journey.observe("frozen_drive", run, *told(run, WRITES))
    assert seen == Observed((failed("it dropped out"),), "continues", KEPT, **ORDERLY)
    journey.resume_apart("frozen_drive", run, MEMBER)
    assert journey.ledger.resumed["frozen_drive"] == UNUSED


@pytest.mark.nightly
def test_a_killed_worker_a_stepped_clock_and_a_stall(journey: Journey) -> None:
    from support.lab import guest_faults
    from support.lab.fault_journey import MORE_READS, ORDERLY, READS, STOPPED, WRITES, told
    from support.lab.fault_table import Observed

    running = journey.begin()
    for workload in (WRITES, MORE_READS):
        journey.until(running, workload)
        guest_faults.kill_worker(journey.server)
    journey.until(running, READS)
    guest_faults.step_clock(journey.server, 3600)
    journey.until(running, READS, attempt=2)
    journey.stall(MEMBER)
    run = journey.finish(running, "worker_killed", "clock_step", "spike")
    guest_faults.step_clock(journey.server, -3600)
    assert run.status == 1, run.output
    expected = {
        "worker_killed": (WRITES, "`<error>` a worker of fio was killed by signal 9"),
        "clock_step": (READS, "measured again", "passed"),
        "spike": (READS, "measured again", "passed"),
    }
    for fault, (workload, *said) in expected.items():
        seen = journey.observe(fault, run, *told(run, workload))
        assert seen == Observed(tuple(said), "continues", STOPPED, **ORDERLY)
