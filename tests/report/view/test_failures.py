from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from support.builders import charted, strategies
from support.builders.kept_runs import READS
from support.builders.report_page import Claimed, WriteRun, judged, record

from pytest_ssdqual.qual.measured.environment import DriveEnvironment, DriveTemperature, Traffic
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Finding, Part
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import commands
from pytest_ssdqual.report.view import failures as kernel_log
from pytest_ssdqual.report.view.commands import Repeat
from pytest_ssdqual.report.view.failures import MOST, Failure, _next_to, _width, failures

SEEN = replace(
    strategies.seen_drive("S1", Traffic(661, 1322, 86_638_592, 173_277_184), None), heat=DriveTemperature(50.0)
)


def seen(*drives: DriveEnvironment) -> dict[str, Any]:
    return cast("dict[str, Any]", plain(strategies.seen(drives)))


def measured(raw: str, observed: object) -> dict[str, object]:
    return record("measured", 61, **charted.measured("raid5x3", READS, 1000.0, raw=raw, seen=observed).facts)


def all_of(folder: Path) -> list[Failure]:
    story = RunReader.read(folder)
    return list(failures(story, story.judged, commands.read(folder)))


def test_a_failure_has_what_helps(write_run: WriteRun, claimed: Claimed) -> None:
    broken = claimed(figures={"iops": 1234.5, "unknown": None})
    broken = replace(broken, published=Published(300_000, Unit.NANOSECONDS, "the sheet", approximate=True))
    (raw,) = broken.raw
    observed = seen(SEEN, replace(SEEN, name="S2", heat=DriveTemperature()))
    folder = write_run(record("ran", 60, raw=raw), measured(raw, observed), judged(broken, "a", 62))
    fio = {"number": 1, "writer": "main", "argv": ["fio", "--output=/run/x", "--rw=randread"], "status": 0}
    fio |= {"started": "2026-01-01T00:00:50.000+00:00", "elapsed_s": 9.0, "stdout": "", "stderr": ""}
    (folder / "transcript.jsonl").write_text(json.dumps(fio) + "\n")
    (failure,) = all_of(folder)
    assert failure.repeat.fio == ("fio --output=x --rw=randread",)
    assert failure.members is not None
    assert failure.members.rows[0] == ("S1", "661", "1,322", "86.6 MB", "173 MB", "50 °C")
    assert failure.members.rows[1][-1] == ""
    assert ("iops", "1,234.5") in failure.figures.rows
    assert ("limit", "≤ 500 µs (acme.toml promise[3])") in failure.figures.rows
    assert ("published", "about 300 µs (the sheet)") in failure.figures.rows
    assert not [row for row in failure.figures.rows if row[0] == "unknown"]
    assert failure.raw == (raw,)
    assert failure.kernel == kernel_log.KernelDuring((), 0, 0, 1)


def test_drives_side_by_side_are_shown_one_by_one(write_run: WriteRun, claimed: Claimed) -> None:
    members = (Part("S1", {"value": 812_000.0}, Finding.FAIL), Part("S2", {}, Finding.PASS))
    (failure,) = all_of(write_run(judged(replace(claimed(), members=members, worst="S1"))))
    assert failure.members is not None
    assert failure.members.rows == (
        ("S1", "812 µs", Finding.FAIL, "worst"),
        ("S2", "", Finding.PASS, ""),
    )


def test_neighbours_are_the_next_widths_and_workloads(write_run: WriteRun, claimed: Claimed) -> None:
    def of(arrays: str, depth: int) -> dict[str, object]:
        good = (arrays, depth) != ("raid5x4", 8)
        found = claimed(arrays=arrays, workload=Workload("randread", "4k", depth), value=1000 if good else 812_000)
        return judged(found, f"{arrays}-{depth}")

    widths = [of(f"raid5x{width}", 8) for width in (3, 4, 6, 8)]
    depths = [of("raid5x4", depth) for depth in (1, 4, 32, 64)]
    others = [of("raid6x5", 8), of("raid5x5-1failed", 8), of("raid5x5", 4)]
    writes = judged(claimed(arrays="raid5x4", workload=Workload("randwrite", "4k", 8), value=1000), "writes")
    (failure,) = all_of(write_run(*widths, *depths, *others, writes))
    assert failure.neighbours is not None
    assert [(row[0], str(row[1]).split(":")[0]) for row in failure.neighbours.rows] == [
        ("another width", "p99 latency of raid5x3 randread_4k_qd8"),
        ("another width", "p99 latency of raid5x6 randread_4k_qd8"),
        ("another workload", "p99 latency of raid5x4 randread_4k_qd4"),
        ("another workload", "p99 latency of raid5x4 randread_4k_qd32"),
    ]


def test_nothing_to_compare_with_is_no_table(write_run: WriteRun, claimed: Claimed) -> None:
    (failure,) = all_of(write_run(judged(claimed())))
    assert failure.neighbours is None
    assert failure.members is None
    assert failure.repeat == Repeat()


def test_only_the_first_are_shown_in_full(write_run: WriteRun, claimed: Claimed) -> None:
    found = all_of(write_run(*(judged(claimed(), f"test {number}") for number in range(MOST + 3))))
    assert len(found) == MOST
    assert len({each.key for each in found}) == MOST


def test_damaged_figures_of_members_are_left_out(write_run: WriteRun, claimed: Claimed) -> None:
    (raw,) = claimed().raw
    damaged: tuple[object, ...] = (
        None,
        [],
        {**seen(SEEN), "drives": [{}]},
        {**seen(SEEN), "drives": [{**plain(SEEN), "device": {"counted": {"reads": "many"}}}]},
    )
    for broken in damaged:
        folder = write_run(measured(raw, broken), judged(claimed()))
        (failure,) = all_of(folder)
        assert failure.members is None


@given(st.integers(3, 20), st.sets(st.integers(3, 20)))
def test_the_next_ones_are_the_nearest_on_either_side(claimed: Claimed, here: int, widths: set[int]) -> None:
    others = {width: claimed(arrays=f"raid5x{width}") for width in widths - {here}}
    alike = [*others.values(), claimed(arrays="raid6x4")]
    found = [each.geometries[0] for each in _next_to(claimed(arrays=f"raid5x{here}"), alike, _width)]
    nearest = [*sorted(w for w in others if w < here)[-1:], *sorted(w for w in others if w > here)[:1]]
    assert found == [f"raid5x{width}" for width in nearest]


def test_a_script_that_was_left_for_it_is_shown(write_run: WriteRun, claimed: Claimed) -> None:
    raw = ("explore/a.fio", "integrity/b.history", "fio/c.json.gz", "../d.fio", "explore/missing.fio")
    folder = write_run(judged(replace(claimed(), raw=raw)))
    (folder.parent / "d.fio").write_text("secret")
    for name, text in (("explore/a.fio", "[a]\nrw=read"), ("integrity/b.history", "fail 1"), ("fio/c.json.gz", "x")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text + "\n")
    (failure,) = all_of(folder)
    assert failure.scripts == (("explore/a.fio", "[a]\nrw=read"), ("integrity/b.history", "fail 1"))


def test_likeness_of_drives_is_told_by_what_it_was_computed_from(write_run: WriteRun, claimed: Claimed) -> None:
    members = (Part("S1", {"slowest_ns": 9e6}), Part("S2", {"iops": 300.0}))
    (failure,) = all_of(write_run(judged(replace(claimed(), members=members, worst="S1"))))
    assert failure.members is not None
    assert [row[:2] for row in failure.members.rows] == [("S1", "9 ms"), ("S2", "300 IOPS")]
