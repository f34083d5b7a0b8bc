"""Attribution of a shortfall: which part of the system is the bottleneck, with the evidence for it.

Drives are the cause of a missed promise only if an array of exactly these drives cannot do more (`raid.prediction`), or
if a drive does less in the array than its own curve says. Otherwise md, the host, a path that drives share, or the
measurement is the cause. Each rule below is a sufficient condition; the first that holds decides. If none does, the
cause is unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from statistics import median
from typing import TypeVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.units import Unit, format_latency, format_value
from pytest_ssdqual.qual.validity.shortfall import Shortfall

#: Error of a prediction from exact curves: `bench/attribution.py` and the lab found up to 5 % on flawless arrays.
MODEL_ERROR = 0.05
#: Efficiency from which the array does what its members can, and from which it certainly does.
AS_PREDICTED, EXACTLY = 0.93, 0.97
#: A member is slow below this share of the median member; drives of one lot differ by 1 to 2 %.
SLOW = 0.955
#: A member does less in the array than its curve says below this share of what its siblings deliver, if its I/Os wait
#: this many times as long as theirs.
DELIVERS_LESS, WAITS_LONGER = 0.88, 1.2
#: Without a curve a member stands out if its I/Os wait this many times as long as those of its siblings: the slowest of
#: even drives collects I/Os at high depth (up to 1.6 times the wait in `bench/simulated_system.py`, drives within 3 %).
#: Members with another rate of I/Os than the median one by more than this factor have another load.
STANDS_OUT, SAME_LOAD = 2.0, 1.33
#: Share of their curves from which members, in the median, do what these say.
BY_CURVES = 0.96
#: Share of the predicted outstanding I/Os below which I/Os wait above the drives.
ABOVE = 0.85
#: Without a prediction: share of the most I/Os that could be outstanding at the drives, below which they wait above
#: them. Reads and mirrored writes end one by one, so drives that are the bottleneck have 0.7 to 1 of them; parity
#: writes have phases of unequal size and are left out.
FAR_ABOVE = 0.5
#: Share of the IOPS alone, below which drives side by side slow each other down.
SHARED = 0.90
#: Share of a ceiling from which it is reached.
REACHED = 0.85
#: The host's CPUs, md's thread, fio's jobs: from here on each is a bound. Validity checks object from 95 % on.
CPU_BUSY, THREAD_BUSY, JOBS_BUSY, STARVED = 0.90, 0.90, 0.90, 0.40
#: Mean share of md's stripe cache in use from which new writes wait for a stripe.
CACHE_FULL = 0.95
#: Drives named in a sentence.
NAMED = 3


class Culprit(StrEnum):
    """Part of the system that is the cause of a shortfall."""

    #: One drive, named.
    DRIVE = "drive"
    #: Several drives, or all of them.
    DRIVES = "drives"
    #: The model of the drives, or something that all of them share: no drive is an exception.
    PRODUCT = "product"
    MD = "md"
    HOST = "host"
    #: What several drives share: a switch, a bus adapter, a link.
    PATH = "path"
    #: fio, or a second load.
    MEASUREMENT = "measurement"
    #: The evidence fits no cause: the drives can do more, and nothing above them stands out.
    UNEXPLAINED = "unexplained"
    #: There is no rule, or no evidence to decide by; nothing is accused, and nothing is taken back.
    UNKNOWN = "unknown"

    @property
    def is_drive(self) -> bool:
        return self in (Culprit.DRIVE, Culprit.DRIVES)

    @property
    def acquits_drives(self) -> bool:
        """Return whether something that is no part of the product broke the promise."""
        return not self.is_drive and self not in (Culprit.PRODUCT, Culprit.UNKNOWN)


NAMES = {
    Culprit.DRIVE: "a drive",
    Culprit.DRIVES: "all drives",
    Culprit.PRODUCT: "the model, or what all its drives share",
    Culprit.MD: "md",
    Culprit.HOST: "the host",
    Culprit.PATH: "a path that the drives share",
    Culprit.MEASUREMENT: "the measurement",
    Culprit.UNEXPLAINED: "unexplained",
    Culprit.UNKNOWN: "unknown",
}

ADVICE = {
    Culprit.PRODUCT: "measure one drive alone, and in another machine: if it does no better there, the model does not "
    "keep the promise",
    Culprit.MD: "find the best array.stripe_cache_pages, array.group_threads and array.chunk by ssdqual run "
    "md_settings, and write them into the protocol; bind fio and interrupts to the drives' NUMA node, or use a newer "
    "kernel",
    Culprit.HOST: "use a host with more or faster CPUs, spread interrupts, or stop other programs",
    Culprit.PATH: "compare the link widths, and spread the drives over more slots or adapters",
    Culprit.MEASUREMENT: "stop the other load, or give fio more jobs and CPUs",
    Culprit.UNEXPLAINED: "repeat the measurement with ssd_members on, and compare the members' waits",
}


@frozen
class Cause:
    """The attributed cause of one shortfall."""

    culprit: Culprit
    #: One clause with the evidence: ``its I/Os waited 6.1 ms, those of its siblings 3.0 ms``.
    evidence: str
    #: Serial numbers, if drives are the culprit, or those behind the shared path; the worst first.
    drives: tuple[str, ...] = ()
    #: One clause with what to change; "" if drives are the culprit.
    advice: str = ""
    #: Share of right answers of the rule that found it in `bench/attribution.py`, 0…1; 0 if no rule did.
    confidence: float = 0.0
    #: A measured ceiling shows that something above the drives decided, and that they can do what is needed.
    is_proven: bool = False

    @property
    def subject(self) -> str:
        """The culprit in a sentence: ``drive SSDQ0003``, ``md``, ``the host``."""
        if self.culprit is Culprit.PATH and len(self.drives) == 1:
            return f"the path to drive {self.drives[0]}"
        if not self.culprit.is_drive or not self.drives:
            return NAMES[self.culprit]
        word = "drive" if len(self.drives) == 1 else "drives"
        return f"{word} {named(self.drives, NAMED)}"

    def __str__(self) -> str:
        if self.culprit is Culprit.UNEXPLAINED:
            return f"cause unexplained: {self.evidence}"
        if self.culprit is Culprit.UNKNOWN:
            return f"cause unknown: {self.evidence}"
        return f"cause: {self.subject}, {self.evidence}"


EvidenceT = TypeVar("EvidenceT")
Rule = Callable[[Shortfall], Cause | None]


def attribute(shortfall: Shortfall) -> Cause:
    """Return the cause of the shortfall; ``UNEXPLAINED`` if the evidence fits none, ``UNKNOWN`` if there is none."""
    return with_nodes(first_of(RULES, shortfall) or _unexplained(shortfall), shortfall)


def with_nodes(attributed: Cause, shortfall: Shortfall) -> Cause:
    """Return the cause with the drives' NUMA nodes in its advice, if it is md or the host."""
    nodes = shortfall.host.numa_nodes
    if attributed.culprit not in (Culprit.MD, Culprit.HOST) or len(nodes) < 2:
        return attributed
    return replace(attributed, advice=f"{attributed.advice}; the drives are on NUMA nodes {', '.join(map(str, nodes))}")


def first_of(rules: Mapping[Callable[[EvidenceT], Cause | None], float], evidence: EvidenceT) -> Cause | None:
    """Return the cause by the first rule that holds, with the rule's confidence."""
    held = ((rule(evidence), confidence) for rule, confidence in rules.items())
    return next((replace(attributed, confidence=confidence) for attributed, confidence in held if attributed), None)


def _members_cannot(found: Shortfall) -> Cause | None:
    """The members cannot do what is needed, whatever is above them."""
    if found.predicted is None or found.needed is None or _most(found) >= found.needed:
        return None
    return _of_members(found)


def foreign(found: Shortfall) -> Cause | None:
    """Another program used the members meanwhile."""
    return cause(Culprit.MEASUREMENT, found.foreign[0]) if found.foreign else None


def _as_predicted(found: Shortfall, least: float = AS_PREDICTED) -> Cause | None:
    """The array does what its members can, which is less than needed."""
    if found.efficiency is None or found.efficiency < least or ceiling_is_reached(found):
        return None
    return _of_members(found)


def _exactly_as_predicted(found: Shortfall) -> Cause | None:
    return _as_predicted(found, EXACTLY)


def drive_delivers_less(found: Shortfall) -> Cause | None:
    """A drive delivers less in the array than its own curve says, and its siblings do not."""
    known = [
        (each.delivered, each.wait_ns, each)
        for each in found.members
        if each.delivered is not None and each.wait_ns is not None
    ]
    if len(known) < 3 or len(known) < len(found.members):
        return None
    usual, wait_ns = median(share for share, _, _ in known), median(wait for _, wait, _ in known)
    slow = [each for each in known if each[0] < DELIVERS_LESS * usual and each[1] > WAITS_LONGER * wait_ns]
    if not slow or len(slow) > len(known) / 3:
        return None
    slow.sort(key=lambda each: each[0])
    whose = "its" if len(slow) == 1 else "their"
    longest, others = format_latency(slow[0][1]), format_latency(wait_ns)
    what = f"{whose} I/Os waited {longest} in the array, those of the others {others}"
    return drives(what, [each.drive for _, _, each in slow])


def drive_stands_out(found: Shortfall) -> Cause | None:
    """The I/Os of one kind wait far longer at a few drives than at their siblings, under the same load.

    Members that are rebuilt are not among them: they only write.
    """
    for kind in ("read", "write"):
        known = [
            (wait_ns, rate, each)
            for each in found.members
            if each.queue and (wait_ns := getattr(each.queue, f"{kind}_wait_ns")) is not None
            if (rate := getattr(each.queue, f"{kind}_iops")) > 0
        ]
        if len(known) < 3 or len(known) < len(found.members):
            continue
        usual, load = median(wait for wait, _, _ in known), median(rate for _, rate, _ in known)
        slow = [each for each in known if each[0] >= STANDS_OUT * usual and 1 / SAME_LOAD < each[1] / load < SAME_LOAD]
        if slow and len(slow) <= len(known) / 3:
            slow.sort(key=lambda each: -each[0])
            whose = "its" if len(slow) == 1 else "their"
            what = f"{whose} {kind}s waited {format_latency(slow[0][0])}, those of the others {format_latency(usual)}"
            return drives(what, [each.drive for _, _, each in slow])
    return None


def _drive_stands_out(found: Shortfall) -> Cause | None:
    """Without curves: of an array whose members have some, ``drive_delivers_less`` is the better rule."""
    return drive_stands_out(found) if found.predicted is None else None


def fio_is_the_bound(found: Shortfall) -> Cause | None:
    host = found.host
    if (host.jobs_busy or 0) >= JOBS_BUSY:
        return cause(Culprit.MEASUREMENT, f"fio's jobs used {host.jobs_busy:.0%} of a CPU each")
    if host.fio_iops and found.measured.value >= REACHED * host.fio_iops:
        alone = format_value(host.fio_iops, Unit.IOPS)
        return cause(Culprit.MEASUREMENT, f"fio submits no more than {alone} without any device")
    return None


def host_is_the_bound(found: Shortfall) -> Cause | None:
    """The CPUs are busy, or tasks wait for them, and the drives are not."""
    host = found.host
    if not is_above_drives(found):
        return None
    if (host.cpu_busy or 0) >= CPU_BUSY:
        return cause(Culprit.HOST, f"its CPUs were {host.cpu_busy:.0%} busy")
    if (host.interrupts_busy or 0) >= CPU_BUSY:
        what = f"all interrupts of the drives go to CPU {host.interrupt_cpus}, {host.interrupts_busy:.0%} busy"
        return cause(Culprit.HOST, what)
    if (host.cpu_pressure or 0) >= STARVED:
        return cause(Culprit.HOST, f"tasks waited for a CPU for {host.cpu_pressure:.0%} of the time")
    return None


def md_is_the_bound(found: Shortfall) -> Cause | None:
    """Md's own ceiling is reached, its thread or its workers are busy, or I/Os wait between fio and the drives."""
    ceiling, host = found.ceiling, found.host
    if ceiling_is_reached(found) and ceiling and ceiling.iops is not None:
        reached = format_value(ceiling.iops, Unit.IOPS)
        what = f"{found.geometry} of {ceiling.driver} devices does {reached} on this host{_headroom(found)}"
        return replace(cause(Culprit.MD, what), is_proven=_is_proven(found, ceiling.iops))
    if not is_above_drives(found):
        return None
    if (host.md_thread_busy or 0) >= THREAD_BUSY:
        return cause(Culprit.MD, f"its thread used {host.md_thread_busy:.0%} of a CPU")
    if (host.md_workers_busy or 0) >= THREAD_BUSY:
        return cause(Culprit.MD, f"its workers used {host.md_workers_busy:.0%} of a CPU each")
    if (host.stripe_cache or 0) >= CACHE_FULL:
        return cause(Culprit.MD, f"{host.stripe_cache:.0%} of its stripe cache was in use")
    share = found.depth_share
    if share is None:
        if found.at_drives is None or found.at_drives >= FAR_ABOVE:
            return None
        return cause(Culprit.MD, f"the drives had {found.at_drives:.0%} of the I/Os that they could have had")
    what = f"the drives had {share:.0%} of the I/Os outstanding that they would have if they were the bottleneck"
    return cause(Culprit.MD, what)


def _at_the_drives(found: Shortfall) -> Cause | None:
    """The drives have as many I/Os outstanding as if they were the bottleneck, and do less than their curves say."""
    share = found.depth_share
    if share is None or share < ABOVE or found.delivered is None or as_by_curves(found):
        return None
    # That they could do what is needed, by their curves, is no evidence against them.
    return _of_members(found, f"the I/Os wait at them, and they do {found.delivered:.0%} of their own curves")


def as_by_curves(found: Shortfall) -> bool:
    """Return True if the members did what their own curves say at the I/Os that reached them."""
    return found.delivered is not None and found.delivered >= BY_CURVES


#: In the order of decision, each with its confidence: (right + 1) / (all + 2) of its answers in `bench/attribution.py`
#: (Laplace's rule of succession; `--every 10`: 83 of 85 broken promises), so a rule that decided nothing there has 0.5.
RULES: Mapping[Rule, float] = {
    foreign: 0.83,
    _members_cannot: 0.89,
    _exactly_as_predicted: 0.85,
    drive_delivers_less: 0.88,
    _as_predicted: 0.67,
    _drive_stands_out: 0.5,
    fio_is_the_bound: 0.86,
    host_is_the_bound: 0.94,
    md_is_the_bound: 0.96,
    _at_the_drives: 0.5,
}


def _unexplained(found: Shortfall) -> Cause:
    done = format_value(found.measured.value, Unit.IOPS)
    if found.predicted is None:
        return cause(Culprit.UNKNOWN, found.why_not or "there is no prediction")
    of = format_value(found.predicted.value, Unit.IOPS)
    return cause(Culprit.UNEXPLAINED, f"{found.geometry} did {done} of the {of} that its drives can do")


def _of_members(found: Shortfall, what: str = "") -> Cause:
    """Name the path or the drives because of which the members cannot do more.

    ``what`` is the evidence if no drive differs from the others.
    """
    if found.predicted and (shared := path(found, partial(_suffice_alone, found))):
        return shared
    known = [(each.speed, each) for each in found.members if each.speed is not None]
    slow = sorted((pair for pair in known if pair[0] < SLOW), key=lambda pair: pair[0])
    # Drives half as far off as the slowest one, and not those that are within the scatter of their lot.
    named = [pair for pair in slow if 1 - pair[0] >= (1 - slow[0][0]) / 2]
    if named and len(named) <= len(known) / 3 and _is_enough(found, [each.drive for _, each in named]):
        shares = ", ".join(f"{100 * share:.0f} %" for share, _ in named[:NAMED])
        whose = "it does" if len(named) == 1 else "they do"
        evidence = f"{whose} {shares} of the median drive's IOPS at this load"
        return drives(evidence, [each.drive for _, each in named])
    return Cause(Culprit.DRIVES, what or _by_their_curves(found), tuple(each.drive for _, each in slow))


def _by_their_curves(found: Shortfall) -> str:
    """Return the evidence that the drives decide: what they can do, or how near it is, where it would suffice."""
    if found.predicted and found.needed is not None and found.predicted.value >= found.needed:
        return f"{found.geometry} did {found.efficiency:.0%} of what these drives can do, by their own curves"
    predicted = format_value(found.predicted.value, Unit.IOPS) if found.predicted else "less"
    return f"{found.geometry} of these drives can do {predicted}, by their own curves"


def _suffice_alone(found: Shortfall, share: float) -> bool:
    return found.needed is None or _most(found) / share >= found.needed


def _is_enough(found: Shortfall, names: list[str]) -> bool:
    """Return True if the array would do what is needed with the named drives replaced by median ones."""
    if found.replaced is None or found.needed is None:
        return True
    return found.replaced(names) * (1 + MODEL_ERROR) >= found.needed


def path(found: Shortfall, is_enough: Callable[[float], bool]) -> Cause | None:
    """Drives are slower side by side than alone, and alone they would suffice.

    ``is_enough`` says that of the share of what they do alone that they do side by side.
    """
    known = [(each.together, each) for each in found.members if each.together is not None]
    slowed = sorted((pair for pair in known if pair[0] < SHARED), key=lambda pair: pair[0])
    if len(slowed) < 2:
        return None
    share = median(share for share, _ in slowed)
    if not is_enough(share):
        return None
    behind = tuple(each.drive for _, each in slowed)
    what = f"{len(behind)} drives side by side do {share:.0%} of what they do alone"
    return Cause(Culprit.PATH, what, behind, ADVICE[Culprit.PATH])


def _most(found: Shortfall) -> float:
    """Most IOPS that an array of these members could do: as predicted, or as it did.

    It can do more than predicted if fewer drives share a path in the array than side by side.
    """
    predicted = found.predicted.high * (1 + MODEL_ERROR) if found.predicted else 0.0
    return max(predicted, found.measured.high)


def ceiling_is_reached(found: Shortfall) -> bool:
    ceiling = found.ceiling
    return ceiling is not None and ceiling.iops is not None and found.measured.value >= REACHED * ceiling.iops


def _is_proven(found: Shortfall, ceiling_iops: float) -> bool:
    """Return whether md keeps the array from what is needed; that its members do not is known by then.

    A ceiling of IOPS proves nothing about latencies, nor about what does not follow from IOPS.
    """
    if found.needed is None or found.latency is not None or found.predicted is None:
        return False
    return ceiling_iops < found.needed <= _most(found)


def _headroom(found: Shortfall) -> str:
    """Return how much more the members can do by their own curves; empty if that is not known."""
    if found.predicted is None or found.measured.value <= 0:
        return ""
    return f", and these drives can do {found.predicted.value / found.measured.value:.2g} times as much"


def is_above_drives(found: Shortfall) -> bool:
    """Return True if the drives had fewer I/Os outstanding than as the bottleneck; True if that is unknown."""
    share = found.at_drives if found.depth_share is None else found.depth_share
    return share is None or share < ABOVE


def cause(culprit: Culprit, evidence: str) -> Cause:
    """Return a cause; ``first_of`` adds the confidence of the rule."""
    return Cause(culprit, evidence, advice=ADVICE.get(culprit, ""))


def drives(evidence: str, serials: Sequence[str]) -> Cause:
    return Cause(Culprit.DRIVE if len(serials) == 1 else Culprit.DRIVES, evidence, tuple(serials))
