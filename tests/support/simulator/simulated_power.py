"""Simulated drives whose power commands cut, and what they hold then: ``SIMULATED_POWER=SSDQ0002=lost`` is a fault.

A drive without power has a file ``off-SERIAL`` in the current directory, which the commands of a test make and remove.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.qual.integrity.stamp import Stamp
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.rig.machine.machine import Completed
from support.builders import fio_documents
from support.fakes.scripted import completed
from support.simulator.pairs import pairs
from support.simulator.simulated_fio import FioProcess, UnderWay, histogram

UNIT = 4096
#: Commands with which a test cuts and restores the power.
COMMANDS = "--ssd-power-off=touch off-{serial}", "--ssd-power-on=rm off-{serial}"


@dataclass
class Overwritten:
    """A ``Tethered`` that overwrites a stretch of a drive: each look finds three more complete passes."""

    power: Power
    argv: tuple[str, ...]
    serial: str
    generation: int = field(init=False)
    is_over: bool = False

    def __post_init__(self) -> None:
        self.generation = int(self.argv[5]) - 1

    @property
    def note(self) -> str:
        return self.argv[4]

    @property
    def is_durable(self) -> bool:
        return bool({"--end_fsync=1", "--sync=1"} & set(self.argv))

    def look(self) -> None:
        if self.power.is_off(self.serial):
            self._end()
        elif not self.is_over:
            self.generation += 3

    def _end(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.power.ended(self)

    def of(self, generation: int) -> Iterator[tuple[int, bytes]]:
        history = int((self.argv[8])[6:10], 16)
        return _units(self.argv, history, generation)

    def alive(self) -> bool:
        self.look()
        return not self.is_over

    def cut(self, deadline_s: float = 30.0) -> Completed:
        self._end()
        return completed(self.argv, status=1, stderr="fio: Input/output error")

    def wait(self, deadline_s: float) -> Completed:
        raise NotImplementedError("it ends with the power")

    def rest(self, seconds: float) -> bool:
        return self.alive()

    def read_line(self, deadline_s: float) -> str:
        raise NotImplementedError("it announces nothing")


def _units(argv: Sequence[str], history: int, generation: int) -> Iterator[tuple[int, bytes]]:
    """What one pass writes, in units of 4 KiB."""
    option = {name: int(value) for name, _, value in (each[2:].partition("=") for each in argv) if value.isdecimal()}
    for at in range(option["offset"], option["offset"] + option["size"], UNIT):
        place = at - (at - option["offset"]) % option["bs"]
        yield at, stamp.filled(Stamp(history, generation, place), UNIT)


@dataclass
class Power:
    """All drives of a machine."""

    #: Serial → what a cut does: ``lost`` (the last pass), ``torn`` (within 512 bytes), ``volatile`` (the last pass,
    #: unless it was flushed), to data of another region ``unreadable``; or how it comes back: ``dead``, ``smaller``,
    #: ``swapped``, ``renamed``, ``mounted``; with ``stays`` it keeps its power.
    faults: dict[str, str]
    #: Serial → offset → 4 KiB.
    held: dict[str, dict[int, bytes]] = field(default_factory=dict)
    running: list[Overwritten] = field(default_factory=list)
    was_off: set[str] = field(default_factory=set)

    @classmethod
    def of_environment(cls) -> Power:
        return cls(pairs("SIMULATED_POWER"))

    def fault(self, serial: str) -> str:
        """The fault of a drive whose power was cut already."""
        self.is_off(serial)
        return self.faults.get(serial, "") if serial in self.was_off else ""

    def is_off(self, serial: str) -> bool:
        is_off = Path(f"off-{serial}").exists() and self.faults.get(serial) != "stays"
        self.was_off |= {serial} if is_off else set()
        return is_off or (serial in self.was_off and self.faults.get(serial) == "dead")

    def overwrite(self, argv: Sequence[str], serial: str) -> Overwritten:
        self.running.append(Overwritten(self, tuple(argv), serial))
        return self.running[-1]

    def noted(self, path: str) -> str | None:
        """The last pass in a note; None if the file is none."""
        for each in self.running:
            if each.note == path:
                each.look()
                return f"{each.generation}\n"
        return None

    def write(self, argv: Sequence[str], serial: str) -> FioProcess:
        """A job of ``stamped_io.write``, at once."""
        held = self.held.setdefault(serial, {})
        sections = [number for number, word in enumerate(argv) if word.startswith("--name=stretch-")]
        for begin, end in zip(sections, [*sections[1:], len(argv)], strict=True):
            words = argv[begin:end]
            (pattern,) = (each.removeprefix("--verify_pattern=0x") for each in words if "verify_pattern" in each)
            held.update(_units(words, int(pattern[4:8], 16), int(pattern[8:16], 16)))
        ios = len(held)
        each = Interval(0.0, 1.0, 0, ios, 0, ios * UNIT, histogram(0, 0.0), histogram(ios, 1e6))
        return FioProcess(tuple(argv), UnderWay(fio_documents.documents([each]), 1.0))

    def read(self, serial: str, offset: int, size: int) -> bytes:
        return b"".join(self.held[serial].get(at, bytes(UNIT)) for at in range(offset, offset + size, UNIT))

    def ended(self, write: Overwritten) -> None:
        """What a drive holds after the cut: the last complete pass, and half of the next; or what its fault leaves."""
        held, fault = self.held[write.serial], self.faults.get(write.serial, "")
        is_gone = fault == "lost" or (fault == "volatile" and not write.is_durable)
        last = write.generation - is_gone
        held.update(write.of(last))
        following = [] if is_gone else list(write.of(last + 1))
        held.update(following[: len(following) // 2])
        at, unit = next(write.of(write.generation))
        other = next(each for each in reversed(held) if not at <= each < at + (4 << 20))
        match fault:
            case "torn":
                held[at] = unit[:8] + next(write.of(last - 1))[1][:8] + unit[16:]
            case "unreadable":
                held[other] = b""
            case _:
                pass
