"""How a measurement is repeated by hand: its fio, the array that it was made on, what that destroys, whose names; pure.

The rule of the module: what is said to repeat a measurement can be copied into a shell as it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_ssdqual.report.run_folder.story import Story
from pytest_ssdqual.report.view import commands, subject
from pytest_ssdqual.report.view.commands import CLOCK, Command, Mention

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


def of(found: Sequence[Command], mentioned: Iterable[Mention | None], drives: Mapping[str, str]) -> Repeat:
    """Of raw files, by where they are mentioned first; ``drives`` are serial numbers by the names of that time."""
    ran = [(commands.fio_of(found, mention), mention) for mention in mentioned]
    fio = dict.fromkeys(text for text, _ in ran if text)
    arrays = dict.fromkeys(array for text, mention in ran if mention and (array := array_of(found, mention, text)))
    destroyed = dict.fromkeys(device for text in fio if writes(text) for device in devices_of(text))
    words = {word.removeprefix(TARGET) for text in (*fio, *arrays) for word in shlex.split(text)}
    named = tuple(f"{path} was {serial}" for path, serial in drives.items() if path in words)
    return Repeat(tuple(fio), tuple(arrays), tuple(destroyed), named)


def names(story: Story) -> Iterator[tuple[str, str]]:
    """Of every drive: what it was called in this run, and its serial number. Names change with every boot."""
    for bay in subject.tables(story.manifest.get("bays")):
        for drive in subject.tables(bay.get("drives")):
            yield subject.text(drive, "path"), subject.text(drive, "serial") or subject.text(drive, "identity")


def array_of(found: Iterable[Command], mention: Mention, fio: str) -> str:
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
