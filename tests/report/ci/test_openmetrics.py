from __future__ import annotations

import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_new
from prometheus_client.parser import text_string_to_metric_families as read_old
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.ci import openmetrics
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_summary.fitness import Fitness

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]
HEALTH: dict[str, Any] = {
    "passed": True, "temperature_c": 50, "percentage_used": 3, "critical_warning": 0, "media_errors": None,
    "power_on_hours": 2, "data_written_bytes": 4096,
}  # fmt: skip

#: Of the OpenMetrics 1.0 text format, what is also Prometheus' older one.
NAME = r"ssdqual(?:_[a-z0-9]+)+"
TYPE = re.compile(rf"# TYPE ({NAME}) gauge")
UNIT = re.compile(rf"# UNIT ({NAME}) ([a-z_]+)")
HELP = re.compile(rf"# HELP ({NAME}) [A-Z][^\\\n]*\.")
LABEL = r'[a-z]+="(?:[^"\\\n]|\\[\\"n])*"'
NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?"
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} ({NUMBER})")
#: Endings that are kept for other types of metrics.
RESERVED = ("_total", "_created", "_count", "_sum", "_bucket", "_gcount", "_gsum", "_info")


def check(text: str) -> Series:
    """Every line by the grammar: a family's own lines together, its type first, no name and no series twice."""
    assert text.endswith("\n# EOF\n")
    assert all(each.isprintable() for each in text.split("\n"))
    found: Series = {}
    name, families = "", set()
    for line in text.removesuffix("\n# EOF\n").split("\n"):
        if kind := TYPE.fullmatch(line):
            name = kind[1]
            assert name not in families
            assert not name.endswith(RESERVED)
            families.add(name)
        elif unit := UNIT.fullmatch(line):
            assert unit[1] == name
            assert name.endswith(f"_{unit[2]}")
        elif described := HELP.fullmatch(line):
            assert described[1] == name
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == name
            labels = tuple(
                (key, undone(value)) for key, value in re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', sample[2])
            )
            assert len(dict(labels)) == len(labels)
            assert (name, labels) not in found
            found[name, labels] = float(sample[3])
    return found


def undone(value: str) -> str:
    return re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], value)


def value(series: Series, name: str, **labels: str) -> float:
    (found,) = [
        number for (key, given), number in series.items() if key == name and labels.items() <= dict(given).items()
    ]
    return found


def read(path: Path) -> Series:
    return check(openmetrics.text(path))


def test_verdicts_figures_and_limits_are_in_base_units(write_run: WriteRun) -> None:
    broken = claimed(low=805_000, high=818_000)
    kept = claimed(Claim.STEADY_IOPS, value=9412, bound=9000)
    series = read(write_run(judged(broken, "t1"), judged(kept, "t2"), record("error", test="t3", message="no cable")))
    about = {"machine": "dut", "claim": "p99_latency", "array": "raid5x4", "workload": "randread_4k_qd8"}
    assert value(series, "ssdqual_verdict", **about, outcome="fail") == 1
    assert value(series, "ssdqual_measured_seconds", **about) == 0.000812
    assert value(series, "ssdqual_measured_low_seconds", **about) == 0.000805
    assert value(series, "ssdqual_measured_high_seconds", **about) == 0.000818
    assert value(series, "ssdqual_limit_seconds", **about, bound="at_most") == 0.0005
    assert value(series, "ssdqual_margin_ratio", **about) == pytest.approx(-0.624)
    assert value(series, "ssdqual_measured_iops", claim="steady_iops") == 9412
    assert value(series, "ssdqual_limit_iops", bound="at_least") == 9000
    assert [value(series, "ssdqual_run_claims", outcome=each) for each in ("pass", "fail", "inconclusive")] == [1, 1, 0]
    assert value(series, "ssdqual_run_tests_in_error") == 1


def test_the_run_says_what_it_was(write_run: WriteRun) -> None:
    series = read(write_run(judged(claimed(value=400_000)), acceptance=False, exit_status=0))
    assert value(series, "ssdqual_run", run="20260101T000000Z-1", protocol="snia", spec="acme") == 1
    verdicts = {each: value(series, "ssdqual_run_verdict", verdict=each.value) for each in Fitness}
    assert verdicts == {each: int(each is Fitness.FIT) for each in Fitness}
    assert [value(series, "ssdqual_run_drives", which=each) for each in ("judged", "all")] == [1, 1]
    assert value(series, "ssdqual_run_acceptance") == 0
    assert value(series, "ssdqual_run_exit_status") == 0
    assert value(series, "ssdqual_run_ended_timestamp_seconds") == 1767229200
    assert value(series, "ssdqual_run_started_timestamp_seconds") == 1767225600


def test_broken_promises_are_counted_by_cause(write_run: WriteRun) -> None:
    cause = Cause(Culprit.DRIVE, "it does 60% of the median drive's IOPS", ("S3",), confidence=0.95)
    broken = replace(claimed(), outcome=Finding.FAIL, cause=cause)
    page = openmetrics.text(write_run(judged(broken, "a", 1), judged(replace(broken, geometries=("raid5x5",)), "b", 2)))
    (line,) = [line for line in page.splitlines() if line.startswith("ssdqual_run_cause{")]
    assert 'culprit="drive",drives="S3"' in line
    assert float(line.split()[-1]) == 2


def test_the_last_health_of_a_drive_is_told(write_run: WriteRun) -> None:
    before = record("health", drive="S1", when="before", **{**HEALTH, "temperature_c": 20})
    after = record("health", 1, drive="S1", when="after", **HEALTH)
    series = read(write_run(before, after, record("drive_worsened", drive="S1", name="x", findings=["y"])))
    assert value(series, "ssdqual_drive", serial="S1", model="ACME 1", firmware="F1") == 1
    names = ("size_bytes", "temperature_celsius", "used_ratio", "power_on_seconds", "written_bytes", "worsened")
    assert [value(series, f"ssdqual_drive_{name}", serial="S1") for name in names] == [480e9, 50, 0.03, 7200, 4096, 1]
    assert value(series, "ssdqual_drive_self_assessment") == 1
    assert not [name for name, _ in series if "media_errors" in name]


@pytest.mark.parametrize("unit", Unit)
def test_every_unit_has_a_base(write_run: WriteRun, unit: Unit) -> None:
    series = read(write_run(judged(replace(claimed(), unit=unit, value=50.0))))
    (found,) = [
        number for (name, _), number in series.items() if re.fullmatch(r"ssdqual_measured(?!_low|_high).*", name)
    ]
    assert found == {Unit.NANOSECONDS: 5e-8, Unit.PERCENT: 0.5}.get(unit, 50.0)


def test_what_is_unbounded_or_not_promised_is_left_out(write_run: WriteRun) -> None:
    series = read(write_run(judged(replace(claimed(), low=None, high=None))))
    assert not [name for name, _ in series if "_low" in name or "_high" in name]


def test_sweeps_with_the_same_ends_are_two_promises(write_run: WriteRun) -> None:
    sweeps = ("raid5x3 raid5x4 raid5x8", "raid5x3 raid5x8")
    page = check(openmetrics.text(write_run(*(judged(claimed(arrays=arrays), arrays) for arrays in sweeps))))
    found = [dict(labels) for name, labels in page if name == "ssdqual_verdict"]
    assert {each["array"] for each in found} == set(sweeps)


def test_of_two_tests_that_judge_the_same_the_worse_one_counts(write_run: WriteRun) -> None:
    good, bad = claimed(value=400_000), claimed(value=900_000)
    for pair in ((good, bad), (bad, good)):
        series = read(write_run(*(judged(each, f"t{at}") for at, each in enumerate(pair))))
        assert value(series, "ssdqual_measured_seconds") == 0.0009
        assert value(series, "ssdqual_verdict") == value(series, "ssdqual_verdict", outcome="fail")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from(['"', "\\", '\\"', "a\nb", "}", '",x="', "\ud800", "\u2028", "\U000e0100", "x" * 999])
    | st.text(max_size=20)
)
def test_any_name_is_a_label(write_run: WriteRun, name: str) -> None:
    drive = {"identity": "S1", "serial": name, "model": name, "firmware": name, "size_bytes": 1}
    bays = [{"machine": name, "facts": {}, "drives": [drive, {**drive, "identity": "S2"}]}]
    evidence = replace(claimed(), claim=name, geometries=(name,), group=name)
    text = openmetrics.text(write_run(judged(evidence), bays=bays))
    series = check(text)
    if name and safe_text.line(name, 200) == name:  # a variation selector is printable to Python, and is not shown
        assert value(series, "ssdqual_drive", serial="S1", model=name, machine=name) == 1
        assert value(series, "ssdqual_verdict", claim=name, group=name) == 1
    for reader in (read_new, read_old):  # what Prometheus' own client makes of it
        theirs = [
            (each.name, tuple(each.labels.items()), each.value) for family in reader(text) for each in family.samples
        ]
        assert theirs == [(key, labels, number) for (key, labels), number in series.items()]


def test_drives_with_one_serial_are_told_apart(write_run: WriteRun) -> None:
    drives = [{"identity": identity, "serial": "0001"} for identity in ("nvme.a", "nvme.b")]
    manifest = {"bays": [{"machine": "m", "facts": {}, "drives": drives}]}
    series = read(write_run(record("drive_worsened", drive="nvme.b", name="x", findings=["y"]), manifest=manifest))
    assert [value(series, "ssdqual_drive_worsened", serial=each) for each in ("nvme.a", "nvme.b")] == [0, 1]


def test_a_damaged_folder_tells_less(write_run: WriteRun) -> None:
    series = read(write_run(judged(claimed()), manifest={}))
    assert value(series, "ssdqual_verdict", machine="", outcome="fail") == 1
    assert not [name for name, _ in series if "timestamp" in name or "exit_status" in name]


def test_it_is_written_at_once_for_others_to_read(write_run: WriteRun, tmp_path: Path) -> None:
    folder, path = write_run(judged(claimed())), tmp_path / "m" / "ssdqual.prom"
    path.parent.mkdir()
    path.write_text("old")
    inode = path.stat().st_ino
    umask = os.umask(0o027)
    try:
        openmetrics.write(folder, path)
    finally:
        os.umask(umask)
    assert path.read_text() == openmetrics.text(folder)
    assert path.stat().st_ino != inode
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(path.parent.iterdir()) == [path]
