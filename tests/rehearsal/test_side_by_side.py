"""Of drives side by side one dies under the load: it is the failure, and the others are judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lab.rehearsed import LENIENTLY, ROOT, SERIALS, Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.unhurried, pytest.mark.nightly]

DEAD = "SSDQ0002"
OTHERS = [serial for serial in SERIALS if serial != DEAD]
#: In the order in which they are measured.
READS, MIX = "randread_4k_qd8", "randrw70_4k_qd8"
NAME = "test_steady_state_iops_match_the_data_sheet[drivex4-{}]"
CHOSEN = ("-k", f"steady_state and ({READS} or {MIX})", *LENIENTLY)


def test_one_of_four_drives_dies_under_the_load(server: Server, tmp_path: Path) -> None:
    vm, protocol = server.lab.vm, ROOT / "suites" / "faults" / "faults.toml"
    start = Start(tmp_path, server.options, suite="suites/drive", protocol=protocol)
    running = start(drives(4), *CHOSEN)
    running.await_record("measuring", fio="run")
    server.await_fio()
    vm.fail(DEAD)
    try:
        run = running.finish()
    finally:
        vm.mend(DEAD)
    assert run.status == 1, run.output
    results = {name: each for name, each in run.results().items() if each}
    ((struck, (sentence,)),) = results.items()
    assert sentence.startswith(f"failure: drive {DEAD} failed"), sentence
    (later,) = set(run.results()) - {struck}
    assert {struck, later} == {NAME.format(each) for each in (READS, MIX)}
    assert run.properties(later)["ssd.drives"].split() == OTHERS
    verdicts = [each.facts for each in run.records("verdict") if each.facts["claim"] == "steady_iops"]
    assert [each["outcome"] for each in verdicts] == ["pass", "pass"]
    assert all(sorted(part["name"] for part in each["members"]) == OTHERS for each in verdicts)  # type: ignore[attr-defined]
    assert len(run.records("drives_left_out")) == 1
    assert server.left() == []

    again = start(drives(4), *CHOSEN, "--ssd-resume=last").finish()
    assert f"{DEAD} failed in an" in again.output
    assert again.properties(later if again.results()[struck] else struck)["ssd.drives"].split() == OTHERS
    assert [len(each) for each in sorted(again.results().values(), key=len)] == [0, 1]
    assert not again.records("purging")
