"""Start of one bay on the controller: all checks without its machine, then the machine, then the first records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import pytest

from pytest_ssdqual.plugin.bay import expectation, fitting, sheets
from pytest_ssdqual.plugin.bay.bay import Bay, BayOpener, OpenedBay
from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.plugin.session import resume
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.resume import ResumedRun
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.report.compare.baseline import Baseline, NoBaseline
from pytest_ssdqual.report.run_folder.find import NoSuchRun, find
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.lock import is_in_use
from pytest_ssdqual.report.run_folder.reader import (
    CacheLeftSwitched,
    LeftBehind,
    left_behind,
)
from pytest_ssdqual.rig.drives.cache_state import CacheState
from pytest_ssdqual.rig.guard import cache_changes
from pytest_ssdqual.rig.guard.cache_changes import CacheChange
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.md import mdadm

#: Reason of a Ctrl-C before the run.
STOPPED = "the run was stopped before it had begun"


@dataclass
class BayStart:
    """The start of one bay: first all checks without the machine, then the machine, then the first records."""

    config: pytest.Config
    settings: Settings
    #: Name of the bay, in a run of several.
    name: str
    protocol: Protocol
    baseline: Baseline | None
    resumed: ResumedRun | None
    stack: ExitStack = field(default_factory=ExitStack)
    journal: Journal | None = None
    opened: OpenedBay | None = None
    run: BayRun | None = None
    #: Its beginning, or that it does not begin, is in the run folder.
    is_noted: bool = False

    @classmethod
    def of(cls, config: pytest.Config, settings: Settings, name: str = "") -> BayStart:
        """Load the protocol, the spec, the baseline and the past run; raises ``pytest.UsageError``."""
        with usage_error(ValueError, of="--ssd-protocol"):
            protocol = protocols.load(settings.protocol)
        sheets.load(settings.specs)
        baseline, resumed = _baseline_of(settings), resume.asked_for(config, settings)
        return cls(config, settings, name, protocol, baseline, resumed)

    def planned(self) -> BayRun:
        """Return the state of a run that only collects."""
        bay = self.opener.planned()
        return self._run(replace(bay, remarks=(*bay.remarks, *self._remarks_of_caches(bay))))

    def open(self, create: Callable[[], Journal]) -> BayRun:
        """Connect to the machine and call the guard; refusals are recorded in the run folder. No drive is written to.

        Threads may open several bays at once. Raises ``pytest.UsageError`` and ``RigError``.
        """
        self.journal = resume.opened(self.config, self.resumed, create)
        with self._noted_if_refused():
            machine = self.settings.devices.machine
            self.opened = self.opener.open(self.journal.transcribe(machine), self.journal.note)
            self.run = self._run(self.opened.bay)
        return self.run

    def clear(self) -> BayRun:
        """Stop arrays and restore write caches that earlier runs left, when all bays of the run have passed the guard.

        Raises ``pytest.UsageError`` and ``RigError``.
        """
        if self.opened is None or self.journal is None or self.run is None:
            raise RuntimeError("the bay was not opened")
        bay = self.opened.bay
        with self._noted_if_refused():
            self._remove_empty_arrays(bay, self.opened.channel, self.journal)
        if not self.opened.has_leftovers and not self.left.caches:
            return self.run
        with self._noted_if_refused():
            if self.opened.has_leftovers:
                bay = self.opener.clear(self.opened, self.journal.note)
            restored = self._restore_caches(bay, self.opened.channel, self.journal)
            self.run = self._run(replace(bay, remarks=(*bay.remarks, *restored, *self._remarks_of_caches(bay))))
        return self.run

    def refuse(self, reasons: str) -> None:
        """Complete the run folder of a bay that does not begin; nothing if that, or its beginning, was noted before."""
        if self.journal and not self.is_noted:
            self.is_noted = True
            resume.note_refusal(self.journal, self.resumed, reasons)

    def note_begun(self) -> None:
        """Write the manifest, and the first record of this session."""
        if self.run is None or self.journal is None:
            raise RuntimeError("the bay was not opened")
        self.is_noted = True
        run = self.run.qualification
        if self.resumed:  # the facts of the site are in its manifest
            manifest = replace(
                self.resumed.continued(run.present), expected=run.expected, budget_s=run.budget_s,
                required_claims=run.settings.required_claims,
            )  # fmt: skip
        else:
            of_site = self.config.hook.pytest_ssdqual_facts(machine=self.run.channel)
            manifest = run.manifest(self.journal, {name: facts[name] for facts in of_site if facts for name in facts})
        self.run.manifest = manifest
        self.journal.write_manifest(manifest.to_record())
        if self.resumed:
            self.resumed.note_begun(self.journal, run.present)
        else:
            drives = [drive.identity for drive in run.bay.drives]
            self.journal.note("run_started", machine=run.bay.machine, drives=drives)

    def _run(self, bay: Bay) -> BayRun:
        """Check what needs the drives, and fix the settings of the run."""
        bay = self.resumed.bay(bay) if self.resumed else bay
        qualification = self.qualified(bay)
        remarks = (*bay.remarks, *self.require_earlier(qualification))
        expected = expectation.require(qualification)
        remarks = (*remarks, *fitting.require(qualification), *sheets.remarks(qualification))
        qualification = replace(qualification, bay=replace(bay, remarks=remarks), expected=expected)
        return BayRun(qualification, self.stack, self.opened.channel if self.opened else None)

    def require_earlier(self, qualification: Qualification) -> tuple[str, ...]:
        """Return remarks about the run that is resumed, and about the baseline.

        ``pytest.UsageError`` if one of them is of other drives, another spec, protocol or machine.
        """
        resuming = self.resumed.require_same(qualification.present) if self.resumed else ()
        return (*resuming, *_require_baseline(qualification))

    def qualified(self, bay: Bay) -> Qualification:
        """Return the settings of a run on these drives; ``pytest.UsageError`` if the sheets are not for them."""
        settings = self.settings
        spec, sources = sheets.assigned(
            settings.specs, bay, is_lab=settings.devices.lab is not None, is_of_several=settings.is_of_several
        )
        return Qualification(
            settings, self.protocol, spec.on(self.protocol.striping), bay, self.journal, self.resumed, self.baseline,
            self.name, sources,
        )  # fmt: skip

    @property
    def opener(self) -> BayOpener:
        """Opens the bay."""
        hook = self.config.hook.pytest_ssdqual_refuse_drive
        return BayOpener(
            self.settings,
            self.stack,
            ours=lambda: frozenset(array.uuid for array in self.left.arrays),
            refuse=lambda drive: [why for why in hook(drive=drive) if why],
        )

    @cached_property
    def left(self) -> LeftBehind:
        """What earlier runs left behind; a fleet reads it once for all bays."""
        return self._read_left()

    def _read_left(self) -> LeftBehind:
        """Read every journal of earlier runs."""
        return left_behind(self.settings.run_root, *([self.resumed.past.folder.parent] if self.resumed else []))

    def _remove_empty_arrays(self, bay: Bay, channel: Channel, journal: Journal) -> None:
        """Remove the names without members that are left of arrays of killed runs on this machine.

        A run that still writes may be about to build the array that it planned, and no lease protects its name.
        """
        machine_id = "" if self.settings.read_only else bay.facts.get("machine_id")
        arrays = [array for array in self.left.arrays if machine_id and array.machine_id == machine_id]
        own, folders = journal.path.resolve(), {array.run_folder for array in arrays}
        in_use = {folder for folder in folders if folder.resolve() != own and is_in_use(folder)}
        planned_now = {array.device for array in arrays if array.run_folder in in_use}
        paths = {array.device for array in arrays} - planned_now
        if removed := mdadm.remove_empty(channel, sorted(paths)):
            journal.note("leftovers_removed", files=list(removed))

    def _restore_caches(self, bay: Bay, channel: Channel, journal: Journal) -> tuple[str, ...]:
        """Restore write caches that earlier runs switched, of drives that passed the guard; return a remark for each.

        Raises ``pytest.UsageError`` if another run holds such a drive, or the machine is lost.
        """
        if self.settings.read_only or not self.left.caches:
            return ()

        def left_now() -> list[CacheChange]:
            self.left = self._read_left()
            return list(map(_change, self.left.caches))

        left = map(_change, self.left.caches)
        with usage_error(RigError):
            unchecked = self.settings.unchecked
            restored = cache_changes.restore_left(channel, bay.drives, left, left_now, journal.note, unchecked)
        if restored:
            self.left = self._read_left()
        return restored

    def _remarks_of_caches(self, bay: Bay) -> Iterator[str]:
        """Yield a remark for each write cache of these drives, or of this machine, that is not restored yet."""
        machine_id = bay.facts.get("machine_id")
        for left in self.left.caches:
            if any(map(_change(left).is_of, bay.drives)) or (machine_id and left.machine_id == machine_id):
                yield (
                    f"run {left.run_folder.name} switched the write cache of {left.name}, which was {left.was}; the "
                    "next run that tests this drive restores it"
                )

    @contextmanager
    def _noted_if_refused(self) -> Iterator[None]:
        try:
            yield
        except (pytest.UsageError, RigError) as error:
            self.refuse(str(error))
            raise
        except KeyboardInterrupt:
            self.refuse(STOPPED)
            raise


def _change(left: CacheLeftSwitched) -> CacheChange:
    return CacheChange(left.change, left.drive, CacheState(left.was), left.names)


def _baseline_of(settings: Settings) -> Baseline | None:
    """Return the earlier run; None without the option. Raises ``pytest.UsageError`` if it cannot be read.

    Called before this run has a folder, so ``last`` is the previous run.
    """
    if settings.baseline is None:
        return None
    with usage_error(NoBaseline, NoSuchRun, of="--ssd-baseline"):
        return Baseline.read(find(settings.baseline, settings.run_root))


def _require_baseline(run: Qualification) -> tuple[str, ...]:
    """Require the same product and the same method; raise ``pytest.UsageError`` with all differences.

    Return other differences as remarks for the header. A resumed run keeps its baseline.
    """
    baseline = run.baseline
    found = baseline.refusals(run.present) if baseline else []
    record = baseline.to_record() if baseline else None
    if run.resumed and (was := run.resumed.past.manifest.baseline) != record:
        before = was["run"] if was else "none"
        found.append(f"the resumed run began with {before} as its baseline; give the same one")
    if found:
        raise pytest.UsageError("--ssd-baseline: " + "\n--ssd-baseline: ".join(found))
    return tuple(baseline.remarks(run.present)) if baseline else ()
