"""The ``Machine`` on which the controller itself runs."""

from __future__ import annotations

import os

from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import Observer, RigError, spelled


def connect(observer: Observer | None = None) -> Channel:
    """Connect to this computer as root: directly, or by ``sudo -n``.

    Raises ``RigError`` with one sentence if neither works.
    """
    channel = Channel("localhost", wrap=spelled, lost=lambda done: None, observer=observer)
    if os.geteuid() == 0:
        return channel
    if channel.run(["sudo", "-n", "true"], check=False).status:
        raise RigError("no root here and sudo asks for a password: run as root, or allow `sudo -n` for this user")
    channel.become = ("sudo", "-n", "--")
    return channel
