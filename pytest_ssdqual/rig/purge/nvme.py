"""Purge of NVMe drives: Format NVM and Sanitize, by nvme-cli.

Bits and values are those of the NVM Express Base Specification 2.0: Identify Controller, Identify Namespace, Format
NVM, Sanitize, and the Sanitize Status log page. nvme-cli changed option and key names between 1.x and 3; this module
uses only those of all versions (checked in 1.16, 2.3, 2.16 and 3.0-rc1).

A command that could reach data outside of this run's drives is not sent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.lease import must_finish
from pytest_ssdqual.rig.health.smart_answer import parsed
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import Completed, Machine, RigError, ask
from pytest_ssdqual.rig.purge import zero
from pytest_ssdqual.rig.purge.zero import COMMAND_DEADLINE_S, PURGE_DEADLINE_S, PassedOver

#: OACS: Format NVM; namespace management, without which no list of all allocated namespaces is available.
FORMAT_SUPPORTED, MANAGES_NAMESPACES = 1 << 1, 1 << 3
#: FNA bits 0 and 1: format, or its secure erase, reaches *all* namespaces, and so drives that are not in this run.
FORMAT_REACHES_ALL = 0b011
#: CMIC: the subsystem may have further controllers, with namespaces that this one does not show.
SEVERAL_CONTROLLERS = 1 << 1
#: SANICAP bits and the Sanitize actions that they stand for, best first. Overwriting is not among them: it wears
#: the flash and purges no better.
SANITIZES = ((1 << 1, 2, "block erase"), (1 << 0, 4, "crypto erase"))
EXIT_FAILURE_MODE = 1

#: SSTAT, bits 2:0; 4 is a success that could not keep the blocks allocated, which this program does not request.
IN_PROGRESS, FAILED, SUCCEEDED = 2, 3, (1, 4)
#: Get Log Page. The status is in the first eight bytes; the whole page is requested, because some drives write
#: more of it than requested (udisks#1152).
SANITIZE_STATUS = ("--log-id=0x81", "--log-len=512", "--raw-binary")
AWAIT_SANITIZE = scripts.text("await_nvme_sanitize.sh")


@frozen
class NvmeController:
    """Fields of Identify Controller that decide how a drive may be purged."""

    oacs: int
    fna: int
    cmic: int
    sanicap: int
    #: The largest possible namespace number of the subsystem.
    nn: int


@frozen
class NamespaceFormat:
    """Format of a namespace, which a purge must not change."""

    flbas: int
    dps: int
    nsze: int
    #: Percentage that is still to be formatted: 0 before and after.
    remaining_percent: int

    def options(self) -> list[str]:
        """Options of ``nvme format``, which takes 0 for an omitted one, also where a format reaches all namespaces."""
        lbaf = self.flbas & 0x0F | (self.flbas & 0x60) >> 1
        return [f"--lbaf={lbaf}", f"--ms={self.flbas >> 4 & 1}", f"--pi={self.dps & 7}", f"--pil={self.dps >> 3 & 1}"]


@frozen
class SanitizeStatus:
    """State and action of the last or current operation in the Sanitize Status log."""

    state: int
    action: int


def format_namespace(machine: Machine, drive: Drive) -> str:
    """Format with user data erase, in the present format; return what was done, ``PassedOver`` if nothing was.

    ``RigError`` if the drive has changed afterwards.
    """
    controller = _controller(machine, drive)
    if not controller.oacs & FORMAT_SUPPORTED:
        raise PassedOver("the controller does not support it")
    if controller.fna & FORMAT_REACHES_ALL:
        _require_alone(machine, drive, controller)
    before = _layout(machine, drive)
    # nvme-cli's default timeout is ten minutes, after which the kernel resets the controller in the middle of it.
    timeout = f"--timeout={int((PURGE_DEADLINE_S - 60) * 1000)}"
    # --force: without it, nvme-cli waits ten seconds for a human. With it, nvme-cli does not open the drive
    # exclusively, so this program does.
    argv = ["nvme", "format", drive.path, "--ses=1", *before.options(), timeout, "--force"]
    # No signal can end it: nvme-cli waits in the kernel, and holds the drive for the real duration.
    work = must_finish(drive, "NVMe Format", caution="it must not lose its power until then")
    done = fencing.run(machine, argv, [drive], alone=True, deadline_s=PURGE_DEADLINE_S, check=False, must_finish=work)
    if done.status:
        raise PassedOver(f"the drive refused it: {last_words(done)}")
    try:
        after = _layout(machine, drive)
    except PassedOver as reason:
        raise RigError(f"{drive.describe()} was formatted and has not answered since: {reason}") from reason
    if after != before:
        raise RigError(f"{drive.describe()} has changed its layout by being formatted: {before} became {after}")
    return "NVMe Format, user data erase"


def sanitize(machine: Machine, drive: Drive) -> str:
    """Sanitize the subsystem if the drive is all of it; return what was done, when it is complete.

    ``PassedOver`` if nothing was done, or it failed and the drive has recovered; ``RigError`` if it has not. The drive
    continues it whatever happens to the controller, the machine or the drive's power; until then, a note informs other
    runs.
    """
    controller = _controller(machine, drive)
    supported = [(action, name) for bit, action, name in SANITIZES if controller.sanicap & bit]
    if not supported:
        raise PassedOver("the controller supports neither block erase nor crypto erase")
    action, name = supported[0]
    _require_alone(machine, drive, controller)
    await_sanitize(machine, drive)
    # --ause: permits the drive to leave its failure mode if the sanitize fails.
    done = _sanitize(machine, drive, action, "--ause")
    if done.status:
        raise PassedOver(f"the drive refused it: {last_words(done)}")
    status = _finished(machine, drive)
    # The status must be that of this operation, not of an earlier one. 0 is a drive that does not report the action.
    if status and status.state in SUCCEEDED and status.action in (action, 0):
        return f"NVMe Sanitize, {name}"
    if status and status.state == FAILED:
        exited = _sanitize(machine, drive, EXIT_FAILURE_MODE)
        if exited.status == 0:
            raise PassedOver(f"the {name} failed in the drive, which then left its failure mode")
    raise RigError(
        f"{drive.describe()} did not complete its sanitize ({name}), and may refuse all data until one succeeds: "
        f"look at `nvme sanitize-log {drive.path}`"
    )


def _sanitize(machine: Machine, drive: Drive, action: int, *options: str) -> Completed:
    argv = ["nvme", "sanitize", drive.path, f"--sanact={action}", *options]
    return fencing.run(machine, argv, [drive], alone=True, deadline_s=COMMAND_DEADLINE_S, check=False)


def await_sanitize(machine: Machine, drive: Drive) -> bool:
    """Wait for a sanitize that another process had started; return True if there was one."""
    status = sanitize_status(machine, drive)
    if status is None or status.state != IN_PROGRESS:
        return False
    _finished(machine, drive)
    return True


def sanitize_status(machine: Machine, drive: Drive) -> SanitizeStatus | None:
    """Read the log; None if the drive does not have it."""
    done = ask(machine, ["nvme", "get-log", drive.path, *SANITIZE_STATUS])
    if done.status or len(done.stdout) < 8:
        return None
    _progress, status, dword10 = struct.unpack_from("<HHI", done.stdout)
    return SanitizeStatus(status & 7, dword10 & 7)


def _finished(machine: Machine, drive: Drive) -> SanitizeStatus | None:
    """Wait for the drive and return its status: the command's completion only reports that the sanitize has begun."""
    zero.await_in_drive(machine, drive, AWAIT_SANITIZE, "NVMe Sanitize", SANITIZE_STATUS)
    return sanitize_status(machine, drive)


def _require_alone(machine: Machine, drive: Drive, controller: NvmeController) -> None:
    """``PassedOver`` unless the drive's namespace is provably the only one of its subsystem."""
    if controller.nn == 1:
        return
    managed = bool(controller.oacs & MANAGES_NAMESPACES)
    if not managed and controller.cmic & SEVERAL_CONTROLLERS:
        raise PassedOver("it would reach namespaces of other controllers, which this one does not show")
    options = ["--all"] if managed else []
    namespaces = _asked(machine, ["nvme", "list-ns", drive.path, *options, "--output-format=json"]).get("nsid_list")
    if not isinstance(namespaces, list) or len(namespaces) != 1:
        count = len(namespaces) if isinstance(namespaces, list) else "an unknown number of"
        raise PassedOver(f"it would reach {count} namespaces, not this drive alone")


def _controller(machine: Machine, drive: Drive) -> NvmeController:
    answer = _asked(machine, ["nvme", "id-ctrl", drive.path, "--output-format=json"])
    # For a field that an old nvme-cli does not report, the value that forbids most is assumed.
    return NvmeController(
        _number(answer, "oacs", 0),
        _number(answer, "fna", FORMAT_REACHES_ALL),
        _number(answer, "cmic", SEVERAL_CONTROLLERS),
        _sanicap(answer),
        _number(answer, "nn", 0),
    )


def _sanicap(answer: dict[str, object]) -> int:
    """SANICAP; nvme-cli 2.1 and 2.2 print it as a signed number, negative when bit 31 is set."""
    value = answer.get("sanicap")
    if isinstance(value, int) and -(1 << 31) <= value < 0:
        return value + (1 << 32)
    return _number(answer, "sanicap", 0)


def _layout(machine: Machine, drive: Drive) -> NamespaceFormat:
    answer = _asked(machine, ["nvme", "id-ns", drive.path, "--output-format=json"])
    if any(name not in answer for name in ("flbas", "dps", "nsze")):
        raise PassedOver("the drive does not report its format")
    fpi = _number(answer, "fpi", 0)
    return NamespaceFormat(
        _number(answer, "flbas", 0),
        _number(answer, "dps", 0),
        _number(answer, "nsze", 0),
        fpi & 0x7F if fpi & 0x80 else 0,
    )


def _asked(machine: Machine, argv: Sequence[str]) -> dict[str, object]:
    done = machine.run(argv, check=False)
    if done.status:
        raise PassedOver(f"nvme {argv[1]} failed: {last_words(done)}")
    answer = parsed(done.text)
    if not isinstance(answer, dict):
        raise PassedOver(f"nvme {argv[1]} printed no JSON object")
    return answer


def _number(answer: dict[str, object], name: str, otherwise: int) -> int:
    value = strict_json.whole(answer.get(name))
    return otherwise if value is None else value
