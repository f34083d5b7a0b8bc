"""Content that no signature shows, in a real machine: what needs consent, what does not, and that no byte is lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.builders.consents import all_risks, unmarked
from support.lab.faults import RequestKind
from support.lab.rehearsed import SERIALS, LabHost, Server, Start, drives

from pytest_ssdqual.rig.drives.survey import expand, survey
from pytest_ssdqual.rig.guard import content, label, refusals, sampling
from pytest_ssdqual.rig.guard.consent import DATA, UNREADABLE
from pytest_ssdqual.rig.machine import ssh
from pytest_ssdqual.rig.machine.channel import Channel

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ0004"
WIPE = "if that may be destroyed, add --ssd-wipe=SSDQ0004"
#: $1 is the drive.
PLAIN = """
printf %032d 7 >/run/key
cryptsetup open --type plain --key-file /run/key --cipher aes-xts-plain64 --key-size 256 "$1" secret
mke2fs -q -F /dev/mapper/secret; cryptsetup close secret; sync; udevadm settle
"""
DATABASE = 'dd if=/dev/urandom of="$1" bs=1M seek=100 count=64 oflag=direct 2>/dev/null'
DAMAGED = """
mke2fs -q -F "$1"; dd if=/dev/zero of="$1" bs=1k seek=1 count=1 oflag=sync conv=notrunc 2>/dev/null
udevadm trigger --action=change --settle "$1"  # else udev may still say that there is an ext2
"""
BLANK = 'wipefs --all --quiet "$1"; blkdiscard "$1"; udevadm settle'


@dataclass(frozen=True, slots=True)
class ContentBench:
    """The fourth drive of the lab, and the guard's words about it."""

    lab: LabHost
    machine: Channel

    def do(self, script: str) -> str:
        path = self.machine.run(["readlink", "-f", ID]).text.strip()
        return self.machine.run(["sh", "-ec", script, "scene", path], deadline_s=120).text

    def refused(self, *wipe: str) -> str:
        matches = expand(self.machine, [ID])
        knames = [match.kname for match in matches]
        topology = content.examined(self.machine, survey(self.machine, knames), knames, names=True)
        return unmarked(refusals.explain(refusals.refusals(topology, matches, all_risks(*wipe))))


@pytest.fixture(scope="module")
def bench(lab: LabHost) -> Iterator[ContentBench]:
    lab.vm.set_iops("SSDQ0004", 0)
    machine = ssh.connect(ssh.SshTarget("lab", ("-F", str(lab.ssh_config))))
    bench = ContentBench(lab, machine)
    yield bench
    bench.do(BLANK)
    lab.vm.set_iops("SSDQ0004", 300)
    machine.close()


def test_a_blank_drive_needs_no_consent(bench: ContentBench) -> None:
    assert bench.refused() == ""
    bench.do('blkdiscard --zeroout "$1"')
    assert bench.refused() == ""
    bench.do(BLANK)
    assert bench.refused() == ""


# A database has a test of its own, with a label.
@pytest.mark.parametrize("scene", [PLAIN, DAMAGED], ids=["plain dm-crypt", "damaged ext2"])
def test_data_without_a_signature_needs_consent(bench: ContentBench, scene: str) -> None:
    bench.do(scene)
    server = Server(bench.lab)
    digest = server.digest("SSDQ0004")
    try:
        said = bench.refused()
        assert DATA in said
        assert said.endswith(f"{WIPE}.")
        assert bench.refused("SSDQ0004") == ""
        assert server.digest("SSDQ0004") == digest
    finally:
        bench.do(BLANK)


NAMED = {"/etc/crypttab": f"secret {ID} /run/key plain", "/etc/fstab": "$1 /srv auto noauto 0 0"}


def test_a_drive_that_configuration_names_needs_consent(bench: ContentBench) -> None:
    for file, line in NAMED.items():
        bench.do(f'touch {file}; cp {file} {file}.before; echo "{line}" >>{file}; echo "# {ID}x" >>{file}')
    try:
        said = bench.refused()
        for file in NAMED:
            assert f"in {file} (/dev/" in said
        assert "add --ssd-configured=SSDQ0004." in said
        assert bench.refused("SSDQ0004") == ""
    finally:
        for file in NAMED:
            bench.do(f"mv {file}.before {file}")
    assert bench.refused() == ""


def test_a_drive_that_cannot_be_read_needs_consent(bench: ContentBench) -> None:
    bench.lab.vm.fail("SSDQ0004", {RequestKind.READ})
    try:
        said = bench.refused()
    finally:
        bench.lab.vm.mend("SSDQ0004")
    # The kernel's word for NVMe's unrecovered read error: ENODATA.
    assert f"{UNREADABLE} (No data available" in said
    assert "add --ssd-unreadable" in said
    assert bench.refused() == ""


def test_the_label_is_known_again_and_costs_little(bench: ContentBench) -> None:
    (match,) = expand(bench.machine, [ID])
    drive = survey(bench.machine, [match.kname]).drive(match.kname)
    bench.do(DATABASE)
    label.write_drives(bench.machine, [drive])
    assert bench.refused() == ""
    bench.lab.vm.set_iops("SSDQ0004", 300)
    start = time.monotonic()
    sample = sampling.take(bench.machine, {drive.path: drive.size_bytes})[drive.path]
    print(f"sampling: {1000 * (time.monotonic() - start):.0f} ms for {sample.read} spots at 300 reads a second")
    bench.lab.vm.set_iops("SSDQ0004", 0)
    assert label.owner_of(sample.label) == label.of_drive(drive.identity)
    assert (sample.read, sample.data_at) == (1, None)  # what is behind the label is not read
    bench.do('dd if=/dev/urandom of="$1" bs=4k seek=8 count=1 oflag=direct 2>/dev/null')
    assert DATA in bench.refused()
    bench.do(BLANK)


@pytest.mark.nightly
def test_a_leftover_that_was_used_since_is_not_erased(server: Server, start: Start) -> None:
    """Blank drives pass; so do this program's own after a kill, until somebody makes a file system on the array."""
    for killed in (1, 2):
        running = start(drives(3), "-k", "steady_state and randwrite_4k_qd8")
        running.await_record("array_created")
        server.await_fio()
        running.signal(signal.SIGKILL)
        running.finish()
        server.await_no_fio()
        folder = running.folder()
        assert [each.facts["leftover"] for each in folder.records("array_stopped")] == [True] * (killed - 1)
    (array,) = server.arrays()
    paths = server.ask("sh", "-c", "ls -d /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ000[1-3]").split()
    server.ask("mke2fs", "-q", "-F", f"/dev/{array}")
    # md writes to its superblocks when nothing was written for safe_mode_delay (0.2 s).
    server.ask("sh", "-c", f'until grep -qx clean "/sys/block/{array}/md/array_state"; do sleep 0.1; done; sync')
    digests = server.digest(*SERIALS[:3])
    said: list[list[str]] = []
    for more in ((), ("--collect-only",)):
        done = start(drives(3), "-k", "steady_state and randwrite_4k_qd8", *more).finish()
        assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
        said.append([line for line in done.output.splitlines() if "carries" in line])
        for serial in SERIALS[:3]:
            assert f"add --ssd-wipe={serial}" in done.output
        assert f"(ext2) on /dev/{array}; " in done.output
    assert said[0] == said[1]
    assert server.digest(*SERIALS[:3]) == digests
    # Stopped by whoever used it, only its members tell.
    server.ask("mdadm", "--stop", f"/dev/{array}")
    done = start(drives(3), "--collect-only").finish()
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert done.output.count(f"carries {DATA} (of the") == 3
    server.ask("mdadm", "--assemble", f"/dev/{array}", *paths)
    server.age_files()
    wipe = [f"--ssd-wipe={serial}" for serial in SERIALS[:3]]
    running = start(drives(3), *wipe, "-k", "randread_4k_qd8 and raid5x3")
    running.await_record("filled")
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.status == pytest.ExitCode.INTERRUPTED, done.output
    assert [each.facts.get("leftover", False) for each in done.folder.records("array_stopped")] == [True, False]
    assert server.left() == []
    again = start(drives(3), "--collect-only").finish()
    assert again.status == 0, again.output
