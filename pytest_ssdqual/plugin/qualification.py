"""One run's worth of state: settings, bay, journal, spec and protocol, from configuration to the last line.

The controller begins it; xdist's workers join it. It is the only thing that the plugin keeps in ``config.stash``.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.plugin.bay import Bay, open_bay, planned_bay
from pytest_ssdqual.plugin.options import Settings, read
from pytest_ssdqual.qual import document
from pytest_ssdqual.qual import protocol as protocols
from pytest_ssdqual.qual import spec as specs
from pytest_ssdqual.qual.protocol import Protocol
from pytest_ssdqual.qual.spec import Spec
from pytest_ssdqual.report.journal import Journal
from pytest_ssdqual.report.manifest import BayEntry, Document, DriveEntry, Manifest, keep_health
from pytest_ssdqual.report.records import unfinished_arrays
from pytest_ssdqual.rig import health
from pytest_ssdqual.rig.channel import Channel
from pytest_ssdqual.rig.hold import HeldDrives
from pytest_ssdqual.rig.machine import MachineLost, RigError, utc_now
from pytest_ssdqual.rig.station import Progress, Station

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

    @property
    def acceptance(self) -> bool:
        """Whether this run may decide about a product."""
        return self.protocol.acceptance

    def to_worker(self) -> dict[str, Any]:
        """What an xdist worker needs beyond its own command line; plain types."""
        return {"bay": self.bay.to_json(), "spec": self.spec_source, "journal": str(self.journal and self.journal.path)}

    @property
    def spec_source(self) -> str:
        return self.settings.spec or self.spec.key

    @contextmanager
    def station(self, progress: Progress) -> Iterator[Station]:
        """Lease the drives, look at their health, and give them back when the block is left."""
        if self.journal is None:
            raise RigError("nothing can be measured while tests are only collected")
        with ExitStack() as stack:
            channel = self.channel
            if channel is None:
                channel = self.bay.connect(self.journal.transcribe(self.bay.machine))
                stack.callback(channel.close)
            held = HeldDrives(channel, self.bay.drives)
            stack.callback(_unless_lost, held.release)
            before = self._health(channel, "before")
            machine_id = self.bay.facts.get("machine_id", "")
            station = Station(channel, held, self.protocol, self.journal, machine_id, progress)
            stack.callback(self._health_after, channel, before)
            stack.callback(_unless_lost, station.close)
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
                ended = replace(self.manifest, ended=utc_now(), exit_status=status)
                last.callback(self.journal.seal)
                last.callback(self.stack.close)
                last.callback(self.journal.write_manifest, ended.to_record())
                last.callback(self.journal.note, "run_ended", exit_status=status)
            else:
                last.callback(self.stack.close)


def begin(config: pytest.Config) -> Qualification | None:
    """On the controller: everything that can be wrong is found here, before anything is collected or touched.

    ``pytest.UsageError`` with one sentence per thing that is wrong.
    """
    settings = read(config)
    if settings is None:
        return None
    protocol = _load(protocols.load, settings.protocol, "--ssd-protocol")
    chosen = _load(specs.load, settings.spec, "--ssd-spec") if settings.spec else None
    stack = ExitStack()
    try:
        ours, refuse = partial(_ours, settings.run_root), _refuser(config)
        if config.option.collectonly:
            bay, channel, journal = planned_bay(settings, stack, ours, refuse), None, None
        else:
            _end_in_order_on_sigterm(stack)
            journal = Journal.create(settings.run_root, secrets.token_hex(4))
            with _sealed_if_refused(journal):
                observer = journal.transcribe(settings.devices.machine)
                bay, channel = open_bay(settings, stack, ours, refuse, observer, journal.note)
        run = Qualification(settings, protocol, chosen or _spec_for(settings, bay), bay, journal, stack, channel)
        if channel is not None and journal is not None:
            extra = [facts for facts in config.hook.pytest_ssdqual_facts(machine=channel) if facts]
            run.manifest = _manifest(run, journal, {name: facts[name] for facts in extra for name in facts})
            journal.write_manifest(run.manifest.to_record())
            journal.note("run_started", machine=bay.machine, drives=[drive.identity for drive in bay.drives])
    except RigError as error:
        stack.close()
        raise pytest.UsageError(str(error)) from error
    except BaseException:
        stack.close()
        raise
    return run


@contextmanager
def _sealed_if_refused(journal: Journal) -> Iterator[None]:
    """A request that was refused leaves a whole run folder, too: what was asked of the machine, and the reasons."""
    try:
        yield
    except pytest.UsageError as error:
        journal.note("run_refused", reasons=str(error))
        journal.seal()
        raise


def join(config: pytest.Config, told: Mapping[str, Any]) -> Qualification:
    """On an xdist worker: the controller has checked everything already."""
    settings = read(config)
    if settings is None:
        raise pytest.UsageError("the controller has drives, this worker was given none")
    bay = Bay.from_json(told["bay"])
    worker = os.environ.get("PYTEST_XDIST_WORKER", "worker")
    journal = Journal.open(Path(told["journal"]), worker) if told["journal"] != "None" else None
    return Qualification(
        settings, protocols.load(settings.protocol), specs.load(told["spec"]), bay, journal, ExitStack()
    )


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


def _ours(root: Path) -> frozenset[str]:
    return frozenset(array.uuid for array in unfinished_arrays(root)) if root.is_dir() else frozenset()


def _refuser(config: pytest.Config) -> Callable[[Any], list[str]]:
    return lambda drive: [why for why in config.hook.pytest_ssdqual_refuse_drive(drive=drive) if why]


def _manifest(run: Qualification, journal: Journal, extra: Mapping[str, str]) -> Manifest:
    bay = run.bay
    return Manifest(
        run_id=journal.path.name,
        command_line=tuple(sys.argv),
        started=utc_now(),
        spec=Document(run.spec.key, document.text(run.spec_source, specs.FOLDER)),
        protocol=Document(run.protocol.name, document.text(run.settings.protocol, protocols.FOLDER)),
        acceptance=run.acceptance,
        bays=(BayEntry(bay.machine, {**bay.facts, **extra}, [DriveEntry(drive) for drive in bay.drives]),),
        remarks=bay.remarks,
    )


def _unless_lost(give_back: Callable[[], None]) -> None:
    """On a machine that is lost nothing can be given back; the error that said so is the whole story."""
    with suppress(MachineLost):
        give_back()


def _end_in_order_on_sigterm(stack: ExitStack) -> None:
    """A cancelled CI job sends SIGTERM; treated as Ctrl-C, fio ends, the array stops and JUnit is written."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    with suppress(ValueError):  # not the main thread: somebody runs pytest inside of something else
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, interrupt))
