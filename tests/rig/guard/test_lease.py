from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.guard import lease as leases
from pytest_ssdqual.rig.guard.lease import Holder, Lease, LeaseLost, Note, Terms, await_free, lock_files, names_of
from pytest_ssdqual.rig.machine import run_files
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import LeaseTaken, RigError, Tethered
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY

#: A run that holds drives and never says goodbye.
CONTROLLER = """
import signal, sys
from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.machine import run_files
from pytest_ssdqual.rig.machine.channel import Channel
lease.DIRECTORY = run_files.DIRECTORY = sys.argv[1]
held = lease.Lease(Channel("dut7", wrap=list, lost=lambda done: None), dict.fromkeys(sys.argv[2:], "a drive"))
print("held", flush=True)
signal.pause()
"""


def named(*names: str) -> dict[str, str]:
    """Names of drives that messages call the same."""
    return dict(zip(names, names, strict=True))


identities = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=5)


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where leases are kept during this test."""
    directory = tmp_path / "locks"
    monkeypatch.setattr(leases, "DIRECTORY", str(directory))
    monkeypatch.setattr(run_files, "DIRECTORY", str(directory))
    return directory


@pytest.fixture
def machine(unprivileged: Channel, locks: Path) -> Channel:
    unprivileged.name = "dut7"
    return unprivileged


@given(identities)
def test_lock_files_stay_in_their_directory_and_in_order(names: list[str]) -> None:
    files = lock_files(names)
    assert list(files) == sorted(files)
    assert len(files) == len(set(names))
    for file in files:
        folder, _, name = file.rpartition("/")
        assert folder == DIRECTORY
        assert name.endswith(".lock")
        assert name not in (".", "..")


def test_a_drive_has_one_holder(machine: Channel) -> None:
    with Lease(machine, named("A", "B")) as held:
        held.require()
        with pytest.raises(LeaseTaken) as taken:
            Lease(machine, named("B", "C"))
        us = f"{getpass.getuser()}@{socket.gethostname()}, process {os.getpid()}"
        told = rf"another run holds drives on dut7: B: held by {us} for \d+ s; --ssd-wait=DURATION waits for them"
        assert re.fullmatch(told, str(taken.value))
        with Lease(machine, named("C")) as other:  # the failed attempt kept nothing
            other.require()
    with Lease(machine, named("A", "B", "C")) as again:
        again.require()


def known_as(serial: str | None, wwn: str | None, *others: str) -> Drive:
    return Drive("/dev/sda", "sda", "M", serial, wwn, "", 1, 1, 1, False, None, names=others)


@pytest.mark.parametrize(
    "other",
    [
        known_as("S0", None),  # a host without udev
        known_as("s0", "eui.2"),  # another namespace, and another spelling of the serial
        known_as(None, "eui.1"),
        known_as("another", "eui.3", "eui.1"),  # another path to it
    ],
)
def test_a_drive_has_one_holder_under_all_of_its_names(machine: Channel, other: Drive) -> None:
    with Lease(machine, names_of([known_as("S0", "eui.1")])) as held:
        held.require()
        with pytest.raises(LeaseTaken, match=r"/dev/sda( \(\w+\))?: held"):
            Lease(machine, names_of([other]))
        with pytest.raises(LeaseTaken):
            await_free(machine, names_of([other]), Terms())
    with Lease(machine, names_of([other])) as free:
        free.require()


def test_every_drive_that_is_held_is_named(machine: Channel) -> None:
    anna, bert = (Terms(Note(who, 7, run="r1")) for who in ("anna@one", "bert@two"))
    told = r"dut7: A, B: held by anna@one, process 7, run r1 for \d+ s; C: held by bert@two, process 7, run r1 for"
    with Lease(machine, named("A", "B"), anna), Lease(machine, named("C"), bert), pytest.raises(LeaseTaken, match=told):
        Lease(machine, named("A", "B", "C", "D"))


def test_a_killed_run_holds_nothing(machine: Channel, locks: Path) -> None:
    argv = [sys.executable, "-c", CONTROLLER, str(locks), "A", "B"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"held\n"
        controller.stdout.close()
        with _killed_at_last(controller), pytest.raises(LeaseTaken, match=f", process {controller.pid} for "):
            Lease(machine, named("B"))
        controller.kill()
    # It waits for the lock here, so that it is not a matter of how long the watcher takes.
    machine.run(["flock", "--wait", "60", str(locks / "B.lock"), "true"], deadline_s=90)
    with Lease(machine, named("A", "B")) as held:
        held.require()


@contextmanager
def _killed_at_last(controller: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whatever becomes of the test: it never ends by itself."""
    try:
        yield
    except BaseException:
        controller.kill()
        raise


def test_what_others_held_is_had_when_they_let_it_go(machine: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float]] = []
    first = Lease(machine, named("A", "B"), Terms(Note("anna@one", 7, planned_s=90_000)))
    monkeypatch.setattr(leases, "LOOK_EVERY_S", 0.01)

    def waiting(sentence: str, wait_s: float) -> None:
        told.append((sentence, wait_s))
        first.release()

    with Lease(machine, named("B", "C"), Terms(wait_s=300, waiting=waiting)) as held:
        held.require()
    ((sentence, wait_s),) = told
    assert "B: held by" in sentence
    assert "A" not in sentence.split()
    assert sentence.endswith("25 h more")
    assert 0 < wait_s <= 300


def test_waiting_ends_when_it_was_said_to(machine: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LOOK_EVERY_S", 0.01)
    told: list[str] = []
    terms = Terms(wait_s=0.05, waiting=lambda sentence, wait_s: told.append(sentence))
    match = (
        r"^another run holds drives on dut7: A: held by anna@one, process 7 for \d+ s, after waiting 50 ms for them$"
    )
    with Lease(machine, named("A"), Terms(Note("anna@one", 7))):
        with pytest.raises(LeaseTaken, match=match):
            Lease(machine, named("A"), terms)
        with pytest.raises(LeaseTaken, match=match):
            await_free(machine, named("A", "B"), terms)
    assert len(told) <= 2  # once each, not at every look


def test_drives_that_are_free_are_not_waited_for_and_not_taken(machine: Channel) -> None:
    assert not await_free(machine, named("A"), Terms(wait_s=60))
    with Lease(machine, named("A")):
        assert not await_free(machine, named("B"), Terms())


def test_who_waits_is_told_when_they_are_free(machine: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LOOK_EVERY_S", 0.01)
    first = Lease(machine, named("A"))
    assert await_free(machine, named("A"), Terms(wait_s=300, waiting=lambda told, wait_s: first.release()))


@pytest.fixture
def asker(machine: Channel, locks: Path, monkeypatch: pytest.MonkeyPatch) -> Tethered:
    """Somebody who asks for drive A, and takes long."""
    monkeypatch.setattr(leases, "AT_ONCE_S", 0.01)
    Lease(machine, named("A")).release()
    argv = ["flock", "--shared", str(locks / "A.lock"), "sh", "-c", "echo asks; exec sleep 600"]
    asking = machine.tether(argv, first_signal="TERM", announces=True)
    assert asking.read_line(60).strip() == "asks"
    return asking


def test_one_who_only_asks_is_in_nobodys_way(
    machine: Channel, asker: Tethered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the moment of the question a drive seems taken: it is tried again at once."""
    tries: list[str] = []
    real = leases._take

    def take(*args: object) -> object:
        tries.append("")
        if len(tries) == 3:
            asker.cut()
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "_take", take)
    with Lease(machine, named("A")) as held:
        held.require()
    assert len(tries) >= 3


def test_a_lock_that_is_never_free_and_never_held_is_told(machine: Channel, asker: Tethered) -> None:
    with pytest.raises(LeaseTaken, match="again and again"):
        Lease(machine, named("A"))
    asker.cut()


def test_a_lease_that_was_lost_is_noticed(machine: Channel, locks: Path) -> None:
    held = Lease(machine, named("A"))
    pids = _openers(locks / "A.lock")
    assert pids
    for pid in pids:
        machine.run(["kill", "-s", "KILL", pid], check=False)
    machine.run(["flock", "--wait", "60", str(locks / "A.lock"), "true"], deadline_s=90)
    held._holder.wait(60)
    with pytest.raises(LeaseLost, match="ended its holder"):
        held.require()


def _openers(file: Path) -> list[str]:
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink() == file:
                found.append(link.parts[2])
        except OSError:
            continue
    return found


def test_a_released_lease_is_not_held(machine: Channel) -> None:
    held = Lease(machine, named("A"))
    held.release()
    held.release()
    with pytest.raises(LeaseLost):
        held.require()


def test_a_lease_that_cannot_be_taken_says_why(unprivileged: Channel, locks: Path) -> None:
    locks.mkdir()
    (locks / "A.lock").symlink_to("/nowhere/at/all")
    with pytest.raises(RigError, match=r"^cannot take the"):
        Lease(unprivileged, named("A"))


FILES = {"/run/a.lock": "SSDQ0001", "/run/b.lock": "SSDQ0002", "/run/c.lock": "SSDQ0003"}


def asked(text: str) -> tuple[Holder, ...]:
    machine = ScriptedMachine().on("sh", "-c", lease.HELD, answer=text)
    return lease.ask(machine, FILES)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.integers(1, 2**22),
    st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=20),
    st.none() | st.floats(0, 1e7),
)
def test_what_is_noted_is_read(who: str, pid: int, run: str, planned_s: float | None) -> None:
    line = Note(who, pid, run, planned_s).to_line()
    assert line.isprintable()
    (found,) = asked(f"/run/a.lock\t75\t{line} \n")
    assert (found.drives, found.age_s, found.planned_s) == (("SSDQ0001",), 75, planned_s)
    assert found.who == safe_text.line(f"{who}, process {pid}" + (f", run {run}" if run else ""), 120)


@pytest.mark.parametrize(
    ("planned_s", "expected"),
    [
        (None, ""),
        (10_800.0, ", by its plan for about 2 h more"),
        (3000.0, ", 10 min longer than it had planned"),
    ],
)
def test_for_how_long_it_may_be(planned_s: float | None, expected: str) -> None:
    held = Holder(("SSDQ0001", "SSDQ0002"), "anna@one, process 7", 3600, planned_s)
    assert str(held).endswith(f"for 60 min{expected}")


def test_drives_of_one_holder_are_listed_together() -> None:
    one, other = Note("anna@one", 7, "r1", 60.0).to_line(), Note("bert@two", 8).to_line()
    holders = asked(f"/run/a.lock\t75\t{one}\n/run/b.lock\t9\t{other}\n/run/c.lock\t76\t{one}\n")
    assert [(each.drives, each.who.partition(",")[0], each.age_s) for each in holders] == [
        (("SSDQ0001", "SSDQ0003"), "anna@one", 76),
        (("SSDQ0002",), "bert@two", 9),
    ]
    assert "SSDQ0001, SSDQ0003: held" in lease.describe_owners(holders, "dut7")
    assert "and 22 more:" in str(Holder(tuple(map(str, range(30))), "x", 1))
    assert asked("") == ()


@pytest.mark.parametrize(
    "said",
    [
        "", "  ", "anna@ctl1 pid 77 since 2026-11-21", "{", "[]", "7", '"x"', '{"who": "x"}', "\x1b[2J\x07",
        '{"who": {"a": 1}, "pid": [], "planned_s": "soon"}', '{"who": "x", "pid": 1, "planned_s": NaN}',
        '{"who": "x", "pid": 1, "planned_s": -5}', "[" * 100_000,
        f'{{"who": "x", "pid": 1, "planned_s": 1{"0" * 400}}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("age", ["75", "", "x", "-3"])
def test_words_of_others_are_only_words(said: str, age: str) -> None:
    (found,) = asked(f"/run/a.lock\t{age}\t{said}\n")
    assert found.drives == ("SSDQ0001",)
    assert str(found).isprintable()
    assert 0 < len(found.who) <= lease.WORD_CHARACTERS
    assert found.planned_s is None
    assert found.age_s >= 0


@pytest.mark.parametrize(
    ("note", "holders"), [('{"kname": ["sda"]}', 0), ('{"kname": {}}', 0), ("[]", 0), ('{"kname": "sda"}', 1)]
)
def test_work_is_that_of_a_drive_only_by_its_name(note: str, holders: int) -> None:
    machine = ScriptedMachine().on("sh", "-c", lease.HELD, answer=f"/run\t75\t{note}\n")
    assert len(lease.under_way(machine, "/run", {"sda"})) == holders


def test_our_own_note_says_who_and_which_run() -> None:
    noted = json.loads(Note.of_this_process("20261122T093701Z-ab12", 60.0).to_line())
    assert noted.keys() == {"who", "pid", "run", "planned_s"}
    assert "@" in noted["who"]


def test_a_lock_that_cannot_be_looked_at_is_not_told_as_held(unprivileged: Channel, tmp_path: Path) -> None:
    """Whoever takes it is told what is wrong with it."""
    (tmp_path / "flock").write_text("#!/bin/sh\nexit 66\n")
    (tmp_path / "flock").chmod(0o755)
    (lock := tmp_path / "a.lock").touch()
    script = f"PATH={tmp_path}:$PATH\n{lease.HELD}"
    assert unprivileged.run(["sh", "-c", script, "held", lease.UNFINISHED, str(lock)]).text == ""
    (tmp_path / "flock").write_text(f"#!/bin/sh\nexit {lease.CONFLICT}\n")
    assert unprivileged.run(["sh", "-c", script, "held", lease.UNFINISHED, str(lock)]).text.startswith(f"{lock}\t")
