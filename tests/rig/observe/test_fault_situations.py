"""Situations of public bug reports, of a test machine, and others: what the kernel logs, and whose fault it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.fakes.kernel_ring import build, collected

from pytest_ssdqual.qual.measured.environment import KernelLine
from pytest_ssdqual.qual.validity.drive_failure import DriveTrace, attribute
from pytest_ssdqual.qual.validity.fault_codes import Fault

DEGRADED = "raid5x6 cannot be measured: degraded by 1 member"
NO_DATA = "I/O error on /dev/nvme0n1: No data available (write at byte 1048576)"
EIO = "I/O error on /dev/{}: Input/output error (read at byte 1048576)"
KILLED = "a worker of fio was killed by signal 9"
SHORT = "fio reported only 12 s of 60 s"
IO = "I/O error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 32 prio class 2"
IO_SDA = "I/O error, dev sda, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 32 prio class 2"
IO_SDC = IO_SDA.replace("sda", "sdc")
MEDIUM = "critical medium error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 32 prio class 2"
TIMEOUT = "nvme nvme0: I/O 12 QID 1 timeout, aborting"
RESET = "nvme nvme0: I/O 12 QID 1 timeout, reset controller"
TAKEN = "md/raid:md100: Disk failure on {}, disabling device."
FATAL = "nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link Layer, (Receiver ID)"
ALL_ONES = "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10"
GONE, FAULTY, PRESENT, READ_ONLY = "gone", "faulty", "present", "read only"
SMART = "its own SMART health assessment is FAILED"


def status(words: str) -> str:
    return f"nvme0n1: Write(0x1) @ LBA 2048, 256 blocks, {words} DNR "


def sense(key: str, additional: str, drive: str = "sdc", address: str = "6:0:1:0") -> tuple[str, ...]:
    about = f"sd {address}: [{drive}] tag#12"
    return (
        f"{about} FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s",
        f"{about} Sense Key : {key} [current] ",
        f"{about} Add. Sense: {additional}",
        f"{about} CDB: Write(10) 2a 00 00 00 08 00 00 00 08 00",
    )


@dataclass(frozen=True)
class Case:
    """One situation: what became of a drive, and the messages; the origin that an expert would name."""

    origin: Fault
    lines: tuple[str, ...]
    drive: str = "nvme0n1"
    state: str = FAULTY
    error: str = DEGRADED
    smart: tuple[str, ...] = ()
    #: Word that the reason or the cure has.
    word: str = ""


DRIVE, LINK, PATH, HOST = Fault.DRIVE, Fault.LINK, Fault.PATH, Fault.HOST
REFUSED, PERSON, UNKNOWN = Fault.REFUSED, Fault.PERSON, Fault.UNKNOWN

#: Requests that fail in public reports (sedutil#364, nvme-cli#84, liburing, linux-nvme, linux-block, …).
REPORTED = {
    "locked by Opal": Case(
        REFUSED, (status("Access Denied (sct 0x2 / sc 0x86)"), MEDIUM), error=NO_DATA, state=PRESENT, word="sedutil"
    ),
    "unwritten block": Case(
        REFUSED, (status("Deallocated or Unwritten Logical Block (sct 0x2 / sc 0x87)"), MEDIUM), word="write the blocks"
    ),
    "sanitize in progress": Case(REFUSED, (status("Sanitize In Progress (sct 0x0 / sc 0x1d)"), IO), word="wait"),
    "format in progress": Case(REFUSED, (status("Format In Progress (sct 0x0 / sc 0x84)"), IO), word="wait"),
    "interrupt lost": Case(
        HOST, ("nvme nvme0: I/O tag 489 (d1e9) QID 3 timeout, completion polled",), error=SHORT, state=PRESENT
    ),
    "bounce buffers full": Case(
        HOST,
        ("nvme 0000:01:00.0: swiotlb buffer is full (sz: 131072 bytes), total 32768 (slots), used 32768 (slots)", IO),
        word="swiotlb=",
    ),
    "attention button": Case(
        PERSON,
        (
            "pcieport 0000:00:1c.0: pciehp: Slot(3): Attention button pressed",
            "pcieport 0000:00:1c.0: pciehp: Slot(3): Powering off due to button press",
            IO,
        ),
        state=GONE,
    ),
    "fabric lost": Case(
        PATH,
        ("nvme nvme0: failed nvme_keep_alive_end_io error=10", "block nvme0n1: no available path - failing I/O", IO),
        state=GONE,
    ),
    "reference tag": Case(HOST, (status("Reference Tag Check Error (sct 0x2 / sc 0x84)"),), word="protection"),
    "thin pool full": Case(
        REFUSED, ("critical space allocation error, dev sdc, sector 2048 op 0x1:(WRITE) flags 0x0",), drive="sdc"
    ),
    "reservation": Case(REFUSED, ("sd 6:0:1:0: reservation conflict", IO_SDC), drive="sdc", word="release"),
    "corrected link errors": Case(
        UNKNOWN,
        ("nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",),
        error=KILLED, state=PRESENT,
    ),
    "out of memory": Case(
        HOST, ("Out of memory: Killed process 1234 (fio)",), error=KILLED, state=PRESENT, word="memory"
    ),
}  # fmt: skip

#: Messages about one drive on a Debian guest.
OF_GUEST = {
    "CRC, then the link is down": Case(
        LINK,
        ("ata3.00: error: { ICRC ABRT }", "ata3: SATA link down (SStatus 0 SControl 300)", "ata3.00: disable device"),
        drive="sda", state=GONE,
    ),
    "SATA link down": Case(
        LINK, ("ata3: SATA link down (SStatus 0 SControl 300)", "ata3.00: disable device"), drive="sda", state=GONE
    ),
    "PHY not ready": Case(
        LINK,
        ("ata3.00: exception Emask 0x10 SAct 0x1 SErr 0x4090000 action 0xe frozen",
         "ata3: SError: { PHYRdyChg 10B8B DevExch }", "ata3: hard resetting link", IO_SDA),
        drive="sda", word="slot",
    ),
    "log_info with soft errors": Case(
        LINK,
        ("mpt3sas_cm1: log_info(0x31120303): originator(PL), code(0x12), sub_code(0x0303)",
         "sd 6:0:1:0: [sdc] tag#4 FAILED Result: hostbyte=DID_SOFT_ERROR driverbyte=DRIVER_OK cmd_age=0s", IO_SDC),
        drive="sdc",
    ),
    "no connection": Case(
        LINK, ("sd 6:0:1:0: [sdc] tag#4 FAILED Result: hostbyte=DID_NO_CONNECT", IO_SDC), drive="sdc"
    ),
    "CRC of SAS": Case(LINK, sense("Aborted Command", "Information unit iuCRC error detected"), drive="sdc"),
    "data link layer": Case(
        LINK, (FATAL, "nvme nvme0: frozen state error detected, reset controller", ALL_ONES, IO), state=GONE
    ),
    "slot's link down": Case(LINK, ("pcieport 0000:00:1c.0: pciehp: Slot(3): Link Down",), state=GONE, word="slot"),
}  # fmt: skip

#: Drives that are defective, or died: these stay verdicts.
DEFECTIVE = {
    "uncorrectable of SATA": Case(
        DRIVE, ("ata3.00: status: { DRDY ERR }", "ata3.00: error: { UNC }", IO_SDA), drive="sda"
    ),
    "fatal status of the controller": Case(
        DRIVE, ("nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10", IO), state=GONE
    ),
    "deaf, then gone": Case(
        DRIVE, (TIMEOUT, RESET, "nvme nvme0: Device not ready; aborting reset, CSTS=0x1",
                "nvme nvme0: Removing after probe failure status: -19", IO), state=GONE,
    ),
    "all ones, then gone": Case(DRIVE, (ALL_ONES, "nvme nvme0: Removing after probe failure status: -19"), state=GONE),
    "given up, then its slot's link": Case(
        DRIVE, (RESET, "nvme nvme0: Device not ready; aborting reset, CSTS=0x1",
                "pcieport 0000:00:1c.0: pciehp: Slot(3): Link Down"), state=GONE,
    ),
    "resets of SATA without an answer": Case(
        DRIVE, ("ata3.00: qc timeout (cmd 0xec)", "ata3: COMRESET failed (errno=-16)", "ata3: reset failed, giving up",
                "ata3.00: disable device", IO_SDA), drive="sda", state=GONE,
    ),
    "aborts of SAS in vain": Case(
        DRIVE, ("sd 6:0:1:0: attempting task abort!scmd(0x1), outstanding for 30324 ms & timeout 30000 ms",
                "sd 6:0:1:0: Device offlined - not ready after error recovery",
                "sd 6:0:1:0: [sdc] tag#4 FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK"),
        drive="sdc", state=GONE,
    ),
    "I/O errors without a reason": Case(DRIVE, (IO, TAKEN.format("nvme0n1"))),
    "locked, and media errors": Case(
        DRIVE, (status("Access Denied (sct 0x2 / sc 0x86)"), status("Write Fault (sct 0x2 / sc 0x80)"), MEDIUM)
    ),
    "link events and failed SMART": Case(DRIVE, (FATAL,), state=GONE, smart=(SMART,)),
    "a status that proves nothing, then deaf": Case(
        DRIVE, (status("Vendor Specific (sct 0x7 / sc 0xc1)"), RESET,
                "nvme nvme0: Device not ready; aborting reset, CSTS=0x1"), state=GONE,
    ),
    "media errors that old kernels cannot name, and SMART": Case(
        DRIVE, (MEDIUM,), smart=("media errors rose from 0 to 3",), error=NO_DATA
    ),
    "failure predicted": Case(DRIVE, sense("Recovered Error", "Failure prediction threshold exceeded"), drive="sdc"),
}  # fmt: skip

#: What no report lists.
FURTHER = {
    "media errors that old kernels cannot name": Case(UNKNOWN, (MEDIUM,), error=NO_DATA, word="error-log"),
    "aborted by a locked SATA drive": Case(
        UNKNOWN, ("ata3.00: status: { DRDY ERR }", "ata3.00: error: { ABRT }"), drive="sda"
    ),
    "abort of SAS explained by nothing": Case(
        DRIVE,
        ("sd 6:0:1:0: attempting task abort!scmd(0x1), outstanding for 30324 ms & timeout 30000 ms",
         "mpt3sas_cm1: log_info(0x31130000): originator(PL), code(0x13), sub_code(0x0000)", IO_SDC),
        drive="sdc",
    ),
    "USB reset": Case(
        LINK,
        ("sd 9:0:0:0: [sdd] tag#0 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT",
         "usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd", IO_SDA.replace("sda", "sdd")),
        drive="sdd",
    ),
    "USB unplugged": Case(LINK, ("usb 2-1: USB disconnect, device number 2",), drive="sdd", state=GONE),
    "transaction layer": Case(
        LINK,
        ("nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Requester)",
         RESET, IO),
    ),
    "disconnected by a program": Case(
        PERSON, ('nvme nvme0: Removing ctrl: NQN "nqn.2014-08.org.nvmexpress:uuid:1"',), state=GONE
    ),
    "failed by mdadm": Case(UNKNOWN, (TAKEN.format("nvme0n1"),), word="mdadm --fail"),
    "read-only without a reason": Case(REFUSED, (), state=READ_ONLY, word="setrw"),
    "read-only by its own word": Case(DRIVE, (), state=READ_ONLY, smart=("critical warning: media is read-only",)),
    "interrupt line disabled": Case(
        HOST, ('irq 35: nobody cared (try booting with the "irqpoll" option)', "Disabling IRQ #35", TIMEOUT, IO)
    ),
    "oops in md": Case(
        HOST, ("BUG: kernel NULL pointer dereference, address: 0000000000000028", "Oops: 0002 [#1] PREEMPT SMP PTI"),
        error="raid5x6 cannot be measured: state is broken", state=PRESENT,
    ),
    "soft lock-up": Case(
        HOST, ("watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [md100:811]", TIMEOUT), state=PRESENT, error=SHORT
    ),
    "suspended": Case(HOST, ("PM: suspend entry (deep)", TIMEOUT, IO)),
    "unstable clock": Case(
        HOST,
        ("clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is:",),
        error=SHORT, state=PRESENT,
    ),
    "memory of a group": Case(
        HOST, ("Memory cgroup out of memory: Killed process 1234 (fio) total-vm:884736kB",), error=KILLED, state=PRESENT
    ),
    "out of memory beside a dead drive": Case(
        DRIVE, ("Out of memory: Killed process 1234 (fio) total-vm:884736kB", RESET), state=GONE
    ),
    "another program's command": Case(
        UNKNOWN,
        ("nvme0n1: Admin Cmd(0x6), Internal Error (sct 0x0 / sc 0x6) cdw10=0x0 cdw11=0x0 cdw12=0x0 cdw13=0x0",),
        error=KILLED, state=PRESENT,
    ),
    "errno of a reservation": Case(
        REFUSED, (), drive="sdc", state=PRESENT, error="I/O error on /dev/sdc: Invalid exchange (write at byte 0)"
    ),
    "errno of a full pool": Case(
        REFUSED, (), drive="sdc", state=PRESENT, error="I/O error on /dev/sdc: No space left on device (write at byte)"
    ),
    "errno of a medium error": Case(
        DRIVE, (), drive="sdc", state=PRESENT, error="I/O error on /dev/sdc: No data available (read at byte 0)"
    ),
    "errno of a target": Case(
        UNKNOWN, (), drive="sdc", state=PRESENT, error="I/O error on /dev/sdc: Remote I/O error (read at byte 0)"
    ),
    "errno alone": Case(DRIVE, (), drive="sdc", state=PRESENT, error=EIO.format("sdc")),
    "errno of NVMe without a log": Case(UNKNOWN, (), state=PRESENT, error=NO_DATA, word="error-log"),
}  # fmt: skip

#: What the recovery and the removal of one drive bring about explains nothing; nor does what a drive recovered from.
IN_ORDER = {
    "recovery of one hung drive up to its adapter": Case(
        DRIVE,
        (
            "sd 6:0:1:0: attempting task abort!scmd(0x00000000aa)",
            "sd 6:0:1:0: [sdc] tag#4 attempting target reset! scmd(0x00000000aa)",
            "mpt3sas_cm1: sending diag reset !!",
            "sd 6:0:1:0: Device offlined - not ready after error recovery",
        ),
        drive="sdc", state=GONE, error=EIO.format("sdc"),
    ),
    "host stalls when it removes the drive": Case(
        DRIVE,
        (TIMEOUT, RESET, ALL_ONES, "nvme nvme0: Disabling device after reset failure: -19",
         "rcu: INFO: rcu_preempt self-detected stall on CPU"),
        state=GONE,
    ),
    "controller removed after its fabric was lost": Case(
        PATH,
        ("nvme nvme0: failed nvme_keep_alive_end_io error=10", "nvme nvme0: Removing controller (16)...",
         'nvme nvme0: Removing ctrl: NQN "nqn.2014-08.org.nvmexpress:uuid:1"'),
        state=GONE,
    ),
    "controller removed after a timeout and the loss of its fabric": Case(
        PATH,
        (TIMEOUT, "nvme nvme0: starting error recovery",
         'nvme nvme0: Removing ctrl: NQN "nqn.2014-08.org.nvmexpress:uuid:1"'),
        state=GONE,
    ),
    "disconnected by a program, which stops keep-alive": Case(
        PERSON,
        ('nvme nvme0: Removing ctrl: NQN "nqn.2014-08.org.nvmexpress:uuid:1"',
         "nvme nvme0: failed nvme_keep_alive_end_io error=10"),
        state=GONE,
    ),
    "namespaces announced by a drive that hung": Case(
        DRIVE, (TIMEOUT, RESET, "nvme nvme0: rescanning namespaces."), state=GONE
    ),
    "machine check before the loss": Case(
        HOST,
        ("mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 8: fe00004000801080", TIMEOUT, RESET, ALL_ONES),
        state=GONE,
    ),
    "fio killed beside an abort that ended well": Case(
        HOST, (TIMEOUT, "Out of memory: Killed process 1234 (fio) total-vm:884736kB"), state=PRESENT, error=KILLED,
        word="memory",
    ),
    "PCIe error by firmware's record": Case(
        LINK,
        (
            "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 5",
            "{1}[Hardware Error]: event severity: recoverable",
            "{1}[Hardware Error]:   section_type: PCIe error",
            "{1}[Hardware Error]:   device_id: 0000:01:00.0",
        ),
        state=GONE,
    ),
}  # fmt: skip

CASES = {**REPORTED, **OF_GUEST, **DEFECTIVE, **FURTHER, **IN_ORDER}
#: Errors beside which no drive was lost.
ABOUT_NO_DRIVE = {
    "out of memory", "memory of a group", "oops in md", "unstable clock", "fio killed beside an abort that ended well",
    "corrected link errors", "another program's command",
}  # fmt: skip
#: What is found of a drive by its state.
LOST = {GONE: "dropped out", FAULTY: "took it out", READ_ONLY: "turned read-only"}


def after(case: Case, drive: DriveTrace) -> DriveTrace:
    return replace(
        drive, smart=case.smart, present=case.state != GONE, is_faulty=case.state == FAULTY,
        read_only=case.state == READ_ONLY,
    )  # fmt: skip


#: Records of firmware are whole in the order of their lines.
ALL = list(dict.fromkeys(line for case in CASES.values() for line in case.lines))


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> list[DriveTrace]:
    return collected(build(tmp_path_factory.mktemp("machine")), [])[1]


@pytest.mark.parametrize("begin", range(0, len(ALL), 30))
def test_messages_of_situations_come_through_the_collector(tmp_path: Path, begin: int) -> None:
    texts = ALL[begin : begin + 30]
    lines, _ = collected(build(tmp_path), texts)
    assert [line.text for line in lines] == texts


@pytest.mark.parametrize("name", CASES)
def test_whose_fault_a_situation_is(drives: list[DriveTrace], name: str) -> None:
    case = CASES[name]
    lines = [KernelLine(float(number), 3, text) for number, text in enumerate(case.lines)]
    traces = [after(case, each) if each.serial == case.drive else each for each in drives]
    found = attribute(case.error, traces, lines)
    assert found.origin is case.origin, found
    assert [drive.serial for drive in found.drives] == [case.drive] * (case.origin is DRIVE)
    for drive in found.drives:
        assert [state for state, word in LOST.items() if word in str(drive.findings)] == [case.state] * (
            case.state in LOST
        )
    assert case.word in found.why
    is_about = case.origin is not DRIVE and name not in ABOUT_NO_DRIVE
    assert found.about == (case.drive,) * is_about
    if case.origin not in (DRIVE, UNKNOWN):
        assert found.cure, "a person can do something"
        assert found.cure in found.why
