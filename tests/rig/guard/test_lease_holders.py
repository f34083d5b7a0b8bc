from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.guard.lease import Holder, Note
from pytest_ssdqual.rig.machine.channel import Channel

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
    found = asked(f"/run/a.lock\t75\t{one}\n/run/b.lock\t9\t{other}\n/run/c.lock\t76\t{one}\n")
    assert [(each.drives, each.who.partition(",")[0], each.age_s) for each in found] == [
        (("SSDQ0001", "SSDQ0003"), "anna@one", 76),
        (("SSDQ0002",), "bert@two", 9),
    ]
    assert "SSDQ0001, SSDQ0003: held" in lease.describe_owners(found, "dut7")
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
