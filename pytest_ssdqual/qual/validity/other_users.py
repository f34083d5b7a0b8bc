"""Other users of drives and arrays: I/O beyond this run's, as the kernel and the drives counted it, and open files.

The kernel's counts are compared with what fio did and what the level needs. Bytes are compared, because they are exact
however the kernel splits and merges (measured on all levels, Linux 6.1); I/Os as well where nothing splits them,
because small ones cost a drive more than their bytes.

The kernel counts I/O of block devices only. Commands through a character device, and those of another host on a drive
with two ports, are in the drive's own count alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import ArrayEnvironment, DriveEnvironment, Traffic, total
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel, costs
from pytest_ssdqual.qual.validity.check import Check
from pytest_ssdqual.qual.workload.workload import Workload

#: Tolerated share of what fio did, by the kernel's count: less does not show in any figure.
KERNEL_SHARE = 0.01
#: Background I/O that is always there: multipath's path checks, md's superblocks (measured: 6 KiB).
QUIET = Traffic(64, 64, 1 << 20, 1 << 20)
#: Scan after a written device is closed: the kernel reads partition tables, udev file systems. Measured at arrays and
#: drives after fio ended: up to 230 reads, 4.3 MB; none after reading.
LOOKED_AT = Traffic(500, 0, 8 << 20, 0)
#: Largest aligned I/O that reaches a drive unsplit: 16 pages fit into any scatter list.
UNSPLIT_BYTES = 64 << 10
PAGE_BYTES = 4096
#: Tolerated share of what this run did, by a drive's own count.
DRIVE_SHARE = 0.03
#: Share of this run's I/O that a drive must have counted, so that its count is evidence that nothing was beyond.
COUNTED = 0.97
#: Bytes of one command: a logical block, and the most that drives take (MDTS; the kernel sends up to 1 MiB mostly).
LEAST_BYTES, MOST_BYTES = 512, 4 << 20
#: Words for reads, and for writes.
VERBS = "read", "wrote"
#: Word for how a drive is open.
ACCESS = {"generic": "through a character device (sg, bsg, ng or the controller)", "write": "for writing"}


@frozen
class Excess:
    """I/O beyond what was expected, of one direction."""

    verb: str
    ios: int
    size_bytes: int
    #: Excess without background I/O over what was expected, in bytes or in I/Os, whichever is larger.
    share: float

    @property
    def is_too_much(self) -> bool:
        return self.share > KERNEL_SHARE


def excesses(counted: Traffic, expected: Traffic, anyway: Traffic, *, ios: bool = False) -> tuple[Excess, ...]:
    """Excess of reads, and of writes; ``ios`` also compares the number of I/Os."""
    of_directions = []
    both = zip(VERBS, counted.directions, expected.directions, anyway.directions, strict=True)
    for verb, (done, size), (wanted, wanted_bytes), (may, may_bytes) in both:
        more, more_bytes = done - wanted, size - wanted_bytes
        share = max(0.0, (more_bytes - may_bytes) / max(1, expected.total_bytes))
        if ios:
            share = max(share, (more - may) / max(1, expected.ios))
        of_directions.append(Excess(verb, more, more_bytes, share))
    return tuple(of_directions)


def foreign_io(run: Run) -> Iterator[Check]:
    """One check for each drive that fio used directly, or for the array and its members."""
    if run.seen is None:
        yield Check("foreign_percent")
    elif run.seen.array is None:
        yield from (_at_drive(run, drive) for drive in run.seen.drives)
    else:
        yield _at_array(run, run.seen.array)
        yield _at_members(run, run.seen.array, run.seen.drives)


def _at_drive(run: Run, drive: DriveEnvironment) -> Check:
    counted, asked = drive.device.counted, drive.device.asked
    if counted is None or asked is None:
        return Check("foreign_percent", drive=drive.name)
    both = excesses(counted, asked, anyway(run), ios=_arrive_whole(run.workload))
    other = ", ".join(map(str, drive.opened or ())) or "something else"
    objections = [
        f"{other} {each.verb} {_megabytes(each.size_bytes)} ({each.ios:,} I/Os) at drive {drive.name} meanwhile"
        for each in both
        if each.is_too_much
    ]
    if asked.total_bytes - counted.total_bytes > KERNEL_SHARE * asked.total_bytes + QUIET.read_bytes:
        objections.append(
            f"the kernel counted only {_megabytes(counted.total_bytes)} of the {_megabytes(asked.total_bytes)} "
            f"that fio says it read and wrote at drive {drive.name}"
        )
    return Check("foreign_percent", _percent(both), tuple(objections), drive.name)


def _at_array(run: Run, array: ArrayEnvironment) -> Check:
    """Check the array's own block device."""
    counted, asked = _countable(run.workload, array), array.device.asked
    if counted is None or asked is None:
        return Check("foreign_percent")
    both = excesses(counted, asked, anyway(run))
    objections = [
        f"something else {each.verb} {_megabytes(each.size_bytes)} at {run.geometry} meanwhile"
        for each in both
        if each.is_too_much
    ]
    return Check("foreign_percent", _percent(both), tuple(objections))


def _countable(workload: Workload, array: ArrayEnvironment) -> Traffic | None:
    """The kernel's count at the array, if it is right.

    Kernels before 5.13 count an I/O that crosses a chunk twice, and some do not count at all.
    """
    counted, asked, chunk = array.device.counted, array.device.asked, array.chunk_bytes
    if counted is None or asked is None or chunk is None or counted.total_bytes < asked.total_bytes / 2:
        return None
    crosses = chunk > 0 and (workload.offset_bytes > 0 or any(chunk % size for size, _ in workload.sizes))
    return None if crosses else counted


def _at_members(run: Run, array: ArrayEnvironment, drives: tuple[DriveEnvironment, ...]) -> Check:
    """Compare the traffic of all members with what the level needs for the traffic at the array, of any origin.

    Exact for striping and mirrors, and for reads of arrays with parity; for their writes it is the highest cost, as
    data in md's cache need not be read. Unknown for arrays with members missing, or while md resyncs.
    """
    name = "members_foreign_percent"
    known = [each.device.counted for each in drives if each.device.counted is not None]
    done = _countable(run.workload, array) or array.device.asked
    if done is None or run.geometry.missing or array.syncs or len(known) < len(drives):
        return Check(name)
    reads, writes = excesses(total(known), needed(run.geometry, run.workload, done), anyway(run))
    # With a bitmap, each changed bit is written to every member.
    both = (reads, writes) if array.bitmap is False else (reads,)
    amounts = {reads: [each.read_bytes for each in known], writes: [each.write_bytes for each in known]}
    objections = [_of_members(run, each, amounts[each]) for each in both if each.is_too_much]
    return Check(name, _percent(both), tuple(objections))


def _of_members(run: Run, excess: Excess, each: Sequence[int]) -> str:
    most = max(range(len(each)), key=each.__getitem__)
    others = median([*each[:most], *each[most + 1 :]])
    more, highest = _megabytes(excess.size_bytes), _megabytes(each[most])
    return (
        f"the members of {run.geometry} {excess.verb} {more} more than it needs for what was done at it, so something "
        f"else uses them (most at drive {run.members[most]}: {highest}, the others {_megabytes(others)})"
    )


def needed(geometry: Geometry, workload: Workload, asked: Traffic) -> Traffic:
    """Highest traffic of all members together for what was asked of the array; reads and writes separately.

    With parity, md reads and writes at least a page, data and parity alike (drivers/md/raid5.c).
    """
    if not geometry.has_parity:
        copies = FACTS[geometry.level].copies or geometry.width
        return Traffic(asked.reads, asked.writes * copies, asked.read_bytes, asked.write_bytes * copies)
    pages = asked.write_bytes * _pages(workload)
    reads = float(costs(geometry).reads_for_write)
    if geometry.level is RaidLevel.RAID6:  # on CPUs without an xor_syndrome routine all other data are read
        reads = max(reads, geometry.width - 3)
    # A partly written page has to be read itself, whichever way md computes the new parity.
    reads += _pages(workload) > 1
    writes = FACTS[geometry.level].parity + 1
    return Traffic(
        round(asked.reads + asked.writes * reads),
        asked.writes * writes,
        round(asked.read_bytes + pages * reads),
        round(pages * writes),
    )


def _pages(workload: Workload) -> float:
    """Bytes of the pages touched at most, over bytes transferred."""
    workload = workload.writer
    offset = workload.offset_bytes

    def touched(size: int) -> int:
        whole = not (size % PAGE_BYTES or offset % PAGE_BYTES)
        return size if whole else ((size - 1) // PAGE_BYTES + 2) * PAGE_BYTES

    return sum(share * touched(size) for size, share in workload.sizes) / (100 * workload.block_bytes)


def anyway(run: Run) -> Traffic:
    """Background I/O, and the I/O in flight at the end, which fio may not have counted."""
    workload = run.workload
    ios = workload.outstanding(run.geometry.target.width)
    under_way = Traffic(ios, ios, ios * workload.largest_bytes, ios * workload.largest_bytes)
    # The jobs of a replay end one by one, each when it has done its share: 528 reads and 11.8 MB of 32 jobs in the lab.
    looks = 3 if workload.replay else 1
    return total([QUIET, under_way, *([LOOKED_AT] * looks if workload.writes else [])])


def _arrive_whole(workload: Workload) -> bool:
    """Return whether I/Os reach a drive unsplit; sequential ones may be merged, which the kernel counts."""
    return not (workload.replay or workload.offset_bytes) and workload.largest_bytes <= UNSPLIT_BYTES


def _percent(both: Sequence[Excess]) -> float:
    return 100 * max(each.share for each in both)


def _megabytes(size: float) -> str:
    return f"{max(0.0, size / 1e6):,.1f} MB"


@frozen
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
        return Check("drive_count_percent", drive=drive.name)
    users = [str(each) for each in drive.opened or () if each.access == "generic"]
    by = f"; open through a character device: {', '.join(users)}" if users else ", or another host"
    objections = tuple(
        f"drive {drive.name} {each.verb} {_amount(each)} more, by its own count, than this machine's kernel sent: for "
        f"a program past the block layer{by}"
        for each in beyond
        if each.share > DRIVE_SHARE
    )
    return Check("drive_count_percent", 100 * max(each.share for each in beyond), objections, drive.name)


def _amount(beyond: Beyond) -> str:
    size = "" if beyond.size_bytes is None else f"{beyond.size_bytes / 1e6:,.1f} MB"
    commands = "" if beyond.commands is None else f"{beyond.commands:,} commands"
    return f"{size} ({commands})" if size and commands else size or commands


def _open_files(drive: DriveEnvironment, beyond: tuple[Beyond, ...]) -> Check:
    """Object to a process that can use the drive unseen, unless the drive's own count shows that none did."""
    if drive.opened is None:
        return Check("other_users", drive=drive.name)
    is_unused = bool(beyond) and all(each.is_all_counted and each.share <= DRIVE_SHARE for each in beyond)
    users = [each for each in drive.opened if each.access == "write" or (each.access == "generic" and not is_unused)]
    objections = tuple(f"drive {drive.name} was open {ACCESS[each.access]} by {each} meanwhile" for each in users)
    return Check("other_users", len(users), objections, drive.name)


def _self_test(drive: DriveEnvironment) -> Check:
    if drive.self_test is None:
        return Check("self_tests", drive=drive.name)
    objections = (running(drive.name, drive.self_test),) if drive.self_test else ()
    return Check("self_tests", len(objections), objections, drive.name)


def running(serial: str, self_test: str) -> str:
    """``drive X runs an extended self-test (40 % left), …``: a clause with what to do."""
    return f"drive {serial} runs {self_test}, started by smartd or a burn-in; wait for it, or abort it with smartctl -X"


def _beyond(run: Run, drive: DriveEnvironment) -> tuple[Beyond, ...]:
    """Return both directions; empty if the drive or the kernel does not count."""
    own, sent = drive.own, drive.device.counted or drive.device.asked
    if own is None or sent is None:
        return ()
    idle = total([anyway(run), LOOKED_AT])
    # Without the kernel's count, commands are unknown: it splits and merges what fio asks for.
    commands = (own.read_commands, own.write_commands) if drive.device.counted else (None, None)
    sizes = own.read_bytes, own.write_bytes
    return tuple(
        _of_direction(*of_one, of=(sent.ios, sent.total_bytes), unit_bytes=own.unit_bytes)
        for of_one in zip(VERBS, commands, sizes, sent.directions, idle.directions, strict=True)
    )


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
            LEAST_BYTES * more <= more_bytes + slack + DRIVE_SHARE * of[1]
            and more_bytes <= MOST_BYTES * max(0, more) + slack
        )
        share = share if fits else 0.0
    is_all = size is not None and size + slack >= COUNTED * sent[1]
    return Beyond(verb, more, more_bytes, share, is_all)
