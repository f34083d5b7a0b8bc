"""Commands from a run's transcript: the fio that wrote a raw file, the commands before an error, and how to repeat a
measurement by hand; pure.

Only commands of the transcript are shown, and those for repeating can be pasted into a shell. Commands and records are
matched by time and writer, both of the controller.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.report.run_folder import safe_files, transcript
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import subject

#: Longest time from the end of fio to the first record of its output; fetching the output of hours takes minutes.
SOON = timedelta(minutes=10)
#: Tolerance for commands that are recorded after the record that names their output.
CLOCK = timedelta(seconds=2)
#: Maximum length of an argument, and of a command's output.
ARGUMENT_CHARACTERS, OUTPUT_CHARACTERS = 240, 400
#: Maximum length of a script.
SCRIPT_CHARACTERS = 60
#: Name of the script that binds a command to its drives.
BOUND = "bound"
#: fio's option for its output file.
OUTPUT = "--output="
#: fio's options for the device and the pattern.
TARGET, KIND = "--filename=", "--rw="
READS = ("read", "randread")


@frozen
class ShownCommand:
    """One line of the transcript, shortened."""

    writer: str
    #: None if the transcript does not have it.
    ended: datetime | None
    status: int | None
    elapsed_s: float
    #: The command for a shell; long arguments are cut.
    text: str
    #: fio and its options; empty for another command.
    fio: str
    #: mdadm and its options; empty unless it created an array.
    created: str
    output: str


def read(folder: Path) -> tuple[ShownCommand, ...]:
    """Return all commands in the order in which they ended; empty without a transcript."""
    try:
        return tuple(_command(line) for line in transcript.read(folder) if isinstance(line.get("argv"), list))
    except OSError:
        return ()


def before(
    commands: Iterable[ShownCommand], time: str, writer: str, within: timedelta | None = SOON
) -> Sequence[ShownCommand]:
    """Return the commands of a writer that ended before ``time``, at most ``within`` (None: any time) before it."""
    moment = subject.moment(time)
    if moment is None:
        return ()
    ended = [(each, moment - each.ended) for each in commands if each.writer == writer and each.ended]
    return [each for each, ago in ended if -CLOCK <= ago <= (within or timedelta.max)]


@frozen
class Mention:
    """The first record that names a raw file."""

    time: str
    writer: str


def mentions(story: RunReader) -> Mapping[str, Mention]:
    """Return the first mention of every raw file."""
    found: dict[str, Mention] = {}
    for record in story.records:
        raw = record.facts.get("raw")
        names = raw if isinstance(raw, list) else [raw]
        for name in names:
            if isinstance(name, str) and name:
                found.setdefault(name, Mention(record.time, str(record.facts.get("writer", ""))))
    return found


def fio_of(commands: Iterable[ShownCommand], mention: Mention | None) -> str:
    """Return the fio command that wrote a raw file; empty if the transcript does not have it."""
    ran = before(commands, mention.time, mention.writer) if mention else ()
    return next((each.fio for each in reversed(ran) if each.fio), "")


def _command(line: Mapping[str, object]) -> ShownCommand:
    argv = [str(each) for each in line["argv"]]  # type: ignore[attr-defined]
    status, seconds = line.get("status"), _seconds(line.get("elapsed_s"))
    ended = subject.moment(line.get("started"))
    try:
        ended = ended and ended + timedelta(seconds=seconds)
    except OverflowError:
        ended = None
    return ShownCommand(
        writer=str(line.get("writer", "")),
        ended=ended,
        status=status if isinstance(status, int) else None,
        elapsed_s=seconds,
        text=shlex.join(_shown(argv)),
        fio=_fio(argv),
        created=_created(argv) if status == 0 else "",
        output=str(line.get("stderr") or line.get("stdout") or "")[-OUTPUT_CHARACTERS:].strip(),
    )


def _seconds(value: object) -> float:
    """Return a duration of at most a year; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 366 * 86400 else 0.0


def _shown(argv: list[str]) -> list[str]:
    """Return the arguments without the scripts that wrap a command; the transcript has them."""
    is_script = argv[:2] == ["sh", "-c"] and len(argv) > 3
    program = _bound(argv) if is_script and argv[3] == BOUND else []
    shorten = _script_shortened if is_script and not program else _shortened
    return list(map(shorten, program or argv))


def _bound(argv: list[str]) -> list[str]:
    """Return the command behind the check of its drives (``rig.drives.fencing``).

    In front of it are three scripts, a mode, and four words for each drive.
    """
    try:
        return argv[9 + 4 * int(argv[8]) :]
    except (IndexError, ValueError):
        return []


def _script_shortened(argument: str) -> str:
    """Return the beginning of a script (also one for awk, perl or Python); shorten any other argument as usual."""
    if "\n" in argument:
        return _shortened(" ".join(argument.split()), SCRIPT_CHARACTERS)
    return _shortened(argument)


def _shortened(argument: str, most: int = ARGUMENT_CHARACTERS) -> str:
    return argument if len(argument) <= most else f"{argument[:most]}…"


def _fio(argv: list[str]) -> str:
    """Return the fio command line; empty if fio only printed information.

    ``--output`` loses its folder: that of the run no longer exists on the machine under test, and fio would refuse it.
    """
    for at, each in enumerate(argv[:-1]):
        if each == "fio" and argv[at + 1].startswith(OUTPUT):
            name = argv[at + 1].removeprefix(OUTPUT).rpartition("/")[2]
            return shlex.join([each, f"{OUTPUT}{name}", *argv[at + 2 :]])
    return ""


def _created(argv: list[str]) -> str:
    """Return the mdadm command line without the UUID, which identifies arrays of a run."""
    for at, each in enumerate(argv[:-2]):
        if each == "mdadm" and argv[at + 1] == "--create":
            return shlex.join(word for word in argv[at:] if not word.startswith("--uuid="))
    return ""


def file_text(folder: Path, name: str) -> str:
    """Return the text of a file of the run folder; ``ValueError`` if the name leads out of it, or ``OSError``."""
    path = folder / name
    path.resolve().relative_to(folder.resolve())
    return b"\n".join(safe_files.read_lines(path)).decode(errors="replace")


@frozen
class Repeat:
    """Lines for a shell; empty if the transcript does not have them."""

    #: fio and its options.
    fio: tuple[str, ...] = ()
    #: Commands that created the measured arrays.
    arrays: tuple[str, ...] = ()
    #: Devices that the commands write to.
    destroyed: tuple[str, ...] = ()
    #: ``/dev/nvme0n1 was S1`` for every drive in these lines.
    drives: tuple[str, ...] = ()


def of(found: Sequence[ShownCommand], mentioned: Iterable[Mention | None], drives: Mapping[str, str]) -> Repeat:
    """Return the lines that repeat the measurements of some raw files.

    ``mentioned`` are the first mentions of the files, ``drives`` serial numbers by the device names of the run.
    """
    ran = [(fio_of(found, mention), mention) for mention in mentioned]
    fio = dict.fromkeys(text for text, _ in ran if text)
    arrays = dict.fromkeys(array for text, mention in ran if mention and (array := array_of(found, mention, text)))
    destroyed = dict.fromkeys(device for text in fio if writes(text) for device in devices_of(text))
    words = {word.removeprefix(TARGET) for text in (*fio, *arrays) for word in shlex.split(text)}
    named = tuple(f"{path} was {serial}" for path, serial in drives.items() if path in words)
    return Repeat(tuple(fio), tuple(arrays), tuple(destroyed), named)


def array_of(found: Iterable[ShownCommand], mention: Mention, fio: str) -> str:
    """Return the command that created the array which this fio measured; empty if it measured none."""
    targets = devices_of(fio)
    ran = before(found, mention.time, mention.writer, None)
    created = [each.created for each in ran if each.created and shlex.split(each.created)[2] in targets]
    return created[-1] if created else ""


def devices_of(fio: str) -> tuple[str, ...]:
    """Return the devices that a fio command reads or writes, each once."""
    return tuple(dict.fromkeys(each.removeprefix(TARGET) for each in shlex.split(fio) if each.startswith(TARGET)))


def writes(fio: str) -> bool:
    """Return True if a fio command writes to its devices."""
    return any(each.removeprefix(KIND) not in READS for each in shlex.split(fio) if each.startswith(KIND))
