"""What an NVMe drive has to purge itself: Format NVM and Sanitize, by nvme-cli.

Bits and values are those of the NVM Express Base Specification 2.0: Identify Controller, Identify Namespace, Format
NVM, Sanitize, and the Sanitize Status log page. nvme-cli changed option and key names between 1.x and 3; only what
all of them know is used (looked up in 1.16, 2.3, 2.16 and 3.0-rc1).

The rule of the module: a command that could reach data of somebody else is not sent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.lease import must_finish
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import Completed, Machine, RigError
from pytest_ssdqual.rig.purge import zero
from pytest_ssdqual.rig.purge.zero import PURGE_DEADLINE_S, PassedOver

#: OACS: Format NVM; namespace management, without which no list of all allocated namespaces can be had.
FORMAT_SUPPORTED, MANAGES_NAMESPACES = 1 << 1, 1 << 3
#: FNA bits 0 and 1: format, or its secure erase, reaches *all* namespaces, and so drives that nobody gave us.
FORMAT_REACHES_ALL = 0b011
#: CMIC: the subsystem may have further controllers, with namespaces that this one does not show.
SEVERAL_CONTROLLERS = 1 << 1
#: SANICAP bits and the actions of the Sanitize command that they stand for, best first. Overwriting is none of them:
#: it wears flash out and purges no better.
SANITIZES = ((1 << 1, 2, "block erase"), (1 << 0, 4, "crypto erase"))
EXIT_FAILURE_MODE = 1

#: SSTAT, bits 2:0; 4 is a success that could not keep the blocks allocated, which we did not ask for.
IN_PROGRESS, FAILED, SUCCEEDED = 2, 3, (1, 4)
#: Get Log Page. The status is in the first eight bytes; the page is asked for whole, because there are drives that
#: write more of it than was asked for (udisks#1152).
SANITIZE_STATUS = ("--log-id=0x81", "--log-len=512", "--raw-binary")
AWAIT_SANITIZE = scripts.text("await_nvme_sanitize.sh")
#: Of a command that only starts something.
COMMAND_DEADLINE_S = 60.0
#: A sanitize ends by itself, or not at all: there is no command to stop it.
SANITIZE_DEADLINE_S = 4 * 3600.0


@dataclass(frozen=True, slots=True)
class NvmeController:
    """Of Identify Controller, what decides how a drive may be purged."""

    oacs: int
    fna: int
    cmic: int
    sanicap: int
    #: The largest namespace number that the subsystem can have.
    nn: int


@dataclass(frozen=True, slots=True)
class NamespaceFormat:
    """How a namespace is formatted: what a purge must not change."""

    flbas: int
    dps: int
    nsze: int
    #: Of it that is still to be formatted: none, before and after.
    remaining_percent: int

    def options(self) -> list[str]:
        """For ``nvme format``. It takes what is not said for 0, and format 0 where a format reaches all namespaces."""
        lbaf = self.flbas & 0x0F | (self.flbas & 0x60) >> 1
        return [f"--lbaf={lbaf}", f"--ms={self.flbas >> 4 & 1}", f"--pi={self.dps & 7}", f"--pil={self.dps >> 3 & 1}"]


@dataclass(frozen=True, slots=True)
class SanitizeStatus:
    """Of the Sanitize Status log: how the last or present one goes, and which action it is."""

    state: int
    action: int


def format_namespace(machine: Machine, drive: Drive) -> str:
    """Format with user data erase, in the format it has; returns what was done, ``PassedOver`` if nothing was.

    ``RigError`` if the drive is another one afterwards.
    """
    controller = _controller(machine, drive)
    if not controller.oacs & FORMAT_SUPPORTED:
        raise PassedOver("the controller does not support it")
    if controller.fna & FORMAT_REACHES_ALL:
        _require_alone(machine, drive, controller)
    before = _layout(machine, drive)
    # Its own time-out is ten minutes, and the kernel then resets the controller in the middle of it.
    timeout = f"--timeout={int((PURGE_DEADLINE_S - 60) * 1000)}"
    # --force: without it, it waits ten seconds for a human. It then does not open the drive exclusively: so we do.
    argv = ["nvme", "format", drive.path, "--ses=1", *before.options(), timeout, "--force"]
    # No signal can end it: nvme-cli waits in the kernel. It holds the drive for as long as it really takes.
    work = must_finish(drive, "NVMe Format", caution="it must not lose its power until then")
    done = fencing.run(machine, argv, [drive], alone=True, deadline_s=PURGE_DEADLINE_S, check=False, must_finish=work)
    if done.status:
        raise PassedOver(f"the drive refused it: {last_words(done)}")
    try:
        after = _layout(machine, drive)
    except PassedOver as reason:
        raise RigError(f"{drive.describe()} was formatted and has not answered since: {reason}") from reason
    if after != before:
        raise RigError(f"{drive.describe()} is not what it was before it was formatted: {before} became {after}")
    return "NVMe Format, user data erase"


def sanitize(machine: Machine, drive: Drive) -> str:
    """Sanitize the subsystem of which the drive is all there is; returns what was done, when it is done.

    ``PassedOver`` if nothing was done, or it failed and the drive has recovered from that; ``RigError`` if it has not.
    It goes on in the drive whatever becomes of this computer, that machine and the drive's power; until then other runs
    are told so.
    """
    controller = _controller(machine, drive)
    found = [(action, name) for bit, action, name in SANITIZES if controller.sanicap & bit]
    if not found:
        raise PassedOver("the controller supports neither block erase nor crypto erase")
    action, name = found[0]
    _require_alone(machine, drive, controller)
    await_sanitize(machine, drive)
    # --ause: if it fails, the drive may be told to leave its failure mode.
    done = _sanitize(machine, drive, action, "--ause")
    if done.status:
        raise PassedOver(f"the drive refused it: {last_words(done)}")
    status = _finished(machine, drive)
    # The action is that of the operation whose status this is: not of an earlier one. 0 is a drive that tells none.
    if status and status.state in SUCCEEDED and status.action in (action, 0):
        return f"NVMe Sanitize, {name}"
    if status and status.state == FAILED:
        left = _sanitize(machine, drive, EXIT_FAILURE_MODE)
        if left.status == 0:
            raise PassedOver(f"the {name} failed in the drive, which then left its failure mode")
    raise RigError(
        f"{drive.describe()} did not complete its sanitize ({name}), and may refuse all data until one succeeds: "
        f"look at `nvme sanitize-log {drive.path}`"
    )


def _sanitize(machine: Machine, drive: Drive, action: int, *options: str) -> Completed:
    argv = ["nvme", "sanitize", drive.path, f"--sanact={action}", *options]
    return fencing.run(machine, argv, [drive], alone=True, deadline_s=COMMAND_DEADLINE_S, check=False)


def await_sanitize(machine: Machine, drive: Drive) -> bool:
    """Whether a sanitize that somebody had started was still going on; it is over now."""
    status = sanitize_status(machine, drive)
    if status is None or status.state != IN_PROGRESS:
        return False
    _finished(machine, drive)
    return True


def sanitize_status(machine: Machine, drive: Drive) -> SanitizeStatus | None:
    """None if the drive does not keep this log."""
    done = machine.run(["nvme", "get-log", drive.path, *SANITIZE_STATUS], check=False, repeatable=True)
    if done.status or len(done.stdout) < 8:
        return None
    _progress, status, dword10 = struct.unpack_from("<HHI", done.stdout)
    return SanitizeStatus(status & 7, dword10 & 7)


def _finished(machine: Machine, drive: Drive) -> SanitizeStatus | None:
    """The status when the drive is through: the command's completion only says that it has begun."""
    zero.await_in_drive(machine, drive, AWAIT_SANITIZE, "NVMe Sanitize", SANITIZE_DEADLINE_S, SANITIZE_STATUS)
    return sanitize_status(machine, drive)


def _require_alone(machine: Machine, drive: Drive, controller: NvmeController) -> None:
    """``PassedOver`` unless the drive's namespace is provably the only one of its subsystem."""
    if controller.nn == 1:
        return
    managed = bool(controller.oacs & MANAGES_NAMESPACES)
    if not managed and controller.cmic & SEVERAL_CONTROLLERS:
        raise PassedOver("it would reach namespaces of other controllers, which this one does not show")
    every = ["--all"] if managed else []
    found = _asked(machine, ["nvme", "list-ns", drive.path, *every, "--output-format=json"]).get("nsid_list")
    if not isinstance(found, list) or len(found) != 1:
        count = len(found) if isinstance(found, list) else "an unknown number of"
        raise PassedOver(f"it would reach {count} namespaces, not this drive alone")


def _controller(machine: Machine, drive: Drive) -> NvmeController:
    said = _asked(machine, ["nvme", "id-ctrl", drive.path, "--output-format=json"])
    # What an old nvme-cli does not tell is taken for the answer that forbids most.
    return NvmeController(
        _number(said, "oacs", 0),
        _number(said, "fna", FORMAT_REACHES_ALL),
        _number(said, "cmic", SEVERAL_CONTROLLERS),
        _number(said, "sanicap", 0),
        _number(said, "nn", 0),
    )


def _layout(machine: Machine, drive: Drive) -> NamespaceFormat:
    said = _asked(machine, ["nvme", "id-ns", drive.path, "--output-format=json"])
    if any(name not in said for name in ("flbas", "dps", "nsze")):
        raise PassedOver("the drive does not say how it is formatted")
    fpi = _number(said, "fpi", 0)
    return NamespaceFormat(
        _number(said, "flbas", 0), _number(said, "dps", 0), _number(said, "nsze", 0), fpi & 0x7F if fpi & 0x80 else 0
    )


def _asked(machine: Machine, argv: Sequence[str]) -> dict[str, object]:
    done = machine.run(argv, check=False)
    if done.status:
        raise PassedOver(f"nvme {argv[1]} failed: {last_words(done)}")
    try:
        said = strict_json.read_json(done.text)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise PassedOver(f"nvme {argv[1]} gave no answer that can be read")
    return said


def _number(said: dict[str, object], name: str, otherwise: int) -> int:
    found = strict_json.whole(said.get(name))
    return otherwise if found is None else found
