"""Where drives sit in their host: their queues, the NUMA nodes and interrupts of their controllers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from pytest_ssdqual.qual.measured.environment import DrivePlacement, format_list, parse_list
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine

NUMA_NODES = scripts.text("placement.sh") + scripts.text("numa_nodes.sh")

#: The scheduler in use is in brackets: ``mq-deadline [none]``.
IN_USE = re.compile(r"\[([a-z0-9_-]{1,32})\]", re.ASCII)

#: Modes of a write cache (queue/write_cache).
CACHES = ("write back", "write through")


def parse(lines: Sequence[str]) -> DrivePlacement:
    """Parse what ``scripts/placement.sh`` prints about one drive; what is missing or malformed is unknown."""
    words = [line.split(" ", 1) for line in lines if " " in line]
    values = dict(words)
    cpus: set[int] = set()
    for name, value in words:
        if name == "interrupt":
            try:
                cpus.update(parse_list(value))
            except ValueError:
                continue
    used = IN_USE.search(values.get("scheduler", ""))
    return DrivePlacement(
        scheduler=used[1] if used else "",
        nr_requests=decimal(values.get("nr_requests")),
        # The kernel says -1 where it knows of no node.
        numa_node=decimal(values.get("numa_node")),
        interrupt_cpus=format_list(cpus),
        write_cache=cache if (cache := values.get("write_cache", "")) in CACHES else "",
    )


def cpus_of_nodes(machine: Machine, drives: Sequence[Drive]) -> dict[str, str]:
    """Return the CPUs of each drive's NUMA node, by identity.

    Drives of an unknown node are left out; all are on a machine with one node. ``MachineLost`` if the machine is lost.
    """
    identities = {drive.sysfs_name: drive.identity for drive in drives}
    arguments = [text for name, drive in zip(identities, drives, strict=True) for text in (name, drive.path, "none")]
    done = scripts.answer(machine, NUMA_NODES, "numa_nodes", *arguments)
    of_nodes, *of_drives = done.text.split("==placement ")
    nodes: dict[int | None, str] = {}
    for line in of_nodes.splitlines():
        with contextlib.suppress(ValueError):
            kind, number, cpus = line.split()
            if kind == "node":
                nodes[int(number)] = format_list(set(parse_list(cpus)))
    found: dict[str, str] = {}
    for text in of_drives:
        name, _, lines = text.partition("\n")
        node = parse(lines.splitlines()).numa_node
        if name in identities and node in nodes:
            found[identities[name]] = nodes[node]
    return found if len(nodes) > 1 else {}
