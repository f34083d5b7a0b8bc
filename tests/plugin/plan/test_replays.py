"""``suites/trace``: drives that hold a trace pass, one that falls behind fails, and without a trace nothing applies."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Case, Inner

#: A hundred I/Os per second for a minute; simulated drives do 300.
ROWS = [f"{n / 100},{4096 * n},4096,{'R' if n % 4 else 'W'}\n" for n in range(6001)]
PACE, P99 = "test_replay_keeps_its_pace", "test_p99_latency_of_the_replay"


def run(inner: Inner, *args: str, limit: str = "20 ms") -> dict[str, Case]:
    """The cases by test and parameters; the latency of a simulated drive is its p99, 6.7 ms, at any rate."""
    (inner.pytester.path / "night.csv").write_text("".join(["time,offset,size,op\n", *ROWS]))
    sheet = PRODUCT + promise(claim="p99_latency", workload="night_*_t32xqd1", at_most=limit)
    (inner.pytester.path / "acme.toml").write_text(sheet)
    inner.run("--ssd-devices=lab:3", "--ssd-spec=acme.toml", inner.suite("trace"), *args)
    return inner.cases()


def outcomes(cases: dict[str, Case], test: str) -> dict[str, str]:
    return {name.rpartition("_x")[2].partition("_")[0]: case.outcome for name, case in cases.items() if test in name}


def test_sound_drives_hold_the_trace_at_all_speeds(inner: Inner) -> None:
    cases = run(inner, "--ssd-trace=night.csv")
    passed = {"100": "passed", "150": "passed", "200": "passed"}
    assert outcomes(cases, PACE) == outcomes(cases, P99) == passed
    noted = inner.records("trace")
    assert [record["ios"] for record in noted] == [6001] * 3
    assert {record["moved"] for record in noted} == {0}
    raw = gzip.decompress((inner.folder() / str(noted[0]["raw"])).read_bytes())
    assert raw.startswith(b"fio version 3 iolog")


def test_slow_drive_fails_only_at_the_speed_it_cannot_hold(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0002=0.55")  # 165 IOPS, of which twice the trace needs 200
    cases = run(inner, "--ssd-trace=night.csv", limit="100 ms")
    assert outcomes(cases, PACE) == {"100": "passed", "150": "passed", "200": "failure"}
    (failed,) = [record for record in inner.records("verdict") if record["outcome"] == "fail"]
    assert (failed["claim"], failed["worst"]) == ("replay_pace", "SSDQ0002")
    # What it begins late has no latency yet: no pass.
    assert outcomes(cases, P99) == {"100": "passed", "150": "passed", "200": "error"}


def test_machine_that_falls_behind_is_an_error(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0002=0.55")
    monkeypatch.setenv("SIMULATED_HOST_PACE", "1.5")
    cases = run(inner, "--ssd-trace=night.csv")
    assert outcomes(cases, PACE)["200"] == outcomes(cases, P99)["200"] == "error"
    assert outcomes(cases, PACE)["150"] == "passed"


def test_slow_answers_break_the_limit(inner: Inner) -> None:
    assert set(outcomes(run(inner, "--ssd-trace=night.csv", limit="3 ms"), P99).values()) == {"failure"}


def test_array_holds_the_trace_by_its_limits(inner: Inner) -> None:
    cases = run(inner, "--ssd-trace=night.csv", "--ssd-arrays=raid0x3", limit="100 ms")
    assert outcomes(cases, PACE) == outcomes(cases, P99) == {"100": "passed", "150": "passed", "200": "passed"}


def test_array_that_falls_behind_fails(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0002=0.2")  # three times 60 IOPS: enough for 150, not for 200
    cases = run(inner, "--ssd-trace=night.csv", "--ssd-arrays=raid0x3", limit="1 s")
    assert outcomes(cases, PACE) == {"100": "passed", "150": "passed", "200": "failure"}


def test_resumed_run_repeats_no_replay(inner: Inner) -> None:
    run(inner, "--ssd-trace=night.csv")
    inner.run("--ssd-devices=lab:3", "--ssd-spec=acme.toml", "trace", "--ssd-trace=night.csv", "--ssd-resume=last")
    assert set(inner.outcomes().values()) == {"passed"}
    assert len(inner.records("trace")) == len(inner.records("measured")) == 3


def test_without_a_trace_nothing_applies_and_no_run_is_green(inner: Inner) -> None:
    result = inner.run("--ssd-devices=lab:3", inner.suite("trace"))
    cases = inner.cases()
    skipped = [case for name, case in cases.items() if PACE in name or P99 in name]
    assert len(skipped) == 2
    assert all(case.outcome == "skipped" and "--ssd-trace" in case.message for case in skipped)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("text", ["time,offset,size,op\n", "hello", "time,offset,size,op\n0,0,512,R\n1,0,512,R\n"])
def test_unusable_trace_is_a_usage_error(inner: Inner, text: str) -> None:
    (inner.pytester.path / "bad.csv").write_text(text)
    result = inner.run("--ssd-devices=lab:3", "--ssd-trace=bad.csv", inner.suite("trace"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
