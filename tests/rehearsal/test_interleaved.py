"""Workloads that take turns, with the real fio on a real array: their order, their results, and a run that resumes.

The protocol is that of measuring until the verdict is certain, on the lab's scale of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

import pytest
from support.lab.rehearsed import Finished, Lab, Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.unhurried, pytest.mark.nightly]

PROTOCOL = """
acceptance = false
purge = "discard"
fill = { passes = 1, bs = "1m" }
precondition = { step = "5 s", limit = "80 s" }
measure = { ramp = "1 s" }

[interleave]
cell = "2 s"
ramp = "1 s"
first = 5
rounds = 6
span = "0 s"
workloads = 2

[sequential]
first = "20 s"
growth = 1.5
limit = "30 s"
report = "1 s"
slowest = "20 s"
plateau = "5 s"
observe = "5 s"
pause = "0 s"

[steady]
range_percent = 60
slope_percent = 60
"""
#: Half of what the emulated drives do.
SPEC = """
product = { name = "one promise", models = [] }

[[promise]]
claim = "steady_iops"
at_least = "300 IOPS"
"""
SUITE = """
import pytest
from pytest_ssdqual import Workload

@pytest.mark.ssd_array("raid0", widths=(2,))
@pytest.mark.ssd_workload(*(Workload("randrw", "4k", depth, read_percent=70) for depth in (8, 32)))
@pytest.mark.ssd_promise("steady_iops")
def test_iops(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)
"""
DEPTHS = (8, 32)


@pytest.fixture(scope="module")
def run(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    place = tmp_path_factory.mktemp("interleaved")
    for name, text in (("protocol.toml", PROTOCOL), ("spec.toml", SPEC), ("test_turns.py", SUITE)):
        (place / name).write_text(text)
    server = Server(lab)
    options = (server.options[0], f"--ssd-spec={place / 'spec.toml'}")
    start = Start(place, options, suite=str(place / "test_turns.py"), protocol=place / "protocol.toml")
    try:
        yield start(drives(2), f"--rootdir={place}").finish()
    finally:
        start.close()
        server.reset()


def test_all_promises_are_kept(run: Finished) -> None:
    found = run.results()
    assert set(found) == {f"test_iops[raid0x2-randrw70_4k_qd{depth}]" for depth in DEPTHS}
    assert not any(found.values()), run.output


def test_rounds_have_all_workloads_behind_the_control(run: Finished) -> None:
    order = [
        str(each.facts["workload"]) for each in run.folder.records("measuring") if "rand" in str(each.facts["workload"])
    ]
    mixes = [each for each in order if each.startswith("randrw70")]
    # The deepest queue of what writes most is measured without a pause.
    assert mixes[0] == "randrw70_4k_qd32"
    rounds = [mixes[at : at + 2] for at in range(1, 11, 2)]
    assert all(len(set(each)) == 2 for each in rounds), mixes


def test_results_have_their_cells(run: Finished) -> None:
    measured = {str(each.facts["workload"]): each.facts for each in run.folder.records("measured")}
    control = measured.pop("randrw70_4k_qd32")
    assert "interleaved" not in control
    for facts in measured.values():
        runs, rounds = cast("list[dict[str, Any]]", facts["runs"]), cast("dict[str, Any]", facts["interleaved"])
        assert 5 <= len(runs) == rounds["rounds"] <= 6
        assert rounds["workloads"] == 2
        assert facts["iops"] == pytest.approx(600, rel=0.15)


def test_looks_have_a_reason(run: Finished) -> None:
    looks = sorted(
        (str(each.facts["workload"]), each.facts["rounds"]) for each in run.folder.records("looked_at_rounds")
    )
    assert [workload for workload, _ in groupby(looks, key=lambda each: each[0])] == sorted(
        f"randrw70_4k_qd{depth}" for depth in DEPTHS
    )
    assert all(each.facts["sentence"] for each in run.folder.records("looked_at_rounds"))
