"""Drives are filled and conditioned bare, once a pattern; arrays of every level are assembled of them and visited."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import cast

import pytest
from support.lab.rehearsed import BRIEF, LENIENTLY, Folder, Server, Start, drives

pytestmark = pytest.mark.lab

LEVELS = {"raid0": [2], "raid1": [2], "raid5": [3, 4], "raid6": [4], "raid10": [4]}
OF_LEVEL = """
    @judged
    @pytest.mark.ssd_array("{level}", widths={widths})
    @pytest.mark.ssd_workload(WRITES)
    def test_{level}(ssd_run, ssd_sla):
        judge(ssd_run, ssd_sla)
"""
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    WRITES, READS, STREAM = Workload("randwrite", "4k", 8), Workload("randread", "4k", 8), Workload("write", "128k", 8)
    judged = pytest.mark.ssd_promise("steady_iops")

    def judge(run, sla):
        verdict = sla.judge(run)
        assert verdict

    @judged
    @pytest.mark.ssd_array("raid5", widths=[4])
    @pytest.mark.ssd_workload(STREAM)
    def test_stream(ssd_run, ssd_sla):
        judge(ssd_run, ssd_sla)

    @pytest.mark.ssd_array("raid5", widths=[4], failed=1)
    @pytest.mark.ssd_workload(READS)
    def test_degraded(ssd_run):
        assert ssd_run.runs
"""


#: A test of one array of three drives, and its visits.
ONE = ("-k", "test_raid5 and raid5x3")
VISITS = [("raid5x3", 0), ("raid5x3", 1)]


def visits_of(folder: Folder) -> list[tuple[object, object]]:
    return [(record.facts["geometry"], record.facts["visit"]) for record in folder.records("cell")]


@pytest.fixture
def begin(start: Start, tmp_path: Path) -> Start:
    """Runs of the suite above, by a protocol that conditions drives."""
    file = tmp_path / "test_levels.py"
    parts = [SUITE, *(OF_LEVEL.format(level=level, widths=widths) for level, widths in LEVELS.items())]
    file.write_text("\n".join(map(dedent, parts)), encoding="utf-8")
    return replace(start, suite=str(file), protocol=BRIEF.with_name("drives.toml"))


@pytest.mark.nightly
def test_arrays_of_every_level_share_drives_conditioned_once(server: Server, begin: Start) -> None:
    run = begin(drives(4), *LENIENTLY).finish()
    assert run.status == 0, run.output
    folder = run.folder
    assert [each.facts["outcome"] for each in folder.records("verdict")] == ["pass"] * 7
    assert len(folder.records("purging")) == 1
    assert [each.facts["geometry"] for each in folder.records("filled")] == ["drivex4"]
    conditioned = folder.records("conditioned")
    assert [(each.facts["geometry"], each.facts["pattern"]) for each in conditioned] == [
        ("drivex4", "random"), ("drivex4", "sequential")
    ]  # fmt: skip
    assert all(len(cast("list[float]", each.facts["rates"])) == 4 for each in conditioned)
    bare, *arrays = folder.records("array_created")
    assert bare.facts["geometry"] == "drivex4"
    assert {each.facts["of_drives"] for each in arrays} == {"drivex4"}
    assert {str(each.facts["geometry"]) for each in arrays} == {
        "raid0x2", "raid1x2", "raid5x3", "raid5x4", "raid6x4", "raid10x4",
    }  # fmt: skip
    assert {each.facts["consistency"] for each in arrays} == {"assumed", "none needed"}
    assert set(visits_of(folder)) == {
        (str(each.facts["geometry"]), visit) for each in folder.records("measured") for visit in (0, 1)
    }
    refreshed = folder.records("refreshed")
    assert refreshed, "drives idle beside narrow arrays"
    assert all(len(cast("dict[str, float]", each.facts["rates"])) == 4 for each in refreshed)
    assert server.left() == []


def test_array_is_assembled_of_drives_that_were_conditioned(server: Server, begin: Start) -> None:
    # Two visits of a busy computer may differ too much for a verdict; then there is a third one.
    protocol = begin.place / "visits.toml"
    protocol.write_text(begin.protocol.read_text().replace("cells = [1, 1]", "cells = [1, 1, 1]"))
    begin.protocol = protocol
    run = begin(drives(3), *ONE, *LENIENTLY).finish()
    assert run.status == 0, run.output
    folder = run.folder
    assert len(folder.records("purging")) == 1
    assert [record.facts["geometry"] for record in folder.records("filled")] == ["drivex3"]
    (conditioned,) = folder.records("conditioned")
    assert (conditioned.facts["geometry"], conditioned.facts["pattern"]) == ("drivex3", "random")
    bare, *arrays = folder.records("array_created")
    assert bare.facts["geometry"] == "drivex3"
    assert {(array.facts["geometry"], array.facts["of_drives"], array.facts["consistency"]) for array in arrays} == {
        ("raid5x3", "drivex3", "assumed")
    }
    assert visits_of(folder)[:2] == VISITS
    assert server.left() == []


@pytest.mark.nightly
def test_a_run_cancelled_on_an_array_goes_on_with_its_drives(server: Server, begin: Start) -> None:
    only = (*ONE, *LENIENTLY)
    running = begin(drives(3), *only)
    # The array's first visit has ended; the run is cancelled during the second one.
    running.await_record("measuring", 2, geometry="raid5x3", fio="run")
    server.await_fio()
    running.signal(signal.SIGTERM)
    cancelled = running.finish()
    assert cancelled.status == 2, cancelled.output
    assert server.left() == []

    run = begin(drives(3), *only, "--ssd-resume=last").finish()
    assert run.status == 0, run.output
    folder = run.folder
    for kind in ("purging", "filled", "conditioned", "conditioning_kept"):
        assert len(folder.records(kind)) == 1, kind
    assert [record.facts["geometry"] for record in folder.records("measured")] == ["raid5x3"]
    assert visits_of(folder) == VISITS
    assert server.left() == []
