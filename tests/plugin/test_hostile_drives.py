"""A drive's firmware may call itself anything: what that does to refusals, the terminal, JUnit and the run folder."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import wrap

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from support.builders.mutations import fuzzed
from support.documents.ci_commands import COMMANDS, TEXTS, commands_in
from support.fakes.inner_session import Inner
from support.simulator import simulated_rig
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.progress_events import Begun, Looked
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import judge
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.ci.junit import properties, section
from pytest_ssdqual.report.evidence.evidence import Evidence, of_verdict
from pytest_ssdqual.report.terminal.progress import Progress
from pytest_ssdqual.report.terminal.summary import Header, header_lines, write_lines, write_table
from pytest_ssdqual.report.view.tables import TextLine
from pytest_ssdqual.rig.drives.survey_parse import topology_of
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard.consent import Consent, Risk
from pytest_ssdqual.rig.guard.lease import lock_files
from pytest_ssdqual.rig.guard.refusals import refusals
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY

SCHEMA = Path(__file__).parents[1] / "data/junit/jenkins-xunit.xsd"

HOSTILE = (
    "<script>alert(1)</script>&amp;]]>", "\x1b]0;owned\x07\x1b[2J\x1b[31m", "\x9b31m", "a\nb\r\nPASSED",
    "it's \"quoted\" `id` $(id)", "\u2028\u2029\x85", "\u202eSSDQ\u202c\ufeff", "nul\0nul", "\ud800",
    b"\xff\xfe".decode("utf-8", "surrogateescape"), "=cmd|' /C calc'!A0", "+1", "-rf", "@SUM(1)", "A,B ,C", "x" * 10**6,
    "\\x1b", "../../etc/shadow", "%s%n{0}", "|", ";rm -rf /", *COMMANDS,
)  # fmt: skip
NAMES = st.sampled_from(HOSTILE) | TEXTS.filter(len) | st.text(st.characters(codec=None), min_size=1, max_size=30)

#: The drives are of no model that the spec names, and each of another one.
ANY = ("--ssd-protocol=quick", "--ssd-force-spec", "--ssd-mixed")


def drive_called(serial: str, model: str, fstype: str | None = None) -> tuple[World, Drive]:
    world = World([Device("sdb", "disk", "8:16", serial=serial, model=model, fstype=fstype)])
    topology = topology_of(world.lsblk(), world.facts("/dev/sdb"), ["sdb"])
    return world, topology.drive("sdb")


@fuzzed(60)
@given(NAMES, NAMES)
def test_from_lsblk_to_every_place_where_it_is_shown(serial: str, model: str) -> None:
    _, drive = drive_called(serial, model)
    shown = [drive.describe(), *filter(None, (drive.serial, drive.model))]
    shown += header_lines(Header((drive.model,), "dut", "snia", True, None, None))
    assert all(each.isprintable() and len(each) < 1000 and not commands_in(each) for each in shown)
    json.dumps(plain(drive)).encode()
    assert from_plain(Drive, json.loads(json.dumps(plain(drive)))) == drive
    if drive.serial:
        for lock in lock_files(drive.all_names):
            assert re.fullmatch(rf"{DIRECTORY}/[A-Za-z0-9._-]{{1,150}}\.lock", lock)


@dataclass
class Log:
    """A terminal that has no width and no colours, and a file."""

    lines: list[str] = field(default_factory=list)

    def write_line(self, line: str, **markup: bool) -> None:
        self.lines.append(line)

    def write_sep(self, sep: str, title: str | None = None, **markup: bool) -> None:
        self.lines.append(f"{sep * 3} {title} {sep * 3}")

    def write(self, text: str) -> None:
        self.lines += text.splitlines()

    def flush(self) -> None:
        """Nothing is kept back."""


@fuzzed(100)
@given(TEXTS, st.integers(1, 60))
def test_log_lines_are_no_ci_commands(raw: str, width: int) -> None:
    log = Log()
    write_lines(log, [TextLine(part) for part in wrap(raw, width)])
    progress = Progress(log, terminal=False, fresh_line=lambda: None)
    progress.take(Begun(raw, 5))
    progress.take(Looked(raw))
    with pytest.raises(RigError) as caught:
        raise RigError(raw)
    log.lines += [
        str(caught.value),
        section([observed(raw)]),
        *(text for pair in properties([observed(raw)]) for text in pair),
    ]
    write_table(log, [observed(raw)], width=60 + width, verbosity=1, run_folder=Path("/tmp") / "x", bay="dut1")
    assert commands_in("\n".join(log.lines)) == []


def observed(raw: str) -> Evidence:
    """Of a drive and a spec that are called ``raw``."""
    subject = Subject((Geometry(RaidLevel.DRIVE, 2),), (Workload("randread", "4k", 8),), drive=safe_text.name(raw))
    estimate = Estimate(900, 889, 911, 5, Unit.IOPS)
    limit = Limit(Direction.AT_LEAST, 950, Unit.IOPS, raw)
    verdict = judge(Claim.STEADY_IOPS, subject, estimate, limit)
    return replace(of_verdict(verdict), protocol=raw, acceptance=True, worst=subject.drive, members=())


@fuzzed(60)
@given(NAMES, st.sampled_from(["ext4", "\x1b[2J\n<x>"]))
def test_a_refusal_says_how_to_consent_and_that_is_understood(serial: str, fstype: str) -> None:
    world, drive = drive_called(serial, "M", fstype)
    topology = topology_of(world.lsblk(), world.facts("/dev/sdb"), ["sdb"])
    sentence = "".join(map(str, refusals(topology, world.matches())))
    assert sentence.isprintable()
    if not drive.serial:
        return
    (option,) = [word for word in shlex.split(sentence.rpartition(" add ")[2].removesuffix(".")) if word]
    consented = Consent.parse(Risk.CONTENT, option.removeprefix("--ssd-wipe="))
    assert [each.name for each in consented] == [drive.serial]
    assert refusals(topology, world.matches(), frozenset(consented)) == ()


def test_two_drives_are_told_apart_by_what_cannot_be_seen() -> None:
    serials = [
        "SN",
        "SN\u200b",
        "SN\x00",
        "S\x1bN",
        r"S\x1bN",
        "SN\ufeff",
        "x" * 999 + "1",
        "x" * 999 + "2",
        "S N",
        "S_N",
    ]
    drives = [drive_called(serial, "M")[1] for serial in serials]
    drives = [replace(drive, wwn=None) for drive in drives]
    assert len({drive.identity for drive in drives}) == len(serials)
    assert len(lock_files(drive.identity for drive in drives)) == len(serials)


@pytest.mark.parametrize("text", ["A\\,B", "A\\,B, C ,,D", ",", ""])
def test_commas_in_consents(text: str) -> None:
    expected = {"A\\,B": ("A,B",), "A\\,B, C ,,D": ("A,B", "C", "D"), ",": (), "": ()}
    assert tuple(each.name for each in Consent.parse(Risk.CONTENT, text)) == expected[text]


class Renamed(simulated_rig.SimulatedMachine):
    """The drives of this machine, and the machine itself, call themselves what they like."""

    @property
    def world(self) -> World:
        disks = super().world.disks
        for number, disk in enumerate(disks):
            disk.serial = f"{HOSTILE[number]}{number}" * (1 if number != 3 else 50_000)
            disk.model = HOSTILE[number + 4]
        return World(disks)


class Commanding(simulated_rig.SimulatedMachine):
    """Serials and models of these drives are commands of CIs."""

    @property
    def world(self) -> World:
        disks = super().world.disks
        for number, disk in enumerate(disks):
            disk.serial, disk.model = f"{COMMANDS[number]}{number}", COMMANDS[0]
        return World(disks)


@pytest.fixture
def hostile(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    monkeypatch.setattr(simulated_rig, "SimulatedMachine", Renamed)
    return inner


BROKEN = """
    import pytest
    from pytest_ssdqual import Workload
    from pytest_ssdqual.rig.machine.machine import RigError

    pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(Workload("randread", "4k", 8))]

    @pytest.mark.ssd_promise("steady_iops")
    def test_side_by_side(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    def test_broken(ssd_run):
        raise RigError("the tool said " + bytes.fromhex("1b5b324a c29b e280ae 3c623e 00").decode())
    """


def test_a_whole_run_is_harmless(hostile: Inner, promises: str) -> None:
    hostile.pytester.makepyfile(test_drives=BROKEN)
    result = hostile.run(
        "--ssd-devices=/dev/nvme*",
        promises,
        "--ssd-protocol=quick",
        "--ssd-force-spec",
        "--ssd-mixed",
        "--color=no",
        "-v",
    )
    assert result.parseoutcomes()["errors"] >= 1
    assert result.parseoutcomes()["failed"] >= 1
    assert_printable(result.stdout.str() + result.stderr.str())
    cases = hostile.cases()
    assert r"the tool said \x1b[2J\u009b\u202e<b>\x00" in cases["test_broken[drivex4-randread_4k_qd8]"].message
    properties = cases["test_side_by_side[drivex4-randread_4k_qd8]"].properties
    assert properties["ssd.drives"].startswith("<script>alert(1)</script>&amp;]]>0 \\x1b]0;owned\\x07")
    check_junit(hostile.pytester.path / "junit.xml")
    folder = hostile.folder()
    check_folder(folder)


FOREIGN = """
    import pytest
    from pytest_ssdqual import Workload

    pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(Workload("randread", "4k", 8))]

    @pytest.mark.ssd_promise("steady_iops")
    def test_side_by_side(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    @pytest.mark.ssd_promise("member_spread")
    def test_likeness(ssd_run, ssd_sla):
        ssd_sla.judge(ssd_run)

    def test_unforeseen(ssd_run):
        raise ValueError(bytes.fromhex("610a3a3a73746f703a3a780a232376736f5b785d").decode())
    """


@pytest.mark.parametrize("style", ["auto", "line", "native"])
def test_whole_run_prints_no_ci_commands(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, promises: str, style: str
) -> None:
    monkeypatch.setattr(simulated_rig, "SimulatedMachine", Commanding)
    monkeypatch.setenv("SIMULATED_DRIVES", "3")
    inner.pytester.makepyfile(test_drives=FOREIGN)
    inner.pytester.path.joinpath("acme.toml").write_text(
        inner.pytester.path.joinpath("acme.toml").read_text()
        + '[[promise]]\nclaim = "member_spread"\nat_least = "1.5"\n'
    )
    args = (
        "--ssd-devices=/dev/nvme*",
        promises,
        "--ssd-protocol=quick",
        "--ssd-force-spec",
        "--ssd-mixed",
        "--color=no",
        "-v",
        "-rA",
        f"--tb={style}",
    )
    result = inner.run(*args, "test_drives.py")
    assert result.parseoutcomes() == {"failed": 2, "errors": 1}
    text = result.stdout.str() + result.stderr.str()
    assert r"\x23#vso[task.complete result=Succeeded;]" in text
    assert commands_in(text) == []
    for file in ("junit.xml", *(f"ssdqual-runs/*/{name}" for name in ("summary.md", "records.jsonl", "manifest.json"))):
        (path,) = inner.pytester.path.glob(file)
        assert commands_in(path.read_text()) == [], path


def test_a_refused_run_is_harmless(hostile: Inner, promises: str) -> None:
    said = hostile.refused("--ssd-devices=/dev/nvme*", promises, "--ssd-wipe=\x1b[2J")
    assert "--ssd-wipe" in said
    assert_printable(said)
    folder = hostile.folder()
    check_folder(folder)


def assert_printable(text: str) -> None:
    """What a terminal takes for a command is not in it."""
    assert {each for each in text if each not in "\n\t" and not each.isprintable()} == set()
    assert commands_in(text) == []


def check_junit(file: Path) -> None:
    """Well-formed, of the schema, and nothing in it that a log viewer would obey."""
    ET.parse(file)  # noqa: S314 (our own)
    assert_printable(file.read_text())
    root = ET.parse(file).getroot()  # noqa: S314
    for case in root.iter("testcase"):
        for found in case.findall("properties"):
            case.remove(found)  # the schema knows properties of suites only
    xmlschema.XMLSchema(SCHEMA).validate(ET.tostring(root, encoding="unicode"))


def check_folder(folder: Path) -> None:
    for name in ("records.jsonl", "transcript.jsonl"):
        text = (folder / name).read_text()
        assert_printable(text)
        lines = text.splitlines()
        assert lines == text.removesuffix("\n").split("\n")
        assert all(isinstance(json.loads(line), dict) for line in lines)
    for path in folder.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9_.,:+=-]+", path.name)
        assert len(path.name) < 200
    if (folder / "manifest.json").exists():
        assert_printable((folder / "manifest.json").read_text())
        assert json.loads((folder / "manifest.json").read_text())["bays"]
    checked = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert checked.returncode == 0
