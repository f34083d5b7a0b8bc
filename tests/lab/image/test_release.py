from __future__ import annotations

import platform
import subprocess

import pytest

from pytest_ssdqual.lab.host import LabUnavailable
from pytest_ssdqual.lab.image.release import apt_sources, host_codename, named, other_than_host, sources_text

TRIXIE = named("debian13")
#: As apt prints it without package lists: each target twice.
TARGETS = """\
http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm main
http://mirror.example/debian/ bookworm-updates main
http://mirror.example/debian-security/ bookworm-security main
http://mirror.example/debian/ bookworm contrib
http://vendor.example/apt/ cloud-sdk-bookworm main
"""


def test_sources_are_the_hosts_archive_with_the_name_replaced() -> None:
    fields = dict(line.split(": ") for line in sources_text(TARGETS, "bookworm", TRIXIE).splitlines())
    assert (fields["URIs"], fields["Suites"], fields["Components"]) == (
        "http://mirror.example/debian/",
        "trixie",
        "main",
    )


def test_hosts_without_their_own_archive_have_none() -> None:
    assert sources_text(TARGETS, "sid", TRIXIE) == ""


def on(monkeypatch: pytest.MonkeyPatch, **facts: str) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: facts)


def test_release_of_the_host_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, ID="debian", VERSION_CODENAME="trixie")
    assert other_than_host("debian13") is None
    assert other_than_host("debian11") == named("debian11")
    assert other_than_host("") is None


@pytest.mark.parametrize("facts", [{"ID": "ubuntu", "VERSION_CODENAME": "noble"}, {"ID": "debian"}, {}])
def test_hosts_that_are_no_release_of_debian_are_refused(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, str]
) -> None:
    on(monkeypatch, **facts)
    done = subprocess.CompletedProcess([], 0, stdout=TARGETS)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert host_codename() == ""
    with pytest.raises(LabUnavailable, match="a Debian host"):
        apt_sources(TRIXIE)


def test_hosts_without_apt_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, ID="debian", VERSION_CODENAME="bookworm")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LabUnavailable, match="bookworm"):
        apt_sources(TRIXIE)
