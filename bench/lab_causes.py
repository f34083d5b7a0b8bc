"""Counts how often the lab's real arrays get the right cause of a broken promise; the twin of ``attribution.py``.

    python bench/lab_causes.py                  # about 35 minutes without KVM
    python bench/lab_causes.py slow_drive path  # these culprits only

One VM of four drives of 300 IOPS. Each culprit is made, a run with the protocol quick judges the suites' steady IOPS of
RAID 0, 5, 6 and 10 of four drives against the drives' sheet, and the attributed cause is read from the JUnit document.
A second load and a drive that slows down begin only when the bare drives have been measured. The last line counts
right causes of broken promises, and drives that were accused falsely.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from pytest_ssdqual import lab
from pytest_ssdqual.lab.vm import Vm
from pytest_ssdqual.report.run_folder.reader import read_records

ROOT = Path(__file__).parents[1]
SERIALS = [f"SSDQ000{number}" for number in range(1, 5)]
BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_"
IOPS = 300
#: File of the guest with the processes of a culprit.
PIDS = "/run/culprits"
LEVELS = ("raid0", "raid5", "raid6", "raid10")
#: Longest time of one run, seconds.
DEADLINE_S = 1200


@dataclass(frozen=True, slots=True)
class LabCulprit:
    """What is wrong, and the accepted answers: culprit and, for drives, serial numbers."""

    make: Callable[[Vm], None]
    answers: tuple[tuple[str, str], ...]
    workload: str = "randread_4k_qd8"
    #: Made only after the bare drives were measured.
    later: bool = False


def nothing(vm: Vm) -> None:
    pass


def slow(vm: Vm) -> None:
    vm.set_iops(SERIALS[2], 3 * IOPS // 5)


def slow_writes(vm: Vm) -> None:
    vm.set_iops(SERIALS[1], IOPS, IOPS // 2)


def all_slow(vm: Vm) -> None:
    for serial in SERIALS:
        vm.set_iops(serial, IOPS // 2)


def path(vm: Vm) -> None:
    """All four drives together do twice what one does."""
    vm.share_limit(SERIALS)
    vm.set_iops(SERIALS[0], 2 * IOPS)


def second_load(vm: Vm) -> None:
    argv = f"nohup fio --name=other --filename={BY_ID}{SERIALS[3]} --readonly --direct=1 --rw=randread --bs=4k"
    _in_guest(vm, f"{argv} --ioengine=libaio --iodepth=8 --time_based --runtime=900 >/dev/null 2>&1 & echo $! >>{PIDS}")


def starved(vm: Vm) -> None:
    _in_guest(
        vm, f"for i in 1 2 3 4 5 6; do nohup sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $! >>{PIDS}; done"
    )


CULPRITS = {
    "nothing": LabCulprit(nothing, ()),
    "slow_drive": LabCulprit(slow, (("drive", SERIALS[2]),)),
    "slow_writes": LabCulprit(slow_writes, (("drive", SERIALS[1]),), "randwrite_4k_qd8"),
    "all_slow": LabCulprit(all_slow, (("drives", ""), ("drives", " ".join(SERIALS)))),
    "path": LabCulprit(path, (("path", " ".join(SERIALS)),)),
    "slows_down": LabCulprit(slow, (("drive", SERIALS[2]),), later=True),
    "second_load": LabCulprit(second_load, (("measurement", ""),), later=True),
    "starved": LabCulprit(starved, (("host", ""), ("measurement", "")), later=True),
}


def _in_guest(vm: Vm, command: str) -> None:
    subprocess.run(vm.ssh.argv("sh", "-c", shlex.quote(command)), check=True, timeout=120)


def _mend(vm: Vm) -> None:
    _in_guest(vm, f"kill $(cat {PIDS} 2>/dev/null) 2>/dev/null; rm -f {PIDS}")
    vm.share_limit(SERIALS, shared=False)
    for serial in SERIALS:
        vm.set_iops(serial, IOPS)


def _arrays_have_begun(place: Path) -> bool:
    for folder in place.glob("runs/*T*"):
        if any(str(each.facts.get("geometry", "")).startswith("raid") for each in read_records(folder)):
            return True
    return False


def ssh_config(vm: Vm, place: Path) -> Path:
    """Write OpenSSH's configuration of the host ``lab``, for ``--ssd-ssh-config``; return its path."""
    config, reach = place / "ssh.config", vm.ssh
    lines = [f"HostName {reach.host}", f"Port {reach.port}", f"User {reach.user}", f"IdentityFile {reach.identity}"]
    lines += ["IdentitiesOnly yes", "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR"]
    config.write_text("Host lab\n" + "".join(f"    {line}\n" for line in lines))
    return config


def judge(vm: Vm, culprit: LabCulprit, place: Path) -> list[tuple[str, str, str, str]]:
    """Return array, outcome, cause and drives of every judged promise."""
    config = ssh_config(vm, place)
    choice = f"steady_state and {culprit.workload} and ({' or '.join(f'{level}x4' for level in LEVELS)})"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--ssd-devices=lab:{BY_ID}SSDQ000[1-4]"]
    argv += [f"--ssd-ssh-config={config}", "--ssd-spec=ssdqual-sm300", "--ssd-protocol=quick", "-k", choice]
    argv += [f"--ssd-run-dir={place / 'runs'}", f"--junitxml={place / 'junit.xml'}"]
    argv += [f"suites/{level}" for level in LEVELS]
    with (place / "output.txt").open("w") as output:
        run = subprocess.Popen(argv, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        begun, made = time.monotonic(), not culprit.later
        while run.poll() is None and time.monotonic() - begun < DEADLINE_S:
            time.sleep(0.5)
            if not made and _arrays_have_begun(place):
                culprit.make(vm)
                made = True
        run.terminate()
        run.wait()
    return list(_read(place / "junit.xml"))


def _read(path: Path) -> list[tuple[str, str, str, str]]:
    found = []
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 (our own document)
        given = {each.get("name", ""): each.get("value", "") for each in case.iter("property")}
        outcome = given.get("ssd.outcome") or ("error" if case.find("error") is not None else "skipped")
        if outcome != "skipped":
            name = case.get("name", "").partition("[")[2].rstrip("]")
            found.append((name, outcome, given.get("ssd.cause", ""), given.get("ssd.cause_drives", "")))
    return found


def main(names: list[str]) -> None:
    right = broken = falsely = 0
    with lab.start(4, iops=IOPS) as vm:
        for name in names:
            culprit = CULPRITS[name]
            with tempfile.TemporaryDirectory() as place:
                _mend(vm)
                if not culprit.later:
                    culprit.make(vm)
                for array, outcome, cause, drives in judge(vm, culprit, Path(place)):
                    accused = drives if cause in ("drive", "drives", "path") else ""
                    print(f"{name:<12} {array:<26} {outcome:<13} {cause:<12} {accused}", flush=True)
                    if cause:
                        broken += 1
                        right += (cause, accused) in culprit.answers
                        guilty = " ".join(serials for _, serials in culprit.answers).split()
                        is_free = not any(kind.startswith("drive") for kind, _ in culprit.answers)
                        falsely += cause.startswith("drive") and (is_free or not set(accused.split()) <= set(guilty))
    print(f"{right} of {broken} causes right, {falsely} with a drive accused falsely")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("culprits", nargs="*", choices=[[], *CULPRITS], default=[], metavar="CULPRIT")
    main(parser.parse_args().culprits or list(CULPRITS))
