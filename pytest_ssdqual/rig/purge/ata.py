"""What an ATA drive has to purge itself: the Sanitize Device and the Security feature sets, by hdparm.

hdparm 9.65 was read and tried with made-up IDENTIFY DATA (``--Istdin``). It may end with status 0 when a drive or an
adapter has refused a command ("bad/missing sense data"), so what happened is read from the state of the drive.

The rule of the module: no drive is left locked. The password is never a secret, and it is taken off on the machine
under test itself, by a script that must finish (``machine.MustFinish``): it outlives Ctrl-C, SIGTERM, the death of
pytest and the loss of the connection. Only a loss of the drive's power can still come between, and root who kills it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.lease import must_finish
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import Completed, DeadlineExceeded, Machine, MachineLost, RigError, StillRunning
from pytest_ssdqual.rig.purge import zero
from pytest_ssdqual.rig.purge.zero import PassedOver

#: Always this one, so that a drive that lost its power in the middle can be unlocked by whoever finds it.
PASSWORD = "ssdqual"  # noqa: S105 (it is told to everybody)
#: For how long a run waits. Longer than hdparm gives the drive, which is 12 h at most for any drive that says how long
#: it takes in minutes.
ERASE_DEADLINE_S = 13 * 3600.0
#: What must not happen to a drive that is being erased: its password stays on.
CAUTION = "it must not lose its power until then"
#: Of a command that only starts something.
COMMAND_DEADLINE_S = 60.0
#: A sanitize ends by itself, or not at all: there is no command to stop it.
SANITIZE_DEADLINE_S = 4 * 3600.0
#: Feature of ``hdparm -I``, option that starts it, what it is; best first.
SANITIZES = (
    ("BLOCK_ERASE_EXT", "--sanitize-block-erase", "block erase"),
    ("CRYPTO_SCRAMBLE_EXT", "--sanitize-crypto-scramble", "crypto scramble"),
)

AWAIT_SANITIZE, SECURITY_ERASE = map(scripts.text, ("await_ata_sanitize.sh", "security_erase.sh"))


@dataclass(frozen=True, slots=True)
class Security:
    """The security section of ``hdparm -I``; all False if there is none."""

    supported: bool
    enabled: bool
    locked: bool
    frozen: bool
    expired: bool
    enhanced: bool
    #: As long as the drive says that its best erase takes; None: it does not say.
    duration_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> Security:
        """From the whole answer: each state is a line, with ``not`` in front if it is not so."""
        found = re.search(r"^Security:[ \t]*\n((?:[ \t]+.*\n?)*)", text, re.MULTILINE)
        lines = {line.strip() for line in found[1].splitlines()} if found else set()
        names = ("supported", "enabled", "locked", "frozen", "expired: security count", "supported: enhanced erase")
        supported, enabled, locked, frozen, expired, enhanced = (name in lines for name in names)
        best = "ENHANCED SECURITY" if enhanced else "SECURITY"
        minutes = re.search(rf"(\d{{1,4}}) ?min for {best} ERASE UNIT", found[1]) if found else None
        duration_s = int(minutes[1]) * 60.0 if minutes else None
        return cls(supported, enabled, locked, frozen, expired, enhanced, duration_s)

    def objection(self, path: str) -> str:
        """Why a drive in this state cannot be erased by us; empty if it can."""
        if not self.supported:
            return "the drive does not support it"
        off = f"`hdparm --user-master u --security-disable {PASSWORD} {path}` takes off the password of ours"
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
    """SECURITY ERASE UNIT, enhanced where there is that; returns what was done, ``PassedOver`` if it was not.

    ``RigError`` if the password may still be set, with what to do then.
    """
    security = Security.parse(_identify(machine, drive))
    if objection := security.objection(drive.path):
        raise PassedOver(objection)
    option = "--security-erase-enhanced" if security.enhanced else "--security-erase"
    off = f"`hdparm --user-master u --security-disable {PASSWORD} {drive.path}` takes it off"
    left = f"it may be left with the ATA user password {PASSWORD!r}, and lock itself when its power is cut: {off}"
    argv = ["sh", "-c", SECURITY_ERASE, "security-erase", drive.path, PASSWORD, option]
    work = must_finish(drive, "ATA Security Erase", expected_s=security.duration_s, caution=CAUTION)
    try:
        done = fencing.run(
            machine, argv, [drive], alone=True, deadline_s=ERASE_DEADLINE_S, check=False, must_finish=work
        )
        outcome, _, said = done.text.partition("\n")
    except (MachineLost, DeadlineExceeded, StillRunning) as error:
        raise type(error)(
            f"{error}; {drive.describe()} was being erased, which goes on there by itself: {CAUTION}; the ATA user "
            f"password {PASSWORD!r} is on it until then ({off} if it is left)"
        ) from error
    last = said.strip().rpartition("\n")[2].strip()
    if outcome == "erased":
        return "ATA Security Erase, enhanced" if security.enhanced else "ATA Security Erase"
    if outcome == "refused":
        raise PassedOver(f"the drive took no password: {last}")
    if outcome == "failed":
        raise PassedOver(f"the erase failed, and the password was taken off again: {last}")
    raise RigError(f"{drive.describe()} failed its security erase: {left} ({last})")


def sanitize(machine: Machine, drive: Drive) -> str:
    """SANITIZE by block erase or crypto scramble; returns what was done, when it is done.

    ``PassedOver`` if nothing was done; ``RigError`` if it was begun and did not succeed. It goes on in the drive
    whatever becomes of this computer or that machine; the next purge waits for it.
    """
    features = _identify(machine, drive)
    found = [(option, name) for feature, option, name in SANITIZES if f"{feature} command" in features]
    if "SANITIZE feature set" not in features or not found:
        raise PassedOver("the drive supports neither block erase nor crypto scramble")
    option, name = found[0]
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
    """Whether a sanitize that somebody had started was still going on; it is over now."""
    if "SD2" not in _status(machine, drive).text:
        return False
    _finished(machine, drive)
    return True


def _finished(machine: Machine, drive: Drive) -> Completed:
    zero.await_in_drive(machine, drive, AWAIT_SANITIZE, "ATA Sanitize", SANITIZE_DEADLINE_S)
    return _status(machine, drive)


def _status(machine: Machine, drive: Drive) -> Completed:
    """What hdparm says of the state: SD0 idle, SD1 frozen, SD2 in process; it fails in SD3, or where there is none."""
    return machine.run(["hdparm", "--sanitize-status", drive.path], check=False, repeatable=True)


def _identify(machine: Machine, drive: Drive) -> str:
    done = machine.run(["hdparm", "-I", drive.path], check=False, repeatable=True)
    if done.status == 127:
        raise PassedOver(f"hdparm is not installed on {machine.name}")
    if done.status:
        raise PassedOver(f"hdparm cannot identify the drive: {last_words(done)}")
    return done.text
