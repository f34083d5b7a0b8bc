from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.kept_runs import Kept, KeptMeasurement

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.archive.table_files import FORMULA, csv_text
from pytest_ssdqual.report.compare import compare_output
from pytest_ssdqual.report.compare.compare import Comparison, compare
from pytest_ssdqual.report.compare.compared_run import ComparedRun


def compared(tmp_path: Path) -> Comparison:
    old = Kept([KeptMeasurement(12_000), KeptMeasurement(5e6, Claim.MAX_LATENCY, is_reading=True)])
    new = Kept([KeptMeasurement(11_000), KeptMeasurement(5e6, Claim.MAX_LATENCY, is_reading=True)], model="=1+1")
    return compare([ComparedRun.read(run.keep(tmp_path / name)) for run, name in ((old, "a"), (new, "b"))])


def test_json_has_everything_in_base_units(tmp_path: Path) -> None:
    found = json.loads(json.dumps(compare_output.record(compared(tmp_path)), allow_nan=False))
    assert found["schema"] == 2
    (other,) = found["others"]
    assert other["run"]["name"] == "b"
    assert other["run"]["model"] == "=1+1"
    iops = next(each for each in other["figures"] if each["claim"] == "steady_iops")
    assert iops["shown"] == "worse"
    assert iops["first"] == 12_000
    assert iops["ratio_low"] < iops["ratio"] < iops["ratio_high"] < 1
    assert {each["name"]: each["weight"] for each in found["facts"]}["protocol"] == "forbids"


def test_csv_has_a_row_for_each_figure(tmp_path: Path) -> None:
    text = compare_output.csv(compared(tmp_path))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["claim"] for row in rows] == ["max_latency", "steady_iops"]
    assert float(rows[1]["ratio"]) == pytest.approx(11 / 12)
    assert rows[0]["ratio_is_reading"] == "true"
    assert rows[0]["p_value"] == ""


def test_csv_without_a_figure_has_its_columns(tmp_path: Path) -> None:
    old, new = Kept([KeptMeasurement(12_000)]), Kept([KeptMeasurement(9e5, Claim.P99_LATENCY)])
    found = compare([ComparedRun.read(run.keep(tmp_path / name)) for run, name in ((old, "old"), (new, "new"))])
    assert compare_output.csv(found) == compare_output.csv(compared(tmp_path)).split("\n", 1)[0] + "\n"


@given(st.text(max_size=20), st.sampled_from(["=", "+", "-", "@", " =", "\t=", "'=", '"=', "＝", "\r=", ""]))
def test_no_cell_is_a_formula(text: str, before: str) -> None:
    (row,) = csv.reader(io.StringIO(csv_text(("a",), [(before + text, -1.5)]).split("\n", 1)[1]))
    assert row[1] == "-1.5"
    assert row[0].isprintable()
    assert not row[0].lstrip(' "').startswith(FORMULA)
