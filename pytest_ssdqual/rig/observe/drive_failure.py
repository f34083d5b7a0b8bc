"""Evidence after a failed measurement: kernel messages, md's member states and SMART data of each drive.

``attributed`` surrounds the part of a measurement in which the drives are under load. If that raises, the evidence is
collected, recorded and judged by ``qual.validity.drive_failure``: the error becomes ``DriveFailed``, an
``InvalidMeasurement`` with the reason and what a person can do, or stays as it is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace

from pytest_ssdqual.qual.measured.environment import KernelLog
from pytest_ssdqual.qual.validity.drive_failure import DriveTrace, FailureAttribution, attribute
from pytest_ssdqual.qual.validity.fault_codes import Fault
from pytest_ssdqual.qual.validity.other_users import running
from pytest_ssdqual.rig.drives.failed import DriveFailed, DrivesUndecided
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.guard.refusals import DrivesGone
from pytest_ssdqual.rig.health import health
from pytest_ssdqual.rig.health.health import DriveUnread
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import DeadlineExceeded, Disturbed, InvalidMeasurement, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import environment, kernel_log, repaired
from pytest_ssdqual.rig.observe.environment import EnvironmentReading

SCRIPT = scripts.text("drive_states.sh")
#: Origins that drives share, so that none of several side by side can be left out.
SHARED = Fault.HOST, Fault.PATH
#: Most seconds until the self-test of a drive ends, and between two readings of it.
SELF_TEST_S, PAUSE_S = 600.0, 30.0
#: Number of attempts to read SMART data after a failure.
ATTEMPTS = 2
#: Number of kernel messages that an error quotes; the records have more.
QUOTED = 5
#: Names that belong to one drive alone: of disks, NVMe controllers and paths, SCSI addresses and targets, end devices
#: of SAS, libata's devices, USB devices.
OWN_NAME = re.compile(
    r"sd[a-z]+|nvme\d+(c\d+)?(n\d+)?|(target)?\d+:\d+:\d+(:\d+)?|end_device-[\d:]+|ata\d+\.\d\d|\d+-\d+(\.\d+)*",
    re.ASCII,
)
#: libata's port, which only a port multiplier shares among drives.
ATA_PORT = re.compile(r"ata\d+", re.ASCII)
#: The function of an NVMe drive, and the port above it, whose link leads to this drive alone.
PCI_FUNCTION = re.compile(r"\+?[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)


@contextmanager
def attributed(
    setup: Setup, array: Array, before: EnvironmentReading | None = None, workload: str = "", kind: str = ""
) -> Iterator[list[str]]:
    """Attribute an error of the block to a drive, or to what prevented it, and record the kernel's messages.

    ``before`` is the reading since which they count, without it the end of the latest load on the array; ``kind`` is
    that of the fio process; the list takes the name of its raw file. Raises ``DriveFailed``; ``InvalidMeasurement`` if
    another reason is known; else the error itself, which quotes the gravest messages.
    """
    raw: list[str] = []
    try:
        yield raw
    except (DriveFailed, LeaseLost):
        raise
    except RigError as error:
        if error.ends_run:
            raise
        since = before or setup.readings.of(array)
        kernel = _kernel(setup, array, since)
        if before is not None:
            environment.note_failed(setup.logbook, array, workload, kind, "".join(raw), error, kernel)
        if isinstance(error, Disturbed):  # no fault of a device; the next attempt decides
            raise
        attribution = _attribution(setup, array, since, error, kernel)
        if attribution.origin is Fault.DRIVE:
            setup.failures.failed |= {drive.serial: drive for drive in attribution.drives}
            raise DriveFailed(str(array.geometry), attribution.drives) from error
        if attribution.why:
            raise _prevented(error, attribution, array) from error
        if quoted := kernel_log.gravest(kernel, QUOTED) if kernel else ():
            error.args = (f"{error} (kernel log: {'; '.join(quoted)})",)
        raise


def _prevented(error: RigError, found: FailureAttribution, array: Array) -> InvalidMeasurement:
    """Return the error of a measurement that something else than a defect prevented.

    ``DrivesUndecided`` if it is about some of several drives side by side: the others are measured without them.
    """
    sentence = f"{found.why} ({error})"
    is_about_some = 0 < len(found.about) < len(array.members) and found.origin not in SHARED
    if array.geometry.is_side_by_side and is_about_some:
        return DrivesUndecided(sentence, dict.fromkeys(found.about, found.why))
    return InvalidMeasurement(sentence)


def reading_before(setup: Setup, array: Array, *, is_measured: bool = True) -> EnvironmentReading:
    """Take the reading before a load; a drive that prevents it is attributed as under the load.

    A drive that runs a self-test is not measured: ``DrivesUndecided`` if others are side by side with it, else
    ``InvalidMeasurement``. To condition a drive it does not matter.
    """
    before = _reading_before(setup, array)
    if is_measured and environment.self_tests(array, before):
        before = _after_self_tests(setup, array, before)
        if array.geometry.is_side_by_side:
            setup.held.require(array.members)  # the wait took minutes, in which anybody may have begun to use them
    setup.readings.array, setup.readings.before, setup.readings.after = array, before, None
    return before


def _reading_before(setup: Setup, array: Array) -> EnvironmentReading:
    with attributed(setup, array):
        return environment.take_reading(setup.machine, array)


def _after_self_tests(setup: Setup, array: Array, before: EnvironmentReading) -> EnvironmentReading:
    """Wait until no drive runs a self-test, once and at most ``SELF_TEST_S``: smartd's daily one takes two minutes."""
    given_up, waited_s = setup.readings.in_self_test, 0.0
    while tests := environment.self_tests(array, before):
        faults = {serial: running(serial, test) for serial, test in tests.items()}
        sentence = "; ".join(faults.values())
        if waited_s >= SELF_TEST_S or faults.keys() <= given_up:
            given_up.update(faults)
            if array.geometry.is_side_by_side and len(faults) < len(array.members):
                raise DrivesUndecided(sentence, faults)
            raise InvalidMeasurement(sentence)
        if not waited_s:
            setup.note("self_test_awaited", array.geometry, drives=tests)
        setup.progress(sentence, SELF_TEST_S - waited_s)
        time.sleep(PAUSE_S)
        waited_s += PAUSE_S
        before = _reading_before(setup, array)
    return before


def reading_after(setup: Setup, array: Array, before: EnvironmentReading) -> EnvironmentReading:
    """Take the reading after a load; what happens to its drives before the next load is new since then."""
    after = environment.take_reading(setup.machine, array, before)
    note_repaired(setup, array, before, after)
    setup.readings.after = environment.with_users(after, array, setup.readings.users)
    return setup.readings.after


def note_repaired(setup: Setup, array: Array, before: EnvironmentReading, after: EnvironmentReading) -> None:
    """Add what the kernel repaired between two readings to the health of the drives."""
    log = kernel_log.between(before.kernel_log, after.kernel_log)
    names = own_names(array.members, before.names)
    for drive, first, last in zip(array.members, before.drives, after.drives, strict=False):
        messages = repaired.messages(log.lines if log else (), names[drive.kname])
        setup.failures.add_repaired(drive.name, repaired.grown(first.repaired, last.repaired), messages)


def _attribution(
    setup: Setup, array: Array, before: EnvironmentReading | None, error: RigError, kernel: KernelLog | None
) -> FailureAttribution:
    lines = kernel.lines if kernel else ()
    gone = error.drives if isinstance(error, DrivesGone) else ()
    traces = _traces(setup, array, before, gone)
    found = attribute(str(error), traces, lines)
    found = replace(found, drives=tuple(replace(each, under=str(array.geometry)) for each in found.drives))
    setup.note(
        "measurement_failed",
        array.geometry,
        error=str(error),
        origin=found.origin,
        why=found.why,
        failed=[asdict(each) for each in found.drives],
        drives=[asdict(each) for each in traces],
        kernel=[line.describe() for line in lines],
    )
    return found


def _kernel(setup: Setup, array: Array, before: EnvironmentReading | None) -> KernelLog | None:
    """Return the messages since ``before``; None if the log cannot be read."""
    if before is None:
        return None
    try:
        after = environment.take_reading(setup.machine, array, before)
    except RigError as error:
        if error.ends_run:
            raise
        return None
    return kernel_log.between(before.kernel_log, after.kernel_log)


def _traces(
    setup: Setup, array: Array, before: EnvironmentReading | None, gone: Collection[Drive]
) -> tuple[DriveTrace, ...]:
    geometry = array.geometry
    kname = "-" if geometry.is_side_by_side else array.kname
    sysfs = [drive.sysfs_name for drive in array.members]
    done = scripts.answer(setup.machine, SCRIPT, "drive_states", kname, *sysfs)
    states = parse(done.text)
    has_members = any(state != "-" for _, _, state in states.values())
    names = own_names(array.members, before.names if before else ())
    traces = []
    for drive, name in zip(array.members, sysfs, strict=True):
        presence, mode, state = states.get(name, ("", "", "-"))
        presence = "gone" if drive in gone else presence
        changes, is_silent = ((), False) if presence == "gone" else _smart(setup, drive)
        is_faulty = "faulty" in state or (state == "-" and has_members)
        traces.append(
            DriveTrace(
                serial=drive.name,
                path=drive.path,
                names=names[drive.kname],
                present=None if not presence else presence == "present",
                read_only=mode == "ro",
                # Members of a degraded array were failed on purpose.
                is_faulty=is_faulty and not geometry.missing,
                smart=changes,
                is_silent=is_silent,
            )
        )
    return tuple(traces)


def _smart(setup: Setup, drive: Drive) -> tuple[tuple[str, ...], bool]:
    """Return the defects in a drive's SMART data since they were read before, and whether it answers no more.

    It does not answer if smartctl reports so, or does not end. Any other error is the rig's, such as a smartctl that
    was killed when memory was short; then nothing is known after the second one.
    """
    failures = setup.failures
    earlier = failures.latest.get(drive.path, failures.before.get(drive.path))
    if earlier is None:
        return (), False
    for _ in range(ATTEMPTS):
        try:
            now = health.read(setup.machine, [drive])[drive.path]
        except (DriveUnread, DeadlineExceeded):
            return (), True
        except RigError as error:
            if error.ends_run:
                raise
        else:
            failures.latest[drive.path] = now
            return failures.defects(drive, earlier, now), False
    return (), False


def parse(text: str) -> dict[str, tuple[str, str, str]]:
    """Parse the answer of ``SCRIPT``: presence, mode and md's words by kernel name; empty if it was cut short."""
    lines = [line.split() for line in text.splitlines()]
    if not lines or lines[-1] != ["end"]:
        return {}
    return {words[0]: (words[1], words[2], words[3]) for words in lines[:-1] if len(words) == 4}


def own_names(members: Sequence[Drive], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the names in kernel messages that mean one drive alone, by kernel name.

    ``names`` are those of ``EnvironmentReading``: of each drive its kernel name and those on its way to the bus, `+`
    before what lies above the controller. HBAs and hosts are left out, because other drives may share them.
    """
    found = {drive.kname: [drive.kname] for drive in members}
    current, pci_names = "", 0
    for name in names:
        if name in found:
            current, pci_names = name, 2 if name.startswith("nvme") else 0
        elif current and (
            OWN_NAME.fullmatch(name)
            or (ATA_PORT.fullmatch(name) and sum(each.startswith(f"{name}.") for each in names) == 1)
        ):
            found[current].append(name)
        elif pci_names and PCI_FUNCTION.fullmatch(name):
            found[current].append(name.removeprefix("+"))
            pci_names -= 1
    return {kname: tuple(dict.fromkeys(own)) for kname, own in found.items()}
