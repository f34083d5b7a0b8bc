"""What others are told of a run when it ends: made, sealed, handed on, and never in the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.plugin.session import artefacts
from pytest_ssdqual.report.ci import markdown, openmetrics
from pytest_ssdqual.report.run_folder.checksums import digest, read

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

LAB = "--ssd-devices=lab:3"
#: Two of the tests break their promise, two end in an error.
META = ("--ssd-spec=meta/meta.toml", "meta")


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a step, in which something else has been said already."""
    path = tmp_path / "step.md"
    path.write_text("# before")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


@pytest.fixture
def kept(inner: Inner, promises: str) -> tuple[str, ...]:
    """A test of a promise that any drive keeps."""
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="1 IOPS"))
    return LAB, promises, "-k", "test_iops and randread"


def test_the_summary_is_sealed_and_given_to_the_job(inner: Inner, step: Path) -> None:
    inner.suite("meta")
    result = inner.run(LAB, *META, "-n1")
    path = inner.folder() / "summary.md"
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert read(path.parent)["summary.md"] == digest(path)
    assert path.read_text().startswith("## Failed, ")
    assert "the cable was" in path.read_text()
    assert step.read_text() == "# before\n" + path.read_text()


def test_a_run_without_a_test_says_so(inner: Inner, promises: str, step: Path) -> None:
    result = inner.run(LAB, promises, "-k", "nothing_of_this_name", "--ssd-page=yes")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    for path in (inner.folder() / "summary.md", inner.folder() / "report.html", step):
        assert "No test was" in path.read_text()


def test_a_summary_that_cannot_be_made_is_one_sentence(
    inner: Inner, kept: tuple[str, ...], step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is not told an earlier one."""

    def broken(path: Path) -> str:
        (path / "summary.md").write_text("of an earlier session")
        raise RuntimeError("no")

    monkeypatch.setattr(markdown, "text", broken)
    result = inner.run(*kept)
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("(RuntimeError: no)") == 1
    assert step.read_text() == "# before"
    assert "records.jsonl" in read(inner.folder())


def test_a_job_that_cannot_be_told_is_one_sentence(inner: Inner, kept: tuple[str, ...], step: Path) -> None:
    step.unlink()
    step.mkdir()
    result = inner.run(*kept)
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("(GITHUB_STEP_SUMMARY) could not") == 1
    assert "summary.md" in read(inner.folder())


def test_github_shows_nothing_of_what_is_too_long(
    inner: Inner, kept: tuple[str, ...], step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artefacts, "STEP_BYTES", 500)
    result = inner.run(*kept)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["the job summary*500)"])
    assert step.read_text() == "# before"


def test_metrics_and_the_file_of_a_step_are_written_when_the_run_ends(
    inner: Inner, kept: tuple[str, ...], step: Path
) -> None:
    step.unlink()
    (inner.pytester.path / "metrics").mkdir()
    inner.run(*kept, "--ssd-openmetrics=metrics/ssdqual.prom")
    (path,) = (inner.pytester.path / "metrics").iterdir()
    lines = path.read_text().splitlines()
    assert path.name == "ssdqual.prom"
    assert 'ssdqual_run_exit_status{machine="lab"} 0' in lines
    assert 'ssdqual_run_claims{machine="lab",outcome="pass"} 1' in lines
    assert lines[-1] == "# EOF"
    assert path.name not in read(inner.folder())
    assert step.read_text() == "\n" + (inner.folder() / "summary.md").read_text()


def test_metrics_that_cannot_be_written_are_one_sentence(
    inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(openmetrics, "write", full)
    result = inner.run(*kept, "--ssd-openmetrics=ssdqual.prom")
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("ssdqual.prom could not") == 1
    assert "summary.md" in read(inner.folder())


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("nowhere/x.prom", "--ssd-openmetrics=nowhere/x.prom: the folder "),
        (".", "--ssd-openmetrics=.: a folder; name a file in it"),
    ],
)
def test_where_metrics_cannot_go_is_said_before_hours_are_spent(inner: Inner, file: str, sentence: str) -> None:
    assert inner.refused(LAB, f"--ssd-openmetrics={file}").startswith(sentence)
    assert not (inner.pytester.path / "ssdqual-runs").exists()
