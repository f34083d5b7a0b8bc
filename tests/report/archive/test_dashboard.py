"""``ssdqual dashboard``: what it counts, links to, escapes and skips."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.builders.kept_fleets import KeptBay, KeptPromise, keep_fleet
from support.builders.kept_runs import Kept, KeptMeasurement, append

from pytest_ssdqual.command import main
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.archive import runs
from pytest_ssdqual.report.charts import archive as charts_of
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html import dashboard_page
from pytest_ssdqual.report.run_folder.find import folders_below
from pytest_ssdqual.report.run_folder.journal import SCHEMA
from pytest_ssdqual.report.view.tables import margin


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two bays of a run with promises, runs of two revisions without any, and folders that are no runs."""
    root = tmp_path / "runs"
    root.mkdir()
    good, bad = KeptPromise(12_000), KeptPromise(5_000)
    keep_fleet(root, [KeptBay("a", [good]), KeptBay("b", [bad])])
    for day, firmware in enumerate(("A1", "A1", "B2"), start=1):
        kept = Kept([KeptMeasurement(100.0 + day)], started=f"2026-03-{day:02}T12:00:00+00:00", firmware=firmware)
        kept.keep(root / "deep" / f"run{day}")
    Kept([KeptMeasurement(5)], model="<script>alert(1)</script>", serials=["\x1b[31m", "]]>"]).keep(root / "hostile")
    (root / "foreign").mkdir()
    (root / "foreign" / "records.jsonl").write_text('{"schema":99,"kind":"x","time":"t"}\n')
    (root / "cut").mkdir()
    (root / "cut" / "records.jsonl").write_text(f'{{"schema":{SCHEMA},"ki')
    return root


def test_products_drives_and_margins_are_those_of_the_runs(archive: Path) -> None:
    read, skipped = runs.read(folders_below(archive))
    assert len(read) == 6
    assert [each.partition(" is skipped")[0] for each in skipped] == ["cut", "foreign"]
    assert [each.started for each in read] == sorted(each.started for each in read)
    found = {product: len(each) for product, each in dashboard_page.products_of(read).items()}
    assert (found["ACME 9", "A1"], found["ACME 9", "B2"]) == (4, 1)  # two of them are bays
    (drive,) = [each for each in dashboard_page.drives_of(read) if each.last.serial == "S1"]
    assert (len(drive.runs), drive.firmware) == (3, "A1 → B2")
    ((_, points),) = dashboard_page.margins_of(read).items()
    assert len(points) == 2
    assert min(margin(worst) for _, worst in points) < 0 < max(margin(worst) for _, worst in points)


def test_runs_of_one_name_have_a_margin_each(tmp_path: Path) -> None:
    for day in (1, 2):
        kept = Kept([KeptMeasurement(5, outcome=Finding.PASS)], started=f"2026-03-{day:02}T12:00:00+00:00")
        kept.keep(tmp_path / f"machine{day}" / "run")
    (points,) = dashboard_page.margins_of(runs.read(folders_below(tmp_path))[0]).values()
    assert [run.name for run, _ in points] == ["run", "run"]


def test_the_margin_of_a_percentage_is_in_points(tmp_path: Path) -> None:
    kept = Kept([KeptMeasurement(5, relative_to="randwrite_4k_qd8", outcome=Finding.PASS)]).keep(tmp_path / "run")
    ((claim, found),) = dashboard_page.margins_of(runs.read([kept])[0]).items()
    ((*_, distance, _),) = charts_of.margin(claim, found).table.rows
    assert distance == "+1.0 pt"


def test_time_axis_of_a_single_run_is_its_day(tmp_path: Path) -> None:
    kept = Kept([KeptMeasurement(5)], started="2026-03-02T12:00:00+00:00").keep(tmp_path / "run")
    chart = charts_of.verdicts(dashboard_page.products_of(runs.read([kept])[0]))
    assert re.findall(r">(2025|2027)<", chart.svg) == []
    assert "2026-Mar-0" in chart.svg


@pytest.mark.parametrize("given_up", [True, False])
def test_a_bay_that_never_began_is_no_run(tmp_path: Path, given_up: bool) -> None:
    fleet = keep_fleet(tmp_path, [KeptBay(name, [KeptPromise(12_000)] if name == "a" else []) for name in "ab"])
    other = fleet / "bays" / "b"
    if given_up:
        append(other, kind="error", test="ssdqual::b", message="gone", of_session=True)
    read, skipped = runs.read(folders_below(tmp_path))
    assert [each.folder.name for each in read] == ["a"]
    (sentence,) = skipped
    assert "/b is skipped: it never began" in sentence
    append(other, kind="measuring")
    assert [each.folder.name for each in runs.read(folders_below(tmp_path))[0]] == ["a", "b"]


def test_the_page_has_everything_and_runs_nothing(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (archive / "deep" / "run1" / "report.html").touch()
    page = archive.parent / "elsewhere" / "all.html"
    page.parent.mkdir()
    assert main(["dashboard", str(archive), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert page.stat().st_mode & 0o777 == 0o600
    html = page.read_text()
    assert "<script" not in html
    assert "\x1b" not in html
    links = re.findall(r'<a href="([^"#]+)"', html)
    assert set(links) == {"../runs/deep/run1/report.html"}
    assert html.count("<svg viewBox") == 2
    for name in ("run1", "run2", "run3", "hostile", "foreign", "cut"):
        assert name in html, name


def test_a_folder_without_runs_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", str(tmp_path)]) == 0
    assert "No readable run was found" in (tmp_path / "dashboard.html").read_text()
    assert main(["dashboard", str(tmp_path / "dashboard.html")]) == 4
    assert "is not a folder of runs" in capsys.readouterr().err


def test_a_chart_that_cannot_be_drawn_does_not_cost_the_page(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts_of, "margin", lambda claim, points: 1 / 0)
    page = dashboard_page.compose(archive, archive)
    assert "ZeroDivisionError" in page["charts_note"]
    assert "ssdqual export" in page["charts_note"]
    assert len(page["runs"]) == 6


@pytest.mark.parametrize(("value", "word"), [(12_000, "Passed"), (5_000, "Failed")])
def test_a_run_not_for_acceptance_is_neither_fit_nor_not_fit(tmp_path: Path, value: float, word: str) -> None:
    KeptBay("quick", [KeptPromise(value)], acceptance=False).keep(tmp_path / "quick")
    page = dashboard_page.compose(tmp_path, tmp_path)
    assert dict(page["counters"])["runs: fit"] == dict(page["counters"])["runs: not fit"] == 0
    assert dict(page["counters"])[f"runs: {word.lower()}, not for acceptance"] == 1
    (product,) = page["products"].rows
    row = dict(zip(page["products"].columns, product, strict=True))
    assert [row[name] for name in ("Fit", "Not fit", f"{word}, not for acceptance")] == ["0", "0", "1"]
    assert page["verdicts"]
    assert f"{word.lower()}, not for acceptance" in page["verdicts"].svg
    assert ">fit<" not in page["verdicts"].svg
    assert main(["dashboard", str(tmp_path)]) == 0
    assert f"runs: {word.lower()}, not for acceptance</dt><dd>1<" in (tmp_path / "dashboard.html").read_text()


@pytest.mark.parametrize("command", ["dashboard", "history"])
def test_a_folder_that_another_user_owns_is_reported(
    archive: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    private = archive / "deep" / "run2"
    scandir, opened = os.scandir, os.open

    def refuse(real: Callable[..., Any], at: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401
        if Path(os.fsdecode(at)).is_relative_to(private):
            raise PermissionError(13, "Permission denied", os.fsdecode(at))
        return real(at, *more, **named)

    monkeypatch.setattr(os, "scandir", partial(refuse, scandir))
    monkeypatch.setattr(os, "open", partial(refuse, opened))
    assert main([command, str(archive / "deep")]) == 0
    said = capsys.readouterr().out if command == "history" else (archive / "deep" / "dashboard.html").read_text()
    assert "run2 is skipped: Permission denied" in said


def test_drives_behind_a_shared_path_are_not_blamed_for_it(tmp_path: Path) -> None:
    folder = Kept([KeptMeasurement(5)], serials=["S1", "S2"], started="2026-03-01T12:00:00Z").keep(tmp_path / "run")
    cause = Cause(Culprit.PATH, "they share it", ("S1", "S2"), confidence=0.9)
    append(folder, kind="verdict", test="t", **plain(replace(KeptPromise(5_000).evidence(), cause=cause)))
    found = dashboard_page.drives_of(runs.read(folders_below(tmp_path))[0])
    assert [each.blamed for each in found] == [0, 0]


@pytest.mark.parametrize("serial", ["S4", "S4\x1b[2J", "L" * 120])
def test_the_cause_is_found_by_its_serial_number_and_model(tmp_path: Path, serial: str) -> None:
    cause = Cause(Culprit.DRIVE, "it is slow", (serial,), confidence=0.9)
    for day, model in enumerate(("ACME 9", "OTHER 1"), start=1):
        folder = Kept(
            [KeptMeasurement(5)], model=model, serials=["S1", serial], started=f"2026-03-0{day}T12:00:00Z"
        ).keep(tmp_path / model)
        if model == "ACME 9":
            evidence = replace(KeptPromise(5_000).evidence(), cause=cause)
            append(folder, kind="verdict", test="t", **plain(evidence))
    found = dashboard_page.drives_of(runs.read(folders_below(tmp_path))[0])
    assert [(each.last.model, each.blamed, len(each.runs)) for each in found if each.last.serial != "S1"] == [
        ("ACME 9", 1, 1),
        ("OTHER 1", 0, 1),
    ]
