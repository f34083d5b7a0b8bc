from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.fakes.kernel_ring import build, look, program, say

from pytest_ssdqual.qual.measured.environment import KernelLine, KernelLog
from pytest_ssdqual.rig.observe import kernel_log
from pytest_ssdqual.rig.observe.kernel_log import KernelLogExcerpt


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root directory with drives."""
    return build(tmp_path)


def heard(machine: Path, drives: Sequence[str] = ("nvme0n1",), since: str = "k0", names: str = "") -> KernelLog:
    """What counts for these drives since a mark."""
    excerpt = look(machine, drives, "after", since=since, names=names).kernel_log
    assert excerpt
    return excerpt.log


def texts(log: KernelLog) -> list[str]:
    return [line.text for line in log.lines]


def between(machine: Path, drives: Sequence[str], *said: str, array: str = "md100") -> list[str]:
    """Which of these messages count for these drives."""
    say(machine, "Linux version 6.1")
    first = look(machine, drives, "before", array)
    say(machine, *said, first=2)
    assert first.kernel_log
    last = look(machine, drives, "after", array, first.kernel_log.mark, " ".join(first.names))
    found = kernel_log.between(first.kernel_log, last.kernel_log)
    assert found
    return texts(found)


@pytest.mark.parametrize(
    ("kname", "names"),
    [
        ("nvme0n1", "nvme0 0000:01:00.0 +0000:00:1c.0"),
        ("nvme2n1", "nvme2 10000:01:00.0 +10000:00:02.0 +0000:5d:05.5"),
        ("sda", "2:0:0:0 target2:0:0 host2 ata3 ata3.00 0000:00:1f.2"),
        ("sdb", "3:1:0:0 target3:1:0 host3 ata4 ata4.01 0000:00:1f.2"),
        (
            "sdc",
            "6:0:1:0 target6:0:1 end_device-6:0 port-6:0 host6 mpt3sas_cm1 mpt3sas1 0000:05:00.0 +0000:00:03.0",
        ),
        ("vda", "virtio2 0000:00:05.0"),
        ("nvme1n1", "nvme1c3n1 nvme-subsys1 nvme3 0000:02:00.0 +0000:00:1d.0"),
    ],
)
def test_a_drive_s_names_are_those_of_its_way_to_the_bus(machine: Path, kname: str, names: str) -> None:
    assert look(machine, [kname], "before").names == ("md100", kname, *names.split())


def test_what_two_drives_share_is_named_once(machine: Path) -> None:
    names = look(machine, ["sda", "sdb"], "before", "-").names
    assert (names[0], names.count("0000:00:1f.2")) == ("sda", 1), "there is no array"


OURS = {
    "nvme0n1": (
        "nvme nvme0: I/O 12 QID 1 timeout",
        "nvme0n1: I/O Cmd(0x2) @ LBA 0, 8 blocks, I/O Error (sct 0x2 / sc 0x81) DNR",
        "I/O error, dev nvme0n1, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        "pcieport 0000:00:1c.0: AER: Corrected error message received from 0000:01:00.0",
        "pcieport 0000:00:1c.0: DPC: containment event, status:0x1f01 source:0x0000",
        "md/raid:md100: Disk failure on nvme0n1, disabling device.",
        "md: data-check of RAID array md100",
        "INFO: task md100_raid5:811 blocked for more than 120 seconds.",
        "INFO: task fio:1234 blocked for more than 122 seconds.",
        "INFO: task fio:1234 blocked in I/O wait for more than 122 seconds.",
        "DMAR: [DMA Write] Request device [01:00.0] fault addr fff6d000 [fault reason 05] PTE Write access is not set",
        "DMAR: [DMA Read NO_PASID] Request device [01:00.0] fault addr 0xfff6d000 [fault reason 0x06] not set",
        "AMD-Vi: Event logged [IO_PAGE_FAULT device=01:00.0 domain=0x000c address=0xfe00 flags=0x0020]",
        "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:01:00.0 domain=0x000c address=0xfe00 flags=0x0020]",
        "{1}[Hardware Error]:   device_id: 0000:01:00.0",
        "{1}[Hardware Error]: event severity: corrected",
        "{2}[Hardware Error]:   aer_uncor_status: 0x00004000, aer_uncor_mask: 0x00100000",
        "md: super_written gets error=-5",
    ),
    "sda": (
        "ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "ata3.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen",
        "sd 2:0:0:0: [sda] tag#4 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s",
        "scsi host2: ahci",
        "ahci 0000:00:1f.2: controller reset",
        "critical medium error, dev sda, sector 2048",
    ),
    "sdc": (
        "mpt3sas_cm1: log_info(0x31120303): originator(PL), code(0x12), sub_code(0x0303)",
        "mpt3sas1: log_info(0x31120303): originator(PL), code(0x12), sub_code(0x0303)",
    ),
}
OTHERS = {
    "nvme0n1": (
        "nvme nvme01: timeout",
        "nvme nvme00: timeout",
        "nvme0n11: I/O error",
        "nvme0n2: I/O error",
        "xnvme0n1: I/O error",
        "nvme 10000:01:00.0: AER",
        "nvme 0000:01:00.01: AER",
        "nvme 0000:01:0000: AER",
        "pcieport 0000:00:1c.0: AER: Corrected error message received from 0000:02:00.0",
        "pcieport 0000:00:1c.1: AER",
        "md: data-check of RAID array md1001",
        "md/raid:md10: Disk failure on nvme1n1, disabling device.",
        "nvme: starting",
        "pci_bus 0000:00: resource 4",
        "DMAR: [DMA Write] Request device [02:00.0] fault addr fff6d000 [fault reason 05] PTE Write access is not set",
        "AMD-Vi: Event logged [IO_PAGE_FAULT device=02:00.0 domain=0x000c address=0xfe00 flags=0x0020]",
        "{1}[Hardware Error]:   device_id: 0000:02:00.0",
        "DMAR: [DMA Write] Request device [03:00.0] fault addr fff6d000 [fault reason 05] PTE Write access is not set",
        "nvme 0000:02:00.0: swiotlb buffer is full (sz: 131072 bytes), total 32768 (slots), used 32 (slots)",
        "mce: [Hardware Error]: Machine check events logged",
        "sas: Enter sas_scsi_recover_host busy: 1 failed: 1",
        "megasas: [ 5]waiting for 3 commands to complete",
        "mpt3sas0: log_info(0x31120303)",
    ),
    "sda": (
        "ata30: SATA link up",
        "ata3.01: exception Emask 0x0",
        "ata12: hard resetting link",
        "sd 12:0:0:0: [sdaa] tag#4 FAILED",
        "sd 2:0:0:1: [sdx] tag#4 FAILED",
        "sd 2:0:0:01: [sdx] tag#4 FAILED",
        "critical medium error, dev sdaa, sector 2048",
        "scsi host22: ahci",
    ),
    "sdc": (
        "mpt3sas_cm0: log_info(0x31120303)",
        "mpt3sas0: log_info(0x31120303)",
        "sd 6:0:2:0: [sdd] tag#4 FAILED",
        "sas: Enter sas_scsi_recover_host busy: 1 failed: 1",
    ),
}
#: Of other controllers: the PCI driver, what the SCSI host reports as its driver, messages that count, and some that do
#: not. The drive is 6:0:1:0, and the host's own number 1.
CONTROLLERS = {
    "mpi3mr": ("mpi3mr", ("mpi3mr1: issued target reset",), ("mpi3mr0: issued target reset",)),
    "mpt2sas": ("mpt2sas", ("mpt2sas1: attempting task abort!",), ("mpt2sas0: attempting task abort!",)),
    "mptsas": ("mptsas", ("mptscsih: ioc1: attempting task abort! (sc=1)",), ("mptscsih: ioc0: task abort: SUCCESS",)),
    "megaraid_sas": (
        "megaraid_sas", ("megasas: [ 5]waiting for 3 commands to complete",), ("mpt3sas1: x", "megasas_x: y")
    ),
    "mvsas": (
        "(null)",
        ("sas: Enter sas_scsi_recover_host busy: 1 failed: 1", "drivers/scsi/mvsas/mv_sas.c 1669:mvs_abort_task:rc= 5"),
        ("pm80xx0:: pm8001_abort_task 1283:rc= -5",),
    ),
    "pm80xx": (
        "pm80xx",
        (
            "sas: sas_scsi_find_task: aborting task 0x1", "pm80xx0:: pm8001_abort_task 1283:task abort failed",
            "pm80xx pm8001_abort_task 1283:task abort failed",
        ),
        ("nosas: sas", "drivers/scsi/mvsas/mv_sas.c 1669:mvs_abort_task:rc= 5"),
    ),
    "aacraid": (
        "aacraid",
        ("aacraid: Host adapter abort request (6,0,1,0)", "aacraid: Host adapter abort request."),
        ("aacraid: Host adapter abort request (6,0,2,0)", "aacraid: Host adapter abort request (7,0,1,0)"),
    ),
    "arcmsr": (
        "arcmsr",
        ("arcmsr6: abort device command of scsi id = 1 lun = 0", "arcmsr6: executing bus reset eh.....num_resets = 0"),
        ("arcmsr6: abort device command of scsi id = 2 lun = 0", "arcmsr7: executing bus reset eh.....num_resets = 0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kname", OURS)
def test_only_messages_about_a_drive_and_its_path_count(machine: Path, kname: str) -> None:
    """Each alone: an error record of firmware has several lines."""
    for text in OURS[kname]:
        assert between(machine, [kname], text) == [text]
        (machine / "dev/kmsg").unlink()
    for text in OTHERS[kname]:
        assert between(machine, [kname], text) == [], text
        (machine / "dev/kmsg").unlink()


@pytest.mark.parametrize("driver", CONTROLLERS)
def test_messages_of_sas_controllers_count_in_their_own_spelling(machine: Path, driver: str) -> None:
    proc_name, ours, others = CONTROLLERS[driver]
    (machine / "sys/class/scsi_host/host6/proc_name").write_text(f"{proc_name}\n")
    drivers = machine / "sys/bus/pci/drivers" / driver
    drivers.mkdir(parents=True)
    (machine / "sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0/driver").symlink_to(drivers)
    assert between(machine, ["sdc"], *ours, *others) == list(ours)


def test_error_record_of_firmware_is_whole(machine: Path) -> None:
    def record(number: int, device: str) -> tuple[str, ...]:
        lines = ("event severity: recoverable", f"  device_id: {device}", "  aer_uncor_status: 0x00004000")
        return tuple(f"{{{number}}}[Hardware Error]: {line}" for line in lines)

    ours = record(2, "0000:01:00.0")
    assert between(machine, ["nvme0n1"], *record(1, "0000:02:00.0"), *ours, *record(3, "0000:02:00.0")) == list(ours)


def test_failed_superblock_counts_only_for_an_array(machine: Path) -> None:
    said = "md: super_written gets error=-5"
    assert between(machine, ["nvme0n1"], said, array="-") == []


def test_drive_is_known_by_its_former_and_its_new_names(machine: Path) -> None:
    say(machine, "nvme nvme0: old")
    assert between(machine, ["nvme0n1"], "nvme nvme0: new", "nvme nvme0: new") == ["nvme nvme0: new"] * 2
    first = look(machine, ["sda"], "before")
    (machine / "sys/block/sda/device").unlink()
    down, up = "ata3: SATA link down", "ata4: SATA link up"
    say(machine, down, up, first=4)
    assert heard(machine, ["sda"], "k3", " ".join(first.names)) == KernelLog(
        (KernelLine(4.000005, 3, down),), 0, lost=False
    )
    assert heard(machine, ["sda"], "k3").lines == ()
    assert texts(heard(machine, ["sdb"], "k3", "sdb ata3")) == [down, up]


def test_log_that_has_lost_messages_says_so(machine: Path) -> None:
    say(machine, "nvme nvme0: timeout", first=500)
    line = KernelLine(500.000005, 3, "nvme nvme0: timeout")
    assert heard(machine, since="k7") == KernelLog((line,), 0, lost=True)
    # Also in a gap that came while it was read.
    say(machine, "nvme nvme0: timeout", first=502)
    assert heard(machine, since="k499").lost
    assert heard(machine, since="k502") == KernelLog((), 0, lost=False)


def test_of_a_flood_the_most_severe_messages_are_kept(machine: Path) -> None:
    """60 warnings of the PCIe path, then a timeout of the same severity, an error and a remark."""
    say(machine, *(f"nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected {number}" for number in range(60)), level=4)
    late = [
        (4, "nvme nvme0: I/O 12 QID 1 timeout, aborting"),
        (3, "critical medium error, dev nvme0n1, sector 2048"),
        (6, "nvme nvme0: 8/0/0 default/read/poll queues"),
    ]
    for number, (level, text) in enumerate(late, 61):
        say(machine, text, first=number, level=level)
    log = heard(machine)
    assert texts(log)[-3:] == [text for _, text in late]
    assert (len(log.lines), log.more) == (40, 23)


WORDS = [first + second for first in "ghijklm" for second in "nopqrstu"]


@pytest.mark.parametrize(
    "last", ["INFO: task fio:12 blocked for more than 122 seconds.", "I/O error, dev nvme0n1, sector 8"]
)
def test_fault_survives_a_flood(machine: Path, last: str) -> None:
    """Of the host among errors; and where only dmesg can be read, words stand for the severity."""
    if last.startswith("INFO"):
        say(machine, *(f"nvme nvme0: {word}" for word in WORDS), level=2)
        say(machine, last, first=len(WORDS) + 1, level=4)
        assert texts(heard(machine))[-1] == last
        return
    lines = [f"[    8.{number:06}] nvme nvme0: {word}" for number, word in enumerate(WORDS)]
    program(machine, "dmesg", "\n".join(["cat <<E", "[    7.000001] Linux", *lines, f"[    9.000001] {last}", "E"]))
    assert texts(heard(machine, since="t7.000001"))[-1] == last


def test_of_many_equal_messages_some_are_kept_and_counted(machine: Path) -> None:
    say(machine, *(f"nvme nvme0: error {number}" for number in range(1, 1001)))
    resync = "md: resync of RAID array md100"
    say(machine, resync, "md: other", first=1001)
    log = heard(machine)
    # md's own work is reported in any case, because a check reads it.
    assert texts(log) == [*(f"nvme nvme0: error {number}" for number in range(1, 41)), resync]
    assert log.more == 960
    (sync,) = kernel_log.syncs(log, "md100")
    assert sync.endswith(resync)
    assert kernel_log.syncs(log, "md10") == ()


def test_long_message_is_cut_and_a_hostile_one_is_harmless(machine: Path) -> None:
    say(machine, "nvme0: " + "x" * 5000, "nvme0: \x1b[2J\u202e", '==end"; $(reboot) nvme0', "==")
    long, escape, quoted = texts(heard(machine))
    assert (len(long), long[-1]) == (kernel_log.LINE_CHARACTERS, "…")
    assert (escape, quoted) == ("nvme0: \\x1b[2J\\u202e", '==end"; $(reboot) nvme0')


def test_with_dmesg_only_time_stamps_tell_what_is_new(machine: Path) -> None:
    lines = ["[    0.000000] Linux", "[    7.000001] nvme nvme0: old", "[    7.000002][  T811] nvme nvme0: new"]
    lines += ["[   12.5] nvme nvme0: newer", "no stamp nvme0"]
    program(machine, "dmesg", "\n".join(["cat <<E", *lines, "E"]))
    assert look(machine, ["nvme0n1"], "before").kernel_log == KernelLogExcerpt("t12.5", KernelLog((), 0, lost=False))
    new = KernelLine(7.000002, None, "nvme nvme0: new"), KernelLine(12.5, None, "nvme nvme0: newer")
    assert heard(machine, since="t7.000001") == KernelLog(new, 0, lost=False)
    program(machine, "dmesg", "echo '[    9.0] nvme nvme0: first that is left'")
    assert heard(machine, since="t7.000001").lost
    # The numbers of /dev/kmsg are not to be had there, nor the other way round.
    assert look(machine, ["nvme0n1"], "after", since="k7").kernel_log is None
    say(machine, "nvme nvme0: one")
    assert heard(machine, since="t7.0")


@pytest.mark.parametrize(
    ("name", "body"),
    [("dmesg", "exit 1"), ("dmesg", "echo 'nvme0: no time stamps'"), ("dmesg", ":"), ("awk", "exit 127")],
)
def test_log_that_cannot_be_read_is_not_known_and_no_error(machine: Path, name: str, body: str) -> None:
    program(machine, name, body)
    if name == "awk":
        say(machine, "Linux version 6.1")
    assert look(machine, ["nvme0n1"], "before").kernel_log is None
    assert look(machine, ["nvme0n1"], "after", since=kernel_log.UNREAD).kernel_log is None
    assert kernel_log.between(None, None) is None


def test_what_the_second_look_is_told(machine: Path) -> None:
    heard = KernelLogExcerpt("k12", KernelLog((), 0, lost=False))
    assert kernel_log.parameters(None, (), is_first=True) == ["new", ""]
    assert kernel_log.parameters(heard, ("md100", "+0000:00:1c.0"), is_first=False) == ["k12", "md100 +0000:00:1c.0"]
    assert kernel_log.parameters(None, ("sda",), is_first=False) == ["-", "sda"]


def test_the_gravest_messages_come_first_and_once() -> None:
    said = [(6, "link up"), (4, "timeout"), (3, "medium error"), (4, "timeout"), (2, "fatal")]
    log = KernelLog(tuple(KernelLine(float(number), *each) for number, each in enumerate(said)), 0, lost=False)
    assert kernel_log.gravest(log, 9) == ("fatal", "medium error", "timeout")
    assert kernel_log.gravest(log, 1) == ("fatal",)
    unranked = KernelLog((KernelLine(1.0, None, "a"), KernelLine(2.0, None, "b")), 0, lost=False)
    assert kernel_log.gravest(unranked, 9) == ("a", "b")


def test_only_names_are_names() -> None:
    assert kernel_log.names(["cciss!c0d0", "sda", "sda", "x y", "$(reboot)", "a" * 99]) == ("cciss/c0d0", "sda")


@pytest.mark.parametrize("said", ["", "k1", "k1 2", "k1 x 0", "k1 0 2", "z1 0 0", "k1 -1 0", "t1 0 0"])
def test_section_that_is_damaged_is_an_error(said: str) -> None:
    with pytest.raises(ValueError, match="is no mark"):
        kernel_log.parse(said, [])
    with pytest.raises(ValueError, match="is no line"):
        kernel_log.parse("k1 0 0", ["nonsense"])
