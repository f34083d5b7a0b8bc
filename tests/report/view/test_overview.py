from __future__ import annotations

from dataclasses import replace

from support.builders.report_page import Claimed

from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.overview import arrays_judged


def test_the_first_screen_says_what_was_tested(claimed: Claimed) -> None:
    names = ("raid5x3", "raid5x8", "drivex8", "raid5x4-1failed", "raid10x4")
    judged = [Judged("t", "", replace(claimed(), geometries=(name,))) for name in names]
    sweep = replace(claimed(), geometries=("raid5x3", "raid5x9"))
    assert arrays_judged([*judged, Judged("t", "", sweep)]) == (
        "single drives, RAID 10 of 4 drives, RAID 5 of 3 to 9 drives, RAID 5 (1 failed) of 4 drives"
    )


def test_without_an_array_nothing_is_said(claimed: Claimed) -> None:
    assert arrays_judged([Judged("t", "", replace(claimed(), geometries=("the lot",)))]) == ""
    assert arrays_judged([]) == ""
