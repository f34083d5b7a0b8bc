"""Records that are dataclasses, and their description in ``docs/run-folder.md``."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_ssdqual.qual.explore.search import SearchRecord
from pytest_ssdqual.qual.measured.environment import EnvironmentRecord
from pytest_ssdqual.qual.measured.result_records import (
    AloneRecord,
    CellRecord,
    LoopRecord,
    MeasuredRecord,
    RebuildRecord,
    SaturationRecord,
)
from pytest_ssdqual.qual.measured.sweep import Ceiling
from pytest_ssdqual.report.run_folder.manifest import HealthRecord, PlannedClaims, PlannedTests, WorsenedDrive
from pytest_ssdqual.rig.drives.cache_state import WriteCacheRecord
from pytest_ssdqual.rig.fio.load import LoadRecord

DOCUMENT = Path(__file__).parents[3] / "docs/run-folder.md"
KINDS = {
    "measured": MeasuredRecord, "alone": AloneRecord, "cell": CellRecord, "saturation": SaturationRecord,
    "loop": LoopRecord, "rebuild": RebuildRecord, "ceiling": Ceiling, "environment": EnvironmentRecord,
    "searched": SearchRecord, "health": HealthRecord, "drive_worsened": WorsenedDrive, "tests_planned": PlannedTests,
    "claims_planned": PlannedClaims,
    "write_cache": WriteCacheRecord, "load": LoadRecord,
}  # fmt: skip
#: Described above the table.
ABOUT = {"geometry", "workload", "asked", "raw", "protocol", "acceptance"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_record_is_described(kind: str) -> None:
    (line,) = re.findall(rf"^\| `{kind}` .*$", DOCUMENT.read_text(), re.MULTILINE)
    described = set(re.findall(r"`(\w+)`", line)) | ABOUT
    assert {field.name for field in fields(KINDS[kind])} <= described
