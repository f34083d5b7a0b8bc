"""A run of several bays, on the controller: opens all bays before collection, and reports them together.

Each bay is a run of its own, with its own run folder (``report.fleet.folder``) and its own worker (``scheduler``). No
two bays may share a drive. A refusal of one bay refuses all of them, before anything is touched: a run of a rack must
not silently become a run of a part of it.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.fleet import xdist
from pytest_ssdqual.plugin.options.inventory import BayRequest
from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.plugin.session import artefacts
from pytest_ssdqual.plugin.session.artefacts import Artefact
from pytest_ssdqual.plugin.session.bay_start import STOPPED, BayStart
from pytest_ssdqual.plugin.session.recorder import Recorder
from pytest_ssdqual.plugin.session.resume import budget_s
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.plugin.session.stop import end_in_order
from pytest_ssdqual.plugin.watch.terminal import columns
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.fleet import folder as folders
from pytest_ssdqual.report.fleet.folder import FleetBay
from pytest_ssdqual.report.run_folder.find import NoSuchRun, find_any
from pytest_ssdqual.report.run_folder.journal import RECORDS, Journal, JournalError
from pytest_ssdqual.report.run_folder.manifest import Manifest
from pytest_ssdqual.report.run_folder.reader import DECISIVE, RESUMED, WORSENED, RunReader, left_behind, read_records
from pytest_ssdqual.report.run_folder.records import WorsenedDrive
from pytest_ssdqual.report.run_summary.run_view import OF_TESTS
from pytest_ssdqual.report.run_summary.unresolved import unresolved
from pytest_ssdqual.report.terminal import summary
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard import consent, refusals
from pytest_ssdqual.rig.guard.consent import Consent
from pytest_ssdqual.rig.machine.interrupts import put_off
from pytest_ssdqual.rig.machine.machine import RigError, utc_now

#: Number of bays that are opened at once; opening is mostly waiting for machines.
AT_ONCE = 16
ANOTHER, UNFORESEEN = "another bay of the run was refused", "the run did not begin, because of an unforeseen error"
#: Number of bays with a summary of their own; the page has all.
MOST_SHOWN = 12


def open_all(starts: Sequence[BayStart], folder: Path) -> None:
    """Open every bay, several at a time; raise ``pytest.UsageError`` with the errors of each.

    Daemon threads open them, so that Ctrl-C does not wait for a machine or for drives of another run. This thread boots
    the labs, one after the other, because the kernel ends QEMU with the thread that started it (prctl(2)).
    """
    at_once = threading.Semaphore(AT_ONCE)
    wrong: dict[str, BaseException] = {}

    def work(start: BayStart) -> None:
        try:
            start.open(partial(_journal, folder, start.name))
        except KeyboardInterrupt:  # only this thread has it
            raise
        except BaseException as error:
            wrong[start.name] = error

    def wait(start: BayStart) -> None:
        with at_once:
            work(start)

    threads = []
    for each in starts:
        if each.settings.devices.lab is None:
            threads.append(threading.Thread(target=wait, args=(each,), name=f"ssdqual-open-{each.name}", daemon=True))
            threads[-1].start()
    for each in starts:
        if each.settings.devices.lab is not None:
            work(each)
    for thread in threads:
        thread.join()
    for reason in wrong.values():
        if not isinstance(reason, (pytest.UsageError, RigError)):
            raise reason
    if wrong:
        order = [each.name for each in starts if each.name in wrong]
        raise pytest.UsageError("\n".join(_of_bay(name, wrong[name]) for name in order))


def _of_bay(name: str, error: BaseException) -> str:
    """Return the lines of an error, each with the name of the bay."""
    return "\n".join(f"{name}: {line}" for line in str(error).split("\n"))


def _journal(fleet: Path, name: str) -> Journal:
    """Return the journal of a bay; its folder exists if an earlier session was refused or killed."""
    folder = fleet / folders.folder_of(name)
    if not (folder / RECORDS).is_file():
        return Journal.create_at(folder)
    journal = Journal.open(folder)
    journal.unseal()
    return journal


def apart(starts: Sequence[BayStart]) -> tuple[str, ...]:
    """Return the paths that bays share; raise ``pytest.UsageError`` for a shared drive, or by policy for a path."""
    from pytest_ssdqual.rig.guard import shared_paths

    bays = {each.name: each.run.qualification.bay.drives for each in starts if each.run}
    wrong = list(shared_paths.same_drives(bays))
    everything = [drive for drives in bays.values() for drive in drives]
    useless = tuple(refusals.useless_consents(everything, starts[0].settings.consents))
    wrong += [refusals.explain(useless)] if useless else []
    wrong += _consents_for_several(bays, starts[0].settings.consents)
    first = starts[0]
    what = first.settings.on_shared_path(acceptance=first.protocol.acceptance)
    shared: tuple[str, ...] = ()
    if not wrong and what != "ignore":
        opened = {each.name: each.opened.channel for each in starts if each.run and each.opened}
        shared = shared_paths.between({name: shared_paths.paths(at, bays[name]) for name, at in opened.items()})
        if what == "error":
            wrong += [f"{each}; ssd_shared_path = warn permits it" for each in shared]
    if wrong:
        raise pytest.UsageError("\n".join(wrong))
    return shared


def clear_all(starts: Sequence[BayStart]) -> None:
    """Remove what earlier runs left on the drives of each bay; raise ``pytest.UsageError`` with the first error."""
    for each in starts:
        try:
            each.clear()
        except (pytest.UsageError, RigError) as error:
            raise pytest.UsageError(_of_bay(each.name, error)) from error


def _consents_for_several(bays: Mapping[str, Sequence[Drive]], given: Collection[Consent]) -> Iterator[str]:
    """Yield an error for a consent that applies to drives with the same serial number in several bays."""
    for each in sorted(given, key=lambda each: (each.risk.value, each.name)):
        where = [bay for bay, drives in bays.items() if any(each.name in consent.names(drive) for drive in drives)]
        if len(where) > 1:
            yield (
                f"{consent.options([each])}: drives of the bays {', '.join(where)} have that serial: give the WWN of "
                "the one that is meant, or run these bays one by one with --ssd-bay"
            )


def _refuse(starts: Sequence[BayStart], reason: str) -> None:
    """Complete the run folders of all bays whose own refusal is not noted."""
    for each in starts:
        with suppress(JournalError):  # what stopped the run is the error to report
            each.refuse(reason)


@dataclass(slots=True)
class FleetRun:
    """A run of several bays."""

    record: folders.Fleet
    runs: tuple[BayRun, ...]
    #: Remarks for the header, such as shared paths.
    remarks: tuple[str, ...]
    #: Why ``fleet.json`` could not be written; empty if it was.
    incomplete: str = ""
    artefacts: list[Artefact] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.record.path

    def header(self) -> list[str]:
        """Return the lines for ``pytest_report_header``."""
        runs = [each.qualification for each in self.runs]
        first = runs[0]
        drives = sum(len(run.bay.drives) for run in runs)
        protocol = first.protocol.name if first.acceptance else f"{first.protocol.name} (not for acceptance)"
        rows = [f"{len(runs)} bays, {drives} drives, protocol {protocol}, run folder {self.path}", *self.remarks]
        for number, run in enumerate(runs):
            # All bays show their remarks; only the first ones show drives and spec.
            lines = summary.header_lines(replace(run.header, run_folder=None))[number >= MOST_SHOWN :]
            rows += [f"{run.name}: {line.removeprefix('ssdqual: ')}" for line in lines]
        if len(runs) > MOST_SHOWN:
            rows.append(f"and {len(runs) - MOST_SHOWN} more bays: {', '.join(run.name for run in runs[MOST_SHOWN:])}")
        return [safe_text.line(f"ssdqual: {each}", summary.LINE_CHARACTERS) for each in rows]

    def left(self) -> dict[str, tuple[str, bool]]:
        """Return why bays that this session does not resume are not green, and whether it is a finding, by name."""
        here = {run.qualification.name for run in self.runs}
        found = {}
        for bay in self.record.bays:
            if bay.name not in here and (status := _exit_status(self.path / bay.folder)) != pytest.ExitCode.OK:
                why = "did not end" if status is None else f"ended with exit status {status}"
                is_failed = status == pytest.ExitCode.TESTS_FAILED or _has_findings(self.path / bay.folder)
                found[bay.name] = f"this session does not resume it, and it {why}", is_failed
        return found

    def finish(self, status: int) -> bool:
        """Write the end into ``fleet.json``, the page and the summary; return False if ``fleet.json`` could not be
        written.
        """
        self.record = folders.closed(self.record, utc_now(), status)
        try:
            folders.write(self.record)
        except JournalError as error:
            self.incomplete = str(error)
        self.artefacts = artefacts.write_of_fleet(self.path, page=self.runs[0].qualification.settings.page)
        return not self.incomplete

    def write_summary(self, reporter: pytest.TerminalReporter, recorders: Sequence[Recorder]) -> None:
        """Print the summaries of the bays (of many only those with failures), then the fleet summary."""
        full = (
            recorders if len(recorders) <= MOST_SHOWN else [each for each in recorders if each.has_failed][:MOST_SHOWN]
        )
        for each in full:
            each.write_summary(reporter)
        reporter.write_sep("=", f"{len(recorders)} bays")
        for line in artefacts.side_by_side(self.path, columns(reporter)):
            summary.write_line(reporter, line)
        artefacts.tell(reporter, self.artefacts)
        summary.write_line(reporter, f"run folder: {self.path}")
        if self.incomplete:
            summary.write_line(reporter, f"the run folder is not complete: {self.incomplete}", red=True)


def _exit_status(folder: Path) -> int | None:
    """Return the exit status of a bay; None if it has none that can be read."""
    try:
        return Manifest.read(folder).exit_status
    except (OSError, ValueError):
        return None


def _has_findings(folder: Path) -> bool:
    """Return whether a bay whose session ended early has a failure or a defective drive on record.

    True if a record cannot be read, because it may be of one. A bay that never began has no records.
    """
    try:
        story = RunReader.read(folder, *OF_TESTS, RESUMED, *DECISIVE)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    defects = any(worsened.defects for worsened in story.contents(WorsenedDrive, WORSENED))
    return bool(story.unreadable or unresolved(story).failed or defects)


def goes_on(settings: Settings) -> bool:
    """Return True if the run to resume is a run of several bays, even if only one of them resumes.

    Its tests have the bay's name in their ids; other ids would repeat everything.
    """
    if settings.resume is None:
        return False
    try:
        return folders.is_fleet(find_any(settings.resume, settings.run_root))
    except NoSuchRun:
        return False


def starts_of(config: pytest.Config, settings: Settings) -> tuple[folders.Fleet | None, list[BayStart]]:
    """Return the fleet to resume, and the start of each bay; raise ``pytest.UsageError`` for a wrong request."""
    past, begun = _resumed(settings)
    return past, [
        BayStart.of(config, _settings(settings, asked, begun.get(asked.name)), asked.name) for asked in settings.bays
    ]


def begin(config: pytest.Config, settings: Settings) -> FleetRun:
    """Open all bays and write their first records; raise ``pytest.UsageError`` with all errors."""
    _require_workers(config, len(settings.bays))
    past, starts = starts_of(config, settings)
    _require_time(config, starts)
    with ExitStack() as stack:
        for each in starts:
            stack.callback(each.stack.close)
        ending = ExitStack()  # closed after all bays have finished
        config.add_cleanup(ending.close)
        end_in_order(ending)
        record = None
        try:
            record = _record(settings, past)
            # Read once for all bays: a hundred times years of journals would take minutes.
            left = left_behind(settings.run_root, *([record.path.parent] if past else []))
            for each in starts:
                each.left = left
            open_all(starts, record.path)
            remarks = apart(starts)
            clear_all(starts)
            for each in starts:
                each.note_begun()
        except KeyboardInterrupt:
            if record:
                with put_off():  # a second Ctrl-C would leave fleet.json without the exit status
                    _close_early(record, past, pytest.ExitCode.INTERRUPTED)
                    _refuse(starts, STOPPED)
            raise
        except Exception as error:
            is_refusal = isinstance(error, (RigError, pytest.UsageError))
            _refuse(starts, ANOTHER if is_refusal else UNFORESEEN)
            if record:
                _close_early(record, past, pytest.ExitCode.USAGE_ERROR)
            if not is_refusal:
                raise
            raise pytest.UsageError(str(error)) from error
        for each in starts:
            if each.opened:  # workers open their own connections; these would stay for days
                each.opened.channel.close()
        stack.pop_all()
    return FleetRun(record, tuple(each.run for each in starts if each.run), remarks)


def _require_workers(config: pytest.Config, bays: int) -> None:
    if config.option.collectonly:
        raise pytest.UsageError(
            f"--collect-only works with one bay, and there are {bays}: choose one with --ssd-bay=NAME"
        )
    if not xdist.is_distributed(config):
        if bays == 1:
            raise pytest.UsageError(
                "a run of several bays resumes with workers of pytest-xdist, even with one bay: add -n 1"
            )
        raise pytest.UsageError(
            f"{bays} bays need workers of pytest-xdist (pip install pytest-xdist): add -n auto to run all of them at "
            "once, -n 1 for one after the other, or choose one with --ssd-bay=NAME"
        )


def _require_time(config: pytest.Config, starts: Sequence[BayStart]) -> None:
    """Raise ``pytest.UsageError`` if a bay would wait for a worker while its budget passes."""
    has_budget = any(budget_s(each.settings, each.resumed) for each in starts)
    if has_budget and (workers := xdist.workers(config)) < len(starts):
        raise pytest.UsageError(
            f"--ssd-budget needs a worker for each of {len(starts)} bays, and -n starts {workers}: add "
            f"-n {len(starts)}, or run the bays one after the other, each with a budget of its own and --ssd-bay=NAME"
        )


def _resumed(settings: Settings) -> tuple[folders.Fleet | None, Mapping[str, Path]]:
    """Return the fleet to resume, and the folders of the requested bays that began, by name.

    ``pytest.UsageError`` if there is none, or if such a bay cannot be read.
    """
    if settings.resume is None:
        return None, {}
    with usage_error(ValueError, OSError, of="--ssd-resume"):
        folder = find_any(settings.resume, settings.run_root)
        if not folders.is_fleet(folder):
            raise ValueError(f"{folder} is the run of a single bay: choose it with --ssd-bay=NAME")
        found = folders.read(folder)
        own = {bay.name: folder / folders.folder_of(bay.name) for bay in settings.bays}
        begun = {name: path.absolute() for name, path in own.items() if _has_begun(path)}
        if not begun and not any(map(_has_begun, folders.bay_folders(folder))):
            raise ValueError(f"{folder} has nothing to resume: none of its bays was begun")
    known = {bay.name for bay in found.bays}
    if strange := [bay.name for bay in settings.bays if bay.name not in known]:
        raise pytest.UsageError(
            f"--ssd-resume: {folder} has no bay {', '.join(strange)}; it has {', '.join(sorted(known))}"
        )
    return found, begun


def _settings(settings: Settings, asked: BayRequest, begun: Path | None) -> Settings:
    """Return the settings of one bay, which resumes the run folder ``begun``.

    ``pytest.UsageError`` if the baseline is a fleet without the bay.
    """
    own = replace(settings.of(asked), is_of_several=True)
    if own.baseline:
        own = replace(own, baseline=_baseline(own.baseline, settings.run_root, asked.name))
    if own.openmetrics:  # one file for each bay, as writing replaces the whole file
        own = replace(own, openmetrics=own.openmetrics.with_stem(f"{own.openmetrics.stem}-{asked.name}"))
    return replace(own, resume=str(begun) if begun else None)


def _has_begun(folder: Path) -> bool:
    there = (folder / RECORDS).is_file()
    return there and any(record.kind == "run_started" for record in read_records(folder, "run_started"))


def _baseline(name: str, root: Path, bay: str) -> str:
    """Return the baseline of a bay: of a fleet the bay of the same name; a run of one bay serves all bays."""
    with usage_error(NoSuchRun, of="--ssd-baseline"):
        found = find_any(name, root)
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


def _close_early(record: folders.Fleet, past: folders.Fleet | None, status: pytest.ExitCode) -> None:
    """Write the end of a fleet that did not begin; one that did not go on has the end of its last session again."""
    with suppress(JournalError):
        folders.write(past or folders.closed(record, utc_now(), int(status)))
