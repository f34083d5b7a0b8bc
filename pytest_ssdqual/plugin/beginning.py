"""How a run begins: on the controller, which finds everything that can be wrong, and on xdist's workers, which join."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.plugin import baselines, resumption, written
from pytest_ssdqual.plugin.bay import Bay, open_bay, planned_bay
from pytest_ssdqual.plugin.endings import end_in_order_on_sigterm
from pytest_ssdqual.plugin.options import Settings, read
from pytest_ssdqual.plugin.qualification import Qualification
from pytest_ssdqual.plugin.resumption import Resumption
from pytest_ssdqual.qual import protocol as protocols
from pytest_ssdqual.qual import spec as specs
from pytest_ssdqual.qual.spec import Spec
from pytest_ssdqual.report.journal import Journal
from pytest_ssdqual.report.records import unfinished_arrays
from pytest_ssdqual.report.resume import Past
from pytest_ssdqual.rig.channel import Channel
from pytest_ssdqual.rig.machine import RigError

#: The lab's drives cannot be told by their model (QEMU's NVMe drives all have the same), but we know what they are.
LAB_SPEC = "ssdqual-sm300"


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
