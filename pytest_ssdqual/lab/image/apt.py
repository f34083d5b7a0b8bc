"""Runs apt without root rights and without touching the host's packages.

apt resolves against an empty system, so its answer has all packages of the guest and does not depend on the host's
packages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

from pytest_ssdqual.lab.host import LabUnavailable
from pytest_ssdqual.qual.frozen import frozen

#: '…address…' name_version_architecture.deb size checksum
_LINE = re.compile(r"^'[^']*' (?P<name>[^_ ]+)_(?P<version>[^_ ]+)_[^_ ]+\.deb (?P<size>\d+)", re.MULTILINE)

#: Directory in apt's state, for sources that replace the host's.
SOURCES = "sources.list.d"


@frozen
class Package:
    name: str
    version: str
    size_bytes: int


def parse_uris(text: str) -> tuple[Package, ...]:
    """Parse the output of ``apt-get install --print-uris``."""
    return tuple(
        Package(found["name"], unquote(found["version"]), int(found["size"])) for found in _LINE.finditer(text)
    )


def lists_fingerprint() -> str:
    """Return a text that changes when the host's package lists are updated."""
    try:
        return str(Path("/var/lib/apt/lists").stat().st_mtime_ns)
    except OSError:
        return "none"


def resolve(names: Iterable[str], state: Path) -> tuple[Package, ...]:
    """Return the packages and their dependencies, by the host's package lists, else by lists fetched into ``state``.

    Raises ``LabUnavailable`` with apt's last message.
    """
    try:
        found = parse_uris(_apt(_install(names), _options(None)))
    except subprocess.CalledProcessError:
        # a container's lists are usually empty
        return _fetch_lists_and_resolve(names, state)
    # the fetched lists would soon be older than the host's
    shutil.rmtree(state, ignore_errors=True)
    return found


def resolve_by(sources: str, names: Iterable[str], state: Path) -> tuple[Package, ...]:
    """Return the packages and their dependencies by other sources than the host's, with lists fetched into ``state``.

    ``download`` with this ``state`` uses the same sources. Raises ``LabUnavailable`` with apt's last message.
    """
    (state / SOURCES).mkdir(parents=True, exist_ok=True)
    (state / SOURCES / "release.sources").write_text(sources, encoding="utf-8")
    return _fetch_lists_and_resolve(names, state)


def _fetch_lists_and_resolve(names: Iterable[str], state: Path) -> tuple[Package, ...]:
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    try:
        _apt(["update"], _options(state))
        return parse_uris(_apt(_install(names), _options(state)))
    except subprocess.CalledProcessError as error:
        raise LabUnavailable(f"apt cannot find the guest's packages: {_last_message(error)}") from error


def _install(names: Iterable[str]) -> list[str]:
    return ["-y", "--no-install-recommends", "--print-uris", "install", *names]


def download(packages: Sequence[Package], into: Path, state: Path) -> list[Path]:
    """Fetch the packages, checked by apt against the signed lists. Raises ``LabUnavailable``."""
    wanted = [f"{package.name}={package.version}" for package in packages]
    has_lists = any((state / "lists").glob("*Packages*"))
    try:
        _apt(["download", *wanted], _options(state if has_lists else None), into)
    except subprocess.CalledProcessError as error:
        raise LabUnavailable(f"apt cannot fetch the guest's packages: {_last_message(error)}") from error
    return sorted(into.glob("*.deb"))


def _options(state: Path | None) -> list[str]:
    own = [] if state is None else [f"Dir::State={state}", f"Dir::State::lists={state / 'lists'}"]
    if state is not None and (state / SOURCES).is_dir():
        # The host's pins are about its own release; the lists of an old release have expired.
        places = {"sourcelist": "/dev/null", "sourceparts": state / SOURCES, "preferencesparts": "/dev/null"}
        own += [f"Dir::Etc::{name}={place}" for name, place in places.items()]
        own += ["Dir::Etc::preferences=/dev/null", "Acquire::Check-Valid-Until=false"]
    settings = [
        *own,
        "Dir::State::status=/dev/null",
        "Dir::Cache::pkgcache=",
        "Dir::Cache::srcpkgcache=",
        "Debug::NoLocking=1",
        # apt would warn that its own user cannot write here
        "APT::Sandbox::User=root",
    ]
    return [part for setting in settings for part in ("-o", setting)]


def _apt(argv: Sequence[str], options: Sequence[str], cwd: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        ["apt-get", "-q", *options, *argv], capture_output=True, text=True, check=True, cwd=cwd, env=environment
    )
    return done.stdout


def _last_message(error: subprocess.CalledProcessError) -> str:
    lines = [line.strip() for line in str(error.stderr).splitlines() if line.strip()]
    return lines[-1] if lines else f"apt-get ended with status {error.returncode}"
