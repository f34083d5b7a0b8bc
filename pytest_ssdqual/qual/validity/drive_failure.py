"""Attribution of a failed measurement to a drive, its link, the path of drives, the host, a person, or to nothing.

``fault_signatures`` says what each message of the kernel proves; here the messages are weighed. A drive has failed if
it reports it itself (SMART, a status of media or hardware errors), or if it alone stopped answering, or returned I/O
errors without a reason. A reason that is not the drive's own wins over a loss: a request that was refused on purpose,
words about its link, its adapter, the host or a person. If several drives lost their connection at once, their path is
the likelier cause. A status that proves nothing leaves the origin unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import KernelLine
from pytest_ssdqual.qual.validity import fault_codes, fault_signatures
from pytest_ssdqual.qual.validity.fault_codes import Fault, Meaning

#: Errors that a drive can cause. SMART data alone blame a drive for no other error: what they count may be hours old.
OF_DRIVES = re.compile(
    r"I/O error|degraded|it is gone|state is broken|stuck|errno (5|61|110|121)\b|did not end within|reported only \d+ s"
)
#: Further errors that a host can cause.
OF_HOST = re.compile(r"killed by signal|disappeared|did not take a|ended early by signal")
#: errno of a request in fio's words.
ERRNO = re.compile(r"^I/O error on (\S+): (.+?)(?: \(|$)")
#: Kernel messages that a sentence quotes.
QUOTED = 2
#: What tells a defective drive from its link.
TELL_APART = (
    "to tell them apart, compare the drives on the same adapter or expander, read the counters of CRC and link errors "
    "(SMART, `smartctl -l sataphy`, AER in sysfs), and repeat with the drive in another slot"
)


@frozen
class DriveTrace:
    """What is known of one drive after a measurement has failed; unknown values are empty or None."""

    serial: str
    #: Device path in the messages of fio.
    path: str
    #: Names by which only this drive is meant in kernel messages.
    names: tuple[str, ...] = ()
    #: False if the kernel has no such device any more.
    present: bool | None = None
    #: True if the kernel holds the device as read-only.
    read_only: bool = False
    #: True if md holds it as faulty or has removed it, and this run did not ask for that.
    is_faulty: bool = False
    #: Defects that its SMART data report since they were read before.
    smart: tuple[str, ...] = ()
    #: True if smartctl gets no answer from it; alone it is no evidence, since smartctl may fail because of the host.
    is_silent: bool = False


@frozen
class FailedDrive:
    """A drive that failed: its serial number, the observations, and the kernel's words about it."""

    serial: str
    findings: tuple[str, ...]
    kernel: tuple[str, ...]
    #: Name of the array, or of the drives side by side, under whose load it failed.
    under: str = ""

    @property
    def sentence(self) -> str:
        """``drive SSDQ0002 failed: it dropped out; kernel: […] nvme nvme1: …``."""
        words = f"; kernel: {' | '.join(self.kernel[:QUOTED])}" if self.kernel else ""
        return f"drive {self.serial} failed: {'; '.join(self.findings)}{words}"


@frozen
class FailureAttribution:
    """Origin of a failed measurement; ``drives`` is empty unless drives are the origin."""

    #: What failed, or prevented the measurement: drive, link, path, host, refused, person or unknown.
    origin: Fault
    drives: tuple[FailedDrive, ...] = ()
    #: The evidence as a clause, and what a person can do; empty if nothing is known, or if the origin is a drive.
    why: str = ""
    #: Serial numbers of the drives that ``why`` is about, none of which is called defective.
    about: tuple[str, ...] = ()
    #: The part of ``why`` that says what a person can do.
    cure: str = ""


@frozen
class _Word:
    """One kernel message, its meaning, and its place among all of them."""

    line: KernelLine
    meaning: Meaning
    place: int


_OWN = Fault.MEDIUM, Fault.DRIVE
_READ_ONLY = Meaning(
    Fault.REFUSED, "the kernel holds it as read-only, and its health gives no reason", fault_codes.UNPROTECT
)
#: md's own message without any about a request: ``mdadm --fail`` of another program leaves no more.
_TAKEN_OUT = Meaning(
    Fault.UNKNOWN, "md took it out of the array, and the kernel reports no failed request of it",
    "did another program run `mdadm --fail`?",
)  # fmt: skip


@frozen
class _Suspect:
    """A drive about which something was observed; ``reason`` is what decides."""

    trace: DriveTrace
    findings: tuple[str, ...]
    reason: Meaning
    words: tuple[_Word, ...]

    @property
    def fault(self) -> Fault:
        return self.reason.fault

    @property
    def is_lost(self) -> bool:
        return self.fault in (Fault.SILENT, Fault.GIVEN_UP, Fault.FAILED)

    @property
    def kernel(self) -> tuple[str, ...]:
        """The messages about it, those of the reason first, then by severity, then by time."""

        def rank(word: _Word) -> tuple[bool, bool, int]:
            is_own = word.meaning.fault in _OWN
            is_reason = word.meaning is self.reason
            return not is_own, not is_reason, 8 if word.line.level is None else word.line.level

        return tuple(word.line.describe() for word in sorted(self.words, key=rank))

    @property
    def failed(self) -> FailedDrive:
        return FailedDrive(self.trace.serial, self.findings, self.kernel)


def attribute(error: str, drives: Sequence[DriveTrace], kernel: Iterable[KernelLine]) -> FailureAttribution:
    """Attribute a measurement that ended with ``error``, by the kernel's messages during it, in their order."""
    lines = tuple(kernel)
    meanings = fault_signatures.meanings([line.text for line in lines])
    words = tuple(map(_Word, lines, meanings, range(len(lines))))
    named = [tuple(word for word in words if _names(word.line.text, drive.names)) for drive in drives]
    shared = tuple(word for word in words if not any(word in own for own in named))
    is_alone = sum(map(_is_lost, drives, named)) <= 1
    explaining = [_explaining(own, shared) if is_alone else (own, shared) for own in named]
    weighed = (
        _suspect(error, drive, own, *earlier) for drive, own, earlier in zip(drives, named, explaining, strict=True)
    )
    suspects = [suspect for suspect in weighed if suspect]
    is_of_host = any(_of(words, Fault.HOST, Fault.PATH))
    if proven := [suspect for suspect in suspects if suspect.fault in _OWN]:
        # One more that is gone is named, too; several may be the path's.
        gone = [
            suspect
            for suspect in suspects
            if suspect.is_lost and (suspect.trace.present is False or suspect.trace.is_faulty)
        ]
        accused = [*proven, *gone] if len(gone) == 1 and not is_of_host else proven
        return FailureAttribution(Fault.DRIVE, tuple(suspect.failed for suspect in accused))
    if OF_HOST.search(error) and not any(map(_is_lost, drives, named)):
        # A drive that recovered does not kill fio, and a host that has no memory does.
        suspects = []
    return _unproven(suspects) if suspects else _without_suspects(error, shared)


def _is_lost(drive: DriveTrace, own: Sequence[_Word]) -> bool:
    """Return whether the drive did not come back: a request that failed or was late is no loss by itself."""
    return drive.present is False or drive.is_faulty or any(_of(own, Fault.GIVEN_UP))


def _explaining(own: Sequence[_Word], shared: Sequence[_Word]) -> tuple[Sequence[_Word], Sequence[_Word]]:
    """Return the words that can explain the loss of one drive: those before it stopped answering.

    The recovery of one hung drive goes on to its adapter (scsi_error.c resets device, target, bus and host), and its
    removal may stall the host. Of several drives at once, what they share is the likelier cause whenever it is said.
    """
    silent = next(_of(own, Fault.SILENT, Fault.GIVEN_UP), None)
    if silent is None:
        return own, shared
    return [word for word in own if word.place < silent.place], [word for word in shared if word.place < silent.place]


def _unproven(suspects: Sequence[_Suspect]) -> FailureAttribution:
    """Attribute the loss of drives none of which reports a defect of its own.

    Drives that were lost come before those about which there are words only, such as a link that recovered.
    """
    struck = [suspect for suspect in suspects if suspect.findings] or suspects

    def of(fault: Fault) -> list[_Suspect]:
        return [suspect for suspect in struck if suspect.fault is fault]

    if explained := of(Fault.HOST) or of(Fault.PATH):
        return _explained(explained)
    lost = [suspect for suspect in struck if suspect.is_lost]
    linked = of(Fault.LINK)
    if len(lost) + len(linked) > 1:
        together = [suspect for suspect in struck if suspect in lost or suspect in linked]
        serials = tuple(suspect.trace.serial for suspect in together)
        words = next((f"; kernel: {suspect.kernel[0]}" for suspect in together if suspect.kernel), "")
        why = f"{len(together)} drives failed at once ({', '.join(serials)}), which points to a path that they share"
        return FailureAttribution(Fault.PATH, why=f"{why}{words}", about=serials)
    if lost:
        return FailureAttribution(Fault.DRIVE, tuple(suspect.failed for suspect in lost))
    return _explained(of(Fault.PERSON) or of(Fault.REFUSED) or linked or of(Fault.UNKNOWN))


def _explained(suspects: Sequence[_Suspect]) -> FailureAttribution:
    """Attribute to the reason of the first suspect, and name all that have the same one."""
    reason = suspects[0].reason
    alike = [suspect for suspect in suspects if suspect.reason.text == reason.text]
    serials = tuple(suspect.trace.serial for suspect in alike)
    names = f"drive {serials[0]}" if len(serials) == 1 else f"drives {', '.join(serials)}"
    have = "has" if len(serials) == 1 else "have"
    beginning = {
        Fault.HOST: f"the host is at fault, and not {names}: {reason.text}",
        Fault.PATH: f"the path is at fault, and not {names}: {reason.text}",
        Fault.LINK: f"{names} or its slot, cable or backplane: {reason.text}",
        Fault.UNKNOWN: f"whether {names} {have} failed is unknown: {reason.text}",
    }.get(reason.fault, f"{names} {have} not failed: {reason.text}")
    cure = TELL_APART if reason.fault is Fault.LINK else reason.cure
    quoted = [word.line.describe() for suspect in alike for word in suspect.words if word.meaning is reason][:QUOTED]
    parts = (beginning, cure, f"kernel: {' | '.join(quoted)}" if quoted else "")
    return FailureAttribution(reason.fault, why="; ".join(filter(None, parts)), about=serials, cure=cure)


def _without_suspects(error: str, shared: Sequence[_Word]) -> FailureAttribution:
    """Attribute an error beside which no drive was lost: the kernel may state a fault of the host or of an adapter."""
    if OF_DRIVES.search(error) or OF_HOST.search(error):
        for fault in (Fault.HOST, Fault.PATH, Fault.STARVED):
            if word := next(_of(shared, fault), None):
                parts = (f"the kernel reports a fault of the host: {word.meaning.text}", word.meaning.cure)
                why = f"{'; '.join(filter(None, parts))}; kernel: {word.line.describe()}"
                origin = Fault.PATH if fault is Fault.PATH else Fault.HOST
                return FailureAttribution(origin, why=why, cure=word.meaning.cure)
    return FailureAttribution(Fault.UNKNOWN)


def _suspect(
    error: str, drive: DriveTrace, own: Sequence[_Word], earlier: Sequence[_Word], shared: Sequence[_Word]
) -> _Suspect | None:
    """Return the drive with what decides about it; None if nothing was observed that the error can come from.

    ``earlier`` of its ``own`` words and ``shared`` ones can explain its loss.
    """
    is_of_drives = OF_DRIVES.search(error) is not None
    stated = ERRNO.match(error)
    errno = (
        fault_codes.of_errno(stated[2], drive.path) if stated and stated[1] == drive.path else fault_codes.CONSEQUENCE
    )
    proof = [meaning for meaning in (*(word.meaning for word in own), errno) if meaning.fault in _OWN]
    findings = [*(drive.smart if is_of_drives else ()), *dict.fromkeys(meaning.text for meaning in proof)]
    lost = _losses(error, drive, own)
    if findings:
        decisive = proof[0] if proof else fault_codes.HARDWARE_DEFECT
    elif reason := _reason(drive, own, earlier, shared, has_lost=bool(lost)):
        decisive = reason
    elif errno.fault in (Fault.REFUSED, Fault.UNKNOWN):
        decisive = errno
    elif lost:
        decisive = fault_codes.FAILED
    else:
        return None
    if not (findings or lost or is_of_drives):
        return None
    findings += lost
    if drive.is_silent and findings:
        findings.append("it answers smartctl no more")
    words = tuple(own) if decisive in {word.meaning for word in own} else (*own, *_first(shared, decisive))
    return _Suspect(drive, tuple(findings), decisive, words)


def _losses(error: str, drive: DriveTrace, own: Sequence[_Word]) -> list[str]:
    """Observations that the drive was lost or returned errors, whatever the reason."""
    lost = []
    if drive.present is False:
        lost.append("it dropped out")
    elif drive.read_only:
        lost.append("it turned read-only")
    if drive.is_faulty:
        lost.append("md took it out of the array after failed requests")
    if error.startswith(f"I/O error on {drive.path}:"):
        lost.append("it returned I/O errors")
    for fault in (Fault.GIVEN_UP, Fault.SILENT, Fault.FAILED):
        if not lost and (word := next(_of(own, fault), None)):
            lost.append(word.meaning.text)
    return lost


def _reason(
    drive: DriveTrace, own: Sequence[_Word], earlier: Sequence[_Word], shared: Sequence[_Word], *, has_lost: bool
) -> Meaning | None:
    """Return the reason that decides about a drive without a defect of its own; None if there is none but its loss.

    A person, the host and a path explain every loss. A refusal explains failed requests and not a drive that is gone.
    Words about the link count only until the kernel gave the drive up: what follows is a consequence. A status that
    proves nothing explains failed requests, and not a drive that does not answer.
    """

    def first(words: Sequence[_Word], *faults: Fault) -> Meaning | None:
        return next((word.meaning for word in _of(words, *faults)), None)

    given_up = next((index for index, word in enumerate(own) if word.meaning.fault is Fault.GIVEN_UP), len(own))
    is_gone = drive.present is False or given_up < len(own)
    refusal = None if is_gone else first(own, Fault.REFUSED)
    if reason := _person(own, earlier, shared if has_lost else ()) or refusal:
        return reason
    loss = first(own, Fault.GIVEN_UP, Fault.SILENT)
    everyone = (*earlier, *shared) if has_lost else tuple(earlier)
    if reason := first(everyone, Fault.HOST) or first(everyone, Fault.PATH):
        return reason
    if reason := first(own[:given_up], Fault.LINK) or (first(shared, Fault.LINK) if has_lost else None):
        return reason
    if loss or is_gone:
        return loss or fault_codes.GIVEN_UP
    if drive.read_only:
        return _READ_ONLY
    if drive.is_faulty and own and all(word.meaning.fault is Fault.CONSEQUENCE for word in own):
        return _TAKEN_OUT
    return first(own, Fault.UNKNOWN)


def _person(own: Sequence[_Word], earlier: Sequence[_Word], shared: Sequence[_Word]) -> Meaning | None:
    """Return the reason if a person or another program took the drive away, or the path before it did; else None.

    A drive that announces its namespaces again after it stopped answering has done so by itself.
    """
    by_others = (
        word for word in _of(own, Fault.PERSON) if word.meaning is not fault_signatures.RESCANNED or word in earlier
    )
    person = next(by_others, None)
    if person is None or person.meaning not in fault_signatures.ALSO_BY_KERNEL:
        return person.meaning if person else None
    before = [word.meaning for word in (*own, *shared) if word.place < person.place]
    return next((meaning for meaning in before if meaning.fault is Fault.PATH), person.meaning)


def _first(words: Sequence[_Word], meaning: Meaning) -> Sequence[_Word]:
    return [word for word in words if word.meaning is meaning][:1]


def _of(words: Iterable[_Word], *faults: Fault) -> Iterator[_Word]:
    return (word for word in words if word.meaning.fault in faults)


def _names(text: str, names: Iterable[str]) -> bool:
    """Return whether a message names a drive; ``nvme1`` is not named by ``nvme10`` nor by ``nvme1c1``."""
    return any(re.search(rf"(?<![\w.:]){re.escape(name)}(?!\w|\.\d|:\S)", text) for name in names)
