"""Processes that have a drive of the measurement open by any of its nodes, before, during and after a fio process.

The guard asks the same before a drive is written to. The kernel counts what is done through a block device; through a
character device (sg, bsg, ng) it counts nothing, and a faultless drive looks slow.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.environment import OpenFile
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.observe.live_stats import LineServer
from pytest_ssdqual.rig.observe.witness import asked

FUNCTIONS = scripts.text("open_files.sh")
SCRIPT = FUNCTIONS + scripts.text("open_files_asked.sh")
#: Seconds until the first question, between two, and after which a process that has a drive open still has it if it
#: counts; and until an answer is given up. A reading of 500 processes takes 30 ms of one CPU.
FIRST_S, PERIOD_S, STAYS_S, ANSWER_S = 5.0, 60.0, 3.0, 10.0
LINE = re.compile(r"(\S{1,64}) (\d{1,10}) (read|write|generic) (.{1,64})", re.ASCII)
#: This run's own program has the block devices open while it measures.
OWN = "fio"


def parse(lines: Iterable[str]) -> dict[str, tuple[OpenFile, ...]]:
    """Parse what ``open_files.sh`` prints, by kernel name; what is malformed is left out."""
    found: dict[str, list[OpenFile]] = {}
    for match in filter(None, map(LINE.fullmatch, lines)):
        found.setdefault(match[1], []).append(OpenFile(safe_text.line(match[4]), int(match[2]), match[3]))
    return {name: tuple(files) for name, files in found.items()}


@dataclass(slots=True)
class Users:
    """The processes that had drives open while fio ran, by kernel name."""

    files: dict[str, dict[OpenFile, None]] = field(default_factory=dict)

    def add(self, earlier: str, line: str) -> None:
        """Add those of two answers."""
        before = parse(earlier.split("\t"))
        for name, files in parse(line.split("\t")).items():
            staying = [each for each in files if each in before.get(name, ()) and not _is_own(each)]
            self.files.setdefault(name, {}).update(dict.fromkeys(staying))

    def of(self, name: str) -> tuple[OpenFile, ...]:
        return tuple(self.files.get(name, ()))


@contextmanager
def watched(machine: Machine, array: Array) -> Iterator[Users]:
    """Look who has the drives side by side open until the block ends; nothing of arrays, whose members md holds.

    Without answers nothing is known.
    """
    users = Users()
    if not array.geometry.is_side_by_side:
        yield users
        return

    def look(server: LineServer, ended: threading.Event) -> None:
        wait_s = FIRST_S
        while not ended.wait(wait_s) and (answer := server.ask("", 1, ANSWER_S)) is not None:
            wait_s = PERIOD_S
            if not any(not _is_own(each) for files in parse(answer[0].split("\t")).values() for each in files):
                continue
            if ended.wait(STAYS_S) or (again := server.ask("", 1, ANSWER_S)) is None:
                return
            users.add(answer[0], again[0])

    names = [word for drive in array.members for word in (drive.sysfs_name, drive.path, "none")]
    with asked(machine, ["sh", "-c", SCRIPT, "open_files", *names], look, ANSWER_S):
        yield users


def _is_own(file: OpenFile) -> bool:
    return file.program == OWN and file.access != "generic"
