"""Where a drive sits in its host: its queue and write cache, NUMA node, and the CPUs that serve its interrupts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pytest_ssdqual.qual.records import Added

RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class DrivePlacement:
    """Placement of one drive."""

    #: Name of the I/O scheduler in use, ``none`` included; "" if unknown.
    scheduler: str
    #: Requests that the block layer queues (nr_requests).
    nr_requests: int | None
    #: None if the host has one node, or does not say.
    numa_node: int | None
    #: CPUs that serve the interrupts of its controller, in the kernel's list format: ``0-7,16``; "" if unknown.
    interrupt_cpus: str
    #: The block layer's mode of its write cache, ``write back`` or ``write through``; "" if unknown.
    write_cache: Annotated[str, Added()] = ""

    @property
    def cpus(self) -> frozenset[int]:
        """Numbers of the CPUs that serve its interrupts; empty if unknown."""
        return frozenset(parse_list(self.interrupt_cpus))


def parse_list(text: str) -> list[int]:
    """Parse the kernel's list format (cpuset(7)); ``ValueError`` if it is none."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        found = RANGE.fullmatch(part)
        if not found:
            raise ValueError(f"{part[:40]!r} is no range of CPUs")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return numbers


def format_list(numbers: Iterable[int]) -> str:
    """Format numbers in the kernel's list format: ``0-7,16``."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
