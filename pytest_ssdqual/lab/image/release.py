"""Debian releases that the lab can boot beside the one of its host, and where the host's apt finds them."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping

from pytest_ssdqual.lab.host import LabUnavailable
from pytest_ssdqual.qual.frozen import frozen

#: Debian's own keys. apt does not report by which key file a source of the host is signed.
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@frozen
class Release:
    """A release of Debian."""

    #: As in ``lab:8@debian13``.
    name: str
    codename: str


RELEASES = (Release("debian11", "bullseye"), Release("debian12", "bookworm"), Release("debian13", "trixie"))


def named(name: str) -> Release:
    """Return the release; raise ``ValueError`` for an unknown name."""
    for release in RELEASES:
        if release.name == name:
            return release
    *others, last = (release.name for release in RELEASES)
    raise ValueError(f"the lab has no release {name!r}: write {', '.join(others)} or {last}")


def other_than_host(name: str) -> Release | None:
    """Return the release; None for an empty name and for the release that this host runs."""
    release = named(name) if name else None
    return None if release and release.codename == host_codename() else release


def os_facts() -> Mapping[str, str]:
    """Return the values of /etc/os-release; none if there is no such file."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def host_codename() -> str:
    facts = os_facts()
    return facts.get("VERSION_CODENAME", "") if facts.get("ID") == "debian" else ""


def apt_sources(release: Release) -> str:
    """Return apt's sources of a release, in its deb822 format: the archives of this host's own release.

    Raises ``LabUnavailable`` if this host is no Debian, or has no such source.
    """
    host = host_codename()
    text = sources_text(_targets(), host, release) if host else ""
    if not text:
        raise LabUnavailable(
            f"the lab's {release.name} needs a Debian host whose apt sources have its own release, component main; "
            f"apt-get indextargets lists none{f' of {host}' if host else ''}"
        )
    return text


def _targets() -> str:
    argv = ["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]
    try:
        done = subprocess.run([*argv, "Created-By: Packages"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout


def sources_text(targets: str, host: str, release: Release) -> str:
    """Return the sources, from lines ``URI RELEASE COMPONENT``; empty if none is of the host's release.

    Updates and security fixes are left out: they move when a release grows old (the index of bullseye-security names a
    kernel that mirrors no longer have), and the guest's network ends at this host.
    """
    suite = re.compile(rf"^(\S+) {re.escape(host)} main$", re.MULTILINE)
    return "\n".join(
        f"Types: deb\nURIs: {uri}\nSuites: {release.codename}\nComponents: main\nTargets: Packages\n"
        f"Signed-By: {KEYRING}\n"
        for uri in dict.fromkeys(suite.findall(targets))
    )
