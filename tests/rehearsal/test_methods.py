"""Published methods through the ordinary command line, against drives whose behaviour is steered from outside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest
from support.lab.rehearsed import Server, Start, drives

from pytest_ssdqual.qual.methods import stec
from pytest_ssdqual.report.evidence.evidence import of_facts

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

PROTOCOL = """
acceptance = false
purge = "discard"
fill = { passes = 1, bs = "1m" }
precondition = { step = "5 s", limit = "60 s" }
measure = { ramp = "1 s", window = "5 s", repeats = 1, attempts = 4 }
steady = { range_percent = 60, slope_percent = 60 }
saturation = { limit = "20 s", sample = "1 s" }
"""
#: Seconds that a drive stays fast.
FRESH_S = 7


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    path = tmp_path / "saturating.toml"
    path.write_text(PROTOCOL)
    return path


def test_a_drive_that_halves_while_it_is_written_is_found_out(server: Server, tmp_path: Path, protocol: Path) -> None:
    """STEC's saturation: 600 IOPS fresh, 300 from the moment on at which the lab slows the drive down."""
    start = Start(tmp_path, (*server.options, "--ssd-arrays=drive"), "suites/stec/test_saturation.py", protocol)
    server.lab.vm.set_iops("SSDQ0001", 600)
    running = start(drives(1), "-k", str(stec.SATURATING))
    try:
        running.await_record("measuring")  # not for fio: its options are probed before
        server.await_fio()
        time.sleep(FRESH_S)
        server.lab.vm.set_iops("SSDQ0001", 300)
        run = running.finish()
    finally:
        start.close()
    told = [*run.folder.records("verdict"), *run.folder.records("observation")]
    verdicts = {each.claim: each for each in (of_facts(record.facts) for record in told)}
    assert verdicts["fresh_iops"].value == pytest.approx(600, rel=0.1)
    assert verdicts["settled_iops"].value == pytest.approx(300, rel=0.1)
    assert verdicts["fresh_to_steady"].value == pytest.approx(2, rel=0.15)
    # The scale model's sheet promises that there is no cliff.
    assert (run.status, verdicts["fresh_to_steady"].outcome) == (1, "fail")
    (record,) = (each.facts for each in run.folder.records("saturation"))
    curve = cast("dict[str, Any]", record["run"])["round_iops"]
    fast = sum(each > 450 for each in curve)
    assert all(each > 450 for each in curve[:fast])
    assert FRESH_S - 1 <= fast < len(curve)
    written = sum(curve[:fast]) * 8192 / cast("int", record["capacity_bytes"])
    assert verdicts["cliff_after"].value == pytest.approx(written, abs=1.5 * 600 * 8192 / (256 << 20))
    assert server.left() == []
