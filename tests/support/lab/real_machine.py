"""The lab's guest with the layout of a server: root on /dev/sda, eight SSDs, this package installed from a wheel."""

from __future__ import annotations

import hashlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from pytest_ssdqual.lab.drives import Bus, shelf
from pytest_ssdqual.lab.host import TO_BOOT, cache_directory, require
from pytest_ssdqual.lab.image.image import Say
from pytest_ssdqual.lab.kvm import accelerator
from pytest_ssdqual.lab.vm import boot
from support.lab.faulty_vm import FaultyVm
from support.lab.root_disk import ensure_disk

ROOT = Path(__file__).parents[3]
#: Python of the guest's distribution, and where it looks for packages of the site.
PYTHON, SITE = "3.11", "usr/local/lib/python3.11/dist-packages"
#: What no run needs, and is half of all files.
UNNEEDED = ("tests", "test", "__pycache__", "sample_data")
#: Slow enough that a busy computer keeps up with all of them.
DRIVES, DRIVE_BYTES, IOPS = 8, 64 << 20, 100
#: Of the guest.
MEMORY_MIB = 1024
#: A test module that imports all of the package.
IMPORTS_ALL = """
import importlib, pkgutil, pytest_ssdqual
for module in pkgutil.walk_packages(pytest_ssdqual.__path__, "pytest_ssdqual."):
    if not module.name.startswith(("pytest_ssdqual.suites", "pytest_ssdqual.__main__", "pytest_ssdqual.lab.__main__")):
        importlib.import_module(module.name)
"""


@dataclass(frozen=True, slots=True)
class RealMachine:
    """The machine, seen past the program."""

    vm: FaultyVm

    def ask(self, *argv: str, check: bool = True, deadline_s: float = 600.0, stdin: bytes | None = None) -> str:
        command = self.vm.ssh.argv(shlex.join(argv))
        done = subprocess.run(command, input=stdin or b"", capture_output=True, check=False, timeout=deadline_s)
        if check and done.returncode:
            raise RuntimeError(f"{argv} exited with {done.returncode}: {done.stdout.decode()}{done.stderr.decode()}")
        return done.stdout.decode("utf-8", "backslashreplace")

    def put(self, place: str, files: Mapping[str, Path | str]) -> None:
        """Files and directories of this host, or texts, into a directory of the machine."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, source in files.items():
                if isinstance(source, Path):
                    archive.add(source, name, filter=_of_root)
                else:
                    member = tarfile.TarInfo(name)
                    member.size, member.mode = len(source.encode()), 0o755
                    archive.addfile(member, io.BytesIO(source.encode()))
        self.ask("sh", "-ec", 'mkdir -p "$1"; tar -x -C "$1"', "put", place, stdin=packed.getvalue())


@contextmanager
def booted(scratch: Path, say: Say = print) -> Iterator[RealMachine]:
    """Boot it, and install the package as it is now; ``scratch`` is for what is built for that."""
    require(TO_BOOT)
    cache = cache_directory()
    image = ensure_disk(cache, say, ["python3"], partial(_dependencies, scratch), _digest())
    drives = shelf(DRIVES, size_bytes=DRIVE_BYTES, iops=IOPS, bus=Bus.SCSI)
    with boot(image, drives, accelerator=accelerator(image, cache), say=say, memory_mib=MEMORY_MIB) as vm:
        machine = RealMachine(FaultyVm.of(vm))
        machine.put(f"/{SITE}", {path.name: path for path in _package(scratch).iterdir()})
        yield machine


def _wanted() -> list[str]:
    found: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return found


def _digest() -> str:
    return hashlib.sha256(Path(__file__).read_bytes() + "\n".join(_wanted()).encode()).hexdigest()[:16]


def _dependencies(scratch: Path) -> dict[str, Path]:
    """All that the package needs, as pip installs it for the guest's Python, and pytest's command."""
    place = scratch / "dependencies"
    _pip_install(place, "--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp", *_wanted())
    for path in sorted(place.rglob("*"), reverse=True):
        if path.is_dir() and path.name in UNNEEDED:
            shutil.rmtree(path)
    _compile(place)
    commands = scratch / "bin"
    commands.mkdir()
    script = (place / "bin" / "pytest").read_text().partition("\n")[2]
    (commands / "pytest").write_text(f"#!/usr/bin/python3\n{script}")
    (commands / "pytest").chmod(0o755)
    shutil.rmtree(place / "bin")
    return {SITE: place, "usr/bin": commands}


def _package(scratch: Path) -> Path:
    """This package, from its wheel."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(scratch), str(ROOT)], check=True)
    (wheel,) = scratch.glob("pytest_ssdqual-*.whl")
    _pip_install(scratch / "package", "--no-deps", str(wheel))
    _compile(scratch / "package")
    _rewrite(scratch / "package")
    return scratch / "package"


def _pip_install(place: Path, *arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-compile"]
    subprocess.run([*pip, "--target", str(place), *arguments], check=True)


def _compile(place: Path) -> None:
    """The guest would need minutes for it; by a Python of another version it must."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == PYTHON:
        argv = [sys.executable, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
        subprocess.run([*argv, "-s", str(place), "-p", f"/{SITE}", str(place)], check=False, capture_output=True)


def _rewrite(place: Path) -> None:
    """Let pytest compile it, too: it rewrites the assertions of its plugins, for which the guest needs a minute.

    What it keeps is for one version of Python and of pytest; a guest that has others does it anew.
    """
    importing = place.parent / "test_imports_all.py"
    importing.write_text(IMPORTS_ALL)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(importing)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
    done = subprocess.run(
        argv,
        cwd=place.parent,
        env=environment | {"PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError(f"the package cannot be imported\n{done.stdout}{done.stderr}")


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    return member
