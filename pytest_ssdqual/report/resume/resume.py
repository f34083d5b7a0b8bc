"""Resume of a run that ended early: which run, whether it may be resumed, and its results.

Measurements of one run are judged together, so whatever could make them differ must be the same in all of its sessions.
Facts that only help to explain a figure are reported and recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.qual.validity.fault_codes import Fault
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.run_folder import checksums as sums
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import LONGEST_STEP_S, MANIFEST, RECORDS, OtherSchema
from pytest_ssdqual.report.run_folder.manifest import BayEntry, Document, Manifest, installed_versions
from pytest_ssdqual.report.run_folder.reader import BEGINNINGS, JUDGED, Judged, Record, RunReader, read_records
from pytest_ssdqual.report.view.subject import moment
from pytest_ssdqual.rig.drives.topology import Drive, is_same_firmware
from pytest_ssdqual.rig.resume.checkpoint import ResultKey

#: Facts of a machine that measurements depend on, as a reader knows them. The kernel is not among them, although they
#: do: a crash is often the reason for a new one, and the record says which measurement was made under which.
#: Another fio counts, paces and times in another way; other processors have other limits.
FIXED = {"cpu": "processor", "cpus": "number of processors", "fio": "version of fio"}
#: Facts whose change is reported. The others (memory, boot, facts of a site) do not affect a measurement.
NOTED = {
    "hostname": "host name",
    "kernel": "kernel",
    "os": "operating system",
    "mdadm": "version of mdadm",
    "smartctl": "version of smartctl",
    "nvme": "version of nvme-cli",
    "util-linux": "version of util-linux",
    "governor": "governor of the processors' clocks",
    "turbo": "turbo of the processors",
    "smt": "simultaneous multithreading (Hyper-Threading)",
    "pcie_aspm": "power saving of PCIe links",
}
OURS = "pytest-ssdqual"
#: What must be the same of a drive, beside its firmware.
SAME = {
    "model": "model of {}",
    "size_bytes": "size of {} in bytes",
    "logical_block_bytes": "logical block of {} in bytes",
    "smart_type": "smartctl type of {}",
}


#: Parts of evidence that are its result; the others are about its subject, or follow from these.
RESULT = (
    "value",
    "low",
    "high",
    "n",
    "unit",
    "confidence",
    "is_reading",
    "basis",
    "wider",
    "limit",
    "direction",
    "source",
    "outcome",
)


def _is_beginning(record: Record) -> bool:
    """Return True for a record that follows the time between two sessions, such as of what the earlier one left."""
    return record.kind in BEGINNINGS or record.facts.get("leftover") is True


def _step_s(record: Record, step_s: float) -> float:
    """Return what counts of the ``step_s`` seconds by the time of day before a record."""
    if step_s <= LONGEST_STEP_S:
        return step_s
    counted_s = record.fact("since_last_s", float, 0.0)
    return min(step_s, counted_s) if counted_s > LONGEST_STEP_S else 0.0


class NotResumable(ValueError):
    """A run cannot be resumed; the message says why."""


@frozen
class Present:
    """Means of the session that resumes; ``facts`` are empty if the machine was not asked."""

    machine: str
    facts: Mapping[str, str]
    drives: tuple[Drive, ...]
    spec: Document
    protocol: Document
    #: Promises of the package for claims that the spec does not mention; None if they are the spec.
    defaults: Document | None = None


@frozen
class Past:
    """A run folder at the time when it is resumed."""

    folder: Path
    manifest: Manifest
    records: tuple[Record, ...]
    #: Digests of its files, if it was sealed.
    sums: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path) -> Past:
        """Read a run folder; ``NotResumable`` if its run has not begun to measure, or if it is a fleet."""
        if fleet.is_fleet(folder):
            raise NotResumable(fleet.name_one(folder))
        try:
            safe_files.require_ours(folder)
        except OSError as error:
            raise NotResumable(f"{folder} cannot be resumed: {error.strerror or error}") from error
        try:
            records = tuple(read_records(folder))
        except OtherSchema as error:
            raise NotResumable(f"{folder} cannot be resumed: {error}") from error
        except OSError as error:
            raise NotResumable(f"{folder} is not a run folder: {RECORDS} cannot be read") from error
        if not any(record.kind == "run_started" for record in records):
            refused = any(record.kind == "run_refused" for record in records)
            why = "its request was refused" if refused else "it ended before anything was begun"
            raise NotResumable(f"{folder} has nothing to resume: {why}")
        try:
            manifest = Manifest.read(folder)
        except (OSError, ValueError) as error:
            raise NotResumable(f"{folder} cannot be resumed: {MANIFEST} cannot be read: {error}") from error
        if not manifest.bays:
            raise NotResumable(f"{folder} cannot be resumed: {MANIFEST} names no machine")
        return cls(folder, manifest, records, sums.read(folder))

    @property
    def spent_s(self) -> float:
        """Time of all sessions, each from its first record to its last.

        Records have the time of day. Where the clock was set, by an operator or by NTP after a boot, the step from one
        record to the next is negative or longer than ``LONGEST_STEP_S``, and counts as zero. A longer step counts as
        far as the writer's other clock says the same.
        """
        timed = [(record, at) for record in self.records if (at := moment(record.time))]
        steps = ((record, (at - before).total_seconds()) for (_, before), (record, at) in pairwise(timed))
        return sum(_step_s(record, step_s) for record, step_s in steps if step_s > 0 and not _is_beginning(record))

    def drives_in_order(self, drives: Sequence[Drive]) -> tuple[Drive, ...]:
        """Return the drives in the order of the earlier sessions, as device names may change with a boot.

        Additional drives come last.
        """
        order = {drive.identity: number for number, drive in enumerate(self._bay.drives)}
        return tuple(sorted(drives, key=lambda drive: order.get(drive.identity, len(order))))

    def refusals(self, now: Present) -> list[str]:
        """Return a sentence for each difference that forbids resuming."""
        found = [
            *_other_document("spec", self.manifest.spec, now.spec),
            *_other_document("protocol", self.manifest.protocol, now.protocol),
            *self._other_defaults(now.defaults),
            *_other_drives(self._bay.drives, now.drives),
        ]
        if now.facts:
            was, is_now = _identity(self._bay.facts, self._bay.machine), _identity(now.facts, now.machine)
            found += _differ("machine", was, is_now)
            found += changes(FIXED, self._bay.facts, now.facts)
        return [f"{self.folder.name} cannot be resumed: {each}" for each in found]

    def remarks(self, now: Present) -> tuple[str, ...]:
        """Return a sentence for each difference that is reported only."""
        ours = self.manifest.sessions[-1].versions.get(OURS), installed_versions().get(OURS)
        noted = changes(NOTED, self._bay.facts, now.facts) if now.facts else []
        return (*noted, *_differ(f"version of {OURS}", *ours))

    def memory(self, forgotten: Callable[[ResultKey, str], None] = lambda key, why: None) -> Recollection:
        """Return the stored results; ``forgotten`` is called for each measurement that must be repeated."""
        return Recollection.of(self.folder, self.records, sums=self.sums, forgotten=forgotten)

    @property
    def failed_drives(self) -> dict[str, FailedDrive]:
        """The drives that failed under the load in earlier sessions, by serial number; damaged records have none."""
        found: dict[str, FailedDrive] = {}
        for record in self.records:
            if record.kind == "measurement_failed" and record.facts.get("origin") == Fault.DRIVE:
                found |= {drive.serial: drive for drive in record.fact("failed", tuple[FailedDrive, ...], ())}
        return found

    @property
    def story(self) -> RunReader:
        return RunReader(self.folder, self.manifest, self.records)

    @property
    def failed_in(self) -> dict[str, str]:
        """The ids of the tests that first reported in earlier sessions that a drive failed, by serial number."""
        return dict(reversed([*self.story.failed_drives()]))

    def _other_defaults(self, now: Document | None) -> list[str]:
        """Return how the default promises differ; nothing if the spec is these promises itself."""
        before = self.manifest.defaults
        return _other_document("promises", before, now) if before and now else []

    @property
    def _bay(self) -> BayEntry:
        return self.manifest.bays[0]


class Verdicts:
    """Verdicts recorded so far; a resumed session judges all claims again, mostly with the same result."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._judged: dict[tuple[object, ...], Judged] = {}
        #: What is judged again, although it was judged before, as its test ended in an error.
        self._doubted: set[tuple[object, ...]] = set()
        passed: dict[str, set[tuple[object, ...]]] = {}
        in_error: set[str] = set()
        for record in records:
            test = record.test
            if record.kind == "run_resumed":
                in_error.clear()
            elif record.kind in JUDGED and (judged := Judged.read(record)):
                self._keep(judged)
                if judged.outcome in (Finding.PASS, Finding.OBSERVED):
                    passed.setdefault(test, set()).add(judged.subject)
            elif record.kind in ("error", "failed"):
                in_error.add(test)
            if test in in_error:
                # The test ended in an error, too: only a new record shows that it does not any more. The error of a
                # subtest is recorded before the verdict of its test.
                self._doubted |= passed.pop(test, set())

    def superseded(self, judged: Judged) -> str | None:
        """Return the time of the recorded verdict that ``judged`` replaces, empty without one; None if it is the same.

        ``judged`` is then recorded.
        """
        earlier = self._judged.get(judged.subject)
        if earlier and judged.subject not in self._doubted and _result(earlier) == _result(judged):
            return None
        self._keep(judged)
        return earlier.time if earlier else ""

    def _keep(self, judged: Judged) -> None:
        self._judged[judged.subject] = judged
        self._doubted.discard(judged.subject)


def _result(judged: Judged) -> tuple[object, ...]:
    return judged.is_expected, *(getattr(judged, name) for name in RESULT)


def _identity(facts: Mapping[str, str], machine: str) -> str:
    """Return the machine's id, or its name without one."""
    return facts.get("machine_id") or facts.get("hostname") or machine


def changes(names: Mapping[str, str], before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a sentence for each fact that differs; a missing one is as an empty one."""
    return [each for name, called in names.items() for each in _differ(called, before.get(name, ""), now.get(name, ""))]


def _differ(called: str, before: object, now: object) -> list[str]:
    return [f"the {called} is {now or 'unknown'} now and was {before or 'unknown'}"] if before != now else []


def _other_document(called: str, before: Document | None, now: Document) -> list[str]:
    if before is None or before.name != now.name:
        return _differ(called, before and before.name, now.name)
    return other_text(f"{called} {now.name}", before, now)


def other_text(called: str, before: Document, now: Document) -> list[str]:
    """Return a sentence about the first line that differs."""
    for number, lines in enumerate(zip_longest(before.text.splitlines(), now.text.splitlines()), 1):
        if lines[0] != lines[1]:
            old, new = ("missing" if line is None else f'"{line.strip()}"' for line in lines)
            return [f"line {number} of the {called} is {new} now and was {old}"]
    return []


def _other_drives(before: Sequence[Drive], now: Sequence[Drive]) -> list[str]:
    old, new = ({drive.identity: drive for drive in drives} for drives in (before, now))
    missing = [drive.describe() for name, drive in old.items() if name not in new]
    added = [drive.describe() for name, drive in new.items() if name not in old]
    if missing or added:
        return [f"the drives differ: {', '.join(added) or 'none'} only now, {', '.join(missing) or 'none'} only then"]
    found = []
    for name, drive in new.items():
        was = old[name]
        for key, what in SAME.items():
            found += _differ(what.format(drive.describe()), getattr(was, key), getattr(drive, key))
        if drive.firmware is not None and not is_same_firmware(was.firmware, drive.firmware):
            found += _differ(f"firmware of {drive.describe()}", was.firmware, drive.firmware)
    return found
