"""The page at the end of a run: made, sealed, named, and never in the way."""

from __future__ import annotations

import signal
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import jinja2  # noqa: F401 (see conftest: pytester forgets what is first imported inside)
import matplotlib.figure  # noqa: F401
import pytest
from support.builders.report_page import Reader
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.plugin.session import artefacts
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.html.run_page import Drawn, draw
from pytest_ssdqual.report.run_folder.checksums import digest, read
from pytest_ssdqual.report.run_summary.fitness import Fitness

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

INTERRUPTED = "run was interrupted"
YES = ("--ssd-devices=lab:3", "--ssd-page=yes")
#: Two of the tests break their promise, two end in an error.
META = ("--ssd-spec=meta/meta.toml", "meta")


@pytest.fixture(autouse=True)
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take their time, and are tested where they are drawn."""
    monkeypatch.setattr("pytest_ssdqual.report.html.run_page.draw", lambda story, failures: Drawn())


@pytest.fixture
def kept(inner: Inner, promises: str) -> tuple[str, ...]:
    """Two tests of promises that any drive keeps."""
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="1 IOPS"))
    return promises, "-k", "test_iops"


def test_a_run_that_failed_has_a_page_that_is_sealed_with_it(inner: Inner) -> None:
    inner.suite("meta")
    result = inner.run(*YES, *META)
    path = inner.folder() / "report.html"
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert read(path.parent)["report.html"] == digest(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # The terminal may break the line of a long path.
    assert f"report: {path}" in result.stdout.str()
    text = path.read_text()
    assert inner.verdict().sentence in text
    assert "cable was pulled" in text
    assert "exit status 1" in text


def test_the_charts_of_a_run_are_on_its_page(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ssdqual.report.html.run_page.draw", draw)
    inner.run("--ssd-devices=lab:4", "--ssd-page=yes", promises)
    reader = Reader.of((inner.folder() / "report.html").read_text())
    assert len(reader.all("svg")) == len(reader.all("figure")) >= 3
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {tag for tag, _ in reader.elements}.isdisjoint({"foreignobject", "iframe", "object", "link"})


def test_it_can_be_turned_off_for_a_run_and_for_a_site(inner: Inner, promises: str) -> None:
    for option in ("--ssd-page=no", "--ssd-page=NO"):
        result = inner.run("--ssd-devices=lab:3", option, promises, "--override-ini=ssd_page=true")
        result.stdout.no_fnmatch_line("*report.html*")
    inner.run("--ssd-devices=lab:3", promises)  # the site's ini file says no
    found = list((inner.pytester.path / "ssdqual-runs").iterdir())
    assert len(found) == 3
    assert [each for each in found if (each / "report.html").exists()] == []


def test_it_is_there_unless_somebody_turned_it_off(inner: Inner, promises: str) -> None:
    inner.pytester.makeini("[pytest]\nfilterwarnings = error\n")
    inner.run("--ssd-devices=lab:3", promises)
    assert (inner.folder() / "report.html").exists()


def test_other_words_are_refused(inner: Inner) -> None:
    result = inner.run("--ssd-devices=lab:3", "--ssd-page=perhaps")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ssd-page*invalid choice: 'perhaps'*"])


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("a font is missing"), "(RuntimeError: a font is missing)"),
        (OSError(28, "No space left on device"), "(No space left on device)"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_page_that_cannot_be_made_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, sentence: str
) -> None:
    monkeypatch.setattr(run_page, "write", Mock(side_effect=error))
    assert sentence in artefacts.make_page(tmp_path, run_page.write).sentence


def test_a_page_that_cannot_be_made_changes_nothing_else(
    inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_page, "write", Mock(side_effect=KeyboardInterrupt()))
    result = inner.run(*YES, *kept)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*no report.html: *interrupted*"])
    assert "report.html" not in read(inner.folder())
    assert "records.jsonl" in read(inner.folder())
    assert [record["exit_status"] for record in inner.records("run_ended")] == [0]


def test_a_cancelled_job_is_in_order_until_the_folder_is_sealed(
    inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = []

    def look(path: Path) -> Path:
        handlers.append(signal.getsignal(signal.SIGTERM))
        return path / "report.html"

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(run_page, "write", look)
    inner.run(*YES, *kept)
    assert handlers
    assert before not in handlers
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_page_is_drawn_after_arrays_are_gone(
    inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int, bool, list[str]]] = []

    def look(path: Path) -> Path:
        planned, stopped = (len(inner.records(kind)) for kind in ("array_planned", "array_stopped"))
        after = [str(record["when"]) for record in inner.records("health")]
        seen.append((planned, stopped, '"exit_status": 0' in (path / "manifest.json").read_text(), after[-1:]))
        assert inner.records("run_ended")
        return path / "report.html"

    monkeypatch.setattr(run_page, "write", look)
    inner.run(*YES, *kept)
    ((planned, stopped, ended, last),) = seen
    assert planned == stopped > 0
    assert ended
    assert last == ["after"]


def test_an_interrupted_run_says_that_it_was(
    inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_INTERRUPTED_AT", "2")
    result = inner.pytester.runpytest_inprocess(
        "-p", "support.simulator.simulated_rig", *YES, *kept, no_reraise_ctrlc=True
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    path = inner.folder() / "report.html"
    assert INTERRUPTED in path.read_text()
    assert read(path.parent)["report.html"] == digest(path)


def test_a_resumed_run_gets_a_new_page(inner: Inner, kept: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MEDIA", "media.json")
    monkeypatch.setenv("SIMULATED_INTERRUPTED_AT", "3")
    inner.pytester.runpytest_subprocess("-p", "support.simulator.simulated_rig", *YES, *kept)
    path = inner.folder() / "report.html"
    assert INTERRUPTED in path.read_text()
    monkeypatch.delenv("SIMULATED_INTERRUPTED_AT")
    result = inner.run(*YES, *kept, "--ssd-resume=last")
    assert result.ret == pytest.ExitCode.OK
    assert INTERRUPTED not in path.read_text()
    assert inner.verdict().counts.passed == 2
    assert inner.verdict().sentence in path.read_text()
    assert read(path.parent)["report.html"] == digest(path)


def test_a_test_that_fails_for_another_reason_is_told(inner: Inner, promises: str) -> None:
    inner.pytester.makepyfile(
        test_own="""
        import pytest
        from pytest_ssdqual import Workload

        @pytest.mark.ssd_array("raid5", widths=[3])
        @pytest.mark.ssd_workload(Workload("randread", "4k", 8))
        def test_own(ssd_run):
            assert ssd_run.iops < 0, "of no promise"
    """
    )
    inner.run(*YES, promises, "test_own.py", "-k", "test_own")
    (record,) = inner.records("failed")
    assert "of no promise" in str(record["message"])
    text = (inner.folder() / "report.html").read_text()
    verdict = inner.verdict()
    assert verdict.fitness is Fitness.NO_VERDICT
    assert verdict.sentence in text


def test_a_folder_that_is_gone_is_a_sentence_too(tmp_path: Path) -> None:
    paged = artefacts.make_page(tmp_path, run_page.write)
    assert paged.is_failed
    assert "(No such file" in paged.sentence
