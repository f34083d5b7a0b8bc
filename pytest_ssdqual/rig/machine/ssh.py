"""A ``Machine`` behind OpenSSH: the user's own configuration, keys and jump hosts, one multiplexed connection."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import Channel, last_words
from pytest_ssdqual.rig.machine.machine import Completed, MachineLost, Observer, RigError, spelled
from pytest_ssdqual.rig.machine.owned_directory import OwnedDirectory

#: Ours, before the user's configuration: nothing may ask a question, and a dead peer is noticed in 15–20 s. Nothing is
#: forwarded: ClearAllForwardings is for ports only, and whoever is root there could use an agent for days.
OPTIONS = (
    "BatchMode=yes",
    "ConnectTimeout=15",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "Tunnel=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
)
#: Only for the connection that authenticates: an ssh without GSSAPI warns of the option each time.
MASTER_OPTIONS = ("GSSAPIDelegateCredentials=no", "ControlMaster=yes", "ControlPersist=no")
#: What ssh answers for its own troubles; a remote command may answer it too, so it is never believed alone.
SSH_FAILED = 255
#: Of the directories of control sockets.
PREFIX = "ssdqual-ssh-"
#: Seconds for which one attempt to connect anew may go on.
ATTEMPT_S = 20.0
MASTER = scripts.text("ssh_master.sh")


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where to: what the user would type after ``ssh``, and options that come before ours."""

    destination: str
    options: tuple[str, ...] = ()
    #: How messages name the machine; the destination if left empty.
    name: str = ""
    #: For how long a connection that was lost is tried to be made anew; 0: not at all.
    patience_s: float = 0.0

    def __post_init__(self) -> None:
        # A destination that starts with a dash would be an option of ssh (CVE-2017-1000117 and its kin).
        # So could the host behind a user be, of whatever ProxyCommand is given %h.
        if not re.fullmatch(r"[A-Za-z0-9_.@:%\[\]-]+", self.destination) or re.search(r"(^|@)-", self.destination):
            raise ValueError(f"{self.destination!r} is not a host name: write [USER@]HOST as for ssh")


class Unreachable(RigError):
    """ssh could not connect, or could not become root there."""


def connect(target: SshTarget, observer: Observer | None = None, deadline_s: float = 60.0) -> Channel:
    """Connect, and find out how to be root over there.

    Raises ``Unreachable`` with ssh's own reason.
    """
    if not shutil.which("ssh"):
        raise Unreachable("there is no ssh here; install the package openssh-client")
    master = _Master(target)
    try:
        master.wait(deadline_s)
        channel = Channel(
            target.name or target.destination,
            wrap=master.wrap,
            lost=master.lost,
            observer=observer,
            on_close=master.close,
            renew=master.renew,
            patience_s=target.patience_s,
        )
        if channel.is_patient:
            channel.learn_boot()
        channel.become = _how_to_be_root(channel)
    except BaseException:
        master.close()
        raise
    return channel


def _how_to_be_root(channel: Channel) -> tuple[str, ...]:
    if channel.run(["id", "-u"]).text.strip() == "0":
        return ()
    if channel.run(["sudo", "-n", "true"], check=False).status == 0:
        return ("sudo", "-n", "--")
    raise Unreachable(
        f"no root on {channel.name}, and sudo asks for a password there: "
        f"log in as root, or allow `sudo -n` for that user"
    )


class _Master:
    """The ssh process that holds the connection; commands ride on it through its control socket."""

    def __init__(self, target: SshTarget) -> None:
        self.target = target
        # Not below TMPDIR: a control socket's path may have at most some 100 characters (sun_path is 108).
        self._owned = OwnedDirectory.make(Path("/tmp"), PREFIX)  # noqa: S108 (ours alone, see there)
        self._dir = self._owned.path
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        argv = [*self._ssh(*MASTER_OPTIONS), "-N", self.target.destination]
        with (self._dir / "stderr").open("wb") as stderr:
            # Its standard input is what tells it that we are gone: never written to, closed with us.
            return subprocess.Popen(
                ["sh", "-c", MASTER, "master", *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
                pass_fds=(self._owned.descriptor,),  # it outlives us by seconds, and so does the directory
            )

    def wait(self, deadline_s: float) -> None:
        """Until commands can ride on it."""
        end = time.monotonic() + deadline_s
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise Unreachable(f"cannot reach {self.target.destination} by ssh: {self._reason()}")
            time.sleep(0.05)

    def renew(self, deadline_s: float) -> None:
        """Connect anew, and again until it succeeds; ``Unreachable`` if it does not."""
        end = time.monotonic() + deadline_s
        while True:
            self._end()
            (self._dir / "control").unlink(missing_ok=True)
            self._process = self._started()
            try:
                self.wait(ATTEMPT_S)
            except Unreachable:
                if time.monotonic() > end:
                    raise
                time.sleep(1.0)
            else:
                return

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """One remote command line out of an argv: the only place where we quote for a shell."""
        # When the master is gone, ssh would connect anew, perhaps to a machine that has booted in between and has
        # forgotten the lease; a connection through `false` comes to nothing.
        return [
            *self._ssh("ControlMaster=no", "ProxyCommand=false"),
            self.target.destination,
            shlex.join(spelled(argv)),
        ]

    def lost(self, done: Completed) -> str | None:
        """Whether ssh, and not the command, failed: 255 and the master does not answer any more."""
        if done.status != SSH_FAILED or self._answers():
            return None
        return self._reason() or last_words(done)

    def close(self) -> None:
        """End the connection; remote processes see the end of their standard input."""
        self._end()
        self._owned.remove()

    def _end(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
                break
        if self._process.stdin:
            self._process.stdin.close()

    def _ssh(self, *more: str) -> list[str]:
        control = f"ControlPath={self._dir / 'control'}"
        options = [part for option in (*OPTIONS, control, *more) for part in ("-o", option)]
        return ["ssh", *self.target.options, *options]

    def _answers(self) -> bool:
        if self._process.poll() is not None or not (self._dir / "control").exists():
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            check = subprocess.run(
                [*self._ssh(), "-O", "check", self.target.destination],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=10,
            )
            return check.returncode == 0
        return False

    def _reason(self) -> str:
        with contextlib.suppress(OSError):
            said = (self._dir / "stderr").read_text("utf-8", "backslashreplace").strip().splitlines()
            # Banners and "Permanently added" come first, the reason comes last.
            return safe_text.line(said[-1].strip()) if said else "no answer"
        return "no answer"


__all__ = ["MachineLost", "SshTarget", "Unreachable", "connect"]
