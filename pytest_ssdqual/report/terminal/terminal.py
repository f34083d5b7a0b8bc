"""What pytest's terminal shows of a run: the header and the table, written through pytest's own writer.

Colours are names that the writer resolves or drops, so ``--color``, ``NO_COLOR`` and log files work as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Protocol

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.evidence import multiplicity
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.multiplicity import Tally
from pytest_ssdqual.report.terminal.summary import table
from pytest_ssdqual.report.view.tables import INDENT, Line

#: Models of a whole rack are one line.
LINE_CHARACTERS = 10_000


class Writer(Protocol):
    """What of pytest's ``TerminalReporter`` is needed; all of it is public."""

    def write_line(self, line: str, **markup: bool) -> None: ...
    def write_sep(self, sep: str, title: str | None = None, **markup: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Header:
    """What a run is about."""

    #: Model of each drive; None where a drive does not say.
    models: tuple[str | None, ...]
    machine: str
    protocol: str
    acceptance: bool
    spec: str | None
    run_folder: Path | None
    #: Sentences of the guard that must be read before the run is trusted.
    remarks: tuple[str, ...] = ()
    #: Expected number of drives, as a phrase.
    expected: str = ""


def header_lines(header: Header) -> list[str]:
    """For ``pytest_report_header``: one line, and one for each remark."""
    protocol = header.protocol if header.acceptance else f"{header.protocol} (not for acceptance)"
    parts = [
        f"{_drives(header.models)} on {header.machine}",
        *filter(None, [header.expected]),
        f"protocol {protocol}",
        f"spec {header.spec}" if header.spec else "no data sheet",
    ]
    if header.run_folder:
        parts.append(f"run folder {header.run_folder}")
    told = (", ".join(parts), *header.remarks)
    return [safe_text.line(f"ssdqual: {each}", LINE_CHARACTERS) for each in told]


def write_table(
    writer: Writer,
    evidence: Sequence[Evidence],
    tally: Tally | None = None,
    *,
    width: int,
    verbosity: int,
    run_folder: Path | None,
    bay: str = "",
) -> None:
    """The section of ours in pytest's summary; nothing if nothing was judged.

    ``tally``: what is to be said of all verdicts together. ``bay``: which one, where there are several.
    """
    lines = table(evidence, width, verbosity)
    if not lines:
        return
    writer.write_sep("=", f"storage qualification{bay and f' of {bay}'}")
    write_lines(writer, lines)
    for sentence in multiplicity.lines(tally) if tally else ():
        for line in wrap(sentence, width, subsequent_indent=INDENT, break_on_hyphens=False):
            tell(writer, line)
    if run_folder:
        tell(writer, f"run folder: {run_folder}")


def write_lines(writer: Writer, lines: Iterable[Line]) -> None:
    for line in lines:
        tell(writer, line.text, **dict.fromkeys(line.markup, True))


def tell(writer: Writer, text: str, **markup: bool) -> None:
    """Write one line through pytest's reporter; no other code of this package does.

    A harmless sentence may be wrapped into lines, and one of these may begin with the command of a CI runner.
    """
    writer.write_line(safe_text.line(text, LINE_CHARACTERS), **markup)


def _drives(models: Sequence[str | None]) -> str:
    """``8 × INTEL SSDSC2BB480G4``, ``1 × A + 2 × B``."""
    names = [model or "unknown model" for model in models]
    return " + ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names)) or "no drives"
