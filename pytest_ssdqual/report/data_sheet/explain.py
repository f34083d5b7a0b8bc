"""Explains a spec: what each of its tables promises, which suites judge it, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_ssdqual import suites
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import datasheet
from pytest_ssdqual.qual.spec.claims import OF_COUNTERS, Accountable, Claim, Scope
from pytest_ssdqual.qual.spec.promises import Promise
from pytest_ssdqual.qual.spec.spec import DEFAULT, Spec
from pytest_ssdqual.qual.units import format_capacity, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.view.tables import TextLine


def lines(spec: Spec) -> Iterator[TextLine]:
    """Yield the explanation, table by table, and what is missing."""
    yield TextLine(f"{spec.key}: {spec.name}", ("bold",))
    yield from map(TextLine, _identity(spec))
    for title, found in (
        ("figures: what is published, and the limit that follows", _figures(spec)),
        ("promises: the first that matches decides", _promises(spec)),
        ("health: what may get worse during a run, of each drive; every suite judges it", spec.health.changed()),
        ("suites that judge by them", _suites(spec)),
        ("missing", missing(spec)),
        ("doubtful", spec.doubts()),
    ):
        rows = tuple(found)
        yield TextLine("")
        yield TextLine(title if rows else f"{title}: none", ("bold",))
        yield from (TextLine(f"  {row}") for row in rows)


def missing(spec: Spec) -> Iterator[str]:
    """Yield what the spec lacks, and promises that can never decide, a sentence each."""
    product = spec.product
    if not product.models:
        yield "[product] models is empty: the sheet is used only if --ssd-spec names it"
    for key, absent, effect in (
        ("capacity", product.capacity_bytes is None, "drives of another size are not noticed by it"),
        (
            "sequential_write",
            product.sequential_write_bytes_per_s is None,
            "the plan can only guess the time of a fill",
        ),
        ("source", not product.source, "its facts cannot be looked up"),
    ):
        if absent:
            yield f"[product] has no {key}: {effect}"
    if spec.endurance_bytes is None:
        yield "[endurance] is missing: the plan cannot print the share of the rated writes that a suite uses"
    if unknown := sum(1 for figure in spec.figures for _ in figure.places() if figure.conditions):
        yield f"published conditions of {unknown} figures: they are judged approximately, under the program's"
    yield from (f"no figure: {kind.label} of one drive" for kind in datasheet.missing_kinds(spec.figures))
    yield from _without_limit(spec)
    yield from _without_effect(spec)


def _identity(spec: Spec) -> Iterator[str]:
    product = spec.product
    if product.vendor:
        yield f"  vendor      {product.vendor}"
    models = " or ".join(product.models) or "chosen by name only"
    yield f"  models      {models}"
    if product.drive_class:
        yield f"  class       {product.drive_class.label}, of a drive that does not report its own"
    if product.capacity_bytes:
        yield f"  capacity    {format_capacity(product.capacity_bytes)}"
    if spec.endurance_bytes:
        yield f"  endurance   {format_capacity(spec.endurance_bytes)} written; the plan prints the share of a run"
    blamed = "the drives" if product.subject is Accountable.DRIVE else "the system of drives, md and host"
    yield f"  a failure   blames {blamed}, unless a promise says otherwise"
    if product.drives:
        yield f"  drives      {product.drives} in a bay; a run with more or fewer does not begin"
    if spec.lot:
        yield f"  lot         {spec.lot}; judged by suites/lot"


def _figures(spec: Spec) -> Iterator[str]:
    for figure in spec.figures:
        for array, workload, claim in figure.places():
            stated = figure.of(claim, array, workload)
            where = "each drive" if array.is_side_by_side else str(array)
            limit = _limit(spec, claim, array, workload)
            source = stated.source if stated else figure.source
            yield f"{where} {workload}: {claim.label} {stated} ({source}); {limit}"


def _limit(spec: Spec, claim: Claim, array: Geometry, workload: str) -> str:
    try:
        load = Workload.parse(workload)
    except ValueError:
        return "a profile, which only the suite that defines it can measure"
    limit = spec.limit(claim, array, load)
    return f"limit {limit}" if limit else "no limit"


def _promises(spec: Spec) -> Iterator[str]:
    for index, promise in enumerate(spec.promises):
        yield f"promise[{index}]: {promise.claim.label} {_bound(promise)}, of {_subject(promise)}"
    if spec.key != DEFAULT:
        mentioned = {promise.claim for promise in spec.promises}
        yield f"every other claim ({len(set(Claim) - mentioned)}) by the shipped file {DEFAULT}"


def _bound(promise: Promise) -> str:
    side = promise.claim.direction.replace("_", " ")
    if promise.percent_of_spec is not None:
        return f"{side} {promise.percent_of_spec:g} % of the figure"
    if promise.relation:
        return str(promise.relation)
    return f"{side} {format_value(promise.bound or 0.0, promise.claim.unit)}"


def _subject(promise: Promise) -> str:
    level = promise.level or "every array and drive"
    width = f" of {promise.width}" if promise.width else ""
    state = "rebuilding" if promise.claim.scope is Scope.REBUILD else promise.state or "healthy"
    classes = "".join(f", {each.label} drives" for each in promise.drive_classes or ())
    return (
        f"{level}{width}{classes}, {state}, {f'workloads {promise.workload}' if promise.workload else 'every workload'}"
    )


def _suites(spec: Spec) -> Iterator[str]:
    if spec.figures:
        quantities = sum(1 for figure in spec.figures for _ in figure.places())
        yield f"datasheet: {quantities} published quantit{'y' if quantities == 1 else 'ies'}"
    # Besides these, ``datasheet`` judges what is published, and ``explore`` single workloads.
    judging = suites.judging()
    for claim in dict.fromkeys(promise.claim for promise in spec.promises):
        also = ("explore",) if claim.scope is Scope.RUN and claim not in OF_COUNTERS else ()
        yield f"{claim.label}: {', '.join((*judging.get(claim, ()), *also)) or 'datasheet, where it is published'}"
    if spec.lot:
        yield "lot: whether the lot is accepted by its sample"


def _without_limit(spec: Spec) -> Iterator[str]:
    """Yield published claims that the spec's promises leave without a limit at a place where they are published."""
    silent: Counter[Claim] = Counter()
    for figure in spec.figures:
        for array, workload, claim in figure.places():
            silent[claim] += _limit(spec, claim, array, workload) == "no limit"
    for claim, count in silent.items():
        if count:
            yield f"{count} published {claim.label} without a limit: the promises about it do not match there"


def _without_effect(spec: Spec) -> Iterator[str]:
    """Yield promises that refer to nothing, or stand behind a promise that matches all that they match."""
    published = {
        Claim.REBUILD_RATE,
        Claim.REBUILD_TIME,
        *(claim for figure in spec.figures for claim in figure.quantities),
    }
    for index, promise in enumerate(spec.promises):
        if promise.percent_of_spec is not None and promise.claim not in published and spec.key != DEFAULT:
            yield f"promise[{index}] is in per cent of {promise.claim.label}, of which no figure is published"
        hiding = next((each for each in range(index) if spec.promises[each].covers(promise)), None)
        if hiding is not None:
            yield f"promise[{index}] never decides: promise[{hiding}] comes first and matches all that it matches"
