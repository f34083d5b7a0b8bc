"""A run of several bays, on the controller: all of them are opened before a test is collected, and told of together.

Each bay is a run of its own, in a run folder of its own (``report.fleet``), served by a worker of its own (``turns``).
What is wrong with any of them refuses all: nothing was touched yet, and whoever asked for a rack is not given half.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin import distribute, paging, surfaces
from pytest_ssdqual.plugin.beginning import Beginning
from pytest_ssdqual.plugin.endings import end_in_order_on_sigterm
from pytest_ssdqual.plugin.inventory import BayAsked
from pytest_ssdqual.plugin.options import Settings
from pytest_ssdqual.plugin.qualification import Qualification
from pytest_ssdqual.qual import printable
from pytest_ssdqual.report import fleet as folders
from pytest_ssdqual.report import resume, terminal
from pytest_ssdqual.report.fleet import FleetBay
from pytest_ssdqual.report.journal import RECORDS, Journal, JournalError
from pytest_ssdqual.report.runs import NoSuchRun, find_any
from pytest_ssdqual.rig import safety
from pytest_ssdqual.rig.machine import RigError, utc_now

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.recorder import Recorder

#: Bays that are opened at once; most of the time a machine is waited for.
AT_ONCE = 16
#: Bays told one by one; of more there is the page.
TOLD = 12
ANOTHER = "another bay of the run was refused"


@dataclass(slots=True)
class Fleet:
    """The run of all bays."""

    record: folders.Fleet
    runs: tuple[Qualification, ...]
    #: To be read before the run is trusted.
    remarks: tuple[str, ...] = ()
    #: Why ``fleet.json`` is not what it should be; empty if it is.
    incomplete: str = ""
    page: paging.Paged | None = None
    complaint: str = ""

    @property
    def path(self) -> Path:
        return self.record.path

    def header(self) -> list[str]:
        """For ``pytest_report_header``."""
        first = self.runs[0]
        drives = sum(len(run.bay.drives) for run in self.runs)
        protocol = first.protocol.name if first.acceptance else f"{first.protocol.name} (not for acceptance)"
        told = [f"{len(self.runs)} bays, {drives} drives, protocol {protocol}, run folder {self.path}", *self.remarks]
        for run in self.runs[:TOLD]:
            lines = terminal.header_lines(replace(run.header, run_folder=None))
            told += [f"{run.name}: {line.removeprefix('ssdqual: ')}" for line in lines]
        if len(self.runs) > TOLD:
            told.append(f"and {len(self.runs) - TOLD} bays more: {', '.join(run.name for run in self.runs[TOLD:])}")
        return [printable.line(f"ssdqual: {each}", terminal.LINE_CHARACTERS) for each in told]

    def finish(self, status: int) -> bool:
        """The last word in ``fleet.json``, the page and the summary; false if the first could not be written."""
        self.record = folders.closed(self.record, utc_now(), status)
        try:
            folders.write(self.record)
        except JournalError as error:
            self.incomplete = str(error)
        if self.runs[0].settings.page:
            self.page = paging.make_of_fleet(self.path)
        self.complaint = surfaces.to_job(self.path)
        return not self.incomplete

    def tell(self, reporter: pytest.TerminalReporter, recorders: Sequence[Recorder]) -> None:
        """What came of the bays: in full of few, of many in full where something is wrong; then side by side."""
        from pytest_ssdqual.report import fleet_page

        full = recorders if len(recorders) <= TOLD else [each for each in recorders if each.has_failed][:TOLD]
        for each in full:
            each.tell(reporter)
        reporter.write_sep("=", f"{len(recorders)} bays")
        for line in fleet_page.side_by_side(self.path, reporter._tw.fullwidth):
            reporter.write_line(printable.line(line, terminal.LINE_CHARACTERS))
        if self.page:
            reporter.write_line(printable.line(f"{self.page}"), yellow=bool(self.page.failed))
        if self.complaint:
            reporter.write_line(self.complaint, yellow=True)
        reporter.write_line(f"run folder: {self.path}")
        if self.incomplete:
            reporter.write_line(f"the run folder is not complete: {self.incomplete}", red=True)


def begin(config: pytest.Config, settings: Settings) -> Fleet:
    """All bays, opened; ``pytest.UsageError`` with everything that is wrong with any of them."""
    _require_workers(config, len(settings.bays))
    past = _resumed(settings)
    beginnings = [
        Beginning.of(config, _settings(settings, asked, past), asked.name) for asked in _numbered(settings.bays)
    ]
    with ExitStack() as stack:
        for each in beginnings:
            stack.callback(each.stack.close)
        end_in_order_on_sigterm(beginnings[0].stack)
        try:
            record = _record(settings, past)
            _open(beginnings, record.path)
            remarks = _apart(beginnings)
            for each in beginnings:
                each.note_begun()
        except RigError as error:
            raise pytest.UsageError(str(error)) from error
        except pytest.UsageError:
            _close_refused(record)
            raise
        for each in beginnings:
            if each.channel:  # workers have connections of their own, and there may be a hundred of these for days
                each.channel.close()
        stack.pop_all()
    return Fleet(record, tuple(each.run for each in beginnings if each.run), remarks)


def _require_workers(config: pytest.Config, bays: int) -> None:
    if config.option.collectonly:
        raise pytest.UsageError(
            f"--collect-only looks at one bay, and there are {bays}: choose one with --ssd-bay=NAME"
        )
    if not distribute.is_distributed(config):
        raise pytest.UsageError(
            f"{bays} bays need workers of pytest-xdist (pip install pytest-xdist): add -n auto to run all of them at "
            "once, -n 1 for one after the other, or choose one with --ssd-bay=NAME"
        )


def _resumed(settings: Settings) -> folders.Fleet | None:
    """The fleet that is continued; ``pytest.UsageError`` if there is none."""
    if settings.resume is None:
        return None
    try:
        folder = resume.find(settings.run_root, settings.resume)
        if not folders.is_fleet(folder):
            raise ValueError(f"{folder} is the run of a single bay: choose it with --ssd-bay=NAME")  # noqa: TRY301
        found = folders.read(folder)
    except (resume.NotResumable, ValueError) as error:
        raise pytest.UsageError(f"--ssd-resume: {error}") from error
    known = {bay.name for bay in found.bays}
    if strange := [bay.name for bay in settings.bays if bay.name not in known]:
        raise pytest.UsageError(
            f"--ssd-resume: {folder} has no bay {', '.join(strange)}; it has {', '.join(sorted(known))}"
        )
    return found


def _numbered(bays: Sequence[BayAsked]) -> Sequence[BayAsked]:
    """Each lab with drives of other numbers than those before it."""
    first, found = 1, []
    for asked in bays:
        found.append(replace(asked, devices=replace(asked.devices, first=first)))
        first += asked.devices.lab or 0
    return found


def _settings(settings: Settings, asked: BayAsked, past: folders.Fleet | None) -> Settings:
    """Those of one bay; ``pytest.UsageError`` if the baseline is a fleet without it."""
    own = settings.of(asked)
    if own.baseline:
        own = replace(own, baseline=_baseline(own.baseline, settings.run_root, asked.name))
    if own.openmetrics:  # a file of its own, as each of them is replaced as a whole
        own = replace(own, openmetrics=own.openmetrics.with_stem(f"{own.openmetrics.stem}-{asked.name}"))
    if past and (past.path / folders.folder_of(asked.name) / RECORDS).is_file():
        return replace(own, resume=str((past.path / folders.folder_of(asked.name)).absolute()))
    return replace(own, resume=None)


def _baseline(name: str, root: Path, bay: str) -> str:
    """Of a fleet the bay of the same name; a run of one bay is everybody's."""
    try:
        found = find_any(name, root)
    except NoSuchRun as error:
        raise pytest.UsageError(f"--ssd-baseline: {error}") from error
    own = found / folders.folder_of(bay)
    if folders.is_fleet(found) and own not in folders.bay_folders(found):
        raise pytest.UsageError(f"--ssd-baseline: {found} has no run of the bay {bay}")
    return str(own.absolute() if folders.is_fleet(found) else found.absolute())


def _record(settings: Settings, past: folders.Fleet | None) -> folders.Fleet:
    if past:
        found = replace(past, ended=None, exit_status=None)
        folders.write(found)
        return found
    bays = (
        FleetBay(bay.name, folders.folder_of(bay.name), bay.devices.machine, dict(bay.labels), dict(bay.slots))
        for bay in settings.bays
    )
    return folders.create(settings.run_root, secrets.token_hex(4), bays)


def _open(beginnings: Sequence[Beginning], folder: Path) -> None:
    """Every bay, several at a time; ``pytest.UsageError`` with what is wrong with each.

    Threads that wait for a machine, or for drives that somebody else has, must not keep whoever presses Ctrl-C.
    """
    jobs: queue.SimpleQueue[Beginning] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Beginning, BaseException | None]] = queue.SimpleQueue()
    for each in beginnings:
        jobs.put(each)
    labs = any(each.settings.devices.lab is not None for each in beginnings)
    for number in range(1 if labs else min(AT_ONCE, len(beginnings))):
        target = partial(_work, jobs, done, lambda name: partial(Journal.create_at, folder / folders.folder_of(name)))
        threading.Thread(target=target, name=f"ssdqual-open-{number}", daemon=True).start()
    wrong: dict[str, BaseException] = {}
    for _ in beginnings:
        each, error = done.get()
        if error:
            wrong[each.name] = error
    for error in wrong.values():
        if not isinstance(error, (pytest.UsageError, RigError)):
            raise error
    if wrong:
        _refuse_others(beginnings, wrong)
        order = [each.name for each in beginnings if each.name in wrong]
        raise pytest.UsageError("\n".join(f"{name}: {line}" for name in order for line in str(wrong[name]).split("\n")))


def _work(
    jobs: queue.SimpleQueue[Beginning],
    done: queue.SimpleQueue[tuple[Beginning, BaseException | None]],
    create: Callable[[str], Callable[[], Journal]],
) -> None:
    while True:
        try:
            each = jobs.get_nowait()
        except queue.Empty:
            return
        try:
            each.open(create(each.name))
        except BaseException as error:
            done.put((each, error))
        else:
            done.put((each, None))


def _apart(beginnings: Sequence[Beginning]) -> tuple[str, ...]:
    """That no drive is in two bays, and what bays share beside that; ``pytest.UsageError`` where that must not be."""
    from pytest_ssdqual.rig import shared_path

    bays = {each.name: each.run.bay.drives for each in beginnings if each.run}
    wrong = list(shared_path.same_drives(bays))
    everything = [drive for drives in bays.values() for drive in drives]
    useless = tuple(safety.useless_consents(everything, beginnings[0].settings.wipe))
    wrong += [safety.explain(useless)] if useless else []
    first = beginnings[0]
    what = first.settings.on_shared_path(acceptance=first.protocol.acceptance)
    shared: tuple[str, ...] = ()
    if not wrong and what != "ignore":
        opened = [(each.name, each.channel, each.run) for each in beginnings if each.run and each.channel]
        shared = shared_path.between({name: shared_path.paths(at, run.bay.drives) for name, at, run in opened})
        if what == "error":
            wrong += [f"{each}; ssd_shared_path = warn lets it be" for each in shared]
    if wrong:
        _refuse_others(beginnings, {})
        raise pytest.UsageError("\n".join(wrong))
    return shared


def _refuse_others(beginnings: Sequence[Beginning], wrong: dict[str, BaseException]) -> None:
    for each in beginnings:
        if each.name not in wrong:
            each.refuse(ANOTHER)


def _close_refused(record: folders.Fleet) -> None:
    folders.write(folders.closed(record, utc_now(), int(pytest.ExitCode.USAGE_ERROR)))
