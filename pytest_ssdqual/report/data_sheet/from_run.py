"""Writes a spec from the run of a reference drive: what was measured becomes what is published, with its source run.

Only figures that a data sheet can have are taken: claims about one measurement of drives side by side or of a whole
array. Of drives side by side it is the typical drive's (geometric mean), since a sheet describes the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.raid.geometry import ONE_DRIVE, Geometry
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.claims import Claim, Direction
from pytest_ssdqual.qual.spec.datasheet import QUANTITIES, descents
from pytest_ssdqual.qual.units import Unit, format_range
from pytest_ssdqual.report.compare.compared_run import DRIVES, ComparedFigure, ComparedRun, FigureKey
from pytest_ssdqual.rig.drives.topology import Drive

#: Significant digits of a written figure: an interval of a measurement is seldom narrower than 0.1 %.
DIGITS = 4
#: Per cent of a published figure that ``specs/default.toml`` promises where a sheet guarantees it.
GUARANTEED_PERCENT = 100


class NoSheet(ValueError):
    """No spec can be written from the run; the message says why."""


def text(run: ComparedRun) -> str:
    """Return the text of a spec file with the figures of ``run``.

    Raises ``NoSheet`` for a run of several models or sizes of drives, and for one without a figure that a sheet can
    have. The text is read back before it is returned, so ``spec.load`` accepts it.
    """
    drive = _reference(run)
    figures = list(_figures(run))
    if not figures:
        why = "what has no limit is measured only with ssd_measure_unpromised = true"
        raise NoSheet(f"{run.name} has no figure of a drive or of a whole array that a data sheet can publish: {why}")
    written = "\n".join([*_head(run, drive, len(figures)), *figures, *_promises(run)])
    name = "the written spec"
    toml.checked(specs.SpecDocument.model_validate, name, toml.loads(name, written))
    return written


def _reference(run: ComparedRun) -> Drive:
    """Return one of the drives, all of which are of one model and size."""
    drives = run.manifest.drives
    if not run.manifest.is_readable:
        raise NoSheet(f"the manifest of {run.name} is missing or damaged")
    kinds = {(drive.model, drive.size_bytes) for drive in drives}
    if len(kinds) != 1:
        found = ", ".join(sorted(f"{model} of {size:,} bytes" for model, size in kinds)) or "none"
        raise NoSheet(f"a spec is about one model of one size, and the drives of {run.name} are {found}")
    if not drives[0].model:
        raise NoSheet(f"the drives of {run.name} have no model, which a spec is about")
    return drives[0]


def _head(run: ComparedRun, drive: Drive, figures: int) -> Iterator[str]:
    model = safe_text.line((drive.model or "").strip())
    used = safe_text.line(run.manifest.protocol.name)
    yield f"# Measured, not published: {figures} figures of the run {safe_text.line(run.name)}, protocol {used}."
    yield "# 90 % of each is promised (latencies 111 %), by the promises at the end and by default; write your own."
    if not run.manifest.acceptance:
        yield "# The protocol is not for acceptance, so each figure is marked approximate."
    if not run.has_ended:
        yield "# The run did not end by itself: figures of tests that it did not reach are missing."
    yield ""
    yield "[product]"
    yield f"name = {_quoted(f'{model}, measured')}"
    yield f"models = [{_quoted(_glob(model))}]"
    yield f"capacity = {_quoted(f'{drive.size_bytes} B')}"
    firmware = safe_text.line(drive.firmware or "unknown")
    yield f"source = {_quoted(safe_text.line(f'measured in the run {run.name}, firmware {firmware}'))}"
    yield ""


def _figures(run: ComparedRun) -> Iterator[str]:
    """Yield one table for each figure, without a quantity twice: that of a plain run before that of a round's cell.

    A latency below one that it is above in a data sheet is left out: bursts of slow I/Os may be a hundredth of all, and
    in so few spells that the maximum, which is exceeded some times an hour, has none of them.
    """
    chosen: dict[tuple[Geometry, str], dict[Claim, tuple[FigureKey, ComparedFigure]]] = {}
    for key, figure in sorted(run.figures.items(), key=lambda each: (each[0].about == "loop", each[0])):
        array = _array(key)
        # A figure that was judged in per cent of another one is no figure of the drive.
        if array and figure.estimate.unit is Claim(key.claim).unit and figure.estimate.value > 0:
            chosen.setdefault((array, key.workload), {}).setdefault(Claim(key.claim), (key, figure))
    for (array, _), figures in chosen.items():
        below = {
            upper for _, upper in descents({claim: figure.estimate.value for claim, (_, figure) in figures.items()})
        }
        for claim, (key, figure) in figures.items():
            if claim not in below:
                yield "\n".join(_figure(run, key, figure, array)) + "\n"


def _promises(run: ComparedRun) -> Iterator[str]:
    """Yield a promise for each claim whose figures are promised as they are by default.

    A data sheet guarantees a percentile; a measured one is what half of equal drives exceed, so a tenth is allowed.
    """
    as_published = {each.claim for each in specs.default().promises if each.percent_of_spec == GUARANTEED_PERCENT}
    for claim in sorted(as_published & {Claim(key.claim) for key in run.figures if _array(key)}):
        at_least = claim.direction is Direction.AT_LEAST
        yield "[[promise]]"
        yield "# The limit for every drive in the shipped file default applies to this claim no longer."
        yield f"claim = {_quoted(claim.value)}"
        yield f"{'min_percent_of_spec = 90' if at_least else 'max_percent_of_spec = 111'}\n"


def _array(key: FigureKey) -> Geometry | None:
    """Return the array that a figure is about, ``ONE_DRIVE`` of drives; None if no sheet can publish it."""
    if key.claim not in {claim.value for claim in QUANTITIES} or len(key.workloads) != 1 or len(key.geometries) != 1:
        return None
    try:
        array = ONE_DRIVE if key.geometry == DRIVES else Geometry.parse(key.geometry)
    except ValueError:
        return None
    if array.is_side_by_side:
        return ONE_DRIVE
    return None if array.missing else array


def _figure(run: ComparedRun, key: FigureKey, figure: ComparedFigure, array: Geometry) -> Iterator[str]:
    claim, estimate = Claim(key.claim), figure.estimate
    several = f", typical of {len(figure.drives)} drives" if figure.drives else ""
    interval = f"{100 * estimate.confidence:g} % interval {format_range(estimate.low, estimate.high, estimate.unit)}"
    yield "[[figure]]"
    if array != ONE_DRIVE:
        yield f"array = {_quoted(str(array))}"
    yield f"workload = {_quoted(key.workload)}"
    yield f"{_key(claim)} = {_value(estimate.value, estimate.unit)}"
    if not run.manifest.acceptance:
        yield "approximate = true"
    yield f"source = {_quoted(safe_text.line(f'run {run.name}{several}, {interval}'))}"


def _key(claim: Claim) -> str:
    name = QUANTITIES[claim]
    return _quoted(name) if "." in name else name


def _value(value: float, unit: Unit) -> str:
    """Return the value in TOML: rounded to ``DIGITS``, in the unit that a reader of data sheets expects."""
    rounded = float(f"{value:.{DIGITS}g}")
    if unit is Unit.NANOSECONDS:
        return _quoted(f"{_plain(rounded / 1000)} us")
    if unit is Unit.BYTES_PER_SECOND:
        return _quoted(f"{_plain(rounded / 1e6)} MB/s")
    if unit is Unit.IOPS:
        return _quoted(f"{_plain(rounded)} IOPS")
    if unit is Unit.RATIO:
        return _quoted(f"{_plain(rounded)} x")
    return _plain(rounded)


def _plain(number: float) -> str:
    """Return the number without an exponent, which a spec does not have."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _quoted(given: str) -> str:
    """Return a TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(given, ensure_ascii=False)


def _glob(model: str) -> str:
    """Return a glob that matches exactly this model."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in model)


def write(run: ComparedRun, path: Path) -> None:
    """Write the spec; ``FileExistsError`` if ``path`` exists, ``NoSheet`` as ``text``."""
    written = text(run)
    with path.open("x", encoding="utf-8") as file:
        file.write(written)


def unread(run: ComparedRun) -> Sequence[str]:
    """Return a sentence if verdicts of the run could not be read; their figures are missing."""
    return [f"{run.unreadable} records of {run.name} cannot be read; figures may be missing"] * bool(run.unreadable)
