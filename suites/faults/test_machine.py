"""The machine under test goes down while it measures: one sentence, exit status 2, and the run is gone on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fault_journey import Journey
    from rehearsed import Server
    from severable import Relay

pytestmark = pytest.mark.lab

LOST = "`<error>` lab is lost: …; it has booted anew since, or is another machine"
#: The array was not stopped, so its superblocks stay; the run folder knows them for ours.
GONE = "gone with the boot; 3 members bear its superblock"


def panics(server: Server, relay: Relay) -> None:
    import guest_faults

    guest_faults.panic(server)
    server.lab.vm.await_end()
    server.lab.vm.power_cut()
    server.lab.vm.power_on()


def is_reset(server: Server, relay: Relay) -> None:
    # As with a switch that learns anew which port is up. Without this, QEMU's user network spins on connections that
    # were given up while nobody answered in the guest (libslirp 4.7), and the guest does not come to boot.
    relay.fall_silent()
    server.lab.vm.reset()
    relay.heal()


def loses_power(server: Server, relay: Relay) -> None:
    server.lab.vm.power_cut()
    server.lab.vm.power_on()


@pytest.mark.parametrize(
    ("fault", "strike"),
    [
        pytest.param("panic", panics, id="panic"),
        pytest.param("reset", is_reset, id="reset"),
        pytest.param("power_cut", loses_power, id="power_cut"),
    ],
)
def test_a_machine_that_boots_anew(fault: str, strike: Callable[[Server, Relay], None], journey: Journey) -> None:
    from fault_journey import ORDERLY, WRITES, told
    from fault_table import Observed

    with journey.relayed() as (relay, options), journey.rebooted_after_all():
        running = journey.begin(*options)
        journey.until(running, WRITES)
        strike(journey.server, relay)
        run = journey.finish(running, fault)
    assert run.status == 2, run.output
    seen = journey.observe(fault, run, *told(run, WRITES))
    assert seen == Observed((LOST,), "ends, exit status 2", GONE, **ORDERLY)
