"""Reads whether drives are locked: TCG Opal and its kin of NVMe drives, passwords of ATA drives. Nothing is sent.

Sources: TCG Storage Architecture Core Specification 2.01 (3.3.6, Level 0 Discovery) and Storage Security Subsystem
Class Opal 2.01 (3.1.1.3, Locking Feature), NVM Express Base Specification (Security Receive), ACS-4 (Security). Opal of
SATA and SAS drives is unknown: no tool that machines usually have reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from pytest_ssdqual.qual.numbers import bytes_of
from pytest_ssdqual.qual.validity.fault_codes import UNLOCK
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health.smart_answer import at, parsed
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine

SCRIPT = scripts.text("locking.sh")
DEADLINE_S, DEADLINE_OF_DRIVE_S = 30.0, 30.0
#: Header of the discovery, and of each of its features; the Locking Feature, and the bits of its first byte.
HEADER, FEATURE_HEADER, LOCKING = 48, 4, 0x0002
LOCKING_ENABLED, LOCKED = 1 << 1, 1 << 2


class Locking(StrEnum):
    """State of a drive's own access control."""

    #: It has none, or nobody has taken ownership.
    OFF = "off"
    #: It is unlocked now, and locks itself when it loses its power.
    UNLOCKED = "unlocked"
    LOCKED = "locked"


def read(machine: Machine, drives: Sequence[Drive]) -> Mapping[str, Locking]:
    """Return the state of each drive by path; a drive whose state is unknown is left out."""
    names = [word for drive in drives for word in (drive.sysfs_name, drive.path, drive.smart_type)]
    deadline_s = DEADLINE_S + DEADLINE_OF_DRIVE_S * len(drives)
    lines = scripts.answer(machine, SCRIPT, "locking", *names, deadline_s=deadline_s).text.splitlines()
    answers = dict(line.split(" ", 1) for line in lines if " " in line)
    states = {drive.path: _state(answers.get(drive.sysfs_name, "")) for drive in drives}
    return {path: state for path, state in states.items() if state is not None}


def objection(state: Locking) -> str:
    """Return why a drive in this state cannot be measured, and what to do; empty if it can."""
    return f"is locked (TCG Opal, or a password): {UNLOCK}" if state is Locking.LOCKED else ""


def of_discovery(data: Sequence[int]) -> Locking | None:
    """Return the state by the bytes of a Level 0 Discovery; None if they are none."""
    if len(data) < HEADER:
        return None
    end = min(len(data), int.from_bytes(bytes(data[:4]), "big") + 4)
    if end < HEADER:
        return None
    at_byte = HEADER
    while at_byte + FEATURE_HEADER < end:
        if int.from_bytes(bytes(data[at_byte : at_byte + 2]), "big") == LOCKING:
            flags = data[at_byte + FEATURE_HEADER]
            if not flags & LOCKING_ENABLED:
                return Locking.OFF
            return Locking.LOCKED if flags & LOCKED else Locking.UNLOCKED
        at_byte += FEATURE_HEADER + data[at_byte + 3]
    return Locking.OFF


def _state(answer: str) -> Locking | None:
    kind, _, report = answer.partition(" ")
    if kind == "discovery":
        return of_discovery(bytes_of(report) or [])
    security = at(parsed(report), "ata_security")
    if not isinstance(security, dict) or not isinstance(security.get("enabled"), bool):
        return None
    if security.get("locked") is True:
        return Locking.LOCKED
    return Locking.UNLOCKED if security["enabled"] else Locking.OFF
