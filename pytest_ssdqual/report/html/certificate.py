"""The certificate of a run for the files of buyer and seller: a page for print, as HTML or PDF.

It claims a pass only for a run that was for acceptance, complete and decided, and whose files are as SHA256SUMS has
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.erasure import ErasedDrive, ErasedDrives
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.ci import markdown
from pytest_ssdqual.report.html.page import REPORT, render
from pytest_ssdqual.report.run_folder import checksums, safe_files
from pytest_ssdqual.report.run_folder.journal import MANIFEST, RECORDS
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.run_summary.overview import drive_marks, error_rates, overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import promises, subject
from pytest_ssdqual.report.view.promises import matrix

#: Files that can be written again from the evidence, after the checksums were.
WRITTEN_AGAIN = frozenset({REPORT, markdown.NAME})
NO_PDF = (
    "a PDF needs weasyprint and its library Pango: pip install 'pytest-ssdqual[certificate]', or write a page for a "
    "browser to print with -o FILE.html"
)


class NoLibrary(ValueError):
    """weasyprint, or the library that it needs, is not installed; the message says what to do."""


@frozen
class Certificate:
    """Content of the page beside the view of the run."""

    run: RunView
    #: Reasons why this is no certificate, a sentence each; empty for a certified run.
    reasons: tuple[str, ...]
    #: Value by name; an empty value is a line to write on.
    fields: Mapping[str, str]
    #: Serial numbers by model, firmware and capacity, without the drives of which nothing was measured.
    drives: Mapping[str, Sequence[str]]
    not_tested: Sequence[str]
    #: The latest purge of each drive.
    erased: Sequence[ErasedDrive]
    #: Digest of ``SHA256SUMS``, and whether the files are as it has them.
    evidence: str

    @property
    def is_of_fit_product(self) -> bool:
        """True for a certificate of a run that is Fit."""
        return not self.reasons and self.run.verdict.fitness is Fitness.FIT


def certificate(folder: Path, fields: Mapping[str, str]) -> Certificate:
    """Return the certificate of a run folder with these fields; ``OSError`` without records."""
    run = RunView.read(folder)
    damage = checksums.changed(folder, WRITTEN_AGAIN, required=(RECORDS, MANIFEST))
    sums = folder / checksums.SUMS
    digest = checksums.digest(sums) if sums.is_file() else "missing"
    evidence = f"{digest}, {'not verified' if damage else 'every file verified'}"
    drives: dict[str, list[str]] = {}
    not_tested = []
    coverage = run.verdict.coverage
    for drive in run.manifest.drives:
        if coverage.drives_judged and drive.identity in coverage.untested:
            not_tested.append(drive.name)
        else:
            model, firmware = drive.model or "unknown", drive.firmware or "unknown"
            kind = f"{model}, firmware {firmware}, {format_capacity(drive.size_bytes)}"
            drives.setdefault(kind, []).append(drive.name)
    purges = RunReader.read(folder, "erased").contents(ErasedDrives, "erased")
    erased = {drive.name: drive for purge in purges for drive in purge.drives}
    return Certificate(run, tuple(_reasons(run, damage)), fields, drives, not_tested, [*erased.values()], evidence)


def html(content: Certificate) -> str:
    """Return the page."""
    run = content.run
    inspected = promises.inspected_drives(run.judged)
    return render(
        "certificate.html",
        "certificate.css",
        run=run,
        certificate=content,
        not_tested=subject.named_drives(content.not_tested),
        charged=[drive for drive in drive_marks(run) if drive.charges],
        claims=matrix(run.judged).rows,
        inspected=promises.inspection_matrix(inspected, only_deviating=True),
        conforming=tuple(promises.conforming(inspected)),
        facts=overview(run).facts,
        error_rates=error_rates(run),
    )


def write(content: Certificate, path: Path) -> None:
    """Write the page, as a PDF unless the name of the file ends with ``.html``.

    Raises ``NoLibrary`` for a PDF without weasyprint, and ``OSError`` if the file cannot be written.
    """
    page = html(content)
    safe_files.write_whole(path, page.encode() if path.suffix == ".html" else _pdf(page))


def _pdf(page: str) -> bytes:
    try:
        from weasyprint import HTML
    except (ImportError, OSError) as error:  # OSError without Pango
        raise NoLibrary(NO_PDF) from error
    document: bytes = HTML(string=page).write_pdf()
    return document


def _reasons(run: RunView, damage: Sequence[str]) -> Iterator[str]:
    verdict = run.verdict
    if not verdict.acceptance or verdict.fitness in (Fitness.UNDECIDED, Fitness.NO_VERDICT):
        yield verdict.use
    yield from verdict.gaps
    for phrase in damage:
        yield f"The evidence cannot be verified: {phrase}."
