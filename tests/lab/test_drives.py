from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lab.faults import limits
from support.lab.faulty_vm import UnknownDrive, position_of

from pytest_ssdqual.lab.drives import (
    MAX_DRIVES,
    Bus,
    adapter_argv,
    backing_file,
    check_count,
    create_backing_files,
    device_properties,
    drive_argv,
    shelf,
)


@given(count=st.integers(1, MAX_DRIVES), data=st.data())
def test_every_count_up_to_a_full_shelf_gives_distinct_drives(count: int, data: st.DataObject) -> None:
    slow = data.draw(st.integers(0, count))
    drives = shelf(count, iops=300, slow=slow)
    assert check_count(count) == count
    assert len({drive.serial for drive in drives}) == count
    assert [position_of(drive.serial, drives) for drive in drives] == list(range(count))
    assert [drive.iops for drive in drives] == [180 if number == slow else 300 for number in range(1, count + 1)]


@pytest.mark.parametrize("count", [-1, 0, MAX_DRIVES + 1, 99])
def test_other_counts_are_rejected_in_one_sentence(count: int) -> None:
    with pytest.raises(ValueError, match=rf"drives, not {count}$"):
        check_count(count)


def test_a_serial_that_no_drive_has() -> None:
    with pytest.raises(UnknownDrive, match="SSDQ0009"):
        position_of("SSDQ0009", shelf(8))


def test_a_drive_is_a_file_behind_its_own_limit_in_its_own_port() -> None:
    (_, second) = shelf(2, iops=150)
    assert drive_argv(1, second, Path("/lab")) == [
        "-blockdev",
        "driver=file,node-name=media1,filename=/lab/SSDQ0002.raw,cache.no-flush=on,discard=unmap",
        "-object",
        "throttle-group,id=limit1,x-iops-total=150,x-bps-total=0",
        "-blockdev",
        "driver=throttle,node-name=drive1,file=media1,throttle-group=limit1,discard=unmap,detect-zeroes=unmap",
        "-device",
        "pcie-root-port,id=port1,chassis=2,slot=2,io-reserve=0",
        "-device",
        "driver=nvme,bus=port1,id=ssd1,drive=drive1,serial=SSDQ0002",
    ]


def test_a_slow_drive_has_less_of_both_speeds() -> None:
    fast, slow = shelf(2, iops=300, bytes_per_s=50_000_000, slow=2)
    assert "throttle-group,id=limit0,x-iops-total=300,x-bps-total=50000000" in drive_argv(0, fast, Path("/lab"))
    assert "throttle-group,id=limit1,x-iops-total=180,x-bps-total=30000000" in drive_argv(1, slow, Path("/lab"))


def test_scsi_drives_share_an_adapter_and_are_ssds() -> None:
    drives = shelf(2, iops=150, bus=Bus.SCSI)
    assert adapter_argv(drives) == ["-device", "virtio-scsi-pci,id=hba"]
    assert adapter_argv(shelf(2)) == []
    argv = drive_argv(1, drives[1], Path("/lab"))
    assert argv[:6] == drive_argv(1, shelf(2, iops=150)[1], Path("/lab"))[:6]
    assert argv[6:] == [
        "-device",
        "driver=scsi-hd,bus=hba.0,scsi-id=1,id=ssd1,drive=drive1,serial=SSDQ0002,vendor=SSDQUAL,product=SM300,"
        "wwn=0x5000c500a1b20001,rotation_rate=1",
    ]


def test_a_drive_with_a_latency_reads_zeros_behind_its_limit() -> None:
    (drive,) = shelf(1, iops=297, latency_ns=64_000_000)
    (at_once,) = shelf(1, iops=297)
    argv = drive_argv(0, drive, Path("/lab"))
    assert argv[1] == "driver=null-co,node-name=media0,size=268435456,latency-ns=64000000,read-zeroes=on"
    assert argv[2:] == drive_argv(0, at_once, Path("/lab"))[2:]


def test_a_comma_in_a_path_does_not_end_the_option() -> None:
    assert "filename=/a,,b/SSDQ0001.raw," in drive_argv(0, shelf(1)[0], Path("/a,b"))[1]


def test_a_drive_is_plugged_in_again_as_it_was_at_boot() -> None:
    (drive,) = shelf(1)
    at_boot = drive_argv(0, drive, Path("/lab"))[-1]
    assert at_boot == ",".join(f"{key}={value}" for key, value in device_properties(0, drive).items())


def test_the_limit_counts_reads_and_writes_together() -> None:
    assert limits(120) == {"iops-total": 120, "iops-read": 0, "iops-write": 0}
    assert limits(120, 60) == {"iops-total": 0, "iops-read": 120, "iops-write": 60}


def test_backing_files_are_sparse_and_never_reused(tmp_path: Path) -> None:
    create_backing_files(tmp_path, shelf(2, latency_ns=1000))
    assert not list(tmp_path.iterdir()), "these drives keep no data"
    drives = shelf(2, size_bytes=1 << 30)
    create_backing_files(tmp_path, drives)
    for drive in drives:
        facts = backing_file(tmp_path, drive).stat()
        assert (facts.st_size, facts.st_blocks) == (1 << 30, 0)
    with pytest.raises(FileExistsError):
        create_backing_files(tmp_path, drives)
