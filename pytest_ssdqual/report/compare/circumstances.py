"""The circumstances of runs, side by side, before any of their numbers: what differs first, and what forbids it all."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from statistics import median

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.compare.compared_run import ComparedRun

UNKNOWN = "unknown"
#: New with every boot and every run: says nothing about a measurement.
PASSING = ("boot_id",)
#: A manifest has a dozen; more are somebody's own, and some of those are enough.
MOST_FACTS = 40


class Weight(IntEnum):
    """What a difference means."""

    #: It helps to explain a difference of figures.
    TOLD = 0
    #: Figures may differ by it alone, and the product has nothing to do with that.
    LOUD = 1
    #: The numbers are not of the same thing.
    FORBIDS = 2


@dataclass(frozen=True, slots=True)
class Circumstance:
    """One circumstance, in each of the runs."""

    name: str
    values: tuple[str, ...]
    weight: Weight = Weight.TOLD
    #: What a difference means; a sentence without a full stop, or nothing.
    meaning: str = ""

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def facts(runs: Sequence[ComparedRun]) -> tuple[Circumstance, ...]:
    """All that is known; unknown in every run is left out."""
    found = [*_protocol(runs), *_drives(runs), *_wear(runs), *_machine(runs), *_versions(runs)]
    return tuple(each for each in found if set(each.values) != {UNKNOWN})


def _protocol(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    said = "drives were conditioned or measured in another way, so no figure can be told from an effect of that"
    yield Circumstance("protocol", tuple(document(run, "protocol") for run in runs), Weight.FORBIDS, said)
    yield Circumstance("spec", tuple(document(run, "spec") for run in runs))


def _drives(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    drives = [_of_bay(run, "drives") for run in runs]
    counted = tuple(str(len(each)) for each in drives)
    yield Circumstance(
        "number of drives", counted, Weight.LOUD, "only arrays that all of the runs built, and single drives, compare"
    )
    for name, key in (("model", "model"), ("firmware", "firmware")):
        yield Circumstance(name, tuple(_counted(each, key) for each in drives))
    sizes = tuple(_sizes(each) for each in drives)
    yield Circumstance("size", sizes, Weight.LOUD, "a larger or less filled drive has more spare blocks")
    yield Circumstance("logical block", tuple(_counted(each, "logical_block_bytes") for each in drives), Weight.LOUD)
    names = [frozenset(str(drive.get("identity")) for drive in each) for each in drives]
    first = names[0]
    same = tuple(
        "the first run's" if not index else f"{len(first & each)} of the first run's, {len(each - first)} others"
        for index, each in enumerate(names)
    )
    yield Circumstance("drives themselves", same if len(set(names)) > 1 else ("the same",) * len(names))


def _wear(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    for name, key, unit in (
        ("powered on, median", "power_on_hours", " h"),
        ("endurance used, most", "percentage_used", " %"),
        ("temperature at the start, median", "temperature_c", " °C"),
    ):
        found = [[_number(each.get(key)) for each in run.health.values()] for run in runs]
        values = [[value for value in each if value is not None] for each in found]
        middle = _largest if key == "percentage_used" else median
        yield Circumstance(name, tuple(f"{middle(each):.4g}{unit}" if each else UNKNOWN for each in values))


def _machine(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    of_each = [_mapping(_bay(run).get("facts")) for run in runs]
    said = "another machine has other limits, which figures may be of"
    yield Circumstance("machine", tuple(map(machine_of, runs)), Weight.LOUD, said)
    loud = {
        "cpu": "another processor has other limits",
        "cpus": "another number of processors has other limits",
        "fio": "another fio counts, paces and times in another way",
        "governor": "processors that are clocked in another way answer in another time",
        "turbo": "processors that are clocked in another way answer in another time",
        "pcie_aspm": "links that may sleep answer later",
    }
    names = dict.fromkeys(str(name) for each in of_each for name in each)
    for name in [each for each in names if each not in (*PASSING, "machine_id")][:MOST_FACTS]:
        shown = _memory if name == "memory_kib" else _text
        values = tuple(shown(each.get(name)) for each in of_each)
        yield Circumstance(
            safe_text.line(name, 40), values, Weight.LOUD if name in loud else Weight.TOLD, loud.get(name, "")
        )


def _versions(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    of_each = [_mapping(run.manifest.get("versions")) for run in runs]
    for name in list(dict.fromkeys(str(name) for each in of_each for name in each))[:MOST_FACTS]:
        yield Circumstance(f"version of {safe_text.line(name, 40)}", tuple(_text(each.get(name)) for each in of_each))


def machine_of(run: ComparedRun) -> str:
    """Its id, or its name where it has none."""
    found = _mapping(_bay(run).get("facts"))
    return _text(found.get("machine_id") or found.get("hostname") or _bay(run).get("machine"))


def model_of(run: ComparedRun) -> str:
    """As the drives say; of several models all of them."""
    return _counted(_of_bay(run, "drives"), "model")


def firmware_of(run: ComparedRun) -> str:
    return _counted(_of_bay(run, "drives"), "firmware")


def document(run: ComparedRun, name: str) -> str:
    """Of the spec or the protocol its name, and the beginning of the digest of its text, which is what counts."""
    found = _mapping(run.manifest.get(name))
    text = found.get("text")
    if not isinstance(text, str):
        return UNKNOWN
    return f"{_text(found.get('name'))} ({hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]})"


def _bay(run: ComparedRun) -> Mapping[str, object]:
    bays = run.manifest.get("bays")
    return _mapping(bays[0]) if isinstance(bays, list) and bays else {}


def _of_bay(run: ComparedRun, name: str) -> list[Mapping[str, object]]:
    found = _bay(run).get(name)
    return [_mapping(each) for each in found] if isinstance(found, list) else []


def _counted(drives: Sequence[Mapping[str, object]], key: str) -> str:
    """``SSDSC2BB480G4``, or of several values each with its number."""
    found = Counter(_text(each.get(key)) for each in drives)
    if len(found) <= 1:
        return next(iter(found), UNKNOWN)
    return ", ".join(f"{count}x {value}" for value, count in found.most_common())


def _sizes(drives: Sequence[Mapping[str, object]]) -> str:
    sizes = {size for each in drives if isinstance(size := each.get("size_bytes"), int)}
    return ", ".join(f"{size:,} bytes ({format_capacity(size)})" for size in sorted(sizes)) or UNKNOWN


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return UNKNOWN if value is None or value == "" else safe_text.line(str(value), 120)


def _memory(kib: object) -> str:
    """Machines with equal modules differ by some pages, from one boot to the next, too."""
    text = _text(kib)
    return f"{int(text) / (1 << 20):.3g} GiB" if text.isascii() and text.isdecimal() and len(text) < 20 else text


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _largest(values: Sequence[float]) -> float:
    return max(values)
