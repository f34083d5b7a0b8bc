"""Hooks that a site may implement, in a conftest or a plugin of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ssdqual.qual.notification import Notification
    from pytest_ssdqual.rig.drives.survey import Drive
    from pytest_ssdqual.rig.machine.machine import Machine


@pytest.hookspec
def pytest_ssdqual_refuse_drive(drive: Drive) -> str | None:
    """Return a reason not to destroy ``drive``, or None.

    Called once per drive before anything is touched; it can only add refusals, never lift one. For example, refuse
    every drive that is not on the asset list::

        def pytest_ssdqual_refuse_drive(drive):
            if drive.serial not in assets:
                return "is not on the asset list"
    """


@pytest.hookspec
def pytest_ssdqual_facts(machine: Machine) -> dict[str, str] | None:
    """Return more facts about the machine under test for the manifest: a slot map, a rack, an order number.

    Called once, after the plugin has collected its own facts; ``machine.run([...])`` runs a command on the machine.
    """


@pytest.hookspec(firstresult=True)
def pytest_ssdqual_power_cut(machine: str) -> bool | None:
    """Cut all power of the machine under test at once, and restore it; return True when that is done.

    Called by ``suites/integrity``, at times while the machine writes to its drives. ``machine`` is the name as in
    ``--ssd-devices``. The machine must boot by itself and be reachable at the same address; it may still be booting
        when this returns. Return None for a machine that the hook does not control; pytest stops at the first result
        other than None. For example::

        def pytest_ssdqual_power_cut(machine):
            pdu = outlets.get(machine)
            if pdu is None:
                return None
            pdu.off()
            time.sleep(10)
            pdu.on()
            return True

    The lab cuts its own power. On any other machine without this hook, integrity tests draw histories without power
        cuts.
    """


@pytest.hookspec
def pytest_ssdqual_record(record: dict[str, object]) -> None:
    """Publish ``record``, a verdict as plain data; called on the controller after its test."""


@pytest.hookspec
def pytest_ssdqual_notify(notification: Notification) -> None:
    """Report the first broken promise or error of a bay, a stall or the end of the run to people who are elsewhere.

    ``notification.what`` is ``failure``, ``error``, ``stall`` or ``end``; further fields are ``sentence``, ``time``,
    ``run_folder``, ``machine``, ``bay``, ``verdicts`` (numbers by outcome), ``cause`` and ``exit_status``. Called on
    the controller in a thread of its own, so it must not use pytest's objects. After an exception it is called once
    more. A second one, or no return within 15 s of the end of the run, is a line of the summary; neither delays a
    measurement or changes an outcome. For example::

        def pytest_ssdqual_notify(notification):
            if notification.what != "end":
                pager.send(notification.sentence, folder=notification.run_folder)

    ``--ssd-notify`` sends the same by HTTP, mail or any service of apprise without a hook.
    """
