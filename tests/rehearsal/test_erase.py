"""Whole runs that end in the middle of an ATA Security Erase: the drive is make-believe, everything else is real."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakes.fake_hdparm import DATA, HDPARM
from support.lab.rehearsed import BRIEF, Running, Server, Start, await_that, drives

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

#: $1 what -I prints, $2 the program: a drive that speaks ATA, and whose erase lasts until /run/fake-drive/erasing goes.
FAKE_ATA = """
mkdir /run/fake-drive
printf '%s\\n' "$1" >/run/fake-drive/identify
printf '%s\\n' "$2" >/usr/bin/hdparm
chmod +x /usr/bin/hdparm
touch /run/fake-drive/erasing
"""
ERASE = "ATA Security Erase"
CAUTION = "it must not lose its power until then"


@pytest.fixture(autouse=True)
def _ata(server: Server) -> Iterator[None]:
    server.ask("sh", "-ec", FAKE_ATA, "fake", (DATA / "idle.txt").read_text(), HDPARM)
    yield
    server.ask("rm", "-f", "/run/fake-drive/erasing")
    server.ask("flock", "--wait", "60", "/run/pytest-ssdqual/SSDQ0001~unfinished.lock", "true", check=False)
    server.ask("rm", "-rf", "/run/fake-drive", "/usr/bin/hdparm")


@pytest.fixture
def run(start: Start, tmp_path: Path) -> Start:
    """Runs that purge one drive by an ATA Security Erase."""
    protocol = tmp_path / "erasing.toml"
    protocol.write_text(BRIEF.read_text().replace('purge = "discard"', 'purge = "format"'))
    start.protocol, start.suite = protocol, "suites/drive"
    start.options = (*start.options, "-p", "support.fakes.ata_drives")
    return start


def erasing(run: Start, server: Server) -> Running:
    begun = run(drives(1))
    await_that(lambda: "erase" in server.ask("cat", "/run/fake-drive/asked", check=False), "the erase to begin")
    return begun


def has_password(server: Server) -> bool:
    return "password" in server.ask("ls", "/run/fake-drive")


def let_finish(server: Server) -> None:
    server.ask("rm", "/run/fake-drive/erasing")
    await_that(lambda: not has_password(server), "the password to go")
    assert "erased" in server.ask("ls", "/run/fake-drive")


@pytest.mark.nightly
def test_ctrl_c_leaves_the_erase_alone_and_says_so(run: Start, server: Server) -> None:
    begun = erasing(run, server)
    begun.signal(signal.SIGINT)
    stopped = begun.finish()
    assert stopped.status == 2
    (record,) = stopped.folder.records("still_running")
    sentence = str(record.facts["sentence"])
    assert f"{ERASE} of " in sentence
    assert "continues on lab" in sentence
    assert sentence.endswith(f"takes 2 min; {CAUTION}")
    assert sentence in stopped.output
    assert has_password(server)
    refused = run(drives(1)).finish()
    assert refused.status == 4
    (reason,) = [line for line in refused.output.splitlines() if ERASE in line]
    assert CAUTION in reason
    assert "--ssd-wait=DURATION waits" in reason
    waiting = run(drives(1), "--ssd-wait=10m")
    waiting.await_output("waiting for")
    let_finish(server)
    waiting.await_record("array_created")
    (created,) = waiting.folder().records("array_created")
    assert "enhanced" in str(created.facts["purge"])
    waiting.signal(signal.SIGTERM)
    assert waiting.finish().status == 2
    assert not has_password(server)
    await_that(lambda: server.left() == [], "the machine to be as it was")


def test_killed_run_leaves_the_erase_alone(run: Start, server: Server) -> None:
    begun = erasing(run, server)
    begun.signal(signal.SIGKILL)
    assert begun.finish().status == -signal.SIGKILL
    # The lease goes with the run, as a keeper hears that it has ended.
    server.ask("flock", "--wait", "100", "/run/pytest-ssdqual/SSDQ0001.lock", "true")
    assert has_password(server)
    assert server.ask("pidof", "-x", "hdparm").strip()
    refused = run(drives(1)).finish()
    assert (refused.status, ERASE in refused.output) == (4, True)
    let_finish(server)
    await_that(lambda: server.left() == [], "the machine to be as it was")
