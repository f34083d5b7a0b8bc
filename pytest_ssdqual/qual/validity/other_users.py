"""Other users of a drive: what it counted itself beyond this run's I/O, who else had it open, and its own self-test.

The kernel counts I/O of block devices only. Commands through a character device, and those of another host on a drive
with two ports, are in the drive's own count alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ssdqual.qual.measured.environment import DriveEnvironment
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.validity.check import Check, unknown
from pytest_ssdqual.qual.validity.foreign_io import LOOKED_AT, anyway

#: Tolerated share of what this run did.
SHARE = 0.03
#: Share of this run's I/O that a drive must have counted, so that its count is evidence that nothing was beyond.
COUNTED = 0.97
#: Bytes of one command: a logical block, and the most that drives take (MDTS; the kernel sends up to 1 MiB mostly).
LEAST_BYTES, MOST_BYTES = 512, 4 << 20
COUNT_RANGE = f"up to {SHARE:.0%} beyond what this run did"
#: Word for how a drive is open.
ACCESS = {"generic": "through a character device (sg, bsg, ng or the controller)", "write": "for writing"}


@dataclass(frozen=True, slots=True)
class Beyond:
    """What a drive counted of one direction beyond what the kernel sent; None where one of them is not known."""

    verb: str
    commands: int | None
    size_bytes: int | None
    #: Of what this run did; without background I/O.
    share: float
    is_all_counted: bool


def of_run(run: Run) -> Iterator[Check]:
    """Checks of each drive."""
    for drive in run.seen.drives if run.seen else ():
        beyond = _beyond(run, drive)
        yield _own_count(drive, beyond)
        yield _open_files(drive, beyond)
        yield _self_test(drive)


def _own_count(drive: DriveEnvironment, beyond: tuple[Beyond, ...]) -> Check:
    if not beyond:
        return unknown("drive_count_percent", COUNT_RANGE, drive.name)
    users = [str(each) for each in drive.opened or () if each.access == "generic"]
    by = f"; open through a character device: {', '.join(users)}" if users else ", or another host"
    objections = tuple(
        f"drive {drive.name} {each.verb} {_amount(each)} more, by its own count, than this machine's kernel sent: for "
        f"a program past the block layer{by}"
        for each in beyond
        if each.share > SHARE
    )
    return Check("drive_count_percent", 100 * max(each.share for each in beyond), COUNT_RANGE, objections, drive.name)


def _amount(beyond: Beyond) -> str:
    size = "" if beyond.size_bytes is None else f"{beyond.size_bytes / 1e6:,.1f} MB"
    commands = "" if beyond.commands is None else f"{beyond.commands:,} commands"
    return f"{size} ({commands})" if size and commands else size or commands


def _open_files(drive: DriveEnvironment, beyond: tuple[Beyond, ...]) -> Check:
    """Object to a process that can use the drive unseen, unless the drive's own count shows that none did."""
    if drive.opened is None:
        return unknown("other_users", "none", drive.name)
    is_unused = bool(beyond) and all(each.is_all_counted and each.share <= SHARE for each in beyond)
    users = [each for each in drive.opened if each.access == "write" or (each.access == "generic" and not is_unused)]
    objections = tuple(f"drive {drive.name} was open {ACCESS[each.access]} by {each} meanwhile" for each in users)
    return Check("other_users", len(users), "none", objections, drive.name)


def _self_test(drive: DriveEnvironment) -> Check:
    if drive.self_test is None:
        return unknown("self_tests", "none", drive.name)
    objections = (running(drive.name, drive.self_test),) if drive.self_test else ()
    return Check("self_tests", len(objections), "none", objections, drive.name)


def running(serial: str, self_test: str) -> str:
    """``drive X runs an extended self-test (40 % left), …``: a clause with what to do."""
    return f"drive {serial} runs {self_test}, started by smartd or a burn-in; wait for it, or abort it with smartctl -X"


def _beyond(run: Run, drive: DriveEnvironment) -> tuple[Beyond, ...]:
    """Return both directions; empty if the drive or the kernel does not count."""
    own, sent = drive.own, drive.device.counted or drive.device.asked
    if own is None or sent is None:
        return ()
    idle = anyway(run)
    # Without the kernel's count, commands are unknown: it splits and merges what fio asks for.
    has_commands = drive.device.counted is not None
    return tuple(
        _of_direction(verb, commands if has_commands else None, size, (done, done_bytes), (may, may_bytes),
                      (sent.ios, sent.total_bytes), own.unit_bytes)
        for verb, commands, size, done, done_bytes, may, may_bytes in (
            ("read", own.read_commands, own.read_bytes, sent.reads, sent.read_bytes, idle.reads + LOOKED_AT.reads,
             idle.read_bytes + LOOKED_AT.read_bytes),
            ("wrote", own.write_commands, own.write_bytes, sent.writes, sent.write_bytes, idle.writes,
             idle.write_bytes),
        )
    )  # fmt: skip


def _of_direction(
    verb: str,
    commands: int | None,
    size: int | None,
    sent: tuple[int, int],
    may: tuple[int, int],
    of: tuple[int, int],
    unit_bytes: int,
) -> Beyond:
    """Compare one direction; where a drive counts commands and bytes, both have to agree, as some count oddly."""
    more = None if commands is None else commands - sent[0]
    more_bytes = None if size is None else size - sent[1]
    slack = 2 * unit_bytes
    shares = [
        (each - idle) / max(1, whole)
        for each, idle, whole in ((more, may[0], of[0]), (more_bytes, may[1] + slack, of[1]))
        if each is not None
    ]
    share = max(0.0, *shares) if shares else 0.0
    if more is not None and more_bytes is not None:
        fits = (
            LEAST_BYTES * more <= more_bytes + slack + SHARE * of[1] and more_bytes <= MOST_BYTES * max(0, more) + slack
        )
        share = share if fits else 0.0
    is_all = size is not None and size + slack >= COUNTED * sent[1]
    return Beyond(verb, more, more_bytes, share, is_all)
