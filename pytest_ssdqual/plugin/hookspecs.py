"""What a site may add, in a conftest or a plugin of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ssdqual.rig.drives.survey import Drive
    from pytest_ssdqual.rig.machine.machine import Machine


@pytest.hookspec
def pytest_ssdqual_refuse_drive(drive: Drive) -> str | None:
    """Return a reason not to destroy ``drive``, or None.

    Called once per drive before anything is touched; it can only add refusals, never lift one. For example, refuse
    whatever is not on the asset list::

        def pytest_ssdqual_refuse_drive(drive):
            if drive.serial not in assets:
                return "is not on the asset list"
    """


@pytest.hookspec
def pytest_ssdqual_facts(machine: Machine) -> dict[str, str] | None:
    """Return more facts about the machine under test for the manifest: a slot map, a rack, an order number.

    Called once, after our own facts were collected; ``machine.run([...])`` asks the machine.
    """


@pytest.hookspec(firstresult=True)
def pytest_ssdqual_power_cut(machine: str) -> bool | None:
    """Cut the power of the machine under test, all of it at once, and give it back; return True when that was done.

    Called by ``suites/integrity``, at times while the machine writes to its drives. ``machine`` is the name as in
    ``--ssd-devices``. The machine must boot by itself, with the same way to reach it; it may still be booting when this
    returns. Return None if the machine is not one of yours; the first to return something is believed. For example::

        def pytest_ssdqual_power_cut(machine):
            pdu = outlets.get(machine)
            if pdu is None:
                return None
            pdu.off()
            time.sleep(10)
            pdu.on()
            return True

    The lab cuts its own power. On any other machine without it, histories are drawn without power cuts.
    """


@pytest.hookspec
def pytest_ssdqual_record(record: dict[str, object]) -> None:
    """Told of every verdict as plain data, on the controller, when its test has ended: to publish it elsewhere."""
