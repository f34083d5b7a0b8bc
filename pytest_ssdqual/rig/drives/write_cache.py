"""The volatile write cache of a drive: its state, as the drive itself reports it, and the switch.

The state is that of the drive: Identify Controller and Get Features 06h of NVMe, IDENTIFY DEVICE of SATA and the
caching mode page of SCSI as smartctl reads them. The kernel's ``queue/write_cache`` is what the kernel believes, and
switches nothing. Where smartctl is not used or reports nothing, the kernel's ``cache_type`` counts, which is what the
drive reported when the kernel last asked.

A switch is not meant to last: NVMe's is not saved, SATA's ends with a reset or the drive's power. A SCSI drive that can
save its caching page does (the kernel sets SP).
"""

from __future__ import annotations

import re

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.cache_state import CacheState
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health.smart_answer import parsed, whole
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import CommandFailed, Machine

SCRIPT = scripts.text("write_cache.sh")
#: The kernel gives an admin command of NVMe a minute before it resets the drive; a switch sends five.
DEADLINE_S = 330.0

#: ``Write cache is:   Enabled`` (ATA), ``Writeback Cache is:   Enabled`` (SCSI); smartctl 7.
SMARTCTL = re.compile(
    r"^(Write|Writeback) cache is:[ \t]+(Enabled|Disabled|Unavailable)[ \t]*$", re.IGNORECASE | re.MULTILINE
)
#: ``get-feature:0x06 (Volatile Write Cache), Current value:0x00000001``; nvme-cli 1.12 to 3.0.
FEATURE = re.compile(r"\bcurrent value:[ \t]*(?:0x)?([0-9a-f]{1,8})\b", re.IGNORECASE | re.ASCII)
SECTIONS = ("report", "identify", "feature", "drive", "kernel", "end")
#: The longest text that is quoted of a refused switch.
REASON_CHARACTERS = 200


#: Meaning of smartctl's answers: an ATA drive reports whether it has the feature, a SCSI drive did not answer.
ANSWERS = {
    ("write", "enabled"): CacheState.ON,
    ("write", "disabled"): CacheState.OFF,
    ("write", "unavailable"): CacheState.ABSENT,
    ("writeback", "enabled"): CacheState.ON,
    ("writeback", "disabled"): CacheState.OFF,
    ("writeback", "unavailable"): CacheState.UNKNOWN,
}
#: Meaning of the kernel's cache_type (drivers/scsi/sd.c).
KERNEL = {
    "write back": CacheState.ON,
    "write back, no read (daft)": CacheState.ON,
    "write through": CacheState.OFF,
    "none": CacheState.OFF,
}


@frozen
class Switched:
    """A switch, with the states before and after it, both as the drive reports them."""

    before: CacheState
    after: CacheState
    #: Last line that the switch printed; a reason only if the states say that it failed.
    printed: str = ""


def read(machine: Machine, drive: Drive) -> CacheState:
    """Return the state of a drive's write cache.

    ``DriveRefused`` if another drive is in its place, ``CommandFailed`` for an answer that was cut short.
    """
    return state(_asked(machine, drive, "read"))


def switch(machine: Machine, drive: Drive, to: CacheState) -> Switched:
    """Switch a drive's write cache on or off, and return the states that it reports before and after.

    A drive that refuses is no error: it is in the state that it reports. The caller holds the lease. Raises what
    ``read`` raises.
    """
    before, _, rest = _asked(machine, drive, to.value).partition("==switch\n")
    printed, _, after = rest.partition("==report\n")
    return Switched(state(before), state(after), safe_text.line(printed.strip().rpartition("\n")[2], REASON_CHARACTERS))


def by_hand(drive: Drive, to: CacheState) -> str:
    """Return the command by which a person switches the write cache, as this program does."""
    if drive.kname.startswith("nvme"):
        return f"nvme admin-passthru {drive.path} --opcode=9 --cdw10=6 --cdw11={int(to is CacheState.ON)}"
    kind = "write back" if to is CacheState.ON else "write through"
    return f"echo {kind} >$(echo /sys/block/{drive.sysfs_name}/device/scsi_disk/*/cache_type)"


def state(report: str) -> CacheState:
    """Return the state that a report of ``write_cache.sh`` shows; ``UNKNOWN`` if it shows none."""
    sections = _sections(report)
    present = whole(parsed(sections.get("identify", "")), "vwc")
    if present is not None and not present & 1:
        return CacheState.ABSENT
    if feature := FEATURE.search(sections.get("feature", "")):
        return CacheState.ON if int(feature[1], 16) & 1 else CacheState.OFF
    if answer := SMARTCTL.search(sections.get("drive", "")):
        return ANSWERS[answer[1].lower(), answer[2].lower()]
    return KERNEL.get(sections.get("kernel", "").strip(), CacheState.UNKNOWN)


def _asked(machine: Machine, drive: Drive, to: str) -> str:
    argv = ["sh", "-c", SCRIPT, "write_cache", drive.sysfs_name, drive.path, drive.smart_type, to]
    # A repeated switch is the same change, so a lost connection does not leave its effect unknown.
    done = fencing.run(machine, argv, [drive], alone=False, deadline_s=DEADLINE_S, check=False, repeatable=True)
    if not done.text.endswith("==end\n"):
        raise CommandFailed(f"the write cache of {drive.describe()} could not be read: the answer was cut short", done)
    return done.text


def _sections(report: str) -> dict[str, str]:
    """Texts by the names of their sections; other lines may begin with ``==``, as smartctl's headings do."""
    found: dict[str, str] = {}
    name = ""
    for line in report.splitlines():
        if line.startswith("==") and line.removeprefix("==") in SECTIONS:
            name = line.removeprefix("==")
        else:
            found[name] = f"{found.get(name, '')}{line}\n"
    return found
