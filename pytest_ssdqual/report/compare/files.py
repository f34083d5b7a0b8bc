"""A comparison for other programs: JSON with everything in base units, CSV with a row for each figure; pure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.report.compare.circumstances import firmware_of, model_of
from pytest_ssdqual.report.compare.compare import Against, Comparison, Pair, Told
from pytest_ssdqual.report.evidence.part import finite

SCHEMA = 1
#: What spreadsheets take for the beginning of a formula, also behind blanks and in another width.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

COLUMNS = (
    "run", "against", "claim", "geometry", "workload", "about", "group", "unit", "first", "first_low", "first_high",
    "now", "now_low", "now_high", "ratio", "ratio_low", "ratio_high", "confidence", "shown", "p_value", "is_reading",
    "drives_paired",
)  # fmt: skip


def record(found: Comparison) -> dict[str, object]:
    """Plain JSON data."""
    return {
        "schema": SCHEMA,
        "first": run_record(found.first),
        "facts": [
            {
                "name": each.name,
                "values": list(each.values),
                "differs": each.differs,
                "weight": each.weight.name.lower(),
                "meaning": each.meaning,
            }
            for each in found.facts
        ],
        "comparisons_judged": found.judged,
        "run_to_run_percent": found.run_to_run_percent,
        "others": [_against(each) for each in found.others],
    }


def run_record(run: Told) -> dict[str, object]:
    """What a run is, without its figures."""
    return {
        "name": run.name,
        "started": run.started,
        "model": model_of(run),
        "firmware": firmware_of(run),
        "figures": len(run.figures),
        "unreadable": run.unreadable,
        "has_ended": run.has_ended,
    }


def _against(other: Against) -> dict[str, object]:
    return {
        "run": run_record(other.run),
        "only_first": other.only_old,
        "only_now": other.only_new,
        "left_out": dict(other.left_out),
        "upheld_benjamini_yekutieli": other.upheld,
        "figures": [_pair(each) for each in other.pairs],
    }


def _pair(pair: Pair) -> dict[str, object]:
    key = pair.key
    return {
        "claim": key.claim,
        "geometries": list(key.geometries),
        "workloads": list(key.workloads),
        "about": key.about,
        "group": key.group,
        "direction": pair.direction.value,
        "first": estimate_record(pair.old.estimate),
        "now": estimate_record(pair.new.estimate),
        "ratio": estimate_record(pair.change.ratio),
        "shown": pair.change.shown.value,
        "p_value": pair.change.p_value,
        "drives_paired": pair.paired,
    }


def estimate_record(estimate: Estimate) -> dict[str, object]:
    """As in the records, but JSON has no infinity."""
    return {**estimate.to_record(), "value": finite(estimate.value)}


def rows(found: Comparison) -> Iterator[tuple[object, ...]]:
    """Of the CSV file, below ``COLUMNS``."""
    for other in found.others:
        for pair in other.pairs:
            key, change = pair.key, pair.change
            ends = (_ends(pair.old.estimate), _ends(pair.new.estimate), _ends(change.ratio))
            numbers = [number for each in ends for number in each]
            yield (
                other.run.name, found.first.name, key.claim, key.geometry, key.workload, key.about, key.group,
                pair.old.estimate.unit.value, *numbers, change.ratio.confidence, change.shown.value, change.p_value,
                change.ratio.is_reading, pair.paired,
            )  # fmt: skip


def csv_text(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """RFC 4180 with line feeds; no cell is a formula to a spreadsheet, whatever a drive or a spec is called."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(each) for each in line] for line in lines)
    return out.getvalue()


def _cell(value: object) -> str:
    """Numbers as they are; text that a spreadsheet would reckon with begins with an apostrophe."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else ""
    if value is None:
        return ""
    text = safe_text.line(str(value))
    return f"'{text}" if text.lstrip(" '\"").startswith(FORMULA) else text


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high
