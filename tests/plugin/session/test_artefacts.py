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
    assert path.read_text().startswith("## Failed, not for acceptance: 2 of 4 promises failed; 2 passed.")
    assert "- `the cable was pulled in meta/" in path.read_text()
    assert step.read_text() == "# before\n" + path.read_text()


def test_a_run_without_a_test_says_so(inner: Inner, promises: str, step: Path) -> None:
    result = inner.run(LAB, promises, "-k", "nothing_of_this_name", "--ssd-page=yes")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    for path in (inner.folder() / "summary.md", inner.folder() / "report.html", step):
        assert "No test was run." in path.read_text()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("no"), "summary.md could not be written (RuntimeError: no)"),
        (KeyboardInterrupt(), "summary.md was interrupted while it was written"),
    ],
)
def test_a_summary_that_cannot_be_made_is_one_sentence(
    inner: Inner,
    kept: tuple[str, ...],
    step: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    sentence: str,
) -> None:
    def broken(path: Path) -> str:
        raise error

    monkeypatch.setattr(markdown, "text", broken)
    result = inner.run(*kept)
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("could not be written") + result.stdout.str().count("interrupted") == 1
    assert sentence in result.stdout.str()
    assert step.read_text() == "# before"
    assert "records.jsonl" in read(inner.folder())


def test_a_job_that_cannot_be_told_is_one_sentence(inner: Inner, kept: tuple[str, ...], step: Path) -> None:
    step.unlink()
    step.mkdir()
    result = inner.run(*kept)
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("could not be written") == 1
    result.stdout.fnmatch_lines(["the job summary (GITHUB_STEP_SUMMARY) could not be written *"])
    assert "summary.md" in read(inner.folder())


def test_github_shows_nothing_of_what_is_too_long(
    inner: Inner, kept: tuple[str, ...], step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artefacts, "STEP_BYTES", 500)
    result = inner.run(*kept)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["the job summary *8 bytes already; GitHub takes at most 500)"])
    assert step.read_text() == "# before"


def test_a_file_that_is_not_there_is_made(inner: Inner, kept: tuple[str, ...], step: Path) -> None:
    step.unlink()
    inner.run(*kept)
    assert step.read_text() == "\n" + (inner.folder() / "summary.md").read_text()


def test_metrics_are_written_when_the_run_ends(inner: Inner, kept: tuple[str, ...]) -> None:
    (inner.pytester.path / "metrics").mkdir()
    inner.run(*kept, "--ssd-openmetrics=metrics/ssdqual.prom")
    (path,) = (inner.pytester.path / "metrics").iterdir()
    lines = path.read_text().splitlines()
    assert path.name == "ssdqual.prom"
    assert 'ssdqual_run_exit_status{machine="lab"} 0' in lines
    assert 'ssdqual_run_claims{machine="lab",outcome="pass"} 1' in lines
    assert lines[-1] == "# EOF"
    assert path.name not in read(inner.folder())


def test_metrics_that_cannot_be_written_are_one_sentence(
    inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(openmetrics, "write", full)
    result = inner.run(*kept, "--ssd-openmetrics=ssdqual.prom")
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("could not be written") == 1
    result.stdout.fnmatch_lines(["--ssd-openmetrics=*ssdqual.prom could not be written (No space left on device)"])
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


def test_metrics_need_drives(inner: Inner) -> None:
    assert inner.refused("--ssd-openmetrics=x.prom") == (
        "--ssd-openmetrics needs drives: add --ssd-devices or --ssd-bays"
    )


def test_an_earlier_summary_is_not_told_for_this_one(
    inner: Inner, kept: tuple[str, ...], step: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> str:
        (path / "summary.md").write_text("of an earlier session")
        raise RuntimeError("no")

    monkeypatch.setattr(markdown, "text", broken)
    inner.run(*kept)
    assert step.read_text() == "# before"
