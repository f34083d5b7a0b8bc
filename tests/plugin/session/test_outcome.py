from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import xmlschema
from junitparser import xunit2
from support.builders.sheet import lab_with_every_depth

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

SCHEMA = Path(__file__).parents[2] / "data/junit/jenkins-xunit.xsd"
BOTH = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])


@BOTH
def test_a_broken_promise_is_a_failure_in_one_sentence(inner: Inner, promises: str, workers: tuple[str, ...]) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, "-k", "iops", "--tb=short", *workers)
    result.assert_outcomes(failed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    failed = inner.cases()["test_iops[raid5x3-randread_4k_qd8]"]
    sentence = "steady IOPS of raid5x3 randread_4k_qd8: 900 IOPS (95 % CI 889…911 IOPS), limit 950 IOPS: FAIL by 5.3 %"
    assert (failed.outcome, failed.message) == ("failure", sentence)
    assert failed.text.startswith(f"{sentence}\n")
    assert f"E   assert {sentence}" in failed.text
    assert "(acme.toml promise[0])" in failed.text
    result.stdout.fnmatch_lines([f"FAILED test_promises.py::test_iops[[]raid5x3-randread_4k_qd8] - {sentence[:40]}*"])


@pytest.mark.parametrize("style", ["long", "native"])
def test_a_failure_is_told_in_every_style_of_tracebacks(inner: Inner, promises: str, style: str) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, "-k", "iops and randread", f"--tb={style}")
    result.assert_outcomes(failed=1)
    (failed,) = inner.cases().values()
    assert failed.message.startswith("steady IOPS")
    assert failed.text.startswith(failed.message) is (style != "native")


def test_what_cannot_be_decided_is_an_error(inner: Inner, promises: str) -> None:
    inner.run("--ssd-devices=lab:3", promises, "-k", "iops and randwrite")
    case = inner.cases()["test_iops[raid5x3-randwrite_4k_qd8]"]
    sentence = (
        "steady IOPS of raid5x3 randwrite_4k_qd8: 300 IOPS (95 % CI 296…304 IOPS), limit 300 IOPS: "
        "INCONCLUSIVE, on the limit itself"
    )
    assert case.outcome == "error"
    assert sentence in case.message
    assert case.properties["ssd.outcome"] == "inconclusive"


def test_what_cannot_be_decided_is_a_skip_if_the_site_wants_that(inner: Inner, promises: str) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, "-k", "iops and randwrite", "-o", "ssd_inconclusive=skip")
    result.assert_outcomes(skipped=1)
    case = inner.cases()["test_iops[raid5x3-randwrite_4k_qd8]"]
    assert case.outcome == "skipped"
    assert "INCONCLUSIVE" in case.message


def test_a_slow_drive_fails_what_it_touches(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0004=0.6")
    sheet = lab_with_every_depth(inner.pytester.path)
    inner.run("--ssd-devices=lab:4", sheet, inner.suite("raid5"), "-k", "(data_sheet or scaling) and randread_4k_qd8")
    assert inner.outcomes() == {
        "test_steady_state_iops_match_the_data_sheet[raid5x3-randread_4k_qd8]": "passed",
        "test_steady_state_iops_match_the_data_sheet[raid5x4-randread_4k_qd8]": "failure",
        "test_iops_grow_by_the_share_of_each_added_drive[raid5-randread_4k_qd8]": "failure",
        "test_no_width_falls_short_of_the_line[raid5-randread_4k_qd8]": "failure",
    }


def test_a_rig_that_breaks_is_an_error_and_the_rest_goes_on(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_BROKEN", "raid5x4")
    sheet = lab_with_every_depth(inner.pytester.path)
    inner.run("--ssd-devices=lab:5", sheet, inner.suite("raid5"), "-k", "randwrite_4k_qd8 or randread_4k_qd8")
    # Slope and deviation need all widths, the spread between widths the narrowest and the widest only.
    outcomes = inner.outcomes()
    broken = {name for name in outcomes if "[raid5x4-" in name or ("[raid5-" in name and "maximum_latency" not in name)}
    assert (len(outcomes), len(broken)) == (26, 8)
    assert outcomes == {name: "error" if name in broken else "passed" for name in outcomes}
    messages = {case.message for case in inner.cases().values() if case.outcome == "error"}
    refused = "fio on lab was refused by /dev/md100"
    assert len(messages) == 2
    assert all(f'{refused}"' in message for message in messages)
    # It was tried once, and whatever stood was stopped.
    created = [record["geometry"] for record in inner.records("array_created")]
    assert created == ["raid5x3", "raid5x4", "raid5x5"]
    assert len(inner.records("array_stopped")) == 3


@BOTH
def test_nothing_is_attempted_on_a_lost_machine(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", "3")
    sheet = lab_with_every_depth(inner.pytester.path)
    result = inner.run("--ssd-devices=lab:4", sheet, inner.suite("raid5"), *workers)
    result.assert_outcomes(passed=2, errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["!*Interrupted: lab is*"])
    assert sorted(inner.outcomes().values()) == ["error", "passed", "passed"]
    (ended,) = inner.records("run_ended")
    assert ended["exit_status"] == 2
    (error,) = inner.records("error")
    assert error["message"].startswith("lab is lost")


def test_the_whole_story_of_an_error_is_there_for_those_who_ask(inner: Inner) -> None:
    meta = inner.suite("meta")
    spec = "--ssd-spec=meta/meta.toml"
    inner.run("--ssd-devices=lab:3", spec, meta, "-k", "breaks_before", "-vv")
    (case,) = inner.cases().values()
    assert "cable was pulled" in case.message
    assert "def broken_rig(ssd_array)" in case.text
    inner.run("--ssd-devices=lab:3", spec, meta, "-k", "breaks_before")
    (case,) = inner.cases().values()
    assert "cable was pulled" in case.text


def test_evidence_rides_as_properties(inner: Inner, promises: str) -> None:
    inner.run("--ssd-devices=lab:4", promises)
    (suite,) = xunit2.JUnitXml.fromfile(str(inner.pytester.path / "junit.xml"))
    facts = {each.name: each.value for each in suite.properties()}  # type: ignore[no-untyped-call]
    assert facts["ssd.machine"] == "lab"
    assert facts["ssd.drives"].split() == [f"SSDQ000{number}" for number in range(1, 5)]
    found = inner.cases()["test_iops[raid5x4-randread_4k_qd8]"].properties
    assert (found["ssd.steady_iops"], found["ssd.limit_iops"], found["ssd.outcome"]) == ("1200", "950", "pass")
    assert found["ssd.raw"] == "fio/raid5x4-randread_4k_qd8-run.json.gz"
    swept = inner.cases()["test_scaling[raid5-randread_4k_qd8]"].properties
    assert swept["ssd.geometry"] == "raid5x3 raid5x4"


@BOTH
def test_without_properties_strict_consumers_take_the_file(
    inner: Inner, promises: str, workers: tuple[str, ...]
) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, "-o", "ssd_junit_properties=false", *workers)
    result.assert_outcomes(failed=1, errors=1, skipped=2)
    xmlschema.XMLSchema(SCHEMA).validate(inner.pytester.path / "junit.xml")
    assert not any(case.properties for case in inner.cases().values())


ORDINARY = """
    import pytest

    @pytest.fixture(scope="session", autouse=True)
    def rig():
        yield
        if BREAKS:
            from pytest_ssdqual.rig.machine.machine import RigError
            raise RigError("the rig broke")

    def test_raises():
        raise ValueError("mine")

    def test_refuses():
        raise pytest.UsageError("mine")

    @pytest.mark.xfail
    def test_expects():
        raise pytest.UsageError("mine")
"""


def test_reports_of_other_tests_of_a_session_are_left_alone(inner: Inner) -> None:
    inner.pytester.makepyfile(ORDINARY.replace("BREAKS", "False"))
    result = inner.run("--ssd-devices=lab:3")
    result.assert_outcomes(failed=2, xfailed=1)
    assert inner.outcomes() == {"test_raises": "failure", "test_refuses": "failure", "test_expects": "skipped"}


def test_a_rig_that_breaks_at_the_end_of_other_tests_is_an_error(inner: Inner) -> None:
    """A fixture of the session ends after the last test, which may be about no drive."""
    inner.pytester.makepyfile(ORDINARY.replace("BREAKS", "True"))
    inner.run("--ssd-devices=lab:3", "-k", "expects").stdout.fnmatch_lines(["ERROR *test_expects*rig broke"])
