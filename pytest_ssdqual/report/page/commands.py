"""Commands of a run as its transcript has them: the fio that made a raw file, and what was done last before an error.

The rule of the module: what the transcript does not show is not made up. Commands and records are matched by time and
writer, which are both the controller's.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pytest_ssdqual.report import private, transcript
from pytest_ssdqual.report.story import Story

#: From fio's end to the first record that names its output: fetching the output of hours takes minutes.
SOON = timedelta(minutes=10)
#: A command ends, and then somebody says so.
CLOCK = timedelta(seconds=2)
#: Of an argument, and of what a command said.
ARGUMENT_CHARACTERS, SAID_CHARACTERS = 240, 400
#: md's own messages, as a look at the surroundings brings them (``rig.surroundings``): from this line to the next mark.
LOG, MARK = "==log", "=="


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the transcript, as much of it as is shown."""

    writer: str
    #: None if the transcript does not say.
    ended: datetime | None
    status: int | None
    elapsed_s: float
    #: For a shell; long arguments are cut.
    text: str
    #: fio and its options, if it measured or filled something.
    fio: str
    said: str
    #: Lines of the kernel's log.
    kernel: tuple[str, ...]


def read(folder: Path) -> tuple[Command, ...]:
    """Every command, in the order in which they ended; none without a transcript."""
    try:
        return tuple(_command(folder, line) for line in transcript.read(folder) if isinstance(line.get("argv"), list))
    except OSError:
        return ()


def before(commands: Iterable[Command], time: str, writer: str, most: int) -> tuple[Command, ...]:
    """The last ones of this process that ended within ten minutes before ``time``."""
    moment = _moment(time)
    if moment is None:
        return ()
    found = [
        each
        for each in commands
        if each.writer == writer and each.ended and moment - SOON <= each.ended <= moment + CLOCK
    ]
    return tuple(found[-most:])


@dataclass(frozen=True, slots=True)
class Mention:
    """The first record that names a raw file."""

    time: str
    writer: str


def mentions(story: Story) -> Mapping[str, Mention]:
    """Of every raw file."""
    found: dict[str, Mention] = {}
    for record in story.records:
        raw = record.facts.get("raw")
        for name in [raw] if isinstance(raw, str) else raw if isinstance(raw, list) else ():
            if isinstance(name, str) and name:
                found.setdefault(name, Mention(record.time, str(record.facts.get("writer", ""))))
    return found


def fio_of(commands: Iterable[Command], mention: Mention | None) -> str:
    """The fio that made a raw file; empty if the transcript does not show it."""
    if mention is None:
        return ""
    moment, last = _moment(mention.time), ""
    for each in commands:
        if each.fio and each.writer == mention.writer and each.ended and moment:
            last = each.fio if moment - SOON <= each.ended <= moment + CLOCK else last
    return last


def kernel_of(commands: Iterable[Command], mention: Mention | None) -> tuple[str, ...]:
    """What the kernel had said when a raw file was made, as far as it was asked."""
    if mention is None or (moment := _moment(mention.time)) is None:
        return ()
    near = [
        each.kernel
        for each in commands
        if each.writer == mention.writer and each.ended and abs(each.ended - moment) <= SOON
    ]
    return tuple(dict.fromkeys(line for lines in near for line in lines if line))


def _command(folder: Path, line: Mapping[str, object]) -> Command:
    argv = [str(each) for each in line["argv"]]  # type: ignore[attr-defined]
    status, seconds = line.get("status"), _seconds(line.get("elapsed_s"))
    started = _moment(str(line.get("started")))
    return Command(
        writer=str(line.get("writer", "")),
        ended=started + timedelta(seconds=seconds) if started else None,
        status=status if isinstance(status, int) else None,
        elapsed_s=seconds,
        text=shlex.join(_shortened(each) for each in argv),
        fio=_fio(argv),
        said=str(line.get("stderr") or line.get("stdout") or "")[-SAID_CHARACTERS:].strip(),
        kernel=_kernel(folder, argv, line),
    )


def _seconds(value: object) -> float:
    """A year at most: what is longer was no command of ours."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 366 * 86400 else 0.0


def _shortened(argument: str) -> str:
    return argument if len(argument) <= ARGUMENT_CHARACTERS else f"{argument[:ARGUMENT_CHARACTERS]}…"


def _fio(argv: list[str]) -> str:
    """Of fio itself or of what starts it: from its name on; not where it was only asked something."""
    for at, each in enumerate(argv[:-1]):
        if each == "fio" and argv[at + 1].startswith("--output="):
            return shlex.join(argv[at:])
    return ""


def _kernel(folder: Path, argv: list[str], line: Mapping[str, object]) -> tuple[str, ...]:
    if argv[:2] != ["sh", "-c"] or not any(LOG in script for script in argv[2:3]):
        return ()
    name, text = line.get("stdout_file"), str(line.get("stdout") or "")
    if isinstance(name, str):
        try:
            text = file_text(folder, name)
        except (OSError, ValueError):
            return ()
    _, _, log = text.partition(f"{LOG}\n")
    lines = (each for each in log.split("\n"))
    return tuple(itertools.takewhile(lambda each: not each.startswith(MARK), lines))


def file_text(folder: Path, name: str) -> str:
    """Of the run folder itself, whatever a transcript from elsewhere may name. ``OSError`` or ``ValueError``."""
    path = folder / name
    path.resolve().relative_to(folder.resolve())
    return b"\n".join(private.read_lines(path)).decode(errors="replace")


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None
