"""Lives of real arrays: an honest one survives a power cut in the middle of writes, a corrupt one is found out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from support.builders.measuring import UNPREPARED
from support.fakes import power_switch
from support.lab.bare_drives import Bench, bench
from support.lab.rehearsed import BRIEF, Lab, Server, Start, await_that, drives

from pytest_ssdqual.plugin.searches.integrity import IntegritySearch
from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity import steps as history
from pytest_ssdqual.qual.integrity.reference_model import MismatchKind
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES, Write
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings, IntegrityRule
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.integrity.md_target import MdTarget
from pytest_ssdqual.rig.integrity.runner import run_steps
from pytest_ssdqual.rig.integrity.target import IntegrityTarget
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.measure.session import Setup

# Not unhurried, although no figures are judged: both halves of the rehearsals are to take equally long.
pytestmark = pytest.mark.lab

TESTS = Path(__file__).parents[1]
RAID5 = Geometry.parse("raid5x3")
#: What an array goes through that is honest: a member fails and comes back, and the power is cut under writes.
LIFE = """\
array raid5x3 bitmap internal
write 1 16k unflushed
cut 3 4k
fail 2
remove 2
write 0 128k
re-add 2
"""
SMALL = """
[integrity]
histories = 1
steps = 8
limit = "5 min"
regions = 4
member = "32m"
"""
RULE = IntegrityRule(histories=4, steps=3, limit_s=2.0, regions=2, member_bytes=32 << 20)
PROTOCOL = replace(UNPREPARED, integrity=RULE)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder through which a run asks for a power cut."""
    folder = tmp_path / "switch"
    folder.mkdir()
    monkeypatch.setenv("POWER_SWITCH", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    return folder


@pytest.mark.nightly
def test_an_honest_raid5_survives_a_power_cut_under_writes(server: Server, site: Path, tmp_path: Path) -> None:
    protocol, life = tmp_path / "small.toml", tmp_path / "life.history"
    protocol.write_text(BRIEF.read_text() + SMALL)
    life.write_text(LIFE)
    start = Start(tmp_path, server.options, suite="suites/integrity", protocol=protocol)
    try:
        run = start(drives(4), "-p", "support.fakes.power_switch", "-k", "raid5x3", f"--ssd-replay={life}")
        await_that((site / power_switch.ASKED).exists, "a power cut")
        assert (site / power_switch.ASKED).read_text() == "lab"
        server.lab.vm.power_cut()
        server.lab.vm.power_on()
        (site / power_switch.DONE).touch()
        done = run.finish()
    finally:
        start.close()
    assert done.results() == {"test_a_raid5_keeps_what_it_acknowledged[raid5x3]": []}, done.output
    (story,) = done.folder.records("history")
    assert story.facts["steps_done"] == 6
    assert (done.folder.path / str(story.facts["script"])).read_text() == LIFE
    assert [each.kind for each in done.folder.records("power_cut")] == ["power_cut"]
    assert server.left() == []


@dataclass
class IntegrityBook:
    """What a run folder would hold."""

    notes: list[str] = field(default_factory=list)

    def note(self, kind: str, **facts: object) -> None:
        self.notes.append(kind)

    def keep(self, name: str, data: bytes) -> str:
        return name


class Corrupting(MdTarget):
    """Whenever something is overwritten, 4 KiB where the array's regions begin change behind md's back."""

    here: Bench

    def write(self, history: int, stretches: Sequence[Stretch], *, flush: bool) -> None:
        super().write(history, stretches, flush=flush)
        if stretches[0].generation > 1:
            argv = ["sh", "-c", f"cat /sys/block/{self.array.kname}/md/dev-*/offset"]
            sectors = int(self.here.machine.run(argv).text.split()[0])
            width = len(self.array.members)
            row = self.array.begin_bytes // reference_model.stripe_bytes(RAID5, ArraySettings())
            # Left-symmetric: the first data of a row are behind its parity, which begins on the last member.
            first = self.array.members[(width - row % width) % width]
            at = sectors * 512 + self.array.begin_bytes // (width - 1)
            self.here.write(first.path, "4k", 1, at=at // 4096)


@pytest.fixture
def corrupting(lab: Lab) -> Iterator[IntegrityTarget]:
    with bench(lab) as here:
        held = HeldDrives(here.machine, here.drives)
        body = Corrupting(Setup(here.machine, held, PROTOCOL, IntegrityBook(), "lab", lambda what, seconds: None))
        body.here = here
        try:
            yield body
        finally:
            body.close()
            held.release()


@pytest.mark.nightly
def test_silent_corruption_is_found_and_can_be_replayed(corrupting: IntegrityTarget) -> None:
    settings = ArraySettings()
    sizes = (UNIT_BYTES, reference_model.stripe_bytes(RAID5, settings))
    looks = itertools.count()  # at the clock, one for each life: few of them, however fast the lab is
    size = reference_model.region_bytes(RAID5, settings)
    found = IntegritySearch(corrupting, RAID5, 4, RULE, sizes, size, clock=lambda: float(next(looks))).run()
    assert not found
    assert found.findings[0].kind is MismatchKind.GARBAGE
    assert found.findings[0].offset_bytes == mdadm.spared(RAID5, settings)
    assert found.shortest is not None
    assert any(isinstance(step, Write) for step in found.shortest.steps)
    script = history.parse(str(found.shortest))
    again = run_steps(corrupting, script, 999)
    assert again.findings
    assert again.findings[0].offset_bytes == mdadm.spared(RAID5, settings)
