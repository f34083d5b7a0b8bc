"""``ssdqual export``: one row for each measured figure, the same in all three forms."""

from __future__ import annotations

import csv
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import duckdb
import openpyxl
import pytest
from support.builders.kept_fleets import KeptPromise
from support.builders.kept_runs import Kept, KeptMeasurement, append

from pytest_ssdqual.command import main
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.archive import figure_table, runs, table_files
from pytest_ssdqual.report.archive.figure_table import COLUMNS
from pytest_ssdqual.report.evidence.evidence import Finding, Part
from pytest_ssdqual.report.run_folder.journal import SCHEMA

HOSTILE = ("=cmd|'/c calc'!A1", "@SUM(1)", "+1\t=2", "-2+3\x1b[31m", "S5")
FIGURES = (
    KeptMeasurement(1000.0),
    KeptMeasurement(2.5e6, Claim.P99_LATENCY),
    KeptMeasurement(
        900.0,
        geometry="drivex5",
        drives=dict(zip(HOSTILE, (900.0, 901.0, 902.5, 903.0, 904.0), strict=True)),
        drives_percent=2.0,
    ),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    Kept(FIGURES, serials=HOSTILE, model="=HYPERLINK(1)").keep(root / "a")
    Kept(FIGURES[:2], started="2026-03-02T12:00:00+00:00", firmware="B2").keep(root / "b")
    return root


def export(folder: Path, *more: str) -> int:
    return main(["export", *(str(each) for each in sorted(folder.iterdir())), *more])


def test_every_figure_is_a_row(folder: Path, tmp_path: Path) -> None:
    assert export(folder, f"--csv={tmp_path / 'x.csv'}") == 0
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    wholes = [row for row in rows if row["part"] == "whole"]
    assert [(row["run"], row["claim"], float(row["value"]), row["unit"]) for row in wholes] == [
        ("a", "steady_iops", 1000.0, "IOPS"), ("a", "p99_latency", 2.5e6, "ns"), ("a", "steady_iops", 900.0, "IOPS"),
        ("b", "steady_iops", 1000.0, "IOPS"), ("b", "p99_latency", 2.5e6, "ns"),
    ]  # fmt: skip
    assert {row["firmware"] for row in wholes if row["run"] == "b"} == {"B2"}
    drives = [row for row in rows if row["part"] == "drive"]
    assert [float(row["value"]) for row in drives] == [900.0, 901.0, 902.5, 903.0, 904.0]
    assert [row["drive"][:1] for row in drives] == ["'", "'", "'", "'", "S"]
    assert all(float(row["low"]) < float(row["value"]) < float(row["high"]) for row in (*wholes, *drives))


def test_no_cell_is_a_formula(folder: Path, tmp_path: Path) -> None:
    assert export(folder, f"--csv={tmp_path / 'x.csv'}", f"--xlsx={tmp_path / 'x.xlsx'}") == 0
    with (tmp_path / "x.csv").open(newline="") as file:
        texts = [text for row in list(csv.DictReader(file)) for text in row.values()]
    assert not [text for text in texts if text.startswith(("=", "@", "+", "\t"))]
    assert not [text for text in texts if text.startswith("-") and not text[1:].replace(".", "").isdigit()]
    with zipfile.ZipFile(tmp_path / "x.xlsx") as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    assert "<hyperlink" not in sheet
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "x.xlsx")["figures"].iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "n", "b", "inlineStr"}
    assert HOSTILE[0] in [cell.value for cell in cells]


def test_workbook_and_parquet_have_the_same_rows(folder: Path, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"it's x.{name}" for name in ("csv", "xlsx", "parquet")}
    assert export(folder, *(f"--{name}={path}" for name, path in paths.items())) == 0
    with duckdb.connect() as database:
        table = database.read_parquet(str(paths["parquet"]))
        assert dict(zip(table.columns, map(str, table.types), strict=True)) == {
            name: kind.replace("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE")
            for name, kind in table_files.sql_types().items()
        }
        assert tuple(table.columns) == COLUMNS
        stored = table.project("run, drive, value, acceptance, n").fetchall()
    head, *lines = openpyxl.load_workbook(paths["xlsx"])["figures"].iter_rows(values_only=True)
    assert head == COLUMNS
    places = [COLUMNS.index(name) for name in ("run", "drive", "value", "acceptance", "n")]
    shown = [tuple(line[at] for at in places) for line in lines]
    assert [(run, safe_text.line(drive) or None, *rest) for run, drive, *rest in stored] == shown
    with paths["csv"].open(newline="") as file:
        assert len(list(csv.reader(file))) == len(lines) + 1 == len(stored) + 1


def test_no_drive_of_a_rack_is_cut_off(folder: Path, tmp_path: Path) -> None:
    serials = " ".join(f"SERIAL{number:014}" for number in range(300))
    row = next(figure_table.rows(runs.read([folder / "a"])[0]))
    paths = {"csv": tmp_path / "x.csv", "xlsx": tmp_path / "x.xlsx"}
    table_files.write_csv(paths["csv"], [replace(row, cause_drives=serials)])
    table_files.write_xlsx(paths["xlsx"], [replace(row, cause_drives=serials)])
    with paths["csv"].open(newline="") as file:
        assert next(csv.DictReader(file))["cause_drives"] == serials
    _, line = openpyxl.load_workbook(paths["xlsx"])["figures"].iter_rows(values_only=True)
    assert line[COLUMNS.index("cause_drives")] == serials


@pytest.mark.parametrize(
    ("more", "figure"),
    [
        ({"about": "lot", "group": "p99_latency"}, ("p99_latency", "ns", "at_most", None)),
        ({"claim": "inspected_power_on_hours"}, ("power_on_hours", "h", "", None)),
    ],
)
def test_the_drives_of_a_count_have_their_own_figure_and_unit(
    folder: Path, more: dict[str, object], figure: tuple[object, ...]
) -> None:
    promise = KeptPromise(2, 2, Claim.CONFORMING_DRIVES, "drivex2").evidence()
    drives = tuple(Part(serial, {"value": 9e5}, Finding.PASS) for serial in ("S1", "S2"))
    facts = {**plain(replace(promise, members=drives)), **more}
    append(folder / "b", kind="verdict", test="t", **facts)
    rows = [row for row in figure_table.rows(runs.read([folder / "b"])[0]) if row.part == "drive"]
    assert [row.drive for row in rows] == ["S1", "S2"]
    assert {(row.figure, row.unit, row.direction, row.limit_value) for row in rows} == {figure}
    assert {(row.value, row.verdict) for row in rows} == {(9e5, "pass")}


def test_copies_and_damaged_folders_are_sentences(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "c").mkdir()
    (folder / "c" / "records.jsonl").write_text("{")
    Kept(FIGURES[:1]).keep(folder / "d")
    noted = json.loads((folder / "a" / "manifest.json").read_text())
    (folder / "d" / "manifest.json").write_text(json.dumps(noted))
    assert export(folder, f"--csv={tmp_path / 'x.csv'}") == 0
    output = capsys.readouterr()
    assert output.err.splitlines() == [
        "c is skipped: it has no readable manifest.json",
        "d is skipped: it is the same run as a",
    ]
    assert "figures of 2 runs" in output.out


@pytest.mark.parametrize("module", ["xlsxwriter", "duckdb"])
def test_a_missing_library_is_a_sentence(
    folder: Path, tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    form = "xlsx" if module == "xlsxwriter" else "parquet"
    assert export(folder, f"--{form}={tmp_path / 'x'}") == 4
    assert "pip install 'pytest-ssdqual[" in capsys.readouterr().err


def test_without_a_form_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(folder) == 4
    assert "--csv FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "unit"),
    [("iops", "IOPS"), ("mean_latency_ns", "ns"), ("rebuild_bytes_per_s", "B/s"), ("counted_s", "s"),
     ("ios", ""), ("look", ""), ("littles_law_percent", "%")],
)  # fmt: skip
def test_a_figure_has_the_unit_of_its_name(name: str, unit: str) -> None:
    assert figure_table.unit_of(name) == unit


def test_damaged_records_of_runs_of_one_name_are_a_sentence_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in (1, 2):
        kept = Kept(FIGURES[:1], started=f"2026-03-{day:02}T12:00:00+00:00").keep(tmp_path / f"machine{day}" / "run")
        with (kept / "records.jsonl").open("a") as file:
            file.write(f'{{"schema":{SCHEMA},"time":"t","kind":"verdict","test":"t"}}\n' * day)
    named = [str(tmp_path / f"machine{day}" / "run") for day in (1, 2)]
    assert main(["export", *named, f"--csv={tmp_path / 'x.csv'}"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "run: 1 records are unreadable",
        "run: 2 records are unreadable",
    ]
