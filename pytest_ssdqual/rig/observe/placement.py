"""Parser of what ``scripts/placement.sh`` prints about one drive."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_ssdqual.qual.measured.placement import DrivePlacement, format_list, parse_list
from pytest_ssdqual.rig.observe.device_counters import whole

#: The scheduler in use is in brackets: ``mq-deadline [none]``.
IN_USE = re.compile(r"\[([a-z0-9_-]{1,32})\]", re.ASCII)


def parse(lines: Sequence[str]) -> DrivePlacement:
    """Parse the lines of one drive; what is missing or malformed is unknown."""
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
        nr_requests=whole(values.get("nr_requests")),
        # The kernel says -1 where it knows of no node.
        numa_node=whole(values.get("numa_node")),
        interrupt_cpus=format_list(cpus),
    )
