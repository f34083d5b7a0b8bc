"""Purge of ATA drives: the Sanitize Device and the Security feature sets, by hdparm.

Based on the source of hdparm 9.65, and tried with made-up IDENTIFY DATA (``--Istdin``). It may exit with status 0
although a drive or an adapter has refused a command ("bad/missing sense data"), so the outcome is read from the state
of the drive.

No drive is left locked. The password is public, and a script on the machine under test removes it that must finish
(``machine.MustFinish``): it outlives Ctrl-C, SIGTERM, the death of pytest and the loss of the connection. Only a power
loss of the drive, or root killing the script, can prevent it.
"""

from __future__ import annotations

import re

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.lease import must_finish
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import (
    Completed,
    DeadlineExceeded,
    Machine,
    MachineLost,
    RigError,
    StillRunning,
    ask,
)
from pytest_ssdqual.rig.purge import zero
from pytest_ssdqual.rig.purge.zero import COMMAND_DEADLINE_S, PassedOver

#: Always the same, so that anyone can unlock a drive that lost its power in the middle.
PASSWORD = "ssdqual"  # noqa: S105 (it is public)
#: Longest wait of a run. It exceeds the time that hdparm gives the drive: at most 12 h for a drive that reports its
#: duration in minutes.
ERASE_DEADLINE_S = 13 * 3600.0
#: What must not happen to a drive during an erase: its password is set.
CAUTION = "it must not lose its power until then"
#: Feature in ``hdparm -I``, option that starts it, its name; best first.
SANITIZES = (
    ("BLOCK_ERASE_EXT", "--sanitize-block-erase", "block erase"),
    ("CRYPTO_SCRAMBLE_EXT", "--sanitize-crypto-scramble", "crypto scramble"),
)

AWAIT_SANITIZE, SECURITY_ERASE = map(scripts.text, ("await_ata_sanitize.sh", "security_erase.sh"))


@frozen
class Security:
    """The security section of ``hdparm -I``; all False if there is none."""

    supported: bool
    enabled: bool
    locked: bool
    frozen: bool
    expired: bool
    enhanced: bool
    #: Duration of its best erase that the drive reports; None: it reports none.
    duration_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> Security:
        """Parse the whole answer: each state is a line, with ``not`` in front if it does not apply."""
        section = re.search(r"^Security:[ \t]*\n((?:[ \t]+.*\n?)*)", text, re.MULTILINE)
        lines = {line.strip() for line in section[1].splitlines()} if section else set()
        names = ("supported", "enabled", "locked", "frozen", "expired: security count", "supported: enhanced erase")
        supported, enabled, locked, frozen, expired, enhanced = (name in lines for name in names)
        best = "ENHANCED SECURITY" if enhanced else "SECURITY"
        minutes = re.search(rf"(\d{{1,4}}) ?min for {best} ERASE UNIT", section[1]) if section else None
        duration_s = int(minutes[1]) * 60.0 if minutes else None
        return cls(supported, enabled, locked, frozen, expired, enhanced, duration_s)

    def objection(self, path: str) -> str:
        """Return the reason why a drive in this state cannot be erased; empty if it can."""
        if not self.supported:
            return "the drive does not support it"
        off = f"`hdparm --user-master u --security-disable {PASSWORD} {path}` removes the password of this program"
        if self.locked:
            return f"the drive is locked by a password; if a purge lost its power, {off}"
        if self.enabled:
            return f"the drive has a password already; if a purge lost its power, {off}"
        if self.frozen:
            return "the machine's firmware has frozen it; suspending and waking the machine often thaws it"
        if self.expired:
            return "the drive has counted too many wrong passwords; it takes none until its power is cut"
        return ""


def security_erase(machine: Machine, drive: Drive) -> str:
    """SECURITY ERASE UNIT, enhanced if supported; return what was done, ``PassedOver`` if nothing was.

    ``RigError`` if the password may still be set, with the command that removes it.
    """
    security = Security.parse(_identify(machine, drive))
    if objection := security.objection(drive.path):
        raise PassedOver(objection)
    option = "--security-erase-enhanced" if security.enhanced else "--security-erase"
    remedy = f"`hdparm --user-master u --security-disable {PASSWORD} {drive.path}` removes it"
    state = f"it may be left with the ATA user password {PASSWORD!r}, and lock itself when its power is cut: {remedy}"
    argv = ["sh", "-c", SECURITY_ERASE, "security-erase", drive.path, PASSWORD, option]
    work = must_finish(drive, "ATA Security Erase", expected_s=security.duration_s, caution=CAUTION)
    try:
        done = fencing.run(
            machine, argv, [drive], alone=True, deadline_s=ERASE_DEADLINE_S, check=False, must_finish=work
        )
        outcome, _, messages = done.text.partition("\n")
    except (MachineLost, DeadlineExceeded, StillRunning) as error:
        raise type(error)(
            f"{error}; {drive.describe()} was being erased, and completes that by itself: {CAUTION}; the ATA user "
            f"password {PASSWORD!r} is on it until then ({remedy} if it is left)"
        ) from error
    last = messages.strip().rpartition("\n")[2].strip()
    if outcome == "erased":
        return "ATA Security Erase, enhanced" if security.enhanced else "ATA Security Erase"
    if outcome == "refused":
        raise PassedOver(f"the drive took no password: {last}")
    if outcome == "failed":
        raise PassedOver(f"the erase failed, and the password was taken off again: {last}")
    raise RigError(f"{drive.describe()} failed its security erase: {state} ({last})")


def sanitize(machine: Machine, drive: Drive) -> str:
    """SANITIZE by block erase or crypto scramble; return what was done, when it is complete.

    ``PassedOver`` if nothing was done; ``RigError`` if it was started and did not succeed. The drive continues it
    whatever happens to the controller or the machine; the next purge waits for it.
    """
    features = _identify(machine, drive)
    supported = [(option, name) for feature, option, name in SANITIZES if f"{feature} command" in features]
    if "SANITIZE feature set" not in features or not supported:
        raise PassedOver("the drive supports neither block erase nor crypto scramble")
    option, name = supported[0]
    await_sanitize(machine, drive)
    if "SD1" in _status(machine, drive).text:
        raise PassedOver("it is frozen until the drive's power is cut")
    argv = ["hdparm", "--yes-i-know-what-i-am-doing", option, drive.path]
    started = fencing.run(machine, argv, [drive], alone=True, deadline_s=COMMAND_DEADLINE_S, check=False)
    if started.status or "sense data" in started.errors:
        raise PassedOver(f"the drive refused it: {last_words(started)}")
    status = _finished(machine, drive)
    if "Completed Without Error" not in status.text:
        raise RigError(
            f"{drive.describe()} did not complete its sanitize ({name}), and may refuse all data until one succeeds: "
            f"look at `hdparm --sanitize-status {drive.path}`"
        )
    return f"ATA Sanitize, {name}"


def await_sanitize(machine: Machine, drive: Drive) -> bool:
    """Wait for a sanitize that another process had started; return True if there was one."""
    if "SD2" not in _status(machine, drive).text:
        return False
    _finished(machine, drive)
    return True


def _finished(machine: Machine, drive: Drive) -> Completed:
    zero.await_in_drive(machine, drive, AWAIT_SANITIZE, "ATA Sanitize")
    return _status(machine, drive)


def _status(machine: Machine, drive: Drive) -> Completed:
    """State of a sanitize by hdparm: SD0 idle, SD1 frozen, SD2 in process; it fails in SD3, or where there is none."""
    return ask(machine, ["hdparm", "--sanitize-status", drive.path])


def _identify(machine: Machine, drive: Drive) -> str:
    done = ask(machine, ["hdparm", "-I", drive.path])
    if done.status == 127:
        raise PassedOver(f"hdparm is not installed on {machine.name}")
    if done.status:
        raise PassedOver(f"hdparm cannot identify the drive: {last_words(done)}")
    return done.text
