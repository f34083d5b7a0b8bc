"""What real fio versions wrote, with our own options: ``tests/data/fio`` (its README says how each was made)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.rig.fio.jobs import ExpectedResult

DATA = Path(__file__).parents[2] / "data" / "fio"
#: A default that the data were made with, and that is left out since: fio before 3.27 takes it for a flag.
DEFAULT = "--unified_rw_reporting=none"
VERSIONS = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())


@dataclass(frozen=True)
class Captured:
    output: bytes
    status: int
    stderr: str
    options: tuple[str, ...]
    expectation: ExpectedResult


def captured(version: str, case: str) -> Captured:
    folder = DATA / version
    run = json.loads((folder / "runs.json").read_text())[case]
    return Captured(
        (folder / f"{case}.json").read_bytes(),
        run["status"],
        (folder / f"{case}.stderr").read_text(),
        tuple(each for each in run["options"] if each != DEFAULT),
        ExpectedResult(**{**run["expectation"], "paths": tuple(run["expectation"].get("paths", ()))}),
    )
