"""One run's worth of state: settings, bay, journal, spec and protocol, from configuration to the last line.

It is the only thing that the plugin keeps in ``config.stash``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.plan import stopping
from pytest_ssdqual.plugin.plan.stopping import Asked
from pytest_ssdqual.plugin.session import artefacts
from pytest_ssdqual.plugin.session.artefacts import Paged
from pytest_ssdqual.plugin.session.bay import Bay
from pytest_ssdqual.plugin.session.manifest import documents
from pytest_ssdqual.plugin.session.resume import Resumption
from pytest_ssdqual.plugin.session.stop import unless_lost
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.compare.baseline import Baseline
from pytest_ssdqual.report.fleet.folder import called
from pytest_ssdqual.report.resume.resume import Present
from pytest_ssdqual.report.run_folder.expectation import ExpectedDrives, describe
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.manifest import Manifest, keep_health
from pytest_ssdqual.report.terminal.progress import PLAIN_PERIOD_S
from pytest_ssdqual.report.terminal.summary import Header
from pytest_ssdqual.rig.drives import health
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.guard.holders import Note
from pytest_ssdqual.rig.guard.lease import Terms
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import Machine, RigError, utc_now
from pytest_ssdqual.rig.measure.result_cache import Stock
from pytest_ssdqual.rig.measure.session import Looked, Progress, Setup
from pytest_ssdqual.rig.measure.station import Station
from pytest_ssdqual.rig.observe.live_stats import Live
from pytest_ssdqual.rig.resume.checkpoint import Forgetful, Memory


@dataclass(slots=True)
class Qualification:
    """See the module."""

    settings: Settings
    protocol: Protocol
    spec: Spec
    bay: Bay
    #: None when tests are only collected: then nothing is written anywhere.
    journal: Journal | None
    stack: ExitStack
    channel: Channel | None = None
    manifest: Manifest | None = None
    #: What the collected tests need measured on each array; known once they are collected.
    planned: Mapping[Geometry, Sequence[Workload]] = field(default_factory=dict)
    #: What they ask of each measurement.
    asked: Asked = field(default_factory=dict)
    #: How many claims the run was planned to make when it began.
    claims: int = 1
    #: How long it is planned to take, in seconds; None: nobody has reckoned.
    planned_s: float | None = None
    #: How often whoever watches wants to know how fio does.
    glance_s: float = PLAIN_PERIOD_S
    #: The run that this one continues.
    resumed: Resumption | None = None
    #: What came of the page of the run; None: there was none to be made.
    page: Paged | None = None
    complaints: tuple[str, ...] = ()  #: What could not be told to others, a sentence each.
    #: The earlier run that promises may be in per cent of.
    baseline: Baseline | None = None
    #: Of the bay, in a run of several; empty in a run of one.
    name: str = ""
    #: Number of drives that the bay must have; None if only a pattern determined it.
    expected: ExpectedDrives | None = None
    #: Why nothing more can be measured or kept of this bay of several.
    lost: str = ""

    @property
    def family(self) -> ErrorControl:
        """The claims that are judged together."""
        return ErrorControl(self.claims, self.protocol.verdict.family)

    @property
    def memory(self) -> Memory:
        """What earlier sessions have measured."""
        return self.resumed.memory if self.resumed else Forgetful()

    @property
    def present(self) -> Present:
        """What measurements of this session depend on."""
        return Present(self.bay.machine, self.bay.facts, self.bay.drives, *documents(self))

    @property
    def acceptance(self) -> bool:
        """Whether this run may decide about a product."""
        return self.protocol.acceptance

    @property
    def header(self) -> Header:
        """What is tested, how, and where the evidence goes."""
        return Header(
            models=tuple(drive.model for drive in self.bay.drives),
            machine=self.bay.machine,
            protocol=self.protocol.name,
            acceptance=self.acceptance,
            spec=self.spec.name,
            run_folder=self.journal.path if self.journal else None,
            remarks=self.bay.remarks,
            expected=describe(self.expected),
        )

    def to_worker(self) -> dict[str, Any]:
        """What an xdist worker needs beyond its own command line; plain types."""
        journal = str(self.journal and self.journal.path)
        baseline = str(self.baseline.folder) if self.baseline else ""
        known = {"journal": journal, "resumed": bool(self.resumed), "baseline": baseline, "name": self.name}
        known |= {"run_root": str(self.settings.run_root), "protocol": self.settings.protocol}
        return {"bay": self.bay.to_json(), "spec": self.spec_source, "glance_s": self.glance_s, **known}

    @property
    def spec_source(self) -> str:
        return self.settings.spec or self.spec.key

    @contextmanager
    def station(
        self, progress: Progress, looked: Looked | None = None, watch: Callable[[Machine], Live] | None = None
    ) -> Iterator[Station]:
        """Lease the drives, look at their health, and give them back when the block is left."""
        if self.journal is None:
            raise RigError("nothing can be measured while tests are only collected")
        with ExitStack() as stack:
            channel = self.channel
            if channel is None:
                channel = self.bay.connect(self.journal.transcribe(self.bay.machine))
                stack.callback(channel.close)
            live = watch(channel) if watch else None
            if live:
                stack.callback(live.close)
            terms = self._terms(progress)
            held = HeldDrives(channel, self.bay.drives, self.bay.contents, terms)
            stack.callback(unless_lost, held.release)
            before = self._health(channel, "before")
            machine_id = self.bay.facts.get("machine_id", "")
            station = Station(
                Setup(
                    machine=channel,
                    held=held,
                    protocol=self.protocol,
                    logbook=self.journal,
                    machine_id=machine_id,
                    progress=progress,
                    looked=looked,
                    live=live,
                ),
                self.memory,
                planned=self.planned,
                tails=stopping.tails(self.asked, self.spec),
                by_the_second=stopping.by_the_second(self.asked),
                enough=stopping.Promises(self.spec, self.protocol, self.asked, self.family),
                stock=Stock(self.journal.path),
            )
            stack.callback(self._health_after, channel, before)
            stack.callback(unless_lost, station.close)
            stack.callback(self._note_unfinished, channel)
            yield station

    def _terms(self, progress: Progress) -> Terms:
        """Of the lease."""
        note = Note.of_this_process(called(self.journal.path) if self.journal else "", self.planned_s)
        return Terms(note, self.settings.wait_s, waiting=lambda told, wait_s: progress(f"waiting: {told}", wait_s))

    def _health(self, channel: Channel, when: str) -> Mapping[str, health.DriveHealth]:
        read = health.read(channel, self.bay.drives)
        for drive in self.bay.drives:
            if self.journal:
                keep_health(self.journal, drive, read[drive.path], when)
        return read

    def _note_unfinished(self, channel: Channel) -> None:
        """What goes on on the machine although this session ends now."""
        for sentence in channel.unfinished():
            if self.journal:
                self.journal.note("still_running", sentence=sentence)

    def _health_after(self, channel: Channel, before: Mapping[str, health.DriveHealth]) -> None:
        # A drive that erases itself answers nothing until it is done.
        if channel.unfinished():
            return
        # A lost machine cannot be asked; the error that is on its way says so.
        with suppress(RigError):
            after = self._health(channel, "after")
            for drive in self.bay.drives:
                worse = health.worsened(before[drive.path], after[drive.path])
                if worse and self.journal:
                    self.journal.note(
                        "drive_worsened", drive=drive.identity, name=drive.describe(), findings=list(worse)
                    )

    def finish(self, status: int) -> None:
        """Write the last line and the manifest, close what the run opened, and seal the folder.

        Each is tried, whatever became of the others; ``JournalError`` if evidence could not be kept.
        """
        with ExitStack() as last:
            if self.journal and self.manifest:
                ended = self.manifest.closed(utc_now(), status)
                last.callback(self.journal.seal)
                last.callback(self._make_page, self.journal.path)
                last.callback(self.stack.close)
                last.callback(self.journal.write_manifest, ended.to_record())
                last.callback(self.journal.note, "run_ended", exit_status=status)
            else:
                last.callback(self.stack.close)

    def _make_page(self, folder: Path) -> None:
        """When everything else is written and given back, and before the folder is sealed with it."""
        self.page = artefacts.make(folder) if self.settings.page else None
        self.complaints = artefacts.tell(folder, self.settings, alone=not self.name)
