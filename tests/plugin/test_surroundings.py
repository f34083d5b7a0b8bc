"""What goes wrong around a measurement is an error that names its cause, and never a verdict on a drive."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

READS = '"randread", "4k", 8'
WRITES, WRITES_ID = '"randwrite", "4k", 8', "randwrite_4k_qd8"
SPEC = PRODUCT + promise(claim="steady_iops", at_least="1 IOPS")
#: Ends when it is decided, and has no hours of conditioning.
VISITS = """
    acceptance = false
    fill = { passes = 1, bs = "1m" }
    precondition = { step = "10 min", limit = "2 h", of = "drives" }
    members = { window = "0 s" }
    visits = { cell = "20 s", ramp = "1 s", cells = [2, 2, 2, 3], refresh = "0 s" }
"""
RAID, DRIVES = "raid5x4", "drivex4"
TROUBLE = {
    "reads:SSDQ0002": {
        DRIVES: "something else read 2,621.4 MB (20,000 I/Os) at drive SSDQ0002 meanwhile",
        RAID: "the members of raid5x4 read 2,621.4 MB more than it needs for what was done at it, so something else "
        "uses them (most at drive SSDQ0002: ",
    },
    "resync": {RAID: "md began to work on the array meanwhile (kernel log: ["},
    "throttled:SSDQ0003": {
        DRIVES: "drive SSDQ0003 counted 40 s of being too warm or throttled (50 °C)",
        RAID: "drive SSDQ0003 counted 40 s of being too warm or throttled (50 °C)",
    },
    "hot:SSDQ0001": {DRIVES: "drive SSDQ0001 was too warm: 85 °C"},
    "lanes:SSDQ0004": {
        DRIVES: "drive SSDQ0004 is connected by less than it can do: PCIe 16 GT/s x2, at most 16 GT/s x4",
    },
    "clock:3600": {RAID: "the machine's clock was set forward by 60 min"},
    "hung": dict.fromkeys((RAID, DRIVES), "a task on the machine hung meanwhile (kernel log: ["),
    "cpu": {RAID: "one of the host's 2 CPUs was 100.0% busy, most of it in the kernel"},
}
CASES = [(trouble, array, said) for trouble, each in TROUBLE.items() for array, said in each.items()]


def run(inner: Inner, array: str, protocol: str = "quick") -> pytest.RunResult:
    inner.pytester.makepyfile(test_promise=suite(f'default="{array}"', iops=("steady_iops", READS)))
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    return inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", f"--ssd-protocol={protocol}")


def with_heat(array: str, claim: str) -> str:
    return suite(f'default="{array}"', iops=("steady_iops", READS), heat=(claim, READS))


@pytest.mark.parametrize(("protocol", "array"), [("quick", DRIVES), ("brief.toml", RAID)])
@pytest.mark.parametrize(
    ("trouble", "claim", "wide", "narrow", "said"),
    [
        ("hot:SSDQ0001", "sustained_temperature", "90 °C", "80 °C", "85 °C"),
        # It throttles all the time, which no limit permits.
        ("throttled:SSDQ0003", "throttled_time", "", "0.1 %", "time throttled by heat"),
    ],
)
def test_heat_that_is_promised_is_judged(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, claim: str, wide: str, narrow: str, said: str,
    array: str, protocol: str,
) -> None:  # fmt: skip
    """The measurement is valid then, and its other promises are judged, too."""
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    inner.pytester.makepyfile(test_promise=with_heat(array, claim))
    (inner.pytester.path / "brief.toml").write_text(textwrap.dedent(VISITS))
    for at_most, failed in ((wide, 0), (narrow, 1)):
        if not at_most:
            continue
        (inner.pytester.path / "acme.toml").write_text(SPEC + promise(claim=claim, at_most=at_most))
        given = "--ssd-devices=lab:4", "--ssd-spec=acme.toml", f"--ssd-protocol={protocol}"
        inner.run(*given).assert_outcomes(passed=2 - failed, failed=failed)
    case = inner.cases()[f"test_heat[{array}-randread_4k_qd8]"]
    assert said in case.message
    assert array == RAID or trouble.partition(":")[2] in case.message


def test_a_figure_of_heat_without_a_promise_is_skipped(inner: Inner) -> None:
    inner.pytester.makepyfile(test_promise=with_heat(DRIVES, "sustained_temperature"))
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", "--ssd-protocol=quick").assert_outcomes(
        passed=1, skipped=1
    )
    assert "measured 50 °C" in inner.cases()[f"test_heat[{DRIVES}-randread_4k_qd8]"].message


@pytest.mark.parametrize("array", [RAID, DRIVES])
def test_without_trouble_the_figures_are_in_the_evidence(inner: Inner, array: str) -> None:
    run(inner, array).assert_outcomes(passed=1)
    (case,) = inner.cases().values()
    figures = {name: float(case.properties[f"ssd.{name}"]) for name in (
        "foreign_percent", "temperature_c", "too_warm_s", "link_percent", "cpu_busy_percent", "cpu_busiest_percent",
        "fio_cpu_percent", "clock_jump_s", "checks_unknown",
    )}  # fmt: skip
    assert (figures["foreign_percent"], figures["temperature_c"], figures["link_percent"]) == (0, 50, 100)
    assert 15 < figures["cpu_busy_percent"] <= figures["cpu_busiest_percent"] < 25
    # Nothing tells whether a CPU was throttled on this machine.
    assert figures["checks_unknown"] == 1
    assert ("ssd.resyncs" in case.properties) is (array == RAID)


@pytest.mark.parametrize(("trouble", "array", "said"), CASES, ids=[f"{each[0]}-{each[1]}" for each in CASES])
def test_trouble_is_an_error_that_names_its_cause(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, array: str, said: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    run(inner, array).assert_outcomes(errors=1)
    (case,) = inner.cases().values()
    assert case.outcome == "error"
    _, _, drive = trouble.partition(":")
    if array == DRIVES and drive:  # the others are measured without it
        assert f"{drive} ({said}" in case.message
        (verdict,) = inner.records("verdict")
        assert verdict["outcome"] == "inconclusive"
        parts = {part["name"]: part["outcome"] for part in verdict["members"]}
        assert len(parts) == 3
        assert drive not in parts
        assert set(parts.values()) == {"pass"}
        return
    assert said in case.message
    assert inner.records("verdict") == []


def test_so_it_is_of_a_measurement_that_ends_when_it_is_decided(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "reads:SSDQ0002")
    (inner.pytester.path / "until_certain.toml").write_text(VISITS)
    run(inner, DRIVES, "until_certain.toml").assert_outcomes(errors=1)
    (case,) = inner.cases().values()
    assert "drive SSDQ0002" in case.message
    assert {each["fio"] for each in inner.records("environment")} == {"precondition", "run"}


def test_conditioning_is_not_judged_but_its_objections_recorded(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "throttled:SSDQ0003")
    run(inner, RAID)
    records = inner.records("environment")
    # The protocol tries a measurement several times; the array is conditioned all the same.
    assert {each["fio"] for each in records} == {"precondition", "run"}
    assert [each["fio"] for each in records].count("precondition") == 1
    assert len(inner.records("conditioned")) == 1
    for each in records:
        (objection,) = each["objections"]
        assert objection.startswith("drive SSDQ0003 ")
        assert each["checks"]["too_warm_s"] == 40
        assert each["unknown"] == ["cpu_throttled_percent"]


def test_kernel_messages_are_recorded_and_change_no_verdict(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "timeout:SSDQ0003")
    run(inner, RAID).assert_outcomes(passed=1)
    records = inner.records("environment")
    for each in records:
        (line,) = each["kernel"]["lines"]
        assert line["text"].endswith("timeout, aborting")
        assert each["objections"] == []
    times = [each["kernel"]["lines"][0]["time_s"] for each in records]
    assert times == sorted(set(times))
    (measured,) = inner.records("measured")
    assert measured["runs"][-1]["seen"]["kernel"] == records[-1]["kernel"]


def test_an_array_that_loses_a_member_has_the_kernel_s_words(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "drops:SSDQ0003")
    run(inner, RAID).assert_outcomes(failed=1)
    (case,) = inner.cases().values()
    assert "drive SSDQ0003 failed" in case.message
    (record,) = inner.records("environment")
    status, block = (line["text"] for line in record["kernel"]["lines"])
    assert status.startswith("nvme2n1: Read(0x2)")
    assert block.startswith("critical medium error")
    assert status in case.message
    assert block in case.message
    assert (record["checks"], len(record["objections"])) == ({}, 1)
    assert record["raw"].startswith("fio/")


def test_a_log_that_cannot_be_read_is_on_record_and_no_error(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "speechless")
    run(inner, DRIVES).assert_outcomes(passed=1)
    assert {each["kernel"] for each in inner.records("environment")} == {None}


def test_what_was_seen_is_in_the_record_of_a_measurement(inner: Inner) -> None:
    run(inner, RAID)
    (measured,) = inner.records("measured")
    for each in measured["runs"]:
        assert [one["name"] for one in each["seen"]["drives"]] == each["members"]
        assert each["seen"]["array"]["device"]["counted"] == each["seen"]["array"]["device"]["asked"]


def with_amplification(array: str) -> str:
    return suite(f'default="{array}"', iops=("steady_iops", WRITES), flash=("write_amplification", WRITES))


@pytest.mark.parametrize(("trouble", "failed"), [("flash", 0), ("flash amplified:SSDQ0003", 1)])
@pytest.mark.parametrize("array", [RAID, DRIVES])
def test_write_amplification_is_judged_by_the_drives_counts(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, array: str, trouble: str, failed: int
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    inner.pytester.makepyfile(test_promise=with_amplification(array))
    (inner.pytester.path / "acme.toml").write_text(SPEC + promise(claim="write_amplification", at_most="3"))
    result = inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", "--ssd-protocol=quick")
    result.assert_outcomes(passed=2 - failed, failed=failed)
    (verdict,) = [record for record in inner.records("verdict") if record["claim"] == "write_amplification"]
    assert verdict["outcome"] == ("fail" if failed else "pass")
    if failed and array == DRIVES:
        assert verdict["worst"] == "SSDQ0003"


@pytest.mark.parametrize(("trouble", "limit"), [("", "3"), ("flash unlogged:SSDQ0002", "3"), ("flash", "")])
def test_unknown_write_amplification_is_skipped_with_the_reason(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, limit: str
) -> None:
    """Drives that do not count, one of them, and counts that nobody has read."""
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    inner.pytester.makepyfile(test_promise=with_amplification(DRIVES))
    promised = promise(claim="write_amplification", at_most=limit) if limit else ""
    (inner.pytester.path / "acme.toml").write_text(SPEC + promised)
    inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", "--ssd-protocol=quick").assert_outcomes(
        passed=1, skipped=1
    )
    assert "SSDQ0002" in inner.cases()[f"test_flash[{DRIVES}-{WRITES_ID}]"].message
