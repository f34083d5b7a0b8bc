from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ssdqual.rig.machine import local
from pytest_ssdqual.rig.machine.machine import RigError


@pytest.fixture
def sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody who is not root, and a ``sudo`` of the test's own in front of the real one."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path / "sudo"


def test_root_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    channel = local.connect()
    assert (channel.name, channel.become) == ("localhost", ())
    assert channel.run(["echo", "a b"]).text == "a b\n"
    channel.close()


def test_others_become_root_by_sudo(sudo: Path) -> None:
    sudo.write_text('#!/bin/sh\nshift\n[ "$1" != -- ] || shift\nAS=root exec "$@"\n')
    sudo.chmod(0o755)
    channel = local.connect()
    assert channel.become == ("sudo", "-n", "--")
    assert channel.run(["sh", "-c", "echo $AS"]).text == "root\n"
    channel.close()


def test_no_root_and_no_sudo_is_one_sentence(sudo: Path) -> None:
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    with pytest.raises(RigError, match="allow `sudo -n`"):
        local.connect()
