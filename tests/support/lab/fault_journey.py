"""One run of the program that is struck by one fault after another, and goes on after each of them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from support.fakes.severable import Relay
from support.lab.fault_table import Ledger, Observed, plain
from support.lab.rehearsed import LENIENTLY, ROOT, SERIALS, Finished, Folder, Running, Server, Start, await_that, drives

PROTOCOL = ROOT / "suites" / "faults" / "faults.toml"
#: Promises that are kept on the busiest of computers, on one array, in the order in which they are measured.
WRITES, MORE_READS, READS = "randwrite_4k_qd8", "randrw70_4k_qd8", "randread_4k_qd8"
WORKLOADS = (WRITES, MORE_READS, READS)
CHOSEN = ("-k", f"steady_state and ({' or '.join(WORKLOADS)})", *LENIENTLY)
#: A drive of the machine that is never given to a run.
BYSTANDER = SERIALS[3]
SEED = 20261121
STOPPED, KEPT = "stopped, its members erased", "stopped, but 1 member could not be erased"
#: Of a drive, and of one whose rebuild is not to be waited for.
USUAL_IOPS, QUICK_IOPS = 300, 3000
#: Until fio runs and something is outstanding on a drive.
AT_WORK = 'until pidof fio && cat /sys/block/nvme*n1/inflight | grep -q "[1-9]"; do sleep 0.1; done'
SMALL_DISK_BYTES = 16 << 20
#: The next run removes what fio had written for a run that was killed or lost its machine, if it is a minute old; and
#: where a connection was cut, a keeper waits for minutes for a listener to report how its process ended.
FORGOTTEN = ("file: /run/pytest-ssdqual/fio-", "file: /run/pytest-ssdqual/tether-")


class Orderly(TypedDict):
    left: str
    others_bytes: int
    junit: str
    folder: str


#: What ``observe`` finds where nothing is damaged and nothing goes on over there.
ORDERLY: Orderly = {"left": "gone, free", "others_bytes": 0, "junit": "well-formed", "folder": "sealed"}


class Bystander:
    """A drive with something on it that nobody may lose: random bytes."""

    def __init__(self, content: Path) -> None:
        self._file, self._size = content, content.stat().st_size
        content.write_bytes(self._bytes())
        self._digest = self._hash()

    def differing_bytes(self) -> int:
        """How many bytes are not what they were."""
        if self._hash() == self._digest:
            return 0
        now, then = (np.frombuffer(each, np.uint8) for each in (self._file.read_bytes(), self._bytes()))
        return int(np.count_nonzero(now != then)) if len(now) == len(then) else self._size

    def _bytes(self) -> bytes:
        return np.random.default_rng(SEED).bytes(self._size)

    def _hash(self) -> str:
        with self._file.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()

    def erase(self) -> None:
        """Blank, as the next test may expect it."""
        os.truncate(self._file, 0)
        os.truncate(self._file, self._size)


@dataclass(slots=True)
class Journey:
    """See the module."""

    server: Server
    start: Start
    #: Runs of another suite, whose folders are elsewhere.
    mirror: Start
    ledger: Ledger
    bystander: Bystander
    #: The root of run folders: on a disk of its own, if this process may mount one.
    root: Path
    is_small: bool
    #: The last faults, whose resumption the next run is.
    _last: tuple[str, ...] = ()

    def begin(self, *options: str) -> Running:
        """The run, begun or gone on with; one that a failed test has left is ended."""
        self.start.close()
        again = ("--ssd-resume=last",) if self.root.is_dir() and any(self.root.iterdir()) else ()
        return self.start(drives(3), *CHOSEN, *again, *options, root=self.root)

    def begin_apart(self) -> Running:
        """A run of its own, for a drive that fails: neither this run nor one that resumes it uses the drive again."""
        self.start.close()
        root = self.start.place / f"apart-{len(self.ledger.observed)}"
        return self.start(drives(3), *CHOSEN, root=root)

    def resume_apart(self, fault: str, run: Finished, serial: str) -> None:
        """Resume the run in which a drive failed, now that it would work again; then blank it, as no run does."""
        again = self.start(drives(3), *CHOSEN, "--ssd-resume=last", root=run.folder.path.parent).finish()
        self.ledger.resumed[fault] = how_resumed(again)
        blank = 'wipefs --all --quiet "$1" && blkdiscard "$1"'
        self.server.ask("sh", "-c", blank, "blank", f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}")

    def of_mirror(self, *options: str) -> Running:
        """Another run: whether a mirror's data survive the loss of a drive."""
        return self.mirror(drives(2), "-k", "mirror_survives and raid1x2", *options)

    @contextmanager
    def quick_drives(self) -> Iterator[None]:
        """Ten times as fast in the block."""
        self._set_iops(QUICK_IOPS)
        try:
            yield
        finally:
            self._set_iops(USUAL_IOPS)

    def _set_iops(self, iops: int) -> None:
        for serial in SERIALS:
            self.server.lab.vm.set_iops(serial, iops)

    def corrupt_mirror(self, serial: str, folder: Folder) -> None:
        """Spoil a block of the data that must survive, behind everybody's back, in one of the two copies."""
        (created,), (pattern,) = folder.records("array_created"), folder.records("pattern_written")
        places = [created.facts["data_offset_bytes"], pattern.facts["offset_bytes"]]
        with self.server.lab.vm.backing_file(serial).open("r+b") as file:
            file.seek(sum(place for place in places if isinstance(place, int)) + (1 << 20))
            file.write(np.random.default_rng(SEED).bytes(4096))

    def until(self, running: Running, workload: str, attempt: int = 1) -> None:
        """Until a workload is measured, and drives are at work for it: a fio that only starts fails in other ways."""
        running.await_record("measuring", attempt, workload=workload, fio="run")
        self.server.ask("timeout", "500", "sh", "-c", AT_WORK)

    @contextmanager
    def relayed(self) -> Iterator[tuple[Relay, tuple[str, ...]]]:
        """A way to the machine that can be cut; and what a run must be given to take it."""
        lab = self.server.lab
        with Relay(lab.vm.ssh.port) as relay:
            config = self.start.place / "ssh_config"
            direct = lab.ssh_config.read_text(encoding="utf-8")
            config.write_text(direct.replace(f"Port {lab.vm.ssh.port}\n", f"Port {relay.port}\n"), encoding="utf-8")
            yield relay, (f"--ssd-ssh-config={config}",)

    def rest(self, seconds: float) -> None:
        """For what has no end that could be awaited."""
        time.sleep(seconds)

    def require_whole(self, run: Finished) -> None:
        """Everything was measured and judged once, whatever came in between."""
        folder = run.folder
        assert sorted(str(each.facts["workload"]) for each in folder.records("measured")) == sorted(WORKLOADS)
        verdicts = folder.records("verdict")
        assert [each.facts["outcome"] for each in verdicts] == ["pass"] * len(WORKLOADS)
        assert len({each.facts["test"] for each in verdicts}) == len(WORKLOADS)
        assert [line for line in self.server.left() if not line.startswith(FORGOTTEN)] == []

    def stall(self, serial: str, seconds: float = 2.5) -> None:
        """Let a drive do next to nothing for so long."""
        self.server.lab.vm.set_iops(serial, 1)
        self.rest(seconds)
        self.server.lab.vm.set_iops(serial, USUAL_IOPS)

    def finish(self, running: Running, *faults: str) -> Finished:
        """Until the run has ended, and what the one before it made it do."""
        run = running.finish()
        for fault in self._last if run.since else ():
            self.ledger.resumed[fault] = how_resumed(run)
        self._last = faults
        return run

    def observe(self, fault: str, run: Finished, *said: str, array: str = "") -> Observed:
        """Put on record what came of a fault: what was ``said`` of it, and what there is now."""
        seen = Observed(
            said=tuple(dict.fromkeys(map(plain, said))),
            run="continues" if run.status in (0, 1) else f"ends, exit status {run.status}",
            array=array or self._array(run),
            left=", ".join(self.left_running()) or "gone, free",
            others_bytes=self.bystander.differing_bytes(),
            junit="well-formed" if run.junit.exists() and run.cases() else "none",
            folder=state_of(run),
        )
        self.ledger.observed[fault] = seen
        return seen

    def _array(self, run: Finished) -> str:
        """What the run says it did with the array, and what is there."""
        if self.server.arrays():
            return "left standing"
        for each in run.records("array_left"):
            not_erased = each.facts["not_erased"]
            return f"stopped, but {len(not_erased) if isinstance(not_erased, list) else 0} member could not be erased"
        if run.records("array_stopped"):
            return "stopped, its members erased"
        blank = [line for line in self.server.left() if line.startswith("not blank")]
        return f"gone with the boot; {len(blank)} members have its superblock" if blank else "none"

    def left_running(self) -> list[str]:
        """Processes and locks that should not be there any more."""
        kinds = ("fio is running", "still tethered", "held")
        return [line for line in self.server.left() if line.startswith(kinds)]

    def await_nothing_left(self) -> None:
        await_that(lambda: not self.left_running(), "fio and the holder of the lease to end")

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Nothing more can be written where the run folders are until the block is left."""
        filler = self.root.parent / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        try:
            yield
        finally:
            filler.unlink()

    @contextmanager
    def rebooted_after_all(self) -> Iterator[None]:
        """If the block fails, the machine is on again for the next test."""
        try:
            yield
        except BaseException:
            vm = self.server.lab.vm
            vm.power_cut()
            vm.power_on()
            raise


def state_of(run: Finished) -> str:
    """What the run folder is good for."""
    if not run.folder.is_readable:
        return "damaged"
    return "sealed" if run.folder.is_sealed() else "readable, not sealed"


def how_resumed(run: Finished) -> str:
    """From what a run that was resumed says and notes."""
    said = re.search(r"resuming \S+: \d+ measurements? reused", run.output)
    built = run.records("array_created")
    if said and not built and "failed in an earlier session" in run.output:
        return "continues, and does not use the drive"
    if not said or not built:
        return f"stopped: {run.output.splitlines()[-1]}"
    return f"continues, the array is {'re-adopted' if 'kept_of' in built[0].facts else 'built again'}"


def told(run: Finished, workload: str) -> tuple[str, ...]:
    """What JUnit says of the test of a workload, or that it passed, and whether at once."""
    (results,) = (results for name, results in run.results().items() if name.endswith(f"-{workload}]"))
    attempts = [each for each in run.records("steady") if each.facts["workload"] == workload]
    # What is wrong with an attempt is told in several ways: rounds are uneven, or fio was silent for too long.
    again = ("measured again",) if any(not is_good(each.facts) for each in attempts) else ()
    return (*again, *(map(tell, results) if results else ["passed"]))


def is_good(attempt: Mapping[str, object]) -> bool:
    """Whether an attempt to measure was not objected to."""
    return bool(attempt["reached"]) and not attempt["objections"]


def worsened(run: Finished) -> tuple[str, ...]:
    """What is said of a drive's health at the end, besides that it failed under the load."""
    found = [each.facts["findings"] for each in run.records("drive_worsened")]
    worse = [
        [each for each in findings if not each.startswith("drive ")] for findings in found if isinstance(findings, list)
    ]
    told = [f"in red: {'; '.join(findings)}" for findings in worse if findings]
    return tuple(told if all(finding in run.output for each in told for finding in each[8:].split("; ")) else ())


def tell(result: str) -> str:
    """A result of JUnit's as the document has it."""
    kind, sentence = result.split(": ", 1)
    return f"`<{kind}>` " + re.sub(r'^failed on \w+ with "(.*)"$', r"\1", sentence)


@contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """An empty file system; whether there is one. Only root may mount it, and not every root."""
    argv = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_BYTES}", "ssdqual", str(place)]
    is_mounted = os.geteuid() == 0 and subprocess.run(argv, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)
