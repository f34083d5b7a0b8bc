"""Workload sets, rounds, saturations, rebuilds and drives side by side, from the marks to the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.suite import suite
from support.fakes.inner_session import ids

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

#: Tests without a limit are measured, too.
ALL = "-o", "ssd_measure_unpromised=true"
SUITE = """
    import pytest
    from pytest_ssdqual import Rounds, Tracked, Workload, WorkloadSet

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    STREAM = Workload("read", "128k", 8)
    DEPTHS = WorkloadSet("depths", tuple(READS.at(depth) for depth in (1, 2, 4)))
    LOOP = Rounds("rounds", (READS, WRITES), (Tracked(WRITES, "steady_iops"),), fill_bs="1m")
    pytestmark = pytest.mark.ssd_array(default="raid0x2")

    def judged(claim, subject, sla):
        verdict = sla.judge(claim, subject)
        assert verdict

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_workload(STREAM, READS)
    def test_alone(ssd_run, ssd_sla):
        judged("steady_iops", ssd_run, ssd_sla)

    @pytest.mark.ssd_promise("qd_gain")
    @pytest.mark.ssd_workload_set(DEPTHS)
    def test_series(ssd_runs, ssd_sla):
        assert [run.workload.qd_per_drive for run in ssd_runs] == [1, 2, 4]
        judged("qd_gain", ssd_runs, ssd_sla)

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_rounds(LOOP)
    def test_cell(ssd_run, ssd_sla):
        judged("steady_iops", ssd_run, ssd_sla)

    @pytest.mark.ssd_rounds(LOOP)
    def test_loop(ssd_rounds):
        assert ssd_rounds

    @pytest.mark.ssd_promise("cliff_after")
    @pytest.mark.ssd_workload(WRITES)
    def test_saturation(ssd_saturation, ssd_sla):
        judged("cliff_after", ssd_saturation, ssd_sla)

    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_array("raid5", widths=[3], failed=1)
    @pytest.mark.ssd_workload(READS)
    def test_degraded(ssd_run, ssd_sla):
        judged("steady_iops", ssd_run, ssd_sla)

    @pytest.mark.ssd_promise("rebuild_time")
    @pytest.mark.ssd_array("raid5", widths=[3], failed=1)
    @pytest.mark.ssd_workload(READS)
    def test_rebuild(ssd_rebuild, ssd_sla):
        judged("rebuild_time", ssd_rebuild, ssd_sla)
"""
SPEC = """
    [product]
    name = "ACME 9"
    models = []
    [[figure]]
    rw = "randread"
    bs = "4k"
    queue_depths = [8]
    iops = 200
    source = "a paper"
    [[promise]]
    claim = "steady_iops"
    workload = "randread_*"
    min_percent_of_spec = 80
    [[promise]]
    claim = "steady_iops"
    workload = "randwrite_*"
    relative_to = "randread_4k_qd8"
    at_least = "50 %"
    [[promise]]
    claim = "qd_gain"
    workload = "*"
    at_least = 100
    [[promise]]
    claim = "rebuild_time"
    at_most = "5 min"
"""


@pytest.fixture
def acme(inner: Inner) -> str:
    inner.pytester.makepyfile(test_methods=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    return "--ssd-spec=acme.toml"


def test_a_purge_of_its_own_comes_first_and_a_rebuild_last(inner: Inner, acme: str) -> None:
    result = inner.run("--ssd-devices=lab:3", acme, *ALL, "--collect-only", "-q")
    assert ids(result) == [
        "test_saturation[raid0x2-randwrite_4k_qd8]",
        "test_cell[raid0x2-rounds-randread_4k_qd8]",
        "test_cell[raid0x2-rounds-randwrite_4k_qd8]",
        "test_loop[raid0x2-rounds]",
        "test_series[raid0x2-depths]",
        "test_alone[raid0x2-randread_4k_qd8]",
        "test_alone[raid0x2-read_128k_qd8]",
        "test_degraded[raid5x3-1failed-randread_4k_qd8]",
        "test_rebuild[raid5x3-1rebuilding-randread_4k_qd8]",
    ]
    rows = [line.split() for line in result.outlines if line.startswith("  raid")]
    names = ["raid0x2 saturation", "raid0x2 rounds", "raid0x2", "raid5x3-1failed", "raid5x3-1rebuilding"]
    assert [" ".join(row[: len(name.split())]) for row, name in zip(rows, names, strict=True)] == names
    assert [row[len(name.split())] for row, name in zip(rows, names, strict=True)] == ["1", "2", "5", "1", "1"]


def test_each_is_measured_once_on_as_few_arrays_as_possible(inner: Inner, acme: str) -> None:
    inner.run("--ssd-devices=lab:3", acme, *ALL)
    assert [record["geometry"] for record in inner.records("array_created")] == ["raid0x2"] * 3 + ["raid5x3"]
    assert [(record["geometry"], record["pattern"]) for record in inner.records("conditioned")] == [
        ("raid0x2", "random"), ("raid0x2", "sequential"), ("raid5x3", "random"),
    ]  # fmt: skip
    kinds = ("saturation", "loop", "measured", "rebuild")
    done = [(each["kind"], each["geometry"], each.get("workload", "")) for each in inner.records(*kinds)]
    assert len(done) == len(set(done)) == 1 + 1 + 5 + 1 + 1


def test_outcomes_and_what_is_kept_of_them(inner: Inner, acme: str) -> None:
    inner.run("--ssd-devices=lab:3", acme)
    cases = inner.cases()
    assert {name: case.outcome for name, case in cases.items()} == {
        "test_saturation[raid0x2-randwrite_4k_qd8]": "skipped",
        "test_cell[raid0x2-rounds-randread_4k_qd8]": "passed",
        "test_cell[raid0x2-rounds-randwrite_4k_qd8]": "passed",
        "test_loop[raid0x2-rounds]": "passed",
        "test_series[raid0x2-depths]": "failure",
        "test_alone[raid0x2-randread_4k_qd8]": "passed",
        "test_alone[raid0x2-read_128k_qd8]": "skipped",
        "test_degraded[raid5x3-1failed-randread_4k_qd8]": "skipped",  # promised of healthy arrays only
        "test_rebuild[raid5x3-1rebuilding-randread_4k_qd8]": "passed",
    }
    series = cases["test_series[raid0x2-depths]"]
    assert "randread_4k_qd1…randread_4k_qd4: 1.00" in series.message
    assert series.properties["ssd.curve"] == "depths"
    assert cases["test_cell[raid0x2-rounds-randread_4k_qd8]"].properties["ssd.loop"] == "rounds"
    relative = cases["test_cell[raid0x2-rounds-randwrite_4k_qd8]"].properties
    assert (relative["ssd.steady_iops_percent"], relative["ssd.limit_percent"]) == ("100", "50")
    assert relative["ssd.limit_source"].startswith("acme.toml promise[1]: ")


def test_a_figure_without_a_promise_is_noted_and_skipped(inner: Inner, acme: str) -> None:
    result = inner.run("--ssd-devices=lab:3", acme, *ALL, "-k", "saturation or read_128k")
    result.assert_outcomes(skipped=2)
    for case in inner.cases().values():
        assert case.message.startswith("measured ")
        assert case.properties["ssd.outcome"] == "observed"
        assert not any("limit" in name or "margin" in name for name in case.properties)
    assert [record["claim"] for record in inner.records("observation")] == ["cliff_after", "steady_iops"]
    assert inner.records("verdict") == []
    assert "claims:" not in result.stdout.str().split("storage qualification")[1]


def test_a_reference_outside_of_a_loop_is_measured_and_planned(inner: Inner, acme: str) -> None:
    tests = suite('"drive", widths=[1]', it=("steady_iops", '"randwrite", "4k", 8'))
    inner.pytester.makepyfile(test_relative=tests)
    result = inner.run("--ssd-devices=lab:1", acme, "test_relative.py")
    result.assert_outcomes(passed=1)
    assert {record["workload"] for record in inner.records("measured")} == {"randread_4k_qd8", "randwrite_4k_qd8"}


def test_a_slow_drive_is_named_among_those_side_by_side(
    inner: Inner, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0003=0.4")
    inner.run("--ssd-devices=lab:4", acme, "--ssd-arrays=drive", "-k", "alone and randread")
    (case,) = inner.cases().values()
    assert case.outcome == "failure"
    assert case.properties["ssd.drive"] == "SSDQ0003"
    assert case.properties["ssd.drives"].split() == [f"SSDQ000{number}" for number in range(1, 5)]
    assert case.properties["ssd.drives_values"].split() == ["300", "300", "120", "300"]
    (record,) = inner.records("verdict")
    assert record["worst"] == "SSDQ0003"


def test_the_sheet_of_a_suite_comes_before_that_of_the_drives(inner: Inner, acme: str) -> None:
    inner.pytester.makepyfile(
        """
        import pytest
        from pytest_ssdqual import Workload

        @pytest.mark.ssd_promise("steady_iops")
        @pytest.mark.ssd_published("ssdqual-sm300")
        @pytest.mark.ssd_array("drive")
        @pytest.mark.ssd_workload(Workload("randread", "4k", 32))
        def test_it(ssd_run, ssd_sla):
            verdict = ssd_sla.judge(ssd_run)
            assert verdict
        """
    )
    (inner.pytester.path / "acme.toml").write_text(SPEC.replace("queue_depths = [8]", "queue_depths = [32]"))
    inner.run("--ssd-devices=lab:1", acme, "-k", "test_it")
    (case,) = inner.cases().values()
    assert (case.outcome, case.properties["ssd.published_iops"]) == ("passed", "300")


def test_a_loop_that_does_not_settle_judges_no_drive(inner: Inner, acme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_NOISE", "0.4")
    inner.run("--ssd-devices=lab:2", acme, "-k", "cell or loop")
    cases = inner.cases()
    assert {case.outcome for name, case in cases.items() if name.startswith("test_cell")} == {"error"}
    assert "no steady state" in cases["test_cell[raid0x2-rounds-randread_4k_qd8]"].message
    assert cases["test_loop[raid0x2-rounds]"].outcome == "failure"


ODD = """
    import pytest
    from pytest_ssdqual import Rounds, Tracked, Workload, WorkloadSet

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    LOOP = Rounds("rounds", (READS,), (Tracked(READS, "steady_iops"),), fill_bs="1m")

    @pytest.mark.ssd_array("raid5", failed=1)
    {marks}
    def test_it({fixtures}): pass
"""


@pytest.mark.parametrize(
    ("marks", "fixtures", "sentence"),
    [
        (
            "@pytest.mark.ssd_workload_set(READS)",
            "ssd_runs",
            "the mark ssd_workload_set takes pytest_ssdqual.WorkloadSet, not the Workload randread_4k_qd8",
        ),
        ("", "ssd_runs", "the test needs the mark ssd_workload_set(*sets)"),
        (
            "@pytest.mark.ssd_rounds('rounds')",
            "ssd_run",
            "the mark ssd_rounds takes pytest_ssdqual.Rounds, not 'rounds'",
        ),
        (
            "@pytest.mark.ssd_rounds(LOOP)\n    @pytest.mark.ssd_workload(WRITES)",
            "ssd_run",
            "the rounds rounds do not have the workload randwrite_4k_qd8",
        ),
        ("@pytest.mark.ssd_workload(READS)", "ssd_rebuild, ssd_run", "the fixture ssd_rebuild cannot have ssd_run"),
        (
            "@pytest.mark.ssd_workload(READS)\n    @pytest.mark.ssd_published('acme')",
            "ssd_run",
            "the mark ssd_published(sheet) takes",
        ),
        (
            "@pytest.mark.ssd_workload(READS)\n    @pytest.mark.ssd_published()",
            "ssd_run",
            "data sheet (default, *), not nothing",
        ),
    ],
)
def test_marks_that_make_no_sense_are_one_sentence(inner: Inner, marks: str, fixtures: str, sentence: str) -> None:
    inner.pytester.makepyfile(ODD.format(marks=marks, fixtures=fixtures))
    result = inner.run("--ssd-devices=lab:4")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*::test_it: *{sentence.replace('[', '[[]')}*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert "the plan for" not in result.stdout.str()
    assert inner.records("tests_planned") == []


def test_a_loop_without_its_mark_says_which(inner: Inner) -> None:
    inner.pytester.makepyfile("import pytest\n@pytest.mark.ssd_array('raid0')\ndef test_it(ssd_rounds): pass")
    inner.run("--ssd-devices=lab:2").assert_outcomes(errors=1)
    (case,) = inner.cases().values()
    assert "ssd_array(level) and ssd_rounds(*rounds)" in case.message


def test_methods_run_on_what_the_user_names(inner: Inner, acme: str) -> None:
    args = "--ssd-devices=lab:4", acme, "--collect-only", "-q", "-k", "test_loop or degraded"
    named = inner.run(*args, "--ssd-arrays=drive,raid5x3-1failed,raid10")
    assert ids(named) == [
        "test_loop[drivex4-rounds]",
        "test_loop[raid10x4-rounds]",
        "test_loop[raid5x3-1failed-rounds]",
        "test_degraded[raid5x3-1failed-randread_4k_qd8]",  # of a level, and no method
    ]
    assert ids(inner.run(*args, "-o", "ssd_arrays=raid1"))[0] == "test_loop[raid1x4-rounds]"


def test_arrays_that_make_no_sense_are_a_usage_error(inner: Inner, acme: str) -> None:
    said = inner.refused("--ssd-devices=lab:4", acme, "--ssd-arrays=drive,raid7")
    assert said.startswith("--ssd-arrays=drive,raid7: 'raid7'")
    assert inner.refused("--ssd-devices=lab:4", acme, "--ssd-arrays=,").endswith("write e.g. drive,raid5x4,raid0")


def test_arrays_of_more_drives_are_skipped_with_both_numbers(inner: Inner, acme: str) -> None:
    inner.run("--ssd-devices=lab:3", acme, "--ssd-arrays=raid10,raid0x8", "-k", "test_loop")
    assert {(name, "3 given" in case.message) for name, case in inner.cases().items()} == {
        ("test_loop[raid10-rounds]", True),
        ("test_loop[raid0x8-rounds]", True),
    }
