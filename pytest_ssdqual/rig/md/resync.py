"""md's resync, check and repair: speed limits, progress, and the number of sectors that disagree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pytest_ssdqual.qual.spec.protocol_rules import RebuildRule
from pytest_ssdqual.rig.machine.machine import Machine, RigError, ask, count
from pytest_ssdqual.rig.md import mdadm

#: sysfs: "1000 (system)" or "5000 (local)", KiB per second and member.
SPEED = re.compile(r"(\d{1,18}) \((system|local)\)", re.ASCII)
#: sysfs: "1234 / 5678" sectors, or "none".
DONE = re.compile(r"(\d{1,18}) */ *(\d{1,18})", re.ASCII)
SPEEDS = ("sync_speed_min", "sync_speed_max")


def _attribute(kname: str, name: str) -> str:
    return f"/sys/block/{kname}/md/{name}"


def component_bytes(machine: Machine, kname: str) -> int:
    """Bytes of each member that the array uses."""
    return count(machine.run(["cat", _attribute(kname, "component_size")], repeatable=True)) * 1024


@contextmanager
def speeds(machine: Machine, kname: str, rule: RebuildRule) -> Iterator[Mapping[str, str]]:
    """Set md's speed limits to those of ``rule`` within the block; yields both limits as sysfs then reports them.

    A minimum that the rule leaves out stays the host's; afterwards both have their former values.
    """
    limits = dict(zip(SPEEDS, (rule.min_bytes_per_s, rule.most_bytes_per_s), strict=True))
    before = _limits(machine, kname)
    changed = {name: rate for name, rate in limits.items() if rate is not None}
    try:
        for name, rate in changed.items():
            machine.run(["tee", _attribute(kname, name)], stdin=str(max(1, rate // 1024)).encode(), repeatable=True)
        yield _limits(machine, kname)
    finally:
        with suppress(RigError):  # if the machine is lost, another error reports it
            for name in changed:
                machine.run(["tee", _attribute(kname, name)], stdin=_setting(before[name]).encode(), repeatable=True)


def limit_bytes_per_s(text: str) -> int:
    """Bytes per second of one of sysfs' speeds; ``RigError`` for any other text."""
    match = SPEED.fullmatch(text)
    if not match:
        raise RigError(f"the kernel reports {text!r} as a resync speed")
    return int(match[1]) * 1024


def done_percent(machine: Machine, kname: str) -> float | None:
    """Progress of md's current action; None if there is none."""
    match = DONE.fullmatch(ask(machine, ["cat", _attribute(kname, "sync_completed")]).text.strip())
    return 100 * int(match[1]) / int(match[2]) if match and int(match[2]) else None


def compare(machine: Machine, kname: str, size_bytes: int, *, repair: bool = False) -> int:
    """Let md compare all members of ``size_bytes`` each; return the number of sectors that disagree.

    With ``repair`` it corrects them. ``RigError`` if that does not end, or was not md's last action.
    """
    action = "repair" if repair else "check"
    machine.run(["tee", _attribute(kname, "sync_action")], stdin=action.encode())
    mdadm.settle(machine, kname, deadline_s=600 + size_bytes / mdadm.SLOWEST_RESYNC_BYTES_PER_S)
    did = machine.run(["cat", _attribute(kname, "last_sync_action")], repeatable=True).text.strip()
    if did != action:
        raise RigError(f"md was to {action} {kname}, but its last action is {did}")
    return mdadm.state(machine, kname).mismatches


def _limits(machine: Machine, kname: str) -> dict[str, str]:
    lines = machine.run(["cat", *(_attribute(kname, name) for name in SPEEDS)], repeatable=True).text.splitlines()
    if len(lines) != len(SPEEDS):
        raise RigError(f"the kernel does not report the resync speed limits of {kname}")
    return dict(zip(SPEEDS, lines, strict=True))


def _setting(text: str) -> str:
    """The value to write to sysfs so that it reports this speed again."""
    match = SPEED.fullmatch(text)
    return match[1] if match and match[2] == "local" else "system"
