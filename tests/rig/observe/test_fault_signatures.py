"""Each pattern of the table, through the collector's script and then to the judge, so that no rule is out of reach."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.fakes.kernel_ring import DRIVES, PLACES, build, collected, program
from support.shells import AWKS

from pytest_ssdqual.qual.measured.environment import KernelLine
from pytest_ssdqual.qual.validity.drive_failure import DriveTrace, attribute
from pytest_ssdqual.qual.validity.fault_codes import Fault
from pytest_ssdqual.qual.validity.fault_signatures import SIGNATURES, host_pattern, meanings, signature_of

#: Messages as Linux prints them, with the fault that each means.
EXAMPLES: dict[Fault, tuple[str, ...]] = {
    Fault.CONSEQUENCE: (
        "pcieport 0000:00:1c.0: pciehp: Timeout on hotplug command 0x1038 (issued 65284 msec ago)",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
        "nvme 0000:01:00.0:    [12] Timeout               ",
        "md/raid:md100: Disk failure on nvme0n1, disabling device.",
        "INFO: task fio:1234 blocked in I/O wait for more than 122 seconds.",
        "ata3: hard resetting link",
        "sd 6:0:1:0: Power-on or device reset occurred",
        "nvme nvme0: Shutdown timeout set to 10 seconds",
        "{1}[Hardware Error]: event severity: corrected",
        "mpt3sas_cm1: log_info(0x31140000): originator(PL), code(0x14), sub_code(0x0000)",
        "nvme0n1: Admin Cmd(0x6), Access Denied (sct 0x2 / sc 0x86) DNR cdw10=0x0 cdw11=0x0 cdw12=0x0 cdw13=0x0",
        "nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Host Aborted Command (sct 0x3 / sc 0x71) ",
    ),
    Fault.PERSON: (
        "pcieport 0000:00:1c.0: pciehp: Slot(3): Attention button pressed",
        "pcieport 0000:00:1c.0: pciehp: Slot(3): Powering off due to button press",
        "nvme nvme0: Removing ctrl: NQN \"nqn.2014-08.org.nvmexpress:uuid:1\"",
        "nvme nvme0: rescanning namespaces.",
    ),
    Fault.REFUSED: (
        "nvme nvme0: resetting controller",
        "nvme nvme0: controller is down; will reset: CSTS=0x11, PCI_STATUS=0x10",
        "nvme nvme0: Fw activation timeout, reset controller",
        "sd 6:0:1:0: reservation conflict",
        "sd 2:0:0:0: [sda] Write Protect is on",
        "nvme0n1: Write(0x1) @ LBA 2048, 256 blocks, Access Denied (sct 0x2 / sc 0x86) DNR",
        "nvme0n1: Read(0x2) @ LBA 2048, 8 blocks, Deallocated or Unwritten Logical Block (sct 0x2 / sc 0x87) DNR",
        "nvme0n1: Write(0x1) @ LBA 2048, 256 blocks, Namespace is Write Protected (sct 0x0 / sc 0x20) DNR",
        "nvme0n1: Read(0x2) @ LBA 2048, 8 blocks, Sanitize In Progress (sct 0x0 / sc 0x1d) ",
        "nvme0n1: Read(0x2) @ LBA 2048, 8 blocks, Format In Progress (sct 0x0 / sc 0x84) ",
        "nvme0n1: Write(0x1) @ LBA 2048, 8 blocks, Reservation Conflict (sct 0x0 / sc 0x83) DNR",
        "sd 6:0:1:0: [sdc] tag#4 Sense Key : Data Protect [current] ",
        "critical space allocation error, dev sdc, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
        "critical nexus error, dev sdc, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
    ),
    Fault.HOST: (
        "nvme nvme0: I/O tag 489 (d1e9) QID 3 timeout, completion polled",
        "ata3: lost interrupt (Status 0x50)",
        'irq 35: nobody cared (try booting with the "irqpoll" option)',
        "Disabling IRQ #35",
        "nvme 0000:01:00.0: swiotlb buffer is full (sz: 131072 bytes), total 32768 (slots), used 32 (slots)",
        "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 8: fe00004000801080",
        "mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 6: bc00000000800400",
        "[Hardware Error]: Uncorrected, software restartable error.",
        "{1}[Hardware Error]: event severity: fatal",
        "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1 offset:0x0)",
        "Uhhuh. NMI received for unknown reason 2d on CPU 0.",
        "NMI: PCI system error (SERR) for reason b1 on CPU 0.",
        "DMAR: [DMA Write] Request device [01:00.0] fault addr fff6d000 [fault reason 05] PTE Write access is not set",
        "DMAR: DRHD: handling fault status reg 2",
        "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:01:00.0 domain=0x000c address=0xfe00 flags=0x0020]",
        "AMD-Vi: Completion-Wait loop timed out",
        "arm-smmu-v3 arm-smmu-v3.0.auto: event 0x10 received:",
        "arm-smmu 5000000.iommu: Unhandled context fault: fsr=0x402, iova=0xfffff000, fsynr=0x1, cbfrsynra=0x0, cb=0",
        "BUG: kernel NULL pointer dereference, address: 0000000000000028",
        "BUG: unable to handle page fault for address: ffffb0f4c0a31000",
        "Oops: 0002 [#1] PREEMPT SMP PTI",
        "kernel BUG at drivers/md/raid5.c:1234!",
        "general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] SMP NOPTI",
        "Internal error: Oops: 0000000096000004 [#1] SMP",
        "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [md100_raid5:811]",
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "INFO: rcu_sched detected stalls on CPUs/tasks: { 3} (detected by 1, t=21002 jiffies)",
        "PM: suspend entry (deep)",
        "nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Reference Tag Check Error (sct 0x2 / sc 0x84) DNR",
        "kernel resource error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
    ),
    Fault.STARVED: (
        "Out of memory: Killed process 1234 (fio) total-vm:884736kB, anon-rss:5120kB, file-rss:0kB, UID:0",
        "Memory cgroup out of memory: Killed process 1234 (fio) total-vm:884736kB, anon-rss:5120kB",
        "fio invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
        "kworker/2:1H: page allocation failure: order:4, mode:0x40a20(GFP_ATOMIC|__GFP_COMP), nodemask=(null)",
        "clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as unstable because the skew is:",
        "tsc: Marking TSC unstable due to clocksource watchdog",
    ),
    Fault.DRIVE: (
        "nvme nvme0: resetting controller due to persistent internal error",
        "nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10",
        "ata3.00: status: { DRDY DF ERR }",
        "nvme0n1: Write(0x1) @ LBA 2048, 8 blocks, Internal Error (sct 0x0 / sc 0x6) ",
        "sd 6:0:1:0: [sdc] tag#4 Sense Key : Hardware Error [current] ",
        "sd 6:0:1:0: [sdc] tag#4 Add. Sense: Internal target failure",
    ),
    Fault.MEDIUM: (
        "ata3.00: error: { UNC }",
        "ata3.00: cmd 60/08:00:00:08:00/00:00:00:00:00/40 tag 0 ncq dma 4096 in res 41/40:08 Emask 0x409 (media error)",
        "nvme0n1: Read(0x2) @ LBA 0, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR",
        "nvme0n1: Write(0x1) @ LBA 0, 8 blocks, Write Fault (sct 0x2 / sc 0x80) ",
        "sd 2:0:0:0: [sda] tag#4 Sense Key : Medium Error [current] ",
        "critical medium error, dev sdc, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        "blk_update_request: critical medium error, dev sdc, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1",
    ),
    Fault.PATH: (
        "mpt3sas_cm1: fault_state(0x5854)!",
        "mpt3sas_cm1: sending diag reset !!",
        "megaraid_sas 0000:06:00.0: Found FW in FAULT state, will reset adapter scsi7",
        "smartpqi 0000:07:00.0: controller offline: reason code 0x6100",
        "ahci 0000:00:1f.2: AHCI controller unavailable!",
        "xhci_hcd 0000:00:14.0: xHCI host controller not responding, assume dead",
        "nvme nvme0: failed nvme_keep_alive_end_io error=10",
        "nvme nvme0: Reconnecting in 10 seconds...",
        "nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Asymmetric Access Inaccessible (sct 0x3 / sc 0x2) ",
    ),
    Fault.LINK: (
        "ata3: SError: { PHYRdyChg 10B8B DevExch }",
        "ata3.00: error: { ICRC ABRT }",
        "ata3.00: irq_stat 0x08000000, interface fatal error",
        "ata3: SATA link down (SStatus 0 SControl 300)",
        "pcieport 0000:00:1c.0: pciehp: Slot(3): Link Down",
        "pcieport 0000:00:1c.0: pciehp: Slot(3): Card not present",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link Layer, (Receiver ID)",
        "pcieport 0000:00:1c.0: AER: Uncorrectable (Fatal) error message received from 0000:01:00.0",
        "pcieport 0000:00:1c.0: DPC: containment event, status:0x1f01 source:0x0000",
        "nvme nvme0: frozen state error detected, reset controller",
        "nvme 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible",
        "mpt3sas_cm1: log_info(0x31120303): originator(PL), code(0x12), sub_code(0x0303)",
        "mpt3sas_cm1: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)",
        "sd 6:0:1:0: [sdc] tag#4 FAILED Result: hostbyte=DID_SOFT_ERROR driverbyte=DRIVER_OK cmd_age=0s",
        "sd 6:0:1:0: [sdc] tag#4 FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK cmd_age=0s",
        "mpt3sas_cm1: removing handle(0x000a), sas_addr(0x4433221101000000)",
        "sd 6:0:1:0: [sdc] tag#4 Add. Sense: Information unit iuCRC error detected",
        "usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd",
        "usb 2-1: USB disconnect, device number 2",
        "nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Data Transfer Error (sct 0x0 / sc 0x4) ",
    ),
    Fault.SILENT: (
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
        "nvme nvme0: controller is down; will reset: CSTS=0x0, PCI_STATUS=0x10",
        "nvme nvme0: I/O 12 QID 1 timeout, aborting",
        "nvme nvme0: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 1 timeout, reset controller",
        "ata3: COMRESET failed (errno=-16)",
        "ata3: link is slow to respond, please be patient (ready=0)",
        "ata3.00: qc timeout (cmd 0xec)",
        "sd 6:0:1:0: attempting task abort!scmd(0x00000000a3c1e4b7), outstanding for 30324 ms & timeout 30000 ms",
        "sd 9:0:0:0: [sdd] tag#0 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT",
        "sd 6:0:1:0: [sdc] tag#4 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=60s",
        "sd 6:0:1:0: [sdc] tag#4 Sense Key : Not Ready [current] ",
        "timeout error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
    ),
    Fault.GIVEN_UP: (
        "nvme nvme0: Device not ready; aborting reset, CSTS=0x1",
        "nvme nvme0: Removing after probe failure status: -19",
        "nvme nvme0: Disabling device after reset failure: -19",
        "ata3.00: disable device",
        "ata3.00: disabled",
        "sd 6:0:1:0: Device offlined - not ready after error recovery",
        "sd 6:0:1:0: rejecting I/O to offline device",
        "nvme 0000:01:00.0: not ready 65535ms after FLR; giving up",
        "device offline error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
    ),
    Fault.UNKNOWN: (
        "nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Vendor Specific (sct 0x7 / sc 0xc1) DNR",
        "nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Invalid Field in Command (sct 0x0 / sc 0x2) DNR",
        "ata3.00: error: { ABRT }",
        "sd 6:0:1:0: [sdc] tag#4 Sense Key : Illegal Request [current] ",
        "sd 6:0:1:0: [sdc] tag#4 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s",
        "block nvme0n1: no available path - failing I/O",
        "critical medium error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
        "critical target error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
    ),
    Fault.FAILED: (
        "I/O error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
        "Buffer I/O error on dev sda, logical block 0, async page read",
    ),
}  # fmt: skip

#: What becomes of an array one member of which md took out, when the kernel says no more than this.
ORIGINS = {
    Fault.MEDIUM: Fault.DRIVE,
    Fault.DRIVE: Fault.DRIVE,
    Fault.SILENT: Fault.DRIVE,
    Fault.GIVEN_UP: Fault.DRIVE,
    Fault.FAILED: Fault.DRIVE,
    Fault.STARVED: Fault.DRIVE,
    Fault.REFUSED: Fault.REFUSED,
    Fault.LINK: Fault.LINK,
    Fault.PATH: Fault.PATH,
    Fault.HOST: Fault.HOST,
    Fault.PERSON: Fault.PERSON,
    Fault.UNKNOWN: Fault.UNKNOWN,
}
ERROR = "raid5x6 cannot be measured: degraded by 1 member"
KILLED = "a worker of fio was killed by signal 9"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    return build(tmp_path)


def with_awk(machine: Path, awk: Sequence[str]) -> None:
    """Make it the machine's only awk."""
    program(machine, "awk", f'exec {shutil.which(awk[0])} {" ".join(awk[1:])} "$@"')


ALL = [text for texts in EXAMPLES.values() for text in texts]


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("begin", range(0, len(ALL), 30))
def test_each_known_message_comes_through_the_collector(machine: Path, awk: list[str], begin: int) -> None:
    with_awk(machine, awk)
    texts = ALL[begin : begin + 30]
    lines, _ = collected(machine, texts)
    assert [line.text for line in lines] == texts


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> list[DriveTrace]:
    return collected(build(tmp_path_factory.mktemp("machine")), [])[1]


@pytest.mark.parametrize(("fault", "text"), [(fault, text) for fault, texts in EXAMPLES.items() for text in texts])
def test_each_known_message_is_judged_as_what_it_means(drives: list[DriveTrace], fault: Fault, text: str) -> None:
    lines, traces = [KernelLine(1.0, 3, text)], [*drives]
    assert [meaning.fault for meaning in meanings([line.text for line in lines])] == [fault]
    if fault is Fault.CONSEQUENCE:
        assert attribute(KILLED, traces, lines).origin is Fault.UNKNOWN
        return
    named = (index for index, each in enumerate(traces) if any(re.search(rf"\b{name}\b", text) for name in each.names))
    struck = next(named, DRIVES.index("sdc"))
    traces[struck] = replace(traces[struck], is_faulty=True)
    found = attribute(ERROR, traces, lines)
    assert found.origin is ORIGINS[fault], found
    if found.origin is Fault.DRIVE:
        assert [drive.serial for drive in found.drives] == [traces[struck].serial]
    else:
        assert found.drives == ()
        assert found.about == (traces[struck].serial,)
        assert found.cure in found.why
        assert found.cure or fault is Fault.UNKNOWN


def test_each_row_of_the_table_has_an_example() -> None:
    """The first row that matches is the one that counts."""
    reached = {id(signature_of(text)) for text in ALL}
    assert [row.pattern for row in SIGNATURES if id(row) not in reached] == []


def test_host_patterns_are_written_for_every_awk() -> None:
    """Classes of Perl, lazy and bounded repeats and groups without a number are unknown to some of them."""
    assert not re.search(r"\\[dwsbDWSB]|\(\?|[*+?]\?|\{\d", host_pattern())
    assert not any(name in host_pattern() for name in PLACES)
