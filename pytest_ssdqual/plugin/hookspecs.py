"""What a site may add, in a conftest or a plugin of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ssdqual.rig.blockdev import Drive
    from pytest_ssdqual.rig.machine import Machine


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


@pytest.hookspec
def pytest_ssdqual_record(record: dict[str, object]) -> None:
    """Told of every verdict as plain data, on the controller, when its test has ended: to publish it elsewhere."""
