"""How a run begins: on the controller, which finds everything that can be wrong, and on xdist's workers, which join.

What a run writes of itself when it begins: the spec and the protocol as they are, and the manifest.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.inventory import BayAsked
from pytest_ssdqual.plugin.options.settings import Settings, read
from pytest_ssdqual.plugin.session import baseline as baselines
from pytest_ssdqual.plugin.session import expectation, resume
from pytest_ssdqual.plugin.session.bay import Bay, open_bay, planned_bay
from pytest_ssdqual.plugin.session.manifest import manifest
from pytest_ssdqual.plugin.session.resume import Resumption
from pytest_ssdqual.plugin.session.state import Qualification
from pytest_ssdqual.plugin.session.stop import end_in_order_on_sigterm
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.report.compare.baseline import Baseline
from pytest_ssdqual.report.resume.resume import Past
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.reader import unfinished_arrays
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import RigError

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.fleet.bays import FleetRun
    from pytest_ssdqual.plugin.session.state import Qualification


#: The lab's drives cannot be told by their model (QEMU's NVMe drives all have the same), but we know what they are.
LAB_SPEC = "ssdqual-sm300"


@dataclass(slots=True)
class Beginning:
    """The way of one bay into a run: first everything that needs no machine, then its machine, then the first word."""

    config: pytest.Config
    settings: Settings
    #: Of the bay, where there are several.
    name: str
    protocol: Protocol
    chosen: Spec | None
    baseline: Baseline | None
    resumed: Resumption | None
    stack: ExitStack = field(default_factory=ExitStack)
    journal: Journal | None = None
    channel: Channel | None = None
    run: Qualification | None = None
    #: UUIDs of arrays that earlier runs left behind, if somebody has looked already.
    ours: frozenset[str] | None = None

    @classmethod
    def of(cls, config: pytest.Config, settings: Settings, name: str = "") -> Beginning:
        """What the command line names is read; ``pytest.UsageError`` if it makes no sense."""
        protocol = _load(protocols.load, settings.protocol, "--ssd-protocol")
        chosen = _load(specs.load, settings.spec, "--ssd-spec") if settings.spec else None
        baseline = baselines.asked_for(settings)
        return cls(config, settings, name, protocol, chosen, baseline, resume.asked_for(config, settings))

    def planned(self) -> Qualification:
        """Of a run that only collects."""
        return self._run(planned_bay(self.settings, self.stack, self._ours, _refuser(self.config)))

    def open(self, create: Callable[[], Journal]) -> Qualification:
        """The machine is reached, and the guard asked about its drives; what was refused is on record.

        May be done for several bays at once, in threads. ``pytest.UsageError``, ``RigError``.
        """
        self.journal = resume.opened(self.config, self.resumed, create)
        with self._noted_if_refused():
            machine = self.settings.devices.machine
            opened = open_bay(
                self.settings, self.stack, self._ours, _refuser(self.config), self.journal.transcribe(machine),
                self.journal.note,
            )  # fmt: skip
            bay, self.channel = opened
            self.run = self._run(bay)
        return self.run

    def refuse(self, reasons: str) -> None:
        """Leaves a whole run folder of a bay that is not begun, for reasons that are not its own."""
        if self.journal:
            resume.note_refusal(self.journal, self.resumed, reasons)

    def note_begun(self) -> None:
        """The manifest, and the first word of this session."""
        run, journal, channel = self.run, self.journal, self.channel
        if run is None or journal is None or channel is None:
            raise RuntimeError("the bay was not opened")
        if run.resumed:
            run.manifest = replace(run.resumed.continued(run.present), expected=run.expected)
            journal.write_manifest(run.manifest.to_record())
            run.resumed.note_begun(journal, run.present)
            return
        extra = [facts for facts in self.config.hook.pytest_ssdqual_facts(machine=channel) if facts]
        run.manifest = manifest(run, journal, {name: facts[name] for facts in extra for name in facts})
        journal.write_manifest(run.manifest.to_record())
        journal.note("run_started", machine=run.bay.machine, drives=[drive.identity for drive in run.bay.drives])

    def _run(self, bay: Bay) -> Qualification:
        bay = self.resumed.bay(bay) if self.resumed else bay
        spec = self.chosen or _spec_for(self.settings, bay)
        run = Qualification(
            self.settings, self.protocol, spec, bay, self.journal, self.stack, self.channel, resumed=self.resumed,
            baseline=self.baseline, name=self.name,
        )  # fmt: skip
        resume.require(run)
        baselines.require(run)
        expectation.require(run)
        return run

    def _ours(self) -> frozenset[str]:
        """UUIDs of arrays that earlier runs left behind."""
        if self.ours is None:
            self.ours = left_behind(
                self.settings.run_root, *([self.resumed.past.folder.parent] if self.resumed else [])
            )
        return self.ours

    @contextmanager
    def _noted_if_refused(self) -> Iterator[None]:
        try:
            yield
        except pytest.UsageError as error:
            self.refuse(str(error))
            raise
        except KeyboardInterrupt:
            self.refuse("it was stopped before it had begun")
            raise


def left_behind(*roots: Path) -> frozenset[str]:
    """UUIDs of arrays of ours that no run below these folders says it has taken down: every journal is read."""
    return frozenset(array.uuid for root in set(roots) if root.is_dir() for array in unfinished_arrays(root))


def begin(config: pytest.Config) -> Qualification | FleetRun | None:
    """On the controller: everything that can be wrong is found here, before anything is collected or touched.

    ``pytest.UsageError`` with one sentence per thing that is wrong.
    """
    settings = read(config)
    if settings is None:
        return None
    from pytest_ssdqual.plugin.fleet import bays

    if len(settings.bays) > 1 or (bays.goes_on(settings) and not config.option.collectonly):
        return bays.begin(config, settings)
    beginning = Beginning.of(config, settings)
    try:
        if config.option.collectonly:
            return beginning.planned()
        end_in_order_on_sigterm(beginning.stack)
        run = beginning.open(partial(Journal.create, settings.run_root, secrets.token_hex(4)))
        beginning.note_begun()
    except RigError as error:
        beginning.stack.close()
        raise pytest.UsageError(str(error)) from error
    except BaseException:
        beginning.stack.close()
        raise
    return run


def join(config: pytest.Config, told: Mapping[str, Any]) -> Qualification:
    """On an xdist worker: the controller has checked everything already."""
    bay = Bay.from_json(told["bay"])
    # Not what the command line means now: an inventory may have been changed meanwhile.
    settings = read(config, (BayAsked(told["name"], Devices()),))
    if settings is None:
        raise pytest.UsageError("the controller has drives, this worker was given none")
    settings = replace(settings, run_root=Path(told["run_root"]), protocol=told["protocol"])
    worker = os.environ.get("PYTEST_XDIST_WORKER", "worker")
    protocol, spec = protocols.load(settings.protocol), specs.load(told["spec"])
    if told["journal"] == "None":
        return Qualification(settings, protocol, spec, bay, None, ExitStack(), name=told["name"])
    folder = Path(told["journal"])
    baseline = baselines.told(told)
    resume.claim(config, folder, worker)
    journal = Journal.open(folder, worker)
    resumed = Resumption.of(Past.read(folder)) if told["resumed"] else None
    if resumed:
        resumed.tell(journal)
    return Qualification(
        settings, protocol, spec, bay, journal, ExitStack(), resumed=resumed, baseline=baseline, name=told["name"]
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


def _refuser(config: pytest.Config) -> Callable[[Any], list[str]]:
    return lambda drive: [why for why in config.hook.pytest_ssdqual_refuse_drive(drive=drive) if why]
