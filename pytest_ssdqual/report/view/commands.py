"""Commands of a run as its transcript has them: the fio that made a raw file, and what was done last before an error.

The rule of the module: what the transcript does not show is not made up. Commands and records are matched by time and
writer, which are both the controller's.

How a measurement is repeated by hand: its fio, the array that it was made on, what that destroys, whose names; pure.

The rule of the module: what is said to repeat a measurement can be copied into a shell as it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pytest_ssdqual.report.run_folder import safe_files, transcript
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import subject

#: From fio's end to the first record that names its output: fetching the output of hours takes minutes.
SOON = timedelta(minutes=10)
#: A command ends, and then somebody says so.
CLOCK = timedelta(seconds=2)
#: Of an argument, and of what a command said.
ARGUMENT_CHARACTERS, SAID_CHARACTERS = 240, 400
#: Of a script of ours.
SCRIPT_CHARACTERS = 60
#: What a command that is bound to its drives calls itself.
BOUND = "bound"
#: An option of fio.
OUTPUT = "--output="


@dataclass(frozen=True, slots=True)
class ShownCommand:
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
    #: mdadm and its options, if it created an array.
    created: str
    said: str


def read(folder: Path) -> tuple[ShownCommand, ...]:
    """Every command, in the order in which they ended; none without a transcript."""
    try:
        return tuple(_command(line) for line in transcript.read(folder) if isinstance(line.get("argv"), list))
    except OSError:
        return ()


def before(commands: Iterable[ShownCommand], time: str, writer: str, most: int) -> tuple[ShownCommand, ...]:
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


def mentions(story: RunReader) -> Mapping[str, Mention]:
    """Of every raw file."""
    found: dict[str, Mention] = {}
    for record in story.records:
        raw = record.facts.get("raw")
        for name in [raw] if isinstance(raw, str) else raw if isinstance(raw, list) else ():
            if isinstance(name, str) and name:
                found.setdefault(name, Mention(record.time, str(record.facts.get("writer", ""))))
    return found


def fio_of(commands: Iterable[ShownCommand], mention: Mention | None) -> str:
    """The fio that made a raw file; empty if the transcript does not show it."""
    if mention is None:
        return ""
    moment, last = _moment(mention.time), ""
    for each in commands:
        if each.fio and each.writer == mention.writer and each.ended and moment:
            last = each.fio if moment - SOON <= each.ended <= moment + CLOCK else last
    return last


def _command(line: Mapping[str, object]) -> ShownCommand:
    argv = [str(each) for each in line["argv"]]  # type: ignore[attr-defined]
    status, seconds = line.get("status"), _seconds(line.get("elapsed_s"))
    started = _moment(str(line.get("started")))
    return ShownCommand(
        writer=str(line.get("writer", "")),
        ended=started + timedelta(seconds=seconds) if started else None,
        status=status if isinstance(status, int) else None,
        elapsed_s=seconds,
        text=shlex.join(_shown(argv)),
        fio=_fio(argv),
        created=_created(argv) if status == 0 else "",
        said=str(line.get("stderr") or line.get("stdout") or "")[-SAID_CHARACTERS:].strip(),
    )


def _seconds(value: object) -> float:
    """A year at most: what is longer was no command of ours."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 366 * 86400 else 0.0


def _shown(argv: list[str]) -> list[str]:
    """Without the scripts that are the same each time, which hide what was done; the transcript has them."""
    if argv[:2] != ["sh", "-c"] or len(argv) < 4:
        return [_shortened(each, ARGUMENT_CHARACTERS) for each in argv]
    if argv[3] == BOUND and (program := _bound(argv)):
        return [_shortened(each, ARGUMENT_CHARACTERS) for each in program]
    return [*argv[:2], *(_script_shortened(each) for each in argv[2:])]


def _bound(argv: list[str]) -> list[str]:
    """The command behind the check of its drives (``rig.drives.fencing``): three scripts, how, four words a drive."""
    try:
        return argv[9 + 4 * int(argv[8]) :]
    except (IndexError, ValueError):
        return []


def _script_shortened(argument: str) -> str:
    """A script, also one that another is given (to awk, perl or Python), by its beginning; any other word as usual."""
    if "\n" in argument:
        return _shortened(" ".join(argument.split()), SCRIPT_CHARACTERS)
    return _shortened(argument, ARGUMENT_CHARACTERS)


def _shortened(argument: str, most: int) -> str:
    return argument if len(argument) <= most else f"{argument[:most]}…"


def _fio(argv: list[str]) -> str:
    """Of fio itself or of what starts it: from its name on; not where it was only asked something.

    Its output goes to where it is repeated: the run's folder on the machine under test is gone, and fio would refuse.
    """
    for at, each in enumerate(argv[:-1]):
        if each == "fio" and argv[at + 1].startswith(OUTPUT):
            name = argv[at + 1].removeprefix(OUTPUT).rpartition("/")[2]
            return shlex.join([each, f"{OUTPUT}{name}", *argv[at + 2 :]])
    return ""


def _created(argv: list[str]) -> str:
    """The words of mdadm from its name on, without the UUID, by which a run knows what is its own."""
    for at, each in enumerate(argv[:-2]):
        if each == "mdadm" and argv[at + 1] == "--create":
            return shlex.join(word for word in argv[at:] if not word.startswith("--uuid="))
    return ""


def file_text(folder: Path, name: str) -> str:
    """Of the run folder itself, whatever a record from elsewhere may name. ``OSError`` or ``ValueError``."""
    path = folder / name
    path.resolve().relative_to(folder.resolve())
    return b"\n".join(safe_files.read_lines(path)).decode(errors="replace")


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


#: Options of fio.
TARGET, KIND = "--filename=", "--rw="
READS = ("read", "randread")


@dataclass(frozen=True, slots=True)
class Repeat:
    """Lines for a shell; empty where the transcript does not show them."""

    #: fio and its options.
    fio: tuple[str, ...] = ()
    #: What had created the arrays that these measured.
    arrays: tuple[str, ...] = ()
    #: Devices that are written to.
    destroyed: tuple[str, ...] = ()
    #: ``/dev/nvme0n1 was S1``, of every drive that these lines name.
    drives: tuple[str, ...] = ()


def of(found: Sequence[ShownCommand], mentioned: Iterable[Mention | None], drives: Mapping[str, str]) -> Repeat:
    """Of raw files, by where they are mentioned first; ``drives`` are serial numbers by the names of that time."""
    ran = [(fio_of(found, mention), mention) for mention in mentioned]
    fio = dict.fromkeys(text for text, _ in ran if text)
    arrays = dict.fromkeys(array for text, mention in ran if mention and (array := array_of(found, mention, text)))
    destroyed = dict.fromkeys(device for text in fio if writes(text) for device in devices_of(text))
    words = {word.removeprefix(TARGET) for text in (*fio, *arrays) for word in shlex.split(text)}
    named = tuple(f"{path} was {serial}" for path, serial in drives.items() if path in words)
    return Repeat(tuple(fio), tuple(arrays), tuple(destroyed), named)


def names(story: RunReader) -> Iterator[tuple[str, str]]:
    """Of every drive: what it was called in this run, and its serial number. Names change with every boot."""
    for bay in subject.tables(story.manifest.get("bays")):
        for drive in subject.tables(bay.get("drives")):
            yield subject.text(drive, "path"), subject.text(drive, "serial") or subject.text(drive, "identity")


def array_of(found: Iterable[ShownCommand], mention: Mention, fio: str) -> str:
    """What had created the array that this fio measured, last before; empty if it measured none."""
    try:
        moment = datetime.fromisoformat(mention.time)
    except ValueError:
        return ""
    targets, last = devices_of(fio), ""
    for each in found:
        if each.created and each.writer == mention.writer and each.ended and moment.tzinfo:
            last = each.created if each.ended <= moment + CLOCK and shlex.split(each.created)[2] in targets else last
    return last


def devices_of(fio: str) -> tuple[str, ...]:
    """What a command of fio reads or writes, each once."""
    return tuple(dict.fromkeys(each.removeprefix(TARGET) for each in shlex.split(fio) if each.startswith(TARGET)))


def writes(fio: str) -> bool:
    """Whether a command of fio writes to what it names."""
    return any(each.removeprefix(KIND) not in READS for each in shlex.split(fio) if each.startswith(KIND))
