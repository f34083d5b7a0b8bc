"""A search with the real fio: what drives cannot do is found, made simple and confirmed; its job file shows it again.

The lab's drives do 300 I/Os a second, whatever waits, and twice of that is promised. There is time for three looks, and
so for one step of shrinking: how far that goes is not rehearsed here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from support.lab.rehearsed import Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

PROTOCOL = """
acceptance = false
purge = "discard"
fill = { passes = 1, bs = "1m" }
precondition = { step = "3 s", limit = "30 s" }
measure = { ramp = "0 s", window = "3 s", repeats = 1, attempts = 4 }
steady = { window = 3, range_percent = 80, slope_percent = 60 }
explore = { budget = "9 s", confirmations = 1 }
"""
SPEC = """
product = { name = "twice of what it can", models = [] }

[[promise]]
claim = "steady_iops"
workload = "randread_4k_qd1"
at_least = "100 IOPS"

[[promise]]
claim = "steady_iops"
workload = "randread_*"
at_least = "600 IOPS"
"""


def test_what_is_found_shows_itself_again_by_hand(server: Server, start: Start) -> None:
    for name, text in (("protocol.toml", PROTOCOL), ("spec.toml", SPEC)):
        (start.place / name).write_text(text)
    start.options = (server.options[0], f"--ssd-spec={start.place / 'spec.toml'}")
    start.suite, start.protocol = "suites/explore", start.place / "protocol.toml"
    run = start(drives(1), "-k", "random").finish()
    ((name, results),) = run.results().items()
    assert name == "test_no_random_workload_breaks_a_promise[drivex1-randread_4k_qd1]"
    ((sentence),) = results
    found = re.match(r"failure: steady IOPS of drive SSDQ0001 \(drivex1\) (randread_\S+): (\d+) IOPS", sentence)
    assert found, run.output
    assert int(found[2]) == pytest.approx(300, rel=0.2)
    (searched,) = run.folder.records("searched")
    (suspect,) = cast("list[dict[str, Any]]", searched.facts["suspects"])
    assert (suspect["workload"], suspect["confirmed"]) == (found[1], True)
    assert float(str(searched.facts["seconds"])) <= 9
    # By hand, on the machine under test, as the file says.
    file = run.folder.path / suspect["job_file"]
    assert f"by hand: fio {suspect['job_file']}" in sentence
    server.ask("sh", "-c", f"cat >/tmp/found.fio <<'END'\n{file.read_text()}\nEND")
    said = server.ask("sh", "-c", "fio --output-format=json /tmp/found.fio; rm /tmp/found.fio")
    (job,) = json.loads(said)["jobs"]
    assert job["read"]["iops"] == pytest.approx(300, rel=0.2)
    assert job["job options"]["filename"] == "/dev/nvme0n1"
    assert Path(run.root, ".explore").is_dir()
    assert server.left() == []
