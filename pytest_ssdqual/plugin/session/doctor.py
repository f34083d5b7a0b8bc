"""``--ssd-doctor``: what a run would need of a machine and its drives, and what prevents it.

It asks what a session asks before it begins, by the same functions, but goes on after an objection. It only reads:
it takes no lease, loads no module, stops no array, and leaves no file behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from pytest_ssdqual.plugin.bay import bay as bays
from pytest_ssdqual.plugin.bay import expectation, fitting, sheets
from pytest_ssdqual.plugin.bay.bay import Bay, ExaminedDrives
from pytest_ssdqual.plugin.fleet import bays as fleet
from pytest_ssdqual.plugin.options import arguments
from pytest_ssdqual.plugin.options.settings import notify_stall_s, read
from pytest_ssdqual.plugin.session.bay_start import BayStart
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.stop import end_in_order
from pytest_ssdqual.plugin.watch.receivers import receivers
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.terminal.summary import LINE_CHARACTERS
from pytest_ssdqual.report.view.document import Section, sentences, text_lines
from pytest_ssdqual.report.view.tables import State, Table, TextLine
from pytest_ssdqual.rig.drives.survey import Drive, UnusablePattern
from pytest_ssdqual.rig.fio import engine_limits, features
from pytest_ssdqual.rig.fio.load import IO_URING, LIBAIO
from pytest_ssdqual.rig.guard import consent, refusals
from pytest_ssdqual.rig.machine import facts, scripts
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import SENTENCE_CHARACTERS, RigError
from pytest_ssdqual.rig.md import driver

Answer = TypeVar("Answer")
#: Facts that are the version of a tool under another name.
VERSIONS = {"lsblk": "util-linux"}
#: ``kernel.io_uring_disabled``: forbidden also to root.
FORBIDDEN_TO_ALL = "2"
#: Module without which there is no level, and the level of the suites that run by default.
DRIVER, DEFAULT_LEVEL = "md_mod", RaidLevel.RAID5


def main(config: pytest.Config) -> int:
    """Print the diagnosis of each bay; return 0 if a run could begin on all of them, else 1.

    Raises ``pytest.UsageError`` for a wrong request.
    """
    config._do_configure()  # as pytest does for --help
    try:
        arguments.require(config)
        receivers(config)
        notify_stall_s(config)
        return int(not all([_tell(config, start) for start in _starts(config)]))
    except KeyboardInterrupt:
        return int(pytest.ExitCode.INTERRUPTED)
    except (pytest.UsageError, UnusablePattern) as error:  # it may quote a drive or a file
        raise pytest.UsageError(safe_text.lines(str(error), SENTENCE_CHARACTERS)) from error


def _starts(config: pytest.Config) -> list[BayStart]:
    """Return the start of each bay, checked as far as possible without a machine."""
    settings = read(config)
    if settings.read_only:
        raise pytest.UsageError("--ssd-doctor looks for what prevents a run that writes: leave --ssd-read-only out")
    config.option.collectonly = True  # nor is the folder of a run to resume locked
    if len(settings.bays) > 1 or fleet.goes_on(settings):
        return fleet.starts_of(config, settings)[1]
    return [BayStart.of(config, settings.of(bay), bay.name) for bay in settings.bays]


def _tell(config: pytest.Config, start: BayStart) -> bool:
    """Print the diagnosis of a bay; return whether a run could begin there."""
    with ExitStack() as stack:
        end_in_order(stack)
        stack.callback(start.stack.close)
        diagnosis = examined(start)
    writer = config.get_terminal_writer()
    for line in text_lines(diagnosis.document(), writer.fullwidth):
        writer.line(safe_text.line(line.text, LINE_CHARACTERS), **dict.fromkeys(line.markup, True))
    return not diagnosis.objections


@dataclass(slots=True)
class Diagnosis:
    """The state of one machine."""

    machine: str
    sections: list[Section] = field(default_factory=list)
    #: Each prevents a run.
    objections: list[str] = field(default_factory=list)
    remarks: tuple[str, ...] = ()

    def attempt(self, step: Callable[[], Answer]) -> Answer | None:
        """Return the answer of a step, or keep its objection and return None."""
        try:
            return step()
        except UnusablePattern:
            raise
        except (RigError, ValueError, pytest.UsageError) as error:
            self.object(*str(error).splitlines())
            return None

    def object(self, *sentences: str) -> None:
        self.objections += [each for each in sentences if each not in self.objections]

    def document(self) -> Iterator[Section]:
        """Yield all sections, the conclusion last."""
        yield from self.sections
        if self.remarks:
            yield Section("Remarks", sentences(*self.remarks))
        if self.objections:
            title = f"{self.machine}: a run could not begin"
            yield Section(title, tuple(TextLine(each, ("red",)) for each in self.objections))
        else:
            yield Section(f"{self.machine}: a run could begin", sentences("Nothing was written, and no lease taken."))

    def tabulate(self, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str | State, ...]]) -> None:
        self.sections.append(Section(title, table=Table(columns, tuple(rows))))


def examined(start: BayStart) -> Diagnosis:
    """Return the diagnosis of a bay; raise ``UnusablePattern`` for a pattern that names no drive."""
    diagnosis = Diagnosis(start.settings.devices.machine)

    def examine() -> None:
        target, patterns, _ = start.opener.where()
        channel = bays.connected(target, start.stack)
        known = facts.facts(channel)
        _examine_tools(diagnosis, channel, known, start.protocol.load.engine)
        _examine_md(diagnosis, channel)
        seen = diagnosis.attempt(lambda: start.opener.examine(channel, patterns))
        if seen is not None:
            _examine_guard(diagnosis, seen)
            _examine_drives(diagnosis, channel, start, seen, Bay(target, (), known))

    diagnosis.attempt(examine)
    return diagnosis


def _examine_tools(diagnosis: Diagnosis, channel: Channel, known: Mapping[str, str], engine: str) -> None:
    """Look for the programs of a run, and try fio if it is there; ``known`` are facts, ``engine`` is the protocol's."""
    packages = {**facts.TOOLS, **facts.NVME_TOOLS, **facts.ATA_TOOLS}
    missing = facts.missing_tools(channel, packages)

    def version(tool: str) -> str | State:
        if tool in missing:
            return State("missing", Finding.FAIL if tool in facts.TOOLS else Finding.INCONCLUSIVE)
        return known.get(VERSIONS.get(tool, tool), "installed")

    tools = [(facts.EITHER.get(tool, tool), version(tool), package) for tool, package in packages.items()]
    kernel = known.get("kernel", "unknown kernel")
    diagnosis.tabulate(f"{diagnosis.machine}: {kernel}", ("tool", "version", "package"), tools)
    diagnosis.attempt(lambda: facts.require_tools(channel))
    if "fio" not in missing:
        diagnosis.attempt(lambda: features.probe(channel))
        _examine_engines(diagnosis, channel, engine)


def _examine_engines(diagnosis: Diagnosis, channel: Channel, engine: str) -> None:
    """Load fio's engines, and read the limits that end fio before its first I/O."""
    script = scripts.answer(channel, engine_limits.SCRIPT)
    limits, _ = engine_limits.limits_in(script.text.splitlines())
    lacking = {name: features.lacks_engine(channel, name) for name in (LIBAIO, IO_URING)}
    if limits.get("kernel.io_uring_disabled") == FORBIDDEN_TO_ALL:
        lacking[IO_URING] = f"forbidden: kernel.io_uring_disabled={FORBIDDEN_TO_ALL}"
    if engine == IO_URING and lacking[IO_URING]:
        diagnosis.object(
            f"the protocol's engine io_uring cannot be used: {lacking[IO_URING]}; {engine_limits.OTHER_ENGINE}"
        )
    memory = limits.get("memlock", "")
    rows = [
        *(
            (f"engine {name}", State(why, Finding.INCONCLUSIVE) if why else "can be loaded")
            for name, why in lacking.items()
        ),
        ("locked memory", f"{memory} KiB" if memory.isdecimal() else memory),
        ("open files of a process", limits.get("nofile", "")),
        ("asynchronous I/Os of all processes (fs.aio-max-nr)", limits.get("fs.aio-max-nr", "")),
    ]
    diagnosis.tabulate("fio and its limits", ("", "state"), [row for row in rows if str(row[1])])


def _examine_md(diagnosis: Diagnosis, channel: Channel) -> None:
    lacking = driver.missing(channel, driver.MODULES, load=False)
    if needed := [lacking[name] for name in (DRIVER, driver.MODULES[DEFAULT_LEVEL]) if lacking.get(name)]:
        diagnosis.object(driver.without(channel, needed))
    elif others := list(filter(None, lacking.values())):
        diagnosis.remarks += (driver.without(channel, others),)

    def state(module: str) -> str | State:
        words = [lacking[name] for name in (DRIVER, module) if name in lacking]
        if any(words):
            return State("missing", Finding.FAIL)
        return State("unknown: no modprobe", Finding.INCONCLUSIVE) if words else "available"

    rows = [(level.value, state(module)) for level, module in driver.MODULES.items()]
    diagnosis.tabulate("md driver", ("level", "state"), rows)


def _examine_guard(diagnosis: Diagnosis, seen: ExaminedDrives) -> None:
    """Tell which questions of the guard the machine can answer, and what the guard refuses."""
    blind = {spot.source for spot in seen.topology.blind}
    rows = [
        (source.value, question, State("cannot answer", Finding.INCONCLUSIVE) if source in blind else "answers")
        for source, (question, _) in refusals.QUESTIONS.items()
    ]
    diagnosis.tabulate("Guard", ("source", "what it shows", "state"), rows)
    diagnosis.object(*refusals.explain(seen.refused).splitlines())


def _examine_drives(diagnosis: Diagnosis, channel: Channel, start: BayStart, seen: ExaminedDrives, empty: Bay) -> None:
    """Show each drive's sheet and its consent; smartctl runs only on drives that the guard passed.

    ``empty`` is the bay without its drives.
    """
    refused = {refusal.kname: refusal for refusal in seen.refused}
    is_blind = any(refusal.blind for refusal in seen.refused)
    passed = [drive for drive in seen.drives if not is_blind and drive.kname not in refused]
    identified = diagnosis.attempt(lambda: bays.identified(channel, passed))
    known = passed if identified is None else identified
    are_known = identified is not None and len(identified) == len(seen.drives)
    diagnosis.attempt(lambda: bays.require_tools_of(channel, seen.drives))
    diagnosis.attempt(lambda: bays.require_unlocked(channel, passed))
    diagnosis.remarks += seen.remarks(known, start.settings)
    drives = [next((each for each in known if each.kname == drive.kname), drive) for drive in seen.drives]
    bay = replace(empty, drives=tuple(drives))
    run = diagnosis.attempt(lambda: start.qualified(start.resumed.bay(bay) if start.resumed else bay))
    if run and are_known:
        diagnosis.remarks += diagnosis.attempt(lambda: start.require_earlier(run)) or ()
    sheet_of = diagnosis.attempt(lambda: _sheets(diagnosis, run, are_known=are_known)) if run else None

    def row(drive: Drive) -> tuple[str | State, ...]:
        refusal = refused.get(drive.kname)
        free = "not asked" if is_blind else "free"
        state = State("refused", Finding.FAIL) if refusal else free
        options = consent.options(refusal.consents) if refusal else ""
        size, sheet = format_capacity(drive.size_bytes), (sheet_of or {}).get(drive.kname, "")
        return drive.path, drive.model or "", drive.serial or "", drive.firmware or "", size, sheet, state, options

    columns = ("drive", "model", "serial", "firmware", "capacity", "sheet", "state", "consent")
    diagnosis.tabulate("Drives", columns, [row(drive) for drive in drives])


def _sheets(diagnosis: Diagnosis, run: Qualification, *, are_known: bool) -> dict[str, str]:
    """Return the sheet of each drive by its kernel name, or the nearest one; keep what is wrong with the drives.

    Likeness is judged if ``are_known`` to smartctl: the kernel may spell another firmware.
    """
    diagnosis.attempt(lambda: expectation.require(run))
    if are_known:
        diagnosis.attempt(lambda: fitting.require(run))
    if run.without_sheet and not run.settings.specs:
        diagnosis.object(sheets.unknown(run.bay.drives, run.without_sheet))
    if why := fitting.refused_array(run):
        diagnosis.remarks += (why,)
    return {drive.kname: _sheet(run, drive) for drive in run.bay.drives}


def _sheet(run: Qualification, drive: Drive) -> str:
    key = run.spec.of(drive.name).key
    if key != specs.DEFAULT or run.settings.specs:
        return key
    near = sheets.nearest(drive.model or "")
    return f"none; near {near.key}" if near else "none"
