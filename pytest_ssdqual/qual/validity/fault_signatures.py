"""Signatures of faults in the kernel's log: which words mean which fault, whose it is, and what a person can do.

Above each row is its source in Linux. The first row that matches a message counts, so that exact words precede general
ones. A message without a row proves nothing. Rows with ``no_device`` name no drive and nothing that it hangs on, and
the collector on the machine is given their patterns (``host_pattern``): these are extended regular expressions, as awk
has them, and at the same time Python's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.validity import fault_codes
from pytest_ssdqual.qual.validity.fault_codes import CONSEQUENCE, Fault, Meaning

NVME_STATUS = re.compile(r"\(sct 0x([0-9a-f]+) / sc 0x([0-9a-f]+)\)")
#: A command that a program sent by itself has its words in the message; what it got is not fio's.
PASSTHROUGH = re.compile(r"\bcdw10=")
BLOCK_STATUS = re.compile(r"^(?:(?:blk_update|print)_req(?:uest|_error): )?([\w/ -]+) error, dev (\S+),")
SENSE_KEY = re.compile(r"^(.*?)Sense Key ?: ([\w ()]+?)(?: \[|$)")
ADDITIONAL_SENSE = re.compile(r"^(.*?)Add\. Sense: (.*)")
#: A record of firmware; all of its messages begin with the same number (ghes.c, cper.c).
RECORD = re.compile(r"^(\{\d+\})\[Hardware Error\]: ")
OF_PCIE = "section_type: PCIe error"
#: Number of messages behind a sense key among which its additional sense is expected.
SENSE_SPAN = 8

_INTERRUPTS = "look into /proc/interrupts, the board's firmware and the hypervisor"
_MEMORY = "give the host more memory, or stop what uses it"
_HARDWARE = "look into `ras-mc-ctl --errors`, mcelog and the board's event log"
_OTHER_KERNEL = "report it to the kernel's vendor, and repeat with another kernel"
_ADAPTER = "look into the adapter, its firmware, its cooling and its cables"
_FABRIC = "look into the network or fabric between host and target"

LINK_EVENT = Meaning(Fault.LINK, "its link failed")
BAD_TRANSFER = fault_codes.DAMAGED_ON_THE_WAY
ADAPTER = Meaning(Fault.PATH, "the adapter failed or was reset", _ADAPTER)
TAKEN_AWAY = Meaning(Fault.PERSON, "a person pressed the button of its slot", "leave the drives alone while they run")
DISCONNECTED = Meaning(Fault.PERSON, "another program disconnected it", "leave the connection alone during a run")
RESCANNED = Meaning(Fault.PERSON, "another program changed its namespaces", fault_codes.LET_FINISH)
#: What the kernel does by itself, too: it removes a controller that it could not reconnect (fabrics.c,
#: nvmf_reconnect_or_remove), and a drive that has recovered may announce its namespaces again.
ALSO_BY_KERNEL = DISCONNECTED, RESCANNED
RESET_BY_HAND = Meaning(Fault.REFUSED, "another program reset its controller", fault_codes.LET_FINISH)
LOST_INTERRUPT = Meaning(Fault.HOST, "an interrupt was lost, though the drive had answered", _INTERRUPTS)
CRASH = Meaning(Fault.HOST, "the kernel had a fault of its own", _OTHER_KERNEL)
HARDWARE = Meaning(Fault.HOST, "the host reported an error of its hardware", _HARDWARE)


@frozen
class Wording:
    """One row: words of the kernel, and their meaning."""

    meaning: Meaning
    pattern: str
    no_device: bool = False


#: In the order in which they are tried.
SIGNATURES: tuple[Wording, ...] = (
    # == Nothing, or what another message explains:
    # pciehp_hpc.c: of the port, not of a drive
    Wording(CONSEQUENCE, r"Timeout on hotplug command"),
    # drivers/pci/pcie/aer.c
    Wording(CONSEQUENCE, r"severity=Correct|\[12\] (Replay Timer )?Timeout"),
    # drivers/md/md.c, raid1.c, raid5.c, raid10.c
    Wording(CONSEQUENCE, r"^md/|^md: |^md[0-9]+: "),
    # kernel/hung_task.c
    Wording(CONSEQUENCE, r"(blocked|blocked in I/O wait) for more than [0-9]+ seconds"),
    # drivers/ata/libata-eh.c
    Wording(CONSEQUENCE, r"hard resetting link|EH complete|SATA link up"),
    # drivers/scsi/scsi_error.c
    Wording(CONSEQUENCE, r"Power-on or device reset occurred|[Tt]ask abort: SUCCESS"),
    # drivers/nvme/host/pci.c
    Wording(CONSEQUENCE, r"Shutdown timeout set to|restart after slot reset"),
    # == A person or another program:
    # drivers/pci/hotplug/pciehp_ctrl.c, pciehp_hpc.c
    Wording(TAKEN_AWAY, r"Attention button pressed|[Bb]utton (press|ignore)|due to button press"),
    # drivers/nvme/host/fabrics.c, core.c
    Wording(DISCONNECTED, r"Removing ctrl: NQN"),
    # drivers/nvme/host/core.c, nvme_handle_aen_notice
    Wording(RESCANNED, r"rescanning namespaces"),
    # drivers/nvme/host/ioctl.c, NVME_IOCTL_RESET
    Wording(RESET_BY_HAND, r"nvme[0-9]+: resetting controller$"),
    # drivers/nvme/host/pci.c, NVMe base: CSTS.NSSRO
    Wording(RESET_BY_HAND, r"CSTS=0x1[014589cd]\b"),
    # drivers/nvme/host/core.c, nvme_fw_act_work
    Wording(fault_codes.ACTIVATING, r"[Ff](irm)?w(are)? activation"),
    # drivers/scsi/scsi_error.c
    Wording(fault_codes.RESERVED, r"[Rr]eservation conflict"),
    # drivers/scsi/sd.c
    Wording(fault_codes.PROTECTED, r"Write Protect is on"),
    # == The host:
    # drivers/nvme/host/pci.c, nvme_timeout
    Wording(LOST_INTERRUPT, r"timeout, completion polled"),
    # drivers/ata/libata-sff.c
    Wording(LOST_INTERRUPT, r"ata[0-9.]+: lost interrupt"),
    # kernel/irq/spurious.c
    Wording(LOST_INTERRUPT, r"irq [0-9]+: nobody cared|Disabling IRQ #", no_device=True),
    # kernel/dma/swiotlb.c
    Wording(
        Meaning(Fault.HOST, "bounce buffers for DMA were full", "boot with a larger swiotlb="),
        r"swiotlb buffer is full|Out of SW-IOMMU space",
    ),
    # arch/x86/kernel/cpu/mce/core.c, drivers/edac/mce_amd.c, drivers/firmware/efi/cper.c
    # Bit 61 of the bank's status is "uncorrected" (__print_mce). cper.c states the severity of firmware's records.
    Wording(
        HARDWARE,
        r"\[Hardware Error\]: (CPU [0-9]+: Machine Check( Exception|: [0-9a-f]+ Bank [0-9]+: [2367abef])"
        r"|Uncorrected|Deferred error|System Fatal error|event severity: (fatal|recoverable))",
        no_device=True,
    ),
    # HW_ERR: corrected, or a line of such a record
    Wording(CONSEQUENCE, r"\[Hardware Error\]"),
    # drivers/edac/edac_mc.c
    Wording(HARDWARE, r"EDAC .*[0-9]+ UE ", no_device=True),
    # arch/x86/kernel/nmi.c
    Wording(HARDWARE, r"NMI received for unknown reason|NMI: (PCI system|IOCK) error", no_device=True),
    # drivers/iommu/intel/dmar.c, amd/iommu.c, arm/arm-smmu*
    Wording(
        Meaning(Fault.HOST, "the IOMMU reported a fault", "look into the board's firmware, or boot with iommu=pt"),
        r"(DMAR|AMD-Vi|arm-smmu[^ ]*( [^ ]+)?): .*(fault|FAULT|[Ee]vent|EVENT|timed out|ERROR|Event logged)",
        no_device=True,
    ),
    # arch/*/mm/fault.c, lib/bug.c, kernel/watchdog*.c, kernel/rcu/tree_stall.h
    Wording(
        CRASH,
        r"^(BUG|Oops|Internal error): |watchdog: BUG: |^Oops\[#|[Kk]ernel BUG at |general protection fault"
        r"|Unable to handle kernel |hard LOCKUP|self-detected stall|detected stalls on",
        no_device=True,
    ),
    # kernel/power/suspend.c, hibernate.c
    Wording(
        Meaning(Fault.HOST, "the machine was suspended", "switch suspend and hibernation off"),
        r"PM: (suspend|hibernation)",
        no_device=True,
    ),
    # mm/oom_kill.c, mm/page_alloc.c
    Wording(
        Meaning(Fault.STARVED, "the host ran out of memory", _MEMORY),
        r"[Oo]ut of memory: |oom-kill:|invoked oom-killer|page allocation failure",
        no_device=True,
    ),
    # kernel/time/clocksource.c, x86 tsc.c
    Wording(
        Meaning(Fault.STARVED, "the host's clock is unstable", "set clocksource=, or look into the board's firmware"),
        r"clocksource: .*unstable|Marking TSC unstable|TSC found unstable",
        no_device=True,
    ),
    # == Proof by the drive itself:
    # drivers/nvme/host/core.c, event 03h
    Wording(
        Meaning(Fault.DRIVE, "it reported a persistent internal error"),
        r"resetting controller due to (persistent internal error|AER)",
    ),
    # drivers/nvme/host/pci.c: reads of a lost device are all ones
    Wording(fault_codes.SILENT, r"CSTS=0xffffffff"),
    # drivers/nvme/host/pci.c, NVMe base: CSTS.CFS
    Wording(Meaning(Fault.DRIVE, "its controller reported a fatal status"), r"CSTS=0x[0-9a-f]*[2367abef]\b"),
    # drivers/ata/libata-eh.c
    Wording(fault_codes.MEDIUM_DEFECT, r"error: \{ ([A-Z]+ )*(UNC|AMNF)\b|\(media error\)"),
    # drivers/ata/libata-eh.c
    Wording(Meaning(Fault.DRIVE, "it reported a device fault"), r"status: \{ ([A-Za-z]+ )*DF\b"),
    # == An adapter, an expander, a fabric:
    # drivers/scsi/mpt3sas, mpi3mr, megaraid_sas, smartpqi, hpsa, aacraid, libsas
    Wording(
        ADAPTER,
        r"fault_state\(|(diag|host|adapter|firmware) reset|[Rr]eset(ting)? (adapter|host)|non-operational"
        r"|[Hh]ost adapter abort|scsi_recover_host|FW in FAULT|[Aa]dapter is OFFLINE|lockup detected"
        r"|controller (is )?offline|fault code\(",
    ),
    # drivers/ata/ahci.c, libahci.c
    Wording(ADAPTER, r"AHCI controller unavailable|controller reset failed"),
    # drivers/usb/host/xhci.c
    Wording(ADAPTER, r"host controller not responding, assume dead|HC died"),
    # drivers/nvme/host/core.c, fabrics.c, tcp.c, rdma.c, fc.c
    Wording(
        Meaning(Fault.PATH, "its connection over the fabric was lost", _FABRIC),
        r"keep[-_ ]alive|Reconnecting in|[Ff]ailed reconnect|starting error recovery|failed to connect (socket|queue)"
        r"|connectivity lost|rdma connection",
    ),
    # == The drive, or its slot, cable or backplane:
    # drivers/ata/libata-eh.c, ata_eh_link_report
    Wording(
        LINK_EVENT,
        r"SError: \{[^}]*(RecovComm|UnrecovData|PHYRdyChg|PHYInt|CommWake|10B8B|Dispar|BadCRC|Handshk|LinkSeq"
        r"|TrStaTrns|UnrecFIS|DevExch)",
    ),
    # drivers/ata/libata-eh.c, ahci.c
    Wording(BAD_TRANSFER, r"\b(ICRC|BadCRC|UDMA CRC|iuCRC)\b|interface (fatal )?error|CRC error|\(ATA bus error\)"),
    # drivers/ata/libata-core.c
    Wording(LINK_EVENT, r"SATA link down|limiting SATA link speed"),
    # drivers/pci/hotplug/pciehp_ctrl.c, pciehp_hpc.c
    Wording(LINK_EVENT, r"Link Down|Card not present|No (link|device found)|[Pp]ower fault|link (status|training)"),
    # drivers/pci/pcie/aer.c
    Wording(LINK_EVENT, r"severity=(Uncorrect|Fatal|Non-Fatal)|[Uu]ncorrect(ed|able).*error (message )?received"),
    # drivers/pci/pcie/dpc.c
    Wording(LINK_EVENT, r"DPC: (containment|unmasked)|DPC: .*(RP PIO|ERR_)"),
    # drivers/nvme/host/pci.c, drivers/pci/pci.c, quirks.c
    Wording(
        LINK_EVENT,
        r"(frozen|failed) state error detected|device inaccessible|config space inaccessible"
        r"|broken device, retraining|Link Active not set",
    ),
    # mpi_log_sas.h: a failed command, a task that ended it
    Wording(CONSEQUENCE, r"log_info\(0x31(0[6-9]|13|14)[0-9a-f]+\)"),
    # drivers/scsi/mpt3sas: originator PL, the protocol layer of the links
    Wording(LINK_EVENT, r"log_info\(0x31"),
    # drivers/scsi/scsi_error.c, scsi_lib.c
    Wording(LINK_EVENT, r"hostbyte=DID_(NO_CONNECT|SOFT_ERROR|TRANSPORT_[A-Z]+|BUS_BUSY|PARITY)\b"),
    # drivers/scsi/mpt3sas/mpt3sas_scsih.c
    Wording(LINK_EVENT, r"removing handle\(|device is not present|delayed_not_responding|expander_remove"),
    # drivers/usb/core/hub.c
    Wording(
        LINK_EVENT,
        r"usb [0-9.-]+: (reset|USB disconnect|device descriptor read|device not accepting)|USB cable is bad"
        r"|over-current condition|unable to enumerate USB",
    ),
    # == The drive did not answer in time, or was given up:
    # drivers/nvme/host/pci.c, drivers/ata/libata-core.c, drivers/scsi/scsi_error.c, drivers/pci/pci.c
    Wording(
        fault_codes.GIVEN_UP,
        r"[Dd]evice not ready; aborting|[Rr]emoving after|Disabling device after reset"
        r"|[0-9]: (disable device|disabled)$|[Oo]fflined|offline device|dead device|after .*; giving up"
        r"|\breset failed, giving up",
    ),
    # drivers/nvme/host/pci.c, nvme_warn_reset
    Wording(fault_codes.SILENT, r"controller is down"),
    # drivers/ata/libata-core.c, libata-eh.c
    Wording(
        fault_codes.SILENT,
        r"(COMRESET|SRST|softreset) failed|link is slow to respond|failed to IDENTIFY|revalidation failed"
        r"|status: \{ Busy|\(timeout\)",
    ),
    # drivers/scsi/mpt3sas, smartpqi, mpi3mr, drivers/usb/storage/uas.c
    Wording(
        fault_codes.SILENT,
        r"attempting (task abort|(device|target) reset)|hostbyte=DID_TIME_OUT|uas_eh_[a-z_]*handler"
        r"|resetting scsi|reset of scsi|issued target reset",
    ),
    # drivers/nvme/host/pci.c, nvme_timeout and alike
    Wording(fault_codes.SILENT, r"\b[Tt]ime(d )?-?out\b"),
    # == What the drive, or an upper layer, did not explain:
    # drivers/ata/libata-eh.c, drivers/scsi/scsi_lib.c, drivers/nvme/host/multipath.c
    Wording(fault_codes.PROVES_NOTHING, r"error: \{ [A-Z ]*(ABRT|IDNF)|hostbyte=DID_ERROR|no (available|usable) path"),
    # block/blk-core.c, fs/buffer.c, drivers/scsi/sd.c
    Wording(fault_codes.FAILED, r"I/O error"),
)


def host_pattern() -> str:
    """One extended regular expression for the messages that name no device, as the collector needs it."""
    return "|".join(f"({row.pattern})" for row in SIGNATURES if row.no_device)


def signature_of(text: str) -> Wording | None:
    """Return the first row that matches a message."""
    return next((row for row in SIGNATURES if re.search(row.pattern, text)), None)


def meanings(messages: Sequence[str]) -> tuple[Meaning, ...]:
    """Return the meaning of each message; sense data are spread over several of them."""
    return tuple(_meaning(messages, index) for index in range(len(messages)))


def _meaning(messages: Sequence[str], index: int) -> Meaning:
    text = messages[index]
    if status := NVME_STATUS.search(text):
        is_foreign = PASSTHROUGH.search(text)
        return CONSEQUENCE if is_foreign else fault_codes.of_nvme(int(status[1], 16), int(status[2], 16))
    if key := SENSE_KEY.search(text):
        following = map(ADDITIONAL_SENSE.search, messages[index + 1 : index + 1 + SENSE_SPAN])
        additional = next((match[2] for match in following if match and match[1] == key[1]), "")
        return fault_codes.of_sense(key[2], additional)
    if additional_sense := ADDITIONAL_SENSE.search(text):
        before = map(SENSE_KEY.search, messages[max(0, index - SENSE_SPAN) : index])
        is_counted = any(match and match[1] == additional_sense[1] for match in before)
        return CONSEQUENCE if is_counted else fault_codes.of_sense("", additional_sense[2])
    if request := BLOCK_STATUS.search(text):
        return fault_codes.of_block_status(request[1], request[2])
    row = signature_of(text)
    meaning = row.meaning if row else CONSEQUENCE
    if meaning is HARDWARE and _is_of_link(messages, text):
        return LINK_EVENT
    return meaning


def _is_of_link(messages: Sequence[str], text: str) -> bool:
    """Return whether a record of firmware is about a PCIe device: the collector leaves out those of other devices."""
    record = RECORD.match(text)
    return record is not None and any(other.startswith(record[1]) and OF_PCIE in other for other in messages)
