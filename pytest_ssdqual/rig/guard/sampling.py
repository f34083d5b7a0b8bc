"""Samples of a device's content, in whatever format it was written: one command for any number of devices.

The first and the last MiB are read page by page (4 KiB), then the places where file systems have copies of their
superblocks (``known_places``), then pages all over the device until the time is over, drawn anew in each call. A page
is blank if all its bytes are equal, and equal to those of the other blank pages, zero or 0xff: what a drive returns for
a range that was discarded, or one pattern that it was overwritten with. Of a drive with a label only the first MiB is
read. The script (scripts/sample.sh) reads with O_DIRECT and writes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.numbers import count
from pytest_ssdqual.rig.guard import known_places
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError

PAGE_BYTES = known_places.PAGE_BYTES
#: Seconds for each device, side by side: at the first check, and at the rechecks before each step. An NVMe drive
#: answers some 10,000 reads a second, one after the other.
THOROUGH_S, AGAIN_S = 2.0, 0.5
#: Drawn places at least, also of a drive that takes longer for them.
LEAST = 192
#: Of the seed, see scripts/sample.pl.
SEED_BITS = 52
#: A drive that answers each read with an error after half a minute is given up after three.
DEADLINE_S = 110.0

SCRIPT, PERL, PYTHON = map(scripts.text, ("sample.sh", "sample.pl", "sample.py"))


#: Most characters of the devices in one command: ssh carries a command as one argument, of at most 128 KiB, and 36
#: drives of 30 TB have more.
LONGEST_CHARACTERS = 60_000


@frozen
class SampledPage:
    """A page of the first MiB that is not blank; of its bytes the first and the last 16, in hexadecimal digits."""

    offset_bytes: int
    head: str
    tail: str


@frozen
class DeviceSample:
    """The content found on one device."""

    path: str
    #: Number of reads; each MiB of a stretch is one.
    read: int = 0
    pages: tuple[SampledPage, ...] = ()
    #: The whole first page, if it begins as a label does.
    label: bytes = b""
    #: The first page that is not blank, of those behind the first MiB and of those there whose bytes are equal.
    data_at: int | None = None
    #: Reads that failed: position, and the kernel's error.
    errors: tuple[tuple[int, str], ...] = ()

    @property
    def first_data(self) -> int | None:
        """Position of the first page that is not blank."""
        return self.pages[0].offset_bytes if self.pages else self.data_at


def take(
    machine: Machine, sizes: Mapping[str, int], spend_s: float = AGAIN_S, *, least: int = LEAST, seed: int | None = None
) -> dict[str, DeviceSample]:
    """Samples of devices, by path; ``sizes`` gives the bytes of each. ``RigError`` if the answer is not whole.

    ``spend_s`` is for each device, all at the same time. ``seed`` draws the places; it is an argument of the command,
    so the transcript of a run has it.
    """
    if not sizes:
        return {}
    given = [word for path, size in sizes.items() for word in (path, str(size), _stretches(size))]
    if len(sizes) > 1 and sum(map(len, given)) > LONGEST_CHARACTERS:
        devices, half = list(sizes.items()), len(sizes) // 2
        first, second = (
            take(machine, dict(part), spend_s, least=least, seed=seed) for part in (devices[:half], devices[half:])
        )
        return first | second
    seed = secrets.randbits(SEED_BITS) if seed is None else seed
    given = [str(round(100 * spend_s)), str(least), str(seed), *given]
    done = scripts.answer(machine, SCRIPT, "sample", PERL, PYTHON, *given, deadline_s=DEADLINE_S)
    try:
        return parse(done.stdout, list(sizes))
    except ValueError as problem:
        reason = f"{problem}; {done.errors.strip()}".rstrip("; ")
        raise RigError(f"The content of {', '.join(sizes)} on {machine.name} was not sampled: {reason}") from problem


def _stretches(size_bytes: int) -> str:
    """The known places of a device as the script takes them."""
    return ",".join(f"{begin}:{length}" for begin, length in known_places.stretches(size_bytes)) or "-"


def parse(answer: bytes, paths: Sequence[str]) -> dict[str, DeviceSample]:
    """The script's records about these devices → samples by path; ``ValueError`` for anything else."""
    records = answer.decode("utf-8", "surrogateescape").split("\0")
    if records[-2:] != ["end", ""]:
        raise ValueError("the answer was cut short")
    samples: dict[str, DeviceSample] = {}
    for path, lines in _drives(records[:-2]):
        if path in samples:
            raise ValueError(f"{path} comes twice")
        samples[path] = _sample(path, lines)
    if list(samples) != list(paths):
        raise ValueError(f"the answer is about {safe_text.line(', '.join(samples), 200) or 'nothing'}")
    return samples


def _drives(records: list[str]) -> Iterator[tuple[str, list[str]]]:
    starts = [number for number, record in enumerate(records) if record.startswith("drive ")]
    if not records:
        return
    if starts[:1] != [0]:
        raise ValueError(f"the answer begins with {safe_text.line(records[0], 80)!r}")
    for start, end in zip(starts, [*starts[1:], len(records)], strict=True):
        yield records[start].removeprefix("drive "), records[start + 1 : end]


def _sample(path: str, records: list[str]) -> DeviceSample:
    if not records or not records[-1].startswith("read "):
        raise ValueError(f"the sample of {path} was cut short")
    sample = DeviceSample(path)
    for record in records:
        kind, _, rest = record.partition(" ")
        words = rest.split(" ")
        match kind, words:
            case "page", [at, head, tail]:
                bytes.fromhex(head + tail)
                sample = replace(sample, pages=(*sample.pages, SampledPage(count(at), head, tail)))
            case "label", [text]:
                sample = replace(sample, label=bytes.fromhex(text))
            case "data", [at]:
                sample = replace(sample, data_at=count(at))
            case "error", [at, _, *_]:
                why = safe_text.line(rest.partition(" ")[2], 200)
                sample = replace(sample, errors=(*sample.errors, (count(at), why)))
            case "read", [number] if record is records[-1]:
                sample = replace(sample, read=count(number))
            case _:
                raise ValueError(f"a record of {path} is {safe_text.line(record, 80)!r}")
    if not sample.read and not sample.errors:
        raise ValueError(f"nothing of {path} was read")
    return sample
