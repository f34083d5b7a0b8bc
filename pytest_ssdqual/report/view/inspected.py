"""The receiving inspection as a matrix: drives down with their verdicts, readings across with their limits; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.inspection.checks import CHECKS
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, Part
from pytest_ssdqual.report.evidence.inspection import PREFIX, is_inspection
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.grid import shared
from pytest_ssdqual.report.view.tables import BROKEN, SEVERITY, Cell, MeasuredCell, State, Table, TableRow

WORDS = {Finding.PASS: "conforming", Finding.FAIL: "deviating", Finding.INCONCLUSIVE: "unknown"}


@dataclass(frozen=True, slots=True)
class InspectedDrive:
    """A drive with its readings by the names of the checks."""

    name: str
    #: Empty if the run folder does not have it.
    path: str
    readings: Mapping[str, Part]

    @property
    def outcome(self) -> Finding:
        """The worst one; drives whose readings have no limit conform."""
        outcomes = {part.outcome for part in self.readings.values()}
        return next((each for each in BROKEN if each in outcomes), Finding.PASS)

    @property
    def deviations(self) -> tuple[str, ...]:
        """``power on hours 9,204 h (≤ 24 h)``."""
        deviating = (each for each in self.readings.items() if each[1].outcome is Finding.FAIL)
        return tuple(f"{_label(name)} {part.reading}{_limit(part.bound)}" for name, part in deviating)


def drives(judged: Iterable[Judged]) -> tuple[InspectedDrive, ...]:
    """Return the inspected drives, those that deviate first."""
    readings: dict[tuple[str, str], dict[str, Part]] = {}
    for evidence in sorted((each.evidence for each in judged if is_inspection(each.evidence)), key=_order):
        for part in evidence.members:
            readings.setdefault((part.name, part.path), {})[evidence.claim.removeprefix(PREFIX)] = part
    inspected = [InspectedDrive(*drive, parts) for drive, parts in readings.items()]
    return tuple(sorted(inspected, key=lambda drive: SEVERITY.index(drive.outcome)))


def _order(evidence: Evidence) -> int:
    """Return the place of a check in the suite."""
    name = evidence.claim.removeprefix(PREFIX)
    return list(CHECKS).index(name) if name in CHECKS else len(CHECKS)


def caption(inspected: Sequence[InspectedDrive]) -> str:
    """Return ``Inspection of 8 drives: 6 conforming, 2 deviating``."""
    counts = Counter(drive.outcome for drive in inspected)
    outcomes = ", ".join(f"{counts[outcome]} {word}" for outcome, word in WORDS.items() if counts[outcome])
    return f"Inspection of {counted(len(inspected), 'drive')}: {outcomes}"


def matrix(inspected: Sequence[InspectedDrive], *, only_deviating: bool = False) -> Table:
    """Return a row for each drive with its verdict; ``only_deviating``: readings in which no drive deviates are left
    out.
    """
    names = [
        name
        for name in _names(inspected)
        if not only_deviating or any(part.outcome in BROKEN for part in _parts(inspected, name))
    ]
    bounds = [shared(part.bound for part in _parts(inspected, name)) for name in names]
    rows: list[TableRow] = [("limit", "", "", *bounds)] if any(bounds) else []
    for drive in inspected:
        verdict = State(WORDS.get(drive.outcome, drive.outcome.value), drive.outcome)
        cells = (_cell(drive.readings.get(name), bound) for name, bound in zip(names, bounds, strict=True))
        rows.append((drive.name, drive.path, verdict, *cells))
    return Table(("Drive", "Path", "Verdict", *map(_label, names)), tuple(rows), caption(inspected)).used()


def conforming(inspected: Sequence[InspectedDrive]) -> Iterator[str]:
    """Yield the readings with a maximum or minimum that no drive misses: ``temperature 34 °C…38 °C (≤ 60 °C)``, and
    the number of the others.
    """
    left, unlimited = 0, []
    for name in _names(inspected):
        parts = _limited(inspected, name)
        if not any(part.outcome in BROKEN for part in parts):
            bound = " or ".join(dict.fromkeys(part.bound for part in parts))
            if bound.startswith(("≤", "≥")):
                yield f"{_label(name)} {_span(parts)}{_limit(bound)}"
            elif bound:
                left += 1
            else:
                unlimited.append(_label(name))
    if left:
        yield f"and {left} more"
    if unlimited:
        yield f"without a limit: {', '.join(unlimited)}"


def _limited(inspected: Sequence[InspectedDrive], name: str) -> Sequence[Part]:
    """Return the readings that have a limit; all if none has: a SATA drive beside NVMe drives has no spare."""
    parts = _parts(inspected, name)
    return [part for part in parts if part.bound] or parts


def _names(inspected: Sequence[InspectedDrive]) -> list[str]:
    return list(dict.fromkeys(name for drive in inspected for name in drive.readings))


def _parts(inspected: Sequence[InspectedDrive], name: str) -> list[Part]:
    return [drive.readings[name] for drive in inspected if name in drive.readings]


def _cell(part: Part | None, bound: str) -> Cell:
    """Return a reading, with its limit where drives have different ones."""
    if part is None:
        return ""
    text = (part.reading or "unknown") + _limit("" if bound else part.bound)
    return MeasuredCell(text, "", part.outcome) if part.outcome in BROKEN else text


def _span(parts: Sequence[Part]) -> str:
    """Return the lowest and the highest reading."""
    ordered = sorted(parts, key=lambda part: part.figures.get("value") or 0.0)
    return "…".join(dict.fromkeys(part.reading for part in (*ordered[:1], *ordered[-1:])))


def _limit(bound: str) -> str:
    return f" ({bound})" if bound else ""


def _label(name: str) -> str:
    return name.replace("_", " ")
