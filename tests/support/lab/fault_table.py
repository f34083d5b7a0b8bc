"""The tables of ``docs/faults.md``: what was seen of each fault while the tests ran, and what is written there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DOCUMENT = Path(__file__).parents[3] / "docs" / "faults.md"
#: Set to anything, this writes into the document what was seen, be it little.
WRITE = "SSDQUAL_WRITE_FAULTS"
#: The tables are between these lines.
BEGIN, END = "<!-- begin: written by the tests -->", "<!-- end: written by the tests -->"

#: In the order of the document; each has a test of this name.
FAULTS = {
    "pulled": "a member is pulled",
    "io_errors": "a member answers with I/O errors",
    "spike": "a member is slow for some seconds",
    "read_only": "a member turns read-only",
    "corrupted": "one copy of the data is corrupted silently",
    "frozen_drive": "a member answers nothing any more",
    "panic": "the machine's kernel panics",
    "reset": "the machine is reset",
    "power_cut": "the machine's power is cut",
    "frozen_machine": "the machine is frozen for 25 s",
    "cut_briefly": "the ssh connection is reset, and can be made again",
    "cut_for_long": "the ssh connection is silent for longer than `--ssd-reconnect`",
    "worker_killed": "a worker of fio is killed",
    "controller_killed": "pytest is killed (SIGKILL)",
    "disk_full": "the run folder's disk is full",
    "clock_step": "the machine's clock is set an hour forward, then back",
}

#: What differs from run to run, and what stands for it: ssh's own words for how it lost the connection, and figures.
VARYING = (
    (r"(?<= is lost: )[^;]*(?=; )", "…"),
    (r"(?<= by ssh: ).*", "…"),
    (r"\d[\d,.]*(?= ?(?:IOPS|s\b|%|µs|ms))", "…"),
    (r"(?<= byte )\d+", "…"),
    # Messages of the kernel have times and sectors, and their number depends on what was in flight.
    (r"(?<=; kernel: ).*(?= \(under the load of )", "…"),
    # fio names the header of a block or its checksum, whichever it finds damaged first.
    (r"(?<=does not hold what was written: )(?:its checksum is wrong|it holds something else \([^)]*\))", "…"),
)


def plain(sentence: str) -> str:
    """A sentence without the figures that no two runs share."""
    for pattern, stand_in in VARYING:
        sentence = re.sub(pattern, stand_in, sentence)
    return sentence


@dataclass(frozen=True, slots=True)
class Observed:
    """What came of one fault."""

    #: Of the test that it struck: ``<error>`` or ``<failure>`` with its sentence, or what was done and that it passed.
    said: tuple[str, ...]
    #: Whether it continues, or with which status it ends.
    run: str
    #: What became of the array.
    array: str
    #: Of fio and of the lease, when the run had ended.
    left: str
    #: Bytes of the drive that was not given to the run which differ from what they were.
    others_bytes: int
    junit: str
    folder: str


@dataclass(slots=True)
class Ledger:
    """All that was observed in this session."""

    observed: dict[str, Observed] = field(default_factory=dict)
    #: How ``--ssd-resume`` went on afterwards.
    resumed: dict[str, str] = field(default_factory=dict)

    def resumed_before(self, earlier: Mapping[str, str]) -> None:
        """Take over how runs went on in an earlier session, of faults whose resumption does not run again."""
        self.resumed = {**earlier, **self.resumed}

    def seen(self) -> list[str]:
        """Faults of which everything was seen."""
        return [name for name in FAULTS if name in self.observed and name in self.resumed]

    def missing(self) -> list[str]:
        """Faults of which not everything was seen."""
        return [name for name in FAULTS if name not in self.seen()]

    def row(self, name: str) -> tuple[str, str]:
        """The lines of one in both tables."""
        seen = self.observed[name]
        return _said(FAULTS[name], seen, self.resumed[name]), _left(FAULTS[name], seen)

    def rows(self) -> list[tuple[str, str]]:
        """The lines of those that were seen in both tables."""
        return [self.row(name) for name in self.seen()]


SAID = ("| fault | the test that it strikes | the run | `--ssd-resume=last` |", "| --- | --- | --- | --- |")
LEFT = (
    "| fault | the array | fio, lease | other drives | JUnit | run folder |",
    "| --- | --- | --- | --- | --- | --- |",
)


def _said(title: str, seen: Observed, resumed: str) -> str:
    return _row(title, "<br>".join(seen.said), seen.run, resumed)


def _left(title: str, seen: Observed) -> str:
    return _row(title, seen.array, seen.left, f"{seen.others_bytes} bytes differ", seen.junit, seen.folder)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def committed(document: str) -> list[tuple[str, str]]:
    """The lines of each fault in both tables, in the document's order."""
    between = document.split(BEGIN)[1].split(END)[0].splitlines()
    rows = [line for line in between if line.startswith("| ") and line not in (*SAID, *LEFT)]
    half = len(rows) // 2
    return list(zip(rows[:half], rows[half:], strict=True))


def newest(before: Sequence[Sequence[str]], seen: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The lines of all these faults, in their order; of those that were seen now, these."""
    by_title = {_title(said): (said, left) for said, left in (*before, *seen)}
    return [by_title[title] for title in FAULTS.values() if title in by_title]


def written(document: str, seen: Sequence[tuple[str, str]]) -> str:
    """The document with these lines of faults instead of what it had of them."""
    rows = newest(committed(document), seen)
    tables = [*SAID, *(said for said, _ in rows), "", *LEFT, *(left for _, left in rows)]
    before, rest = document.split(BEGIN)
    return before + "\n".join([BEGIN, "", *tables, "", END]) + rest.split(END)[1]


def _title(row: str) -> str:
    return row.removeprefix("| ").split(" |")[0]


def is_to_be_written() -> bool:
    return bool(os.environ.get(WRITE))
