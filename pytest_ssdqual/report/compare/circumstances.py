"""Circumstances of runs side by side: what differs, what it means, and whether it forbids a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from statistics import median

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.compare.compared_run import ComparedRun
from pytest_ssdqual.rig.drives.topology import is_same_firmware

UNKNOWN = "unknown"
#: New with every boot and every run: says nothing about a measurement.
PASSING = ("boot_id",)
#: A manifest has a dozen; more are the user's own, and some of those are enough.
MOST_FACTS = 40


class Weight(IntEnum):
    """Weight of a difference."""

    #: May explain a difference of figures.
    NOTED = 0
    #: May change figures without a change of the product.
    LOUD = 1
    #: Figures are not comparable.
    FORBIDS = 2


@frozen
class Circumstance:
    """A circumstance in each of the runs."""

    name: str
    values: tuple[str, ...]
    weight: Weight = Weight.NOTED
    #: Meaning of a difference: a sentence without a full stop, or empty.
    meaning: str = ""

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def facts(runs: Sequence[ComparedRun]) -> tuple[Circumstance, ...]:
    """Return all circumstances that at least one run has."""
    found = [*_protocol(runs), *_drives(runs), *_wear(runs), *_machine(runs), *_versions(runs)]
    return tuple(each for each in found if set(each.values) != {UNKNOWN})


def _protocol(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    reason = "drives were conditioned or measured differently, which may change every figure"
    yield Circumstance("protocol", tuple(document(run, "protocol") for run in runs), Weight.FORBIDS, reason)
    yield Circumstance("spec", tuple(document(run, "spec") for run in runs))
    reason = "another engine or number of jobs submits I/O differently"
    yield Circumstance("load of fio", tuple(_text(run.load) for run in runs), Weight.LOUD, reason)
    reason = "a drive with its write cache on completes writes before they are on its flash"
    yield Circumstance("write caches", tuple(_text(run.write_caches) for run in runs), Weight.LOUD, reason)


def _drives(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    drives = [run.manifest.drives for run in runs]
    counted = tuple(str(len(each)) for each in drives)
    reason = "only single drives and arrays that all runs built are comparable"
    yield Circumstance("number of drives", counted, Weight.LOUD, reason)
    yield Circumstance("model", tuple(map(model_of, runs)))
    known = revisions(runs)
    yield Circumstance("firmware", tuple(firmware_of(run, known) for run in runs))
    sizes = tuple(map(_sizes, runs))
    yield Circumstance("size", sizes, Weight.LOUD, "a larger or less filled drive has more spare blocks")
    yield Circumstance(
        "logical block", tuple(_counted(drive.logical_block_bytes for drive in each) for each in drives), Weight.LOUD
    )
    names = [frozenset(drive.identity for drive in each) for each in drives]
    first = names[0]
    same = tuple(
        "the first run's" if not index else f"{len(first & each)} of the first run's, {len(each - first)} others"
        for index, each in enumerate(names)
    )
    yield Circumstance("drives themselves", same if len(set(names)) > 1 else ("the same",) * len(names))


def _wear(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    for name, key, of_drives, unit in (
        ("powered on, median", "power_on_hours", median, " h"),
        ("endurance used, most", "percentage_used", max, " %"),
        ("temperature at the start, median", "temperature_c", median, " °C"),
    ):
        readings = [[getattr(health, key) for health in run.health.values()] for run in runs]
        known = [[value for value in of_run if value is not None] for of_run in readings]
        shown = [f"{of_drives(values):.4g}{unit}" if values else UNKNOWN for values in known]
        yield Circumstance(name, tuple(shown))


def _machine(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    of_each = [_facts_of(run) for run in runs]
    reason = "another machine has other limits, which may bound figures"
    yield Circumstance("machine", tuple(map(machine_of, runs)), Weight.LOUD, reason)
    loud = {
        "cpu": "another processor has other limits",
        "cpus": "another number of processors has other limits",
        "fio": "another fio counts, paces and times differently",
        "governor": "processors with other clocks have another latency",
        "turbo": "processors with other clocks have another latency",
        "smt": "threads that share a core have another latency",
        "pcie_aspm": "links with power saving have a higher latency",
    }
    names = dict.fromkeys(str(name) for each in of_each for name in each)
    for name in [each for each in names if each not in (*PASSING, "machine_id")][:MOST_FACTS]:
        shown = _memory if name == "memory_kib" else _text
        values = tuple(shown(each.get(name)) for each in of_each)
        yield Circumstance(
            safe_text.line(name, 40), values, Weight.LOUD if name in loud else Weight.NOTED, loud.get(name, "")
        )


def _versions(runs: Sequence[ComparedRun]) -> Iterable[Circumstance]:
    of_each = [run.manifest.versions for run in runs]
    for name in list(dict.fromkeys(str(name) for each in of_each for name in each))[:MOST_FACTS]:
        yield Circumstance(f"version of {safe_text.line(name, 40)}", tuple(_text(each.get(name)) for each in of_each))


def machine_of(run: ComparedRun) -> str:
    """Return the machine's id, or its name without one."""
    found = _facts_of(run)
    return _text(found.get("machine_id") or found.get("hostname") or "".join(bay.machine for bay in run.manifest.bays))


def model_of(run: ComparedRun) -> str:
    """Return the model as the drives report it; several models joined."""
    return _counted(drive.model for drive in run.manifest.drives)


def firmware_of(run: ComparedRun, known: Collection[str] = ()) -> str:
    """Return the firmware; a revision of INQUIRY's length is spelled as the only one of ``known`` that ends with it."""
    spelled = []
    for drive in run.manifest.drives:
        revision = _text(drive.firmware)
        wholes = [each for each in known if len(each) > len(revision) and is_same_firmware(revision, each)]
        spelled.append(wholes[0] if len(wholes) == 1 else revision)
    return _counted(spelled)


def revisions(runs: Iterable[ComparedRun]) -> frozenset[str]:
    """Return the firmware revisions of all drives of the runs."""
    return frozenset(_text(drive.firmware) for run in runs for drive in run.manifest.drives)


def document(run: ComparedRun, name: str) -> str:
    """Return name and digest of the spec or the protocol; the digest of the text decides."""
    found = run.manifest.documents.get(name)
    return f"{_text(found.name)} ({found.sha256[:12]})" if found else UNKNOWN


def _facts_of(run: ComparedRun) -> Mapping[str, str]:
    return run.manifest.bays[0].facts if run.manifest.bays else {}


def _counted(values: Iterable[object]) -> str:
    """Return ``SSDSC2BB480G4``, or several values, each with its number."""
    found = Counter(map(_text, values))
    if len(found) <= 1:
        return next(iter(found), UNKNOWN)
    return ", ".join(f"{count}x {value}" for value, count in found.most_common())


def _sizes(run: ComparedRun) -> str:
    sizes = {drive.size_bytes for drive in run.manifest.drives}
    return ", ".join(f"{size:,} bytes ({format_capacity(size)})" for size in sorted(sizes)) or UNKNOWN


def _text(value: object) -> str:
    return UNKNOWN if value is None or value == "" else safe_text.line(str(value), 120)


def _memory(kib: object) -> str:
    """Return the memory rounded: equal modules differ by some pages, even from boot to boot."""
    text = _text(kib)
    return f"{int(text) / (1 << 20):.3g} GiB" if text.isascii() and text.isdecimal() and len(text) < 20 else text
