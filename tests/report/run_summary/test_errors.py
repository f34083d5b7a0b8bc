from __future__ import annotations

from dataclasses import replace

from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.evidence.health import failed_in, of_failures
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.run_summary.errors import troubles


def test_tests_that_say_the_same_are_one_trouble(write_run: WriteRun) -> None:
    folder = write_run(
        record("error", 1, test="a", message="the cable was pulled"),
        record("error", 2, test="b", message="the cable was pulled"),
        record("failed", 3, test="c", message="assert 1 == 2"),
    )
    first, second = troubles(RunReader.read(folder))
    assert (first.tests, first.message, first.is_failure) == (("a", "b"), "the cable was pulled", False)
    assert (first.time, first.writer) == ("2026-01-01T00:00:01.000+00:00", "main")
    assert (second.tests, second.is_failure) == (("c",), True)


def test_an_undecided_verdict_is_not_an_error_as_well(write_run: WriteRun) -> None:
    undecided = replace(claimed(), outcome=Finding.INCONCLUSIVE)
    folder = write_run(
        judged(undecided, "a"),
        record("error", 1, test="a", message=undecided.sentence),
        record("error", 2, test="a", message="and the array could not be stopped"),
    )
    assert [each.message for each in troubles(RunReader.read(folder))] == ["and the array could not be stopped"]


def test_what_was_judged_after_all_is_no_trouble(write_run: WriteRun) -> None:
    folder = write_run(
        record("error", 1, test="a", message="the machine was lost"),
        record("error", 1, test="b", message="the machine was lost"),
        record("run_resumed", 2),
        judged(claimed(), "a", 2),
        record("error", 3, test="a", message="the array could not be stopped"),
    )
    assert [(each.tests, each.message) for each in troubles(RunReader.read(folder))] == [
        (("b",), "the machine was lost"),
        (("a",), "the array could not be stopped"),
    ]


def test_a_verdict_of_the_same_session_resolves_no_failure(write_run: WriteRun) -> None:
    """A subtest failed, and the test went on and judged its promise."""
    failed = record("failed", 1, test="a", message="figure a is wrong")
    for later in (judged(claimed(), "a", 2), record("passed", 2, test="a")):
        assert [each.tests for each in troubles(RunReader.read(write_run(failed, later)))] == [("a",)]


def test_what_cannot_be_judged_has_no_command(write_run: WriteRun) -> None:
    said = ["p99 latency of raid0x4 w cannot be judged: p99 needs 1,000 I/Os, there are 996", "the cable was pulled"]
    folder = write_run(*(record("error", at, test="t", message=each) for at, each in enumerate(said)),
                  record("failed", 3, test="c", message=said[0]))  # fmt: skip
    assert [(each.is_of_judging, each.title) for each in troubles(RunReader.read(folder))] == [
        (True, "A measurement could not be judged"),
        (False, "A measurement failed"),
        (False, "A test failed for another reason than a promise"),
    ]


def test_a_test_without_its_failed_drive_names_the_drive(write_run: WriteRun) -> None:
    died = of_failures("raid5x3", [FailedDrive("S2", ("it dropped out",), ())])
    folder = write_run(
        judged(died, "t[1]"),
        record("error", 1, test="a", message=f"raid5x3 was not measured: {failed_in('S2', 't[1]')}"),
        record("error", 2, test="b", message=f"raid5x3 was not measured: {failed_in('S20', 't[1]')}"),
        record("failed", 3, test="c", message=failed_in("S2", "t[1]")),
    )
    assert [each.drives for each in troubles(RunReader.read(folder))] == [("S2",), (), ()]
