"""What several of the rig's tests need: this computer as a machine, and one behind OpenSSH."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakes.loopback_sshd import SSHD, Sshd, serving

from pytest_ssdqual.rig.machine.channel import Channel


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[Channel]:
    """This computer as whoever runs the tests: enough for what touches no drive."""
    channel = Channel("here", wrap=list, lost=lambda done: None, directory=str(tmp_path / "keepers"))
    yield channel
    channel.close()


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if not SSHD.exists():
        pytest.skip("there is no /usr/sbin/sshd here; it is in the package openssh-server")
    with serving(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Whether a process of this computer ends, or has ended, within half a minute."""

    def ended(pid: int) -> bool:
        for _ in range(300):
            state = Path(f"/proc/{pid}/stat")
            # A zombie has ended; whether its parent has noticed is not ours to wait for.
            try:
                if state.read_text().rpartition(")")[2].split()[0] == "Z":
                    return True
            except (FileNotFoundError, ProcessLookupError):
                return True
            time.sleep(0.1)
        return False

    return ended


@pytest.fixture
def background() -> str:
    """A shell command that tells its id and that of a grandchild, which has left its group and its session."""
    return "setsid sleep 600 & echo $$ $!; exec sleep 600"
