"""Lots accepted or rejected by a sample: figures and sentences of the plan, and the section about them; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.lots import lot
from pytest_ssdqual.qual.lots.lot import LotVerdict
from pytest_ssdqual.qual.lots.sampling_plan import CONSUMERS_RISK, POINTS_PERCENT, ByAttributes
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Figure
from pytest_ssdqual.report.view.tables import COLOUR, INDENT, TextLine

#: Where the operating characteristic is told in words, per cent bad; the figures have all of ``POINTS_PERCENT``.
TOLD_PERCENT = (1, 5, 10, 20)
#: A drive that stands out this rarely by chance is named.
OUTLIER_LEVEL = 0.05
#: Below this a p-value is not told in full.
SMALLEST_P = 0.0001


def figures(verdict: LotVerdict) -> tuple[Figure, ...]:
    """The plan, its operating characteristic, and what the sample is like. Percentages are of bad drives."""
    plan, by_attributes = verdict.plan, isinstance(verdict.plan, ByAttributes)
    return (
        Figure("lot_size", plan.lot),
        Figure("sample_size", plan.sample),
        Figure("acceptance_number", plan.accept if isinstance(plan, ByAttributes) else None),
        Figure("acceptability_constant", None if isinstance(plan, ByAttributes) else plan.k),
        Figure("nonconforming_drives", len(verdict.nonconforming)),
        Figure("undecided_drives", len(verdict.undecided)),
        Figure("aql_percent", plan.aql_percent),
        Figure("rejects_at_aql_percent", _rejected_at_aql(verdict)),
        *(Figure(f"accepts_at_{each:g}_percent", 100 * plan.acceptance(each / 100)) for each in POINTS_PERCENT),
        Figure("limiting_quality_percent", 100 * plan.limiting_quality()),
        Figure("bad_at_most_percent", 100 * lot.ruled_out(verdict)),
        Figure("normality_p_value", None if by_attributes else lot.normality(lot.margins(verdict.drives))),
        Figure("measurement_variance_percent", _percent(lot.measurement_share(verdict.drives))),
        *standing_out(_of_each(verdict))[0],
    )


def remarks(verdict: LotVerdict, measured: int) -> tuple[str, ...]:
    """``measured`` is how many drives were measured; more than the plan's do not count."""
    plan, drives = verdict.plan, verdict.drives
    sure = f"{100 * (1 - CONSUMERS_RISK):g} %"
    bad = " / ".join(f"{each:g}" for each in TOLD_PERCENT)
    accepted = " / ".join(f"{100 * plan.acceptance(each / 100):.0f}" for each in TOLD_PERCENT)
    said = [
        f"of samples from a process with {bad} % bad drives the plan ({plan}) accepts {accepted} %",
        f"at {sure} confidence {_at_most(100 * lot.ruled_out(verdict))} of the lot's drives are bad",
    ]
    if one := standing_out(_of_each(verdict))[1]:
        said.append(one)
    share = lot.measurement_share(drives)
    if not isinstance(plan, ByAttributes) and share is not None and share > lot.MEASUREMENT_SHARE:
        said.append(
            f"{100 * share:.2g} % of the variance between the drives is the measurement's, which makes the lot look "
            "worse than it is"
        )
    if measured > plan.sample:
        said.append(f"of {measured} drives the first {plan.sample} are the sample, the others do not count")
    return tuple(said)


def standing_out(of_each: Mapping[str, float]) -> tuple[tuple[Figure, ...], str]:
    """Figures about the drive, by serial number, that is farthest from the others; a sentence if it is no chance."""
    found = outliers.of_positive(list(of_each.values()))
    if found is None:
        return (), ""
    told = (Figure("grubbs_statistic", found.statistic), Figure("grubbs_p_value", found.p_value))
    if found.p_value >= OUTLIER_LEVEL:
        return told, ""
    p_value = f"p < {SMALLEST_P:g}" if found.p_value < SMALLEST_P else f"p = {found.p_value:.2g}"
    test = f"Grubbs' test of the logarithms: G = {found.statistic:.2f}, {p_value}"
    return told, f"drive {list(of_each)[found.index]} stands out from the others ({test})"


def lots(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """The sentence of each lot and what stands behind it; what was said of one is not said again."""
    said: set[str] = set()
    for each in evidence:
        if each.about is not About.LOT:
            continue
        colour = (COLOUR[each.outcome], "bold") if each.outcome in COLOUR else ("bold",)
        for line in _wrapped(each.sentence, width, "", INDENT):
            yield TextLine(line, colour)
        for remark in [remark for remark in each.remarks if remark not in said]:
            said.add(remark)
            for line in _wrapped(remark, width, INDENT, INDENT * 2):
                yield TextLine(line)
        yield TextLine("")


def _rejected_at_aql(verdict: LotVerdict) -> float | None:
    aql = verdict.plan.aql_percent
    return None if aql is None else 100 * (1 - verdict.plan.acceptance(aql / 100))


def _at_most(percent: float) -> str:
    """Of the far tail of a distribution nobody knows the shape."""
    least = min(POINTS_PERCENT)
    return f"less than {least:g} %" if percent < least else f"at most {percent:.3g} %"


def _of_each(verdict: LotVerdict) -> dict[str, float]:
    return {each.subject.drive: each.estimate.value for each in verdict.drives}


def _wrapped(text: str, width: int, first: str, rest: str) -> Iterator[str]:
    """No number without its per cent sign."""
    for line in wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), width, initial_indent=first, subsequent_indent=rest):
        yield line.replace("\N{NO-BREAK SPACE}", " ")


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
