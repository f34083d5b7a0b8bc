"""A run of several bays, on the controller: all of them are opened before a test is collected, and told of together.

Each bay is a run of its own, in a run folder of its own (``report.fleet.folder``), served by a worker of its own
(``turns``). What is wrong with any of them refuses all: nothing was touched yet, and whoever asked for a rack is not
given half.

All bays of a run are opened, and must be apart; what is wrong with any of them refuses all.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.fleet import xdist
from pytest_ssdqual.plugin.options.inventory import BayAsked
from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.session import artefacts
from pytest_ssdqual.plugin.session.start import Beginning, left_behind
from pytest_ssdqual.plugin.session.state import Qualification
from pytest_ssdqual.plugin.session.stop import end_in_order_on_sigterm, put_off
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.fleet import folder as folders
from pytest_ssdqual.report.fleet.folder import FleetBay
from pytest_ssdqual.report.resume import resume
from pytest_ssdqual.report.run_folder.find import NoSuchRun, find_any
from pytest_ssdqual.report.run_folder.journal import RECORDS, Journal, JournalError
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.report.terminal import summary
from pytest_ssdqual.rig.guard import consent, refusals
from pytest_ssdqual.rig.machine.machine import RigError, utc_now

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.recorder import Recorder
    from pytest_ssdqual.rig.drives.topology import Drive


#: Bays that are opened at once; most of the time a machine is waited for.
AT_ONCE = 16
ANOTHER = "another bay of the run was refused"


def open_all(beginnings: Sequence[Beginning], folder: Path) -> None:
    """Every bay, several at a time; ``pytest.UsageError`` with what is wrong with each.

    Threads that wait for a machine, or for drives that somebody else has, must not keep whoever presses Ctrl-C. Labs
    are booted by this one, one after the other: the kernel ends QEMU with the thread that started it (prctl(2)).
    """
    create = partial(_journal, folder)
    labs = [each for each in beginnings if each.settings.devices.lab is not None]
    others = [each for each in beginnings if each.settings.devices.lab is None]
    jobs: queue.SimpleQueue[Beginning] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Beginning, BaseException | None]] = queue.SimpleQueue()
    for each in others:
        jobs.put(each)
    for number in range(min(AT_ONCE, len(others))):
        target = partial(_work, jobs, done, create)
        threading.Thread(target=target, name=f"ssdqual-open-{number}", daemon=True).start()
    wrong: dict[str, BaseException] = {}
    for each in labs:
        try:
            each.open(partial(create, each.name))
        except (pytest.UsageError, RigError) as error:
            wrong[each.name] = error
    for _ in others:
        each, failed = done.get()
        if failed:
            wrong[each.name] = failed
    for reason in wrong.values():
        if not isinstance(reason, (pytest.UsageError, RigError)):
            raise reason
    if wrong:
        _refuse_others(beginnings, wrong)
        order = [each.name for each in beginnings if each.name in wrong]
        raise pytest.UsageError("\n".join(f"{name}: {line}" for name in order for line in str(wrong[name]).split("\n")))


def _work(
    jobs: queue.SimpleQueue[Beginning],
    done: queue.SimpleQueue[tuple[Beginning, BaseException | None]],
    create: Callable[[str], Journal],
) -> None:
    while True:
        try:
            each = jobs.get_nowait()
        except queue.Empty:
            return
        try:
            each.open(partial(create, each.name))
        except BaseException as error:
            done.put((each, error))
        else:
            done.put((each, None))


def _journal(fleet: Path, name: str) -> Journal:
    """Of a bay that begins; it has a folder already if an earlier session was refused or killed before that."""
    folder = fleet / folders.folder_of(name)
    if not (folder / RECORDS).is_file():
        return Journal.create_at(folder)
    journal = Journal.open(folder)
    journal.unseal()
    return journal


def apart(beginnings: Sequence[Beginning]) -> tuple[str, ...]:
    """That no drive is in two bays, and what bays share beside that; ``pytest.UsageError`` where that must not be."""
    from pytest_ssdqual.rig.guard import shared_paths

    bays = {each.name: each.run.bay.drives for each in beginnings if each.run}
    wrong = list(shared_paths.same_drives(bays))
    everything = [drive for drives in bays.values() for drive in drives]
    useless = tuple(refusals.useless_consents(everything, beginnings[0].settings.wipe))
    wrong += [refusals.explain(useless)] if useless else []
    wrong += _consents_for_several(bays, beginnings[0].settings.wipe)
    first = beginnings[0]
    what = first.settings.on_shared_path(acceptance=first.protocol.acceptance)
    shared: tuple[str, ...] = ()
    if not wrong and what != "ignore":
        opened = [(each.name, each.channel, each.run) for each in beginnings if each.run and each.channel]
        shared = shared_paths.between({name: shared_paths.paths(at, run.bay.drives) for name, at, run in opened})
        if what == "error":
            wrong += [f"{each}; ssd_shared_path = warn lets it be" for each in shared]
    if wrong:
        _refuse_others(beginnings, {})
        raise pytest.UsageError("\n".join(wrong))
    return shared


def _consents_for_several(bays: Mapping[str, Sequence[Drive]], wipe: Collection[str]) -> Iterator[str]:
    """Whoever gives up one drive must not lose another one of the same serial number on another machine."""
    for name in sorted(wipe):
        where = [bay for bay, drives in bays.items() if any(name in (drive.serial, drive.wwn) for drive in drives)]
        if len(where) > 1:
            yield (
                f"{consent.option(name)}: drives of the bays {', '.join(where)} have that serial: give the WWN of the "
                "one that is meant, or run these bays one by one with --ssd-bay"
            )


def _refuse_others(beginnings: Sequence[Beginning], wrong: dict[str, BaseException]) -> None:
    for each in beginnings:
        if each.name not in wrong:
            with suppress(JournalError):  # what was wrong with the other one is what has to be told
                each.refuse(ANOTHER)


#: Bays told one by one; of more there is the page.
TOLD = 12


@dataclass(slots=True)
class FleetRun:
    """The run of all bays."""

    record: folders.Fleet
    runs: tuple[Qualification, ...]
    #: To be read before the run is trusted.
    remarks: tuple[str, ...] = ()
    #: Why ``fleet.json`` is not what it should be; empty if it is.
    incomplete: str = ""
    page: artefacts.Paged | None = None
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
        for number, run in enumerate(self.runs):
            # What must be read before a run is trusted is told of all of them.
            lines = summary.header_lines(replace(run.header, run_folder=None))[number >= TOLD :]
            told += [f"{run.name}: {line.removeprefix('ssdqual: ')}" for line in lines]
        if len(self.runs) > TOLD:
            told.append(f"and {len(self.runs) - TOLD} bays more: {', '.join(run.name for run in self.runs[TOLD:])}")
        return [safe_text.line(f"ssdqual: {each}", summary.LINE_CHARACTERS) for each in told]

    def finish(self, status: int) -> bool:
        """The last word in ``fleet.json``, the page and the summary; false if the first could not be written."""
        self.record = folders.closed(self.record, utc_now(), status)
        try:
            folders.write(self.record)
        except JournalError as error:
            self.incomplete = str(error)
        if self.runs[0].settings.page:
            self.page = artefacts.make_of_fleet(self.path)
        self.complaint = artefacts.tell_of_fleet(self.path, summarised=bool(self.page and not self.page.failed))
        return not self.incomplete

    def tell(self, reporter: pytest.TerminalReporter, recorders: Sequence[Recorder]) -> None:
        """What came of the bays: in full of few, of many in full where something is wrong; then side by side."""
        full = recorders if len(recorders) <= TOLD else [each for each in recorders if each.has_failed][:TOLD]
        for each in full:
            each.tell(reporter)
        reporter.write_sep("=", f"{len(recorders)} bays")
        for line in artefacts.side_by_side(self.path, reporter._tw.fullwidth):
            summary.tell(reporter, line)
        if self.page:
            summary.tell(reporter, f"{self.page}", yellow=bool(self.page.failed))
        if self.complaint:
            summary.tell(reporter, self.complaint, yellow=True)
        summary.tell(reporter, f"run folder: {self.path}")
        if self.incomplete:
            summary.tell(reporter, f"the run folder is not complete: {self.incomplete}", red=True)


def goes_on(settings: Settings) -> bool:
    """Whether it is a run of several bays that is to be continued, if only with one of them.

    Its tests bear the name of the bay: without that, all that was judged would be judged once more, by other names.
    """
    if settings.resume is None:
        return False
    try:
        return folders.is_fleet(resume.find(settings.run_root, settings.resume))
    except resume.NotResumable:
        return False


def begin(config: pytest.Config, settings: Settings) -> FleetRun:
    """All bays, opened; ``pytest.UsageError`` with everything that is wrong with any of them."""
    _require_workers(config, len(settings.bays))
    past = _resumed(settings)
    beginnings = [Beginning.of(config, _settings(settings, asked, past), asked.name) for asked in settings.bays]
    with ExitStack() as stack:
        for each in beginnings:
            stack.callback(each.stack.close)
        ending = ExitStack()  # of all of them, so that none is cut off while it is finished
        config.add_cleanup(ending.close)
        end_in_order_on_sigterm(ending)
        record = None
        try:
            record = _record(settings, past)
            # Once for all: with a hundred bays and years of journals this alone would take minutes.
            ours = left_behind(settings.run_root, *([record.path.parent] if past else []))
            for each in beginnings:
                each.ours = ours
            open_all(beginnings, record.path)
            remarks = apart(beginnings)
            for each in beginnings:
                each.note_begun()
        except KeyboardInterrupt:
            if record:
                with put_off():  # a second Ctrl-C would leave fleet.json without the exit status
                    _close_early(record, pytest.ExitCode.INTERRUPTED)
            raise
        except (RigError, pytest.UsageError) as error:
            if record:
                _close_early(record, pytest.ExitCode.USAGE_ERROR)
            raise error if isinstance(error, pytest.UsageError) else pytest.UsageError(str(error)) from error
        for each in beginnings:
            if each.channel:  # workers have connections of their own, and there may be a hundred of these for days
                each.channel.close()
        stack.pop_all()
    return FleetRun(record, tuple(each.run for each in beginnings if each.run), remarks)


def _require_workers(config: pytest.Config, bays: int) -> None:
    if config.option.collectonly:
        raise pytest.UsageError(
            f"--collect-only looks at one bay, and there are {bays}: choose one with --ssd-bay=NAME"
        )
    if not xdist.is_distributed(config):
        if bays == 1:
            raise pytest.UsageError(
                "a run of several bays goes on with workers of pytest-xdist, also for one: add -n 1"
            )
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
        if not any(map(_has_begun, folders.bay_folders(folder))):
            raise ValueError(f"{folder} has nothing to resume: none of its bays was begun")  # noqa: TRY301
    except (resume.NotResumable, ValueError) as error:
        raise pytest.UsageError(f"--ssd-resume: {error}") from error
    known = {bay.name for bay in found.bays}
    if strange := [bay.name for bay in settings.bays if bay.name not in known]:
        raise pytest.UsageError(
            f"--ssd-resume: {folder} has no bay {', '.join(strange)}; it has {', '.join(sorted(known))}"
        )
    return found


def _settings(settings: Settings, asked: BayAsked, past: folders.Fleet | None) -> Settings:
    """Those of one bay; ``pytest.UsageError`` if the baseline is a fleet without it."""
    own = replace(settings.of(asked), is_of_several=True)
    if own.baseline:
        own = replace(own, baseline=_baseline(own.baseline, settings.run_root, asked.name))
    if own.openmetrics:  # a file of its own, as each of them is replaced as a whole
        own = replace(own, openmetrics=own.openmetrics.with_stem(f"{own.openmetrics.stem}-{asked.name}"))
    folder = past.path / folders.folder_of(asked.name) if past else None
    return replace(own, resume=str(folder.absolute()) if folder and _has_begun(folder) else None)


def _has_begun(folder: Path) -> bool:
    there = (folder / RECORDS).is_file()
    return there and any(record.kind == "run_started" for record in read_records(folder, "run_started"))


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


def _close_early(record: folders.Fleet, status: pytest.ExitCode) -> None:
    with suppress(JournalError):
        folders.write(folders.closed(record, utc_now(), int(status)))
