"""How md brings members into agreement: how fast it may, how far it is, and how much disagrees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pytest_ssdqual.qual.spec.protocol import RebuildRule
from pytest_ssdqual.rig.machine.machine import Machine, RigError, count
from pytest_ssdqual.rig.md import mdadm

#: sysfs: "1000 (system)" or "5000 (local)", KiB per second and member.
SPEED = re.compile(r"(\d{1,18}) \((system|local)\)", re.ASCII)
#: sysfs: "1234 / 5678" sectors, or "none".
DONE = re.compile(r"(\d{1,18}) */ *(\d{1,18})", re.ASCII)
SPEEDS = ("sync_speed_min", "sync_speed_max")


def _attribute(kname: str, name: str) -> str:
    return f"/sys/block/{kname}/md/{name}"


def component_bytes(machine: Machine, kname: str) -> int:
    """What the array uses of each member."""
    return count(machine.run(["cat", _attribute(kname, "component_size")], repeatable=True)) * 1024


@contextmanager
def speeds(machine: Machine, kname: str, rule: RebuildRule) -> Iterator[Mapping[str, str]]:
    """Within the block md's limits are those of ``rule``; gives what sysfs says of both, as they are then.

    Those that the rule leaves alone are the kernel's, and so are all of them afterwards.
    """
    wanted = dict(zip(SPEEDS, (rule.min_bytes_per_s, rule.max_bytes_per_s), strict=True))
    before = _said(machine, kname)
    changed = {name: rate for name, rate in wanted.items() if rate is not None}
    try:
        for name, rate in changed.items():
            machine.run(["tee", _attribute(kname, name)], stdin=str(max(1, rate // 1024)).encode(), repeatable=True)
        yield _said(machine, kname)
    finally:
        with suppress(RigError):  # if the machine is lost, an error is on its way
            for name in changed:
                machine.run(["tee", _attribute(kname, name)], stdin=_setting(before[name]).encode(), repeatable=True)


def limit_bytes_per_s(said: str) -> int:
    """What one of sysfs' speeds means; ``RigError`` for anything else."""
    found = SPEED.fullmatch(said)
    if not found:
        raise RigError(f"the kernel tells a resync speed as {said!r}")
    return int(found[1]) * 1024


def done_percent(machine: Machine, kname: str) -> float | None:
    """How far md is with what it does now; None if it does nothing."""
    said = DONE.fullmatch(
        machine.run(["cat", _attribute(kname, "sync_completed")], check=False, repeatable=True).text.strip()
    )
    return 100 * int(said[1]) / int(said[2]) if said and int(said[2]) else None


def check(machine: Machine, kname: str, size_bytes: int) -> int:
    """Let md compare all members of ``size_bytes`` each: how many sectors do not agree.

    ``RigError`` if it does not end, or is not what md did last.
    """
    _do(machine, kname, "check", size_bytes)
    return mdadm.state(machine, kname).mismatches


def repair(machine: Machine, kname: str, size_bytes: int) -> int:
    """The same, and let md write what makes them agree: how many sectors did not."""
    _do(machine, kname, "repair", size_bytes)
    return mdadm.state(machine, kname).mismatches


def _do(machine: Machine, kname: str, action: str, size_bytes: int) -> None:
    machine.run(["tee", _attribute(kname, "sync_action")], stdin=action.encode())
    mdadm.settle(machine, kname, deadline_s=600 + size_bytes / mdadm.SLOWEST_RESYNC_BYTES_PER_S)
    did = machine.run(["cat", _attribute(kname, "last_sync_action")], repeatable=True).text.strip()
    if did != action:
        raise RigError(f"{kname} was to be {action}ed, but what md did last is {did}")


def _said(machine: Machine, kname: str) -> dict[str, str]:
    lines = machine.run(["cat", *(_attribute(kname, name) for name in SPEEDS)], repeatable=True).text.splitlines()
    if len(lines) != len(SPEEDS):
        raise RigError(f"the kernel does not tell how fast {kname} may be resynced")
    return dict(zip(SPEEDS, lines, strict=True))


def _setting(said: str) -> str:
    """What has to be written for sysfs to say this again."""
    found = SPEED.fullmatch(said)
    return found[1] if found and found[2] == "local" else "system"
