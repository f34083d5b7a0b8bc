"""Content of a certificate, and the reasons why a run is not certified; reads the run folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual.units import format_clock
from pytest_ssdqual.report.ci import markdown
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import checksums
from pytest_ssdqual.report.run_folder.journal import MANIFEST, RECORDS
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.run_summary.overview import drive_marks, error_rates, run_seconds, utc
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.promise_matrix import MatrixRow, matrix

#: Files that can be written again from the evidence, after the checksums were.
WRITTEN_AGAIN = frozenset({REPORT, markdown.NAME})
#: Word of a claim without a failure in a run that is not certified.
NOT_CERTIFIED = "not certified"
#: Fields without a value, to fill in by hand.
FIELDS = ("Order", "Lot", "Operator")
SUM_OF_SUMS = f"SHA-256 of {checksums.SUMS}"


@dataclass(frozen=True, slots=True)
class DriveGroup:
    """Drives of one model and firmware."""

    model: str
    firmware: str
    capacity: str
    serials: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CertifiedClaim:
    """All promises of one claim on one level."""

    claim: str
    promises: int
    least_margin: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """Content of the page."""

    title: str
    verdict: str
    is_rejected: bool
    sentence: str
    #: Reasons why this is no certificate, a sentence each; empty for a certified run.
    reasons: tuple[str, ...]
    #: What the run was not to judge, or did not, a sentence each.
    remarks: tuple[str, ...]
    #: Name and value; an empty value is a line to write on.
    fields: tuple[tuple[str, str], ...]
    #: Without those of which nothing was measured.
    drives: tuple[DriveGroup, ...]
    #: What speaks against single drives, a phrase each.
    charges: tuple[str, ...]
    claims: tuple[CertifiedClaim, ...]
    facts: tuple[tuple[str, str], ...]
    error_rates: tuple[str, ...]

    @property
    def is_certified(self) -> bool:
        return not self.reasons


def certificate(folder: Path, given: Mapping[str, str]) -> Certificate:
    """Return the certificate of a run folder with these fields; ``OSError`` without records."""
    run = RunView.read(folder)
    idle = _not_tested(run)
    damage = checksums.changed(folder, WRITTEN_AGAIN, required=(RECORDS, MANIFEST))
    reasons = tuple(_reasons(run, damage))
    verdict = run.verdict
    return Certificate(
        title="Qualification record: not a certificate" if reasons else "Qualification certificate",
        verdict="Not certified" if reasons and verdict.fitness is Fitness.FIT else verdict.headline,
        is_rejected=verdict.fitness is Fitness.NOT_FIT,
        sentence=f"{verdict.counts.failed:,} of {verdict.counts.promises:,} promises failed."
        if reasons and not verdict.counts.worsened
        else verdict.sentence,
        reasons=reasons,
        remarks=tuple(_remarks(run, idle)),
        fields=tuple((name, given.get(name, "")) for name in FIELDS),
        drives=tuple(_drives(run, idle)),
        charges=tuple(f"{each.serial}: {'; '.join(each.charges)}" for each in drive_marks(run) if each.charges),
        claims=tuple(_claim(row, is_certified=not reasons) for row in matrix(run.judged).rows),
        facts=tuple(_facts(run, damage)),
        error_rates=error_rates(run),
    )


def _reasons(run: RunView, damage: tuple[str, ...]) -> Iterator[str]:
    verdict = run.verdict
    if not verdict.acceptance or verdict.fitness in (Fitness.UNDECIDED, Fitness.NO_VERDICT):
        yield verdict.use
    yield from verdict.gaps
    for sentence in damage:
        yield f"The evidence cannot be verified: {sentence}."


def _not_tested(run: RunView) -> dict[str, str]:
    """Return identities and names of the drives that no judged test loaded; empty if nothing was judged."""
    coverage, names = run.verdict.coverage, subject.serials(run.manifest)
    idle = coverage.untested if coverage.drives_judged else frozenset[str]()
    return {identity: serial or identity for identity, serial in names.items() if identity in idle}


def _remarks(run: RunView, idle: Mapping[str, str]) -> Iterator[str]:
    if idle:
        yield f"Not tested: {subject.named_drives(tuple(idle.values()))}, not certified and not listed."
    if skipped := run.verdict.counts.skipped:
        tests = "1 test was" if skipped == 1 else f"{skipped:,} tests were"
        yield f"{tests} skipped; the report of the run has the reasons."
    yield from (each for each in run.verdict.lines if each not in run.verdict.gaps)


def _claim(row: MatrixRow, *, is_certified: bool) -> CertifiedClaim:
    outcome = row.worst.outcome
    words = {Finding.PASS: "passed" if is_certified else NOT_CERTIFIED, Finding.FAIL: "failed"}
    return CertifiedClaim(
        f"{row.claim}, {row.level}", row.count, row.worst.worst.margin, words.get(outcome, outcome.value)
    )


def _drives(run: RunView, idle: Mapping[str, str]) -> Iterator[DriveGroup]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for drive in subject.manifest_drives(run.manifest):
        if subject.text(drive, "identity") in idle:
            continue
        capacity = subject.capacity(drive.get("size_bytes"))
        model, firmware = (subject.text(drive, name) or "unknown" for name in ("model", "firmware"))
        serial = subject.text(drive, "serial") or subject.text(drive, "identity")
        groups.setdefault((model, firmware, capacity), []).append(serial)
    for (model, firmware, capacity), serials in groups.items():
        yield DriveGroup(model, firmware, capacity, tuple(serials))


def _facts(run: RunView, damage: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield "Run", subject.text(run.manifest, "run_id") or run.folder.name
    yield "Judged", str(run.verdict.coverage)
    started, seconds = subject.text(run.manifest, "started"), run_seconds(run.manifest)
    took = f", run time {format_clock(seconds)}" if seconds is not None else ""
    yield "Measured", f"{utc(started)} UTC{took}" if started else "unknown"
    yield "Machine", ", ".join(run.machines) or "unknown"
    if run.write_caches:
        yield "Write caches", run.write_caches
    for name in ("protocol", "spec"):
        document = subject.table(run.manifest.get(name))
        yield name.capitalize(), f"{run.document(name) or 'unknown'}, SHA-256 {subject.text(document, 'sha256')}"
    state = "not verified" if damage else "every file verified"
    digest = checksums.digest(run.folder / checksums.SUMS) if (run.folder / checksums.SUMS).is_file() else "missing"
    yield "Evidence", f"{SUM_OF_SUMS} {digest}, {state}"
