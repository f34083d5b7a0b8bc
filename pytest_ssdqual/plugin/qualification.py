"""One run's worth of state: settings, bay, journal, spec and protocol, from configuration to the last line.

The controller begins it; xdist's workers join it. It is the only thing that the plugin keeps in ``config.stash``.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.plugin import baselines, paging, resumption, surfaces, written
from pytest_ssdqual.plugin.bay import Bay, open_bay, planned_bay
from pytest_ssdqual.plugin.endings import end_in_order_on_sigterm, unless_lost
from pytest_ssdqual.plugin.options import Settings, read
from pytest_ssdqual.plugin.paging import Paged
from pytest_ssdqual.plugin.promises import Asked, Promises
from pytest_ssdqual.plugin.resumption import Resumption
from pytest_ssdqual.qual import protocol as protocols
from pytest_ssdqual.qual import spec as specs
from pytest_ssdqual.qual.family import Family
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.protocol import Protocol
from pytest_ssdqual.qual.spec import Spec
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.report.baseline import Baseline
from pytest_ssdqual.report.journal import Journal
from pytest_ssdqual.report.manifest import Manifest, keep_health
from pytest_ssdqual.report.progress import PLAIN_PERIOD_S
from pytest_ssdqual.report.records import unfinished_arrays
from pytest_ssdqual.report.resume import Past, Present
from pytest_ssdqual.rig import health
from pytest_ssdqual.rig.channel import Channel
from pytest_ssdqual.rig.glance import Live
from pytest_ssdqual.rig.hold import HeldDrives
from pytest_ssdqual.rig.machine import Machine, RigError, utc_now
from pytest_ssdqual.rig.memory import Forgetful, Memory
from pytest_ssdqual.rig.setup import Looked, Progress, Setup
from pytest_ssdqual.rig.station import Station
from pytest_ssdqual.rig.stock import Stock

#: The lab's drives cannot be told by their model (QEMU's NVMe drives all have the same), but we know what they are.
LAB_SPEC = "ssdqual-sm300"


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
    #: How often whoever watches wants to know how fio does.
    glance_s: float = PLAIN_PERIOD_S
    #: The run that this one continues.
    resumed: Resumption | None = None
    #: What came of the page of the run; None: there was none to be made.
    page: Paged | None = None
    complaints: tuple[str, ...] = ()  #: What could not be told to others, a sentence each.
    #: The earlier run that promises may be in per cent of.
    baseline: Baseline | None = None

    @property
    def family(self) -> Family:
        """The claims that are judged together."""
        return Family(self.claims, self.protocol.verdict.family)

    @property
    def memory(self) -> Memory:
        """What earlier sessions have measured."""
        return self.resumed.memory if self.resumed else Forgetful()

    @property
    def present(self) -> Present:
        """What measurements of this session depend on."""
        return Present(self.bay.machine, self.bay.facts, self.bay.drives, *written.documents(self))

    @property
    def acceptance(self) -> bool:
        """Whether this run may decide about a product."""
        return self.protocol.acceptance

    def to_worker(self) -> dict[str, Any]:
        """What an xdist worker needs beyond its own command line; plain types."""
        journal = str(self.journal and self.journal.path)
        baseline = str(self.baseline.folder) if self.baseline else ""
        known = {"journal": journal, "resumed": bool(self.resumed), "baseline": baseline}
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
            held = HeldDrives(channel, self.bay.drives, self.bay.contents)
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
                enough=Promises(self.spec, self.protocol, self.asked, self.family),
                stock=Stock(self.journal.path),
            )
            stack.callback(self._health_after, channel, before)
            stack.callback(unless_lost, station.close)
            yield station

    def _health(self, channel: Channel, when: str) -> Mapping[str, health.DriveHealth]:
        read = health.read(channel, self.bay.drives)
        for drive in self.bay.drives:
            if self.journal:
                keep_health(self.journal, drive, read[drive.path], when)
        return read

    def _health_after(self, channel: Channel, before: Mapping[str, health.DriveHealth]) -> None:
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
        self.page = paging.make(folder) if self.settings.page else None
        self.complaints = surfaces.tell(folder, self.settings)


def begin(config: pytest.Config) -> Qualification | None:
    """On the controller: everything that can be wrong is found here, before anything is collected or touched.

    ``pytest.UsageError`` with one sentence per thing that is wrong.
    """
    settings = read(config)
    if settings is None:
        return None
    protocol = _load(protocols.load, settings.protocol, "--ssd-protocol")
    chosen = _load(specs.load, settings.spec, "--ssd-spec") if settings.spec else None
    baseline = baselines.asked_for(settings)
    resumed = resumption.asked_for(config, settings)
    stack = ExitStack()
    try:
        ours, refuse = partial(_ours, settings, resumed), _refuser(config)

        def qualification(bay: Bay, journal: Journal | None = None, channel: Channel | None = None) -> Qualification:
            bay = resumed.bay(bay) if resumed else bay
            spec = chosen or _spec_for(settings, bay)
            run = Qualification(settings, protocol, spec, bay, journal, stack, channel, resumed=resumed)
            run.baseline = baseline
            resumption.require(run)
            baselines.require(run)
            return run

        if config.option.collectonly:
            return qualification(planned_bay(settings, stack, ours, refuse))
        end_in_order_on_sigterm(stack)
        journal = resumption.opened(config, resumed, partial(Journal.create, settings.run_root, secrets.token_hex(4)))
        with _noted_if_refused(journal, resumed):
            observer = journal.transcribe(settings.devices.machine)
            bay, channel = open_bay(settings, stack, ours, refuse, observer, journal.note)
            run = qualification(bay, journal, channel)
        _note_begun(config, run, journal, channel)
    except RigError as error:
        stack.close()
        raise pytest.UsageError(str(error)) from error
    except BaseException:
        stack.close()
        raise
    return run


@contextmanager
def _noted_if_refused(journal: Journal, resumed: Resumption | None) -> Iterator[None]:
    try:
        yield
    except pytest.UsageError as error:
        resumption.note_refusal(journal, resumed, str(error))
        raise


def _note_begun(config: pytest.Config, run: Qualification, journal: Journal, channel: Channel) -> None:
    """The manifest, and the first word of this session."""
    if run.resumed:
        run.manifest = run.resumed.continued(run.present)
        journal.write_manifest(run.manifest.to_record())
        run.resumed.note_begun(journal, run.present)
        return
    extra = [facts for facts in config.hook.pytest_ssdqual_facts(machine=channel) if facts]
    run.manifest = written.manifest(run, journal, {name: facts[name] for facts in extra for name in facts})
    journal.write_manifest(run.manifest.to_record())
    journal.note("run_started", machine=run.bay.machine, drives=[drive.identity for drive in run.bay.drives])


def join(config: pytest.Config, told: Mapping[str, Any]) -> Qualification:
    """On an xdist worker: the controller has checked everything already."""
    settings = read(config)
    if settings is None:
        raise pytest.UsageError("the controller has drives, this worker was given none")
    bay = Bay.from_json(told["bay"])
    worker = os.environ.get("PYTEST_XDIST_WORKER", "worker")
    protocol, spec = protocols.load(settings.protocol), specs.load(told["spec"])
    if told["journal"] == "None":
        return Qualification(settings, protocol, spec, bay, None, ExitStack())
    baseline = baselines.told(told)
    folder = Path(told["journal"])
    resumption.claim(config, folder, worker)
    journal = Journal.open(folder, worker)
    resumed = Resumption.of(Past.read(folder)) if told["resumed"] else None
    if resumed:
        resumed.tell(journal)
    return Qualification(settings, protocol, spec, bay, journal, ExitStack(), resumed=resumed, baseline=baseline)


def _load(load: Callable[[str], Any], name: str, option: str) -> Any:  # noqa: ANN401 (whatever the loader gives)
    try:
        return load(name)
    except ValueError as error:
        raise pytest.UsageError(f"{option}: {error}") from error


def _spec_for(settings: Settings, bay: Bay) -> Spec:
    if settings.devices.lab is not None:
        return specs.load(LAB_SPEC)
    found = {spec.key: spec for drive in bay.drives if (spec := specs.find_by_model(drive.model or ""))}
    return next(iter(found.values())) if len(found) == 1 else specs.default()


def _ours(settings: Settings, resumed: Resumption | None) -> frozenset[str]:
    roots = {settings.run_root, resumed.past.folder.parent} if resumed else {settings.run_root}
    return frozenset(array.uuid for root in roots if root.is_dir() for array in unfinished_arrays(root))


def _refuser(config: pytest.Config) -> Callable[[Any], list[str]]:
    return lambda drive: [why for why in config.hook.pytest_ssdqual_refuse_drive(drive=drive) if why]
