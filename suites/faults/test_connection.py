"""The connection to the machine under test is lost, for good or for a while; the last test finishes the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.lab.fault_journey import Journey

pytestmark = [pytest.mark.lab, pytest.mark.unhurried, pytest.mark.nightly]

#: Longer than ssh's keep-alive needs to detect a dead connection (15 to 20 s).
FROZEN_S = 25.0
CUT_S = 3.0


def test_a_connection_that_does_not_come_back(journey: Journey) -> None:
    from support.lab.fault_journey import ORDERLY, WRITES, told
    from support.lab.fault_table import Observed

    with journey.relayed() as (relay, options):
        running = journey.begin(*options, "--ssd-reconnect=5s")
        journey.until(running, WRITES)
        relay.cut()
        run = journey.finish(running, "cut_for_long")
    assert run.status == 2, run.output
    journey.await_nothing_left()
    seen = journey.observe("cut_for_long", run, *told(run, WRITES))
    said = ("`<error>` lab is lost: …; tried again for … s: cannot reach lab by ssh: …",)
    assert seen == Observed(said, "ends, exit status 2", "left standing", **ORDERLY)


def test_a_frozen_machine_and_a_connection_that_comes_back_cost_nothing(journey: Journey) -> None:
    """The same fio processes continue, and the run after all faults is complete."""
    from support.lab.fault_journey import MORE_READS, ORDERLY, WRITES, told
    from support.lab.fault_table import Observed

    vm, server = journey.server.lab.vm, journey.server
    with journey.relayed() as (relay, options):
        running = journey.begin(*options)
        journey.until(running, WRITES)
        vm.pause()
        journey.rest(FROZEN_S)
        vm.cont()
        journey.until(running, MORE_READS)
        before = set(server.ask("pidof", "fio").split())
        relay.cut()
        journey.rest(CUT_S)
        relay.heal()
        # fio's processes end one after the other; one that was not there before is a second measurement.
        assert set(server.ask("pidof", "fio", check=False).split()) <= before
        run = journey.finish(running)
    assert run.status == 0, run.output
    assert [each["argv"] for each in run.folder.transcript()].count(["reconnected"]) == 2
    for fault, workload in {"frozen_machine": WRITES, "cut_briefly": MORE_READS}.items():
        seen = journey.observe(fault, run, *told(run, workload))
        assert seen == Observed(("passed",), "continues", "stopped, its members erased", **ORDERLY)
        journey.ledger.resumed[fault] = "not needed"
    journey.require_whole(run)
