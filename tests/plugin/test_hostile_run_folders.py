"""Run folders that came from somebody else: damaged, forged or meant to do harm."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies
from support.builders.mutations import bytes_like, fuzzed, plain_like, survives
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

from pytest_ssdqual.command import main
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence import evidence
from pytest_ssdqual.report.resume.rebuild_measurements import MOST_UNPACKED_TIMES, Forgotten, Shelf
from pytest_ssdqual.report.resume.resume import NotResumable, Past, Present, Verdicts
from pytest_ssdqual.report.run_folder.journal import SCHEMA, OtherSchema, read_checkpoint, read_document
from pytest_ssdqual.report.run_folder.manifest import Manifest
from pytest_ssdqual.report.run_folder.reader import RunReader, left_behind, read_records
from pytest_ssdqual.rig.health.write_counters import Written
from pytest_ssdqual.rig.resume.checkpoint import ResultKey


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """What a real run of the plugin leaves, on a rig that was never there."""
    place = tmp_path_factory.mktemp("kept")
    (place / "pytest.ini").write_text("[pytest]\nssd_page = false\nssd_members = false\n")
    (place / "test_promises.py").write_text(suite('"raid5"', iops=("steady_iops", '"randread", "4k", 8')))
    (place / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="950 IOPS"))
    rig = ("-p", "support.simulator.simulated_rig", "--ssd-devices=lab:3", "--ssd-spec=acme.toml")
    done = subprocess.run([python, "-m", "pytest", *rig], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    (folder,) = (place / "ssdqual-runs").iterdir()
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(kept, tmp_path / "ssdqual-runs" / kept.name))


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def read_all(folder: Path) -> None:
    """Everything that a resumed session reads of a folder."""
    past = survives(lambda: Past.read(folder), NotResumable)
    survives(lambda: list(RunReader.read(folder).wrongs()), OtherSchema)  # the schema may be what was damaged
    left_behind(folder.parent)
    if not isinstance(past, Past):
        return
    Verdicts(past.records)
    memory = past.memory()
    for key in list(memory._noted):
        assert isinstance(key, ResultKey)
        memory.recall(key)
    read_checkpoint(folder)
    bay = past.manifest.bays[0]
    drives = bay.drives
    now = Present("dut", {"fio": "3.33"}, drives, past.manifest.protocol, past.manifest.protocol)
    past.refusals(now)
    past.remarks(now)


def examples(folder: Path, damage: Callable[[st.DataObject], None], few: int) -> None:
    """Damage a fresh copy, read it, and put it back."""
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)

    @fuzzed(few)
    @given(st.data())
    def each(data: st.DataObject) -> None:
        for name in ("records.jsonl", "manifest.json", "SHA256SUMS"):
            shutil.copy(whole / name, folder / name)
        damage(data)
        read_all(folder)

    each()


def test_records_of_odd_values(folder: Path) -> None:
    lines = lines_of(folder)
    assert {"measured", "ran", "array_created", "array_stopped", "counters", "conditioned"} <= {
        each["kind"] for each in lines
    }
    interesting = [each for each in lines if each["kind"] not in ("claims_planned", "health", "looked")]

    def damage(data: st.DataObject) -> None:
        spoiled = data.draw(plain_like([interesting]))
        (folder / "records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in spoiled))  # type: ignore[attr-defined]

    examples(folder, damage, 40)


@pytest.mark.parametrize("name", ["records.jsonl", "manifest.json", "SHA256SUMS"])
def test_files_that_are_damaged(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    examples(folder, lambda data: void((folder / name).write_bytes(data.draw(bytes_like([whole])))), 15)


def test_a_manifest_of_odd_values(folder: Path) -> None:
    whole = json.loads((folder / "manifest.json").read_text())

    def damage(data: st.DataObject) -> None:
        (folder / "manifest.json").write_text(json.dumps(data.draw(plain_like([whole]))))

    examples(folder, damage, 40)


def test_records_read_one_by_one(folder: Path) -> None:
    lines = lines_of(folder)
    of = {each["kind"]: each for each in lines}
    asked = of["measured"]["asked"]
    looped = {"name": "loop", "workloads": [asked], "tracked": [{"workload": asked, "claim": "steady_iops"}],
              "fill_bs": "128k", "fill_passes": 1, "pre_write": None, "pre_write_cells": 0, "after": []}  # fmt: skip
    written = next(iter(of["counters"]["written"].values()))
    verdict = next(each for each in lines if each["kind"] in ("verdict", "observation"))
    readers: list[tuple[object, Callable[[Any], object]]] = [
        (asked, partial(from_plain, Workload)),
        (looped, partial(from_plain, Rounds)),
        (written, partial(from_plain, Written)),
        (verdict, evidence.of_facts),
        (json.loads((folder / "manifest.json").read_text()), partial(read_document, Manifest, Path("manifest.json"))),
    ]
    for record, read in readers:
        read(record)
        spoil(record, read)


def spoil(record: object, read: Callable[[Any], object]) -> None:
    @fuzzed(40)
    @given(plain_like([record]))
    def each(spoiled: object) -> None:
        if isinstance(spoiled, dict):
            survives(lambda: read(spoiled), ValueError, OtherSchema)

    each()


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "fio").mkdir()
    # What it would unpack to is beyond the memory of any machine that tests run on; that of a few pieces is held.
    packed = gzip.compress(b" " * (1 << 20))
    (tmp_path / "fio" / "x.json.gz").write_bytes(packed * 2000)
    assert len(packed) * MOST_UNPACKED_TIMES < 1 << 20
    noted = replace(strategies.run([1]).record(), raw="fio/x.json.gz")
    with pytest.raises(Forgotten, match=rf"over {MOST_UNPACKED_TIMES} times"):
        Shelf(tmp_path).run(noted, Workload("randread", "4k", 8))


def test_the_files_of_a_real_run_are_no_bombs(folder: Path) -> None:
    packed = list((folder / "fio").glob("*.gz"))
    assert packed
    for file in packed:
        assert len(gzip.decompress(file.read_bytes())) < MOST_UNPACKED_TIMES / 2 * file.stat().st_size


def test_a_line_without_an_end_is_passed_over(folder: Path) -> None:
    before = len(list(read_records(folder)))
    with (folder / "records.jsonl").open("ab") as file:
        file.truncate(file.tell() + (40 << 20))  # a hole: 40 MB of zeroes
    with (folder / "records.jsonl").open("ab") as file:
        file.write(f'\n{{"schema":{SCHEMA},"kind":"x","time":"y"}}\n'.encode())
    assert [each.kind for each in read_records(folder)][before:] == ["x"]


def void(value: object) -> None:
    """A lambda that is a statement."""


def with_numbers(value: object, number: float) -> object:
    """The same with this number for all of them, but for the schema's."""
    if isinstance(value, dict):
        return {name: each if name == "schema" else with_numbers(each, number) for name, each in value.items()}
    if isinstance(value, list):
        return [with_numbers(each, number) for each in value]
    return number if type(value) in (int, float) else value


@pytest.mark.parametrize("number", [10**400, -(10**101), 1e308], ids=["400 digits", "101 digits", "1e308"])
@pytest.mark.parametrize("name", ["records.jsonl", "manifest.json"])
def test_numbers_beyond_all_figures_are_unknown(
    folder: Path, name: str, number: float, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in (folder / name).read_text().splitlines()] if name.endswith("l") else None
    spoiled = lines or [json.loads((folder / name).read_text())]
    (folder / name).write_text("".join(json.dumps(with_numbers(each, number)) + "\n" for each in spoiled))
    read_all(folder)
    table = folder.parent.parent / "figures.csv"
    assert main(["report", str(folder)]) == 0
    assert main(["export", "--csv", str(table), str(folder)]) == 4
    assert "Traceback" not in capsys.readouterr().err
    is_manifest = name == "manifest.json"
    assert (RunReader.read(folder).manifest.exit_status is None) is is_manifest
    assert {each.facts["iops"] is None for each in read_records(folder, "measured")} == {not is_manifest}
