"""Evidence of lots: figures and remarks of a sampling plan's verdict; pure."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.lots import lot
from pytest_ssdqual.qual.lots.lot import LotVerdict
from pytest_ssdqual.qual.lots.sampling_plan import CONSUMERS_RISK, POINTS_PERCENT, ByAttributes
from pytest_ssdqual.report.evidence.evidence import Figures

#: Points of the operating characteristic in the remark, per cent bad; figures have all of ``POINTS_PERCENT``.
TOLD_PERCENT = (1, 5, 10, 20)
#: Level of Grubbs' test at which a drive is named.
OUTLIER_LEVEL = 0.05
#: Smallest p-value that is printed as a number.
SMALLEST_P = 0.0001


def figures(verdict: LotVerdict) -> Figures:
    """Return the plan, its operating characteristic, and figures of the sample. Percentages are of bad drives."""
    plan, by_attributes = verdict.plan, isinstance(verdict.plan, ByAttributes)
    return {
        "lot_size": plan.lot,
        "sample_size": plan.sample,
        "acceptance_number": plan.accept if isinstance(plan, ByAttributes) else None,
        "acceptability_constant": None if isinstance(plan, ByAttributes) else plan.k,
        "nonconforming_drives": len(verdict.nonconforming),
        "undecided_drives": len(verdict.undecided),
        "aql_percent": plan.aql_percent,
        "rejects_at_aql_percent": _rejected_at_aql(verdict),
        **{f"accepts_at_{each:g}_percent": 100 * plan.acceptance(each / 100) for each in POINTS_PERCENT},
        "limiting_quality_percent": 100 * plan.limiting_quality(),
        "bad_at_most_percent": 100 * lot.ruled_out(verdict),
        "normality_p_value": None if by_attributes else lot.normality(lot.margins(verdict.drives)),
        "measurement_variance_percent": _percent(lot.measurement_share(verdict.drives)),
        **standing_out(_of_each(verdict))[0],
    }


def remarks(verdict: LotVerdict, measured: int) -> tuple[str, ...]:
    """Return remarks on a lot; of ``measured`` drives only the plan's sample counts."""
    plan, drives = verdict.plan, verdict.drives
    sure = f"{100 * (1 - CONSUMERS_RISK):g} %"
    bad = " / ".join(f"{each:g}" for each in TOLD_PERCENT)
    accepted = " / ".join(f"{100 * plan.acceptance(each / 100):.0f}" for each in TOLD_PERCENT)
    sentences = [
        f"of samples from a process with {bad} % bad drives the plan ({plan}) accepts {accepted} %",
        f"at {sure} confidence {_at_most(100 * lot.ruled_out(verdict))} of the lot's drives are bad",
    ]
    if one := standing_out(_of_each(verdict))[1]:
        sentences.append(one)
    share = lot.measurement_share(drives)
    if not isinstance(plan, ByAttributes) and share is not None and share > lot.MEASUREMENT_SHARE:
        sentences.append(
            f"{100 * share:.2g} % of the variance between the drives is the measurement's, which makes the lot look "
            "worse than it is"
        )
    if measured > plan.sample:
        sentences.append(f"of {measured} drives the first {plan.sample} are the sample, the others do not count")
    return tuple(sentences)


def standing_out(of_each: Mapping[str, float]) -> tuple[Figures, str]:
    """Return figures of the drive farthest from the others, and a sentence if Grubbs' test names it."""
    found = outliers.of_positive(list(of_each.values()))
    if found is None:
        return {}, ""
    figures = {"grubbs_statistic": found.statistic, "grubbs_p_value": found.p_value}
    if found.p_value >= OUTLIER_LEVEL:
        return figures, ""
    p_value = f"p < {SMALLEST_P:g}" if found.p_value < SMALLEST_P else f"p = {found.p_value:.2g}"
    test = f"Grubbs' test of the logarithms: G = {found.statistic:.2f}, {p_value}"
    return figures, f"drive {list(of_each)[found.index]} stands out from the others ({test})"


def _rejected_at_aql(verdict: LotVerdict) -> float | None:
    aql = verdict.plan.aql_percent
    return None if aql is None else 100 * (1 - verdict.plan.acceptance(aql / 100))


def _at_most(percent: float) -> str:
    """Return an upper bound; below the plan's smallest point that point, as the tail is unknown."""
    least = min(POINTS_PERCENT)
    return f"less than {least:g} %" if percent < least else f"at most {percent:.3g} %"


def _of_each(verdict: LotVerdict) -> dict[str, float]:
    return {each.subject.drive: each.estimate.value for each in verdict.drives}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
