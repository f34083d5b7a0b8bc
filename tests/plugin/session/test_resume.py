from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ssdqual.plugin.session.resume import ResumedRun, command
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE
from pytest_ssdqual.report.run_folder.reader import Record, RunReader
from pytest_ssdqual.rig.fio.load import IO_URING, DriveLoad


@pytest.mark.parametrize("before", [[], ["--ssd-resume=last"], ["--ssd-resume", "last"]])
def test_the_command_that_resumes_a_run_names_it_once(before: list[str]) -> None:
    given = ["--ssd-devices=/dev/sd[b-i]", *before, "suites/raid5"]
    assert command(given, "20261124T1") == "pytest '--ssd-devices=/dev/sd[b-i]' suites/raid5 --ssd-resume=20261124T1"


LOAD = DriveLoad(IO_URING, jobs=4)


CHOSEN: dict[str, Any] = {"load": plain(LOAD), "sentence": ""}


@pytest.mark.parametrize(("loads", "jobs"), [([CHOSEN], 4), ([{}, CHOSEN], 4), ([CHOSEN, {}], None), ([], None)])
def test_a_resumed_run_continues_with_its_load(loads: Sequence[dict[str, Any]], jobs: int | None) -> None:
    records = [Record("load", "", each) for each in loads]
    past = SimpleNamespace(story=RunReader(Path(), UNREADABLE, tuple(records)))
    found = ResumedRun(cast(Any, past), cast(Any, None), cast(Any, None), ()).load
    assert (found.jobs if found else None) == jobs
