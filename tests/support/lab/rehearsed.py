"""Whole runs of the program in a process of their own, against the lab as a server somewhere; and what they leave."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_ssdqual.report.run_folder.reader import Record, read_records
from support.lab.faulty_vm import FaultyVm
from support.lab.run_left import Finished, Folder

if TYPE_CHECKING:
    from pytest_ssdqual.lab.vm import Vm

__all__ = [
    "BRIEF", "DEADLINE_S", "LEFT", "LENIENTLY", "SERIALS", "Finished", "Folder", "Lab", "LabHost", "Running", "Server",
    "Start",
    "await_that", "drives", "foreign_environment", "host_entry",
]  # fmt: skip

ROOT = Path(__file__).parents[3]
BRIEF = Path(__file__).parents[2] / "rehearsal" / "brief.toml"
#: Judge the IOPS only, by a spec that drives of the lab keep on the busiest of computers.
LENIENTLY = (f"--ssd-spec={BRIEF.with_name('lenient.toml')}", "--ssd-force-spec")
SERIALS = ("SSDQ0001", "SSDQ0002", "SSDQ0003", "SSDQ0004")
#: Everything is awaited, nothing is timed: these only end what hangs, on a machine that has other work too.
DEADLINE_S, STEP_DEADLINE_S = 1200.0, 600.0

#: What a run could leave on the machine under test, a line each; $1 is a pattern of its drives. Empty lock files stay
#: by design.
LEFT = r"""
sed -n '/^md[0-9]/p' /proc/mdstat
for pid in $(pidof fio); do echo "fio is running: $pid"; done
for environ in $(grep -lzs '^PYTEST_SSDQUAL_TETHER=' /proc/[0-9]*/environ); do echo "still tethered: $environ"; done
for file in /run/pytest-ssdqual/*; do
    case $file in
    */'*') ;;
    *.lock) flock --nonblock "$file" true || echo "held: $file" ;;
    *) echo "file: $file" ;;
    esac
done
for drive in $1; do
    [ -z "$(wipefs --no-act "$drive" 2>&1)" ] || echo "not blank: $drive"
done
"""
#: Back to what the next test may expect, whatever happened.
RESET = r"""
for pid in $(pidof fio); do kill -KILL "$pid"; done
for md in /sys/block/md*; do [ -e "$md" ] && mdadm --stop "/dev/${md##*/}"; done
udevadm settle --timeout=10
for drive in /dev/nvme[0-9]n1; do wipefs --all --quiet "$drive"; blkdiscard "$drive"; done
rm -f /run/pytest-ssdqual/fio-*
"""


def await_that(condition: Callable[[], bool], what: str, deadline_s: float = STEP_DEADLINE_S) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {deadline_s:g} s in vain for {what}")
        time.sleep(0.1)


class Lab(Protocol):
    """What the fixture ``lab`` gives."""

    @property
    def vm(self) -> FaultyVm: ...
    @property
    def ssh_config(self) -> Path: ...
    def ssh(self, *argv: str) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class LabHost:
    """A running lab as a server that OpenSSH knows: ``ssh -F config lab``."""

    vm: FaultyVm
    #: An OpenSSH configuration with the hosts ``lab`` (root), ``lab-tester`` (sudo) and ``lab-nosudo``.
    ssh_config: Path

    @classmethod
    def of(cls, vm: Vm, ssh_config: Path) -> LabHost:
        """Writes the configuration."""
        ssh_config.write_text("".join(host_entry(vm, name, user) for name, user in HOSTS.items()))
        return cls(FaultyVm.of(vm), ssh_config)

    def ssh(self, *argv: str) -> list[str]:
        """An argv that runs a command there as root."""
        return ["ssh", "-F", str(self.ssh_config), "lab", shlex.join(argv)]


HOSTS = {"lab": "root", "lab-tester": "tester", "lab-nosudo": "nosudo"}


def host_entry(vm: Vm, name: str, user: str) -> str:
    """Of OpenSSH's configuration."""
    reach = vm.ssh
    lines = [f"HostName {reach.host}", f"Port {reach.port}", f"User {user}", f"IdentityFile {reach.identity}"]
    lines += ["IdentitiesOnly yes", "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR"]
    return f"Host {name}\n" + "".join(f"    {line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Server:
    """The machine under test, seen past the program."""

    lab: Lab

    @property
    def options(self) -> tuple[str, ...]:
        """How a run gets to it, and by what it judges its drives."""
        return f"--ssd-ssh-config={self.lab.ssh_config}", "--ssd-spec=ssdqual-sm300", "--ssd-force-spec"

    def ask(self, *argv: str, check: bool = True) -> str:
        done = subprocess.run(self.lab.ssh(*argv), capture_output=True, text=True, check=False, timeout=STEP_DEADLINE_S)
        if check and done.returncode:
            raise RuntimeError(f"{argv[0]} exited with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def left(self) -> list[str]:
        """Arrays, processes, locks, files and signatures that should not be there."""
        return self.ask("sh", "-c", LEFT, "left", "/dev/nvme[0-9]n1").splitlines()

    def arrays(self) -> list[str]:
        return [line.split()[0] for line in self.left() if line.startswith("md")]

    def digest(self, *serials: str) -> list[str]:
        """Of all bytes of drives: read past the machine, which needs ten times as long, when it has written them."""
        self.ask("sh", "-ec", 'sync; for drive in /dev/nvme[0-9]n1; do blockdev --flushbufs "$drive"; done')
        found = []
        for serial in serials:
            with self.lab.vm.backing_file(serial).open("rb") as file:
                found.append(hashlib.file_digest(file, "blake2b").hexdigest())
        return found

    def age_files(self) -> None:
        """Let the files that killed runs have left be old enough for the next run to remove."""
        self.ask("sh", "-c", "for file in /run/pytest-ssdqual/*; do touch -d '1 hour ago' \"$file\"; done")

    def await_fio(self) -> None:
        self.ask("timeout", "500", "sh", "-c", "until pidof fio >/dev/null; do sleep 0.1; done")

    def await_no_fio(self) -> None:
        self.ask("timeout", "500", "sh", "-c", "while pidof fio >/dev/null; do sleep 0.2; done")

    def reset(self) -> None:
        self.ask("sh", "-c", RESET)
        for serial in SERIALS:
            self.lab.vm.set_iops(serial, 300)


def foreign_environment() -> dict[str, str]:
    """Nothing of the pytest that this runs in must reach another one."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}


class Running:
    """A run under way."""

    def __init__(self, argv: Sequence[str], place: Path, root: Path) -> None:
        self.root = root
        self._before = set(root.iterdir()) if root.is_dir() else set()
        self._resumed = Folder(max(self._before)) if "--ssd-resume=last" in argv else None
        #: Lines that were in the journal before.
        self.since = len(list(read_records(self._resumed.path))) if self._resumed else 0
        self._junit = place / "junit.xml"
        self._output = place / "output"
        environment = foreign_environment()
        # Whoever starts the tests in a shell's background has SIGINT ignored, and children inherit that.
        heeding = ["env", "--default-signal=INT"]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*heeding, *argv, f"--junitxml={self._junit}"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self._output.read_text("utf-8", "backslashreplace")

    def folder(self) -> Folder:
        """The run folder, as soon as there is one."""
        if self._resumed:
            return self._resumed

        def found() -> set[Path]:
            return set(self.root.iterdir()) - self._before if self.root.is_dir() else set()

        self._await(lambda: any((path / "records.jsonl").exists() for path in found()), "a run folder")
        return Folder(found().pop())

    def await_record(self, kind: str, count: int = 1, **facts: object) -> None:
        """Until this session has noted it so many times, with these facts."""
        folder = self.folder()

        def found() -> list[Record]:
            return [each for each in folder.records(kind, self.since) if facts.items() <= each.facts.items()]

        self._await(lambda: len(found()) >= count, f"{count} × {kind} {facts or ''}")

    def await_output(self, text: str) -> None:
        """Until it has printed this."""
        self._await(lambda: text in self.output, f"the words {text!r}")

    def signal(self, number: signal.Signals) -> None:
        """To pytest's process alone, as CI systems and supervisors do."""
        self.process.send_signal(number)

    def finish(self, deadline_s: float = DEADLINE_S) -> Finished:
        try:
            status = self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the run did not end within {deadline_s:g} s\n{self.output}") from None
        finally:
            self.stop()
        return Finished(status, self.output, self._junit, self.root, self.since)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        def met() -> bool:
            ended = self.process.poll() is not None
            if condition():
                return True
            if ended:
                raise RuntimeError(f"the run ended before there was {what}\n{self.output}")
            return False

        await_that(met, what)


def drives(count: int) -> str:
    """The first drives of the lab, for ``--ssd-devices``."""
    return f"lab:/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ000[1-{count}]"


@dataclass(slots=True)
class Start:
    """``start(drives(3), "-k", "randread_4k_qd8")``: a run of the suite."""

    place: Path
    #: Of every run.
    options: tuple[str, ...] = ()
    suite: str = "suites/raid5"
    protocol: Path = BRIEF
    _begun: list[Running] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """Where run folders go unless ``root`` says otherwise."""
        return self.place / "runs"

    def __call__(self, devices: str, *arguments: str, root: Path | None = None) -> Running:
        place = self.place / f"run-{len(self._begun)}"
        place.mkdir()
        root = root or self.root
        # Nothing is written into the checkout. hypothesis' plugin would be imported for its summary alone: 1.3 s of
        # processor time, three times the rest of pytest.
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
        argv += [f"--ssd-devices={devices}", *self.options]
        # Bare drives before arrays take a minute of the lab; tests about them switch this on again.
        argv += ["-o", "ssd_members=false"]
        argv += [f"--ssd-protocol={self.protocol}", f"--ssd-run-dir={root}", self.suite, *arguments]
        self._begun.append(Running(argv, place, root))
        return self._begun[-1]

    def close(self) -> None:
        for run in self._begun:
            run.stop()
