from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ssdqual.lab.host import LabUnavailable
from pytest_ssdqual.lab.image.apt import Package, download, parse_uris, resolve, resolve_by

URIS = """\
Reading package lists...
The following NEW packages will be installed:
  fio_is_not_a_line
'http://archive/pool/main/f/fio/fio_3.33-3_amd64.deb' fio_3.33-3_amd64.deb 537684 SHA256:ab
'http://archive/pool/main/c/coreutils/coreutils_9.1-1_amd64.deb' coreutils_9.1-1_amd64.deb 2896560 MD5Sum:cd
'http://archive/pool/main/m/x/libdevmapper1.02.1_1.02.185-2_amd64.deb' libdevmapper1.02.1_2%3a1.02.185-2_amd64.deb 1 x
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get that writes its arguments to ``calls`` and does what the file ``script`` says."""
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls\n. {tmp_path}/script\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_what_apt_would_fetch() -> None:
    assert parse_uris(URIS) == (
        Package("fio", "3.33-3", 537684),
        Package("coreutils", "9.1-1", 2896560),
        Package("libdevmapper1.02.1", "2:1.02.185-2", 1),
    )


def test_the_hosts_own_packages_do_not_matter(apt: Path) -> None:
    (apt / "script").write_text(f"cat <<'END'\n{URIS}END\n")
    (apt / "state" / "lists").mkdir(parents=True)
    assert len(resolve(["fio"], apt / "state")) == 3
    assert not (apt / "state").exists()
    (call,) = (apt / "calls").read_text().splitlines()
    assert "Dir::State::status=/dev/null" in call
    assert call.endswith("install fio")


def test_a_host_without_package_lists_gets_lists_of_its_own(apt: Path) -> None:
    (apt / "script").write_text(f"case $* in *Dir::State=*) cat <<'END'\n{URIS}END\n;; *) exit 100;; esac\n")
    assert len(resolve(["fio"], apt / "state")) == 3
    assert [call.split()[-1] for call in (apt / "calls").read_text().splitlines()] == ["fio", "update", "fio"]


def test_other_sources_replace_those_of_the_host(apt: Path) -> None:
    (apt / "script").write_text(f"cat <<'END'\n{URIS}END\ncase $* in *download*) touch fio.deb ;; esac\n")
    state, into = apt / "state", apt / "into"
    into.mkdir()
    assert len(resolve_by("Types: deb\n", ["fio"], state)) == 3
    (state / "lists" / "x_Packages").touch()
    download([Package("fio", "3.25-2", 1)], into, state)
    assert [path.read_text() for path in (state / "sources.list.d").iterdir()] == ["Types: deb\n"]
    calls = (apt / "calls").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == ["update", "fio", "fio=3.25-2"]
    for call in calls:
        assert "Dir::Etc::sourcelist=/dev/null" in call
        assert f"Dir::Etc::sourceparts={state}/sources.list.d" in call


def test_apts_last_words_are_passed_on(apt: Path) -> None:
    (apt / "script").write_text("echo W: something >&2; echo E: Unable to locate package fio >&2; exit 100\n")
    with pytest.raises(LabUnavailable, match="Unable to locate"):
        resolve(["fio"], apt / "state")
    with pytest.raises(LabUnavailable, match="apt cannot fetch"):
        download([Package("fio", "3.33-3", 1)], apt, apt / "state")


def test_download_asks_for_the_versions_that_were_resolved(apt: Path) -> None:
    (apt / "script").write_text("touch fio.deb\n")
    into = apt / "into"
    into.mkdir()
    assert download([Package("fio", "2:3.33-3", 1)], into, apt / "state") == [into / "fio.deb"]
    assert (apt / "calls").read_text().rstrip().endswith("download fio=2:3.33-3")
