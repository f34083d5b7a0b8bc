"""The examples of docs/scale.md: its commands are run on real folders, the others can be read and name what exists."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from junitparser import JUnitXml
from support.builders.kept_fleets import KeptBay, KeptPromise, keep_fleet

from pytest_ssdqual import command
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import FleetBay

DOCS = Path(__file__).parents[3] / "docs"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (DOCS / "scale.md").read_text(), re.DOTALL | re.MULTILINE)
COMMANDS, SLURM = (text for kind, text in BLOCKS if kind == "sh")
GITHUB, GITLAB, KUBERNETES = (yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml")
GOOD, BAD = KeptPromise(12_000), KeptPromise(8_000)


@pytest.fixture
def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What three jobs brought to one place: two runs, and a fleet of two bays, one of them never begun."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "collected"
    for rack, promise in (("a7", GOOD), ("a8", BAD)):
        KeptBay(f"dut-{rack}", [promise]).keep(folder / rack)
    never = FleetBay("dut9", "bays/dut9", "root@dut9", {}, {}, "cannot be reached")
    keep_fleet(tmp_path / "runs", [KeptBay("dut-b1", [KeptPromise(11_000)])], never).rename(folder / "b1")
    return folder


def typed(line: str) -> list[str]:
    """As a shell hands it over, without the name of the program."""
    name, *words = shlex.split(line)
    assert name in ("ssdqual", "venv/bin/ssdqual")
    return [str(each) for word in words for each in (sorted(Path().glob(word)) if "*" in word else [word])]


def test_its_commands_do_what_it_says(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merge, report = COMMANDS.splitlines()
    assert command.main(typed(merge)) == 0
    said = capsys.readouterr().out
    assert "Not fit: 1 of 4 bays failed: dut-a8; 2 passed." in said
    folder = Path("ssdqual-fleets/2026-w47")
    assert said.splitlines()[-1] == str(folder / "report.html")
    assert [bay.name for bay in fleets.read(folder).bays] == ["dut-a7", "dut-a8", "dut-b1", "dut9"]
    suites = {suite.name: suite.failures + suite.errors for suite in JUnitXml.fromfile("fleet.xml")}
    assert suites == {"dut-a7": 0, "dut-a8": 1, "dut-b1": 0, "dut9": 1}
    page = folder / "report.html"
    page.unlink()
    assert command.main(typed(report)) == 0
    assert page.is_file()
    assert command.main(typed(merge)) == 4
    assert capsys.readouterr().err.startswith("ssdqual: ssdqual-fleets/2026-w47 exists")


@pytest.mark.parametrize(
    "line",
    [GITHUB["jobs"]["fleet"]["steps"][3]["run"], GITLAB["fleet"]["script"][1]],
    ids=["github", "gitlab"],
)
def test_the_jobs_merge_what_they_collected(line: str, collected: Path) -> None:
    for rack in list(collected.iterdir()):  # a job may have begun several runs
        rack.rename(collected / "moved")
        rack.mkdir()
        (collected / "moved").rename(rack / "20261127T120000Z-aaaa")
    assert command.main(typed(line)) == 0
    assert fleets.read(Path("fleet")).merged


def test_circumstances_come_before_figures(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    KeptBay("dut-c1", [GOOD], protocol="other\n").keep(collected / "c1")
    assert command.main(["merge", *map(str, sorted(collected.iterdir())), "--into", "f", "--names=a,b,c,d,e"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("differs: protocol: quick (2970943276e3) in a, b, c; quick (")
    assert first.endswith(") in e")


def test_a_refusal_is_one_sentence_and_makes_nothing(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (collected / "a7" / "SHA256SUMS").unlink()
    assert command.main(["merge", "collected/a7", "--into", "f"]) == 4
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert not Path("f").exists()


def test_what_schedulers_are_given_can_be_read() -> None:
    assert subprocess.run(["sh", "-n"], input=SLURM.encode(), check=False).returncode == 0
    assert KUBERNETES["spec"]["template"]["spec"]["containers"][0]["args"][0].count("--ssd-") == 2
    assert GITHUB["jobs"]["rack"]["strategy"]["fail-fast"] is False


def test_every_key_of_fleet_json_is_described_and_no_other(tmp_path: Path) -> None:
    table = (DOCS / "run-folder.md").read_text().split("| key of `fleet.json`")[1].split("\n\n")[0]
    described = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split(" | ")[0])}
    made = fleets.create(tmp_path, "aaaa", [FleetBay("dut1", "bays/dut1", "local")])
    record = yaml.safe_load((made.path / "fleet.json").read_text())
    assert described == {*record, *record["bays"][0]}
