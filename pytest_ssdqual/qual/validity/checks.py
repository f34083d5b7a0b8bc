"""Checks of a run, each with its figure: may the measurement be judged? A failed check is the rig's fault.

This module checks the run's own numbers (amount, silence, directions, Little's law); `environment` and `other_users`
check what was around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from pytest_ssdqual.qual.measured.histogram import LAST_BUCKET_NS, LatencyHistogram
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.validity import environment, other_users
from pytest_ssdqual.qual.validity.check import Check
from pytest_ssdqual.qual.workload.workload import Workload

#: IOPS × latency over the configured queue depth, for jobs with a full queue. fio's latencies exclude submission time,
#: so the low side is wider; a published table that was wrong showed 1.068.
LITTLE = (0.90, 1.05)

#: Most that fio does at a rate, per cent of it: a job's share is rounded up to a whole number of at least 20.
RATE_PERCENT = 106

#: Longest gap between fio's reports (one a second); beyond it fio or a job stalled, which averages would hide.
SILENCE_S = 3.0

#: Fewest I/Os of a round; with fewer its rate is noise.
FEWEST_IOS_A_ROUND = 100

#: Share of the window that may be missing at its end.
SHORT = 0.05

#: Tolerated error of the read share, percentage points.
MIX_POINTS = 2.0

#: Tolerated error of a drawn share or size, standard errors; exceeded once in 16,000 fair draws.
CHANCE = 4.0


def checks(run: Run, fewest: int | None = None) -> tuple[Check, ...]:
    """Run all checks, including those that pass.

    Drives side by side are checked separately and named by serial number. ``fewest`` is the required number of I/Os in
    the window, for each drive; by default ``FEWEST_IOS_A_ROUND`` for each round.
    """
    least = FEWEST_IOS_A_ROUND * run.rounds if fewest is None else fewest
    return (*_of_targets(run, least), *of_environment(run))


def objections(run: Run, fewest: int | None = None) -> tuple[str, ...]:
    """Reasons not to judge a product by this run; empty if there are none. See ``checks``."""
    return objections_in(checks(run, fewest))


def of_part(run: Run, report_s: float) -> tuple[Check, ...]:
    """Checks of a part of a process that reports every ``report_s`` seconds, all but those of its environment.

    Counters of the environment are of the whole process, and say nothing about a part.
    """
    return tuple(_of_targets(run, FEWEST_IOS_A_ROUND * run.rounds, report_s))


def of_environment(run: Run) -> tuple[Check, ...]:
    """Checks of the environment of the run's process, whatever part of it is counted."""
    return (
        *other_users.foreign_io(run), *other_users.of_run(run), *environment.of_array(run), *environment.of_drives(run),
        *environment.of_host(run),
    )  # fmt: skip


def of_rig(run: Run) -> tuple[Check, ...]:
    """Checks of what disturbs the drives from outside: I/O of others, work of md, and the host.

    Heat and the link are not among them: a drive that throttles, or whose link is narrower, is slower itself.
    """
    return (
        *other_users.foreign_io(run), *other_users.of_run(run), *environment.of_array(run), *environment.of_host(run),
    )  # fmt: skip


def objections_in(found: Iterable[Check]) -> tuple[str, ...]:
    """The objections of checks."""
    return tuple(objection for check in found for objection in check.objections)


def objections_by_drive(run: Run) -> dict[str, tuple[str, ...]]:
    """Objections by the serial number of the drive that they are about; under "" those about all. See ``checks``."""
    found: dict[str, tuple[str, ...]] = {}
    for check in checks(run):
        if check.objections:
            found[check.drive] = (*found.get(check.drive, ()), *check.objections)
    return found


def worst(found: Iterable[Check]) -> dict[str, Check]:
    """One check of each name: one that failed, else one that is unknown, else the one with the worst figure."""
    worst_checks: dict[str, Check] = {}
    for check in found:
        if check.name not in worst_checks or _badness(check) > _badness(worst_checks[check.name]):
            worst_checks[check.name] = check
    return worst_checks


def _badness(check: Check) -> tuple[int, float]:
    figure = check.figure if check.figure is not None else -math.inf
    return (False, None, True).index(check.holds) * -1, -figure if check.low_is_bad else abs(figure)


def _of_targets(run: Run, fewest: int, report_s: float | None = None) -> Iterator[Check]:
    alone = run.of_members()
    for each in alone:
        for check in _of_one(each, fewest, report_s):
            yield check if len(alone) == 1 else _named(each.members[0], check)


def _named(drive: str, check: Check) -> Check:
    return replace(check, drive=drive, objections=tuple(f"{drive}: {objection}" for objection in check.objections))


def _of_one(run: Run, fewest: int, report_s: float | None = None) -> Iterator[Check]:
    """Checks of one target: an array, or a single drive. ``report_s``: see ``_silence``."""
    if not run.ios:
        yield Check("ios", 0, (f"no I/O in {format_duration(run.window_s)}",), low_is_bad=True)
        return
    yield from _amount(run, fewest)
    yield _silence(run, report_s)
    yield _directions(run)
    if not run.workload.replay:  # a trace has no constant depth, and a part of it not its mean size
        yield from _arithmetic(run)


def _amount(run: Run, fewest: int) -> Iterator[Check]:
    few = f"only {run.ios:,} I/Os in the window, at least {fewest:,} are needed"
    yield Check("ios", run.ios, (few,) if run.ios < fewest else (), low_is_bad=True)
    short = f"only {run.seconds:.1f} s of the window of {run.window_s:g} s were recorded"
    least_s = run.window_s * (1 - SHORT)
    yield Check("counted_s", run.seconds, (short,) if run.seconds < least_s else (), low_is_bad=True)


def _silence(run: Run, report_s: float | None) -> Check:
    """Check the gaps between fio's reports, which come every ``report_s`` seconds; None: every second."""
    counted = run.counted
    within = [(each.seconds, f"fio was silent for {each.seconds:.1f} s at {each.start_s:.1f} s") for each in counted]
    between = [
        (after.start_s - before.end_s, f"{after.start_s - before.end_s:.1f} s without a record at {before.end_s:.1f} s")
        for before, after in pairwise(counted)
    ]
    silences = [*within, *between]
    longest_s = max(seconds for seconds, _ in silences)
    allowed_s = (report_s or 1.0) + SILENCE_S - 1.0
    too_long = tuple(sentence for seconds, sentence in silences if seconds > allowed_s)
    return Check("longest_silence_s", longest_s, too_long)


def _directions(run: Run) -> Check:
    workload, wrong = run.workload, []
    for name, wanted, iops in (("read", workload.reads, run.read_iops), ("write", workload.writes, run.write_iops)):
        if wanted and not iops:
            wrong.append(f"no {name}s in a workload that has them")
        if iops and not wanted:
            wrong.append(f"{iops:,.0f} {name}s per second in a workload without {name}s")
    asked, share = workload.read_fraction, run.read_iops / run.iops
    if workload.has_streams:  # their mix is a result
        return Check("reads_percent", 100 * share, tuple(wrong))
    # A short run may miss its mix by chance. It may also miss it by what was in flight at its end: fio draws the mix of
    # what it begins, and a slower direction has more of the queue. 64 KiB at depth 128 had 57 % reads of 65 % in 2 s.
    chance = CHANCE * math.sqrt(asked * (1 - asked) / run.ios)
    in_flight = max(asked, 1 - asked) * _outstanding(run) / run.ios
    points = max(MIX_POINTS, 100 * (chance + in_flight)) if 0 < asked < 1 else 0.0
    if points >= 100 * max(asked, 1 - asked):  # so few I/Os may have any mix
        return Check("reads_percent", 100 * share, tuple(wrong), answered=False)
    if 0 < asked < 1 and abs(share - asked) * 100 > points:
        wrong.append(f"{share:.1%} of the I/Os were reads, {asked:.0%} were asked for")
    return Check("reads_percent", 100 * share, tuple(wrong))


def _arithmetic(run: Run) -> Iterator[Check]:
    """Identities that hold for every drive: Little's law, bytes = I/Os × size, a latency for every I/O."""
    workload = run.workload
    block, asked_bytes = run.bytes_per_s / run.iops, workload.block_bytes
    aggressor = workload.aggressor
    if aggressor:
        own_bytes, share = 2 * asked_bytes - aggressor.block_bytes, run.read_iops / run.iops
        asked_bytes = share * own_bytes + (1 - share) * aggressor.block_bytes
    # The mean of drawn sizes scatters; that of a single size is exact.
    variance = sum(share / 100 * (size - asked_bytes) ** 2 for size, share in workload.sizes)
    may = 1e-6 * asked_bytes + CHANCE * math.sqrt(variance / run.ios)
    other = f"{block:,.0f} bytes per I/O, {asked_bytes:,.0f} were asked for"
    yield Check("bytes_per_io", block, (other,) if abs(block - asked_bytes) > may else ())
    latency = run.latency
    # fio does not read the counters and the bins of one status document at the same instant.
    asked = _outstanding(run)
    lost = abs(latency.total - run.ios)
    unequal = f"{latency.total:,} latencies for {run.ios:,} I/Os"
    may_lack = max(asked, 0.01 * run.ios)
    yield Check("latencies_missing", lost, (unequal,) if lost > may_lack else ())
    if workload.rate_iops:
        yield _rate(run)
    elif workload.has_streams:
        # Each direction has its own queue, and the sum could hide one that is not full.
        writes = _outstanding(run, aggressor) if aggressor else asked // 2
        yield from _little(run.read_iops, run.read_latency, asked - writes, run.seconds, " of the reads")
        untimed = workload.writer.has_untimed
        yield from _little(run.write_iops, run.write_latency, writes, run.seconds, " of the writes", untimed=untimed)
    else:
        yield from _little(run.iops, latency, asked, run.seconds, untimed=workload.has_untimed)
    if latency:
        too_long = latency.max_ns >= LAST_BUCKET_NS
        beyond = "latencies of 17 s and more, which fio does not resolve"
        yield Check("max_latency_s", latency.max_ns / 1e9, (beyond,) if too_long else ())


def _rate(run: Run) -> Check:
    """Check that fio asked for no more than the rate; what is less is the drive's, and a claim (``rate_kept``)."""
    asked = run.asked_iops
    percent, most = 100 * run.iops / asked, RATE_PERCENT + 100 * CHANCE / math.sqrt(run.ios)
    more = f"{run.iops:,.0f} I/Os per second, {asked:,.0f} were asked for"
    return Check("rate_percent", percent, (more,) if percent > most else ())


def _outstanding(run: Run, workload: Workload | None = None) -> int:
    """Configured number of outstanding I/Os, or of those of ``workload``; each drive side by side has the load of
    one.
    """
    geometry = run.geometry
    return geometry.targets * (workload or run.workload).outstanding(geometry.target.width)


def _little(
    iops: float, latency: LatencyHistogram, asked: int, seconds: float, what: str = "", *, untimed: bool = False
) -> Iterator[Check]:
    """Little's law: IOPS × mean latency is the number of outstanding I/Os.

    Of the I/Os in flight at either end of the window, ``asked`` of them, half the time lies outside: the product may be
    off by half of ``asked`` over all I/Os at each end, so few and slow I/Os have a wider range. While a job of fio
    flushes or discards, no latency includes that: with ``untimed`` the low side is not checked.
    """
    if not latency or not iops:
        return
    edge = asked / (iops * seconds)
    low, high = 0.0 if untimed else max(0.0, LITTLE[0] - edge), LITTLE[1] + edge
    outstanding = iops * latency.mean_ns / 1e9
    share = outstanding / asked
    wrong = (
        f"{outstanding:.1f} I/Os{what} were outstanding (IOPS × mean latency), {asked} were asked for: "
        f"{share:.0%}, believable are {low:.0%} to {high:.0%}"
    )
    believed = low <= share <= high
    yield Check("littles_law_percent", 100 * share, () if believed else (wrong,))
