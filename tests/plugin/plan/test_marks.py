from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

MODULE = """
    import pytest
    from pytest_ssdqual import Workload

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4096", 1)

    @pytest.mark.ssd_array({mark})
    @pytest.mark.ssd_workload({workloads})
    def test_it({fixtures}):
        pass
"""


def module(mark: str, workloads: str = "READS", fixtures: str = "ssd_geometry, ssd_workload, ssd_array") -> str:
    return MODULE.format(mark=mark, workloads=workloads, fixtures=fixtures)


#: Arguments of the mark, the number of drives, and the arrays.
WIDTHS = [
    ('"raid5"', 5, ["raid5x3", "raid5x4", "raid5x5"]),
    ('"raid10"', 7, ["raid10x4", "raid10x6"]),
    ('"raid6"', 4, ["raid6x4"]),
    ('"raid1"', 3, ["raid1x2", "raid1x3"]),
    ('"raid0"', 2, ["raid0x2"]),
    ('"drive"', 9, ["drivex9"]),
    ('"drive", widths=[1]', 9, ["drivex1"]),
    ('"raid5", failed=1', 4, ["raid5x3-1failed", "raid5x4-1failed"]),
    ('"raid1", failed=2', 4, ["raid1x3-2failed", "raid1x4-2failed"]),
    ('default="drive,raid5x4,raid0"', 6, ["drivex6", "raid0x6", "raid5x4"]),
    ('"raid5", widths=range(3, 9, 2)', 9, ["raid5x3", "raid5x5", "raid5x7"]),
    ('"raid5", most=2', 6, ["raid5x3", "raid5x6"]),
    ('"raid5", most=2', 3, ["raid5x3"]),
    ('"raid5", most=None', 4, ["raid5x3", "raid5x4"]),
    ('"raid5", most=3', 8, ["raid5x3", "raid5x5", "raid5x8"]),
    ('"raid5", most=1', 8, ["raid5x8"]),
    ('"raid5", most=1, settings=("c16k-t2",)', 4, ["raid5x4-c16k-t2"]),
    ('default="raid5x3-s256,raid0-c16k"', 4, ["raid0x4-c16k", "raid5x3-s256"]),
    ('"raid10", most=3', 8, ["raid10x4", "raid10x6", "raid10x8"]),
    ('default="raid5,raid0x2", most=2', 6, ["raid0x2", "raid5x3", "raid5x6"]),
    ('"raid1", widths=range(2, 5), most=2', 8, ["raid1x2", "raid1x4"]),
    ('"raid5", failed=1, most=2', 5, ["raid5x3-1failed", "raid5x5-1failed"]),
    ('"drive", widths=[1, 4, 8], most=2', 8, ["drivex1", "drivex8"]),
]


@pytest.mark.parametrize("drives", sorted({drives for _, drives, _ in WIDTHS}))
def test_every_width_that_can_be_built(inner: Inner, drives: int) -> None:
    """One session has all marks that are tested with so many drives, each in a module of its own."""
    cases = {f"test_{index}": (mark, ids) for index, (mark, count, ids) in enumerate(WIDTHS) if count == drives}
    inner.pytester.makepyfile(**{name: module(mark) for name, (mark, _) in cases.items()})
    lines = inner.run(f"--ssd-devices=lab:{drives}", "--collect-only", "-q").outlines
    for name, (mark, ids) in cases.items():
        found = "\n".join(line.partition("::test_it")[2] for line in lines if line.startswith(f"{name}.py::"))
        assert "\n".join(f"[{each}-randread_4k_qd8]" for each in ids) in found, mark


@pytest.mark.parametrize(
    ("mark", "fixtures", "drives", "name", "reason"),
    [
        ('"raid10"', "ssd_geometry", 3, "raid10", "raid10 needs at least 4 drives, 3 given"),
        ('"raid5", widths=[8]', "ssd_geometry", 5, "raid5x8", "needs 8 drives, 5 given"),
        ('"raid10"', "_ssd_widths", 5, "raid10", "needs two widths of raid10 (6 drives), 5 given"),
        ('"raid5", most=2', "_ssd_widths", 3, "raid5", "needs two widths of raid5 (4 drives), 3 given"),
    ],
)
def test_what_cannot_be_built_is_skipped_with_its_numbers(
    inner: Inner, mark: str, fixtures: str, drives: int, name: str, reason: str
) -> None:
    inner.pytester.makepyfile(module(mark, fixtures=fixtures))
    inner.run(f"--ssd-devices=lab:{drives}").assert_outcomes(skipped=1)
    case = inner.cases()[f"test_it[{name}]"]
    assert (case.outcome, case.message) == ("skipped", reason)


def test_a_workload_has_one_name_however_it_is_written(inner: Inner) -> None:
    inner.pytester.makepyfile(module('"raid5"', 'READS, WRITES, Workload("randwrite", "4k", 1)'))
    inner.run("--ssd-devices=lab:3", "--collect-only", "-q").stdout.fnmatch_lines(
        ["*::test_it[[]raid5x3-randwrite_4k_qd1]", "*::test_it[[]raid5x3-randread_4k_qd8]", ""], consecutive=True
    )


@pytest.mark.parametrize(
    ("mark", "workloads", "word"),
    [
        ('"raid4"', "READS", "'raid4' is not"),
        ('"raid5"', '"randread"', "ssd_workload takes pytest_ssdqual.Workload, not 'randread'"),
        ('"raid5"', "", "ssd_workload(*workloads)"),
    ],
)
def test_a_mark_that_makes_no_sense_is_one_sentence(inner: Inner, mark: str, workloads: str, word: str) -> None:
    """With drives, and an array also without."""
    inner.pytester.makepyfile(module(mark, workloads))
    for drives in [("--ssd-devices=lab:4",), *([()] if "raid4" in mark else [])]:
        result = inner.run(*drives)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        (sentence,) = [line for line in result.errlines if line]
        assert "::test_it: " in sentence
        assert word in sentence
        text = result.stdout.str() + result.stderr.str()
        assert "Traceback" not in text
        assert "continue with" not in text


@pytest.mark.parametrize("name", ["ssd_raid", "sdd_array"])
def test_a_misspelt_mark_is_found_at_collection(inner: Inner, name: str) -> None:
    inner.pytester.makepyfile(module('"raid5"').replace("mark.ssd_array", f"mark.{name}"))
    loose = ("-o", "strict=false", "-o", "strict_markers=false", "-W", "ignore")
    result = inner.run("--ssd-devices=lab:4", "--collect-only", *loose)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"unknown mark {name}; " in result.stderr.str()
    assert "'ssd_array'?" in result.stderr.str()
    of_others = ("-o", f"markers={name}: of another plugin")
    assert inner.run("--ssd-devices=lab:4", "--collect-only", *loose, *of_others).ret == pytest.ExitCode.OK


def test_marks_of_others_are_left_alone(inner: Inner) -> None:
    inner.pytester.makepyfile(module('"raid5"') + "\n    @pytest.mark.ssd_aray\n    def test_other(): pass")
    assert inner.run("-o", "strict=false", "-W", "ignore", "--collect-only").ret == pytest.ExitCode.OK


def test_our_fixtures_without_our_marks_say_which(inner: Inner) -> None:
    inner.pytester.makepyfile("def test_it(ssd_run): pass")
    inner.run("--ssd-devices=lab:3").assert_outcomes(errors=1)
    (case,) = inner.cases().values()
    assert "needs the mark" in case.message


@pytest.mark.parametrize("fixture", ["ssd_read_back", "ssd_erasure", "ssd_power_cuts"])
def test_what_is_about_bare_drives_takes_no_arrays(inner: Inner, fixture: str) -> None:
    inner.pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.ssd_array("raid5")
        def test_data({fixture}):
            assert {fixture}
        """
    )
    result = inner.run("--ssd-devices=lab:4", "--collect-only")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"{fixture} needs the mark" in result.stderr.str()
