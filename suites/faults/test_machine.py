"""The machine under test goes down during a measurement: one sentence, exit status 2, and the run can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.lab.fault_journey import Journey
    from support.lab.rehearsed import Server

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

LOST = "`<error>` lab is lost: …; it has rebooted since, or is another machine"
#: The array was not stopped, so its superblocks stay; the run folder has their UUID.
GONE = "gone with the boot; 3 members have its superblock"


def panics(server: Server) -> None:
    from support.lab import guest_faults

    guest_faults.panic(server)
    server.lab.vm.await_end()
    server.lab.vm.power_cut()
    server.lab.vm.power_on()


def is_reset(server: Server) -> None:
    from support.lab import guest_faults

    guest_faults.restart(server)
    server.lab.vm.await_end()
    server.lab.vm.power_cut()
    server.lab.vm.power_on()


def loses_power(server: Server) -> None:
    server.lab.vm.power_cut()
    server.lab.vm.power_on()


@pytest.mark.parametrize(
    ("fault", "strike"),
    [
        pytest.param("panic", panics, id="panic", marks=pytest.mark.nightly),
        pytest.param("reset", is_reset, id="reset", marks=pytest.mark.nightly),
        pytest.param("power_cut", loses_power, id="power_cut"),
    ],
)
def test_a_machine_that_boots_anew(fault: str, strike: Callable[[Server], None], journey: Journey) -> None:
    from support.lab.fault_journey import ORDERLY, WRITES, told
    from support.lab.fault_table import Observed

    running = journey.begin()
    journey.until(running, WRITES)
    with journey.rebooted_after_all():
        strike(journey.server)
        run = journey.finish(running, fault)
    assert run.status == 2, run.output
    seen = journey.observe(fault, run, *told(run, WRITES))
    assert seen == Observed((LOST,), "ends, exit status 2", GONE, **ORDERLY)
