from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import charted
from support.builders.charted import words

from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import Chart, charts
from pytest_ssdqual.report.evidence.evidence import About

WRITE = Workload("randwrite", "4k", 32)


def drawn(fresh: float = 20e3, **published: Published) -> Chart:
    strip, _ = charted.saturation()
    figures = {"fresh_iops": fresh, "settled_iops": 5000.0, "settled_capacities": 1.06}
    verdicts = [
        charted.judged(claim, "drivex1", [WRITE], value, bound, about=About.SATURATION, figures=figures,
                       published=published.get(claim.value))
        for claim, value, bound in (
            (Claim.FRESH_IOPS, fresh, 9000), (Claim.SETTLED_IOPS, 5000, 4000), (Claim.FRESH_TO_STEADY, 4, 1.25),
        )
    ]  # fmt: skip
    (found,) = charts(charted.story(strip, *verdicts))
    return found


def test_each_published_figure_says_what_it_is_of() -> None:
    found = words(drawn(fresh_iops=Published(2700, Unit.IOPS, "STEC"), settled_iops=Published(170, Unit.IOPS, "STEC")))
    assert {"published, fresh: 2,700 IOPS (STEC)", "published, settled: 170 IOPS (STEC)"} <= {
        each if each.endswith(")") else f"{each} (STEC)" for each in found
    }


def test_the_promise_of_their_ratio_is_drawn_in_iops() -> None:
    assert "promised, fresh: ≤ 1.25 × of settled" in words(drawn())


@pytest.mark.parametrize(("fresh", "ending"), [(20e3, ", 4 times slower in the end"), (5100.0, "purged state")])
def test_what_did_not_get_slower_is_not_said_to(fresh: float, ending: str) -> None:
    assert replace(drawn(fresh)).title.endswith(ending)
