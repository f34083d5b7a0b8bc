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
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import Channel, last_words
from pytest_ssdqual.rig.machine.machine import Completed, Observer, RigError, spelled
from pytest_ssdqual.rig.machine.owned_directory import OwnedDirectory

#: Precede the user's configuration: ssh must not ask a question, and detects a dead peer in 15–20 s. Nothing is
#: forwarded: ClearAllForwardings covers ports only, and root of that machine could use an agent for days.
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
#: ssh's exit status for its own errors; a remote command may have it too, so it is never sufficient alone.
SSH_FAILED = 255
#: What to do about a connection that ssh refuses, by a part of its messages; the first one that is found decides.
ADVICE = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is another one than before; if the machine was installed anew, run `ssh-keygen -R {host}`, then "
        "`ssh {destination}` once, and compare the fingerprint",
    ),
    (
        "Host key verification failed",
        "its host key is not known here; run `ssh {destination}` once, and compare the fingerprint",
    ),
    (
        "Permission denied",
        "it accepts no key of this user, and ssh asks for no password here; run `ssh-copy-id {destination}`, or name "
        "the key as IdentityFile in ~/.ssh/config",
    ),
    ("Could not resolve hostname", "check the name, or give the address as HostName in ~/.ssh/config"),
    ("Connection refused", "start sshd there, or give its port as Port in ~/.ssh/config"),
)
#: Prefix of the directories of control sockets.
PREFIX = "ssdqual-ssh-"
#: Seconds that one attempt to reconnect may take.
ATTEMPT_S = 20.0
MASTER = scripts.text("ssh_master.sh")


@frozen
class SshTarget:
    """Destination of a connection: what the user would type after ``ssh``, and options that precede this program's."""

    destination: str
    options: tuple[str, ...] = ()
    #: The machine's name in messages; the destination if empty.
    name: str = ""
    #: Seconds for which reconnecting is tried after a loss; 0: not at all.
    patience_s: float = 0.0

    def __post_init__(self) -> None:
        # ssh would take a destination that starts with a dash for an option (CVE-2017-1000117 and similar).
        # The same holds for the host behind a user, in a ProxyCommand that is given %h.
        if not re.fullmatch(r"[A-Za-z0-9_.@:%\[\]-]+", self.destination) or re.search(r"(^|@)-", self.destination):
            raise ValueError(f"{self.destination!r} is not a host name: write [USER@]HOST as for ssh")


class Unreachable(RigError):
    """ssh could not connect, or could not become root there."""


def connect(target: SshTarget, observer: Observer | None = None, deadline_s: float = 60.0) -> Channel:
    """Connect, and find out how to become root on that machine.

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
    """The ssh process that holds the connection; commands share it through its control socket."""

    def __init__(self, target: SshTarget) -> None:
        self.target = target
        # Not below TMPDIR: the path of a control socket may have about 100 characters (sun_path is 108).
        self._owned = OwnedDirectory.make(Path("/tmp"), PREFIX)  # noqa: S108 (only this user's, see there)
        self._dir = self._owned.path
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        argv = [*self._ssh(*MASTER_OPTIONS), "-N", self.target.destination]
        with (self._dir / "stderr").open("wb") as stderr:
            # It exits on EOF of its standard input, which is never written to and closes with this process.
            return subprocess.Popen(
                ["sh", "-c", MASTER, "master", *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
                pass_fds=(self._owned.descriptor,),  # it outlives this process by seconds, and so does the directory
            )

    def wait(self, deadline_s: float) -> None:
        """Wait until commands can use the connection."""
        end = time.monotonic() + deadline_s
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise Unreachable(f"cannot reach {self.target.destination} by ssh: {self._reason()}{self._advice()}")
            time.sleep(0.05)

    def renew(self, deadline_s: float) -> None:
        """Reconnect, and try again until that succeeds; ``Unreachable`` if it does not."""
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
        """Return the remote command line for an argv: the only place that quotes for a shell."""
        # Without its master, ssh would open a new connection, perhaps to a machine that has rebooted and has lost the
        # lease; with `false` as ProxyCommand it fails instead.
        return [
            *self._ssh("ControlMaster=no", "ProxyCommand=false"),
            self.target.destination,
            shlex.join(spelled(argv)),
        ]

    def lost(self, done: Completed) -> str | None:
        """Return why the connection is lost; None if the command failed, not ssh (255, and no answer of the master)."""
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
        # Banners and "Permanently added" come first, the reason comes last.
        lines = self._messages().strip().splitlines()
        return safe_text.line(lines[-1].strip()) if lines else "no answer"

    def _advice(self) -> str:
        text, destination = self._messages(), self.target.destination
        for part, advice in ADVICE:
            if part in text:
                return f"; {advice.format(destination=destination, host=destination.rpartition('@')[2])}"
        return ""

    def _messages(self) -> str:
        with contextlib.suppress(OSError):
            return (self._dir / "stderr").read_text("utf-8", "backslashreplace")
        return ""
