from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders import charted, strategies
from support.builders.evidence import claimed
from support.builders.kept_runs import READS
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.qual.measured.environment import DriveEnvironment, DriveTemperature, Traffic
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import commands
from pytest_ssdqual.report.view import failures as kernel_log
from pytest_ssdqual.report.view.commands import Repeat
from pytest_ssdqual.report.view.failures import MOST, Failure, failures, observed_with

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


def test_a_failure_has_what_helps(write_run: WriteRun) -> None:
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
    rows = re.findall('<tr><th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', run_page.text(RunReader.read(folder)))
    assert ("iops", "1,234.5") in rows
    assert ("limit", "≤ 500 µs (acme.toml promise[3])") in rows
    assert ("published", "about 300 µs (the sheet)") in rows
    assert not [row for row in rows if row[0] == "unknown"]
    assert failure.raw == (raw,)
    assert failure.kernel == kernel_log.KernelDuring((), 0, 0, 1)


def test_nothing_recorded_is_no_table(write_run: WriteRun) -> None:
    (failure,) = all_of(write_run(judged(claimed())))
    assert failure.members is None
    assert failure.repeat == Repeat()


def test_only_the_first_are_shown_in_full(write_run: WriteRun) -> None:
    found = all_of(write_run(*(judged(claimed(), f"test {number}") for number in range(MOST + 3))))
    assert len(found) == MOST
    assert len({each.key for each in found}) == MOST


def test_damaged_figures_of_members_are_left_out(write_run: WriteRun) -> None:
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


def test_a_script_that_was_left_for_it_is_shown(write_run: WriteRun) -> None:
    raw = ("explore/a.fio", "integrity/b.history", "fio/c.json.gz", "../d.fio", "explore/missing.fio")
    folder = write_run(judged(replace(claimed(), raw=raw)))
    (folder.parent / "d.fio").write_text("secret")
    for name, text in (("explore/a.fio", "[a]\nrw=read"), ("integrity/b.history", "fail 1"), ("fio/c.json.gz", "x")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text + "\n")
    (failure,) = all_of(folder)
    assert failure.scripts == (("explore/a.fio", "[a]\nrw=read"), ("integrity/b.history", "fail 1"))


@pytest.mark.parametrize(
    ("culprits", "geometry"), [((), "raid5x8"), (("S3",), "raid5x8"), (("S2",), "raid5x5"), (("S9",), None)]
)
def test_members_are_shown_of_the_widest_array_with_the_culprit(culprits: Sequence[str], geometry: str | None) -> None:
    runs = [
        SimpleNamespace(
            raw=f"fio/{array}",
            geometry=Geometry.parse(array),
            seen=SimpleNamespace(drives=[SimpleNamespace(name=name) for name in names]),
        )
        for array, names in (("raid5x3", ("S1", "S2")), ("raid5x5", ("S1", "S2")), ("raid5x8", ("S1", "S3")))
    ]
    other = SimpleNamespace(raw="fio/other", geometry=Geometry.parse("raid5x24"), seen=runs[0].seen)
    story = SimpleNamespace(contents=lambda content, *kinds: [SimpleNamespace(runs=[*runs, other])])
    evidence = replace(claimed(), raw=tuple(run.raw for run in runs))
    found = observed_with(cast("RunReader", story), evidence, culprits)
    assert (str(found.geometry) if found else None) == geometry
